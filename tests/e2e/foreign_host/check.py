#!/usr/bin/env python3
"""Installs a build, builds examples/foreign_host against it, and decodes the golden prompts with each demo drafter.

The text has to be that of tests/golden/demo_generate.json, and so have the acceptance lengths, up to the cycles that
the end of the text makes narrower. All cycles have to be those of the library's own engine.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DRAFTERS = ("dflash", "dflash2", "dspark")


class Cycle(NamedTuple):
    width: int
    accepted: int
    produced: int


class Text(NamedTuple):
    ids: list[int]
    cycles: list[Cycle]


def run(*command: object, stdin: str = "") -> str:
    """Standard output of a command that has to succeed."""
    result = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def parse(output: str) -> list[Text]:
    """The texts of foreign_host and decode_ids: a line of ids and a line of cycles each."""
    lines = [line.split() for line in output.splitlines()]
    texts = []
    for ids, cycles in zip(lines[0::2], lines[1::2], strict=True):
        if ids[0] != "ids" or cycles[0] != "cycles":
            sys.exit(f"expected a line of ids and one of cycles, found {ids[0]} and {cycles[0]}")
        texts.append(Text([int(word) for word in ids[1:]],
                          [Cycle(*map(int, word.split(":"))) for word in cycles[1:]]))
    return texts


def build_example(arguments: argparse.Namespace) -> Path:
    """Path of the program, built against nothing but what is installed."""
    shutil.rmtree(arguments.work, ignore_errors=True)
    prefix, build = arguments.work / "prefix", arguments.work / "build"
    run(arguments.cmake, "--install", arguments.build, "--prefix", prefix)
    run(arguments.cmake, "-S", arguments.source / "examples/foreign_host", "-B", build,
        f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={arguments.compiler}",
        f"-DCMAKE_CXX_FLAGS={'-O2 -fsanitize=' + arguments.sanitize if arguments.sanitize else ''}")
    run(arguments.cmake, "--build", build)
    return build / "foreign_host"


def differences(texts: list[Text], engine: list[Text], cases: list[dict], max_tokens: int,
                drafter: str) -> list[str]:
    faults = []
    trained = max(cycle.width for text in texts for cycle in text.cycles)
    for number, (text, own, case) in enumerate(zip(texts, engine, cases, strict=True)):
        place = f"{drafter}, prompt {number}"
        recorded_ids = case["output_ids"][:max_tokens]
        if text.ids != recorded_ids:
            faults.append(f"{place}: ids are {text.ids}, recorded are {recorded_ids}")
        full = [cycle.produced for cycle in text.cycles if cycle.width == trained]
        recorded = case["acceptance_lengths"][drafter]
        if not full or full != recorded[: len(full)]:
            faults.append(f"{place}: acceptance lengths are {full}, recorded are {recorded}")
        if text != own:
            faults.append(f"{place}: foreign_host has {text}, the engine {own}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("build", "source", "work", "engine"):
        parser.add_argument(f"--{name}", type=lambda path: Path(path).resolve(), required=True)
    for name in ("cmake", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--sanitize", default="")
    parser.add_argument("--prompts", type=int, help="decode so many of the prompts, not all")
    parser.add_argument("--max-tokens", type=int, help="end texts here, not where the recorded ones end")
    arguments = parser.parse_args()

    program = build_example(arguments)
    cases = json.loads((arguments.source / "tests/golden/demo_generate.json").read_text(encoding="utf-8"))["cases"]
    cases = cases[: arguments.prompts]
    prompts = "".join(" ".join(map(str, case["prompt_ids"])) + "\n" for case in cases)
    max_tokens = arguments.max_tokens or len(cases[0]["output_ids"])
    target = arguments.source / "demo/pycode-14m"
    faults = []
    for drafter in DRAFTERS:
        folders = (target, target.with_name(f"{target.name}-{drafter}"))
        texts = parse(run(program, *folders, max_tokens, stdin=prompts))
        engine = parse(run(arguments.engine, *folders, max_tokens, stdin=prompts))
        found = differences(texts, engine, cases, max_tokens, drafter)
        faults += found
        print(f"{drafter}: {len(texts)} texts, {sum(len(text.cycles) for text in texts)} cycles, {len(found)} differ")
    refused = subprocess.run([program, target, target, "8"], input="5\n", capture_output=True, text=True, check=False)
    if refused.returncode != 1 or not refused.stderr.strip():
        faults.append(f"a target as drafter: exit status {refused.returncode}, '{refused.stderr}', expected a refusal")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
