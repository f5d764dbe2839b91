#!/usr/bin/env python3
"""Trains the demo drafters (DFlash, DFlash2, DSpark) for the frozen demo target; writes a checkpoint folder each.

Labels are the target's own next-token distributions (distillation) on text, every third batch sampled from the target
itself. A batch holds several anchors a text; their blocks are drafted side by side and see the text before the anchor.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import corpus
from ref_decode import MASK_ID, TAPS, decode_drafted
from ref_models import Drafter, Target
from schedule import Schedule, make_optimizer, optimizer_step

BASE = dict(
    attention_bias=False,
    attention_dropout=0.0,
    bos_token_id=None,
    eos_token_id=0,
    dtype="bfloat16",
    head_dim=64,
    hidden_act="silu",
    hidden_size=384,
    initializer_range=0.02,
    intermediate_size=1024,
    layer_types=["full_attention"] * 2,
    max_position_embeddings=2048,
    max_window_layers=2,
    model_type="qwen3",
    num_attention_heads=6,
    num_hidden_layers=2,
    num_key_value_heads=2,
    num_target_layers=8,
    rms_norm_eps=1e-6,
    rope_scaling=None,
    rope_theta=10000.0,
    sliding_window=None,
    tie_word_embeddings=False,
    use_cache=True,
    use_sliding_window=False,
    vocab_size=4160,
)
COMMON = dict(mask_token_id=MASK_ID, target_layer_ids=list(TAPS))
CONFIGS = {
    "dflash": dict(BASE, architectures=["DFlashDraftModel"], block_size=8, dflash_config=COMMON),
    "dflash2": dict(
        BASE,
        architectures=["DFlash2DraftModel"],
        is_causal=False,
        dflash_config=dict(
            block_size=8, **COMMON, conv_kernel_size=2, conv_group_size=16, selector_rank=64, selector_top_k=16
        ),
    ),
    "dspark": dict(
        BASE,
        architectures=["DSparkDraftModel"],
        block_size=7,
        dflash_config=dict(
            COMMON,
            projector_type="dspark",
            attention_mode="gqa",
            markov_rank=64,
            markov_head_type="vanilla",
            enable_confidence_head=True,
            confidence_head_with_markov=True,
            confidence_head_alpha=1.0,
        ),
    ),
}
KEEP_INIT = ("markov", "conv", "selector", "confidence")  # parts that initialize themselves


def load_target(folder, device):
    """The frozen BF16 target of a checkpoint folder."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    tensors = {}
    for file in sorted(set(index["weight_map"].values())):
        tensors.update(load_file(folder / file))
    target = Target(json.loads((folder / "config.json").read_text()))
    target.load_state_dict(tensors)
    return target.to(device, torch.bfloat16).eval().requires_grad_(False)


def draft_loss(target, drafter, x, anchors, features, hidden):
    """x [B, L] text, anchors [B, A] positions in it; features and hidden: the target's on x. Returns (loss, figures)."""
    (batch, length), rows, first = x.shape, drafter.block_size, drafter.first_draft_row
    num_anchors, device = anchors.shape[1], x.device
    columns = anchors[..., None] + torch.arange(rows, device=device)  # [B, A, R] positions of the block rows
    ids = torch.full((batch, num_anchors, rows), MASK_ID, device=device)
    ids[..., 0] = x.gather(1, anchors)
    context_positions = torch.arange(length, device=device)[None].expand(batch, -1)
    # A row sees the context strictly before its anchor, and its own block.
    sees_context = context_positions[:, None, :] < anchors.repeat_interleave(rows, 1)[..., None]
    block_of_row = torch.arange(num_anchors, device=device).repeat_interleave(rows)
    sees_rows = (block_of_row[:, None] == block_of_row[None])[None].expand(batch, -1, -1)
    visible = torch.cat([sees_context, sees_rows], -1)[:, None]
    drafted = columns[..., first:] + (1 - first)  # [B, A, n] the positions that are drafted
    with torch.autocast(device.type, torch.bfloat16):
        context = drafter.context(features, context_positions)
        embeddings = target.model.embed_tokens(ids.flatten(1))
        h = drafter.block(embeddings, context, columns.flatten(1), visible, group=rows)
        h = h.view(batch, num_anchors, rows, -1)[:, :, first:]
        logits = drafter.post(target.head(h))
        before = (drafted - 1).flatten(1)
        target_hidden = hidden.gather(1, before[..., None].expand(-1, -1, hidden.shape[-1])).view(*drafted.shape, -1)
        target_logits = target.head(target_hidden)
    previous = x.gather(1, before).view(drafted.shape)  # teacher-forced
    p = target_logits.float().softmax(-1)
    if drafter.markov_head is not None:
        logits = logits + drafter.markov_head(previous)
    log_q = logits.float().log_softmax(-1)
    cross_entropy = -(p * log_q).sum(-1)
    total_variation = 0.5 * (p - log_q.exp()).abs().sum(-1)
    weights = torch.exp(-torch.arange(rows - first, device=device) / 4.0)  # early drafts matter most
    loss = ((cross_entropy + 2 * total_variation) * weights).mean()
    figures = {}
    pick = logits.argmax(-1)
    if drafter.candidate_selector is not None:
        candidates, scores = drafter.candidate_selector.scores(h.float(), logits.float().detach(), previous)
        p_candidates = p.gather(-1, candidates)
        loss = loss + ((-(p_candidates * scores.log_softmax(-1)).sum(-1)) * weights).mean()
        figures["recall"] = p_candidates.sum(-1).clamp_max(1).mean().item()
        pick = candidates.gather(-1, scores.argmax(-1, keepdim=True))[..., 0]
    if drafter.confidence_head is not None:
        confidence = drafter.confidence_head(h.float(), drafter.markov_head.markov_w1(previous))
        accept_rate = (1 - total_variation).detach().clamp(0, 1)
        loss = loss + F.binary_cross_entropy_with_logits(confidence, accept_rate)
    equal = (pick == target_logits.argmax(-1)).float()
    figures["teacher_forced_length"] = 1 + equal.cumprod(-1).sum(-1).mean().item()
    return loss, figures


class Trainer:
    """Target, data and options that the drafters share."""

    def __init__(self, target, training, arguments):
        self.target, self.training, self.arguments = target, training, arguments
        self.device = torch.device(arguments.device)
        self.target_forward = torch.compile(torch.no_grad()(lambda x: target(x, TAPS)))

    def windows(self, count, length):
        starts = torch.randint(0, len(self.training) - length, (count,), device=self.device)
        return self.training[starts[:, None] + torch.arange(length, device=self.device)].long()

    @torch.no_grad()
    def sample_texts(self, temperature=0.8):
        """Continuations of 64-token prompts to 192 tokens by the target itself; no cache, so short."""
        texts = torch.zeros(self.arguments.own_texts, 192, dtype=torch.long, device=self.device)
        texts[:, :64] = self.windows(len(texts), 64)
        for position in range(64, 192):
            hidden, _ = self.target_forward(texts)
            logits = self.target.head(hidden[:, position - 1]).float()
            texts[:, position] = torch.multinomial((logits / temperature).softmax(-1), 1)[:, 0]
        return texts

    def train(self, name):
        """Returns the trained drafter in BF16."""
        arguments, seconds = self.arguments, self.arguments.seconds
        torch.manual_seed(1)
        drafter = Drafter(CONFIGS[name]).to(self.device)
        for parameter_name, parameter in drafter.named_parameters():
            if parameter.dim() == 2 and not any(part in parameter_name for part in KEEP_INIT):
                torch.nn.init.normal_(parameter, std=0.02)
        print(name, "params", sum(p.numel() for p in drafter.parameters()) / 1e6, "M", flush=True)
        optimizer = make_optimizer(drafter, weight_decay=0.01)
        schedule = Schedule(
            seconds,
            peak=2e-3,
            floor=0.02,
            first=60,
            total_steps=lambda per_step, elapsed: max(300, int(seconds / (per_step * 1.10))),
            device=self.device,
        )
        own_texts = None
        while schedule.running() and schedule.elapsed() <= seconds * 1.25:
            step = schedule.step
            if step % 240 == 0:
                own_texts = self.sample_texts()
            if step % 3 == 0:
                x = own_texts[torch.randint(0, len(own_texts), (arguments.batch,), device=self.device)]
            else:
                x = self.windows(arguments.batch, arguments.length)
            # From position 8 on, with room for the block behind.
            last = x.shape[1] - drafter.block_size - 2 - 8
            anchors = torch.rand(len(x), last, device=self.device).topk(arguments.anchors, -1).indices.sort(-1).values + 8
            hidden, features = self.target_forward(x)
            learning_rate = schedule.learning_rate()
            loss, figures = draft_loss(self.target, drafter, x, anchors, features, hidden)
            optimizer_step(optimizer, drafter.parameters(), loss, learning_rate)
            if step % 300 == 0 or step + 1 == schedule.total:
                rounded = {key: round(value, 3) for key, value in figures.items()}
                print(name, step, f"{loss.item():.3f}", rounded, f"{schedule.elapsed():.0f}s", flush=True)
            schedule.step += 1
        return drafter.bfloat16().eval()


def save(drafter, config, out):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in drafter.state_dict().items()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(config, indent=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path, help="folder of train_target.py; drafters go beside it, NAME-dflash ...")
    parser.add_argument("seconds", type=float, help="time to train each drafter")
    parser.add_argument("--drafters", nargs="+", choices=list(CONFIGS), default=list(CONFIGS))
    parser.add_argument("--batch", type=int, default=48, help="texts a step (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens a text (default: %(default)s)")
    parser.add_argument("--anchors", type=int, default=32, help="blocks a text (default: %(default)s)")
    parser.add_argument("--own-texts", type=int, default=576, help="texts sampled at a time (default: %(default)s)")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    target = load_target(arguments.target, arguments.device)
    _, tokens = corpus.encode_corpus(arguments.target / "tokenizer.json")
    training, held_out = (torch.from_numpy(part).to(arguments.device) for part in corpus.split_held_out(tokens))
    starts = torch.randint(0, len(held_out) - 200, (24,), generator=torch.Generator().manual_seed(7))
    prompts = [held_out[start : start + 96].long() for start in starts]
    trainer = Trainer(target, training, arguments)
    for name in arguments.drafters:
        drafter = trainer.train(name)
        save(drafter, CONFIGS[name], arguments.target.with_name(f"{arguments.target.name}-{name}"))
        committed = [count for prompt in prompts for count in decode_drafted(target, drafter, prompt, 128)[1]]
        print(name, "greedy acceptance length on held-out text", round(sum(committed) / len(committed), 3), flush=True)


if __name__ == "__main__":
    main()
