#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses the program every allocation in turn and looks how it ends; exit code 0: no findings.

    python3 tests/faults/allocations.py POINTSMAN FAIL_MALLOC                every k of every case
    python3 tests/faults/allocations.py POINTSMAN FAIL_MALLOC --every 499    every 499th, as CTest runs it
    python3 tests/faults/allocations.py POINTSMAN FAIL_MALLOC --cases train  the cases whose name has this in it
    python3 tests/faults/allocations.py POINTSMAN FAIL_MALLOC --leaks "$(g++ -print-file-name=liblsan.so)"

FAIL_MALLOC is the library of fail_malloc.cpp, which is preloaded. The k-th allocation since main() began fails, once or
with all that follow. Then the program must end with code 4 and an error line, or as it ends without a failure, with
the same bytes. An output file that was there must be the old one or a whole new one, one that grows the first of its lines;
the next run must leave no temporary file. With --leaks a run that loses memory ends with code 77.

The first allocations build the command line, which is the same in every case: only the case `command line` refuses them
too, and with --whole all do.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

EXIT_RESOURCE = 4
TIME_LIMIT = 30  # seconds; a run takes some hundredths
SQUARE = "NAME : square\nTYPE : TSP\nDIMENSION : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n" \
         "1 0 0\n2 9 1\n3 8 7\n4 1 8\n5 4 4\nEOF\n"
LINE = '{"id":"%s","problem":"tsp","coordinates":[[0,0],[3,0],[3,4],[1,5],[%d,2]]}\n'
STREAM = LINE % ("a", 1) + LINE % ("b", 2) + LINE % ("c", 3)
KNAPSACK = '{"problem":"knapsack","capacity":9,"weights":[1,2,3,4,5],"values":[5,4,3,2,2]}\n'
TRAIN = "-n 5 -b 2 --rollouts 2 --checkpoint-every 1 --validation-every 1 -t 1 -f"
FILES = "-o model.safetensors --checkpoint model.ckpt --log log.jsonl"
LSTM = "--encoder lstm --prior off --glimpses 0"


@dataclasses.dataclass
class Case:
    name: str
    arguments: str
    outputs: tuple = ()  # files that are there before the run
    stdin: str = ""
    code: int = 0  # without a failure
    is_whole: bool = False  # the command line's allocations are refused as well


@dataclasses.dataclass
class Ended:
    code: int  # negative: minus the signal; None: too late
    out: bytes
    err: bytes
    files: dict
    was_hit: bool
    allocations: int


def solve_cases():
    modes = {"greedy": "--mode greedy", "sample": "--mode sample -n 4", "auto": "-n 16 --kicks 3",
             "active": "--mode active --steps 2 --replicas 4"}
    for name, flags in modes.items():
        yield Case(f"solve {name}", f"solve map.tsp {flags} -m tsp5 -t 1")
    yield Case("solve fresh", "solve map.tsp --mode active --init random --steps 1 --replicas 2 -t 1")
    yield Case("solve local", "solve map.tsp --mode local --kicks 5 -t 1")
    yield Case("solve two threads", "solve map.tsp --mode sample -n 200 -m tsp5 -t 2")
    yield Case("command line", "solve map.tsp --mode local --format json", is_whole=True)
    yield Case("solve text", "solve map.tsp --mode greedy --format text -v -t 1 -o out.txt -f", ("out.txt",))
    yield Case("solve log json", "solve map.tsp --mode greedy -m tsp5 -t 1 --log-format json")
    yield Case("solve tour", "solve map.tsp --mode greedy -m tsp5 -t 1 -o out.tour -f --ref 20", ("out.tour",))
    yield Case("solve exact", "solve knapsack.json --mode exact -t 1")
    yield Case("solve knapsack", "solve knapsack.json --mode greedy -m knapsack5 -t 1 --format text")
    yield Case("solve npy", "solve set.npy --mode greedy -m tsp5 -t 1 -o out.npy -f", ("out.npy",))
    yield Case("solve npz", "solve set.npz --mode greedy -m tsp5 -t 1 -o out.npz -f --init tours.npz", ("out.npz",))
    yield Case("solve stream", "solve - --format ndjson --mode greedy -m tsp5 -t 1", stdin=STREAM)
    yield Case("solve bad stream", "solve - set.npy --format ndjson --mode greedy -m tsp5 -t 2 -o out.ndjson -f",
               ("out.ndjson",), stdin=STREAM + "{}\n", code=3)


def other_cases():
    yield Case("eval", "eval set.npy --modes greedy,sample+2,active+128,local+2,random+3 -m tsp5 -t 1 --ref tours.npz")
    yield Case("eval knapsack", "eval knapsack.json --modes ratio,exact,greedy -m knapsack5 -t 1 --format text")
    yield Case("eval rows", "eval set.npy --modes local -t 2 --format ndjson -o rows.ndjson -f", ("rows.ndjson",))
    yield Case("score", "score set.npy --solutions tours.npz -m tsp5 -t 1")
    yield Case("score text", "score set.npy --solutions tours.npz -m tsp5 -t 1 --format text -o out.txt -f",
               ("out.txt",))
    yield Case("verify", "verify set.npz tours.npz")
    yield Case("verify text", "verify set.npy tours.json --format text")
    yield Case("generate", "generate tsp -n 5 -b 3 --format json")
    yield Case("generate npz", "generate knapsack -n 5 -b 3 -o out.npz -f", ("out.npz",))
    yield Case("info", "info")
    yield Case("info model", "info tsp5 --format text -o out.txt -f", ("out.txt",))
    yield Case("help", "solve --help")
    yield Case("version", "--version")
    yield Case("usage", "solve map.tsp --no-such-flag", code=2)
    yield Case("config", "solve map.tsp --mode local --config my.config")
    yield Case("bad file", "solve my.config", code=3)


def train_cases():
    written = ("model.safetensors", "model.ckpt", "log.jsonl")
    yield Case("train attention", f"train tsp --layers 1 {TRAIN} {FILES} --steps 2", written)
    yield Case("train lstm", f"train tsp {LSTM} {TRAIN} {FILES} --steps 1 --format json", written)
    yield Case("train knapsack", f"train knapsack --layers 1 --baseline critic {TRAIN} {FILES} --steps 1 --format text",
               written)
    yield Case("train resume", f"train tsp {LSTM} {TRAIN} {FILES} --steps 2 --resume earlier.ckpt", written)
    yield Case("train supervised", f"train tsp --layers 1 {TRAIN} {FILES} --steps 1 --instances set.npy "
               "--solutions tours.npz", written)


class Sandbox:
    """A folder with inputs and two models, and the program run in it."""

    def __init__(self, program, preloaded, folder):
        self.program, self.preloaded, self.folder = program, preloaded, folder
        self.taken = {}  # bytes of models and checkpoints: does the program take them?
        (folder / "models").mkdir()
        for name, text in {"map.tsp": SQUARE, "knapsack.json": KNAPSACK,
                           "my.config": "# all runs\nkicks = 3\n[solve]\nseed = 5\n"}.items():
            (folder / name).write_text(text)
        for problem in ("tsp", "knapsack"):
            self.make(f"train {problem} {LSTM} {TRAIN} --steps 1 -o models/{problem}5.safetensors")
        for name in ("set.npy", "set.npz"):
            self.make(f"generate tsp -n 5 -b 3 -o {name}")
        for name in ("tours.npz", "tours.json"):
            self.make(f"solve set.npy --mode greedy -t 1 -o {name}")
        self.make("solve map.tsp --mode greedy -t 1 -o map.tour")
        self.make(f"train tsp {LSTM} {TRAIN} --steps 1 --checkpoint earlier.ckpt --log log.jsonl "
                  "-o earlier.safetensors")
        self.earlier_log = self.read("log.jsonl")

    def command(self, arguments):
        return subprocess.run([self.program, *arguments.split()], cwd=self.folder, capture_output=True, check=False,
                              env=self.environment())

    def make(self, arguments):
        done = self.command(arguments)
        if done.returncode != 0:
            sys.exit(f"{arguments}: code {done.returncode}: {done.stderr.decode()}")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}
        # A driver's or a CUDA runtime's own allocations are not this program's.
        return {**kept, "POINTSMAN_MODEL_PATH": "models", "POINTSMAN_CUDA_MODULE": "none", **more}

    def read(self, name):
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def old(self, name):
        return self.earlier_log if name.endswith(".jsonl") else b"the old file\n"

    def run(self, case, number=0, sticky=False):
        for name in case.outputs:
            if self.read(name) != self.old(name):
                (self.folder / name).write_bytes(self.old(name))
        report = self.folder / "report"
        report.unlink(missing_ok=True)
        refusal = {"FAIL_MALLOC": str(number), **({"FAIL_STICKY": "1"} if sticky else {})}
        environment = self.environment(LD_PRELOAD=self.preloaded, LSAN_OPTIONS="exitcode=77", FAIL_REPORT=str(report),
                                       **refusal)
        with subprocess.Popen([self.program, *case.arguments.split()], cwd=self.folder, env=environment,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(case.stdin.encode(), timeout=TIME_LIMIT)
                code = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                (out, err), code = process.communicate(), None
        lines = report.read_text().split() if report.exists() else []
        allocations = int(lines[-1]) if lines and lines[-1].isdigit() else 0
        return Ended(code, out, err, {name: self.read(name) for name in case.outputs}, "hit" in lines, allocations)

    def is_taken(self, case, name, content):
        """Of a model or checkpoint that a training wrote on its way."""
        if content not in self.taken:
            unknown = f"unknown{pathlib.Path(name).suffix}"
            (self.folder / unknown).write_bytes(content)
            asked = f"info {unknown}" if name.endswith(".safetensors") else \
                case.arguments.split(" --resume")[0] + f" --resume {unknown}"
            self.taken[content] = self.command(asked).returncode == 0
        return self.taken[content]

    def leaves_temporary_file(self, case):
        """Whether what a failed run left outlives the next run."""
        left = [self.folder / f".{name}.tmp" for name in case.outputs]
        if any(path.exists() for path in left):
            self.run(case)
        return any(path.exists() for path in left)


def is_error_line(line):
    try:
        answer = json.loads(line)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("code") == EXIT_RESOURCE and "error" in answer


def wrong_files(box, case, ended, good):
    for name, content in ended.files.items():
        if content in (box.old(name), good.files[name]):
            continue
        if content is not None and name.endswith(".jsonl") and good.files[name].startswith(content):
            continue
        has_whole_lines = content is not None and (b"\n" + content).endswith(b"\n")
        if name.endswith(".ndjson") and has_whole_lines and good.files[name].startswith(content):
            continue
        is_training = case.arguments.startswith("train") and not name.endswith(".jsonl")
        if content is not None and is_training and box.is_taken(case, name, content):
            continue
        yield f"{name} is {'gone' if content is None else 'torn'}"
    if box.leaves_temporary_file(case):
        yield "a temporary file stays"


def findings(box, case, ended, good, sticky):
    """What is wrong with the end of a run that was refused memory."""
    if ended.code is None:
        yield "hangs"
    elif ended.code == good.code and good.code != EXIT_RESOURCE:
        if ended.out != good.out or ended.files != good.files:
            yield f"code {ended.code} with another answer"
        return
    elif ended.code != EXIT_RESOURCE:
        yield f"signal {-ended.code}" if ended.code < 0 else f"code {ended.code}"
    else:
        yield from wrong_end(ended, good, sticky)
    yield from wrong_files(box, case, ended, good)


def wrong_end(ended, good, sticky):
    """Of a run that ended with code 4."""
    said = ended.err.decode(errors="replace").splitlines()
    if not any(line.startswith("pointsman: error: ") or '"level":"error"' in line for line in said):
        yield "no error line"
    out = ended.out.decode(errors="replace").splitlines(keepends=True)
    told = bool(out) and is_error_line(out[-1])
    if told:
        out.pop()
    if not good.out.decode().startswith("".join(out)):
        yield "torn stdout"
    is_json = good.out.startswith(b"{") and not told
    if is_json and not sticky and "".join(out) != good.out.decode():
        yield "no error in JSON"


@dataclasses.dataclass
class Row:
    runs: int = 0
    resource: int = 0  # ended with code 4
    same: int = 0      # ended as without a failure
    wrong: int = 0


def sweep(box, case, good, first, every):
    """Prints each finding; returns the row of the table."""
    row = Row()
    for sticky in (False, True):
        number, is_over = first, False
        while not is_over:
            ended = box.run(case, number, sticky)
            is_over = not ended.was_hit
            if ended.was_hit:
                row.runs += 1
                wrong = list(findings(box, case, ended, good, sticky))
                row.resource += ended.code == EXIT_RESOURCE
                row.same += ended.code == good.code
                row.wrong += bool(wrong)
                for finding in wrong:
                    last = ended.err.decode(errors="replace").strip().splitlines()[-1:]
                    print(f"  {case.name}, k = {number}{', sticky' if sticky else ''}: {finding} {last}", flush=True)
            number += every
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--cases", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--leaks", type=pathlib.Path, help="liblsan.so")
    flags = parser.parse_args()
    start, total = time.monotonic(), Row()
    with tempfile.TemporaryDirectory() as folder:
        preloaded = " ".join(str(library.resolve()) for library in (flags.library, flags.leaks) if library)
        box = Sandbox(flags.program.resolve(), preloaded, pathlib.Path(folder))
        # All that the shortest run needs is the command line.
        shared = box.run(Case("", "no-such-subcommand")).allocations - 100
        print(f"{'case':28} {'allocations':>11} {'from':>6} {'runs':>6} {'code 4':>6} {'as ever':>7} {'findings':>8}")
        for case in (*solve_cases(), *other_cases(), *train_cases()):
            if not any(part in case.name for part in flags.cases):
                continue
            good = box.run(case)
            if good.code != case.code:
                sys.exit(f"{case.name}: code {good.code} without a failure: {good.err.decode()}")
            first = 1 if case.is_whole or flags.whole else shared
            row = sweep(box, case, good, first, flags.every)
            print(f"{case.name:28} {good.allocations:11} {first:6} {row.runs:6} {row.resource:6} {row.same:7} "
                  f"{row.wrong:8}", flush=True)
            for field in dataclasses.fields(Row):
                setattr(total, field.name, getattr(total, field.name) + getattr(row, field.name))
    print(f"{'all':28} {'':11} {'':6} {total.runs:6} {total.resource:6} {total.same:7} {total.wrong:8}   "
          f"{time.monotonic() - start:.0f} s")
    sys.exit(1 if total.wrong else 0)


if __name__ == "__main__":
    main()
