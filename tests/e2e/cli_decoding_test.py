#!/usr/bin/env python3
"""generate, check and bench as processes."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from cli_case import (BIN, DRAFTER, MIB, PAIR, PROMPTS, ROOT, SANITIZED, TARGET, Case, golden_cases, objects,
                      recorded_numbers, run)

COMMANDS = ["generate", "check", "bench", "inspect", "tokenize"]
CHECK_KEYS = {"prompts", "tokens", "mismatches", "first_divergence", "acceptance_length", "acceptance_length_all",
              "acceptance_by_position", "acceptance_by_depth", "plain_tokens_per_s", "drafted_tokens_per_s", "speedup"}
BENCH_KEYS = {"context_us", "propose_us", "verify_us", "accept_us", "decode_us", "propose_bytes", "verify_bytes",
              "read_gb_per_s", "peak_gflops", "device", "device_name", "threads", "runs"}
GENERATE_KEYS = {"id", "text", "ids", "finish_reason", "prompt_tokens", "completion_tokens", "cycles",
                 "acceptance_length", "acceptance_length_all", "acceptance_by_position", "acceptance_by_depth",
                 "tokens_per_s", "first_token_s", "total_s", "memory"}


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
            done = self.ok("generate", *PAIR, "--prompt", case["prompt"], "--max-tokens", 96, *recorded_numbers())
            self.assertEqual(done.stdout.decode(), case["output_text"])
            self.assertEqual(done.stderr, b"")

    def test_the_drafter_and_its_width_change_nothing(self):
        prompt = golden_cases()[0]["prompt"]
        texts = {self.ok("generate", *models, "--prompt", prompt, "--max-tokens", 40).stdout
                 for models in [PAIR[:2], PAIR, PAIR + ["--draft-tokens", "1"], PAIR + ["--draft-tokens", "4"],
                                PAIR + ["--draft-tokens", "trained"], PAIR + ["--draft-tokens", "auto"]]}
        self.assertEqual(len(texts), 1)

    def test_json(self):
        case = golden_cases()[0]
        done = self.ok("generate", *PAIR, "--prompt", case["prompt"], "--max-tokens", 96, "--json", "--stats",
                       *recorded_numbers())
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
        adaptive = self.ok("generate", *PAIR, "--prompt", "x", "--max-tokens", 9, "--draft-tokens", "auto", "--verbose",
                           "--stats").stderr.decode()
        self.assertIn("width    auto, 0 to 7 drafts a cycle, trained for 7\n", adaptive)
        self.assertRegex(adaptive, r"passes with up to 7 drafts: [\d.]+ tokens a pass; \d+ of \d+ drafts accepted")
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
                       "--json", *recorded_numbers())
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
        found = self.check_json("--prompt", case["prompt"], "--max-tokens", 96, *recorded_numbers())
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

    def test_people_read_four_lines(self):
        done = self.ok("check", *PAIR, "--prompt", "def main():", "--max-tokens", 24, "--threads", 2,
                       "--cpu-isa", "portable")
        place, plain, drafted, verdict = done.stdout.decode().splitlines()
        self.assertEqual(place, "on cpu, 2 threads, portable")
        self.assertRegex(plain, r"^plain +1\.00 tokens a target pass, [\d.]+ tokens/s, 1\.00x$")
        self.assertRegex(drafted, r"^drafted +[\d.]+ tokens a target pass, [\d.]+ tokens/s, [\d.]+x$")
        self.assertEqual(verdict, "equal: 24 tokens of 1 prompts, 0 mismatches")
        self.assertEqual(done.stderr, b"", "a progress bar where there is no terminal")

    def test_stats_add_tables(self):
        done = self.ok("check", *PAIR, "--prompt", "def main():", "--max-tokens", 24, "--stats", "--verbose")
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[4], r"^draft +verified +accepted +share +where it was reached$")
        self.assertEqual([line.split()[0] for line in lines[5:12]], list("1234567"))
        self.assertRegex(lines[12], r"^anchor at +passes +tokens a pass$")
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
            for weights in ["bf16", "fp8", "nvfp4", "int8"]:
                self.check_json(*drafter, "--drafter-weights", weights)
        for weights in ["bf16", "fp8", "nvfp4", "int8"]:
            self.check_json(*PAIR, "--target-weights", weights)

    def test_the_plan_counts_weights_that_are_not_mapped(self):
        plans = {weights: self.texts(*PAIR, "--drafter-weights", weights, "--cpu-isa", "portable")[-1]["memory"]["plan"]
                 for weights in ["fp8", "bf16", "nvfp4", "int8"]}
        self.assertNotIn("drafter weights", plans["fp8"], "the file's own format stays mapped")
        self.assertEqual(plans["nvfp4"]["drafter weights"] * 32, plans["bf16"]["drafter weights"] * 9)
        self.assertEqual(plans["int8"]["drafter weights"] * 32, plans["bf16"]["drafter weights"] * 17)

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
        self.assertEqual((found["device"], found["device_name"], found["threads"], found["tokens"]),
                         ("cpu", "cpu", 2, 24))
        self.assertRegex(done.stderr.decode().splitlines()[0], r" on cpu, 2 threads, \w+; 1 prompts, 24 tokens")
        for key in ["context_us", "propose_us", "verify_us", "decode_us", "read_gb_per_s", "peak_gflops"]:
            self.assertGreater(found[key], 0, key)
        # What a pass reads lies between the target's linear weights and all that is in its files.
        self.assertTrue(10e6 < found["verify_bytes"] < 20e6, found["verify_bytes"])
        self.assertTrue(1e6 < found["propose_bytes"] < found["verify_bytes"], found["propose_bytes"])
        for entry in found["runs"]:
            self.assertIn(entry["limit"], ["arithmetic", "memory"])
            self.assertGreater(entry["floor_percent"], 0)
            self.assertIsNone(entry["rest_us"], "of a card")
            self.assertGreater(entry["cycle_us"], entry["verify_us"])
        self.assertIn(b"is limited by", done.stderr)

    def test_the_default_widths_are_those_that_the_acceptance_allows(self):
        ratio = ["--temperature", 1, "--acceptance", "ratio"]
        (found,) = objects(self.ok("bench", *PAIR, "--prompt", "x", "--max-tokens", 6, "--repeats", 1, "--json",
                                   *ratio).stdout)
        self.assertEqual([entry["width"] for entry in found["runs"]], [1, 2, 3, 4, 5, 7])
        self.refused(2, "expected coupled", "bench", *PAIR, "--prompt", "x", "--widths", "auto", *ratio, report=True)

    def test_table(self):
        text = self.ok("bench", *PAIR, "--prompt", "x", "--max-tokens", 8, "--widths", "1", "--repeats", 1,
                       "--stats").stdout.decode()
        self.assertRegex(text, r"(?m)^draft +verified")
        rows = [line.split()[0] for line in text.splitlines()]
        self.assertEqual(rows[3:5], ["plain", "1"])
        self.assertEqual(text.count("is limited by"), 2)

    def test_random_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            pair = []
            for flag, source in (("--target", TARGET), ("--drafter", "demo/pycode-14m-dflash2")):
                copy = Path(folder) / Path(source).name
                copy.mkdir()
                shutil.copy(ROOT / source / "config.json", copy)
                pair += [flag, copy]
            flags = ["bench", *pair, "--random-weights", "--widths", "3", "--repeats", 1, "--ignore-eos", "--json"]
            done = self.ok(*flags, "--prompt-tokens", 20, "--max-tokens", 12, "--max-sequences", 2, "--seed", 5,
                           "--threads", 2)
            (found,) = objects(done.stdout)
            self.assertEqual((found["prompts"], found["tokens"]), (2, 24))
            # Two prompts in two sequences: twice the rows, and the floor of every part.
            parts = {part["part"]: part for part in found["plain_parts"] + found["parts"]}
            self.assertEqual(set(parts), {"prefill", "decode", "context", "propose", "verify"})
            self.assertEqual([parts[name]["rows"] for name in ("prefill", "decode", "verify")], [20, 2, 8])
            for part in parts.values():
                self.assertGreater(min(part["us"], part["bytes"], part["flops"], part["times_floor"]), 0, part)
            self.assertGreater(found["ready_ms"], 0)
            self.assertGreater(found["hand_offs"], 0)
            self.refused(2, "--prompt-tokens", *flags, "--prompt", "x")
            self.refused(2, "--prompt-tokens", *flags)
        self.refused(2, "expected no weights", "bench", *PAIR, "--random-weights", "--prompt-tokens", 4)

    def test_auto_and_a_pattern_of_acceptance(self):
        arguments = ["bench", *PAIR, "--prompt", "x", "--max-tokens", 32, "--widths", "2,auto", "--repeats", 1,
                     "--ignore-eos", "--accept-pattern", "1,0", "--json"]
        done = self.ok(*arguments)
        (found,) = objects(done.stdout)
        self.assertEqual([entry["width"] for entry in found["runs"]], ["auto", 2])
        self.assertEqual(found["accept_pattern"], "1,0")
        self.assertEqual(found["acceptance_by_position"], [1, 0])
        self.assertEqual(found["acceptance_length"], 2)
        self.assertIn(b"NOT REAL ACCEPTANCE", done.stderr)
        self.assertNotIn(b"never", done.stderr)

    def test_bad_widths(self):
        arguments = ["bench", *PAIR, "--prompt", "x"]
        self.refused(2, "--widths: 9 drafts asked for, the drafter was trained for 7", *arguments, "--widths", "1,9")
        self.refused(2, "--widths: 'x'", *arguments, "--widths", "1,x")
        self.refused(2, "--widths: ''", *arguments, "--widths", "1,")

    def test_nothing_to_time(self):
        self.refused(2, "--max-tokens", "bench", *PAIR, "--prompt", "x", "--max-tokens", 1, "--repeats", 1)


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
