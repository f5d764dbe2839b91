"""The configs of the drafter fixtures: one a behaviour, so that a wrong tensor names its cause."""

BASE = dict(
    attention_bias=False,
    attention_dropout=0.0,
    bos_token_id=None,
    eos_token_id=0,
    dtype="bfloat16",
    head_dim=64,
    hidden_act="silu",
    hidden_size=64,
    initializer_range=0.02,
    intermediate_size=96,
    max_position_embeddings=4096,
    model_type="qwen3",
    num_attention_heads=2,
    num_hidden_layers=2,
    num_key_value_heads=1,
    num_target_layers=6,
    rms_norm_eps=1e-6,
    rope_scaling=None,
    rope_theta=10000.0,
    sliding_window=None,
    tie_word_embeddings=False,
    use_sliding_window=False,
    vocab_size=320,
)
SLIDING_THEN_FULL = ["sliding_attention", "full_attention"]
SLIDING = ["sliding_attention"] * 2
DFLASH2 = dict(conv_kernel_size=2, conv_group_size=16, selector_rank=32, selector_top_k=8)


def case(name, architecture, block_size=8, nested=None, **keys):
    """(name, config): BASE with `keys`, and `nested` in its dflash_config."""
    config = dict(BASE, layer_types=["full_attention"] * 2, block_size=block_size)
    config["dflash_config"] = dict(mask_token_id=310, target_layer_ids=[1, 3, 4])
    config["dflash_config"].update(nested or {})
    config["architectures"] = [architecture]
    config.update(keys)
    return name, config


def dflash(name, block_size=8, **keys):
    return case(name, "DFlashDraftModel", block_size, **keys)


def dflash2(name, block_size=8, nested=None, **keys):
    return case(name, "DFlash2DraftModel", block_size, dict(DFLASH2, **(nested or {})), **keys)


def window(size, layer_types, **keys):
    return dict(layer_types=layer_types, sliding_window=size, use_sliding_window=True, **keys)


# The first list. A case's place in its list is part of its seed: append, never insert.
CASES = [
    dflash("dflash_plain"),
    dflash(
        "dflash_block16_headdim128_theta_nested",
        16,
        head_dim=128,
        rope_theta=None,
        rope_parameters=dict(rope_theta=500000.0, rope_type="default"),
        rms_norm_eps=1e-5,
    ),
    dflash(
        "dflash_yarn",
        rope_theta=150000.0,
        rope_scaling=dict(
            rope_type="yarn", factor=32.0, original_max_position_embeddings=4096, beta_fast=32.0, beta_slow=1.0
        ),
    ),
    dflash("dflash_window_causal", **window(16, SLIDING_THEN_FULL)),
    dflash("dflash_window_noncausal", **window(16, SLIDING, is_causal=False)),
    dflash(
        "dflash_bias_gqa4_unsorted_taps",
        attention_bias=True,
        num_attention_heads=8,
        num_key_value_heads=2,
        nested=dict(target_layer_ids=[4, 0, 2, 3]),
    ),
    dflash(
        "dflash_scale_softcap",
        nested=dict(input_embedding_scale=8.0, output_multiplier=0.25, final_logit_softcapping=5.0),
    ),
    dflash2("dflash2_plain", nested=dict(block_size=8), is_causal=False),
    dflash2(
        "dflash2_window_softcap",
        16,
        nested=dict(block_size=16, selector_top_k=16, output_multiplier=0.5, final_logit_softcapping=20.0),
        **window(24, SLIDING, is_causal=False),
    ),
    dflash2(
        "dflash2_kernel3_group32",
        nested=dict(block_size=8, conv_kernel_size=3, conv_group_size=32, selector_top_k=5, selector_rank=24),
        is_causal=False,
    ),
    case(
        "dspark_vanilla_nested",
        "DSparkDraftModel",
        7,
        nested=dict(
            projector_type="dspark",
            markov_rank=32,
            markov_head_type="vanilla",
            enable_confidence_head=True,
            confidence_head_with_markov=True,
        ),
    ),
    case(
        "dspark_gated_flat",
        "Qwen3DSparkModel",
        7,
        markov_rank=32,
        markov_head_type="gated",
        enable_confidence_head=True,
        confidence_head_with_markov=True,
    ),
    case(
        "dspark_rnn_flat",
        "Qwen3DSparkModel",
        7,
        markov_rank=32,
        markov_head_type="rnn",
        enable_confidence_head=True,
        confidence_head_with_markov=False,
    ),
    case(
        "dspark_no_markov",
        "Qwen3DSparkModel",
        7,
        nested=dict(target_layer_ids=[-1, 2, 4]),
        markov_rank=0,
        enable_confidence_head=False,
    ),
]

# The second list: corners of windows, causality and block size.
EXTRA_CASES = [
    dflash("dflash_window_below_block", 16, **window(5, SLIDING_THEN_FULL, is_causal=False)),
    dflash("dflash_causal_full_layers", is_causal=True),
    dflash(
        "dflash_window_switched_off", layer_types=SLIDING_THEN_FULL, sliding_window=16, use_sliding_window=False
    ),
    dflash2("dflash2_sliding_default_causal", nested=dict(block_size=8), **window(7, SLIDING)),
    dflash2("dflash2_block_nested_wins", 16, nested=dict(block_size=6, selector_top_k=4), is_causal=False),
]


def numbered_cases():
    """(number that goes into the seed, name, config) of all cases."""
    for first, cases in ((0, CASES), (50, EXTRA_CASES)):
        for place, (name, config) in enumerate(cases):
            yield first + place, name, config
