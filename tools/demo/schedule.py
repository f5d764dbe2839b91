"""What both trainings share: a cosine schedule over as many steps as fit a time budget, and an optimizer step."""

import math
import time

import torch


def synchronize(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def make_optimizer(model, weight_decay):
    """AdamW without weight decay on vectors (norms, biases)."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [dict(params=matrices, weight_decay=weight_decay), dict(params=vectors, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)


class Schedule:
    """Times the steps from `first` on for 60 steps, then knows how many fit the budget.

    Until then the learning rate is warming up: 100 steps from 0 to `peak`; afterwards it falls along a cosine to
    `floor` * peak.
    """

    def __init__(self, seconds, peak, floor, first, total_steps, device):
        self.peak, self.floor, self.first, self.device = peak, floor, first, device
        self.total_steps = total_steps  # (seconds a step, seconds since the start) -> number of steps
        self.seconds, self.step, self.total = seconds, 0, None
        self.start = time.time()
        self.timed_from = None

    def running(self):
        return self.total is None or self.step < self.total

    def elapsed(self):
        return time.time() - self.start

    def learning_rate(self):
        """Call once at the beginning of each step."""
        if self.step == self.first:
            synchronize(self.device)
            self.timed_from = time.time()
        if self.step == self.first + 60:
            synchronize(self.device)
            per_step = (time.time() - self.timed_from) / 60
            self.total = self.total_steps(per_step, self.elapsed())
            print(f"{per_step * 1e3:.1f} ms/step, {self.total} steps", flush=True)
        rate = self.peak * min(1, (self.step + 1) / 100)
        if self.total is not None:
            cosine = 0.5 * (1 + math.cos(math.pi * self.step / self.total))
            rate *= cosine * (1 - self.floor) + self.floor
        return rate


def optimizer_step(optimizer, parameters, loss, learning_rate):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
