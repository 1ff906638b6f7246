#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes TSP instances whose cities lie in clusters: a set that no shipped model was trained on.

    python3 bench/results/clustered.py N COUNT SEED OUTPUT.npy

An instance has 3 to 7 centres, uniform in the unit square. Each city belongs to one of them, with a normal distance of
0.05 in x and in y; what falls outside of the square is drawn again. float32 [COUNT][N][2]; the same seed writes the same
bytes.
"""
import array
import random
import sys


def instance(n, source):
    centres = [(source.random(), source.random()) for _ in range(source.randint(3, 7))]
    cities = []
    while len(cities) < n:
        x, y = (source.gauss(middle, 0.05) for middle in source.choice(centres))
        if 0 <= x < 1 and 0 <= y < 1:
            cities.append((x, y))
    return cities


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    size, count, seed = map(int, sys.argv[1:4])
    draw = random.Random(seed)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, {size}, 2), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(sys.argv[4], "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for _ in range(count):
            array.array("f", (value for city in instance(size, draw) for value in city)).tofile(file)
