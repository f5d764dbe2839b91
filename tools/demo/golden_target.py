"""Fixtures of the targets, computed by the implementations of Hugging Face transformers."""

import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from golden_common import bf16, initialize, save_case

NUM_POSITIONS = 48
PROMPT_LENGTH = 16
NEW_TOKENS = 32
KEPT_KEYS = """
architectures model_type vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads
num_key_value_heads head_dim rope_theta rope_scaling rope_parameters rms_norm_eps tie_word_embeddings
max_position_embeddings hidden_act attention_bias mlp_bias
""".split()
WHAT = (
    "logits and taps for input_ids (tap.i = raw output of decoder layer i, tap.-1 = embedding output); greedy_after_16 "
    "continues the first 16 ids by 32 tokens."
)


def configurations():
    """(name, config, model class)"""
    yield (
        "target_qwen3_tied",
        Qwen3Config(
            vocab_size=320,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            rope_theta=10000.0,
            rms_norm_eps=1e-6,
            tie_word_embeddings=True,
            max_position_embeddings=512,
        ),
        Qwen3ForCausalLM,
    )
    yield (
        "target_qwen3_untied_headdim128",
        Qwen3Config(
            vocab_size=300,
            hidden_size=96,
            intermediate_size=160,
            num_hidden_layers=4,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=128,
            rope_theta=1000000.0,
            rms_norm_eps=1e-6,
            tie_word_embeddings=False,
            max_position_embeddings=512,
        ),
        Qwen3ForCausalLM,
    )
    yield (
        "target_llama3_scaled",
        LlamaConfig(
            vocab_size=320,
            hidden_size=128,
            intermediate_size=160,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=64,
            rope_theta=500000.0,
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
            max_position_embeddings=131072,
            rope_scaling=dict(
                rope_type="llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
        ),
        LlamaForCausalLM,
    )
    yield (
        "target_llama_plain_tied",
        LlamaConfig(
            vocab_size=320,
            hidden_size=128,
            intermediate_size=160,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            rope_theta=10000.0,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
            max_position_embeddings=256,
        ),
        LlamaForCausalLM,
    )


@torch.no_grad()
def run_with_taps(model, ids):
    """(output, raw output of each decoder layer), hidden states included."""
    taps = {}

    def keep(index):
        def hook(module, inputs, output):
            taps[index] = (output[0] if isinstance(output, tuple) else output).detach()

        return hook

    handles = [layer.register_forward_hook(keep(index)) for index, layer in enumerate(model.model.layers)]
    output = model(ids, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    return output, taps


@torch.no_grad()
def decode_greedily(model, ids):
    """(the next NEW_TOKENS ids, smallest gap between the two largest logits)"""
    margins = []
    for _ in range(NEW_TOKENS):
        logits = model(ids).logits[0, -1].float()
        best = logits.topk(2).values
        margins.append((best[0] - best[1]).item())
        ids = torch.cat([ids, logits.argmax().view(1, 1)], 1)
    return ids[0, -NEW_TOKENS:], min(margins)


def target_cases(seed, out, device):
    for name, config, model_class in configurations():
        generator = torch.Generator().manual_seed(seed * 77 + len(name))
        config._attn_implementation = "eager"  # the only way to choose it for a model built from a config
        model = model_class(config).float().eval()
        initialize(model, generator)
        model = model.to(device)
        ids = torch.randint(0, config.vocab_size, (1, NUM_POSITIONS), generator=generator).to(device)
        output, taps = run_with_taps(model, ids)
        io = dict(input_ids=ids[0].int(), logits=output.logits[0].float())
        io |= {f"tap.{index}": tap.view(NUM_POSITIONS, -1).float() for index, tap in taps.items()}
        io["tap.-1"] = output.hidden_states[0][0].float()
        assert torch.equal(io["tap.0"], output.hidden_states[1][0].float())
        greedy, margin = decode_greedily(model, ids[:, :PROMPT_LENGTH])
        io["greedy_after_16"] = greedy.int()
        tied = config.tie_word_embeddings
        tensors = {
            key: bf16(tensor)
            for key, tensor in model.state_dict().items()
            if "rotary" not in key and not (tied and key == "lm_head.weight")
        }
        full = json.loads(config.to_json_string(use_diff=False))
        kept = {key: value for key, value in full.items() if key in KEPT_KEYS}
        kept |= dict(architectures=[model_class.__name__], torch_dtype="bfloat16")
        save_case(out / name, kept, tensors, io, dict(kind="target", what=WHAT, greedy_min_margin=margin))
        print(name, f"greedy min margin {margin:.4f}", flush=True)
