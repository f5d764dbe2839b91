"""The command line as a process, on the demo models: what its tests share.

BLOCKDRAFT_BIN names the program, build/*/bin/blockdraft.
BLOCKDRAFT_SANITIZED=1 says that it was built with sanitizers: limits of time and memory do not apply then.
"""

import functools
import json
import os
import subprocess
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


def run(*arguments, stdin=""):
    """The finished process; stdout and stderr are bytes, so that nothing is translated."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run([BIN, *map(str, arguments)], input=data, capture_output=True, cwd=ROOT, check=False,
                          timeout=300)


@functools.cache
def recorded_numbers():
    """Flags for the last kernels of this processor that keep activations in float32, as the recordings did."""
    for isa in ["avx512", "avx2"]:
        if run("generate", "--target", TARGET, "--prompt", "x", "--max-tokens", 0, "--cpu-isa", isa).returncode == 0:
            return ["--cpu-isa", isa]
    return ["--cpu-isa", "portable"]


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
