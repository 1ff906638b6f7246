#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs other solvers and Pointsman on the same instances, on one core, and compares gap and CPU time.

  rivals.py run DATA OUTPUT [--only NAME ...]    measures into OUTPUT, a row of NDJSON for each method, setting and set
  rivals.py plane OUTPUT FOLDER                  draws FOLDER/plane_tsp20.svg, .. (matplotlib); tables.py makes the tables

DATA holds tsp{20,50,100}_test.npy, tsp{200,500,1000}.npy, knap{50,100,200}_test.npy, and their optima, NAME.opt.npy.
`run` takes the rivals from Python packages (numpy networkx ortools elkai fast-tsp pyvrp), from LEMON's headers with g++
(Debian: liblemon-dev), from the executable `concorde` in PATH and from PyTorch (--torch). A rival that is missing gets a
row that says why. Rows that are there stay; what failed or was skipped is tried again.

- A rival solves the first 100 instances of a set, or all 16, and fewer where these take more than --seconds.
- `cpu_ms` is CPU time for one instance, distances included. It includes the start of a process, shared by the instances
  of a set, but for Python and PyTorch no imports. A process that took less than 5 s solves ten copies of the set, so
  that its start counts less.
- `batch` is 1 where instances are solved one at a time, else the number of instances given at once.
- `pointsman verify` checks each solution and measures its cost. Rivals that need integers get distances in millionths
  (fast-tsp: in 1/46,000), weights rounded up.
- A wall limit in a setting's name limits wall time, of which busy machines give less CPU time."""
# pylint: disable=import-outside-toplevel
import argparse
import concurrent.futures
import dataclasses
import importlib
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from importlib import metadata

from plane import OURS, SETS, WALL_CAP, WHOLE, last_rows, plane
from rows import append, machine

os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
try:
    import numpy as np
except ImportError:
    np = None  # `plane` needs none

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST = 100  # instances of a set that are solved one at a time
LEAST = 3  # instances that a slow method solves whatever they take
SHORT, COPIES = 5.0, 10  # a process that took fewer CPU seconds solves so many copies, so that its start counts less


class Missing(Exception):
    """Why a rival cannot run here."""


@dataclasses.dataclass
class Work:
    """What a method solves: the first `count` instances of a set, `batch` at a time."""
    data: pathlib.Path
    name: str
    count: int
    batch: int
    options: argparse.Namespace
    folder: pathlib.Path
    copies: int = 1  # of the instances; only the solutions of the first are kept

    def __post_init__(self):
        self.problem, self.n = SETS[self.name]
        self.flags = ["--problem", "knapsack", "--capacity", str(capacity(self.n))] if self.problem == "knapsack" else []

    def load(self, suffix=".npy"):
        return np.load(self.data / (self.name + suffix))[:self.count]

    def save(self, name, array):
        np.save(self.folder / name, array)
        return str(self.folder / name)


@dataclasses.dataclass
class Method:
    """settings(n): the parameters of each setting by its name; run(work, parameters): solutions and CPU seconds."""
    name: str
    settings: typing.Callable
    run: typing.Callable
    version: typing.Callable  # of (options, folder); raises Missing
    problem: str = "tsp"
    shares_start: bool = False  # one process solves the set, and its start counts
    batches: bool = False


def capacity(n):
    return 12.5 if n <= 50 else 25.0


def process(command, **how):
    """stdout of a process and the CPU seconds that it and its children took."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, **how)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {err.read()[-300:].decode(errors='replace').strip()}")
        return out.read(), usage.ru_utime + usage.ru_stime


# --- Rivals in this process: solve(points, ..) -> solution ---


def whole(points, scale=1e6):
    return np.rint(scale * np.linalg.norm(points[:, None] - points[None], axis=2)).astype(int)


def package(name):
    def version(*_):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            raise Missing(f"no Python package {name}") from None

    return version


def one_by_one(solve, *modules):
    def run(work, parameters):
        for module in modules:
            importlib.import_module(module)
        solutions, spent, begin = [], 0.0, time.process_time()
        for points in work.load():
            solutions.append(solve(points, **parameters))
            spent = time.process_time() - begin
            if spent > work.options.seconds and len(solutions) >= LEAST:
                break
        return solutions, spent

    return run


def christofides(points):
    import networkx
    distances, graph = whole(points).tolist(), networkx.Graph()
    graph.add_weighted_edges_from((i, j, row[j]) for i, row in enumerate(distances) for j in range(len(row)))
    return networkx.approximation.christofides(graph)[:-1]


def lkh(points, runs):
    import elkai
    return elkai.DistanceMatrix(whole(points).tolist()).solve_tsp(runs=runs)[:-1]


def fast_tsp(points, seconds):
    import fast_tsp as module
    return module.find_tour(whole(points, 46_000).tolist(), duration_seconds=seconds)  # it takes 16 bits


def pyvrp(points, seconds):
    import pyvrp as module
    from pyvrp.stop import MaxRuntime
    distances = whole(points)
    clients = [module.Client(i) for i in range(1, len(points))]  # by location
    data = module.ProblemData([module.Location(x, y) for x, y in points], clients, [module.Depot(0)], [module.VehicleType()],
                              [distances], [0 * distances])
    best = module.solve(data, MaxRuntime(seconds), collect_stats=False, display=False).best
    return [0] + [clients[stop.idx].location for route in best.routes() for stop in route.schedule() if stop.is_client()]


def routing(points, first="PATH_CHEAPEST_ARC", search="GREEDY_DESCENT", solutions=None):
    """OR-Tools. The first solution is solution 1; the time limit only ends searches that are limited by solutions."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2 as enums
    manager = pywrapcp.RoutingIndexManager(len(points), 1, 0)
    model = pywrapcp.RoutingModel(manager)
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(whole(points).tolist()))
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = getattr(enums.FirstSolutionStrategy, first)
    parameters.local_search_metaheuristic = getattr(enums.LocalSearchMetaheuristic, search)
    if solutions:
        parameters.solution_limit = solutions
        parameters.time_limit.seconds = WALL_CAP
    found, tour, at = model.SolveWithParameters(parameters), [], model.Start(0)
    while not model.IsEnd(at):
        tour.append(manager.IndexToNode(at))
        at = found.Value(model.NextVar(at))
    return tour


ROUTING = "ortools.constraint_solver.pywrapcp", "ortools.constraint_solver.routing_enums_pb2"
STARTS = "PATH_CHEAPEST_ARC", "SAVINGS", "CHRISTOFIDES"


def starts(**parameters):
    """The settings of a method of OR-Tools: which first solution it starts from."""
    return lambda n: {f"from {first.replace('_', ' ').lower()}": {"first": first, **parameters} for first in STARTS}


def limits(search):
    """Table 6 of the paper: after so many solutions, as far as these take minutes."""
    def counts(n):
        return (1, 16, 128) if n >= 500 else (1, 128, 1280, 12800) if n in (50, 100) else (1, 128, 1280)

    return lambda n: {f"{k:,} solution{'s' * (k > 1)}, at most {WALL_CAP} s (wall)": {"search": search, "solutions": k} for k in counts(n)}


def knapsack(points, solver, scale, room):
    from ortools.algorithms.python import knapsack_solver as module
    weights, values = np.ceil(scale * points[:, 0]).astype(int).tolist(), np.rint(scale * points[:, 1]).astype(int).tolist()
    search = module.KnapsackSolver(getattr(module.SolverType, f"KNAPSACK_{solver}_SOLVER"), "")
    search.init(values, [weights], [int(scale * room)])
    search.solve()
    return [search.best_solution_contains(i) for i in range(len(points))]


def packings(n):
    solvers = ("MULTIDIMENSION_BRANCH_AND_BOUND", 1e6), ("MULTIDIMENSION_BRANCH_AND_BOUND", 1e4), ("DYNAMIC_PROGRAMMING", 1e4)
    return {f"{solver.replace('_', ' ').lower()}, numbers in 1/{scale:,.0f}":
            {"solver": solver, "scale": scale, "room": capacity(n)} for solver, scale in solvers}


# --- Rivals that are processes ---


def lemon_version(_, folder):
    source, program = ROOT / "bench/paper/lemon_tsp.cpp", folder / "lemon_tsp"
    try:
        process(["g++", "-std=c++17", "-O3", "-march=native", "-w", source, "-o", program])
    except (OSError, RuntimeError):
        raise Missing("no g++ or no headers of LEMON") from None
    return "LEMON " + process([program])[0].decode().strip()


def lemon(work, heuristic):
    points = np.tile(work.load(), (work.copies, 1, 1))
    (work.folder / "points").write_bytes(np.array(points.shape[:2], "<i4").tobytes() + points.astype("<f8").tobytes())
    with open(work.folder / "points", "rb") as file:
        tours, spent = process([work.folder / "lemon_tsp", heuristic], stdin=file)
    return np.frombuffer(tours, "<i4").reshape(points.shape[:2])[:work.count], spent / work.copies


def concorde_version(*_):
    if not shutil.which("concorde"):
        raise Missing("no executable concorde in PATH")
    return "concorde"


def concorde(work, _):
    tours, total = [], 0.0
    for points in work.load():
        cities = "".join(f"{i} {1e6 * x:.6f} {1e6 * y:.6f}\n" for i, (x, y) in enumerate(points, 1))
        text = f"NAME: a\nTYPE: TSP\nDIMENSION: {work.n}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{cities}EOF\n"
        (work.folder / "a.tsp").write_text(text, encoding="utf-8")
        _, spent = process(["concorde", "-x", "-s", "99", "-o", "a.sol", "a.tsp"], cwd=work.folder)
        tours.append([int(word) for word in (work.folder / "a.sol").read_text(encoding="utf-8").split()[1:]])
        total += spent
        if total > work.options.seconds and len(tours) >= LEAST:
            break
    return tours, total


def torch_version(options, _):
    try:
        return "torch " + process([options.torch, "-c", "import torch; print(torch.__version__)"])[0].decode().strip()
    except (OSError, RuntimeError):
        raise Missing(f"{options.torch} has no torch (--torch PYTHON)") from None


def twin(work, parameters):
    """bench/torch_twin.py measures itself, without its imports and compilation, with the fastest of its chunks."""
    points = work.load()
    features = work.folder / "features.bin"
    features.write_bytes(points.astype("<f4").tobytes())
    load = {"do": "load", "features": str(features), "count": len(points), "n": work.n}
    greedy = {"do": "greedy", "compiled": parameters["compiled"], "chunks": [1] if work.batch == 1 else [16, 64, 256]}
    (work.folder / "commands").write_text(f"{json.dumps(load)}\n{json.dumps(greedy)}\n", encoding="utf-8")
    with open(work.folder / "commands", "rb") as file:
        model = ROOT / f"models/pretrained/{parameters['model']}.safetensors"
        out, _ = process([work.options.torch, ROOT / "bench/torch_twin.py", "--model", model], stdin=file)
    found = json.loads(out.splitlines()[-1])
    return found["tours"], found["seconds"]


def twins(compiled):
    """Both networks, as far as there are models of n cities."""
    names = {20: ("tsp20", "tsp20-lstm"), 50: ("tsp50", "tsp50-lstm"), 100: ("tsp100", "tsp100-lstm"), 200: ("tsp200",)}
    return lambda n: {f"{name}, greedy": {"model": name, "compiled": compiled} for name in names.get(n, ())}


# --- Pointsman ---


def pointsman_version(options, _):
    return process([options.pointsman, "--version"])[0].decode().splitlines()[0].strip()


def pointsman(work, flags):
    given, found = work.save("set.npy", work.load()), work.folder / "found.npy"
    one = ["--batch-size", 1] if work.batch == 1 else []
    _, spent = process([work.options.pointsman, "solve", *[given] * work.copies, "-t", 1, "-o", found, "-f", "-q",
                        "--device", "cpu", *work.flags, *one, *flags])
    return np.load(found)[:work.count], spent / work.copies


def kicks(n):
    numbers = {"n/10 kicks": n // 10, "n kicks": n, "10 n kicks": 10 * n, "100 n kicks": 100 * n}
    return {name: ["--mode", "local", "--kicks", number] for name, number in numbers.items()}


def attention(n):
    """Greedy tours and samples of tspN, the latter at the best temperature of bench/results/paper/cells.jsonl, and both improved."""
    if n > 200:
        return {}
    temperature = {100: 0.7, 200: 0.35}.get(n, 1)
    greedy, sample = ["-m", f"tsp{n}", "--mode", "greedy"], ["-m", f"tsp{n}", "--mode", "sample", "--augment", 8]
    settings = {"greedy": greedy, "greedy x8": [*greedy, "--augment", 8],
                f"1,280 samples x8, T {temperature}": [*sample, "--temperature", temperature]}
    improved = {"greedy": greedy, "greedy x8": [*greedy, "--augment", 8], "1,280 samples x8": sample}
    return settings | {f"{name}, improved": [*flags, "--improve", "on"] for name, flags in improved.items()}


def lstm(n):
    if n > 100:
        return {}
    temperature, model = 1 if n == 20 else 0.5, ["-m", f"tsp{n}-lstm", "--mode"]
    sample = [*model, "sample", "--augment", 8, "--shuffle", "--temperature", temperature]
    return {"greedy": [*model, "greedy"], f"1,280 samples x8, T {temperature}": sample}


def packers(n):
    return {f"{model}, greedy": ["-m", model, "--mode", "greedy"] for model in (f"knap{n}", f"knap{n}-lstm")}


METHODS = [
    Method(OURS + "local search", kicks, pointsman, pointsman_version, shares_start=True, batches=True),
    Method(OURS + "network", attention, pointsman, pointsman_version, shares_start=True, batches=True),
    Method(OURS + "the paper's network", lstm, pointsman, pointsman_version, shares_start=True, batches=True),
    Method("PyTorch eager", twins(False), twin, torch_version, batches=True),
    Method("PyTorch compiled", twins(True), twin, torch_version, batches=True),
    Method("2-opt (LEMON)", lambda n: {"from nearest neighbour": "nearest", "from greedy edges": "greedy",
                                       "from farthest insertion": "insertion"}, lemon, lemon_version, shares_start=True),
    Method("Christofides (LEMON)", lambda n: {"no budget": "christofides"}, lemon, lemon_version, shares_start=True),
    Method("Christofides (networkx)", lambda n: {"no budget": {}} if n <= 200 else {},
           one_by_one(christofides, "networkx.algorithms.approximation"), package("networkx")),
    Method("LKH (elkai)", lambda n: {f"{runs} runs" if runs > 1 else "1 run": {"runs": runs} for runs in (1, 3, 10)},
           one_by_one(lkh, "elkai"), package("elkai")),
    Method("fast-tsp", lambda n: {f"{limit:g} s (wall)": {"seconds": limit} for limit in (0.01, 0.1, 2)},
           one_by_one(fast_tsp, "fast_tsp"), package("fast-tsp")),
    Method("PyVRP", lambda n: {f"{limit:g} s (wall)": {"seconds": limit} for limit in (0.1, 1, 5)},
           one_by_one(pyvrp, "pyvrp"), package("pyvrp")),
    Method("Concorde", lambda n: {"exact": {}} if n <= 500 else {}, concorde, concorde_version),
    *(Method(f"OR-Tools {name}", settings, one_by_one(routing, *ROUTING), package("ortools"))
      for name, settings in (("first solution", starts(solutions=1)), ("local search", starts()),
                             ("simulated annealing", limits("SIMULATED_ANNEALING")), ("tabu search", limits("TABU_SEARCH")),
                             ("guided local search", limits("GUIDED_LOCAL_SEARCH")))),
    Method(OURS + "branch and bound", lambda n: {"exact": ["--mode", "exact"]}, pointsman, pointsman_version, "knapsack", True, True),
    Method(OURS + "knapsack networks", packers, pointsman, pointsman_version, "knapsack", True, True),
    Method("OR-Tools knapsack solver", packings, one_by_one(knapsack, "ortools.algorithms.python.knapsack_solver"),
           package("ortools"), "knapsack"),
]

# --- run ---


def verified_costs(work, solutions):
    """By `pointsman verify`, which fails at an invalid solution."""
    given = work.save("set.npy", work.load()[:len(solutions)])
    answers = work.save("answers.npy", np.array(solutions, np.int32 if work.problem == "tsp" else np.uint8))
    out, _ = process([work.options.pointsman, "verify", given, answers, "--format", "json", "-q", *work.flags])
    return np.array([one["cost" if work.problem == "tsp" else "value"] for one in json.loads(out)["solutions"]])


def measure(name, setting, work):
    """Numbers of a row; in a process of its own, so that a rival that crashes ends nothing else."""
    method = next(one for one in METHODS if one.name == name)
    parameters = method.settings(work.n)[setting]
    solutions, spent = method.run(work, parameters)
    if method.shares_start and spent < SHORT and work.count < WHOLE:
        work.copies = COPIES
        solutions, spent = method.run(work, parameters)
    costs, optima = verified_costs(work, solutions), work.load(".opt.npy")[:len(solutions)]
    gaps = costs / optima - 1 if work.problem == "tsp" else 1 - costs / optima
    batch = 1 if work.batch == 1 else work.copies * work.count
    return {"batch": batch, "instances": len(costs), "threads": 1, "cpu_ms": round(1e3 * spent / len(costs), 6), "mean_cost": costs.mean(),
            "gaps": (gaps.round(6) + 0.0).tolist()}


def skipped_or_version(method, options, folder, rows):
    """The version of a method; None, and a row, where it is missing."""
    try:
        return method.version(options, folder)
    except Missing as why:
        row = {"method": method.name, "skipped": str(why)}
        if rows.get((method.name, None, None, False)) != row:
            append(options.output, row)
        print(f"{method.name}: skipped: {why}", file=sys.stderr)
        return None


def run_row(method, setting, work, version):
    row = {"method": method.name, "setting": setting, "version": version, "problem": work.problem, "n": work.n,
           "set": work.name, "batch": work.batch, "machine": machine()}
    try:
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            row |= pool.submit(measure, method.name, setting, work).result()
    except Exception as failure:  # pylint: disable=broad-exception-caught
        row["error"] = f"{type(failure).__name__}: {failure}"[:500]
    append(work.options.output, row)
    found = row.get("error") or f"{row['cpu_ms']:.4g} ms, {100 * statistics.fmean(row['gaps']):.4f}%, {row['instances']} instances"
    print(f"{method.name}, {setting}, {work.name}, batch {row['batch']}: {found}", file=sys.stderr, flush=True)


def run(options):
    rows, end = last_rows(options.output), time.monotonic() + 60 * options.minutes
    chosen = [method for method in METHODS if not options.only or any(name.lower() in method.name.lower() for name in options.only)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        versions = {method.name: skipped_or_version(method, options, folder, rows) for method in chosen}
        for (data, (problem, n)), method in itertools.product(SETS.items(), chosen):
            if method.problem != problem or versions[method.name] is None or not (options.data / f"{data}.npy").exists():
                continue
            for setting, whole_set in itertools.product(method.settings(n), (False, True)[:1 + method.batches]):
                there = rows.get((method.name, setting, data, whole_set), {})
                if "gaps" in there:
                    continue
                if time.monotonic() > end:
                    sys.exit("out of time; run it again to go on")
                size = len(np.load(options.data / f"{data}.npy", mmap_mode="r"))
                count = min(size, WHOLE if whole_set else FIRST)
                work = Work(options.data, data, count, count if whole_set else 1, options, folder)
                run_row(method, setting, work, versions[method.name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = parser.add_subparsers(dest="name", required=True)
    command = names.add_parser("run")
    command.set_defaults(call=run)
    command.add_argument("data", type=pathlib.Path)
    command.add_argument("output", type=pathlib.Path)
    command.add_argument("--pointsman", default=ROOT / "build/host/pointsman", help="the program")
    command.add_argument("--torch", default="python3", help="a Python with torch and numpy")
    command.add_argument("--only", nargs="+", help="methods with one of these in their names")
    command.add_argument("--seconds", type=float, default=300, help="CPU time after which a rival solves no further instance")
    command.add_argument("--minutes", type=float, default=math.inf, help="after these no row is begun")
    command = names.add_parser("plane")
    command.set_defaults(call=plane)
    command.add_argument("output", type=pathlib.Path)
    command.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
