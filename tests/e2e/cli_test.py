#!/usr/bin/env python3
"""The command line as a process, on the demo models. BLOCKDRAFT_BIN names the program, build/*/bin/blockdraft.

BLOCKDRAFT_SANITIZED=1 says that it was built with sanitizers: limits of time and memory do not apply then.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get("BLOCKDRAFT_BIN", str(ROOT / "build/cpu-release/bin/blockdraft"))
SANITIZED = bool(os.environ.get("BLOCKDRAFT_SANITIZED"))
TARGET = "demo/pycode-14m"
DRAFTER = "demo/pycode-14m-dflash"
PROMPTS = "demo/prompts.jsonl"
PAIR = ["--target", TARGET, "--drafter", DRAFTER]
MIB = 1 << 20

COMMANDS = ["generate", "check", "bench", "inspect", "tokenize"]
CHECK_KEYS = {"prompts", "tokens", "mismatches", "first_divergence", "acceptance_length", "acceptance_length_all",
              "acceptance_by_position", "acceptance_by_depth", "plain_tokens_per_s", "drafted_tokens_per_s", "speedup"}
BENCH_KEYS = {"context_us", "propose_us", "verify_us", "accept_us", "decode_us", "propose_bytes", "verify_bytes",
              "read_gb_per_s", "peak_gflops", "device", "threads", "runs"}
GENERATE_KEYS = {"id", "text", "ids", "finish_reason", "prompt_tokens", "completion_tokens", "cycles",
                 "acceptance_length", "acceptance_length_all", "acceptance_by_position", "acceptance_by_depth",
                 "tokens_per_s", "first_token_s", "total_s", "memory"}


def run(*arguments, stdin=""):
    """The finished process; stdout and stderr are bytes, so that nothing is translated."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run([BIN, *map(str, arguments)], input=data, capture_output=True, cwd=ROOT, check=False,
                          timeout=300)


def objects(text):
    return [json.loads(line) for line in text.decode().splitlines()]


def golden_cases():
    return json.loads((ROOT / "tests/golden/demo_generate.json").read_text(encoding="utf-8"))["cases"]


class Case(unittest.TestCase):
    def ok(self, *arguments, stdin=""):
        done = run(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stderr.decode()}")
        return done

    def refused(self, status, message, *arguments, stdin="", report=False):
        """Fails with `status`, nothing on stdout, and one line on stderr (after a report) that holds `message`."""
        done = run(*arguments, stdin=stdin)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, f"{arguments}\n{error}")
        self.assertEqual(done.stdout, b"")
        self.assertTrue(error.endswith("\n"), error)
        last = error.splitlines()[-1]
        self.assertTrue(last.startswith("blockdraft: "), error)
        self.assertIn(message, last)
        if not report:
            self.assertEqual(len(error.splitlines()), 1, error)
        return done


class Help(Case):
    def test_version(self):
        self.assertRegex(self.ok("--version").stdout.decode(), r"^blockdraft \d+\.\d+\.\d+\n$")

    def test_the_program_lists_its_commands(self):
        text = self.ok("--help").stdout.decode()
        for command in COMMANDS:
            self.assertIn(f"  {command} ", text)

    def test_every_command_has_an_example_and_shared_flags(self):
        for command in COMMANDS:
            text = self.ok(command, "--help").stdout.decode()
            self.assertIn(f"blockdraft {command} ", text.split("Example", 1)[1])
            for flag in ["--device", "--threads", "--log-level", "--json"]:
                self.assertIn(flag, text, command)


class Generate(Case):
    def test_equals_the_golden_text(self):
        for case in golden_cases()[:3]:
            done = self.ok("generate", *PAIR, "--prompt", case["prompt"], "--max-tokens", 96)
            self.assertEqual(done.stdout.decode(), case["output_text"])
            self.assertEqual(done.stderr, b"")

    def test_the_drafter_and_its_width_change_nothing(self):
        prompt = golden_cases()[0]["prompt"]
        texts = {self.ok("generate", *models, "--prompt", prompt, "--max-tokens", 40).stdout
                 for models in [PAIR[:2], PAIR, PAIR + ["--draft-tokens", "1"], PAIR + ["--draft-tokens", "4"],
                                PAIR + ["--draft-tokens", "trained"]]}
        self.assertEqual(len(texts), 1)

    def test_json(self):
        case = golden_cases()[0]
        done = self.ok("generate", *PAIR, "--prompt", case["prompt"], "--max-tokens", 96, "--json", "--stats")
        (found,) = objects(done.stdout)
        self.assertEqual(set(found), GENERATE_KEYS)
        self.assertEqual(found["text"], case["output_text"])
        self.assertEqual(found["ids"], case["output_ids"])
        self.assertEqual(found["finish_reason"], "length")
        self.assertEqual(found["prompt_tokens"], len(case["prompt_ids"]))
        self.assertEqual(found["completion_tokens"], 96)
        self.assertEqual(found["cycles"], len(case["acceptance_lengths"]["dflash"]))
        self.assertGreater(found["acceptance_length"], 1)
        self.assertGreater(found["tokens_per_s"], 0)
        self.assertIn("tokens/s", done.stderr.decode())
        self.assertIn("memory:", done.stderr.decode())
        self.assertEqual(len(found["acceptance_by_position"]), 7)
        self.assertRegex(done.stderr.decode(), r"(?m)^draft +verified +accepted +share")
        self.assertRegex(done.stderr.decode(), r"(?m)^64 to 127 +\d+ +[\d.]+$")

    def test_verbose_says_what_is_open(self):
        done = self.ok("generate", *PAIR, "--prompt", "x", "--max-tokens", 1, "--threads", 2, "--verbose",
                       "--draft-tokens", 3, "--cpu-isa", "portable")
        target, drafter, width, kernels, memory = done.stderr.decode().splitlines()
        self.assertRegex(target, rf"^target   Qwen3ForCausalLM {TARGET}; layers: 8; weights: .*F8_E4M3")
        self.assertRegex(drafter, rf"^drafter  DFlash {DRAFTER}; layers: 2; block: 8 rows.*in place.*attention: whole.*in memory: as stored$")
        self.assertEqual(width, "width    3 drafts a cycle, trained for 7")
        self.assertEqual(kernels, "kernels  cpu, portable; threads: 2")
        self.assertRegex(memory, r"^memory   weights [\d.]+ MB mapped, .*target pages .*at once: 1, positions of each: 2048$")
        other = self.ok("generate", "--target", TARGET, "--drafter", "demo/pycode-14m-dspark", "--prompt", "x",
                        "--max-tokens", 1, "--verbose", "--drafter-weights", "nvfp4", "--confidence-threshold", 0.5)
        self.assertRegex(other.stderr.decode(), r"(?m)^drafter .*in memory: NVFP4$")
        self.assertRegex(other.stderr.decode(), r"(?m)^width .*confidence below 0\.5$")
        plain = self.ok("generate", *PAIR[:2], "--prompt", "x", "--max-tokens", 1, "--verbose").stderr.decode()
        self.assertEqual([line.split()[0] for line in plain.splitlines()], ["target", "kernels", "memory"])

    def test_plain_decoding_has_no_drafts(self):
        (found,) = objects(self.ok("generate", *PAIR[:2], "--prompt", "x = ", "--max-tokens", 5, "--json").stdout)
        self.assertEqual((found["completion_tokens"], found["cycles"], found["acceptance_length_all"]), (5, 4, 1))

    def test_streaming_equals_the_final_text(self):
        select = ["--prompts", PROMPTS, "--filter", "unicode", "--max-tokens", 24]
        streamed = self.ok("generate", *PAIR, *select).stdout.decode()
        expected = ""
        for found in objects(self.ok("generate", *PAIR, *select, "--json").stdout):
            text = found["text"]
            expected += f"== {found['id']} ==\n{text}" + ("" if text.endswith("\n") or not text else "\n")
        self.assertGreater(expected.count("== unicode"), 1)
        self.assertEqual(streamed, expected)

    def test_a_batch_gives_the_same_texts_in_order(self):
        select = ["--prompts", PROMPTS, "--filter", "class-0", "--max-tokens", 12]
        one = self.ok("generate", *PAIR, *select).stdout
        self.assertEqual(self.ok("generate", *PAIR, *select, "--max-sequences", 3).stdout, one)

    def test_text_comes_before_it_is_complete(self):
        command = [BIN, "generate", *PAIR, "--prompt", "x = [", "--max-tokens", "1500", "--ignore-eos"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            self.assertNotEqual(os.read(process.stdout.fileno(), 4096), b"")
            self.assertIsNone(process.poll(), "all the text came at once")
            process.kill()

    def test_stop_text_ends_the_text_before_it(self):
        case = golden_cases()[0]
        done = self.ok("generate", *PAIR, "--prompt", case["prompt"], "--stop", " never there ", "--stop", " - 1) *",
                       "--json")
        (found,) = objects(done.stdout)
        self.assertEqual(found["text"], case["output_text"].split(" - 1) *")[0])
        self.assertEqual(found["finish_reason"], "stop")

    def test_no_tokens(self):
        self.assertEqual(self.ok("generate", *PAIR, "--prompt", "x", "--max-tokens", 0).stdout, b"")

    def test_a_prompt_that_looks_like_a_flag(self):
        (found,) = objects(self.ok("generate", *PAIR, "--prompt", "--json", "--json", "--max-tokens", 1).stdout)
        self.assertEqual(found["id"], "prompt")

    def test_ids_of_prompts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            path.write_text('{"prompt": "a"}\n\n{"id": 7, "prompt": "b"}\r\n{"id": "x", "prompt": "c"}', encoding="utf-8")
            found = objects(self.ok("generate", *PAIR, "--prompts", path, "--max-tokens", 1, "--json").stdout)
            self.assertEqual([text["id"] for text in found], ["1", "7", "x"])
            found = objects(self.ok("generate", *PAIR, "--prompts", path, "--max-tokens", 1, "--json", "--filter",
                                    "x").stdout)
            self.assertEqual([text["id"] for text in found], ["x"])

    def test_nobody_reads_to_the_end(self):
        for handler in [signal.SIG_DFL, signal.SIG_IGN]:
            command = [BIN, "generate", *PAIR, "--prompts", PROMPTS, "--max-tokens", "8"]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  restore_signals=handler == signal.SIG_DFL) as process:
                process.stdout.read(10)
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")
                self.assertIn(process.wait(60), [0, -signal.SIGPIPE])

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "generate", *PAIR, "--prompt", "x", "--max-tokens", "4"], cwd=ROOT, stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"stdout: No space left on device", done.stderr)


class Check(Case):
    def check_json(self, *arguments):
        done = self.ok("check", *PAIR, "--json", *arguments)
        (found,) = objects(done.stdout)
        self.assertEqual(set(found), CHECK_KEYS)
        self.assertEqual(found["mismatches"], 0)
        self.assertIsNone(found["first_divergence"])
        self.assertIn(b"equal: ", done.stderr)
        return found

    def test_json(self):
        found = self.check_json("--prompts", PROMPTS, "--filter", "unicode", "--max-tokens", 32)
        self.assertGreaterEqual(found["prompts"], 3)
        self.assertGreater(found["tokens"], found["prompts"])
        self.assertGreater(found["acceptance_length"], 1)
        shares = found["acceptance_by_position"]
        self.assertEqual(len(shares), 7)
        self.assertTrue(all(0 <= share <= 1 for share in shares))
        self.assertGreater(shares[0], shares[-1])
        depths = found["acceptance_by_depth"]
        self.assertTrue(all(depth["last_position"] >= depth["first_position"] for depth in depths))
        cycles = sum(depth["cycles"] for depth in depths)
        tokens = sum(depth["cycles"] * depth["acceptance_length"] for depth in depths)
        self.assertAlmostEqual(found["acceptance_length"], tokens / cycles)
        self.assertAlmostEqual(found["speedup"], found["drafted_tokens_per_s"] / found["plain_tokens_per_s"])

    def test_batches_and_widths(self):
        one = self.check_json("--prompts", PROMPTS, "--filter", "class-0", "--max-tokens", 12, "--draft-tokens", 2)
        many = self.check_json("--prompts", PROMPTS, "--filter", "class-0", "--max-tokens", 12, "--draft-tokens", 2,
                               "--max-sequences", 4)
        for key in ["prompts", "tokens", "acceptance_length", "acceptance_length_all", "acceptance_by_position",
                    "acceptance_by_depth"]:
            self.assertEqual(one[key], many[key])

    def test_acceptance_is_that_of_the_fixture(self):
        case = golden_cases()[0]
        lengths = case["acceptance_lengths"]["dflash"]
        found = self.check_json("--prompt", case["prompt"], "--max-tokens", 96)
        self.assertEqual(found["tokens"], 96)
        self.assertAlmostEqual(found["acceptance_length_all"], 95 / len(lengths))

    def test_acceptance_theory(self):
        done = self.ok("check", *PAIR, "--prompts", PROMPTS, "--filter", "class-0", "--max-tokens", 24, "--temperature",
                       0.8, "--seed", 3, "--acceptance-theory", "--json")
        (found,) = objects(done.stdout)
        self.assertEqual(set(found), CHECK_KEYS | {"acceptance_theory"})
        self.assertEqual(set(found["acceptance_theory"]), {"coupled", "ratio"})
        for theory in found["acceptance_theory"].values():
            self.assertGreater(theory["allowed"], 1.2)
            self.assertLess(abs(theory["observed"] - theory["allowed"]), 0.5)
        self.assertEqual(len(re.findall(rb"tokens a pass that verifies drafts, [\d.]+ allowed by p and q", done.stderr)), 2)

    def test_a_comparison_of_nothing_is_no_proof(self):
        models = ("--target", TARGET, "--drafter", DRAFTER, "--prompt", "def f():")
        self.refused(1, "nothing was compared", "check", *models, "--max-tokens", 0)
        done = self.ok("check", *models, "--max-tokens", 1)
        self.assertIn("no draft was verified", done.stderr.decode())

    def test_people_read_three_lines(self):
        done = self.ok("check", *PAIR, "--prompt", "def main():", "--max-tokens", 24)
        plain, drafted, verdict = done.stdout.decode().splitlines()
        self.assertRegex(plain, r"^plain +1\.00 tokens a target pass, [\d.]+ tokens/s, 1\.00x$")
        self.assertRegex(drafted, r"^drafted +[\d.]+ tokens a target pass, [\d.]+ tokens/s, [\d.]+x$")
        self.assertEqual(verdict, "equal: 24 tokens of 1 prompts, 0 mismatches")
        self.assertEqual(done.stderr, b"", "a progress bar where there is no terminal")

    def test_stats_add_tables(self):
        done = self.ok("check", *PAIR, "--prompt", "def main():", "--max-tokens", 24, "--stats", "--verbose")
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[3], r"^draft +verified +accepted +share +where it was reached$")
        self.assertEqual([line.split()[0] for line in lines[4:11]], list("1234567"))
        self.assertRegex(lines[11], r"^anchor at +passes +tokens a pass$")
        self.assertEqual(len(done.stderr.decode().splitlines()), 5)


class Drafting(Case):
    """How the drafter is read and how tokens are chosen: no text depends on the former, every text on the latter."""

    DSPARK = ["--target", TARGET, "--drafter", "demo/pycode-14m-dspark"]
    SELECT = ["--prompts", PROMPTS, "--filter", "class-03", "--max-tokens", "32"]

    def check_json(self, *arguments):
        (found,) = objects(self.ok("check", *arguments, *self.SELECT, "--json").stdout)
        self.assertEqual(found["mismatches"], 0)
        self.assertGreater(found["tokens"], 40, "enough to say something")
        self.assertGreater(found["acceptance_length_all"], 1)
        return found

    def texts(self, *arguments):
        return objects(self.ok("generate", *arguments, *self.SELECT, "--json").stdout)

    def test_weights_of_every_format(self):
        for drafter in [PAIR, self.DSPARK]:
            for weights in ["bf16", "fp8", "nvfp4"]:
                self.check_json(*drafter, "--drafter-weights", weights)

    def test_the_plan_counts_weights_that_are_not_mapped(self):
        plans = {weights: self.texts(*PAIR, "--drafter-weights", weights)[-1]["memory"]["plan"]
                 for weights in ["fp8", "bf16", "nvfp4"]}
        self.assertNotIn("drafter weights", plans["fp8"], "the file's own format stays mapped")
        self.assertEqual(plans["nvfp4"]["drafter weights"] * 32, plans["bf16"]["drafter weights"] * 9)

    def test_layout(self):
        done = self.ok("check", *PAIR, *self.SELECT, "--drafter-layout", "shifted", "--json")
        (found,) = objects(done.stdout)
        self.assertEqual(found["mismatches"], 0)
        self.assertEqual(len(found["acceptance_by_position"]), 8)
        self.assertIn(b"in place by the config but shifted is asked for", done.stderr)
        text = self.ok("inspect", DRAFTER, "--drafter-layout", "shifted").stdout.decode()
        self.assertRegex(text, r"(?m)^  block +8 rows, 8 drafts a cycle \(shifted")
        self.assertRegex(self.ok("inspect", DRAFTER).stdout.decode(), r"(?m)^  block +8 rows, 7 drafts a cycle \(in place")

    def test_confidence_threshold(self):
        self.check_json(*self.DSPARK, "--confidence-threshold", 0.6)
        drafted = []
        for threshold in [0, 0.6, 1]:
            done = self.ok("generate", *self.DSPARK, *self.SELECT, "--confidence-threshold", threshold, "--stats")
            drafted.append(int(re.search(rb"of (\d+) drafts accepted", done.stderr)[1]))
        self.assertGreater(drafted[0], drafted[1])
        self.assertGreater(drafted[1], drafted[2])
        self.ok("bench", *self.DSPARK, "--prompt", "x", "--max-tokens", 8, "--widths", 2, "--repeats", 1,
                "--confidence-threshold", 0.6)

    def test_penalties_and_bias(self):
        plain = [entry["ids"] for entry in self.texts(*PAIR)]
        often = max(set(plain[0]), key=plain[0].count)
        for flags in [["--repetition-penalty", 1.5], ["--presence-penalty", 2], ["--frequency-penalty", 2],
                      ["--logit-bias", f"{often}=-100", "--logit-bias", f"{often + 1}=1.5"]]:
            found = [entry["ids"] for entry in self.texts(*PAIR, *flags)]
            self.assertNotEqual(found, plain, flags)
            self.check_json(*PAIR, *flags)
        self.assertNotIn(often, found[0])
        self.check_json(*self.DSPARK, "--temperature", 0.9, "--seed", 3, "--repetition-penalty", 1.2,
                        "--presence-penalty", 0.5, "--frequency-penalty", -0.2, "--logit-bias", f"{often}=2")


class Bench(Case):
    def test_json(self):
        done = self.ok("bench", *PAIR, "--prompt", "def main():\n", "--max-tokens", 24, "--widths", "trained,2",
                       "--repeats", 2, "--threads", 2, "--json")
        (found,) = objects(done.stdout)
        self.assertLessEqual(BENCH_KEYS, set(found))
        self.assertEqual([entry["width"] for entry in found["runs"]], [2, 7])
        self.assertEqual((found["device"], found["threads"], found["tokens"]), ("cpu", 2, 24))
        for key in ["context_us", "propose_us", "verify_us", "decode_us", "read_gb_per_s", "peak_gflops"]:
            self.assertGreater(found[key], 0, key)
        # What a pass reads lies between the target's linear weights and all that is in its files.
        self.assertTrue(10e6 < found["verify_bytes"] < 20e6, found["verify_bytes"])
        self.assertTrue(1e6 < found["propose_bytes"] < found["verify_bytes"], found["propose_bytes"])
        for entry in found["runs"]:
            self.assertIn(entry["limit"], ["arithmetic", "memory"])
            self.assertGreater(entry["floor_percent"], 0)
        self.assertIn(b"is limited by", done.stderr)

    def test_table(self):
        text = self.ok("bench", *PAIR, "--prompt", "x", "--max-tokens", 8, "--widths", "1", "--repeats", 1,
                       "--stats").stdout.decode()
        self.assertRegex(text, r"(?m)^draft +verified")
        rows = [line.split()[0] for line in text.splitlines()]
        self.assertEqual(rows[3:5], ["plain", "1"])
        self.assertEqual(text.count("is limited by"), 2)

    def test_bad_widths(self):
        arguments = ["bench", *PAIR, "--prompt", "x"]
        self.refused(2, "--widths: 9 drafts asked for, the drafter was trained for 7", *arguments, "--widths", "1,9")
        self.refused(2, "--widths: 'x'", *arguments, "--widths", "1,x")
        self.refused(2, "--widths: ''", *arguments, "--widths", "1,")

    def test_nothing_to_time(self):
        self.refused(2, "--max-tokens", "bench", *PAIR, "--prompt", "x", "--max-tokens", 1, "--repeats", 1)


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
        self.refused(2, "--draft-tokens: 'auto'", "generate", *PAIR, *prompt, "--draft-tokens", "auto")
        self.refused(2, "--draft-tokens is 8, expected 1 to 7", "generate", *PAIR, *prompt, "--draft-tokens", 8)
        self.refused(2, "--draft-tokens requires --drafter", "generate", *PAIR[:2], *prompt, "--draft-tokens", 2)
        self.refused(2, "--max-positions is 99999, expected 1 to 2048", "generate", *PAIR, *prompt, "--max-positions",
                     99999)
        for message, flags in {
            "--drafter-weights: 'int4' is not known, expected bf16, fp8, nvfp4": ["--drafter-weights", "int4"],
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
        self.refused(2, "--temperature is 0, expected above 0", "check", *PAIR, *prompt, "--acceptance-theory")
        self.refused(2, "log level is 'loud'", "generate", *PAIR, *prompt, "--log-level", "loud")

    def test_devices(self):
        for command in ["generate", "check", "bench"]:
            self.refused(1, "this build has no CUDA backend, use --device cpu", command, *PAIR, "--prompt", "x",
                         "--device", "cuda")
        self.refused(1, "--device cuda:1: this build has no CUDA", "inspect", TARGET, "--device", "cuda:1")
        self.refused(2, "--device: 'tpu'", "tokenize", "--target", TARGET, "--device", "tpu")
        self.refused(2, "--device: 'cuda:x'", "tokenize", "--target", TARGET, "--device", "cuda:x")

    def test_instruction_sets(self):
        for command in ("generate", "check", "bench"):
            drafter = () if command == "generate" else ("--drafter", DRAFTER)
            prompt = ("--prompts", "demo/prompts.jsonl") if command == "bench" else ("--prompt", "x")
            self.refused(2, "--cpu-isa is 'sse9', expected portable, avx2 or avx512",
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


class Dump(Case):
    """What is in the files is checked in tests/unit/api/dump_test.cpp."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_chosen_cycles_of_all_prompts(self):
        dump = self.folder / "new" / "dump"
        arguments = ["generate", *PAIR, "--prompts", PROMPTS, "--filter", "class-0", "--max-tokens", 12, "--json"]
        found = objects(self.ok(*arguments).stdout)
        first = found[0]["cycles"]
        done = self.ok(*arguments, "--dump", dump, "--dump-cycles", f"0-1,{first}")
        self.assertEqual([text["ids"] for text in objects(done.stdout)], [text["ids"] for text in found])
        self.assertEqual(sorted(path.name for path in dump.iterdir()),
                         sorted(f"cycle-{cycle:06}.{kind}" for cycle in [0, 1, first]
                                for kind in ["json", "safetensors"]))
        for path in dump.glob("*.json"):
            described = json.loads(path.read_text(encoding="utf-8"))
            data = path.with_suffix(".safetensors").read_bytes()
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            del header["__metadata__"]
            self.assertEqual({name: (entry["shape"], entry["dtype"]) for name, entry in header.items()},
                             {name: (entry["shape"], entry["dtype"]) for name, entry in described["tensors"].items()})
        # The cycle after the first prompt's last one begins the second prompt: its taps are the whole prompt's.
        described = json.loads((dump / f"cycle-{first:06}.json").read_text(encoding="utf-8"))
        self.assertEqual(described["position"], found[1]["prompt_tokens"])
        self.assertEqual(described["tensors"]["taps"]["first_position"], 0)

    def test_bad_input(self):
        dump = ["--dump", self.folder]
        arguments = ["generate", *PAIR, "--prompt", "x", "--max-tokens", 4]
        for cycles in ["3-1", "x", "1,,2", "-1", "1-", "1-2-3"]:
            self.refused(2, "--dump-cycles: ", *arguments, *dump, f"--dump-cycles={cycles}")
        self.refused(2, "--dump-cycles requires --dump", *arguments, "--dump-cycles", "1")
        self.refused(2, "--dump requires --drafter", "generate", *PAIR[:2], "--prompt", "x", *dump)
        self.refused(2, "--max-sequences is 2, expected 1 with dump", *arguments, *dump, "--max-sequences", 2)
        self.ok(*arguments, *dump)
        self.refused(1, "holds a dump already", *arguments, *dump)


class Inspect(Case):
    def test_folders_and_pairing(self):
        text = self.ok("inspect", DRAFTER, "--target", TARGET).stdout.decode()
        self.assertIn(f"{TARGET}: target Qwen3ForCausalLM\n", text)
        self.assertIn(f"{DRAFTER}: drafter DFlash\n", text)
        self.assertIn(f"{DRAFTER} drafting for {TARGET}: fits\n", text)
        self.assertNotIn("does not fit", text)

    def test_json(self):
        (found,) = objects(self.ok("inspect", TARGET, DRAFTER, "--json").stdout)
        self.assertEqual([(entry["kind"], entry["is_drafter"]) for entry in found["folders"]],
                         [("Qwen3ForCausalLM", False), ("DFlash", True)])
        for entry in found["folders"]:
            self.assertEqual(set(entry), {"folder", "is_drafter", "kind", "lines", "groups", "parameters",
                                          "weight_bytes", "has_tensor_data", "data_bytes", "memory", "warnings"})
            self.assertEqual(sum(group["parameters"] for group in entry["groups"]), entry["parameters"])
            self.assertTrue(entry["has_tensor_data"])
            self.assertGreater(entry["parameters"], 1_000_000)
        self.assertTrue(found["pairings"][0]["fits"])
        (alone,) = objects(self.ok("inspect", DRAFTER, "--json").stdout)
        self.assertEqual(alone["pairings"], [])

    def test_the_memory_plan_is_that_of_generate(self):
        limits = ["--max-sequences", 3, "--max-positions", 500, "--threads", 2]
        (found,) = objects(self.ok("inspect", TARGET, DRAFTER, *limits, "--json").stdout)
        (text,) = objects(self.ok("generate", *PAIR, *limits, "--prompt", "x", "--max-tokens", 1, "--json").stdout)
        memory = found["pairings"][0]["memory"]
        self.assertEqual((memory["max_sequences"], memory["max_positions"], memory["threads"]), (3, 500, 2))
        self.assertEqual(text["memory"]["plan"], memory["bytes"])
        human = self.ok("inspect", TARGET, DRAFTER, *limits).stdout.decode()
        self.assertEqual(human.count("memory beside the weights, 3 sequences of 500 positions, 2 threads: "), 1)
        self.refused(2, "--max-positions is 4097, expected 1 to 2048", "inspect", TARGET, "--max-positions", 4097)

    def test_a_header_is_enough(self):
        whole = (ROOT / DRAFTER / "model.safetensors").read_bytes()
        header = 8 + int.from_bytes(whole[:8], "little")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / DRAFTER / "config.json", folder)
            (Path(folder) / "model.safetensors").write_bytes(whole[:header])
            text = self.ok("inspect", folder, "--target", TARGET).stdout.decode()
            self.assertIn(f"{folder}: drafter DFlash, headers only\n", text)
            self.assertRegex(text, r"(?m)^  tensor data +not there: 0 of \d+ bytes; .*not to decode with$")
            self.assertIn(f"{folder} drafting for {TARGET}: fits\n", text)
            self.refused(1, "the file ends behind its header", "generate", "--target", TARGET, "--drafter", folder,
                         "--prompt", "x")

    def test_warnings_are_on_stderr(self):
        with tempfile.TemporaryDirectory() as folder:
            config = json.loads((ROOT / DRAFTER / "config.json").read_text(encoding="utf-8"))
            config["dspark_config"] = {"mask_token_id": 4000}
            (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
            shutil.copy(ROOT / DRAFTER / "model.safetensors", folder)
            warning = ("key 'dflash_config.mask_token_id' is 4100 but 'dspark_config.mask_token_id' is 4000; the first "
                       "is used")
            for command in [["inspect", folder], ["inspect", folder, "--json"],
                            ["generate", "--target", TARGET, "--drafter", folder, "--prompt", "x", "--max-tokens", 1],
                            ["check", "--target", TARGET, "--drafter", folder, "--prompt", "x", "--max-tokens", 1]]:
                done = self.ok(*command)
                lines = [line for line in done.stderr.decode().splitlines() if warning in line]
                self.assertEqual(len(lines), 1, command)
                self.assertNotIn(warning, done.stdout.decode() if "--json" not in command else "")

    def test_roles(self):
        self.refused(2, f"--target: '{DRAFTER}' is a drafter", "inspect", "--target", DRAFTER)
        self.refused(2, f"--drafter: '{TARGET}' is a target", "inspect", "--drafter", TARGET)
        self.refused(2, "give a model folder", "inspect")


class Tokenize(Case):
    def test_ids(self):
        case = golden_cases()[0]
        (found,) = objects(self.ok("tokenize", "--target", TARGET, "--json", stdin=case["prompt"]).stdout)
        self.assertEqual(found, {"ids": case["prompt_ids"]})
        (found,) = objects(self.ok("tokenize", "--target", TARGET, "--json", "--no-special",
                                   stdin=case["prompt"]).stdout)
        self.assertEqual(found["ids"], case["prompt_ids"][1:])

    def test_round_trip(self):
        for text in ["def f(x):\n\treturn 'é\U0001f600' \r\n", "", "  \n", "no newline"]:
            for form in [[], ["--json"]]:
                ids = self.ok("tokenize", "--target", TARGET, *form, stdin=text).stdout
                back = self.ok("tokenize", "--target", TARGET, "--decode", stdin=ids).stdout
                self.assertEqual(back.decode(), text)

    def test_decode_reads_lists(self):
        for form in ["326 286", "[326, 286]", '{"ids": [326, 286]}', "326\n286\n"]:
            self.assertEqual(self.ok("tokenize", "--target", TARGET, "--decode", stdin=form).stdout, b"def f")
        (found,) = objects(self.ok("tokenize", "--target", TARGET, "--decode", "--json", stdin="326").stdout)
        self.assertEqual(found, {"text": "def"})

    def test_bad_ids(self):
        arguments = ["tokenize", "--target", TARGET, "--decode"]
        for text in ["1 99999", "-1", "1.5", '["a"]', "one", '{"tokens": [1]}', "1,,2"]:
            self.refused(2, "stdin: ", *arguments, stdin=text)
        self.refused(2, "--decode excludes --no-special", *arguments, "--no-special")


@unittest.skipIf(SANITIZED, "limits of time and memory hold for builds without sanitizers")
class Limits(Case):
    def test_first_token_within_half_a_second(self):
        def seconds():
            begin = time.monotonic()
            self.ok("generate", *PAIR, "--prompt", "def main():", "--max-tokens", 1)
            return time.monotonic() - begin

        # The fastest of a few: other tests may have the cores.
        self.assertLess(min(seconds() for _ in range(5)), 0.5)

    def test_memory_is_what_the_plan_says(self):
        for arguments in [["--max-tokens", 8], ["--max-tokens", 8, "--max-sequences", 8]]:
            done = self.ok("generate", *PAIR, "--prompts", PROMPTS, "--filter", "class-0", "--json", *arguments)
            memory = objects(done.stdout)[-1]["memory"]
            self.assertEqual(set(memory), {"mapped_bytes", "plan", "plan_bytes", "peak_resident_bytes"})
            self.assertEqual(sum(memory["plan"].values()), memory["plan_bytes"])
            self.assertGreater(memory["mapped_bytes"], 10 * MIB)
            self.assertLess(memory["peak_resident_bytes"], memory["mapped_bytes"] + memory["plan_bytes"] + 64 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
