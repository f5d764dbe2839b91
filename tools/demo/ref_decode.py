"""Greedy decoding with the reference models, plain and with drafts. No caches: every pass runs the whole sequence."""

import torch

TAPS = (1, 4, 6)
MASK_ID = 4100  # an embedding row beyond the tokenizer's ids
END_OF_TEXT = 0


@torch.no_grad()
def propose(target, drafter, ids, features):
    """Drafts after ids [1, n], whose last is the anchor; features hold the taps of all positions before it."""
    device, n, rows = ids.device, ids.shape[1], drafter.block_size
    context = drafter.context(features[:, : n - 1], torch.arange(n - 1, device=device)[None])
    block = torch.full((1, rows), MASK_ID, device=device)
    block[0, 0] = ids[0, -1]
    positions = torch.arange(n - 1, n - 1 + rows, device=device)[None]
    hidden = drafter.block(target.model.embed_tokens(block), context, positions, None)[0, drafter.first_draft_row :]
    logits = drafter.post(target.head(hidden)).float()
    drafts, previous = [], ids[0, -1]
    for row in range(len(hidden)):
        if drafter.candidate_selector is not None:
            candidates, scores = drafter.candidate_selector.scores(hidden[row], logits[row], previous)
            previous = candidates[scores.float().argmax()]
        elif drafter.markov_head is not None:
            previous = (logits[row] + drafter.markov_head(previous).float()).argmax()
        else:
            previous = logits[row].argmax()
        drafts.append(previous)
    return torch.stack(drafts)


@torch.no_grad()
def decode_drafted(target, drafter, prompt, new_tokens, stop_id=None):
    """Returns (the tokens after `prompt` [n], how many tokens each cycle committed, bonus included)."""
    ids = prompt[None]
    hidden, features = target(ids, TAPS)
    ids = torch.cat([ids, target.head(hidden[:, -1]).float().argmax(-1)[None]], 1)
    end = prompt.numel() + new_tokens
    committed = []
    while ids.shape[1] < end and ids[0, -1] != stop_id:
        n = ids.shape[1]
        drafts = propose(target, drafter, ids, features)
        verified = torch.cat([ids, drafts[None]], 1)
        hidden, taps = target(verified, TAPS)
        choices = target.head(hidden[0, n - 1 :]).float().argmax(-1)
        accepted = int((drafts == choices[:-1]).long().cumprod(0).sum())
        committed.append(accepted + 1)
        ids = torch.cat([verified[:, : n + accepted], choices[accepted : accepted + 1][None]], 1)
        features = taps[:, : ids.shape[1] - 1]
    return ids[0, prompt.numel() : end].tolist(), committed


@torch.no_grad()
def decode_plain(target, prompt, new_tokens, stop_id=None):
    """Returns (the tokens after `prompt` [n], the gap between the two largest logits of each)."""
    ids = prompt[None]
    margins = []
    for _ in range(new_tokens):
        logits = target.head(target(ids)[0][:, -1])[0].float()
        best = logits.topk(2).values
        margins.append((best[0] - best[1]).item())
        ids = torch.cat([ids, logits.argmax().view(1, 1)], 1)
        if ids[0, -1] == stop_id:
            break
    return ids[0, prompt.numel() :].tolist(), margins
