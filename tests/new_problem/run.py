#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds a problem, the open vehicle routing problem (OVRP), and an option to a copy of the tree, and uses them.

    python3 tests/new_problem/run.py BUILD_DIR [CXX [PYTHON]]

ovrp.patch is what CONTRIBUTING.md ("Adding a problem") asks for. It touches at most three files besides its own two. With
any one of its hunks in those files left out the tree does not compile. The program that comes of it generates, trains
(policy gradient and supervised), solves, scores and verifies open routes. They are as the CVRP's, but no vehicle comes
back: an item that may be chosen again, a state with a bit an item, context, a third feature, orders longer than n.

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
PATCH = (pathlib.Path(__file__).parent / "ovrp.patch").read_text()
OPTION = (pathlib.Path(__file__).parent / "option.patch").read_text()
ROOMS = ("CMakeLists.txt", "kernels", "models", "engine", "host", "bench", "docs")


def split_patch():
    """[(file's header, its hunks)] of the patch."""
    files = re.split(r"(?m)^(?=diff --git )", PATCH)[1:]
    return [(re.split(r"(?m)^(?=@@ )", text)[0], re.split(r"(?m)^(?=@@ )", text)[1:]) for text in files]


def patched_tree(folder, left_out=None):
    """A copy of the product in `folder` with all hunks but number `left_out`."""
    shutil.rmtree(folder / "tree", ignore_errors=True)
    (folder / "tree").mkdir()
    for room in ROOMS:
        source = ROOT / room
        ignore = shutil.ignore_patterns("*.safetensors", "results", "images")
        (shutil.copytree(source, folder / "tree" / room, ignore=ignore) if source.is_dir() else
         shutil.copy(source, folder / "tree" / room))
    numbers = itertools.count()
    text = ""
    for header, hunks in split_patch():
        kept = [hunk for hunk in hunks if next(numbers) != left_out]
        text += header + "".join(kept) if kept else ""
    text += OPTION if left_out is None else ""
    subprocess.run(["git", "apply", "--recount", "-"], input=text, text=True, check=True, cwd=folder / "tree",
                   env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)})
    return folder / "tree"


def compiles(tree, cxx):
    """Whether the compiler takes what knows the problems: the table and the CPU's rollout."""
    sources = (tree / "engine/problem/problem.cpp", tree / "engine/backend/cpu/rollout.cpp")
    command = [cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror=switch", "-I", str(tree)]
    return all(subprocess.run([*command, source], stderr=subprocess.DEVNULL).returncode == 0 for source in sources)


def build(tree, cxx, python):
    # Compiled quickly: the kernels, which ask for -O3 themselves, for one instruction set; the rest a library at once, as
    # most of their time is their headers'.
    flags = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DPOINTSMAN_DISABLED_TARGETS=0x53D0",
             "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0", f"-DCMAKE_CXX_COMPILER={cxx}"]
    subprocess.run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DPOINTSMAN_CUDA=OFF",
                    "-DPOINTSMAN_BUILD_TESTS=OFF", "-DPOINTSMAN_WERROR=OFF", *flags], check=True, stdout=subprocess.DEVNULL)
    targets = ["pointsman", "pointsman_shared"]
    if python:
        targets.append("pointsman_python")
        subprocess.run(["cmake", tree / "build", "-DPOINTSMAN_PYTHON=ON", f"-DPython_EXECUTABLE={python}"], check=True,
                       stdout=subprocess.DEVNULL)
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
    touched = [header for header, _ in split_patch() if "new file mode" not in header]
    assert len(touched) <= 3, touched
    numbered = enumerate((header, hunk) for header, hunks in split_patch() for hunk in hunks)
    hunks = [number for number, (header, _) in numbered if header in touched]
    for number in hunks:
        assert not compiles(patched_tree(folder, number), cxx), f"compiles without hunk {number + 1}"
    tree = patched_tree(folder)
    assert compiles(tree, cxx), "the whole patch does not compile"
    python = python_with_nanobind(sys.argv[3] if len(sys.argv) > 3 else sys.executable)
    program = build(tree, cxx, python)
    use(program, folder)
    print("a new option:", len(re.findall("(?m)^diff --git", OPTION)), "files touched;", use_option(program, python))
    print(f"a new problem: {len(touched)} files touched, none of their {len(hunks)} hunks can be left out")


main()
