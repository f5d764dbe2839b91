"""What all fixture makers share: random weights and writing a case folder."""

import json
import math

import torch
from safetensors.torch import save_file


def bf16(tensor):
    return tensor.to(torch.bfloat16)


def random_normal(generator, *shape, std=1.0):
    return torch.randn(*shape, generator=generator) * std


@torch.no_grad()
def initialize(model, generator):
    """BF16-representable weights, large enough that no part is negligible. The order of the draws is part of a seed."""
    for name, parameter in model.named_parameters():
        shape = parameter.shape
        if name.endswith("norm.weight") or "layernorm" in name:
            values = 1 + random_normal(generator, *shape, std=0.2)
        elif "base_kernel" in name:
            identity = torch.zeros(shape)
            identity[:, :1] = 1
            values = identity + random_normal(generator, *shape, std=0.3)
        elif "codebook" in name or "markov_w1" in name:
            values = random_normal(generator, *shape, std=1.0)
        elif "markov_w2" in name or name.endswith("bias"):
            values = random_normal(generator, *shape, std=0.3)
        else:
            values = random_normal(generator, *shape, std=1.2 / math.sqrt(shape[-1]))
        parameter.copy_(bf16(values).float())


def save_case(folder, config, tensors, io, info):
    """Writes config.json, model.safetensors, io.safetensors and case.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {key: value for key, value in config.items() if not (key == "rope_theta" and value is None)}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    for file, content in (("model.safetensors", tensors), ("io.safetensors", io)):
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in content.items()}, folder / file)
    (folder / "case.json").write_text(json.dumps(info, indent=1))
