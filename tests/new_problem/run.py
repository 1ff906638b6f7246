#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a copy of the tree with a problem from outside it, the open vehicle routing problem (OVRP), and with a new option.

    python3 tests/new_problem/run.py BUILD_DIR [CXX [PYTHON]]

The problem is docs/examples/ovrp, copied to a folder that CMake's POINTSMAN_PROBLEMS names: no file of the tree is touched. The
program that comes of it generates, trains (policy gradient and supervised), solves, scores and verifies open routes. They
are as the CVRP's, but no vehicle comes back: an item that may be chosen again, a state with a bit an item, context, a third
feature, orders longer than n. Without the rules or without the row of the table it does not build. The CUDA kernels with these
rules run under the emulation (docs/emulation.md) and give the CPU's bits.

option.patch adds an option of solve: its record, a field and its use, at most three files. The option is then in the
help, the manual page, the completions, C and, where PYTHON has nanobind and numpy, in the package and its type stubs.
"""
import ctypes
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "docs/examples/ovrp"
OPTION = (pathlib.Path(__file__).parent / "option.patch").read_text()
ROOMS = ("CMakeLists.txt", "kernels", "models", "engine", "host", "bench", "docs", "tests")


def patched_tree(folder):
    """A copy of the product with the option, and beside it the problem's folder."""
    for name in ("tree", "problems"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "tree").mkdir()
    shutil.copytree(PROBLEM, folder / "problems")
    for room in ROOMS:
        source = ROOT / room
        ignore = shutil.ignore_patterns("*.safetensors", "results", "images", "examples")
        (shutil.copytree(source, folder / "tree" / room, ignore=ignore) if source.is_dir() else
         shutil.copy(source, folder / "tree" / room))
    subprocess.run(["git", "apply", "--recount", "-"], input=OPTION, text=True, check=True, cwd=folder / "tree",
                   env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)})
    return folder / "tree"


def configure(tree, problems, cxx, *more):
    # Compiled quickly: the kernels, which ask for -O3 themselves, for SSE4 and for AVX2, which has the GPU's fmaf; the rest a
    # library at once, as most of their time is their headers'.
    flags = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DPOINTSMAN_DISABLED_TARGETS=0x51D0",
             "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0", f"-DCMAKE_CXX_COMPILER={cxx}"]
    command = ["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DPOINTSMAN_CUDA=OFF", "-DPOINTSMAN_BUILD_TESTS=ON",
               "-DPOINTSMAN_WERROR=OFF", f"-DPOINTSMAN_PROBLEMS={problems}", *flags, *more]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def compiles(tree, problems, cxx):
    """Whether the compiler takes what knows the problems, with the rules and list of this folder."""
    command = [cxx, "-std=c++20", "-fsyntax-only", "-I", tree, "-I", problems, f'-DPOINTSMAN_ADDED_RULES="{problems}/ovrp.h"',
               f'-DPOINTSMAN_ADDED_PROBLEMS="{problems}/problems.inc"', tree / "engine/problem/problem.cpp"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def build(tree, problems, cxx, python):
    found = configure(tree, problems, cxx, *(["-DPOINTSMAN_PYTHON=ON", f"-DPython_EXECUTABLE={python}"] if python else []))
    assert found.returncode == 0, found.stderr
    targets = ["pointsman", "pointsman_shared", "pointsman_cuda_emulated", "fake_driver"] + (["pointsman_python"] if python else [])
    subprocess.run(["cmake", "--build", tree / "build", "--target", *targets], check=True)
    return tree / "build/host/pointsman"


def length(places, routes):
    """Each from the depot, place 0, to its last customer."""
    return sum(math.dist(places[a], places[b]) for route in routes for a, b in zip([0, *route], route))


def all_routes(demands, capacity):
    """Every order of the customers, split into routes in every way that a vehicle can carry."""
    for order in itertools.permutations(range(1, len(demands))):
        for cuts in itertools.product((False, True), repeat=len(order) - 1):
            routes = [[order[0]]]
            for customer, is_cut in zip(order[1:], cuts):
                routes.append([customer]) if is_cut else routes[-1].append(customer)
            if all(sum(demands[customer] for customer in route) <= capacity for route in routes):
                yield routes


def least_length(instance, capacity):
    return min(length(instance["coordinates"], routes) for routes in all_routes(instance["demands"], capacity))


def check_answer(instance, answer):
    """It is of the right problem and has the length that it says."""
    assert answer["problem"] == "ovrp" and sorted(sum(answer["routes"], [])) == [1, 2, 3, 4, 5], answer
    assert abs(answer["cost"] - length(instance["coordinates"], answer["routes"])) < 1e-12, answer


def use(program, folder):
    def run(*words):
        done = subprocess.run([program, *words, "-q"], cwd=folder, text=True, capture_output=True)
        assert done.returncode == 0, (words, done.stderr, done.stdout)
        return json.loads(done.stdout) if done.stdout else None

    for name in ("set.json", "set.npz"):
        run("generate", "ovrp", "-n", "6", "-b", "20", "-f", "-o", name)
    instances = json.loads((folder / "set.json").read_text())["instances"]
    train = ["train", "ovrp", "-n", "6", "-b", "8", "-f"]
    run(*train, "--prior", "off", "--steps", "100", "-o", "plain.safetensors", "--log", "log.jsonl")
    cost = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["train_cost"]
    # A random choice knows no places, so each of the five customers is reached from a random point of the unit square. Two
    # of these lie 0.5214 apart: random routes are 2.607 long, and the mean of eight of one instance has a standard
    # deviation of 0.484. The mean of 100 steps of eight instances, 0.017, is shorter by 4% in six of its deviations. Without
    # the prior, which prefers short legs before it has learned anything.
    assert cost < 0.96 * 5 * 0.5214, cost  # it learns
    run(*train, "--steps", "100", "-o", "ovrp6.safetensors")
    found = run("solve", "set.json", "-m", "./ovrp6.safetensors", "--mode", "sample", "-n", "2000", "--augment", "8")
    for instance, answer in zip(instances, found["solutions"], strict=True):
        check_answer(instance, answer)
        best = least_length(instance, instance["capacity"])
        assert abs(answer["cost"] - best) < 1e-12, (answer, best)  # 2,000 samples of 501 sets of routes
    # Some answers have more steps than there are items, and the capacity makes some longer.
    assert any(4 + len(answer["routes"]) > 6 for answer in found["solutions"])
    assert any(least_length(one, one["capacity"]) > least_length(one, math.inf) for one in instances)
    (folder / "answers.json").write_text(json.dumps(found))
    run("verify", "set.json", "answers.json")
    scores = run("score", "set.json", "--solutions", "answers.json", "-m", "./ovrp6.safetensors")
    assert all(answer["log_prob"] < 0 for answer in scores["solutions"])
    run(*train, "--steps", "20", "--instances", "set.json", "--solutions", "answers.json", "-o", "taught.safetensors")
    # An .npz does not say what problem it is of.
    taught = run("solve", "set.npz", "--problem", "ovrp", "-m", "./taught.safetensors", "--mode", "greedy")["solutions"]
    for instance, answer in zip(instances, taught, strict=True):
        check_answer(instance, answer)
    run("solve", "set.json", "-m", "./ovrp6.safetensors", "--mode", "active", "--steps", "5", "--replicas", "8")


def compare_with_cuda(program, folder):
    if " fma " not in pathlib.Path("/proc/cpuinfo").read_text():
        return "no fused multiply-add here, so the CPU's bits are others than a GPU's"
    module = program.parents[1] / "tests/cuda_emulation/module"
    emulated = {**os.environ, "LD_LIBRARY_PATH": str(module), "POINTSMAN_CUDA_MODULE": str(module / "libpointsman_cuda.so")}
    for mode in (["greedy"], ["sample", "-n", "64"]):
        command = [program, "solve", "set.json", "-m", "./ovrp6.safetensors", "-q", "--mode", *mode, "--device"]
        cpu, cuda = (json.loads(subprocess.run([*command, device], cwd=folder, env=emulated, check=True,
                                               capture_output=True).stdout) for device in ("cpu", "cuda"))
        assert cuda["summary"]["device"] != cpu["summary"]["device"], cuda["summary"]
        assert len(cpu["solutions"]) == 20 and cuda["solutions"] == cpu["solutions"]
    return "the CPU's bits"


def use_option(program, python):
    """--patience takes 0 to 9, and a solve refuses more than 3."""

    def text_of(*words):
        done = subprocess.run([program, *words], text=True, capture_output=True)
        return done.stdout + done.stderr

    assert "--patience INT" in text_of("solve", "--help")
    assert "\\-\\-patience" in text_of("--man")
    for shell in ("bash", "zsh", "fish"):
        assert "patience" in text_of("--completion", shell), shell
    assert "from 0 to 9" in text_of("solve", "none.tsp", "--patience", "10")

    library = ctypes.CDLL(str(program.parent / "library/libpointsman.so"))
    library.pointsman_last_error.restype = ctypes.c_char_p
    solver, instances, answers = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    points = (ctypes.c_double * 6)(0, 0, 1, 0, 0, 1)
    assert library.pointsman_solver_create(None, ctypes.byref(solver)) == 0
    assert library.pointsman_instances_create(solver, ctypes.byref(instances)) == 0
    added = library.pointsman_add_items(solver, instances, b"tsp", points, ctypes.c_size_t(3), ctypes.c_double(0), None)
    assert added == 0
    assert library.pointsman_set_option(solver, b"patience", b"10") == 2
    assert library.pointsman_last_error(solver) == b'patience: expected a whole number from 0 to 9, found "10"'
    for patience, status in ((b"4", 2), (b"3", 0)):
        assert library.pointsman_set_option(solver, b"patience", patience) == 0
        assert library.pointsman_solve(solver, instances, None, ctypes.byref(answers)) == status, patience

    if not python:
        return "no Python with nanobind and numpy: not looked for there"
    package = program.parents[1] / "python"
    assert "patience: int | None" in (package / "pointsman/_options.pyi").read_text()
    script = """import pointsman
pointsman.solve([[0, 0], [1, 0], [0, 1]], patience=3)
try:
    pointsman.solve([[0, 0], [1, 0], [0, 1]], patience=4)
except pointsman.UsageError as error:
    assert "no patience for 4" in str(error), error
else:
    raise SystemExit("not refused")
"""
    subprocess.run([python, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(package)})
    return "in help, manual, completions, C and Python"


def python_with_nanobind(path):
    """Null where it cannot build the package."""
    if not pathlib.Path(path).exists():
        return None
    found = subprocess.run([path, "-c", "import nanobind, numpy"], stderr=subprocess.DEVNULL)
    return path if found.returncode == 0 else None


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    cxx = sys.argv[2] if len(sys.argv) > 2 else "c++"
    folder.mkdir(parents=True, exist_ok=True)
    assert len(re.findall("(?m)^diff --git", OPTION)) <= 3
    tree, problems = patched_tree(folder), folder / "problems"
    wrong = configure(tree, folder / "none", cxx)
    assert wrong.returncode != 0 and "expected a folder with problems.inc" in wrong.stderr, wrong.stderr
    assert compiles(tree, problems, cxx)
    rules = (problems / "ovrp.h").read_text()
    (problems / "ovrp.h").write_text(rules.replace("struct OvrpRules", "struct OtherRules"))
    assert not compiles(tree, problems, cxx), "compiles without the rules"
    (problems / "ovrp.h").write_text(rules)
    python = python_with_nanobind(sys.argv[3] if len(sys.argv) > 3 else sys.executable)
    program = build(tree, problems, cxx, python)
    use(program, folder)
    print("its rules on emulated CUDA:", compare_with_cuda(program, folder))
    print("a new option:", len(re.findall("(?m)^diff --git", OPTION)), "files touched;", use_option(program, python))
    print("a problem of its own folder: no file of the tree touched")


main()
