#!/usr/bin/env python3
"""Rewrites BF16 checkpoints with FP8 E4M3 linear weights and one float32 scale a row (compressed-tensors
'float-quantized', strategy 'channel'). Needs numpy only."""

import argparse
import json
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

E4M3_MAX = 448
QUANTIZATION_CONFIG = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False},
            "input_activations": None,
        }
    },
}


class Tensor(NamedTuple):
    dtype: str  # as in a safetensors header
    shape: list
    data: bytes


def read_safetensors(file):
    content = file.read_bytes()
    (header_size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + header_size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
        tensors[name] = Tensor(entry["dtype"], entry["shape"], content[begin:end])
    return tensors


def write_safetensors(file, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(encoded)))
        out.write(encoded)
        for tensor in tensors.values():
            out.write(tensor.data)


def e4m3_value(code):
    """The value of a code below 127 (sign bit clear, not NaN)."""
    exponent, mantissa = code >> 3, code & 7
    if exponent == 0:
        return mantissa / 8 * 2.0**-6
    return (1 + mantissa / 8) * 2.0 ** (exponent - 7)


VALUES = np.array([e4m3_value(code) for code in range(127)], dtype=np.float64)
MIDDLES = (VALUES[1:] + VALUES[:-1]) / 2  # between neighbours


def to_e4m3(x):
    """Codes of x, float64: to the nearest, ties to the even code, saturating."""
    magnitude = np.minimum(np.abs(x), float(E4M3_MAX))
    code = np.searchsorted(MIDDLES, magnitude, side="left")
    is_tie = (code < 126) & (magnitude == MIDDLES[np.minimum(code, 125)])
    code = np.where(is_tie & (code % 2 == 1), code + 1, code)
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


def quantize_rows(tensor):
    """A BF16 matrix as (codes, one scale a row): scale = largest magnitude / 448, 1 for a row of zeros."""
    bits = np.frombuffer(tensor.data, np.uint16).astype(np.uint32) << 16
    weight = bits.view(np.float32).reshape(tensor.shape)
    scale = (np.abs(weight).max(1, keepdims=True) / np.float32(E4M3_MAX)).astype(np.float32)
    scale[scale == 0] = 1
    codes = to_e4m3((weight / scale).astype(np.float32).astype(np.float64))
    rows = tensor.shape[0]
    return Tensor("F8_E4M3", tensor.shape, codes.tobytes()), Tensor("F32", [rows, 1], scale.tobytes())


def quantize(tensors):
    """The linear weights quantized, everything else as it was."""
    out = {}
    for name, tensor in tensors.items():
        is_linear = name.endswith("_proj.weight") or name == "fc.weight"
        if tensor.dtype == "BF16" and len(tensor.shape) == 2 and is_linear:
            out[name], out[name + "_scale"] = quantize_rows(tensor)
        else:
            out[name] = tensor
    return out


def write_two_shards(folder, tensors):
    """As large checkpoints come: two shards of about the same size, and an index."""
    names = list(tensors)
    total = sum(len(tensor.data) for tensor in tensors.values())
    size, cut = 0, 0
    for cut, name in enumerate(names, start=1):
        size += len(tensors[name].data)
        if size > total / 2:
            break
    weight_map = {}
    for number, part in enumerate((names[:cut], names[cut:]), start=1):
        file = f"model-{number:05d}-of-00002.safetensors"
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        weight_map.update({name: file for name in part})
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


def convert(source, destination):
    """One checkpoint folder."""
    destination.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for file in sorted(source.glob("*.safetensors")):
        tensors.update(read_safetensors(file))
    tensors = quantize(tensors)
    if (source / "model.safetensors.index.json").exists():
        write_two_shards(destination, tensors)
    else:
        write_safetensors(destination / "model.safetensors", tensors)
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = QUANTIZATION_CONFIG
    (destination / "config.json").write_text(json.dumps(config, indent=2))
    for file in source.glob("*.json"):
        if file.name not in ("config.json", "model.safetensors.index.json"):
            shutil.copy(file, destination)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder that holds the BF16 checkpoint folders")
    parser.add_argument("destination", type=Path, help="where their FP8 versions go, under the same names")
    arguments = parser.parse_args()
    for folder in sorted(path for path in arguments.source.iterdir() if path.is_dir()):
        destination = arguments.destination / folder.name
        convert(folder, destination)
        size = sum(file.stat().st_size for file in destination.iterdir())
        print(f"{folder.name}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
