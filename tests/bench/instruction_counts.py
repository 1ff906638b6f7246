#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the hot CPU operations under valgrind and compares them with instruction_counts.json.

    python3 tests/bench/instruction_counts.py BINARY COMPILER [--write]

COMPILER names the entry of the table, for example "GNU 12". A count that grew by more than 10% fails; --write makes
the counts found the table's. Exit code 77, with the reason, where counts cannot be compared: no valgrind, no AVX2, or a
compiler without an entry.

The program does the same work in each run, on one thread with fixed seeds. An operation's count includes what it
calls. valgrind knows AVX2 and not AVX-512, so every processor with AVX2 runs the same instructions.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED, MOST_GROWTH = 77, 0.10
TABLE = pathlib.Path(__file__).with_name("instruction_counts.json")
MAP = pathlib.Path(__file__).resolve().parents[1] / "data/swiss_stations.tsp"
TRAIN = "train tsp --steps 1 --instances set.npy"
COMMANDS = (
    f"{TRAIN} -n 20 -b 1 --layers 1 -o attention.safetensors",  # of 8 rollouts
    f"{TRAIN} -n 20 -b 4 --encoder lstm --prior off --baseline critic -o lstm.safetensors",
    f"solve {MAP} --mode local --kicks 200 -o local.tour",
    f"solve {MAP} --mode 2opt --kicks 200 -o 2opt.tour",
)
# The functions of kernels/cpu/cpu_operations.h, the engine's calls of them, and both local searches.
OPERATION = re.compile(r"pointsman::(?:\(anonymous namespace\)::)?"
                       r"(cpu::(?!instruction_set)[a-z]\w+|CpuBackend::(?:rollout|gradient)|local_search|TwoOptSearcher::search)\(")


def environment():
    """Without flags of the user's, and without the instruction `rep stosb`, which callgrind counts once a byte."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}
    return kept | {"POINTSMAN_SIMD": "avx2", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-ERMS"}


def add_counts(profile, counts):
    """Of each call a profile holds the callee, a line `calls=`, and a line that ends with the instructions spent."""
    callee, is_cost = None, False
    for line in profile.open():
        if is_cost and callee:
            counts[callee] += int(line.split()[-1])
        is_cost = line.startswith("calls=")
        if line.startswith("cfn="):
            found = OPERATION.match(line, len("cfn="))
            callee = found and found[1]


def count(binary):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            done = subprocess.run(command, cwd=folder, env=environment(), text=True, capture_output=True)
            if done.returncode:
                sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")

        run(binary, *"generate tsp -n 20 -b 10 -o set.npy".split())
        for command in COMMANDS:
            run("valgrind", "--tool=callgrind", "--callgrind-out-file=profile", "--compress-strings=no", binary,
                *command.split(), "--threads", "1", "--device", "cpu")
            add_counts(pathlib.Path(folder, "profile"), counts)
    return dict(sorted(counts.items()))


def failures(found, expected):
    for name in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(name), expected.get(name)
        print(f"{name:30} {ours or '-':>12} {theirs or '-':>12}")
        if not theirs:
            yield f"{name}: has no count in the table; add it with --write"
        elif not ours:
            yield f"{name}: was not called"
        elif ours > (1 + MOST_GROWTH) * theirs:
            yield f"{name}: {ours} instructions, expected {theirs}: {ours / theirs - 1:.0%} more, at most {MOST_GROWTH:.0%}"


def skip_reason(table, arguments):
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if not (cpuinfo.exists() and re.search(r"\bavx2\b", cpuinfo.read_text())):
        return "this processor has no AVX2"
    if arguments.compiler not in table and not arguments.write:
        return f"no counts of {arguments.compiler}, only of {', '.join(table)}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("compiler")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if reason := skip_reason(table, arguments):
        print(f"SKIPPED: {reason}")
        return SKIPPED
    found = count(arguments.binary)
    if arguments.write:
        TABLE.write_text(json.dumps(table | {arguments.compiler: found}, indent=1) + "\n")
        return 0
    failed = list(failures(found, table[arguments.compiler]))
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
