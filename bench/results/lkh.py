#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beside LKH, as the Python package elkai has it: one run an instance, and `solve --limit-each` with LKH's time and its multiples.

  lkh.py PROGRAM SET.npy COSTS.npy [--count 16] [--multiples 0.5,1,2,4]

SET.npy [count][n][2]; COSTS.npy [count] the optima. One CPU thread. Needs numpy and elkai."""
import argparse
import json
import os
import subprocess
import tempfile
import time

import elkai
import numpy as np

UNIT = 1e6  # LKH counts in whole numbers


def lkh_tour(points):
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    matrix = np.rint(UNIT * distances).astype(int).tolist()
    begin = time.process_time()
    tour = elkai.DistanceMatrix(matrix).solve_tsp(runs=1)[:-1]
    spent = time.process_time() - begin
    assert sorted(tour) == list(range(len(points)))
    return float(distances[tour, np.roll(tour, -1)].sum()), spent


def our_gap(program, folder, limit):
    command = [program, "solve", os.path.join(folder, "set.npy"), "--ref", os.path.join(folder, "costs.npy"), "-t", "1",
               "--limit-each", str(limit), "--format", "json", "-q"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["summary"]["gap"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("set")
    parser.add_argument("costs")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--multiples", default="0.5,1,2,4")
    options = parser.parse_args()
    points, costs = np.load(options.set)[:options.count], np.load(options.costs)[:options.count]
    found = [lkh_tour(one) for one in points]
    gap = np.mean([cost / best - 1 for (cost, _), best in zip(found, costs)])
    spent = float(np.mean([seconds for _, seconds in found]))
    print(f"n = {points.shape[1]}, {len(points)} instances: LKH {100 * gap:.4f}% in {1e3 * spent:.1f} ms", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "set.npy"), points)
        np.save(os.path.join(folder, "costs.npy"), costs)
        for multiple in map(float, options.multiples.split(",")):
            limit = multiple * spent
            print(f"  pointsman in {1e3 * limit:.1f} ms ({multiple:g} x): {100 * our_gap(options.program, folder, limit):.4f}%",
                  flush=True)


if __name__ == "__main__":
    main()
