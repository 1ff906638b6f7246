#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes TSP instances whose cities lie in clusters, as roads and towns make them: a set that no shipped model was
trained on.

    python3 bench/results/clustered.py N COUNT SEED OUTPUT.npy

An instance has 3 to 7 centres, uniform in the unit square. Each city belongs to one of them, with a normal distance of
0.05 in x and in y; what falls outside of the square is drawn again. float32 [COUNT][N][2]; the same seed makes the same
bytes.
"""
import random
import struct
import sys

SPREAD = 0.05


def instance(n, source):
    centres = [(source.random(), source.random()) for _ in range(source.randint(3, 7))]
    cities = []
    while len(cities) < n:
        x, y = source.choice(centres)
        x, y = source.gauss(x, SPREAD), source.gauss(y, SPREAD)
        if 0 <= x < 1 and 0 <= y < 1:
            cities += [(x, y)]
    return cities


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    n, count, seed = map(int, sys.argv[1:4])
    source = random.Random(seed)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, {n}, 2), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(sys.argv[4], "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for _ in range(count):
            file.write(struct.pack(f"<{2 * n}f", *(value for city in instance(n, source) for value in city)))


if __name__ == "__main__":
    main()
