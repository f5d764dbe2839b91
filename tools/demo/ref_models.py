"""Reference models in PyTorch: a Qwen3 target and the drafters DFlash, DFlash2 and DSpark.

They train the demo pair and make the golden fixtures. State-dict names are the checkpoint's tensor names.
"""

import torch
import torch.nn.functional as F
from torch import nn

from ref_heads import MARKOV_HEADS, ConfidenceHead, GroupedDynamicCausalConv, Selector
from ref_layers import MLP, Attention, RMSNorm, inv_freq_table

# A drafter in the shifted layout drafts from row 0 on: row i predicts the position after its own.
SHIFTED_ARCHITECTURES = ("DSparkDraftModel", "Qwen3DSparkModel")
DSPARK_KEYS = ("markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov")


def rotary_table(config):
    """inv_freq_table of a config."""
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    return inv_freq_table(config["head_dim"], theta, config.get("rope_scaling"), config.get("max_position_embeddings"))


class TargetLayer(nn.Module):
    """A pre-norm decoder layer."""

    def __init__(self, config):
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, x, positions, inv_freq, scale):
        q, k, v = self.self_attn.qkv(self.input_layernorm(x), positions, inv_freq, scale)
        x = x + self.self_attn.attend(q, k, v, causal=True)
        return x + self.mlp(self.post_attention_layernorm(x))


class TargetBody(nn.Module):
    """What a checkpoint calls `model`."""

    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList([TargetLayer(config) for _ in range(config["num_hidden_layers"])])
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])


class Target(nn.Module):
    """Qwen3 causal language model, forward over whole sequences (no cache)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = TargetBody(config)
        if not config.get("tie_word_embeddings"):
            self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        inv_freq, self.rope_scale = rotary_table(config)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def head(self, hidden):
        """Logits of final-normed hidden states."""
        tied = self.config.get("tie_word_embeddings")
        return F.linear(hidden, self.model.embed_tokens.weight if tied else self.lm_head.weight)

    def forward(self, ids, taps=()):
        """ids [B, T] -> (final-normed hidden [B, T, h], features [B, T, len(taps) * h] or None).

        A tap i is the output of decoder layer i, before any following norm; features keep the order of `taps`.
        """
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        x = self.model.embed_tokens(ids)
        kept = {}
        for index, layer in enumerate(self.model.layers):
            x = layer(x, positions, self.inv_freq, self.rope_scale)
            if index in taps:
                kept[index] = x
        features = torch.cat([kept[index] for index in taps], -1) if taps else None
        return self.model.norm(x), features


class DraftLayer(TargetLayer):
    """A drafter layer: block rows see the context K/V and each other; DFlash2 wraps both sublayers in convolutions."""

    def __init__(self, config):
        super().__init__(config)
        kernel_size = config["dflash_config"].get("conv_kernel_size")
        group_size = config["dflash_config"].get("conv_group_size")
        self.attention_conv = self.mlp_conv = None
        if kernel_size and group_size:
            self.attention_conv = GroupedDynamicCausalConv(config["hidden_size"], kernel_size, group_size)
            self.mlp_conv = GroupedDynamicCausalConv(config["hidden_size"], kernel_size, group_size)

    @staticmethod
    def convolved(conv, x, sublayer, group):
        """sublayer(x), inside `conv` if there is one; `group` rows form a block, which no convolution crosses."""
        if conv is None:
            return sublayer(x)

        def split(t):
            return t.unflatten(-2, (-1, group)) if group else t

        def join(t):
            return t.flatten(-3, -2) if group else t

        x, dynamic = conv.prepare(split(x))
        return join(conv.finish(split(sublayer(join(x))), dynamic))

    def block(self, x, context_kv, positions, mask, inv_freq, scale, group=None):
        """x [..., R, h] block rows; context_kv (k, v) [..., C, kv_heads, D]; mask to [..., R, C + R], True = visible."""

        def attention(y):
            q, k, v = self.self_attn.qkv(y, positions, inv_freq, scale)
            k = torch.cat([context_kv[0], k], -3)
            v = torch.cat([context_kv[1], v], -3)
            return self.self_attn.attend(q, k, v, mask=mask)

        x = x + self.convolved(self.attention_conv, self.input_layernorm(x), attention, group)
        return x + self.convolved(self.mlp_conv, self.post_attention_layernorm(x), self.mlp, group)


class Drafter(nn.Module):
    """Any of the family; the config says which parts it has."""

    def __init__(self, config, target_hidden=None):
        super().__init__()
        nested = config["dflash_config"]
        # The DSpark keys live at top level or nested, where nested wins.
        config = {**config, **{key: nested[key] for key in DSPARK_KEYS if nested.get(key) is not None}}
        self.config = config
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.taps = nested["target_layer_ids"]
        self.fc = nn.Linear(len(self.taps) * (target_hidden or hidden), hidden, bias=False)
        self.hidden_norm = RMSNorm(hidden, eps)
        self.layers = nn.ModuleList([DraftLayer(config) for _ in range(config["num_hidden_layers"])])
        self.norm = RMSNorm(hidden, eps)
        has_selector = nested.get("selector_rank") and nested.get("selector_top_k")
        self.candidate_selector = Selector(config) if has_selector else None
        markov_type = config.get("markov_head_type", "vanilla")
        self.markov_head = MARKOV_HEADS[markov_type](config) if config.get("markov_rank") else None
        self.confidence_head = ConfidenceHead(config) if config.get("enable_confidence_head") else None
        inv_freq, self.rope_scale = rotary_table(config)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @property
    def block_size(self):
        return self.config["dflash_config"].get("block_size") or self.config["block_size"]

    @property
    def first_draft_row(self):
        """0 in the shifted layout, 1 in the in-place layout, whose row 0 drafts nothing."""
        return 0 if self.config["architectures"][0] in SHIFTED_ARCHITECTURES else 1

    def context(self, features, positions):
        """Context K/V of every layer, from the target's taps alone."""
        x = self.hidden_norm(self.fc(features))
        return [layer.self_attn.kv(x, positions, self.inv_freq, self.rope_scale) for layer in self.layers]

    def block(self, embeddings, context_kv, positions, masks, group=None):
        """Final-normed block rows. `masks`: one for all layers, or a list with one a layer."""
        x = embeddings
        for index, layer in enumerate(self.layers):
            mask = masks[index] if isinstance(masks, list) else masks
            x = layer.block(x, context_kv[index], positions, mask, self.inv_freq, self.rope_scale, group)
        return self.norm(x)

    def post(self, logits):
        """The config's scale and soft cap on the head's output."""
        logits = logits * self.config["dflash_config"].get("output_multiplier", 1.0)
        cap = self.config["dflash_config"].get("final_logit_softcapping")
        return torch.tanh(logits / cap) * cap if cap else logits
