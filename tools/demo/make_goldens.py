#!/usr/bin/env python3
"""Writes the fixture folders of tests/golden (see its README). Expectations are float32, from BF16-rounded weights.

Targets need Hugging Face transformers; drafters need PyTorch alone.
"""

import argparse
from pathlib import Path

import torch

from golden_cases import numbered_cases
from golden_common import bf16, save_case
from golden_drafter import WHAT, plain_case
from golden_quantized import derived_cases

MAX_ATTEMPTS = 400


def drafter_cases(seed, out, device):
    for number, name, config in numbered_cases():
        # A seed without near ties, so that token choices are testable; wide blocks have more chances of one.
        block_size = config["dflash_config"].get("block_size") or config["block_size"]
        wanted = 0.03 if block_size < 16 else 0.01
        for attempt in range(MAX_ATTEMPTS):
            generator = torch.Generator().manual_seed(seed * 100000 + number * 1000 + attempt)
            drafter, inputs, io, margin = plain_case(config, generator, device)
            if margin > wanted:
                break
        else:
            raise SystemExit(f"{name}: no seed in {MAX_ATTEMPTS} with a relative margin above {wanted}")
        tensors = {key: bf16(tensor) for key, tensor in drafter.state_dict().items()}
        save_case(out / name, config, tensors, io, dict(kind="drafter", what=WHAT, min_relative_margin=margin))
        print(name, f"attempt {attempt}, min relative margin {margin:.4f}", io["cycle1.drafts"].tolist(), flush=True)
        if name == "dflash_plain":
            derived_cases(config, inputs, tensors, seed, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the case folders")
    parser.add_argument("--seed", type=int, default=1, help="tests/golden was made with the default, %(default)s")
    parser.add_argument("--only", choices=("drafters", "targets"), help="one kind alone")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if arguments.only != "targets":
        drafter_cases(arguments.seed, arguments.out, arguments.device)
    if arguments.only != "drafters":
        from golden_target import target_cases  # needs transformers

        target_cases(arguments.seed, arguments.out, arguments.device)


if __name__ == "__main__":
    main()
