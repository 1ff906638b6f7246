#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time limits and signals: a grid of mode x n x rows x threads, streams whose producer is late, trainings whose steps
are long, `generate`, and answers that nobody reads.

    python3 tests/faults/limits.py BINARY [--cases N] [--kept FILE --minutes M]    N (324) cases and the others
    python3 tests/faults/limits.py BINARY --quick                                  29 small ones, for ctest

A run has either `-l` (0.3, 1 or 2 s) or no limit and SIGINT, SIGTERM or SIGHUP after 0.3 to 1.5 s. It must end at most
max(0.5 s, 10% of the limit) behind the limit, 0.5 s behind the signal, with the right exit code and a whole file of
valid answers, whose unsolved ones are marked.

The clock is that of this script, from before the program is started until it has ended, so that loading counts.
A large document may be stopped while it is loaded: then nothing is written, and the code at a limit is 3.
Two things do not. Writing is what the program's last log line says of it; `eval` and streams say nothing, and there
writing counts too. On a busy machine the time behind the stop in which the main thread was ready to run and had no core
(/proc/PID/schedstat) is that of the others. Both are told.

A late case is run again, twice at most, and is a finding when it is late each time. Any other fault is one at once.
With --kept each case is a line of FILE as soon as it is done, and a later run goes on behind it. Findings: exit code 1.
"""
import argparse
import array
import ast
import collections
import json
import math
import mmap
import os
import pathlib
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

SIZES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
ROWS = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
MOST_ITEMS = 20_000_000  # of a case: 320 MB of input, some 1.5 GB of memory
CORNERS = ((5, 1), (5, 1_000_000), (20, 1_000_000), (10000, 1), (10000, 1000))
MODES = (("tsp", "auto"), ("tsp", "greedy"), ("tsp", "sample"), ("tsp", "active"), ("tsp", "local"), ("tsp", "random"),
         ("tsp", "2opt"),
         ("knapsack", "auto"), ("knapsack", "greedy"), ("knapsack", "sample"), ("knapsack", "active"),
         ("knapsack", "exact"), ("knapsack", "ratio"))
SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
LIMITS = (0.3, 1.0, 2.0)
GRACE = 0.5
CHECKED_ITEMS = 300_000  # of a file of answers; of a larger one a sample
HANGS = 30.0             # seconds behind the stop

# mode: of `solve` or `eval`, or another subcommand: "train" (rows: instances a step) or "generate".
# stop: "limit" or a signal's name, `after` seconds. form: of the answer; "unread": JSON on a pipe that nobody reads.
# feed: None for a file, else how stdin comes: "all" at once, "late" line by line without an end, "half" of a document.
Case = collections.namedtuple("Case", "problem mode n rows threads stop after form feed")
Run = collections.namedtuple("Run", "code seconds sent without_core writing log")


# --- cases

def cells(rng):
    all_cells = [(n, rows) for n in SIZES for rows in ROWS if n * rows <= MOST_ITEMS]
    rest = [cell for cell in all_cells if cell not in CORNERS]
    rng.shuffle(rest)
    return [*CORNERS, *rest]


def stops(rng):
    """An endless deck of limits and signals, each with one thread and with two."""
    while True:
        deck = [("limit", limit, threads) for limit in LIMITS for threads in (1, 2)]
        deck += [(name, round(rng.uniform(0.3, 1.5), 2), threads) for name in SIGNALS for threads in (1, 2)]
        rng.shuffle(deck)
        yield from deck


def grid(count, rng):
    decks = {mode: (cells(rng), stops(rng)) for mode in MODES}
    for i in range(count):
        (problem, mode), turn = MODES[i % len(MODES)], i // len(MODES)
        places, deck = decks[problem, mode]
        n, rows = places[turn % len(places)]
        stop, after, threads = next(deck)
        form = "json" if is_rival(mode) or (n * rows <= 200_000 and turn % 3) else "npy"
        yield Case(problem, mode, n, rows, threads, stop, after, form, None)


def streams(rng):
    for problem, mode in MODES:
        if is_rival(mode):
            yield Case(problem, mode, 20, 10, 1, "limit", 0.5, "json", "half")
            yield Case(problem, mode, 20, 10, 1, rng.choice(list(SIGNALS)), 0.5, "json", "half")
            continue
        for feed, n, rows in (("all", 50, 20_000), ("late", 20, 10_000), ("half", 20, 10)):
            form = "json" if feed == "half" else "ndjson"
            yield Case(problem, mode, n, rows, rng.choice((1, 2)), "limit", rng.choice((0.3, 1.0)), form, feed)
            name = rng.choice(list(SIGNALS))
            yield Case(problem, mode, n, rows, rng.choice((1, 2)), name, round(rng.uniform(0.3, 1.5), 2), form, feed)


def others(size):
    """Trainings of steps of many seconds, a network on many cities, instances of many seconds, answers that nobody reads."""
    for stop in ("limit", "SIGINT"):
        yield Case("tsp", "train", size, 200, 1, stop, 1.0, "model", None)
        yield Case("tsp", "greedy", 400 * size, 1, 2, stop, 1.0, "npy", None)
        yield Case("tsp", "generate", 5, 50_000_000, 1, stop, 0.3, "npy", None)
        yield Case("tsp", "local", 20, 10_000, 2, stop, 1.0, "unread", None)


def quick(rng):
    yield from others(500)
    sizes = ((1000, 1), (20, 1000), (100, 100), (10, 10_000))
    for i, (problem, mode) in enumerate(MODES):
        n, rows = sizes[i % len(sizes)]
        stop = "limit" if i % 2 else rng.choice(list(SIGNALS))
        yield Case(problem, mode, n, rows, 1 + i % 2, stop, 0.3, "json" if is_rival(mode) or i % 3 else "npy", None)
    for i, feed in enumerate(("all", "late", "half", "half")):
        for stop in ("limit", list(SIGNALS)[i % 3]):
            problem, mode = (("tsp", "auto"), ("knapsack", "greedy"), ("tsp", "local"), ("tsp", "random"))[i]
            yield Case(problem, mode, 20, 1000, 1, stop, 0.4, "json" if feed == "half" else "ndjson", feed)


# --- running

def is_rival(mode):
    return mode in ("random", "ratio")  # which only `eval` has


def is_subcommand(mode):
    return mode in ("train", "generate")


def capacity(n):
    return 12.5 if n <= 50 else 25.0


def endless(case):
    """Flags that give a search more to do than it has time for, where there are few rows."""
    if case.mode == "active":
        return ["--steps", "30000000"]
    if case.mode == "local":
        return ["--kicks", "1000000000000"]
    if case.mode == "2opt":
        return ["--kicks", "2000000000"]
    return ["--samples", "2000000000"] if case.mode in ("auto", "sample") and case.rows <= 1000 else []


def command_of(binary, case, source, output):
    if is_subcommand(case.mode):
        command = [binary, case.mode, case.problem, "-n", str(case.n), "-b", str(case.rows), "-f", "-t",
                   str(case.threads), "--log-format", "json", "-o", output + "." + case.form]
        return command + (["-l", str(case.after)] if case.stop == "limit" else [])
    if case.form == "unread":
        command = [binary, "solve", source, "--mode", case.mode, *endless(case), "--format", "json", "-t",
                   str(case.threads), "--log-format", "json"]
        return command + (["-l", str(case.after)] if case.stop == "limit" else [])
    command = [binary, "eval" if is_rival(case.mode) else "solve", source, "-f", "-o", output, "--format", case.form,
               "-t", str(case.threads), "--log-format", "json"]
    if is_rival(case.mode):
        command += ["--modes", case.mode + ("+999999999" if case.mode == "random" else "")]
    else:
        command += ["--mode", case.mode, *endless(case)]
    if case.problem == "knapsack":
        command += ["--problem", "knapsack", "--capacity", str(capacity(case.n))]
    if case.feed == "half":
        command += ["--input-format", "npy"]
    return command + (["-l", str(case.after)] if case.stop == "limit" else [])


def feed(pipe, case, bytes_in, ended):
    """What the producer sends. Only the one of "all" ends before the program does."""
    try:
        if case.feed == "late":
            lines = bytes_in.splitlines(keepends=True)
            pipe.write(b"".join(lines[:20]))
            for line in lines[20:]:
                pipe.flush()
                if ended.wait(0.2):
                    return
                pipe.write(line)
        else:
            pipe.write(bytes_in if case.feed == "all" else bytes_in[:len(bytes_in) // 2])
            pipe.flush()
            if case.feed == "half":
                ended.wait()
    except BrokenPipeError:
        pass
    finally:
        try:
            pipe.close()
        except BrokenPipeError:
            pass


def seconds_without_core(process):
    """How long its main thread was ready to run while others had the cores. Of a zombie too."""
    try:
        return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def ended_by(process, deadline):
    """Leaves a zombie, so that its numbers can still be read."""
    waiting = select.poll()
    waiting.register(descriptor := os.pidfd_open(process.pid), select.POLLIN)
    ended = waiting.poll(1000 * max(0.0, deadline - time.monotonic()))
    os.close(descriptor)
    return bool(ended)


def stop_and_wait(process, case, start):
    """Whether the signal was sent and when, when the program ended, and how long it had no core in between."""
    sent, before = None, 0.0
    if not ended_by(process, start + case.after):
        before = seconds_without_core(process)
        if case.stop != "limit":
            sent = time.monotonic() - start
            process.send_signal(getattr(signal, case.stop))
        if not ended_by(process, start + case.after + HANGS):
            process.kill()
    seconds = time.monotonic() - start
    without_core = seconds_without_core(process) - before
    process.wait()
    return sent, seconds, without_core


def seconds_writing(log):
    told = re.search(r" s \(writing ([\d.]+) s\)", log[-1]["message"]) if log else None
    return float(told[1]) if told else 0.0


def read_log(path):
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            lines.append({"time": 0.0, "level": "error", "message": "not JSON: " + line})
    return lines


def run_case(binary, case, source, output):
    log = output.with_suffix(".log")
    ended = threading.Event()
    bytes_in = source.read_bytes() if case.feed else None
    command = command_of(binary, case, "-" if case.feed else str(source), str(output))
    with open(log, "wb") as stderr:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.PIPE if case.feed else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE if case.form == "unread" else subprocess.DEVNULL,
                                   stderr=stderr)
        if case.feed:
            producer = threading.Thread(target=feed, args=(process.stdin, case, bytes_in, ended))
            producer.start()
        sent, seconds, without_core = stop_and_wait(process, case, start)
    ended.set()
    if process.stdout:
        process.stdout.close()
    if case.feed:
        producer.join()
    lines = read_log(log)
    return Run(process.returncode, seconds, sent, without_core, seconds_writing(lines), lines)


def lateness(case, run):
    if case.stop != "limit" and run.sent is None:
        return 0.0
    # How much of the writing had no core is not known, so the larger of the two stands for both.
    return run.seconds - (case.after if case.stop == "limit" else run.sent) - max(run.writing, run.without_core)


# --- checks; each yields what is wrong, in words

def doubles(path):
    """The shape and the numbers of an .npy file, which stay on the disk."""
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    head, = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(bytes(data[10:10 + head]).decode())
    code = {"<f8": "d", "<i4": "i", "|u1": "B"}[header["descr"]]
    body = data[10 + head:]
    if len(body) != math.prod(header["shape"]) * array.array(code).itemsize:
        raise ValueError(f"{path.name}: {len(body)} bytes for the shape {header['shape']}")
    return header["shape"], body.cast(code)


class Instances:
    """Instances in a file that `generate` made, and what answers to them cost."""

    def __init__(self, case, path):
        self.problem, self.n, self.capacity = case.problem, case.n, capacity(case.n)
        self.lines = self.values = None
        if path.suffix == ".npy":
            _, self.values = doubles(path)
        else:
            self.lines = path.read_text().splitlines()

    def pairs(self, i):
        if self.values is not None:
            part = self.values[2 * self.n * i:2 * self.n * (i + 1)]
            return list(zip(part[0::2], part[1::2]))
        line = json.loads(self.lines[i])
        if self.problem == "tsp":
            return [tuple(city) for city in line["coordinates"]]
        return list(zip(line["weights"], line["values"]))

    def check(self, i, answer, objective=None):
        pairs = self.pairs(i)
        if self.problem == "tsp":
            if sorted(answer) != list(range(self.n)):
                return f"row {i}: no tour"
            found = sum(math.dist(pairs[a], pairs[b]) for a, b in zip(answer, [*answer[1:], answer[0]]))
        else:
            if len(set(answer)) != len(answer) or not all(0 <= item < self.n for item in answer):
                return f"row {i}: no packing"
            if sum(pairs[item][0] for item in answer) > self.capacity * (1 + 1e-9):
                return f"row {i}: too heavy"
            found = sum(pairs[item][1] for item in answer)
        if objective is not None and abs(found - objective) > 1e-9 * max(1.0, found):
            return f"row {i}: says {objective}, is {found}"
        return None


def stopped_word(case):
    return "time_limit" if case.stop == "limit" else "interrupted"


def check_solutions(case, instances, solutions):
    keys = ("tour", "cost") if case.problem == "tsp" else ("items", "value")
    step = max(1, len(solutions) * case.n // CHECKED_ITEMS)
    for i, solution in enumerate(solutions):
        answer, objective = solution.get(keys[0]), solution.get(keys[1])
        if solution["index"] != i or solution["status"] not in ("done", "unsolved", stopped_word(case)):
            yield f"row {i}: index {solution['index']}, status {solution['status']}"
        elif solution["status"] == "unsolved":
            if answer is not None or objective is not None:
                yield f"row {i}: unsolved, with an answer"
        elif answer is None or objective is None:
            yield f"row {i}: {solution['status']} without an answer"
        elif i % step == 0 and (wrong := instances.check(i, answer, objective)):
            yield wrong


def all_done(solutions):
    return all(solution["status"] == "done" for solution in solutions)


def check_json(case, run, instances, text):
    document = json.loads(text)
    solutions, summary = document["solutions"], document["summary"]
    yield from check_solutions(case, instances, solutions)
    unsolved = sum(solution["status"] == "unsolved" for solution in solutions)
    if summary.get("unsolved", 0) != unsolved or summary["instances"] != len(solutions) or len(solutions) != case.rows:
        yield f"summary says {summary.get('unsolved', 0)} unsolved; {unsolved} of {len(solutions)} are"
    if document["code"] != run.code:
        yield f"the document's code is {document['code']}"
    if run.code == 0 and case.stop != "limit" and not all_done(solutions):
        yield "code 0 behind a signal, with answers not done"
    if case.rows == 1 and case.stop == "limit" and unsolved:
        yield "the only instance is unsolved at a limit"


def check_arrays(case, run, instances, path):
    shape, numbers = doubles(path)
    none = -1 if case.problem == "tsp" else 255
    if shape != (case.rows, case.n):
        yield f"shape {shape}"
        return
    unsolved = array.array(numbers.format, numbers[0::case.n].tobytes()).count(none)
    if f"{case.rows - unsolved} solved" not in run.log[-1]["message"] or \
            (unsolved and f" {unsolved} not" not in run.log[-1]["message"]):
        yield f"{unsolved} rows unsolved; the log says: {run.log[-1]['message']}"
    for i in range(0, case.rows, max(1, case.rows * case.n // CHECKED_ITEMS)):
        row = numbers[case.n * i:case.n * (i + 1)].tolist()
        if row[0] == none:
            if set(row) != {none}:
                yield f"row {i}: unsolved in part"
        elif wrong := instances.check(i, row if case.problem == "tsp" else [k for k in range(case.n) if row[k]]):
            yield wrong
    if case.rows == 1 and case.stop == "limit" and unsolved:
        yield "the only instance is unsolved at a limit"


def check_stream(case, run, instances, text):
    solutions = [json.loads(line) for line in text.splitlines()]
    yield from check_solutions(case, instances, solutions)
    if len(solutions) > case.rows or (run.sent is None and case.feed == "all" and case.stop != "limit" and
                                      len(solutions) < case.rows):
        yield f"{len(solutions)} answers"


def check_row(case, run, _, text):
    row, = json.loads(text)["rows"]
    solved = row["mean_cost"] is not None
    if row["status"] not in ("done", "unsolved", stopped_word(case)) or row["instances"] != case.rows:
        yield f"row of eval: {row}"
    if solved == (row["status"] == "unsolved"):
        yield f"status {row['status']}, mean cost {row['mean_cost']}"
    if case.rows == 1 and case.stop == "limit" and not solved:
        yield "the only instance is unsolved at a limit"


def is_stopped_loading(case, run):
    """A document of more than some 16,000 numbers."""
    return case.feed is None and not is_subcommand(case.mode) and 2 * case.n * case.rows >= 1 << 14 and run.log and \
        "the run was stopped before the end of the input came" in run.log[-1]["message"]


def check_code(case, run):
    if case.mode == "generate" or case.form == "unread":
        wanted = {SIGNALS.get(case.stop, 4)}
    elif case.stop == "limit":
        wanted = {3} if case.feed == "half" or is_stopped_loading(case, run) else {0}
    elif run.sent is None:
        wanted = {0}
    else:  # 0 where the work was done before; the answers are checked for it
        wanted = {SIGNALS[case.stop]} if case.feed else {SIGNALS[case.stop], 0}
    if run.code not in wanted:
        yield f"code {run.code}: {run.log[-1]['message'] if run.log else ''}"


def check_files(case, run, source, output):
    if output.with_name(f".{output.name}.tmp").exists():
        yield "a temporary file is left"
    if case.form == "unread":
        return
    if is_subcommand(case.mode):
        if output.with_name(f".{output.name}.{case.form}.tmp").exists():
            yield "a temporary file is left"
        if output.with_name(f"{output.name}.{case.form}").exists() != (case.mode == "train"):
            yield "a file of some instances" if case.mode == "generate" else "no model"
        return
    if case.feed == "half" or is_stopped_loading(case, run):
        if output.exists():
            yield "a file of answers to a part of a document"
        return
    if not output.exists():
        yield f"no file of answers; {run.log[-1]['message'] if run.log else ''}"
        return
    instances = Instances(case, source)
    if is_rival(case.mode):
        yield from check_row(case, run, instances, output.read_text())
    elif case.form == "npy":
        yield from check_arrays(case, run, instances, output)
    else:
        check = check_json if case.form == "json" else check_stream
        yield from check(case, run, instances, output.read_text())


def is_refused(run):
    """The machine's memory is too small for the case, and the program said so before it took any."""
    return run.code == 4 and run.log and "of memory, and there are" in run.log[-1]["message"]


def findings_of(case, run, source, output):
    if is_refused(run):
        return []
    wrong = list(check_code(case, run))
    try:
        wrong += check_files(case, run, source, output)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        wrong.append(f"not whole: {error!r}")
    return wrong[:5]


# --- the grid

def make_input(binary, case, folder):
    if is_subcommand(case.mode):
        return folder / "none"
    suffix = ".ndjson" if case.feed in ("all", "late") else ".npy"
    path = folder / f"{case.problem}_{case.n}_{case.rows}{suffix}"
    if not path.exists():
        for old in folder.glob("*_*_*"):  # cases of one input stand together
            old.unlink()
        subprocess.run([binary, "generate", case.problem, "-n", str(case.n), "-b", str(case.rows), "-o", str(path),
                        "-q"], check=True, stdout=subprocess.DEVNULL)
    return path


def measure(binary, case, folder, grace):
    source, output = make_input(binary, case, folder), folder / "answers"
    result = {"case": case._asdict(), "runs": 0, "late": math.inf, "findings": []}
    while result["runs"] < 3 and result["late"] > grace:
        for old in folder.glob("answers*"):
            old.unlink()
        run = run_case(binary, case, source, output)
        wrong = findings_of(case, run, source, output)
        result["runs"] += 1
        result["findings"] += wrong
        if (late := lateness(case, run)) < result["late"]:
            result |= {"late": late, "code": run.code, "writing": run.writing, "without_core": run.without_core,
                       "seconds": run.seconds}
    if result["late"] > grace:
        result["findings"].append(f"{result['late']:.2f} s late, {result['runs']} times")
    if result["findings"]:
        print(json.dumps(result["case"]), *result["findings"],
              "command: " + " ".join(command_of("pointsman", case, source.name, "answers")), sep="\n  ", flush=True)
    return result


def print_table(results):
    print(f"{'problem':9} {'mode':7} {'cases':>5} {'late, limit':>11} {'late, signal':>12} {'no core':>8} "
          f"{'writing':>8} {'again':>5} {'findings':>8}")
    groups = collections.defaultdict(list)
    for result in results:
        case = result["case"]
        groups[case["problem"], case["mode"] if case["feed"] is None else "pipes"].append(result)
    for (problem, mode), group in sorted(groups.items()):
        late = {kind: max((r["late"] for r in group if (r["case"]["stop"] == "limit") == kind), default=0.0)
                for kind in (True, False)}
        print(f"{problem:9} {mode:7} {len(group):5} {late[True]:11.2f} {late[False]:12.2f} "
              f"{max(r['without_core'] for r in group):8.2f} {max(r['writing'] for r in group):8.2f} "
              f"{sum(r['runs'] > 1 for r in group):5} {sum(bool(r['findings']) for r in group):8}")
    print(f"{len(results)} cases, {sum(bool(r['findings']) for r in results)} with findings", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=324)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kept", type=pathlib.Path, help="keep the cases' results here and go on behind them")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after so many")
    flags = parser.parse_args()
    rng = random.Random(flags.seed)
    cases = list(quick(rng)) if flags.quick else [*grid(flags.cases, rng), *streams(rng), *others(1000)]
    cases.sort(key=lambda case: (case.problem, case.n, case.rows, case.feed in ("all", "late")))
    results = []
    if flags.kept and flags.kept.exists():
        results = [json.loads(line) for line in flags.kept.read_text().splitlines()]
    measured = [result["case"] for result in results]
    end = time.monotonic() + 60 * flags.minutes
    with tempfile.TemporaryDirectory() as folder:
        for case in [case for case in cases if case._asdict() not in measured]:
            if time.monotonic() > end:
                break
            # Where other tests run beside it, a second or two say nothing.
            results.append(measure(flags.binary, case, pathlib.Path(folder), 5.0 if flags.quick else GRACE))
            if flags.kept:
                with open(flags.kept, "a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    print_table(results)
    return 1 if any(result["findings"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
