#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pointsman.Problem reaches on weighted tardiness, and what a cost in Python costs. Rows of JSON to stdout.

    python3 bench/results/own_problems.py jobs10 [--minutes 2]     gap to the optimum, 50 instances
    python3 bench/results/own_problems.py jobs40 [--minutes 30]    gap to a long local search, beside dispatching rules
    python3 bench/results/own_problems.py overhead                 training the TSP by a cost in NumPy and built in

Jobs have times U[1, 100], weights U[1, 10] and due dates by TF = RDD = 0.6 (Potts and Van Wassenhove 1985). A gap is the sum
of the costs over the sum of the reference's, minus 1. The dispatching rules, the dynamic program and the local search are
written here and use nothing of the engine. Needs the Python package.
"""
import argparse
import json
import sys
import time

import numpy as np
import pointsman

FACTORS = 0.1 * np.arange(1, 41)  # k of ATC, the best for each instance


def tardiness(items, orders):
    jobs = np.take_along_axis(items, orders[:, :, None], axis=1)
    late = jobs[:, :, 0].cumsum(axis=1) - jobs[:, :, 2]
    return (jobs[:, :, 1] * np.maximum(late, 0.0)).sum(axis=1)


def generator(n, tardy=0.6, spread=0.6):
    def jobs(rng, count):
        times = rng.integers(1, 101, (count, n)).astype(float)
        total = times.sum(axis=1, keepdims=True)
        due = total * (1 - tardy + spread * (rng.random((count, n)) - 0.5))
        return np.stack([times, rng.integers(1, 11, (count, n)), np.round(np.maximum(due, 0))], axis=2)
    return jobs


# --- References that know nothing of the engine ---


def optimum(job):
    """By dynamic programming over the sets of jobs that are done first."""
    n = len(job)
    sets = np.arange(1 << n)
    done = ((sets[:, None] >> np.arange(n)) & 1) @ job[:, 0]
    best = np.full(1 << n, np.inf)
    best[0] = 0
    for chosen in range(1, 1 << n):
        for j in range(n):
            if chosen >> j & 1:
                late = job[j, 1] * max(0.0, done[chosen] - job[j, 2])
                best[chosen] = min(best[chosen], best[chosen ^ 1 << j] + late)
    return best[-1]


def dispatch(job, priority):
    left, order, now = list(range(len(job))), [], 0.0
    while left:
        best = left[int(np.argmax(priority(job[left], now)))]
        left.remove(best)
        order.append(best)
        now += job[best, 0]
    return order


def apparent_tardiness_cost(factor):
    """ATC (Vepsalainen and Morton 1987)."""
    def priority(jobs, now):
        slack = np.maximum(jobs[:, 2] - jobs[:, 0] - now, 0.0)
        return jobs[:, 1] / jobs[:, 0] * np.exp(-slack / (factor * jobs[:, 0].mean()))
    return priority


RULES = {"weight per time": [lambda jobs, now: jobs[:, 1] / jobs[:, 0]], "due date": [lambda jobs, now: -jobs[:, 2]],
         "ATC": [apparent_tardiness_cost(factor) for factor in FACTORS]}


def ruled(job, rules):
    """The best order of the rules, and its cost."""
    orders = np.array([dispatch(job, rule) for rule in rules])
    costs = tardiness(np.broadcast_to(job, (len(orders), *job.shape)), orders)
    return orders[costs.argmin()], costs.min()


def neighbours(n):
    """All exchanges of two places and all moves of one, as rows of places."""
    rows = []
    for a in range(n):
        for b in range(n):
            row = list(range(n))
            if a < b:
                row[a], row[b] = row[b], row[a]
                rows.append(row)
            if a != b:
                row = list(range(n))
                row.insert(b, row.pop(a))
                rows.append(row)
    return np.array(rows)


def long_search(job, kicks, rng):
    """Steepest descent from ATC's order over all neighbours, and from the best order after two to six random exchanges."""
    moves = neighbours(len(job))
    jobs = np.broadcast_to(job, (len(moves), *job.shape))
    best_order, best = ruled(job, RULES["ATC"])
    order, cost = best_order, best
    for _ in range(kicks + 1):
        while True:
            found = order[moves]
            costs = tardiness(jobs, found)
            if costs.min() >= cost:
                break
            order, cost = found[costs.argmin()], costs.min()
        if cost <= best:
            best_order, best = order, cost
        order = best_order.copy()
        for a, b in rng.integers(len(job), size=(rng.integers(2, 7), 2)):
            order[[a, b]] = order[[b, a]]
        cost = tardiness(job[None], order[None])[0]
    return best


# --- Measurements ---


def tell(row):
    print(json.dumps(row), flush=True)


def gap(costs, reference):
    return float(np.sum(costs) / np.sum(reference) - 1)


def measure_jobs(options, n, reference, searches):
    items = generator(n)(np.random.default_rng(1234), options.instances)
    begin = time.monotonic()
    optima = [reference(job) for job in items]
    row = {"problem": "weighted tardiness", "n": n, "instances": len(items)}
    tell(row | {"method": "reference", "mean_cost": float(np.mean(optima)), "seconds": time.monotonic() - begin})
    for name, rules in RULES.items():
        tell(row | {"method": name, "gap": gap([ruled(job, rules)[1] for job in items], optima)})
    problem = pointsman.Problem(tardiness)
    how = {} if options.entropy is None else {"entropy": options.entropy}
    model = problem.load(options.load) if options.load else problem.train(
        generator(n), minutes=options.minutes, callback=lambda line: print(line, file=sys.stderr), **how)
    if options.save:
        model.save(options.save, force=True)
    told = ("step", "training_tours", "seconds", "tours_per_second", "callback_seconds", "val_cost")
    tell(row | {"method": "training"} | {name: model.summary.get(name) for name in told})
    for name, how in searches.items():
        begin = time.monotonic()
        result = model.solve(items, **how)
        tell(row | {"method": name, "gap": gap(result.costs, optima), "seconds": time.monotonic() - begin,
                    "callback_seconds": result.summary["callback_seconds"]})


def tour_length(points, tours):
    at = np.take_along_axis(points, tours[:, :, None], axis=1)
    steps = at - np.roll(at, -1, axis=1)
    return np.sqrt((steps * steps).sum(axis=2)).sum(axis=1)


def measure_overhead(options):
    """Turn by turn, so that a noisy machine slows both."""
    shape = {"steps": 300, "batch_size": 32, "rollouts": 16, "validation_every": 10**6}
    for n in (20, 50):
        own, built_in = [], []
        for _ in range(options.rounds):
            model = pointsman.Problem(tour_length).train(lambda rng, count, n=n: rng.random((count, n, 2)), **shape)
            own.append(model.summary)
            built_in.append(pointsman.train("tsp", n, "overhead.safetensors", force=True, prior=False, symmetries=1, **shape))
        rates = [[run["tours_per_second"] for run in runs] for runs in (own, built_in)]
        share = np.median([run["callback_seconds"] / run["seconds"] for run in own])
        tell({"problem": "tsp", "n": n, "rates": rates[0], "built_in_rates": rates[1], "callback_share": float(share),
              "ratio": float(np.median(rates[0]) / np.median(rates[1]))})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("jobs10", "jobs40", "overhead"))
    parser.add_argument("--minutes", type=float, help="of training")
    parser.add_argument("--entropy", type=float, help="T of the entropy term in place of 0.2 / n; 0: none")
    parser.add_argument("--instances", type=int, default=50)
    parser.add_argument("--kicks", type=int, default=500, help="of the long local search")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", help="the model")
    parser.add_argument("--load", help="a model in place of training")
    options = parser.parse_args()
    searches = {"greedy": {}, "1,000 samples": {"samples": 1000},
                "1,000 samples, then local search": {"samples": 1000, "improve": True},
                "100 steps of active search": {"active": 100}}
    if options.what == "overhead":
        measure_overhead(options)
    elif options.what == "jobs10":
        options.minutes = options.minutes or 2
        measure_jobs(options, 10, optimum, searches)
    else:
        options.minutes = options.minutes or 30
        rng = np.random.default_rng(1)
        measure_jobs(options, 40, lambda job: long_search(job, options.kicks, rng), searches)


if __name__ == "__main__":
    main()
