#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two threads on one tour are worth: `solve -t 2 -l S` beside `-t 1 -l 1.8 S`, an instance a run, in turns.

  two_threads.py PROGRAM SET.npy COSTS.npy [--seconds 0.5] [--turns 5]

SET.npy [count][n][2]; COSTS.npy [count] the optima. Prints the mean gap and the kicks of each turn and over all."""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np

MORE_TIME = 1.8  # for one thread


def run(options, threads, seconds, points, optimum, folder):
    file, reference = os.path.join(folder, "one.npy"), os.path.join(folder, "one.opt.npy")
    np.save(file, points[None])
    np.save(reference, [optimum])
    command = [options.program, "solve", file, "--ref", reference, "-t", str(threads), "-l", str(seconds),
               "--format", "json", "-q"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["solutions"][0]
    return 100 * answer["gap"], answer["kicks"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("set")
    parser.add_argument("costs")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    points, optima = np.load(options.set), np.load(options.costs)
    sides = {(1, MORE_TIME * options.seconds): [], (2, options.seconds): []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.turns):
            for (threads, seconds), means in sides.items():
                rows = [run(options, threads, seconds, *one, folder) for one in zip(points, optima)]
                means.append(np.mean(rows, axis=0))
                print(f"turn {turn + 1}: -t {threads} -l {seconds:g}: gap {means[-1][0]:.4f}%, {means[-1][1]:.0f} kicks",
                      flush=True)
    for (threads, seconds), means in sides.items():
        gap, kicks = np.mean(means, axis=0)
        spread = np.std([mean[0] for mean in means], ddof=1) / len(means)**0.5 if len(means) > 1 else 0.0
        print(f"all: -t {threads} -l {seconds:g}: gap {gap:.4f}% +- {spread:.4f}, {kicks:.0f} kicks")


if __name__ == "__main__":
    main()
