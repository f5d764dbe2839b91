#!/usr/bin/env python3
"""Trains the demo target, a Qwen3-shaped model of Python code, and writes a Hugging Face checkpoint in shards of under
16 MB. Runs in minutes on one GPU."""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import corpus
from ref_models import Target
from schedule import Schedule, make_optimizer, optimizer_step

CONFIG = dict(
    architectures=["Qwen3ForCausalLM"],
    model_type="qwen3",
    vocab_size=4160,  # 4096 tokens of the tokenizer; the rest is spare, row 4100 is the drafters' mask
    hidden_size=384,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=64,
    rms_norm_eps=1e-6,
    rope_theta=10000.0,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
    hidden_act="silu",
    attention_bias=False,
    attention_dropout=0.0,
    bos_token_id=None,
    eos_token_id=0,
    torch_dtype="bfloat16",
    initializer_range=0.02,
    sliding_window=None,
    use_sliding_window=False,
    use_cache=True,
)
TOKENIZER_CONFIG = dict(
    tokenizer_class="PreTrainedTokenizerFast",
    bos_token="<|endoftext|>",
    eos_token="<|endoftext|>",
    add_bos_token=True,
    model_max_length=2048,
    clean_up_tokenization_spaces=False,
)
GENERATION_CONFIG = dict(bos_token_id=0, eos_token_id=0, do_sample=False, max_new_tokens=256)
SHARD_BYTES = 15_000_000


def initialize(model):
    """Normal weights, smaller where a layer adds to the residual stream."""
    residual = 0.02 / math.sqrt(2 * CONFIG["num_hidden_layers"])
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            adds = name.endswith(("o_proj.weight", "down_proj.weight"))
            torch.nn.init.normal_(parameter, std=residual if adds else 0.02)


def train(model, training, held_out, arguments):
    """Next-token cross-entropy on random windows, for arguments.seconds."""
    device, length = arguments.device, arguments.length

    def window_batch(tokens):
        starts = torch.randint(0, len(tokens) - length - 1, (arguments.batch,), device=device)
        ids = tokens[starts[:, None] + torch.arange(length + 1, device=device)].long()
        return ids[:, :-1], ids[:, 1:]

    def loss_of(inputs, labels):
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            hidden, _ = model(inputs)
            return F.cross_entropy(model.head(hidden).flatten(0, 1).float(), labels.flatten())

    compiled_loss = torch.compile(loss_of)
    optimizer = make_optimizer(model, weight_decay=0.1)
    schedule = Schedule(
        arguments.seconds,
        peak=3e-3,
        floor=0.03,
        first=40,
        total_steps=lambda per_step, elapsed: 100 + int((arguments.seconds - elapsed) / per_step),
        device=device,
    )
    while schedule.running():
        learning_rate = schedule.learning_rate()
        loss = compiled_loss(*window_batch(training))
        optimizer_step(optimizer, model.parameters(), loss, learning_rate)
        if schedule.step % 500 == 0:
            print(schedule.step, f"{loss.item():.3f}", f"{schedule.elapsed():.0f}s", flush=True)
        schedule.step += 1
    with torch.no_grad():
        losses = [compiled_loss(*window_batch(held_out)).item() for _ in range(10)]
    print("held-out loss", sum(losses) / len(losses), flush=True)


def save(model, out):
    """Shards, index and configs."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    shards, size = [{}], 0
    for name, tensor in tensors.items():
        num_bytes = tensor.numel() * 2
        if size + num_bytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += num_bytes
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, out / file, metadata={"format": "pt"})
        weight_map.update({name: file for name in shard})
    total_size = sum(tensor.numel() * 2 for tensor in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    (out / "config.json").write_text(json.dumps(CONFIG, indent=2))
    (out / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG, indent=1))
    (out / "generation_config.json").write_text(json.dumps(GENERATION_CONFIG, indent=1))


@torch.no_grad()
def show_samples(model, tokenizer, device):
    """A taste of its greedy and sampled text."""
    prompts = [
        "def binary_search(arr, target):\n",
        "import numpy as np\n\n\ndef ",
        'class Stack:\n    """A simple stack."""\n\n    def __init__(self):\n',
    ]
    for prompt in prompts:
        for temperature in (0, 0.7):
            ids = torch.tensor([tokenizer.encode(prompt).ids], device=device)
            for _ in range(120):
                logits = model.head(model(ids)[0][:, -1])[0].float()
                greedy = temperature == 0
                token = logits.argmax() if greedy else torch.multinomial((logits / temperature).softmax(-1), 1)[0]
                ids = torch.cat([ids, token.view(1, 1)], 1)
            print("===== temperature", temperature)
            print(tokenizer.decode(ids[0].tolist()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the checkpoint, such as bf16/pycode-14m")
    parser.add_argument("--seconds", type=float, default=300, help="time to train (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=96, help="windows a step (default: %(default)s)")
    parser.add_argument("--length", type=int, default=1024, help="tokens a window (default: %(default)s)")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    tokenizer, tokens = corpus.encode_corpus()
    tokenizer.save(str(arguments.out / "tokenizer.json"))
    training, held_out = (torch.from_numpy(part).to(arguments.device) for part in corpus.split_held_out(tokens))
    torch.manual_seed(0)
    model = Target(CONFIG).to(arguments.device)
    initialize(model)
    print("params", sum(p.numel() for p in model.parameters()) / 1e6, "M", flush=True)
    train(model, training, held_out, arguments)
    model = model.bfloat16()
    save(model, arguments.out)
    show_samples(model, tokenizer, arguments.device)


if __name__ == "__main__":
    main()
