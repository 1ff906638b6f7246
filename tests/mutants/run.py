#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of mutants.txt one at a time in a copy of the tree. The tests of a fault's room must notice it.

    python3 tests/mutants/run.py BUILD_DIR [--only N ...]   copies and builds in BUILD_DIR, which the next run reuses
    python3 tests/mutants/run.py --check                    only: does each text that goes stand exactly once?

Ends with 1 when a fault survives, does not build or finds no place.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
Mutant = collections.namedtuple("Mutant", "path program old new")


def read_mutants():
    for block in (ROOT / "tests/mutants/mutants.txt").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            texts = (" ".join(line[2:] for line in lines[1:] if line[0] == sign) for sign in "-+")
            yield Mutant(*lines[0].split(), *texts)


def places(mutant, source):
    """Where the text that goes stands, whatever its line breaks."""
    tokens = re.findall(r"\w+|\S", mutant.old)
    return list(re.finditer(r"\s*".join(map(re.escape, tokens)), source))


def complaints(chosen):
    for number, mutant in chosen:
        count = len(places(mutant, file.read_text())) if (file := ROOT / mutant.path).exists() else 0
        if count != 1:
            yield f"{number:2}  {mutant.path}: {count} places with {mutant.old}"
        if not any((ROOT / "tests").rglob(mutant.program + ".cpp")):
            yield f"{number:2}  no test program {mutant.program}"


def copy_tree(copy):
    """Copies the tracked files. One that did not change keeps its time, so that it is not built again."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = {name for name in tracked.split("\0") if (ROOT / name).is_file()}
    for file in copy.rglob("*"):
        if file.is_file() and str(file.relative_to(copy)) not in names:
            file.unlink()
    for name in names:
        file, data = copy / name, (ROOT / name).read_bytes()
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def build(folder, program):
    with open(folder / "build.log", "w") as log:
        return not subprocess.call(["cmake", "--build", folder / "build", "--target", "pointsman", program], stdout=log)


def failures(folder, program):
    """The names of the tests that fail."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    try:
        subprocess.run([folder / "build/tests" / program, "-r", "xml", "-o", report], timeout=600,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cases = ElementTree.parse(report).iter("TestCase")
        return [case.get("name") for case in cases if case.find("OverallResult").get("success") == "false"]
    except (OSError, subprocess.TimeoutExpired, ElementTree.ParseError) as error:
        return [f"no report: {error}"]


def try_mutant(folder, mutant):
    """Plants one fault, builds and tests. The names of the tests that noticed it, or what else came of it."""
    file = folder / "tree" / mutant.path
    source = file.read_text()
    place = places(mutant, source)[0]
    file.write_text(source[:place.start()] + mutant.new + source[place.end():])
    try:
        if not build(folder, mutant.program):
            return "DOES NOT BUILD"
        return "; ".join(failures(folder, mutant.program)) or "SURVIVED"
    finally:
        file.write_text(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, metavar="BUILD_DIR")
    parser.add_argument("--only", nargs="+", type=int, metavar="N")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    chosen = [(n, mutant) for n, mutant in enumerate(read_mutants(), 1) if n in (arguments.only or [n])]
    wrong = list(complaints(chosen))
    if wrong or arguments.check:
        sys.exit("\n".join(wrong) or None)
    folder = (arguments.folder or parser.error("expected BUILD_DIR or --check")).resolve()
    copy_tree(folder / "tree")
    subprocess.run(["cmake", "-S", folder / "tree", "-B", folder / "build", "-G", "Ninja", "-DPOINTSMAN_CUDA=OFF",
                    "-DCMAKE_BUILD_TYPE=Release"], check=True, stdout=subprocess.DEVNULL)
    os.environ.pop("POINTSMAN_BENCHMARK_DATA", None)  # some tests take long with it
    for program in sorted({mutant.program for _, mutant in chosen}):
        if not build(folder, program) or failures(folder, program):
            sys.exit(f"{program} fails without a fault: {folder}/build.log, {folder}/report.xml")
    found = []
    for n, mutant in chosen:
        print(f"{n:2}  {mutant.path}: {mutant.old} -> {mutant.new or 'nothing'}", flush=True)
        found.append(try_mutant(folder, mutant))
        print(f"    {mutant.program}: {found[-1]}", flush=True)
    sys.exit("SURVIVED" in found or "DOES NOT BUILD" in found)


if __name__ == "__main__":
    main()
