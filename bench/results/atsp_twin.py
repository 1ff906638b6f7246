#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trial in PyTorch of the network on asymmetric TSPs: attention encoder, pointer decoder, given tours.

  pointsman generate atsp -n 20 -b 150000 -s 9300 -o a20.npy
  pointsman solve a20.npy --input-format matrix --problem atsp --mode local --kicks 60 --format npy -o a20.tours.npy
  pointsman generate atsp -n 20 -b 1000 -s 4321 -o v20.npy
  pointsman solve v20.npy --input-format matrix --problem atsp --mode local --format npy -o v20.tours.npy
  atsp_twin.py a20.npy a20.tours.npy v20.npy v20.tours.npy > curve.jsonl

Items of a matrix have no coordinates. They get as features, of the matrix and of its reduced costs, the mean and the five smallest
numbers of their row and column, and random codes (Kwon et al. 2021). --pairs adds w M_ij + w' M_ji to the scores of each head.
The prior adds to a candidate's logit five numbers of the matrix and its reduced cost in the assignment problem of what is left:
M_ij - u_i - v_j with entropic duals u and v (Sinkhorn), which a few iterations carry from step to step."""
import argparse
import json
import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, SMALLEST = 128, 8, 5
SCALE = 10.0  # of the matrix, whose entries lie between 0 and 1
FAR = 100.0   # no way


def duals(ways, closed_rows, closed_columns, v, epsilon, iterations):
    """[B, n, 1] and [B, 1, n] of the entropic assignment problem; rows and columns that are closed take no part."""
    for _ in range(iterations):
        u = -epsilon * torch.logsumexp((v - ways - closed_columns) / epsilon, 2, keepdim=True)
        v = -epsilon * torch.logsumexp((u - ways - closed_rows) / epsilon, 1, keepdim=True)
    return u, v


def statistics(matrix, ways):
    """[B, n, 2 + 2 SMALLEST] mean and smallest numbers of rows and columns."""
    rows, columns = ways.sort(2).values[..., :SMALLEST], ways.sort(1).values[:, :SMALLEST].transpose(1, 2)
    return torch.cat([matrix.mean(2, keepdim=True), matrix.mean(1).unsqueeze(2), rows, columns], 2)


class Layer(nn.Module):

    def __init__(self, has_pairs):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.forward_part = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.has_pairs = has_pairs
        bias = torch.zeros(HEADS, 2)  # half of the heads begin with the ways out, half with the ways in
        bias[:HEADS // 2, 0] = bias[HEADS // 2:, 1] = -1.0
        self.bias = nn.Parameter(bias)

    def forward(self, x, matrix):
        batch, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        if self.has_pairs:
            out, back = self.bias.view(1, HEADS, 2, 1, 1).unbind(2)
            scores = scores + out * matrix.unsqueeze(1) + back * matrix.transpose(1, 2).unsqueeze(1)
        x = x + self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(batch, n, WIDTH))
        return x + self.forward_part(self.norm2(x))


class Twin(nn.Module):

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.embedding = nn.Linear(4 * (1 + SMALLEST) + options.codes, WIDTH)
        self.layers = nn.ModuleList([Layer(options.pairs) for _ in range(options.layers)])
        self.norm, self.cell, self.start = nn.LayerNorm(WIDTH), nn.LSTMCell(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.glimpse_q, self.glimpse_k = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.pointer_q, self.pointer_k = nn.Linear(2 * WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.glimpse_v = nn.Parameter(torch.randn(WIDTH) / math.sqrt(WIDTH))
        self.pointer_v = nn.Parameter(torch.randn(WIDTH) / math.sqrt(WIDTH))
        self.cross = nn.Linear(WIDTH, WIDTH, bias=False)
        # distance, cheapest open way into the candidate and on from it, its way home, reduced costs of all and of what is left
        self.prior = nn.Parameter(torch.tensor([-1.0, 0.0, 0.0, 0.0, -2.0, -3.0]))

    def encode(self, matrix, reduced, far):
        codes = torch.rand(matrix.shape[0], matrix.shape[1], self.options.codes)
        x = self.embedding(torch.cat([statistics(matrix, matrix + far), codes, statistics(reduced, reduced + far)], 2))
        for layer in self.layers:
            x = layer(x, reduced)
        return self.norm(x)

    def forward(self, matrix, tours=None):
        """log p of the tours [B, n] from their first cities; or, without, greedy tours from city 0."""
        o, (batch, n, _) = self.options, matrix.shape
        matrix, every, far = SCALE * matrix, torch.arange(batch), FAR * torch.eye(n)
        none, v = torch.zeros(1, 1, 1), torch.zeros(batch, 1, n)
        u, w = duals(matrix + far, none, none, v, o.epsilon, o.iterations)
        reduced = (matrix - u - w) * (1 - torch.eye(n))
        items = self.encode(matrix, reduced, far)
        glimpse_k, pointer_k, cross = self.glimpse_k(items), self.pointer_k(items), self.cross(items)
        state = self.start(items.mean(1)).chunk(2, 1)
        first = current = torch.zeros(batch, dtype=torch.long) if tours is None else tours[:, 0]
        left, entered = torch.zeros(batch, n), torch.zeros(batch, n)  # FAR where a city was left, or entered
        closed = functional.one_hot(first, n).bool()
        log_p, order = 0.0, [current]
        for step in range(1, n):
            state = self.cell(items[every, current], state)
            mask = torch.where(closed, -1e9, 0.0)
            glimpse = (torch.tanh(glimpse_k + self.glimpse_q(state[0]).unsqueeze(1)) @ self.glimpse_v + mask).softmax(1)
            query = torch.cat([state[0], (glimpse.unsqueeze(1) @ items).squeeze(1)], 1)
            logits = torch.tanh(pointer_k + self.pointer_q(query).unsqueeze(1)) @ self.pointer_v
            logits = logits + (cross @ items[every, current].unsqueeze(2)).squeeze(2) / math.sqrt(WIDTH)
            with torch.no_grad():  # ways out of the current city and the open ones, into these and the first
                ways = matrix + far
                ways[every, current, first] += FAR
                u, v = duals(ways, left.unsqueeze(2), entered.unsqueeze(1), v, o.epsilon, o.iterations if step == 1 else o.again)
                of_rest = (matrix - u - v)[every, current].clamp(-50, 50)
            into = (matrix + far + FAR * closed.unsqueeze(2)).min(1).values.clamp(max=8)
            onward = (matrix + far + FAR * closed.unsqueeze(1)).min(2).values.clamp(max=8)
            known = (matrix[every, current], into, onward, matrix[every, :, first], reduced[every, current], of_rest)
            logits = 10 * torch.tanh(logits / 10) + sum(self.prior[k] * number for k, number in enumerate(known)) + mask
            if tours is None:
                chosen = logits.argmax(1)
            else:
                chosen = tours[:, step]
                log_p = log_p + (logits.gather(1, chosen.unsqueeze(1)).squeeze(1) - logits.logsumexp(1))
            left, entered, closed = left.clone(), entered.clone(), closed.clone()
            left[every, current] = entered[every, chosen] = 1e5
            closed[every, chosen] = True
            current = chosen
            order.append(current)
        return log_p, torch.stack(order, 1)


def cost(matrix, tours):
    rows = matrix.gather(1, tours.unsqueeze(2).expand(-1, -1, matrix.shape[2]))
    return rows.gather(2, torch.roll(tours, -1, 1).unsqueeze(2)).squeeze(2).sum(1)


def gaps(twin, matrix, reference):
    """Greedy gap and that of the best of eight codes."""
    with torch.no_grad():
        costs = torch.stack([cost(matrix, twin(matrix)[1]) for _ in range(8)])
    return [float((c / reference - 1).mean()) for c in (costs[0], costs.min(0).values)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", help="parameters to go on from")
    parser.add_argument("--save", help="a file for the parameters")
    parser.add_argument("files", nargs=4, help="matrices and tours to learn from, matrices and tours to validate with")
    for name, kind, default in (("steps", int, 4000), ("batch", int, 128), ("rate", float, 1e-3), ("last", float, 0.03), ("layers", int, 3),
                                ("codes", int, 16), ("pairs", int, 1), ("epsilon", float, 0.2), ("iterations", int, 15), ("again", int, 3)):
        parser.add_argument("--" + name, type=kind, default=default)
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    matrices, tours = (np.load(file, mmap_mode="r") for file in o.files[:2])
    checked = torch.tensor(np.load(o.files[2]), dtype=torch.float32)
    reference = cost(checked, torch.tensor(np.load(o.files[3]).astype(np.int64)))
    twin = Twin(o)
    if o.init:
        twin.load_state_dict(torch.load(o.init))
    adam = torch.optim.Adam(twin.parameters(), lr=o.rate)
    for step in range(1, o.steps + 1):
        for group in adam.param_groups:
            group["lr"] = o.rate * o.last**(step / o.steps)
        rows = np.sort(random.integers(0, len(matrices), o.batch))
        given = torch.roll(torch.tensor(tours[rows].astype(np.int64)), int(random.integers(0, tours.shape[1])), 1)
        loss = -twin(torch.tensor(np.asarray(matrices[rows], np.float32)), given)[0].mean()
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        adam.step()
        if step % 200 == 0 or step == o.steps:
            greedy, of8 = gaps(twin, checked, reference)
            print(json.dumps({"step": step, "tours": step * o.batch, "seconds": round(time.process_time()), "loss": loss.item(),
                              "greedy": greedy, "of8": of8, "prior": twin.prior.tolist()}), flush=True)
            if o.save:
                torch.save(twin.state_dict(), o.save)


if __name__ == "__main__":
    main()
