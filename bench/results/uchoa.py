#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CVRP instances as those of CVRPLIB's set X (Uchoa et al. 2017, section 4): on a grid of 1,000 x 1,000, distances rounded.

  uchoa.py CUSTOMERS COUNT SEED > set.ndjson"""
import json
import math
import sys

import numpy as np

SIDE = 1000
DEMANDS = ((1, 1), (1, 10), (5, 10), (1, 100), (50, 100))  # from, to; then by quadrant, and many small ones


def clustered(random, points, count):
    """Adds points that lie near the first ones: a point is taken with a probability that falls with the distances to these."""
    seeds = np.array(points)
    while len(points) < count:
        point = random.integers(0, SIDE + 1, 2)
        if random.random() < np.exp(-np.linalg.norm(seeds - point, axis=1) / 40).sum():
            points.append(point)
    return points


def demands_of(random, customers):
    kind, count = random.integers(0, 7), len(customers)
    if kind < 5:
        return random.integers(DEMANDS[kind][0], DEMANDS[kind][1] + 1, count)
    if kind == 5:  # small in two opposite quadrants, large in the others
        even = (customers[:, 0] < SIDE / 2) == (customers[:, 1] < SIDE / 2)
        return np.where(even, random.integers(51, 101, count), random.integers(1, 51, count))
    small = random.random(count) < random.uniform(0.7, 0.95)
    return np.where(small, random.integers(1, 11, count), random.integers(50, 101, count))


def instance(random, count, name):
    depot = [np.array([SIDE // 2] * 2), np.array([0, 0]), random.integers(0, SIDE + 1, 2)][random.integers(0, 3)]
    uniform, clusters = (count, 0, count // 2)[(kind := random.integers(0, 3))], random.integers(3, 9)
    customers = list(random.integers(0, SIDE + 1, (uniform if kind != 1 else clusters, 2)))
    if kind == 2:
        customers += clustered(random, list(random.integers(0, SIDE + 1, (clusters, 2))), count - uniform)
    elif kind == 1:
        customers = clustered(random, customers, count)
    customers = np.array(customers)
    demands = demands_of(random, customers)
    capacity = max(math.ceil(random.triangular(3, 6, 25) * demands.sum() / count), demands.max())
    return {"id": name, "problem": "cvrp", "edge_weight_type": "EUC_2D", "capacity": int(capacity),
            "coordinates": [depot.tolist(), *customers.tolist()], "demands": [0, *demands.tolist()]}


def main():
    customers, count, seed = map(int, sys.argv[1:])
    random = np.random.default_rng(seed)
    for i in range(count):
        print(json.dumps(instance(random, customers, f"x{customers + 1}-{i}")))


if __name__ == "__main__":
    main()
