#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills: `train` and `solve` die of SIGKILL at a random time while they write their files.

    python3 tests/faults/kills.py BINARY [--kills N] [--seed S] [--kinds KIND ..]    2,200; ctest makes 22

After each kill every file is either the one from before or a whole new one: `info` reads a model, `train --resume` goes
on from a checkpoint, answers are read and counted. After one to four kills a run comes to its end. Then nothing of the
killed ones may be left: no temporary file, which stands beside its file as ".NAME.tmp", and no other.

A stream's file grows instead; each mode of `solve` has one. About every other of its runs is not killed but ends at a
time limit. After a kill the file is the start of what an uninterrupted run writes, after a limit every answer that is done
is that run's, and after runs with --resume the file has the bytes of that run.

Half of the kills come at any time of a run, the others near its end, where answers are written. Exit code 1 when
anything is torn or stale.
"""
import argparse
import ast
import collections
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

ROWS, SIZE = 20_000, 5
# Of each mode: its problems, the instances of each size, and what makes a whole run take some tenths of a second.
STREAMS = {
    "greedy": (("tsp", "knapsack"), 60, ()),
    "sample": (("tsp", "knapsack"), 30, ("-n", 64)),
    "active": (("tsp", "knapsack"), 5, ("--steps", 3, "--replicas", 16, "--entropy", 0.2)),
    "local": (("tsp",), 60, ("--kicks", 1000)),
    "2opt": (("tsp",), 60, ("--kicks", 300)),
    "exact": (("knapsack",), 100, ()),
    "auto": (("tsp", "knapsack"), 60, ("--kicks", 300)),
}
KINDS = ("train", "json", "npy", "npz", *STREAMS)


def hard_knapsacks(rng, count):
    """Branch and bound cannot prove an answer: even weights, an odd capacity, values as the weights."""
    for _ in range(count):
        weights = [2 * rng.randint(1, 10**6) for _ in range(40)]
        yield json.dumps({"problem": "knapsack", "capacity": sum(weights) // 4 * 2 + 1, "weights": weights,
                          "values": weights})


def check_npy(data):
    head, = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + head].decode())
    width = int(header["descr"][2:])
    if header["shape"][0] != ROWS or len(data) != 10 + head + width * math.prod(header["shape"]):
        raise ValueError(f"{len(data)} bytes of {header}")


def check_npz(path):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None or len(archive.namelist()) != 2:
            raise ValueError(f"members: {archive.namelist()}")
        for name in archive.namelist():
            check_npy(archive.read(name))


def check_answers(path):
    if path.suffix == ".npz":
        check_npz(path)
    elif path.suffix == ".npy":
        check_npy(path.read_bytes())
    elif len(json.loads(path.read_text())["solutions"]) != ROWS:
        raise ValueError("answers are missing")


class Program:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def start(self, *arguments):
        return subprocess.Popen([self.binary, *map(str, arguments), "-q"], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def run(self, *arguments, code=0):
        process = self.start(*arguments)
        message = process.communicate()[1].decode()
        if process.returncode != code:
            raise ValueError(f"code {process.returncode}: {' '.join(map(str, arguments))}: {message}")


class Work:
    def share_left(self):
        """Of a whole run, for the next one."""
        return 1.0

    def check_finished(self):
        pass


class Solve(Work):
    """Answers to two sets by turns, so that each run writes other bytes."""

    def __init__(self, program, form):
        self.program, self.targets, self.runs = program, [f"answers.{form}"], 0
        for seed in (0, 1):
            program.run("generate", "tsp", "-n", SIZE, "-b", ROWS, "-s", seed, "-o", f"set{seed}.npy")

    def next_run(self, _):
        self.runs += 1
        return ("solve", f"set{self.runs % 2}.npy", "--mode", "local", "-t", 1, "-f", "-o", self.targets[0])

    def check(self, path):
        check_answers(path)


class Stream(Work):
    """Answers to lines of several sizes, some of them no instance."""

    def __init__(self, program, mode):
        self.program, self.targets, self.is_fresh = program, ["answers.ndjson"], True
        problems, count, flags = STREAMS[mode]
        lines = []
        for problem in problems:
            for size in (5, 12, 30):
                program.run("generate", problem, "-n", size, "-b", count, "-o", "part.ndjson", "-f")
                lines += (program.folder / "part.ndjson").read_text().splitlines()
        (program.folder / "part.ndjson").unlink()
        if mode == "auto":
            lines += hard_knapsacks(random.Random(2), 6)
        random.Random(1).shuffle(lines)
        lines[7::50] = ['{"no":"instance"}'] * len(lines[7::50])
        (program.folder / "set.ndjson").write_text("\n".join(lines) + "\n")
        self.flags = ("solve", "set.ndjson", "--mode", mode, "-t", 1, "-b", 9, *flags)
        program.run(*self.flags, "-o", "whole.ndjson", code=3)
        self.whole = (program.folder / "whole.ndjson").read_bytes()

    def next_run(self, _):
        begins = ("-f",) if self.is_fresh else ("--resume",)
        self.is_fresh = False
        return (*self.flags, *begins, "-o", self.targets[0])

    def check(self, path):
        if not self.whole.startswith(path.read_bytes()):
            raise ValueError("is not the start of a whole run's")

    def check_limited(self, path):
        """Behind a time limit: what is done is the whole run's."""
        whole, found = self.whole.splitlines(), path.read_bytes().splitlines()
        if len(found) > len(whole):
            raise ValueError(f"{len(found)} lines in the place of {len(whole)}")
        for number, (line, expected) in enumerate(zip(found, whole), 1):
            if b',"status":"done",' in line and line != expected:
                raise ValueError(f"line {number} is not the whole run's: {line} {expected}")

    def share_left(self):
        if self.is_fresh:
            return 1.0
        found = (self.program.folder / self.targets[0]).read_bytes()
        return 1.0 - len(os.path.commonprefix([found, self.whole])) / len(self.whole)

    def check_finished(self):
        self.is_fresh = True
        if (self.program.folder / self.targets[0]).read_bytes() != self.whole:
            raise ValueError(f"{self.targets[0]}: differs from a whole run's")


class Train(Work):
    """A model, a checkpoint and a log. Trainings begin anew and go on from the checkpoint by turns."""

    def __init__(self, program, _):
        self.program, self.targets, self.runs = program, ["model", "checkpoint", "log"], 0
        self.flags = ("train", "tsp", "-n", 5, "-b", 2, "-t", 1, "--layers", 1, "--steps", 6, "--checkpoint-every", 1,
                      "--validation-every", 2)

    def next_run(self, rng):
        self.runs += 1
        resume = ("--resume", "checkpoint") if self.runs > 1 and rng.random() < 0.5 else ()
        return (*self.flags, "-f", *resume, "-o", "model", "--checkpoint", "checkpoint", "--log", "log")

    def check(self, path):
        if path.name == "model":
            self.program.run("info", "model")
        elif path.name == "checkpoint":  # on a copy, which the check may go on with
            elsewhere = pathlib.Path(tempfile.mkdtemp(dir=path.parents[1]))
            self.program.run(*self.flags, "--resume", "checkpoint", "-o", elsewhere / "model", "-l", 0.001)
            shutil.rmtree(elsewhere)
        else:  # its lines appear one by one, and the last one may be cut
            for line in path.read_text().split("\n")[:-1]:
                json.loads(line)


class Kills:
    def __init__(self, kind, binary, folder, rng):
        self.kind, self.folder, self.rng = kind, folder, rng
        self.program = Program(binary, folder)
        is_stream = kind in STREAMS
        self.work = (Stream if is_stream else Train if kind == "train" else Solve)(self.program, kind)
        self.code = 3 if is_stream else 0  # of a whole run
        self.counts, self.wrong = collections.Counter(), []
        self.seconds = 0.0  # of a whole run
        self.finish()
        self.expected = {*self.work.targets, *(path.name for path in folder.iterdir())}

    def finish(self):
        """A run to its end."""
        arguments = self.work.next_run(self.rng)
        start = time.monotonic()
        self.program.run(*arguments, code=self.code)
        taken = time.monotonic() - start
        self.work.check_finished()
        if "--resume" not in arguments or self.kind == "train":
            self.seconds = 0.8 * self.seconds + 0.2 * taken if self.seconds else taken

    def contents(self):
        return {name: (self.folder / name).read_bytes() for name in self.work.targets if (self.folder / name).exists()}

    def some_seconds(self):
        return self.seconds * self.work.share_left() * self.rng.uniform(self.rng.choice((0.0, 0.7)), 1.1)

    def limit(self):
        """A run of a stream to a time limit."""
        before, seconds = self.contents(), max(self.some_seconds(), 0.001)
        process = self.program.start(*self.work.next_run(self.rng), "-l", f"{seconds:.4f}")
        message = process.communicate()[1].decode()
        self.counts["limits"] += 1
        if process.returncode not in (0, self.code):
            self.wrong.append(f"code {process.returncode}: {' '.join(process.args)}: {message}")
        self.check(before, process.args, self.work.check_limited)

    def kill(self):
        before, seconds = self.contents(), self.some_seconds()
        process = self.program.start(*self.work.next_run(self.rng))
        time.sleep(seconds)
        process.kill()
        process.communicate()
        self.counts["kills"] += process.returncode == -9
        self.counts["ended before"] += process.returncode != -9
        self.counts["left a temporary file"] += any(self.folder.glob(".*.tmp"))
        self.check(before, process.args, self.work.check)

    def check(self, before, arguments, check):
        after = self.contents()
        for name in self.work.targets:
            try:
                if name not in after:
                    raise ValueError("is not there any more")
                if after[name] != before[name]:
                    self.counts["new files"] += 1
                    check(self.folder / name)
            except (ValueError, KeyError, OSError, zipfile.BadZipFile, struct.error, SyntaxError) as error:
                self.counts["torn"] += 1
                self.wrong.append(f"{name}: {error} after {' '.join(arguments)}")

    def check_stale(self):
        stale = {path.name for path in self.folder.iterdir()} - self.expected
        self.counts["stale"] += len(stale)
        if stale:
            self.wrong.append(f"{self.kind}: left behind: {sorted(stale)}")

    def round(self):
        for _ in range(self.rng.randint(1, 4)):
            if self.kind in STREAMS and self.rng.random() < 0.5:
                self.limit()
            else:
                self.kill()
        try:
            self.finish()
        except ValueError as error:
            self.counts["torn"] += 1
            self.wrong.append(f"the next run: {error}")
        self.check_stale()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=2200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    flags = parser.parse_args()
    rng = random.Random(flags.seed)
    names = ("kills", "limits", "ended before", "left a temporary file", "new files", "torn", "stale")
    print(f"{'':6} " + "  ".join(names))
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        for kind in flags.kinds:
            folder = pathlib.Path(scratch) / kind / "files"
            folder.mkdir(parents=True)
            kills = Kills(kind, flags.binary.resolve(), folder, rng)
            counted = ("kills", "limits") if kind in STREAMS else ("kills",)
            while any(kills.counts[name] * len(flags.kinds) < flags.kills for name in counted) and len(kills.wrong) < 20:
                kills.round()
            wrong += kills.wrong
            print(f"{kind:6} " + "  ".join(f"{kills.counts[name]:{len(name)}}" for name in names), flush=True)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
