#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the pages report beside `pointsman bench` and `pointsman eval`. Run it with nothing beside it.

  measure.py service PROGRAM                 how long a line of `solve - --format ndjson` waits for its solution
  measure.py python                          what a call of the Python package costs; needs the package
  measure.py lkh PROGRAM SET.npy OPT.npy     LKH (Python package elkai), then `solve` with LKH's time and multiples of it
  measure.py pyvrp PROGRAM SET SECONDS       PyVRP with that CPU time for an instance, then `solve`; SET is an .npz of CVRPs,
                                             or an .ndjson of ones whose distances are rounded (uchoa.py)

SET.npy [count][n][2], OPT.npy [count] the optima. A solution that is no tour ends the script."""
import argparse
import concurrent.futures
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def require_tours(tours, n):
    if not (np.sort(tours, axis=-1) == np.arange(n)).all():
        sys.exit("a solution is no tour")


def print_percentiles(what, seconds):
    seconds.sort()
    shares = {share: seconds[min(int(share * len(seconds)), len(seconds) - 1)] for share in (0.5, 0.99, 0.999, 1.0)}
    print(what + ": " + ", ".join(f"{100 * share:g}% {1000 * value:.2f} ms" for share, value in shares.items()))


# --- service ---


def service(options):
    """10,000 lines of 50 cities, one every 8 ms, 5 ms for each."""
    count, cities, every, sent, waits = 10_000, 50, 0.008, [], []
    batch = np.random.RandomState(1).uniform(size=(count, cities, 2)).tolist()
    lines = [json.dumps({"id": str(i), "problem": "tsp", "coordinates": points}).encode() + b"\n" for i, points in enumerate(batch)]
    command = [options.program, "solve", "-", "--format", "ndjson", "--limit-each", "0.005", "-t", "1", "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        begin = time.monotonic()
        for i, line in enumerate(lines):
            time.sleep(max(0.0, begin + i * every - time.monotonic()))
            sent.append(time.monotonic())
            process.stdin.write(line)
            process.stdin.flush()
        process.stdin.close()

    threading.Thread(target=feed).start()
    for i, line in enumerate(process.stdout):
        waits.append(time.monotonic() - sent[i])
        solution = json.loads(line)
        require_tours(solution["tour"], cities)
        if solution["id"] != str(i):
            sys.exit(f"line {i}: a solution to line {solution['id']}")
    if process.wait() != 0 or len(waits) != count:
        sys.exit(f"{len(waits)} solutions to {count} lines, exit code {process.returncode}")
    print_percentiles("from a line to its solution", waits)


# --- python ---


def python(_):
    import pointsman  # pylint: disable=import-outside-toplevel

    draw = np.random.RandomState(1).uniform
    for mode, model in ("greedy", "tsp20"), ("local", ""):
        solver, points, beyond = pointsman.Solver(model, threads=1), draw(size=(20, 2)), []
        for _ in range(1000):
            begin = time.perf_counter()
            solving = solver.solve(points, mode=mode).summary["solving_ms"]
            beyond.append(1e6 * (time.perf_counter() - begin) - 1e3 * solving)
        print(f"{mode}, 20 cities: a call takes {statistics.median(beyond):.0f} us beyond the engine's own time")

    solver, waits = pointsman.Solver(threads=1), []
    for points in draw(size=(10_000, 50, 2)):
        begin = time.perf_counter()
        result = solver.solve(points, time_limit=0.005)
        waits.append(time.perf_counter() - begin)
        require_tours(result.tours, 50)
    print_percentiles("time_limit=0.005, 50 cities, 10,000 calls", waits)

    batch = draw(size=(100_000, 20, 2)).astype(np.float32)
    solvers, ratios = [pointsman.Solver("tsp20", threads=1) for _ in range(2)], []
    for _ in range(3):
        alone = seconds_of(lambda: require_tours(solvers[0].solve(batch, mode="greedy").tours, 20))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = lambda: list(pool.map(lambda solver: solver.solve(batch, mode="greedy"), solvers))
            ratios.append(2 * alone / seconds_of(both))
    print(f"greedy, 100,000 x 20 cities: two Python threads have {statistics.median(ratios):.2f} x the rate of one")


# --- lkh ---


def lkh(options):
    import elkai  # pylint: disable=import-outside-toplevel

    points, optima, found = np.load(options.set)[:options.count], np.load(options.optima)[:options.count], []
    for instance, optimum in zip(points, optima):
        distances = np.linalg.norm(instance[:, None] - instance[None], axis=2)
        matrix = elkai.DistanceMatrix(np.rint(1e6 * distances).astype(int).tolist())  # LKH counts in whole numbers
        begin = time.process_time()
        tour = matrix.solve_tsp(runs=1)[:-1]
        found.append((100 * (distances[tour, np.roll(tour, -1)].sum() / optimum - 1), time.process_time() - begin))
        require_tours(tour, len(instance))
    gap, spent = np.mean(found, axis=0)
    print(f"n = {points.shape[1]}, {len(points)} instances: LKH {gap:.4f}% in {1e3 * spent:.1f} ms", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        np.save(folder + "/set.npy", points)
        np.save(folder + "/optima.npy", optima)
        for multiple in 0.5, 1, 2, 4:
            command = [options.program, "solve", folder + "/set.npy", "--ref", folder + "/optima.npy", "-t", "1", "--limit-each",
                       str(multiple * spent), "--format", "json", "-q"]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            ours = 100 * json.loads(answer)["summary"]["gap"]
            print(f"  pointsman in {1e3 * multiple * spent:.1f} ms ({multiple:g} x): {ours:.4f}%", flush=True)


# --- pyvrp ---


def routing_instances(name):
    """Points, the depot first, demands of the customers, capacity, and whether distances are rounded."""
    if name.endswith(".npz"):
        columns = (np.load(name)[key] for key in ("depot", "locs", "demand", "capacity"))
        return [(np.vstack([depot, locs]), demands, capacity, False) for depot, locs, demands, capacity in zip(*columns)]
    with open(name, encoding="utf-8") as lines:
        instances = [json.loads(line) for line in lines]
    return [(np.array(one["coordinates"]), one["demands"][1:], one["capacity"], True) for one in instances]


def pyvrp(options):
    import pyvrp as module  # pylint: disable=import-outside-toplevel

    lengths, spent = [], []
    for points, demands, capacity, is_rounded in routing_instances(options.set)[:options.count]:
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        if is_rounded:
            distances = np.floor(distances + 0.5)
        # At 1e6 its largest penalty of an overload is less than a detour.
        whole = np.rint((1 if is_rounded else 1e4) * distances).astype(int)
        clients = [module.Client(i, delivery=[int(demand)]) for i, demand in enumerate(demands, 1)]
        data = module.ProblemData([module.Location(x, y) for x, y in points], clients, [module.Depot(0)],
                                  [module.VehicleType(len(clients), capacity=[int(capacity)])], [whole], [0 * whole])
        begin = time.process_time()
        stop = lambda _, end=begin + options.seconds: time.process_time() >= end
        best = module.solve(data, stop, seed=1, collect_stats=False, display=False).best
        spent.append(time.process_time() - begin)
        routes = [[0] + [clients[stop.idx].location for stop in route.schedule() if stop.is_client()] for route in best.routes()]
        length = sum(distances[route, np.roll(route, -1)].sum() for route in routes)
        lengths.append(length if best.is_feasible() else np.nan)
    command = [options.program, "solve", options.set, "--mode", "local", "--kicks", str(options.kicks), "-t", "1", "--format", "json", "-q"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    solved = np.isfinite(lengths)
    ours = np.array([solution["cost"] for solution in json.loads(answer)["solutions"]])[:len(lengths)][solved]
    print(f"{solved.sum()} of {len(lengths)} instances: PyVRP {np.nanmean(lengths):.4f} in {1e3 * np.mean(spent):.0f} ms, "
          f"pointsman {ours.mean():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = parser.add_subparsers(dest="name", required=True)
    for measure in service, python, lkh, pyvrp:
        command = names.add_parser(measure.__name__)
        command.set_defaults(measure=measure)
        if measure is not python:
            command.add_argument("program")
        if measure is lkh:
            command.add_argument("set")
            command.add_argument("optima")
            command.add_argument("--count", type=int, default=16, help="of the set's instances, the first so many")
        if measure is pyvrp:
            command.add_argument("set")
            command.add_argument("seconds", type=float)
            command.add_argument("--count", type=int, default=100, help="of the set's instances, the first so many")
            command.add_argument("--kicks", type=int, default=-1, help="of `solve`; -1: its default")
    options = parser.parse_args()
    options.measure(options)


if __name__ == "__main__":
    main()
