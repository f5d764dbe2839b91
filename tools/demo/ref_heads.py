"""Reference parts that only drafters have: DFlash2's block convolution and selector, DSpark's Markov and confidence
heads."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupedDynamicCausalConv(nn.Module):
    """A causal convolution over the rows of a block: per-channel base kernel plus a per-row, per-group dynamic one.

    One projection gives the dynamic kernels of both applications: `prepare` before the sublayer, `finish` after it.
    """

    def __init__(self, hidden, kernel_size, group_size):
        super().__init__()
        self.kernel_size, self.group_size = kernel_size, group_size
        self.base_kernel = nn.Parameter(torch.zeros(2, kernel_size, hidden))
        self.kernel_projection = nn.Linear(hidden, 2 * kernel_size * (hidden // group_size), bias=False)
        with torch.no_grad():
            self.base_kernel[:, 0] = 1.0  # starts as the identity
        nn.init.zeros_(self.kernel_projection.weight)

    def apply_kernel(self, x, dynamic, base):
        hidden = x.shape[-1]
        groups = hidden // self.group_size
        rows = x.unflatten(-1, (groups, self.group_size))
        out = torch.zeros_like(rows)
        for t in range(self.kernel_size):
            shifted = rows if t == 0 else F.pad(rows[..., :-t, :, :], (0, 0, 0, 0, t, 0))
            out = out + base[t].view(groups, self.group_size).to(x.dtype) * shifted
            out = torch.addcmul(out, dynamic[..., t, :, None], shifted)
        return out.flatten(-2)

    def prepare(self, x):
        """Returns the convolved rows and the dynamic kernel that `finish` takes."""
        groups = x.shape[-1] // self.group_size
        dynamic = self.kernel_projection(x).unflatten(-1, (2, self.kernel_size, groups))
        return self.apply_kernel(x, dynamic[..., 0, :, :], self.base_kernel[0]), dynamic[..., 1, :, :]

    def finish(self, x, dynamic):
        return self.apply_kernel(x, dynamic, self.base_kernel[1])


class Selector(nn.Module):
    """DFlash2: scores the best candidates of a position by how well they follow the token picked before."""

    def __init__(self, config):
        super().__init__()
        self.top_k = config["dflash_config"]["selector_top_k"]
        rank = config["dflash_config"]["selector_rank"]
        self.predecessor_codebook = nn.Parameter(torch.empty(config["vocab_size"], rank))
        self.successor_codebook = nn.Parameter(torch.empty(config["vocab_size"], rank))
        self.hidden_projection = nn.Linear(config["hidden_size"], rank, bias=False)
        nn.init.normal_(self.predecessor_codebook, std=0.02)
        nn.init.normal_(self.successor_codebook, std=0.02)

    def scores(self, hidden, logits, previous):
        """hidden [..., h], logits [..., V], previous [...] -> (candidates [..., K], scores [..., K])."""
        unary, candidates = torch.topk(logits, self.top_k, dim=-1)
        query = self.predecessor_codebook[previous] * self.hidden_projection(hidden)
        return candidates, unary + (query[..., None, :] * self.successor_codebook[candidates]).sum(-1)


class MarkovHead(nn.Module):
    """DSpark, type 'vanilla': a low-rank correction of the logits by the previous token."""

    def __init__(self, config):
        super().__init__()
        self.rank = config["markov_rank"]
        self.markov_w1 = nn.Embedding(config["vocab_size"], self.rank)
        self.markov_w2 = nn.Linear(self.rank, config["vocab_size"], bias=False)
        nn.init.normal_(self.markov_w1.weight, std=0.02)
        nn.init.zeros_(self.markov_w2.weight)

    def forward(self, previous):
        return self.markov_w2(self.markov_w1(previous))

    def step(self, previous, hidden, state):
        """Correction for one row, and the state for the next; state is None at the first row."""
        del hidden
        return self(previous), state


class GatedMarkovHead(MarkovHead):
    """DSpark, type 'gated': the block row decides how much of the previous token's embedding counts."""

    def __init__(self, config):
        super().__init__(config)
        self.gate_proj = nn.Linear(config["hidden_size"] + self.rank, self.rank)

    def step(self, previous, hidden, state):
        embedding = self.markov_w1(previous)
        gate = torch.sigmoid(self.gate_proj(torch.cat([hidden, embedding], -1)))
        return self.markov_w2(gate * embedding), state


class RnnMarkovHead(MarkovHead):
    """DSpark, type 'rnn': a gated recurrent state over the picks of the block."""

    def __init__(self, config):
        super().__init__(config)
        self.joint_proj = nn.Linear(2 * self.rank + config["hidden_size"], 3 * self.rank)

    def step(self, previous, hidden, state):
        if state is None:
            state = torch.zeros(self.rank, device=hidden.device)
        joint = self.joint_proj(torch.cat([state, self.markov_w1(previous), hidden], -1))
        gate, candidate, output = joint.chunk(3, -1)
        gate = torch.sigmoid(gate)
        return self.markov_w2(torch.tanh(output)), gate * state + (1 - gate) * torch.tanh(candidate)


MARKOV_HEADS = {"vanilla": MarkovHead, "gated": GatedMarkovHead, "rnn": RnnMarkovHead}


class ConfidenceHead(nn.Module):
    """DSpark: logit of the chance that a draft is accepted."""

    def __init__(self, config):
        super().__init__()
        self.with_markov = config.get("confidence_head_with_markov", True)
        self.proj = nn.Linear(config["hidden_size"] + (config["markov_rank"] if self.with_markov else 0), 1)

    def forward(self, hidden, markov_embedding):
        features = torch.cat([hidden, markov_embedding], -1) if self.with_markov else hidden
        return self.proj(features)[..., 0]
