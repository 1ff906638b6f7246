#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What many instances at once cost, by the wall clock of whole runs in turns.

  many_instances.py PROGRAM mixed [--turns 3]    10,000 instances of 5 to 150 cities, as they come against sorted by size
  many_instances.py PROGRAM active [--turns 3]   64 active searches of 50 cities at once against training steps
  many_instances.py PROGRAM threads [--turns 3]  two threads, and two programs of one thread at once, against one thread

mixed: greedy tours with tsp50, from JSON; the answers must be the same. active: every parameter is learnt from 128 replicas of each
instance, a step of training has 64 instances of 128 rollouts; start and end of the program are taken off by a second run of
fewer steps. One search alone must give the answer of its instance among the 64. threads: 10,000 greedy tours, 1,280 samples of
each of 128 instances, and training steps of 16 instances of 8 rollouts, all of 50 cities."""
import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SEARCHES, REPLICAS, CITIES, FEW, MANY = 64, 128, 50, 1, 5


def run(*command, copies=1):
    begin = time.monotonic()
    words = [[str(word).replace("COPY", str(copy)) for word in command] for copy in range(copies)]
    programs = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in words]
    for program, each in zip(programs, words):
        if program.wait() != 0:
            raise SystemExit(f"failed: {' '.join(each)}")
    return time.monotonic() - begin


def answers(file):
    return [(answer["id"], answer["tour"]) for answer in map(json.loads, file.read_text().splitlines())]


def mixed(program, turns, folder):
    draw = random.Random(1234)
    sizes = [draw.randint(5, 150) for _ in range(10_000)]
    lines = [(n, json.dumps({"id": str(i), "problem": "tsp", "coordinates": [[draw.random(), draw.random()] for _ in range(n)]}))
             for i, n in enumerate(sizes)]
    sides = {"mixed": lines, "sorted": sorted(lines, key=lambda line: line[0])}
    times = {name: [] for name in sides}
    for name, rows in sides.items():
        (folder / f"{name}.json").write_text("[" + ",".join(line for _, line in rows) + "]")
    for _ in range(turns):
        for name in sides:
            times[name].append(run(program, "solve", folder / f"{name}.json", "-m", "tsp50", "--mode", "greedy", "--improve", "off", "-q", "-f",
                                   "--format", "ndjson", "-o", folder / f"{name}.out"))
    if dict(answers(folder / "mixed.out")) != dict(answers(folder / "sorted.out")):
        raise SystemExit("the answers differ")
    middle = {name: statistics.median(seconds) for name, seconds in times.items()}
    print(f"mixed {middle['mixed']:.2f} s, sorted {middle['sorted']:.2f} s: {middle['sorted'] / middle['mixed']:.2f} of the sorted rate")


def active(program, turns, folder):
    run(program, "generate", "tsp", "-n", CITIES, "-b", SEARCHES, "-q", "-f", "-o", folder / "set.npy")
    search = (program, "solve", "-m", "tsp50", "--mode", "active", "--learn", "all", "--replicas", REPLICAS, "-q", "-f", "--format",
              "ndjson")
    train = (program, "train", "tsp", "-n", CITIES, "--init", "tsp50", "-b", SEARCHES, "--rollouts", REPLICAS, "-q", "-f", "-o",
             folder / "model.safetensors")
    runs = {"searching": lambda steps: run(*search, folder / "set.npy", "--steps", steps, "-o", folder / "all"),
            "training": lambda steps: run(*train, "--steps", steps)}
    rates = {name: [] for name in runs}
    for _ in range(turns):
        for name, timed in runs.items():
            seconds = -timed(FEW) + timed(MANY)
            rates[name].append((MANY - FEW) * SEARCHES * REPLICAS / seconds)
    run(program, "generate", "tsp", "-n", CITIES, "-b", 1, "-q", "-f", "-o", folder / "one.npy")
    run(*search, folder / "one.npy", "--steps", MANY, "-o", folder / "one")
    if answers(folder / "one") != answers(folder / "all")[:1]:
        raise SystemExit("one search alone answers otherwise")
    middle = {name: statistics.median(found) for name, found in rates.items()}
    print(f"searching {middle['searching']:.0f} tours/s, training {middle['training']:.0f}: "
          f"{middle['searching'] / middle['training']:.2f} of the training rate")


def threads(program, turns, folder):
    for name, count in ("greedy", 10_000), ("sample", 128):
        run(program, "generate", "tsp", "-n", CITIES, "-b", count, "-q", "-f", "-o", folder / f"{name}.npy")
    solve = (program, "solve", "-m", "tsp50", "--improve", "off", "-q", "-f", "-o", folder / "COPY.out.npy", "--mode")
    train = (program, "train", "tsp", "-n", CITIES, "-b", 16, "--rollouts", 8, "-q", "-f", "-o", folder / "COPY.safetensors", "--steps")
    work = {"greedy": lambda t, copies: run(*solve, "greedy", folder / "greedy.npy", "-t", t, copies=copies),
            "sampling": lambda t, copies: run(*solve, "sample", "-n", 1280, folder / "sample.npy", "-t", t, copies=copies),
            "training": lambda t, copies: run(*train, 120, "-t", t, copies=copies) - run(*train, 20, "-t", t, copies=copies)}
    sides = {"one": (1, 1), "two": (2, 1), "both": (1, 2)}  # threads of a program, programs at once
    for name, timed in work.items():
        times = {side: [] for side in sides}
        for _ in range(turns):
            for side, counts in sides.items():
                times[side].append(timed(*counts))
        middle = {side: statistics.median(seconds) for side, seconds in times.items()}
        print(f"{name}: one thread {middle['one']:.2f} s, two {middle['two']:.2f} s: {middle['one'] / middle['two']:.2f}x; "
              f"two programs at once {2 * middle['one'] / middle['both']:.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("what", choices=("mixed", "active", "threads"))
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"mixed": mixed, "active": active, "threads": threads}[options.what](options.program, options.turns, Path(folder))


if __name__ == "__main__":
    main()
