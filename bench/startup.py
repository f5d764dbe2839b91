#!/usr/bin/env python3
"""How long blockdraft takes to be ready, beside `cat` of the same files.

    bench/startup.py build/cpu-release/bin/blockdraft
    bench/startup.py build/cuda/bin/blockdraft --device cuda --gigabytes 16 --formats BF16 --repeats 2

Writes a random checkpoint of about --gigabytes to a temporary folder, once in BF16 and once in FP8 with a scale a row
(whose codes are checked at load), and times in turn: `cat` of its weights, `inspect` (headers), a run that loads and
generates nothing, and a run that generates one token and so has touched every page. Files come out of the page cache,
for all alike. Then the demo pair, from the start of the process to its end. Prints medians. Nothing is left behind.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "demo/pycode-14m"
LAYERS = 12


def sizes(gigabytes, bytes_of_weight):
    """Hidden size of a model whose linear weights take about so many bytes."""
    hidden = 64
    while linear_weights(hidden + 64) * bytes_of_weight <= gigabytes * 1e9:
        hidden += 64
    return hidden


def linear_weights(hidden):
    return LAYERS * (4 * hidden * hidden + 3 * hidden * 4 * hidden)


def tensors(hidden, vocabulary, fp8):
    """Name, type, shape and bytes of a value of every tensor of a Llama."""
    linear = ("F8_E4M3", 1) if fp8 else ("BF16", 2)
    shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (hidden, hidden),
              "self_attn.v_proj": (hidden, hidden), "self_attn.o_proj": (hidden, hidden),
              "mlp.gate_proj": (4 * hidden, hidden), "mlp.up_proj": (4 * hidden, hidden),
              "mlp.down_proj": (hidden, 4 * hidden)}
    yield "model.embed_tokens.weight", "BF16", (vocabulary, hidden), 2
    yield "model.norm.weight", "BF16", (hidden,), 2
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield prefix + norm + ".weight", "BF16", (hidden,), 2
        for name, shape in shapes.items():
            yield f"{prefix}{name}.weight", linear[0], shape, linear[1]
            if fp8:
                yield f"{prefix}{name}.weight_scale", "BF16", (shape[0], 1), 2


def random_bytes(count, block):
    """Random, but finite in every type: a byte and both halves of a BF16 lie from 0x20 to 0x3f."""
    return (block * (count // len(block) + 1))[:count]


def write_checkpoint(folder, gigabytes, fp8):
    hidden = sizes(gigabytes, 1 if fp8 else 2)
    vocabulary = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary,
              "hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": LAYERS,
              "num_attention_heads": hidden // 64, "num_key_value_heads": hidden // 64, "head_dim": 64,
              "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 2048,
              "tie_word_embeddings": True, "hidden_act": "silu"}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shutil.copy(DEMO / "tokenizer.json", folder)
    header, at = {}, 0
    for name, dtype, shape, size in tensors(hidden, vocabulary, fp8):
        count = size
        for extent in shape:
            count *= extent
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = bytes(0x20 + byte % 32 for byte in os.urandom(1 << 20))
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in header.values():
            begin, end = entry["data_offsets"]
            file.write(random_bytes(end - begin, block))
    return at


def seconds(command):
    begin = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin


def medians(commands, repeats):
    """Seconds of each command, run in turn; a first round fills the page cache and does not count."""
    times = {name: [] for name in commands}
    for round_number in range(repeats + 1):
        for name, command in commands.items():
            took = seconds(command)
            if round_number > 0:
                times[name].append(took)
    return {name: statistics.median(values) for name, values in times.items()}


def generate(program, target, max_tokens, device):
    return [program, "generate", "--device", device, "--target", str(target), "--prompt", "x", "--max-tokens",
            str(max_tokens)]


def checkpoint_times(program, folder, repeats, device):
    return medians({"cat": ["cat", str(folder / "model.safetensors")],
                    "inspect": [program, "inspect", str(folder)],
                    "load": generate(program, folder, 0, device),
                    "first token": generate(program, folder, 1, device)}, repeats)


def demo_times(program, repeats, device):
    drafter = ["--drafter", str(ROOT / "demo/pycode-14m-dflash2")]
    return medians({"load": generate(program, DEMO, 0, device) + drafter,
                    "first token": generate(program, DEMO, 1, device) + drafter}, repeats)


def measure(program, gigabytes=1.5, repeats=5, device="cpu", formats=("BF16", "FP8")):
    """By model, by command: median seconds. "bytes" of a checkpoint beside them."""
    found = {"demo pair": demo_times(program, repeats, device)}
    with tempfile.TemporaryDirectory() as folder:
        for name in formats:
            path = Path(folder) / name
            size = write_checkpoint(path, gigabytes, name == "FP8")
            found[name] = checkpoint_times(program, path, repeats, device) | {"bytes": size}
            shutil.rmtree(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the blockdraft to measure")
    parser.add_argument("--gigabytes", type=float, default=1.5)
    parser.add_argument("--repeats", type=int, default=5, help="rounds that count")
    parser.add_argument("--device", default="cpu", help="cpu or cuda[:N] (default: %(default)s)")
    parser.add_argument("--formats", nargs="+", default=["BF16", "FP8"], choices=["BF16", "FP8"])
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    found = measure(flags.program, flags.gigabytes, flags.repeats, flags.device, flags.formats)
    if flags.json:
        print(json.dumps(found))
        return
    for model, times in found.items():
        size = times.get("bytes")
        print(model if size is None else f"{model}, {size / 1e9:.2f} GB")
        for name, took in times.items():
            if name == "bytes":
                continue
            beside = "" if "cat" not in times else f", {took / times['cat']:.2f} x cat"
            if size is not None and name == "load":  # less what a small model takes: the process, and a card's start
                beside += f", {size * 1e-9 / (took - found['demo pair']['load']):.1f} GB/s"
            print(f"  {name:12}{took * 1e3:8.0f} ms{beside}")


if __name__ == "__main__":
    main()
