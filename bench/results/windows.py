#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TSP with time windows by masks, by a penalty and by both: what the network's answers are like.

    python3 bench/results/windows.py PROGRAM FOLDER [STEPS]

Trains a network for 20 places in each way, STEPS (1,000) steps of 256 tours, and prints a row for each: how many of the greedy
answers to 1,000 instances come late, and how much longer than the optimum those in time are; the same of one sample, which is
drawn again where it is late, with the number of these, and of 1,280 samples. The instances have a tour in time; their optima
are exact.
"""
import json
import pathlib
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
STEPS = sys.argv[3] if len(sys.argv) > 3 else "1000"
WAYS = (("none", None, "on"), ("mask", "mask", "on"), ("penalty", "penalty", "off"), ("both", "both", "on"))
SEARCHES = {"greedy": ["greedy"], "1 sample": ["sample", "-n", "1"], "1,280 samples": ["sample", "-n", "1280"]}


def run(*words):
    subprocess.run([PROGRAM, *words, "-f", "-q"], cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


def answers(name, *words):
    run("solve", "set.json", *words, "-o", name)
    return json.loads((FOLDER / name).read_text())["solutions"]


def compared(found, exact):
    """How many come late, how far the others are above the optimum, and samples drawn again."""
    pairs = [(one["cost"], best["cost"]) for one, best in zip(found, exact, strict=True) if one["status"] == "done"]
    late = 100 - 100 * len(pairs) / len(found)
    gap = 100 * (sum(cost for cost, _ in pairs) / sum(best for _, best in pairs) - 1) if pairs else float("nan")
    again = sum(one.get("redrawn", 0) for one in found)
    return f"{late:.1f}%, {gap:.2f}%" + (f" ({again:,})" if again else "")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    run("generate", "tsptw", "-n", "20", "-b", "1000", "-s", "1", "-o", "set.json")
    exact = answers("exact.json", "--mode", "exact")
    print("| training | " + " | ".join(SEARCHES) + " |\n|---" + "|---" * len(SEARCHES) + "|")
    for name, how, masks in WAYS:
        model = f"{how}.safetensors"
        learning = ["--steps", STEPS] if how else ["--steps", "1", "--learning-rate", "1e-9"]
        run("train", "tsptw", "-n", "20", "-b", "16", "--rollouts", "16", "-s", "1", *learning, "--infeasible", how or "both", "-o", model)
        ask = ("found.json", "-m", "./" + model, "--mask-late", masks, "--mode")
        cells = [compared(answers(*ask, *mode), exact) for mode in SEARCHES.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


main()
