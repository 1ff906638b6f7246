#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Least times of 10,000 greedy tours with the attention encoder on an H100, by counts: for docs/kernels.md.

    python3 bench/predict.py

A kernel takes as long as the scarcest of: instructions a lane issues, fma of the tensor cores, bytes of the L2 that its
weights take, bytes of device memory. Kernels add up. Latency is left out.
"""
H, LAYERS, HEADS, TOURS = 128, 3, 8, 10_000
ISSUE, MEMORY = 31.6e12, 3.0e12  # measured (docs/kernels.md): instructions of lanes and bytes a second
L2 = 5.5e12  # bytes a second: an assumption
BF16, TF32 = 247e12, 124e12  # fma a second by mma.sync: half of the data sheet's, which needs wgmma
# Instructions a fma of linear layer, self-attention, gates and query, by cuda_kernels.md, the self-attention's as those of
# the decode kernel's readout or of a linear layer of 32 rows; rows of a tile; tensor cores
VARIANTS = {"fp32, tiles of 32 rows": (1.23, 1.3, 1.23, 1.6, 32, None), "fp32": (1.16, 1.3, 1.13, 1.36, 128, None),
            "tf32x3": (0.26, 0.45, 0.52, 0.52, 128, TF32 / 3), "bf16": (0.06, 0.14, 0.20, 0.20, 128, BF16)}


def encoder_seconds(n, linear, attention, rows, cores):
    items = LAYERS * TOURS * n
    seconds = 2 * 8 * H * items / MEMORY  # layer norms
    for inputs, outputs, base in ((H, 3 * H, 0), (H, H, H), (H, 4 * H, 0), (4 * H, H, H)):
        fma = inputs * outputs * items
        seconds += max(fma * linear / ISSUE, fma / cores if cores else 0.0, 4 * inputs * outputs / rows * items / L2,
                       4 * (inputs + outputs + base) * items / MEMORY)
    products, exponentials = (2 if cores else 3) * n * H * items, 20 * n * HEADS * items
    return seconds + max((products * attention + exponentials) / ISSUE, products / cores if cores else 0.0,
                         16 * H * items / MEMORY)


def rest_seconds(n, gates, query, word):
    steps, left = TOURS * n, n / 2
    projections = max(3 * H * H * 1.2 * steps / ISSUE, 4 * 4 * H * steps / MEMORY)
    scores = left * H * (2 * 6.2 + 2.4)
    return projections + max(steps * (4 * H * H * gates + H * H * query + scores) / ISSUE,
                             steps * left * 3 * H * word / MEMORY)


def main():
    print("| precision | " + " | ".join(f"n = {n}: encoder + rest, ms" for n in (20, 50, 100)) + " |")
    print("|---|---|---|---|")
    for name, (linear, attention, gates, query, rows, cores) in VARIANTS.items():
        word = 2 if name == "bf16" else 4
        cells = (f"{1e3 * encoder_seconds(n, linear, attention, rows, cores):.1f} + "
                 f"{1e3 * rest_seconds(n, gates, query, word):.1f}" for n in (20, 50, 100))
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
