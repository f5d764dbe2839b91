#!/usr/bin/env python3
"""Compares docs/field-faults.md with the tests, in both directions.

Every test that the page names must exist, stand in the row of its kind and not be disabled; every test that is named
for a kind must be on the page. Prints one line a fault and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "field-faults.md"
KINDS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 15]

ROW = re.compile(r"^\| (\d+) ", re.MULTILINE)
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w*FieldFault\w+)\s*\)")
INSTANCE = re.compile(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w*FieldFault\w+),\s*(\w+)\s*,")
NAMED = re.compile(r"`([^`]*FieldFault\d[^`]*_[^`]+)`")


def tests_of_the_sources() -> set[str]:
    names = set()
    for path in sorted((ROOT / "tests").rglob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        names |= {f"{suite}.{test}" for suite, test in TEST.findall(text)}
        parameterized = dict(re.findall(r"\bTEST_P\(\s*(\w+),\s*(\w+)\s*\)", text))
        names |= {f"{prefix}/{suite}.{parameterized.get(suite, '')}" for prefix, suite in INSTANCE.findall(text)}
    return names


def faults() -> list[str]:
    found = []
    listed: set[str] = set()
    tests = tests_of_the_sources()
    rows = {int(kind): line for line in PAGE.read_text(encoding="utf-8").splitlines() for kind in ROW.findall(line)}
    if sorted(rows) != KINDS:
        found.append(f"{PAGE.name}: rows of kinds {sorted(rows)}, expected {KINDS}")
    for kind, row in rows.items():
        names = NAMED.findall(row)
        if not names:
            found.append(f"{PAGE.name}: kind {kind} has no test")
        for name in names:
            listed.add(name)
            if f"FieldFault{kind}_" not in name:
                found.append(f"{PAGE.name}: {name} stands in the row of kind {kind}")
            if name not in tests:
                found.append(f"{PAGE.name}: {name} is not among the tests")
    found += [f"{PAGE.name}: {name} is not listed" for name in sorted(tests - listed)]
    return found + [f"{name} is disabled" for name in sorted(tests) if "DISABLED_" in name]


def main() -> int:
    lines = faults()
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
