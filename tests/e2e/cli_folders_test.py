#!/usr/bin/env python3
"""Dumps, inspect and tokenize as processes."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

from cli_case import DRAFTER, PAIR, PROMPTS, ROOT, TARGET, Case, golden_cases, objects


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

    def test_cycles_that_no_text_reaches(self):
        done = self.ok("generate", *PAIR, "--prompt", "x", "--max-tokens", 4, "--dump", self.folder, "--dump-cycles", 99)
        self.assertRegex(done.stderr.decode(), r"--dump wrote nothing: the texts took \d+ cycles")


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


if __name__ == "__main__":
    unittest.main(verbosity=2)
