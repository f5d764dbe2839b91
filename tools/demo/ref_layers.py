"""Reference layers in PyTorch, shared by the target and the drafters: norm, rotary positions, MLP, attention.

Written from the published formulas. Module attributes carry the checkpoint's tensor names, so that a state dict saves
as a loadable checkpoint. `config` is a Hugging Face config as a dict.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """weight * x / rms(x) over the last dimension, computed in float32."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


def inv_freq_table(head_dim, theta, scaling=None, max_positions=None):
    """Returns (inverse frequencies [head_dim / 2] float32, factor on cos and sin); `scaling` may ask for YaRN."""
    even = torch.arange(0, head_dim, 2, dtype=torch.float64)
    frequencies = theta ** (even / head_dim)
    if not scaling or scaling.get("rope_type", scaling.get("type")) != "yarn":
        return (1.0 / frequencies).float(), 1.0

    factor = scaling["factor"]
    original = scaling.get("original_max_position_embeddings") or max_positions

    def pair_turning(rotations):
        """The (fractional) pair index that turns this often over the original length."""
        return head_dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = pair_turning(scaling.get("beta_fast") or 32)
    high = pair_turning(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001  # no division by zero
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    keep = 1 - ramp  # 1: extrapolate (unscaled), 0: interpolate
    inv_freq = (1.0 / (factor * frequencies)) * (1 - keep) + (1.0 / frequencies) * keep
    default = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return inv_freq.float(), scaling.get("attention_factor") or default


def rope(x, positions, inv_freq, scale=1.0):
    """Rotates x [..., T, heads, D] by positions [..., T]; dimension i is paired with i + D/2."""
    angles = positions[..., None].float() * inv_freq.to(x.device)
    cos = torch.cat([angles.cos(), angles.cos()], -1) * scale
    sin = torch.cat([angles.sin(), angles.sin()], -1) * scale
    cos, sin = cos[..., None, :].to(x.dtype), sin[..., None, :].to(x.dtype)
    half = x.shape[-1] // 2
    rotated = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + rotated * sin


class MLP(nn.Module):
    """down(silu(gate(x)) * up(x))"""

    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Attention(nn.Module):
    """Grouped-query attention with RMSNorm on each head of queries and keys."""

    def __init__(self, config):
        super().__init__()
        self.heads = config["num_attention_heads"]
        self.kv_heads = config["num_key_value_heads"]
        self.head_dim = config["head_dim"]
        hidden, bias = config["hidden_size"], config.get("attention_bias", False)
        self.q_proj = nn.Linear(hidden, self.heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.head_dim, hidden, bias=bias)
        self.q_norm = RMSNorm(self.head_dim, config["rms_norm_eps"])
        self.k_norm = RMSNorm(self.head_dim, config["rms_norm_eps"])

    def qkv(self, x, positions, inv_freq, scale):
        """x [..., T, hidden] -> q [..., T, heads, D], k and v [..., T, kv_heads, D]; q and k rotated."""
        q = self.q_norm(self.q_proj(x).unflatten(-1, (self.heads, self.head_dim)))
        return (rope(q, positions, inv_freq, scale),) + self.kv(x, positions, inv_freq, scale)

    def kv(self, x, positions, inv_freq, scale):
        """Keys and values alone, which is all that a context row needs."""
        k = self.k_norm(self.k_proj(x).unflatten(-1, (self.kv_heads, self.head_dim)))
        v = self.v_proj(x).unflatten(-1, (self.kv_heads, self.head_dim))
        return rope(k, positions, inv_freq, scale), v

    def attend(self, q, k, v, mask=None, causal=False):
        """mask: True = visible, broadcastable to [..., T, keys]."""
        q, k, v = (t.transpose(-3, -2) for t in (q, k, v))
        grouped = self.heads != self.kv_heads
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)
        return self.o_proj(out.transpose(-3, -2).flatten(-2))
