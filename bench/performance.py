#!/usr/bin/env python3
"""Fills the table of speed goals: measures each, and writes it with its verdict as Markdown.

    bench/performance.py build/cpu-release/bin/blockdraft           to stdout
    bench/performance.py build/cpu-release/bin/blockdraft --write   into docs/performance.md, between the markers

Every figure is a median over --runs runs of `blockdraft bench`, which alternates plain and drafted decoding within a
run; what has to be compared across runs (weight formats) runs in turn. Read bandwidth and peak are those of the same
run. Weights of the 0.6B model are random (bench/configs); those of the demo models are real. A goal whose run fails
says why.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import startup

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/performance.md"
BEGIN, END = "<!-- goals: begin -->", "<!-- goals: end -->"
LARGE = ["--target", "bench/configs/qwen3-0.6b", "--drafter", "bench/configs/qwen3-0.6b-dflash2", "--random-weights",
         "--ignore-eos"]
DRAFTERS = ["dflash", "dflash2", "dspark"]
# Every prompt file of the tree, and which of its prompts: one of each kind, and some.
PROMPTS = {"demo/prompts.jsonl": "-01", "tests/golden/humaneval60.jsonl": "HumanEval/1"}
DEMO = "demo dflash2 demo/prompts.jsonl"  # the run that stands for the demo pair
VERIFY_ROWS = [2, 4, 5, 8, 16]


class Failure(Exception):
    """Why a figure could not be had, in one line."""


class Bench:
    """Runs of `blockdraft bench` by name: their JSON, or why there is none."""

    def __init__(self, program, common):
        self.program, self.common, self.found = Path(program).resolve(), common, {}

    def run(self, name, *arguments):
        command = [str(self.program), "bench", *map(str, arguments), *self.common, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        result = json.loads(done.stdout) if done.returncode == 0 else Failure(lines[-1])
        self.found.setdefault(name, []).append(result)
        print(f"{name}: {'done' if done.returncode == 0 else lines[-1]}", file=sys.stderr)

    def median(self, name, figure):
        """The median over the runs of this name of what `figure` takes from one."""
        if name not in self.found:
            raise Failure(f"'{name}' was not run")
        for result in self.found[name]:
            if isinstance(result, Failure):
                raise result
        return statistics.median(figure(result) for result in self.found[name])


def run_of(result, width):
    for run in result["runs"]:
        if run["width"] == width:
            return run
    raise Failure(f"no run of width {width}")


def part_of(parts, name):
    for part in parts:
        if part["part"] == name:
            return part
    raise Failure(f"no part '{name}'")


def drafted_part(width, name):
    return lambda result: part_of(run_of(result, width)["parts"], name)


def plain_part(name):
    return lambda result: part_of(result["plain_parts"], name)


def field(part, key):
    return lambda result: part(result)[key]


def conditional(by_position):
    """From the share of cycles whose drafts 1..i were accepted to the chance of draft i once those before it were."""
    before, chances = 1.0, []
    for share in by_position:
        chances.append(share / before if before > 0 else 0.0)
        before = share
    return chances


def tokens_of_cycle(by_position, width):
    return 1 + sum(by_position[:width])


def allowed_factor(result, by_position):
    """The best speed-up over plain decoding if every pass took its floor, over the numbers of drafts that were run."""
    plain = part_of(result["plain_parts"], "decode")["floor_us"]
    factors = [1.0]
    for run in result["runs"]:
        if not isinstance(run["width"], int):
            continue
        floors = [part["floor_us"] for part in run["parts"]]
        factors.append(tokens_of_cycle(by_position, run["width"]) * plain / sum(floors))
    return max(factors)


def verdict(holds):
    return "met" if holds else "**missed**"


# Each goal: what, the goal, a function that gives (measured, what the roofline says, whether it holds).

def decode_goal(bench):
    percent = bench.median("0.6B", field(plain_part("decode"), "read_percent"))
    rate = bench.median("0.6B", field(plain_part("decode"), "gb_per_s"))
    read = bench.median("0.6B", lambda result: result["reads"][0]["gb_per_s"])
    return f"{percent:.0f} % ({rate:.1f} GB/s)", f"{read:.1f} GB/s", percent >= 90


def floor_goal(part, limit):
    def measure(bench):
        factors, beside = [], []
        for rows in VERIFY_ROWS:
            wanted = drafted_part(rows - 1, part)
            factors.append(bench.median("0.6B", field(wanted, "times_floor")))
            took = bench.median("0.6B", field(wanted, "us"))
            floor = bench.median("0.6B", field(wanted, "floor_us"))
            beside.append(f"{took * 1e-3:.1f} / {floor * 1e-3:.1f}")
        return " / ".join(f"{factor:.2f}" for factor in factors), "ms / T: " + ", ".join(beside), max(factors) <= limit
    return measure


def pattern_goal(bench):
    factor = bench.median("0.6B auto", lambda result: run_of(result, "auto")["speedup"])
    shares = demo_shares(bench)
    allowed = bench.median("0.6B", lambda result: allowed_factor(result, shares))
    balance = bench.median("0.6B", balance_rows)
    return f"{factor:.2f} x", f"{allowed:.2f} x; balance at {balance:.1f} rows", factor >= 1.7


def balance_rows(result):
    """The number of rows from which on the arithmetic of a target's pass takes longer than its bytes."""
    decode = part_of(result["plain_parts"], "decode")
    read = result["reads"][0]["gb_per_s"] * 1e9
    return decode["bytes"] / read / (decode["flops"] / (result["peak_gflops"] * 1e9))


def demo_shares(bench):
    """Shares of accepted drafts by position that the demo DFlash2 pair shows at full width."""
    for result in bench.found.get(DEMO, []):
        if isinstance(result, Failure):
            raise result
        return result["acceptance_by_position"]
    raise Failure(f"'{DEMO}' was not run")


def format_goal(name, widths, limit):
    def measure(bench):
        factors = []
        for width in widths:
            part = plain_part("decode") if width == 0 else drafted_part(width, "verify")
            base = bench.median("0.6B format BF16", field(part, "us"))
            factors.append(base / bench.median(f"0.6B format {name}", field(part, "us")))
        moved = [bench.median(f"0.6B format {kind}", field(plain_part("decode"), "bytes")) for kind in ("BF16", name)]
        return (" / ".join(f"{factor:.2f} x" for factor in factors), f"bytes: {moved[0] / moved[1]:.2f} x",
                min(factors) >= limit)
    return measure


def demo_plain_goal(bench):
    speed = bench.median(DEMO, lambda result: result["plain_tokens_per_s"])
    decode = bench.median(DEMO, lambda result: result["decode_us"])
    floor = bench.median(DEMO, field(plain_part("decode"), "floor_us"))
    hand_offs = bench.median(DEMO, lambda result: result["decode_hand_offs"])
    return (f"{speed:.0f} tokens/s, prompts included; {decode:.0f} us and {hand_offs:.0f} hand-offs a pass",
            f"T: {floor:.0f} us", speed >= 4000)


def demo_auto_goal(drafter, prompts):
    def measure(bench):
        name = f"demo {drafter} {prompts}"
        auto = bench.median(name, lambda result: run_of(result, "auto")["speedup"])
        best = bench.median(name, lambda result: max([1.0] + [run["speedup"] for run in result["runs"]
                                                             if run["width"] != "auto"]))
        allowed = bench.median(name, lambda result: allowed_factor(result, result["acceptance_by_position"]))
        return (f"{auto:.2f} x; best width {best:.2f} x", f"{allowed:.2f} x", auto >= 0.97 and auto >= 0.9 * best)
    return measure


def prefill_goal(bench):
    prefill = plain_part("prefill")
    share = bench.median("0.6B prefill", lambda result: 100 * prefill(result)["gflops"] / result["peak_gflops"])
    rate = bench.median("0.6B prefill", field(prefill, "gflops"))
    peak = bench.median("0.6B prefill", lambda result: result["peak_gflops"])
    return f"{share:.0f} % ({rate:.0f} GFLOP/s)", f"{peak:.0f} GFLOP/s", share >= 60


def ready_goal(times):
    took = times["demo pair"]["load"]
    return f"{took * 1e3:.0f} ms from start to end of the process", "", took < 0.3


def load_goal(times):
    factors = {name: times[name]["load"] / times[name]["cat"] for name in ("BF16", "FP8")}
    beside = ", ".join(f"{name} {times[name]['bytes'] / 1e9:.2f} GB: cat {times[name]['cat'] * 1e3:.0f} ms"
                       for name in factors)
    return ", ".join(f"{name} {factor:.2f} x" for name, factor in factors.items()), beside, max(factors.values()) <= 1.5


def goals(bench, times):
    def of_times(goal):
        def measure(_):
            if isinstance(times, Exception):
                raise Failure(str(times))
            return goal(times)
        return measure
    rows = [
        ("decode, 1 row, 0.6B BF16", ">= 90 % of the read bandwidth", decode_goal),
        (f"verify {', '.join(map(str, VERIFY_ROWS))} rows, 0.6B BF16", "<= 1.15 x T(w)", floor_goal("verify", 1.15)),
        (f"propose {', '.join(map(str, VERIFY_ROWS))} rows, 5 layers + head", "<= 1.2 x T(w)",
         floor_goal("propose", 1.2)),
        ("0.6B + drafter, demo DFlash2 acceptance, width auto", ">= 1.7 x plain (balance at 5 rows)", pattern_goal),
        ("FP8 weights and head against BF16, decode, 1 row", ">= 1.7 x", format_goal("FP8", [0], 1.7)),
        ("int8 weights and head against BF16, 1 row / 5 rows", ">= 1.6 x", format_goal("int8", [0, 4], 1.6)),
        ("demo pair, plain", ">= 4000 tokens/s", demo_plain_goal)]
    rows += [(f"demo, {drafter}, auto against plain, {prompts}, prompts with {only}",
              ">= 0.97 x, and >= 0.9 x the best width", demo_auto_goal(drafter, prompts))
             for prompts, only in PROMPTS.items() for drafter in DRAFTERS]
    rows += [("prefill, 512 tokens, 0.6B", ">= 60 % of peak", prefill_goal),
             ("demo pair ready", "< 0.3 s", of_times(ready_goal)),
             ("1.5 GB checkpoint loads", "<= 1.5 x cat", of_times(load_goal))]
    for what, goal, measure in rows:
        try:
            measured, roofline, holds = measure(bench)
            yield what, goal, measured, roofline, verdict(holds)
        except (Failure, KeyError) as reason:
            yield what, goal, "-", "", f"not measured: {reason}"


def run_demo(bench):
    for drafter in DRAFTERS:
        for prompts, only in PROMPTS.items():
            bench.run(f"demo {drafter} {prompts}", "--target", "demo/pycode-14m",
                      "--drafter", f"demo/pycode-14m-{drafter}", "--prompts", prompts, "--filter", only,
                      "--max-tokens", 64, "--repeats", 1, "--widths", "auto,1,2,3,4,5,trained")


def run_large(bench):
    short = ["--prompt-tokens", 64, "--max-tokens", 32, "--repeats", 1]
    bench.run("0.6B", *LARGE, *short, "--widths", "1,2,3,4,5,7,15")
    bench.run("0.6B prefill", *LARGE, "--prompt-tokens", 512, "--max-tokens", 4, "--repeats", 2, "--widths", 1)
    for name, weights in (("BF16", []), ("FP8", ["--target-weights", "fp8"]), ("int8", ["--target-weights", "int8"])):
        bench.run(f"0.6B format {name}", *LARGE, *short, *weights, "--widths", 4)
    try:
        pattern = ",".join(f"{chance:.3f}" for chance in conditional(demo_shares(bench)))
    except Failure:
        return
    bench.run("0.6B auto", *LARGE, "--prompt-tokens", 64, "--max-tokens", 96, "--repeats", 2, "--widths", "auto",
              "--accept-pattern", pattern)


def machine(bench, flags):
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                 "unknown processor")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT,
                            check=True).stdout.strip()
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src", "include"], cwd=ROOT, check=False).returncode:
        commit += " and changes"
    results = [result for runs in bench.found.values() for result in runs if not isinstance(result, Failure)]
    used = f"{results[0]['threads']} threads, {results[0]['cpu_isa']}" if results else "no run succeeded"
    runs = "single runs" if flags.runs == 1 else f"medians of {flags.runs} runs"
    return (f"{model}, {used}; commit {commit}; {runs}; load average at the beginning {flags.load_before:.1f}, at the "
            f"end {os.getloadavg()[0]:.1f}")


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def markdown(rows, where):
    return f"{where}\n\n" + table(("what", "goal", "measured", "roofline", "verdict"), rows)


def write(text):
    document = DOCUMENT.read_text(encoding="utf-8")
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the blockdraft to measure")
    parser.add_argument("--runs", type=int, default=3, help="of each figure; the table has their medians (default: 3)")
    parser.add_argument("--threads", default="0", help="0: one for each core")
    parser.add_argument("--cpu-isa", help="default: the best that the processor has")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    flags = parser.parse_args()
    flags.load_before = os.getloadavg()[0]
    if not os.access(flags.program, os.X_OK):
        parser.error(f"{flags.program} is no program, expected a blockdraft")
    common = ["--threads", flags.threads] + (["--cpu-isa", flags.cpu_isa] if flags.cpu_isa else [])
    bench = Bench(flags.program, common)
    for _ in range(flags.runs):
        run_demo(bench)
        run_large(bench)
    try:
        times = startup.measure(str(bench.program), repeats=max(3, flags.runs))
    except (OSError, subprocess.CalledProcessError) as reason:
        times = reason
    text = markdown(goals(bench, times), machine(bench, flags))
    if flags.write:
        write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
