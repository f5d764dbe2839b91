"""Fixtures that store the drafter of dflash_plain in other ways: NVFP4 in both naming families, FP8 with row scales,
and a reduced draft vocabulary."""

import torch

from golden_common import bf16, save_case
from golden_drafter import propose, with_weights

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # by code; bit 3 is the sign
E4M3_MAX = 448
CYCLE = 1  # the one cycle that these fixtures hold
DRAFT_VOCAB = 200


def is_linear(name):
    return name.endswith("_proj.weight") or name == "fc.weight"


def e2m1_values(codes):
    return E2M1.to(codes.device)[codes & 7] * torch.where(codes >= 8, -1.0, 1.0)


def divided(tensor, divisor):
    """tensor / divisor as a product with the rounded reciprocal, which is what a GPU does with a constant divisor."""
    return tensor * torch.tensor(1 / divisor, dtype=torch.float32).to(tensor.device)


def nvfp4(weight):
    """weight [n, k] -> (codes [n, k], E4M3 scale of each 16 [n, k / 16], float32 scale of all)."""
    rows, columns = weight.shape
    groups = weight.view(rows, columns // 16, 16)
    global_scale = divided(weight.abs().max(), 6 * E4M3_MAX)
    scale = (divided(groups.abs().amax(-1), 6) / global_scale).clamp(max=E4M3_MAX).to(torch.float8_e4m3fn)
    effective = scale.float() * global_scale
    x = groups / effective[..., None].clamp_min(1e-30)
    codes = (x.abs()[..., None] - E2M1.to(weight.device)).abs().argmin(-1)
    return torch.where(x < 0, codes + 8, codes).view(rows, columns), scale, global_scale


def nvfp4_case(style, config, inputs, tensors, out):
    """style 'modelopt': a multiplier `weight_scale_2`; 'compressed_tensors': a divisor `weight_global_scale`."""
    stored, plain = {}, {}
    for name, tensor in tensors.items():
        if not is_linear(name):
            stored[name] = plain[name] = tensor
            continue
        codes, scale, global_scale = nvfp4(tensor.float())
        packed = (codes[:, 0::2] | (codes[:, 1::2] << 4)).to(torch.uint8)
        values = e2m1_values(codes).view(len(codes), -1, 16)
        prefix = name[: -len("weight")]
        if style == "modelopt":
            stored |= {name: packed, prefix + "weight_scale": scale, prefix + "weight_scale_2": global_scale.view(())}
            values = values * scale.float()[..., None] * global_scale
        else:
            divisor = (1 / global_scale).view(1)
            stored |= {prefix + "weight_packed": packed, prefix + "weight_scale": scale}
            stored[prefix + "weight_global_scale"] = divisor
            values = values * scale.float()[..., None] / divisor
        plain[name] = bf16(values.flatten(1))
    drafter = with_weights(config, plain, inputs.features.device)
    io = inputs.tensors() | {f"dequantized.{name}": plain[name] for name in tensors if is_linear(name)}
    io |= {f"cycle{CYCLE}.{name}": value for name, value in propose(config, drafter, inputs, CYCLE).items()}
    what = (
        "NVFP4-packed linear weights; dequantized.* are e2m1*scale*global rounded to BF16, and cycle1 was computed from "
        "those rounded weights."
    )
    info = dict(kind="drafter", what=what, tolerance=0.01)  # a reader need not round the weights to BF16
    save_case(out / f"dflash_nvfp4_{style}", config, stored, io, info)


def fp8_case(config, inputs, tensors, out):
    stored, plain = {}, {}
    for name, tensor in tensors.items():
        if not is_linear(name):
            stored[name] = plain[name] = tensor
            continue
        weight = tensor.float()
        scale = divided(weight.abs().amax(1, keepdim=True), E4M3_MAX)
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        codes = (weight / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
        stored |= {name: codes, name + "_scale": scale}
        plain[name] = codes.float() * scale
    drafter = with_weights(config, plain, inputs.features.device)
    io = inputs.tensors()
    io |= {f"cycle{CYCLE}.{name}": value for name, value in propose(config, drafter, inputs, CYCLE).items()}
    what = (
        "FP8 E4M3 linear weights, one float32 scale a row: scale = fl32(rowmax * fl32(1/448)), 1 for a zero row; code = "
        "nearest even of fl32(w / scale). Quantizing dflash_plain at load must give these very codes and scales."
    )
    save_case(out / "dflash_fp8_row", config, stored, io, dict(kind="drafter", what=what))


def reduced_vocabulary_case(config, inputs, tensors, seed, out):
    """Its own head over DRAFT_VOCAB of the ids; d2t holds offsets, t2d a flag for each target id."""
    device, vocab = inputs.features.device, config["vocab_size"]
    kept = torch.randperm(300, generator=torch.Generator().manual_seed(seed))[:DRAFT_VOCAB].sort().values
    d2t = kept - torch.arange(DRAFT_VOCAB)
    t2d = torch.zeros(vocab, dtype=torch.bool)
    t2d[kept] = True
    lm_head = bf16(inputs.lm_head[kept.to(device)]).float()
    drafter = with_weights(config, tensors, device)
    expected = propose(config, drafter, inputs, CYCLE, lm_head=lm_head)
    expected["drafts"] = kept.to(device)[expected["drafts"].long()].int()
    io = inputs.tensors() | {f"cycle{CYCLE}.{name}": value for name, value in expected.items()}
    what = (
        f"Draft vocabulary of {DRAFT_VOCAB}: own lm_head, d2t as offsets; cycle1.logits are over draft ids, "
        "cycle1.drafts are target ids."
    )
    stored = tensors | {"lm_head.weight": bf16(lm_head), "d2t": d2t, "t2d": t2d}
    config = dict(config, draft_vocab_size=DRAFT_VOCAB)
    save_case(out / "dflash_reduced_vocab_d2t", config, stored, io, dict(kind="drafter", what=what))


def derived_cases(config, inputs, tensors, seed, out):
    """All fixtures made from dflash_plain."""
    for style in ("modelopt", "compressed_tensors"):
        nvfp4_case(style, config, inputs, tensors, out)
    fp8_case(config, inputs, tensors, out)
    reduced_vocabulary_case(config, inputs, tensors, seed, out)
