#!/usr/bin/env python3
"""Input that the command line refuses or warns of."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_case import DRAFTER, PAIR, PROMPTS, ROOT, TARGET, Case, objects, run


class BadInput(Case):
    def test_command_line(self):
        prompt = ["--prompt", "x"]
        self.refused(2, "subcommand is required")
        self.refused(2, "'translate' was not expected", "translate")
        self.refused(2, "'--traget' was not expected", "generate", "--traget", TARGET)
        self.refused(2, "--colour", "generate", *PAIR, *prompt, "--colour")
        self.refused(2, "--target is required", "generate", *prompt)
        self.refused(2, "--drafter is required", "check", "--target", TARGET, *prompt)
        self.refused(2, "give --prompt TEXT or --prompts FILE", "generate", *PAIR)
        self.refused(2, "--prompt excludes --prompts", "generate", *PAIR, *prompt, "--prompts", PROMPTS)
        self.refused(2, "--max-tokens: '-1'", "generate", *PAIR, *prompt, "--max-tokens", -1)
        self.refused(2, "--max-tokens: '3x'", "generate", *PAIR, *prompt, "--max-tokens", "3x")
        self.refused(2, "--threads: '9999'", "generate", *PAIR, *prompt, "--threads", 9999)
        self.refused(2, "--max-sequences: '0'", "generate", *PAIR, *prompt, "--max-sequences", 0)
        self.refused(2, "--draft-tokens: 'best'", "generate", *PAIR, *prompt, "--draft-tokens", "best")
        self.refused(2, "--draft-tokens requires --drafter", "generate", *PAIR[:2], *prompt, "--draft-tokens", "auto")
        self.refused(2, "acceptance is ratio", "generate", *PAIR, *prompt, "--draft-tokens", "auto", "--temperature", 1,
                     "--acceptance", "ratio")
        for pattern in ["0.5,1.5", "0.5,", "x", "nan"]:
            self.refused(2, "--accept-pattern: '", "bench", *PAIR, *prompt, "--accept-pattern", pattern)
        self.refused(2, "--draft-tokens is 8, expected 1 to 7", "generate", *PAIR, *prompt, "--draft-tokens", 8)
        self.refused(2, "--draft-tokens requires --drafter", "generate", *PAIR[:2], *prompt, "--draft-tokens", 2)
        self.refused(2, "--max-positions is 99999, expected 1 to 2048", "generate", *PAIR, *prompt, "--max-positions",
                     99999)
        for message, flags in {
            "--drafter-weights: 'int4' is not known, expected bf16, fp8, nvfp4, int8": ["--drafter-weights", "int4"],
            "--target-weights: 'int4' is not known, expected bf16, fp8, nvfp4, int8": ["--target-weights", "int4"],
            "--drafter-layout: 'odd' is not known, expected in-place, shifted": ["--drafter-layout", "odd"],
            "--confidence-threshold: 'x' is not a number": ["--confidence-threshold", "x"],
            "--confidence-threshold is 1.5, expected 0 to 1": ["--confidence-threshold", "1.5"],
            "--confidence-threshold is 0.5, expected 0: ": ["--confidence-threshold", "0.5"],
            "--acceptance: 'both' is not known, expected coupled, ratio": ["--acceptance", "both"],
            "--repetition-penalty: '1,5' is not a number": ["--repetition-penalty", "1,5"],
            "--repetition-penalty is 0, expected more than 0 and at most 100": ["--repetition-penalty", "0"],
            "--presence-penalty is 3, expected -2 to 2": ["--presence-penalty", "3"],
            "--frequency-penalty is nan, expected -2 to 2": ["--frequency-penalty", "nan"],
            "--temperature is 101, expected 0 to 100": ["--temperature", "101"],
            "--logit-bias: '7' is not ID=BIAS": ["--logit-bias", "7"],
            "--logit-bias: '7=x' is not ID=BIAS": ["--logit-bias", "7=x"],
            "--logit-bias: '-1=2' is not ID=BIAS": ["--logit-bias=-1=2"],
            "--logit-bias: id is 9999, expected 0 to 4095": ["--logit-bias", "9999=1"],
            "--logit-bias of id 7 is 101, expected -100 to 100": ["--logit-bias", "7=101"],
            "--logit-bias: id 7 is given twice": ["--logit-bias", "7=1", "--logit-bias", "7=2"],
        }.items():
            for command in ["generate", "check", "bench"]:
                self.refused(2, message, command, *PAIR, *prompt, *flags)
        for flags in [["--drafter-weights", "fp8"], ["--drafter-layout", "shifted"], ["--confidence-threshold", "0"]]:
            self.refused(2, f"{flags[0]} requires --drafter", "generate", *PAIR[:2], *prompt, *flags)
        self.refused(2, "--stop: the text is empty", "generate", *PAIR, *prompt, "--stop", "")
        self.refused(2, "--temperature is 0, expected 1e-05 or more", "check", *PAIR, *prompt, "--acceptance-theory")
        self.refused(2, "log level is 'loud'", "generate", *PAIR, *prompt, "--log-level", "loud")

    def test_devices(self):
        for command in ["generate", "check", "bench"]:
            done = self.refused(1, "--device: ", command, *PAIR, "--prompt", "x", "--device", "cuda:7777")
            # Without CUDA; with it, but without a driver; with both.
            self.assertRegex(done.stderr.decode(), "cuda:7777: this build has no CUDA backend|no driver found|"
                             "card 7777 asked for")
        for command in [["inspect", TARGET], ["tokenize", "--target", TARGET],
                        ["quantize", TARGET, "out", "--format", "fp8"]]:
            self.refused(2, f"--device is cuda:1, expected cpu: {command[0]} works on the CPU alone", *command,
                         "--device", "cuda:1")
        for name in ["tpu", "cuda:x", "cuda:", "cuda:-1", "cuda:0x", ""]:
            self.refused(2, f"--device: '{name}' is no device, expected cpu or cuda[:N]", "tokenize", "--target", TARGET,
                         "--device", name)

    def test_instruction_sets(self):
        for command in ("generate", "check", "bench"):
            drafter = () if command == "generate" else ("--drafter", DRAFTER)
            prompt = ("--prompts", "demo/prompts.jsonl") if command == "bench" else ("--prompt", "x")
            self.refused(2, "--cpu-isa is 'sse9', expected portable, avx2, avx512 or avx512_bf16",
                         command, "--target", TARGET, *drafter, *prompt, "--cpu-isa", "sse9")

    def test_folders(self):
        self.refused(2, "--target: there is no folder 'nowhere'", "generate", "--target", "nowhere", "--prompt", "x")
        self.refused(2, "--drafter: there is no folder 'nowhere'", "check", "--target", TARGET, "--drafter", "nowhere",
                     "--prompt", "x")
        self.refused(1, "nowhere/config.json", "inspect", "nowhere")
        self.refused(1, "src/config.json", "generate", "--target", "src", "--prompt", "x")
        self.refused(1, f"{DRAFTER}/config.json", "generate", "--target", DRAFTER, "--prompt", "x")

    def test_prompts(self):
        cases = {'{"prompt": "a"}\n{"prompt": 1}\n': ":2: 'prompt' is", '\n{"prompt"\n': ":2: ",
                 '{"text": "a"}\n': ':1: no "prompt"', '["a"]\n': ":1: the line is",
                 '{"prompt": "a", "id": []}\n': ":1: 'id' is", "": "holds no prompt"}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            for text, message in cases.items():
                path.write_text(text, encoding="utf-8")
                done = self.refused(2, message, "generate", *PAIR, "--prompts", path)
                self.assertIn(str(path), done.stderr.decode())
        self.refused(2, "cannot read 'nowhere'", "generate", *PAIR, "--prompts", "nowhere")
        self.refused(2, "'demo' is a folder", "generate", *PAIR, "--prompts", "demo")
        self.refused(2, "--filter: none of the 288 prompts", "generate", *PAIR, "--prompts", PROMPTS, "--filter",
                     "nothing holds this")

    def test_a_prompt_that_does_not_fit(self):
        self.refused(1, "prompt 'prompt': the prompt has", "generate", *PAIR, "--prompt", "def a(b): pass",
                     "--max-positions", 2)

    def test_what_was_complete_before_a_failure_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            path.write_text('{"id": "short", "prompt": "a"}\n' + json.dumps({"id": "long", "prompt": "def f(): " * 40}),
                            encoding="utf-8")
            arguments = ["generate", *PAIR, "--prompts", path, "--max-positions", 40, "--max-tokens", 4]
            done = run(*arguments, "--json")
            self.assertEqual(done.returncode, 1)
            self.assertEqual([found["id"] for found in objects(done.stdout)], ["short"])
            self.assertIn(b"prompt 'long': ", done.stderr)
            self.assertNotIn(b"== long ==", run(*arguments).stdout)
            self.refused(1, "prompt 'long': ", *arguments, "--json", "--max-sequences", 2)


class Pairing(Case):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def drafter_with(self, **changes):
        """A copy of the drafter whose config differs; keys of dflash_config or of the top level."""
        copy = self.folder / "drafter"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT / DRAFTER, copy)
        config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
        for key, value in changes.items():
            (config["dflash_config"] if key in config["dflash_config"] else config)[key] = value
        (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return copy

    def silence(self, drafter, name="norm.weight"):
        """Sets a tensor to zero. Of the last norm: every logit is 0, every draft the first id."""
        path = drafter / "model.safetensors"
        data = bytearray(path.read_bytes())
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        begin, end = header[name]["data_offsets"]
        start = len(data) - max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
        data[start + begin : start + end] = bytes(end - begin)
        path.write_bytes(data)

    def test_a_drafter_that_does_not_fit(self):
        for item, changes in {
            "mask id": {"mask_token_id": 5000, "vocab_size": 8000},
            "target layer ids": {"target_layer_ids": [1, 4, 9], "num_target_layers": 12},
            "hidden size": {"hidden_size": 256},
        }.items():
            drafter = self.drafter_with(**changes)
            for command in ["generate", "check"]:
                done = self.refused(1, "trained for this target", command, "--target", TARGET, "--drafter", drafter,
                                    "--prompt", "x", report=True)
                self.assertRegex(done.stderr.decode(), rf"(?m)^{item} .* does not fit$")

    def test_inspect_says_what_does_not_fit(self):
        drafter = self.drafter_with(mask_token_id=5000, vocab_size=8000)
        done = run("inspect", TARGET, drafter)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"(?m)^mask id .* 5000 +does not fit$")
        self.assertEqual(len(done.stderr.decode().splitlines()), 1)
        done = run("inspect", "--target", TARGET, "--drafter", drafter, "--json")
        self.assertEqual(done.returncode, 1)
        (found,) = objects(done.stdout)
        (pairing,) = found["pairings"]
        self.assertFalse(pairing["fits"])
        self.assertEqual({line["name"] for line in pairing["lines"] if not line["fits"]}, {"mask id", "vocabulary"})

    def test_a_warning_when_no_draft_is_accepted(self):
        drafter = self.drafter_with()
        arguments = ["--target", TARGET, "--drafter", drafter, "--prompt", "def main():", "--ignore-eos", "--json"]
        self.assertNotIn(b"warning", self.ok("check", *arguments, "--max-tokens", 40).stderr)
        self.silence(drafter)
        done = self.ok("check", *arguments, "--max-tokens", 40)
        (found,) = objects(done.stdout)
        self.assertEqual((found["mismatches"], found["acceptance_length_all"]), (0, 1))
        for command in [["generate"], ["bench", "--widths", "2", "--repeats", 1]]:
            done = self.ok(*command, *arguments, "--max-tokens", 40)
            self.assertRegex(done.stderr.decode(), r"warning: none of \d+ drafts in \d+ cycles was accepted")
        self.assertNotIn(b"warning", self.ok("generate", *arguments, "--max-tokens", 8).stderr, "too few to judge")

    def test_a_warning_when_drafts_are_the_mask_id(self):
        drafter = self.drafter_with(mask_token_id=0)
        self.silence(drafter)
        done = self.ok("generate", "--target", TARGET, "--drafter", drafter, "--prompt", "def main():", "--ignore-eos",
                       "--max-tokens", 40)
        self.assertRegex(done.stderr.decode(), r"warning: all \d+ drafts in \d+ cycles were the mask id")

    def test_a_damaged_drafter_shows_in_the_statistics(self):
        drafter = self.drafter_with()
        arguments = ["check", "--target", TARGET, "--drafter", drafter, "--prompts", PROMPTS, "--filter", "class-0",
                     "--max-tokens", 24, "--json"]
        (sound,) = objects(self.ok(*arguments).stdout)
        self.silence(drafter, "fc.weight")
        (damaged,) = objects(self.ok(*arguments).stdout)
        self.assertEqual(damaged["mismatches"], 0)
        self.assertLess(damaged["acceptance_by_position"][0], sound["acceptance_by_position"][0] / 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
