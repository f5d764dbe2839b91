#!/usr/bin/env python3
"""The parts of a cycle on a card, each beside its floor and its goal, as Markdown tables on stdout.

    bench/cuda_table.py build/cuda/bin/blockdraft                                    all that is below, some minutes
    bench/cuda_table.py build/cuda/bin/blockdraft --batches 1 --contexts 1024 --weights bf16 --drafters dflash

Weights are random, of the sizes in bench/configs. Every draft is accepted (--accept-pattern 1,1,...), so that a cycle
hands as many rows to the drafter's context as its pass of the target had. By default the batches run at the first of
the contexts, and the contexts with the first of the batches; --cross runs every combination. What does not run says
why: the target is there twice, for plain and for drafted decoding, which is much memory for long contexts of many
sequences. Floors are bytes over the bandwidth that the same run measured; goals hold for passes of at most 64 rows.
"""

import argparse
import json
import os
import subprocess

from performance import ROOT, Bench, Failure, drafted_part, field, plain_part, run_of, table, verdict

CONFIGS = "bench/configs"
# Times of the floor, by part and weights.
GOALS = {("decode", "bf16"): 1.08, ("verify", "bf16"): 1.08, ("verify", "fp8"): 1.12, ("propose", "bf16"): 1.10,
         ("propose", "fp8"): 1.25,
         ("context", "bf16"): 1.5, ("context", "fp8"): 1.5}
MOST_ROWS = 64  # of a pass whose floor counts bytes alone
BATCH_GOAL = (8, 64, 1.3)  # sequences, rows of all of them, times proposing for one sequence
REST_GOAL_US = 40  # of a cycle of one sequence beside its passes


def trained_width(drafter):
    """Drafts of a block, by its config."""
    config = json.loads((ROOT / CONFIGS / drafter / "config.json").read_text(encoding="utf-8"))
    block = config.get("block_size", config.get("dflash_config", {}).get("block_size"))
    return block if config["architectures"] == ["DSparkDraftModel"] else block - 1


class Setting:
    """One run: which drafter and weights, how many sequences, how much context."""

    def __init__(self, target, drafter, weights, batch, context):
        self.target, self.drafter, self.weights, self.batch, self.context = target, drafter, weights, batch, context
        self.width = trained_width(f"{target}-{drafter}")

    def name(self):
        return f"{self.drafter}, {self.weights}, batch {self.batch}, context {self.context}"

    def arguments(self, flags):
        tokens = flags.cycles * (self.width + 1) + 1  # the first comes out of the prompt's pass
        return ["--device", flags.device, "--target", f"{CONFIGS}/{self.target}",
                "--drafter", f"{CONFIGS}/{self.target}-{self.drafter}", "--random-weights", "--ignore-eos",
                "--max-sequences", self.batch, "--prompt-tokens", self.context, "--max-tokens", tokens,
                "--max-positions", self.context + tokens, "--widths", "trained", "--repeats", flags.repeats,
                "--accept-pattern", ",".join(["1"] * self.width)] + (
                    [] if self.weights == "bf16" else
                    ["--target-weights", self.weights, "--drafter-weights", self.weights])


def settings(flags):
    for drafter in flags.drafters:
        for weights in flags.weights:
            for batch in flags.batches:
                for context in flags.contexts:
                    if flags.cross or batch == flags.batches[0] or context == flags.contexts[0]:
                        yield Setting(flags.target, drafter, weights, batch, context)


def part_rows(bench, setting):
    """Rows of the table: what ran, part, rows, bytes, time, rate, times its floor, goal."""
    name, width = setting.name(), setting.width
    parts = {part: drafted_part(width, part) for part in ("context", "propose", "verify")}
    for part, of in {"decode": plain_part("decode"), **parts}.items():
        try:
            rows, moved, took, rate, factor = (bench.median(name, field(of, key))
                                               for key in ("rows", "bytes", "us", "gb_per_s", "times_floor"))
        except Failure as reason:
            yield name, "all", "-", "-", "-", "-", "-", f"not measured: {reason}"
            return
        goal = GOALS.get((part, setting.weights)) if rows <= MOST_ROWS else None
        judged = f"<= {goal:.2f}: {verdict(factor <= goal)}" if goal else "-"
        yield (name, part, f"{rows:.0f}", f"{moved * 1e-6:.1f}", f"{took:.0f}", f"{rate:.0f}", f"{factor:.2f}", judged)
    yield from cycle_rows(bench, setting)


def cycle_rows(bench, setting):
    """What the passes leave of a cycle, and the whole of it beside their floors."""
    name = setting.name()

    def of_run(figure):
        return bench.median(name, lambda result: figure(run_of(result, setting.width)))
    try:
        rest = of_run(lambda run: run["accept_us"])
        cycle = of_run(lambda run: run["cycle_us"])
        moved = of_run(lambda run: sum(part["bytes"] for part in run["parts"]))
        floor = of_run(lambda run: sum(part["floor_us"] for part in run["parts"]))
    except Failure as reason:
        yield name, "cycle", "-", "-", "-", "-", "-", f"not measured: {reason}"
        return
    judged = f"<= {REST_GOAL_US} us: {verdict(rest <= REST_GOAL_US)}" if setting.batch == 1 else "-"
    yield name, "rest of a cycle", "-", "-", f"{rest:.0f}", "-", "-", judged
    yield (name, "cycle", "-", f"{moved * 1e-6:.1f}", f"{cycle:.0f}", f"{moved * 1e-3 / cycle:.0f}",
           f"{cycle / floor:.2f}", "-")


def batch_rows(bench, flags, ran):
    """Blocks and cycles of several sequences beside those of the first batch, which is usually one sequence."""
    by_name = {setting.name(): setting for setting in ran}
    for setting in ran:
        one = Setting(setting.target, setting.drafter, setting.weights, flags.batches[0], setting.context).name()
        if setting.batch == flags.batches[0] or one not in by_name:
            continue
        rows = setting.batch * (setting.width + 1)
        parts = {"propose": field(drafted_part(setting.width, "propose"), "us"),
                 "cycle": lambda result: run_of(result, setting.width)["cycle_us"]}
        for part, figure in parts.items():
            try:
                several, single = (bench.median(name, figure) for name in (setting.name(), one))
            except Failure:
                continue
            has_goal = part == "propose" and (setting.batch, rows, flags.batches[0]) == (*BATCH_GOAL[:2], 1)
            factor = several / single
            judged = f"<= {BATCH_GOAL[2]}: {verdict(factor <= BATCH_GOAL[2])}" if has_goal else "-"
            yield setting.name(), part, str(rows), f"{several:.0f}", f"{single:.0f}", f"{factor:.2f}", judged


def where(bench):
    for results in bench.found.values():
        for result in results:
            if isinstance(result, Failure):
                continue
            read = result["reads"][0]
            commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT,
                                    check=True).stdout.strip()
            return (f"{result['device']}, {result['device_name']}; commit {commit}; reading "
                    f"{read['buffer_bytes'] * 1e-9:.1f} GB took {read['gb_per_s']:.0f} GB/s in the first run")
    return "No run succeeded."


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the blockdraft to measure, built with CUDA")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or cpu (default: %(default)s)")
    parser.add_argument("--target", default="qwen3-8b", help="in bench/configs (default: %(default)s)")
    parser.add_argument("--drafters", nargs="+", default=["dflash", "dflash2", "dspark"], metavar="NAME",
                        help="behind TARGET- in bench/configs (default: dflash dflash2 dspark)")
    parser.add_argument("--weights", nargs="+", default=["bf16", "fp8"], choices=["bf16", "fp8", "nvfp4", "int8"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8, 16], metavar="N", help="sequences at once")
    parser.add_argument("--contexts", nargs="+", type=int, default=[1024, 8192, 32768], metavar="N",
                        help="tokens of a prompt")
    parser.add_argument("--cross", action="store_true", help="every batch at every context")
    parser.add_argument("--cycles", type=int, default=24, metavar="N", help="of a text (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="rounds that count (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="processes; medians (default: %(default)s)")
    flags = parser.parse_args()
    if not os.access(flags.program, os.X_OK):
        parser.error(f"{flags.program} is no program, expected a blockdraft")
    for folder in [flags.target] + [f"{flags.target}-{drafter}" for drafter in flags.drafters]:
        if not (ROOT / CONFIGS / folder / "config.json").is_file():
            parser.error(f"there is no {CONFIGS}/{folder}/config.json")
    return flags


def main():
    flags = parse()
    bench = Bench(flags.program, [])
    ran = list(settings(flags))
    for _ in range(flags.runs):
        for setting in ran:
            bench.run(setting.name(), *setting.arguments(flags))
    print(f"{flags.target}, random weights; {where(bench)}\n")
    print(table(("run", "part", "rows", "MB", "us", "GB/s", "time / floor", "goal"),
                [row for setting in ran for row in part_rows(bench, setting)]))
    several = list(batch_rows(bench, flags, ran))
    if several:
        print(table(("run", "part", "rows", "us", "of the first batch, us", "ratio", "goal"), several))


if __name__ == "__main__":
    main()
