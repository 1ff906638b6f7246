#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples without replacement (stochastic beam search: Kool, van Hoof, Welling, ICML 2019) against samples, in
PyTorch, as docs/experiments.md tells. For TSP models with a prior.

    python3 bench/results/without_replacement.py MODEL.safetensors SET.npy INSTANCES SAMPLES TEMPERATURE ...

All spread their samples over the 8 symmetries of the square. The samples are as many, and as many as the engine draws
with the same number of evaluations of the network: samples that chose the same cities so far share one, those without
replacement never do. Each of these may be at most POOL times as many. A line a temperature: the mean best cost of each,
and the mean differences with their 95% confidence intervals.
"""
import os
import pathlib
import sys

os.environ["POINTSMAN_TWIN_TUNED"] = "1"  # the twin's tuning needs a process of its own
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_twin  # noqa: E402

H = torch_twin.H
POOL = 8


def dihedral(points, copy):
    x, y = points[:, 0], points[:, 1]
    x, y = (1 - x if copy & 1 else x), (1 - y if copy & 2 else y)
    return torch.stack([y, x] if copy & 4 else [x, y], 1)


class Beam:
    """k different prefixes of one instance, in the order of their perturbed log-probabilities; rows that are not `alive`
    wait until there are so many."""

    def __init__(self, k):
        self.log_p, self.perturbed, self.alive = torch.zeros(k), torch.zeros(k), torch.zeros(k, dtype=torch.bool)
        self.alive[0] = True

    def extend(self, log_p, closed):
        """log_p [k, n] of every next city -> (rows, cities) of the k best continuations: algorithm 1 of the paper."""
        n = log_p.shape[1]
        log_p = self.log_p[:, None] + log_p
        gumbel = torch.where(closed, torch.tensor(-1e30), log_p - torch.empty_like(log_p).exponential_().log())
        most = gumbel.max(1, keepdim=True)[0]
        v = self.perturbed[:, None] - gumbel + torch.log1p(-torch.exp((gumbel - most).clamp(max=0)))
        perturbed = self.perturbed[:, None] - v.relu() - torch.log1p(torch.exp(-v.abs()))
        perturbed[closed | ~self.alive[:, None]] = -torch.inf
        top, chosen = perturbed.flatten().topk(len(self.alive))
        self.alive = top > -torch.inf
        chosen = torch.where(self.alive, chosen, chosen[0])  # the others wait as copies of the first
        self.perturbed = torch.where(self.alive, top, torch.zeros(()))
        self.log_p = log_p.flatten()[chosen]
        return torch.div(chosen, n, rounding_mode="floor"), chosen % n


@torch.no_grad()
def draw(twin, points, k, temperature, without_replacement):
    """k tours of one instance [n, 2] and their costs."""
    f, n, rows = twin.actor, points.shape[0], torch.arange(k)
    references, h, c = twin.encode(f, points[None])
    projected = twin.project(f, references)
    inputs = torch.addmm(f["decoder"]["bias"], points, f["decoder"]["in"])
    weighted = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist") * -f["prior"]
    h, c = h.repeat(k, 1), c.repeat(k, 1)
    closed, tours, beam = torch.zeros(k, n, dtype=torch.bool), torch.zeros(k, n, dtype=torch.long), Beam(k)
    x, recurrent, prior = f["start"].expand(k, 4 * H), h @ f["decoder"]["hh"], None
    for t in range(n):
        walls = torch.zeros(k, n).masked_fill(closed, -torch.inf)
        recurrent, c, log_p = twin.step(f, projected, x, recurrent, c, walls, prior, (~closed).float(),
                                        torch.tensor(float(n - t)))
        log_p = torch.log_softmax(log_p / temperature, 1)
        if without_replacement:
            parents, cities = beam.extend(log_p, closed)
            recurrent, c, closed, tours = recurrent[parents], c[parents], closed[parents], tours[parents]
        else:
            cities = (log_p.exp() / torch.empty_like(log_p).exponential_()).argmax(1)
        tours[:, t] = cities
        closed[rows, cities] = True
        x, prior = inputs[cities], weighted[cities]
    return tours.to(torch.int16).numpy(), torch_twin.tour_length(points.expand(k, n, 2), tours).numpy()


def evaluations(tours):
    """Of the network for the first 1, 2, .. tours: their different beginnings with two cities or more left."""
    known, counts = set(), []
    for tour in tours:
        known.update(tour[:t].tobytes() for t in range(len(tour) - 1))
        counts.append(len(known))
    return counts


def compare(twin, points, k, temperature):
    """Best costs of k samples, of as many evaluations as the third takes, and of k without replacement."""
    tours, costs = draw(twin, points, POOL * k, temperature, False)
    others, without = draw(twin, points, k, temperature, True)
    drawn = max(int(np.searchsorted(evaluations(tours), evaluations(others)[-1], side="right")), 1)
    return costs[:k].min(), costs[:drawn].min(), without.min(), drawn / k


def main():
    model, data, count, samples = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(5)
    twin = torch_twin.Twin(model)
    instances = torch.tensor(np.load(data)[:count].astype("f4"))
    for temperature in map(float, sys.argv[5:]):
        found = np.array([[compare(twin, dihedral(points, copy), samples // 8, temperature) for copy in range(8)]
                          for points in instances])
        best, times = found[:, :, :3].min(1), found[:, :, 3].mean()
        print(f"T = {temperature:g}: samples {best[:, 0].mean():.4f}, {times:.1f} times as many {best[:, 1].mean():.4f}, "
              f"without replacement {best[:, 2].mean():.4f}", end="")
        for name, difference in ("samples", best[:, 2] - best[:, 0]), ("those", best[:, 2] - best[:, 1]):
            print(f"; less {name} {difference.mean():.4f} +- {1.96 * difference.std(ddof=1) / len(best) ** 0.5:.4f}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
