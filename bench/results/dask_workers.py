#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a second worker is worth to `pointsman.dask`: greedy tours of 100,000 instances of 20 cities, one thread a worker.

  dask_workers.py [--turns 3]

Needs numpy, dask, distributed and the Python package. Prints the middle of the turns."""
import argparse
import statistics
import time

import dask
import dask.array
import dask.distributed
import pointsman.dask

INSTANCES, CITIES, CHUNK = 100_000, 20, 1000


def seconds(workers):
    """From the call to the last answer; the cluster and its solvers are there before."""
    with dask.distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, \
            dask.distributed.Client(cluster):
        points = dask.array.random.default_rng(1).random((INSTANCES, CITIES, 2), chunks=(CHUNK, CITIES, 2))
        dask.compute(*pointsman.dask.solve(points[:4 * CHUNK], mode="greedy"))
        begin = time.monotonic()
        dask.compute(*pointsman.dask.solve(points, mode="greedy"))
        return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    times = {1: [], 2: []}
    for _ in range(options.turns):
        for workers, found in times.items():
            found.append(seconds(workers))
    one, two = (statistics.median(found) for found in times.values())
    print(f"one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f}x")


if __name__ == "__main__":
    main()
