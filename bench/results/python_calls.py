#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of the Python package costs beside the engine and the program.

  python_calls.py PROGRAM [--turns 5] [--calls 10000]

Run by a Python that has the package. The device is one CPU thread. Prints what a call adds to the engine's own time, how
late answers under a deadline are, 100,000 instances from an array beside the program's from a file, two Python threads
beside one, and the time of the import. Fails where an answer is no tour."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pointsman


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def require_tours(result, n):
    if not (np.sort(result.tours, axis=1) == np.arange(n)).all():
        sys.exit("an answer is no tour")


def overhead(calls):
    """Microseconds, median, of a call beyond what the engine reports; one instance of 20 cities."""
    points = np.random.RandomState(1).uniform(size=(20, 2))
    for mode, model in (("greedy", "tsp20"), ("local", "")):
        solver = pointsman.Solver(model, threads=1)
        beyond = []
        for _ in range(calls // 10):
            begin = time.perf_counter()
            result = solver.solve(points, mode=mode)
            spent = time.perf_counter() - begin
            beyond.append(1e6 * spent - 1e3 * result.summary["solving_ms"])
        print(f"{mode}, 20 cities: a call takes {statistics.median(beyond):.0f} us beyond the engine's own time")


def latency(calls):
    """Milliseconds of calls with a deadline of 5 ms; 50 cities."""
    batch = np.random.RandomState(2).uniform(size=(calls, 50, 2))
    solver = pointsman.Solver(threads=1)
    waits = []
    for points in batch:
        begin = time.perf_counter()
        result = solver.solve(points, time_limit=0.005)
        waits.append(1e3 * (time.perf_counter() - begin))
        require_tours(result, 50)
    waits.sort()
    shares = {share: waits[min(int(share * calls), calls - 1)] for share in (0.5, 0.99, 0.999, 1.0)}
    print(f"deadline 5 ms, 50 cities, {calls} calls: " + ", ".join(f"{100 * s:g}%: {w:.2f} ms" for s, w in shares.items()))


def throughput(program, turns):
    """The program's time over the package's, greedy tours of 100,000 x 20 cities, in turns."""
    batch = np.random.RandomState(3).uniform(size=(100000, 20, 2)).astype(np.float32)
    solver = pointsman.Solver("tsp20", threads=1)
    with tempfile.TemporaryDirectory() as folder:
        file, answers = os.path.join(folder, "batch.npy"), os.path.join(folder, "answers.npy")
        np.save(file, batch)
        command = [program, "solve", file, "-m", "tsp20", "--mode", "greedy", "-t", "1", "-q", "-f", "-o", answers]
        ratios = []
        for _ in range(turns):
            theirs = seconds_of(lambda: subprocess.run(command, check=True))
            ours = seconds_of(lambda: require_tours(solver.solve(batch, mode="greedy"), 20))
            ratios.append(theirs / ours)
    print(f"greedy, 100,000 x 20 cities: {statistics.median(ratios):.2f} x the program's rate from a .npy file to one")


def scaling(turns):
    """Two Python threads with a solver each beside one."""
    batch = np.random.RandomState(4).uniform(size=(20000, 20, 2))
    solvers = [pointsman.Solver("tsp20", threads=1) for _ in range(2)]
    ratios = []
    for _ in range(turns):
        alone = seconds_of(lambda: solvers[0].solve(batch, mode="greedy"))
        threads = [threading.Thread(target=solver.solve, args=(batch,), kwargs={"mode": "greedy"}) for solver in solvers]

        def both():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        ratios.append(2 * alone / seconds_of(both))
    print(f"two threads: {statistics.median(ratios):.2f} x one")


def import_time(turns):
    """Milliseconds of the import beyond numpy's, in turns."""
    def child(code):
        return seconds_of(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    beyond = [child("import numpy, pointsman") - child("import numpy") for _ in range(4 * turns)]
    print(f"import: {1e3 * statistics.median(beyond):.0f} ms beyond numpy's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10000)
    options = parser.parse_args()
    overhead(options.calls)
    latency(options.calls)
    throughput(options.program, options.turns)
    scaling(options.turns)
    import_time(options.turns)


if __name__ == "__main__":
    main()
