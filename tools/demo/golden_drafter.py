"""Expectations of the drafter fixtures: one propose of a drafter, float32, everything on the way recorded."""

import torch
import torch.nn.functional as F

from golden_common import bf16, initialize, random_normal
from ref_models import Drafter

NUM_POSITIONS = 64
CONTEXT_LENGTHS = [1, 37, 42, 64]
SHORT_ROWS = 4
WHAT = (
    "Each cycleK proposes after features[:context_lengths[K]] with anchor anchors[K] at that position. short4: cycle 1 "
    "with only 4 block rows. margin: gap between best and second best choice, so that near ties can be told."
)


class Inputs:
    """What a fixture hands to the drafter, BF16 values in float32."""

    def __init__(self, config, generator, device):
        vocab, hidden = config["vocab_size"], config["hidden_size"]
        width = len(config["dflash_config"]["target_layer_ids"]) * hidden
        self.embed_tokens = bf16(random_normal(generator, vocab, hidden, std=0.7)).float().to(device)
        self.lm_head = bf16(random_normal(generator, vocab, hidden, std=1.5 / hidden**0.5)).float().to(device)
        self.features = bf16(random_normal(generator, NUM_POSITIONS, width, std=2.0)).float().to(device)
        self.anchors = torch.randint(0, 300, (len(CONTEXT_LENGTHS),), generator=generator).tolist()

    def tensors(self):
        return dict(
            embed_tokens=bf16(self.embed_tokens),
            lm_head=bf16(self.lm_head),
            features=bf16(self.features),
            anchors=torch.tensor(self.anchors, dtype=torch.int32),
            context_lengths=torch.tensor(CONTEXT_LENGTHS, dtype=torch.int32),
        )


def build_drafter(config, generator, device):
    drafter = Drafter(config)
    initialize(drafter, generator)
    return drafter.to(device).eval()


def with_weights(config, tensors, device):
    """A drafter with these weights, whatever their dtype."""
    drafter = Drafter(config)
    drafter.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return drafter.to(device).eval()


def layer_masks(config, anchor_position, rows, device):
    """For each layer, which of the context rows 0..s-1 and block rows s.. each block row sees: [1, rows, s + rows]."""
    masks = []
    for layer_type in config["layer_types"]:
        slides = layer_type == "sliding_attention"
        causal = config["is_causal"] if config.get("is_causal") is not None else slides
        query = anchor_position + torch.arange(rows)[:, None]
        key = torch.arange(anchor_position + rows)[None]
        mask = torch.ones(rows, anchor_position + rows, dtype=torch.bool)
        if causal:
            mask &= key <= query
        if slides and config.get("use_sliding_window") is not False:
            mask &= query - key < config["sliding_window"]
            mask &= key - query < config["sliding_window"]
        masks.append(mask[None].to(device))
    return masks


def choose(drafter, hidden, logits, anchor):
    """Picks the drafts one after another. Returns the expectations that belong to the choice."""
    previous, state = torch.tensor(anchor, device=hidden.device), None
    drafts, candidates, selector_scores, corrected, confidence = [], [], [], [], []
    for row_hidden, row_logits in zip(hidden, logits):
        if drafter.confidence_head is not None:
            embedding = drafter.markov_head.markov_w1(previous)
            confidence.append(drafter.confidence_head(row_hidden, embedding))
        if drafter.candidate_selector is not None:
            ids, scores = drafter.candidate_selector.scores(row_hidden, row_logits, previous)
            candidates.append(ids)
            selector_scores.append(scores)
            previous = ids[scores.argmax()]
        elif drafter.markov_head is not None:
            correction, state = drafter.markov_head.step(previous, row_hidden, state)
            corrected.append(row_logits + correction)
            previous = corrected[-1].argmax()
        else:
            previous = row_logits.argmax()
        drafts.append(previous)
    expected = {"drafts": torch.stack(drafts).int()}
    if candidates:
        expected["candidates"] = torch.stack(candidates).int()
        expected["selector_scores"] = torch.stack(selector_scores)
        expected["q_T0.7"] = (expected["selector_scores"] / 0.7).softmax(-1)
    if corrected:
        expected["corrected_logits"] = torch.stack(corrected)
    if confidence:
        expected["confidence_logits"] = torch.stack(confidence)
    return expected


def choice_rows(expected):
    """The scores that a draft is the argmax of."""
    return expected.get("selector_scores", expected.get("corrected_logits", expected["logits"]))


@torch.no_grad()
def propose(config, drafter, inputs, cycle, rows=None, lm_head=None):
    """Expectations of the propose after CONTEXT_LENGTHS[cycle] positions; `rows` for a block shorter than trained."""
    device = inputs.features.device
    anchor_position, anchor = CONTEXT_LENGTHS[cycle], inputs.anchors[cycle]
    rows = rows or drafter.block_size
    context = drafter.context(inputs.features[:anchor_position], torch.arange(anchor_position, device=device))
    ids = torch.full((rows,), config["dflash_config"]["mask_token_id"], device=device)
    ids[0] = anchor
    embeddings = inputs.embed_tokens[ids] * config["dflash_config"].get("input_embedding_scale", 1.0)
    positions = torch.arange(anchor_position, anchor_position + rows, device=device)
    masks = layer_masks(config, anchor_position, rows, device)
    hidden = drafter.block(embeddings, context, positions, masks)
    drafting = hidden[drafter.first_draft_row :]
    logits = drafter.post(F.linear(drafting, inputs.lm_head if lm_head is None else lm_head))

    expected = {f"context_k.{layer}": k for layer, (k, _) in enumerate(context)}
    expected |= {f"context_v.{layer}": v for layer, (_, v) in enumerate(context)}
    expected |= {"hidden": hidden, "logits": logits}
    expected |= choose(drafter, drafting, logits, anchor)
    best = choice_rows(expected).topk(2, -1).values
    expected["margin"] = best[:, 0] - best[:, 1]
    return expected


def without_context(expected):
    return {name: tensor for name, tensor in expected.items() if not name.startswith("context_")}


def plain_case(config, generator, device):
    """Returns (drafter, inputs, io tensors, smallest relative margin) of one seed."""
    drafter = build_drafter(config, generator, device)
    inputs = Inputs(config, generator, device)
    io, margins = inputs.tensors(), []
    for cycle in range(len(CONTEXT_LENGTHS)):
        expected = propose(config, drafter, inputs, cycle)
        margins.append((expected["margin"].min() / choice_rows(expected).std()).item())
        if cycle != 1:  # context K/V of one cycle is enough
            expected = without_context(expected)
        io |= {f"cycle{cycle}.{name}": tensor for name, tensor in expected.items()}
    expected = propose(config, drafter, inputs, 1, rows=SHORT_ROWS)
    margins.append((expected["margin"].min() / expected["logits"].std()).item())
    io |= {f"short4.{name}": tensor for name, tensor in without_context(expected).items()}
    return drafter, inputs, io, min(margins)
