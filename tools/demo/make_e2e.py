#!/usr/bin/env python3
"""Writes tests/golden/demo_generate.json: greedy text of the demo target and the acceptance lengths of its drafters,
by the float32 reference."""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from ref_decode import END_OF_TEXT, decode_drafted, decode_plain
from ref_models import Drafter, Target

DRAFTERS = ("dflash", "dflash2", "dspark")
NEW_TOKENS = 96
MAX_PROMPT = 400  # tokens kept of a prompt of the acceptance set
NOTE = (
    "float32 reference; prompt ids begin with <|endoftext|> (0); lists in acceptance_lengths count committed tokens a "
    "cycle, bonus included"
)
PROMPTS = [
    'def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n',
    'class LinkedList:\n    """A singly linked list."""\n\n    def __init__(self):\n',
    "import os\nimport sys\n\n\ndef main():\n    parser = argparse.ArgumentParser(",
    "def merge_sort(items):\n    if len(items) <= 1:\n        return items\n",
    "# Read a CSV file and print the mean of each column.\nimport csv\n\n",
    "def test_addition():\n    assert add(1, 2) == 3\n\n\ndef test_",
    'class Config:\n    """Configuration for the model.\n\n    Args:\n'
    "        hidden_size (`int`, *optional*, defaults to 768):\n",
    "for i in range(10):\n    if i % 2 == 0:\n        print(",
]


def load_tensors(folder):
    """All tensors of a checkpoint in float32, FP8 ones times their row scales."""
    stored = {}
    for file in sorted(folder.glob("*.safetensors")):
        stored.update(load_file(file))
    tensors = {}
    for name, tensor in stored.items():
        if name.endswith("weight_scale"):
            continue
        tensors[name] = tensor.float()
        if tensor.dtype == torch.float8_e4m3fn:
            tensors[name] = tensors[name] * stored[name + "_scale"].float()
    return tensors


def load_model(model_class, folder, device):
    model = model_class(json.loads((folder / "config.json").read_text()))
    model.load_state_dict(load_tensors(folder))
    return model.to(device).eval().requires_grad_(False)


def code_of(entry):
    """The code of one line of the acceptance set: a plain prompt, or the fenced block of a conversation."""
    text = entry.get("prompt") or entry["turns"][0]
    return text.split("```python\n")[-1].split("```")[0]


def make_case(target, drafters, tokenizer, prompt, device):
    ids = tokenizer.encode(prompt).ids
    assert ids[0] == END_OF_TEXT
    prompt_ids = torch.tensor(ids, device=device)
    output, margins = decode_plain(target, prompt_ids, NEW_TOKENS, END_OF_TEXT)
    lengths, same = {}, {}
    for name, drafter in drafters.items():
        drafted, lengths[name] = decode_drafted(target, drafter, prompt_ids, NEW_TOKENS, END_OF_TEXT)
        same[name] = drafted[: len(output)] == output[: len(drafted)]
    means = {name: round(sum(counts) / len(counts), 2) for name, counts in lengths.items()}
    print(repr(prompt[:30]), f"margin {min(margins):.4f}", means, same, flush=True)
    return dict(
        prompt=prompt,
        prompt_ids=ids,
        output_ids=output,
        output_text=tokenizer.decode(output),
        min_margin=min(margins),
        acceptance_lengths=lengths,
        same_as_plain=same,
    )


def mean_acceptance(target, drafter, prompts, device):
    """Committed tokens a cycle over all prompts (lists of ids)."""
    committed = []
    for ids in prompts:
        prompt = torch.tensor(ids[:MAX_PROMPT], device=device)
        committed += decode_drafted(target, drafter, prompt, NEW_TOKENS, END_OF_TEXT)[1]
    return sum(committed) / len(committed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="the target's folder; the drafters lie beside it, NAME-dflash ...")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    parser.add_argument("--acceptance-prompts", type=Path, metavar="JSONL", help="HumanEval; its first 60 are decoded")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    torch.backends.cuda.matmul.allow_tf32 = False
    folder, device = arguments.target, arguments.device
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    target = load_model(Target, folder, device)
    drafters = {name: load_model(Drafter, folder.with_name(f"{folder.name}-{name}"), device) for name in DRAFTERS}
    result = {"note": NOTE}
    result["cases"] = [make_case(target, drafters, tokenizer, prompt, device) for prompt in PROMPTS]
    if arguments.acceptance_prompts:
        lines = arguments.acceptance_prompts.read_text(encoding="utf-8").splitlines()
        prompts = [tokenizer.encode(code_of(json.loads(line))).ids for line in lines[:60]]
        result["humaneval60_acceptance_length"] = {
            name: mean_acceptance(target, drafter, prompts, device) for name, drafter in drafters.items()
        }
        print(result["humaneval60_acceptance_length"])
    arguments.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
