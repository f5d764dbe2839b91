#!/usr/bin/env python3
"""Decodes HumanEval prompts with a demo drafter and compares its acceptance length with the reference's.

`blockdraft check` counts full-width cycles only, the reference all but the last ones: 1.5 % of difference are allowed.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ALLOWED = 0.015
MAX_TOKENS = 96


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blockdraft", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--drafter", choices=("dflash", "dflash2", "dspark"), required=True)
    arguments = parser.parse_args()

    golden = arguments.source / "tests/golden"
    target = arguments.source / "demo/pycode-14m"
    drafter = target.with_name(f"{target.name}-{arguments.drafter}")
    command = (arguments.blockdraft, "check", "--target", target, "--drafter", drafter, "--json",
               "--prompts", golden / "humaneval60.jsonl", "--max-tokens", MAX_TOKENS, "--max-sequences", 4)
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
    report = json.loads(result.stdout)
    recorded = json.loads((golden / "demo_generate.json").read_text(encoding="utf-8"))
    expected = recorded["humaneval60_acceptance_length"][arguments.drafter]
    found = report["acceptance_length"]
    print(f"{arguments.drafter}: {report['prompts']} prompts, {report['tokens']} tokens, {report['mismatches']} "
          f"mismatches, {found:.4f} tokens a pass, recorded {expected:.4f} ({found / expected - 1:+.2%})")
    return 1 if report["mismatches"] != 0 or abs(found / expected - 1) > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
