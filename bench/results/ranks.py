#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What several MPI processes are worth on this machine, beside the cost model of docs/cluster.md.

    python3 bench/results/ranks.py PROGRAM [--ranks 2 4] [--size 50] [--batch 128] [--steps 20] [--turns 3]

Each rank has one thread. Prints the model's constants (of one process and of the smallest training, whose step is all
reduction), then the predicted and the measured times, and those of 10,000 instances of 5 to 200 cities, the largest last. Run
it with nothing beside it, on at least as many cores as ranks. The least time of the turns counts."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile

SEGMENTS, SLICE = 16, 65_536 * 4
ROLLOUTS, TINY = 8, {"size": 5, "batch": 2}  # one tile of 16 rollouts
INSTANCES = 4000


def run(options, ranks, words):
    command = [options.program, *map(str, words), "-t", "1", "-q", "-f"]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *command]
    allowed = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=allowed).stdout


def step_seconds(options, ranks, size, batch, steps, folder):
    """Of a training step, from the line of the log at the last one."""
    log = folder / "log.jsonl"
    run(options, ranks, ["train", "tsp", "-n", size, "-b", batch, "--rollouts", ROLLOUTS, "--steps", steps, "-o",
                         folder / "model.safetensors", "--validation-every", steps, "--log", log])
    line = json.loads(log.read_text().splitlines()[0])
    return batch * ROLLOUTS / line["tours_per_second"]


def solve_seconds(options, ranks, file, flags, folder):
    """Without start and end of the program."""
    words = ["solve", file, "-m", "tsp50", "--improve", "off", *flags, "--format", "json"]
    return json.loads(run(options, ranks, words))["summary"]["computing_times"]["solving"] / 1000


def make_uneven(file):
    draw = random.Random(1234)
    sizes = sorted(draw.randint(5, 200) for _ in range(10_000))
    file.write_text(json.dumps([{"problem": "tsp", "coordinates": [[draw.random(), draw.random()] for _ in range(n)]} for n in sizes]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=(2, 4))
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    options.program = str(options.program.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        file, uneven_file = folder / "set.npy", folder / "uneven.json"
        run(options, 1, ["generate", "tsp", "-n", options.size, "-b", INSTANCES, "-o", file])
        make_uneven(uneven_file)
        best = lambda measure, *given: min(measure(options, *given, folder) for _ in range(options.turns))
        train = {ranks: best(step_seconds, ranks, options.size, options.batch, options.steps) for ranks in (1, *options.ranks)}
        tiny = {ranks: best(step_seconds, ranks, TINY["size"], TINY["batch"], 100) for ranks in (1, 2)}
        solve = {ranks: best(solve_seconds, ranks, file, ["--mode", "sample", "-n", 64]) for ranks in (1, *options.ranks)}
        uneven = {ranks: best(solve_seconds, ranks, uneven_file, ["--mode", "greedy"]) for ranks in (1, *options.ranks)}
        model = json.loads(run(options, 1, ["info", folder / "model.safetensors", "--format", "json"]))["model"]
    floats, reduction = model["parameters"], max(tiny[2] - tiny[1], 1e-9)
    speed = (8 * floats + 3 * SLICE) / reduction
    print(f"t = {train[1]:.4g} s   P = {floats}   r(2) = {1e3 * reduction:.3g} ms, so b = {speed / 1e9:.3g} GB/s with d = 0   "
          f"c = {1e3 * solve[1] / INSTANCES:.3g} ms")
    print("ranks  step predicted  measured  speed-up   solve predicted  measured  speed-up   uneven  speed-up")
    for ranks in options.ranks:
        shared = -(-SEGMENTS // ranks) / SEGMENTS
        step = train[1] * shared + 8 * floats / speed + (ranks + 1) * SLICE / speed
        print(f"{ranks:5}  {step:14.4g}  {train[ranks]:8.4g}  {train[1] / train[ranks]:7.2f}x"
              f"   {solve[1] / ranks:15.4g}  {solve[ranks]:8.4g}  {solve[1] / solve[ranks]:7.2f}x"
              f"   {uneven[ranks]:6.4g}  {uneven[1] / uneven[ranks]:7.2f}x")


if __name__ == "__main__":
    main()
