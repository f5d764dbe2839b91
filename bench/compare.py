#!/usr/bin/env python3
"""Two builds of the micro-benchmarks side by side: the ratio of times, op by op.

    bench/compare.py main my-branch                      two commits, built in temporary worktrees
    bench/compare.py build/before build/after            two build folders that hold blockdraft-bench-ops
    bench/compare.py main . --filter 'linear/.*rows:1/'  ops whose names match; '.' is this checkout as it is

Both programs run in turn, --rounds times each, so that what else the machine does meets both alike. Printed are the
median times in microseconds, the median of the rounds' ratios (above 1: BRANCH is faster), and their range.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "blockdraft-bench-ops"
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def built_program(folder):
    """The program in a build folder, wherever the generator put it; None if there is none."""
    found = [path for path in Path(folder).rglob(PROGRAM) if path.is_file() and os.access(path, os.X_OK)]
    return found[0] if found else None


def build(source, folder):
    """Builds the benchmarks of a source tree, and says where they are."""
    print(f"building {source}", file=sys.stderr)
    for command in (["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                     "-DBLOCKDRAFT_BUILD_TESTS=OFF", "-DBLOCKDRAFT_BUILD_BENCH=ON"],
                    ["cmake", "--build", str(folder), "--target", PROGRAM]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"compare.py: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return built_program(folder)


def check_out(commit, folder):
    command = ["git", "-C", str(ROOT), "worktree", "add", "--detach", str(folder), commit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare.py: '{commit}' is neither a folder with {PROGRAM} nor a commit: {done.stderr.strip()}")


class Side:
    """The program of one side; a context that takes away what it had to make."""

    def __init__(self, what, work):
        self.what, self.work, self.worktree = what, work, None

    def __enter__(self):
        if Path(self.what).is_dir() and not (Path(self.what) / "CMakeLists.txt").exists():
            program = built_program(self.what)
            if program is None:
                sys.exit(f"compare.py: no {PROGRAM} in {self.what}")
            return program
        source = Path(self.what)
        if not source.is_dir():
            source = self.worktree = self.work / "source"
        try:
            if self.worktree is not None:
                check_out(self.what, source)
            return build(source, self.work / "build")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.worktree is not None:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(self.worktree)], check=False)


def times_of(program, names, seconds):
    """One run: microseconds by the name of the op. Processor time of one thread, which other work on the machine takes
    less from, and wall time where several threads work."""
    done = subprocess.run([str(program), f"--benchmark_filter={names}", f"--benchmark_min_time={seconds}",
                           "--benchmark_format=json"], capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"compare.py: {program} failed: {done.stderr.strip()[-2000:]}")
    def time(run):
        several = "real_time" in run["name"] or re.search(r"threads:(?!1\b)", run["name"]) is not None
        return run["real_time" if several else "cpu_time"] * MICROSECONDS[run["time_unit"]]
    return {run["name"]: time(run)
            for run in json.loads(done.stdout)["benchmarks"] if run.get("run_type") == "iteration"}


def alternate(base, branch, names, seconds, rounds):
    """A pair of lists of times, base and branch, for each op that both have."""
    pairs = {}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        # Whoever comes first changes: a machine that warms up or slows down favours neither.
        order = (base, branch) if number % 2 == 0 else (branch, base)
        times = {program: times_of(program, names, seconds) for program in order}
        for name in times[base]:
            if name in times[branch]:
                pairs.setdefault(name, ([], []))
                pairs[name][0].append(times[base][name])
                pairs[name][1].append(times[branch][name])
    return pairs


def table(pairs):
    rows = [("op", "base us", "branch us", "ratio", "range")]
    for name, (base, branch) in pairs.items():
        ratios = [a / b for a, b in zip(base, branch)]
        rows.append((name, f"{statistics.median(base):.2f}", f"{statistics.median(branch):.2f}",
                     f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} - {max(ratios):.2f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="commit, source tree or build folder")
    parser.add_argument("branch", help="the same")
    parser.add_argument("--filter", default=".", help="regular expression that the names of ops match")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each op in each run")
    flags = parser.parse_args()
    re.compile(flags.filter)
    with tempfile.TemporaryDirectory() as folder:
        works = [Path(folder) / side for side in ("base", "branch")]
        with Side(flags.base, works[0]) as base, Side(flags.branch, works[1]) as branch:
            pairs = alternate(base, branch, flags.filter, flags.seconds, flags.rounds)
    if not pairs:
        sys.exit(f"compare.py: no op of both builds matches '{flags.filter}'")
    print(table(pairs))


if __name__ == "__main__":
    main()
