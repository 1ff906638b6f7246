#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the examples of docs/embedding.md as they stand there, outside the tree, against an installation; exit code 0: all
of them run, and their answers are the program's bytes.

    python3 tests/host/library/examples.py PREFIX          an installation
    python3 tests/host/library/examples.py --build BUILD   makes one of this build first
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/embedding.md").read_text()
INSTANCES = '{"id":"a","problem":"tsp","coordinates":[[0,0],[3,0],[3,4],[1,5],[1,2],[2,2],[5,1]]}\n' \
            '{"problem":"knapsack","capacity":9,"weights":[1,2,3,4,5],"values":[5,4,3,2,2]}\n'


def run(command, folder, environment, expected=0):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False,
                          shell=isinstance(command, str))
    if done.returncode != expected:
        sys.exit(f"{command}: code {done.returncode}, expected {expected}\n{done.stdout}{done.stderr}")
    return done.stdout


def equal(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected\n{expected}\nfound\n{found}")
    print(f"ok: {what}")


def write_examples(folder):
    files = re.findall(r"`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)```", PAGE, re.S)
    if [name for name, _ in files] != ["tour.c", "batch.cpp", "jobs.cpp", "CMakeLists.txt"]:
        sys.exit(f"docs/embedding.md: unexpected files {[name for name, _ in files]}")
    for name, text in files:
        (folder / name).write_text(text)


def check_answers(folder, environment, program, what):
    """What two of the examples wrote, beside the program."""
    solve = [program, "solve", "--format", "ndjson", "-q"]
    equal((folder / "five.out.ndjson").read_text(), run([*solve, "five.ndjson"], folder, environment), f"{what}: tour")
    equal((folder / "batch.out.ndjson").read_text(),
          run([*solve, "mixed.ndjson", "--mode", "sample", "-n", "64"], folder, environment), f"{what}: batch")


def build_and_check(prefix, scratch):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}
    program = str(prefix / "bin/pointsman")
    commands = [block.replace("~/.local", str(prefix)) for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)]
    printed = re.search(r"```text\n(.*?)```", PAGE, re.S).group(1)
    for kind in ("shared", "static"):
        folder = scratch / kind
        folder.mkdir()
        write_examples(folder)
        (folder / "mixed.ndjson").write_text(INSTANCES)
        with_cc, with_cmake = commands[1], commands[2].replace("batch five.ndjson", "batch mixed.ndjson")
        if kind == "static":
            lists = folder / "CMakeLists.txt"
            lists.write_text(lists.read_text().replace("pointsman::pointsman)", "pointsman::pointsman_static)"))
            with_cc = with_cc.replace("--libs pointsman", "pointsman) $(pkg-config --variable=static_libs pointsman")
            environment["POINTSMAN_MODEL_PATH"] = str(prefix / "share/pointsman/models")
        if run("command -v pkg-config || true", folder, environment):
            equal(run(with_cc, folder, environment), printed, f"{kind}: pkg-config")
        else:
            print("skipped: no pkg-config")
        out = run(with_cmake + "ldd build/batch\n", folder, environment)
        if printed not in out or ("libpointsman" in out.split(printed)[1]) != (kind == "shared"):
            sys.exit(f"{kind}: cmake\n{out}")
        check_answers(folder, environment, program, kind)
        equal("better by samples and local search\n" in out, True, f"{kind}: jobs")
        equal((folder / "jobs.safetensors").stat().st_size > 0, True, f"{kind}: a model")
    error = subprocess.run(["build/batch", "none.tsp"], cwd=scratch / "shared", env=environment, capture_output=True,
                           text=True, check=False)
    equal((error.returncode, error.stderr), (3, "none.tsp: cannot be opened: No such file or directory\n"), "an error")


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder).resolve()
        prefix = pathlib.Path(sys.argv[-1]).resolve()
        if sys.argv[1] == "--build":
            run(["cmake", "--install", prefix, "--prefix", scratch / "usr"], ROOT, None)
            prefix = scratch / "usr"
        build_and_check(prefix, scratch)


main()
