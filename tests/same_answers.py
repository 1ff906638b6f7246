#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of two builds of the program, byte for byte; exit code 0: all are the same.

    python3 tests/same_answers.py BEFORE AFTER           two paths of `pointsman`; 3 minutes of two cores
    python3 tests/same_answers.py BEFORE AFTER --quick   the same commands with fewer instances and steps

Both builds run the commands of tests/same_answers.txt side by side, each on one thread in a folder of its own.
Compared are exit codes, stdout, errors and every file written: tours, costs, log p, models, checkpoints with Adam's
moments, logs, pictures. Left out are wall-clock times, the number of threads and the program's version. A few commands
run again with other instruction sets, and AFTER with one thread and with two.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMANDS = ROOT / "tests/same_answers.txt"
MODELS = ROOT / "models/pretrained"

POINTS = {  # a city of each kind of map; a kind that is a metric of TSPLIB has that metric
    "unit square": lambda r: (r.random(), r.random()),
    "outside it": lambda r: (r.uniform(-500, 1500), r.gauss(0, 1e4)),
    "small and far": lambda r: (5 + 1e-4 * r.random(), -3 + 1e-4 * r.random()),
    "huge": lambda r: (1e99 * r.random(), -1e99 * r.random()),
    "duplicates": lambda r: (r.randrange(4), r.randrange(4)),
    "line": lambda r: (r.random(), 0.5),
    "all equal": lambda r: (0.5, 0.25),
    "EUC_2D": lambda r: (r.randrange(1000), r.randrange(1000)),
    "CEIL_2D": lambda r: (r.uniform(0, 300), r.uniform(0, 300)),
    "ATT": lambda r: (r.uniform(0, 8000), r.uniform(0, 8000)),
    "GEO": lambda r: (round(r.uniform(-89, 89), 2), round(r.uniform(-179, 179), 2)),
}
METRICS = ("EUC_2D", "CEIL_2D", "ATT", "GEO")
ITEMS = {  # weight and value of an item of each kind of knapsack
    "unit square": lambda r: (r.random(), r.random()),
    "duplicates": lambda r: (r.randint(1, 3), r.randint(1, 3)),
    "all equal": lambda r: (0.3, 0.3),
    "some never fit": lambda r: (0.1 / (1e-3 + r.random()), r.random()),
    "some without weight": lambda r: (r.choice([0, r.random()]), r.random()),
    "some without value": lambda r: (r.random(), r.choice([0, r.random()])),
    "huge": lambda r: (1e6 * r.random(), 1e90 * r.random()),
}

# A checkpoint's fields by its version, as engine/training/checkpoint.cpp lists them, with the letters of module struct;
# text (s) and floats (f*) stand after their count.
CHECKPOINT = {3: """problem:s n:i capacity:d hidden:i glimpses:i clip:d centre_logits:? has_critic:? baseline:i
    examples:Q rollouts:i batch:i learning_rate:f decay:f decay_steps:i entropy:f entropy_steps:q max_norm:f ema_decay:f
    validation_every:q validation_instances:i seed:Q steps:q checkpoint_every:i step:q tours:q prior_tours:q seconds:d
    average_started:? average:d interval.steps:q interval.tours:q interval.cost:d interval.cross_entropy:d
    interval.baseline_loss:d interval.grad_norm:d interval.entropy:d interval.mean_logit:d interval.saturated:d
    interval.decoding_steps:q interval.start_seconds:d parameters:f* first_moment:f* second_moment:f* actor_steps:q
    critic_steps:q baseline_parameters:f*"""}
CHECKPOINT[4] = CHECKPOINT[3] + " encoder:i layers:i heads:i feed_forward:i prior:? symmetries:i"
CHECKPOINT[5] = CHECKPOINT[4] + " reread:i"

# Keys of JSON.
LEFT_OUT = ["loading", "solving", "seconds", "ms_per_instance", "tours_per_second", "threads", "version"]


def instance(r, number):
    """TSP and KnapSack in turn, 1 in 20 large, half with an id, some ids given twice."""
    n = r.randint(100, 200) if number % 40 < 2 else r.randint(1, 60)
    one = {} if r.random() < 0.5 else {"id": r.choice([f"map {number}", "twice", 'Zürich "2"\n'])}
    if number % 2:
        weights, values = zip(*map(ITEMS[r.choice(list(ITEMS))], [r] * n))
        capacity = r.choice((0, 1e-9, 0.05, 0.25, 0.25, 0.5, 2)) * sum(weights)
        return one | {"problem": "knapsack", "capacity": capacity, "weights": weights, "values": values}
    kind = r.choice(list(POINTS))
    metric = {"edge_weight_type": kind} if kind in METRICS else {}
    return one | metric | {"problem": "tsp", "coordinates": [POINTS[kind](r) for _ in range(n)]}


def write_inputs(folder, count):
    r = random.Random(2017)
    mixed = [instance(r, number) for number in range(count)]
    sets = {"mixed": mixed, "few": mixed[:30], "tsp": mixed[:100:2], "knapsack": mixed[1:100:2]}
    for name, instances in sets.items():
        (folder / f"{name}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in instances))
    for kind in METRICS:
        rows = "".join("%d %s %s\n" % (i, *POINTS[kind](r)) for i in range(1, 43))
        head = f"NAME : {kind}\nTYPE : TSP\nDIMENSION : 42\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n"
        (folder / f"{kind}.tsp").write_text(head + rows + "EOF\n")
    for path in (ROOT / "tests/data").glob("*.*"):
        shutil.copy(path, folder)


def read_commands(folder, steps):
    """{group: its commands} of COMMANDS; writes the files that it holds."""
    save = f"--checkpoint-every {steps // 2} --validation-every {steps // 4}"
    values = {"$STEPS": str(steps), "$HALF": str(steps // 2), "$SAVE": save}
    groups = {}
    for line in COMMANDS.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "==":
            commands = groups.setdefault(rest, [])
        elif word == "file":
            name, _, text = rest.partition(" ")
            (folder / name).write_bytes(text.encode().decode("unicode_escape").encode("latin-1"))
        elif word not in ("", "#"):
            commands.append(re.sub(r"\$[A-Z]+", lambda name: values[name[0]], line))
    return groups


def without_times(text):
    text = re.sub(rb'"(%s)" ?: ?[^,}\n]+' % "|".join(LEFT_OUT).encode(), rb'"\1"', text)
    return re.sub(rb"(?<=Found by pointsman )\S+|\d+ threads?", b"", text)


def checkpoint_parts(data):
    at = 20  # after magic, version and size; the checksum at the end covers the times
    for field in CHECKPOINT[struct.unpack_from("<I", data, 8)[0]].split():
        name, kind = field.split(":")
        size = struct.calcsize(kind[0])
        if kind in ("s", "f*"):
            size = 8 + size * struct.unpack_from("<Q", data, at)[0]
        if not name.endswith("seconds"):
            yield ", " + name, data[at:at + size]
        at += size
    yield ", bytes left", str(len(data) - at - 8).encode()


def parts(file, data):
    """[(name, bytes)] of a file: all of it that must be the same."""
    try:
        if data.startswith(b"PNTSMNCK"):
            return list(checkpoint_parts(data))
        if file.endswith(".safetensors"):
            begin = 8 + struct.unpack_from("<Q", data)[0]
            return [(", header", without_times(data[8:begin])), (", parameters", data[begin:])]
    except (KeyError, struct.error) as error:
        return [(f", unreadable ({error!r})", data)]
    return [("", data if file.endswith((".npy", ".npz")) else without_times(data))]


class Build:
    """A program, its folder with copies of the inputs, and its environment."""

    def __init__(self, program, inputs, **variables):
        self.program = pathlib.Path(program).resolve()
        self.folder = inputs.parent / f"{len(list(inputs.parent.iterdir()))}"
        shutil.copytree(inputs, self.folder)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("POINTSMAN_")}
        self.environment |= {"POINTSMAN_MODEL_PATH": str(MODELS), "POINTSMAN_THREADS": "1"} | variables
        self.version = subprocess.check_output([self.program, "--version"]).splitlines()[0]

    def run(self, command):
        """The exit code, and {name: parts} of stdout, of errors and of the files that the command writes."""
        words = shlex.split(command)
        given = (self.folder / words.pop()).read_bytes() if "<" in words else b""
        done = subprocess.run([self.program, *(word for word in words if word != "<")], cwd=self.folder, input=given,
                              env=self.environment, capture_output=True, timeout=1800)
        errors = re.findall(rb"^pointsman: (?:error|warning): .*", done.stderr, re.M)
        files = {"stdout": done.stdout, "stderr": b"\n".join(errors)}
        for flag, name in zip(words, words[1:]):
            if flag in ("-o", "--checkpoint", "--log") and (self.folder / name).is_file():
                files[name] = (self.folder / name).read_bytes()
        return done.returncode, {name: parts(name, data) for name, data in files.items()}


def difference(before, after):
    """Where two results of Build.run differ first, in words; None: nowhere."""
    if before[0] != after[0]:
        return f"exit code {before[0]} before, {after[0]} after"
    flat = [[(file + part, data) for file, whole in result[1].items() for part, data in whole]
            for result in (before, after)]
    for (name, a), (other_name, b) in zip(*flat):
        if name != other_name:
            return f"{name} before, {other_name} after"
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            near = slice(max(0, at - 40), at + 20)
            return f"{name}, byte {at}:\n  before {a[near]}\n  after  {b[near]}"
    return None if len(flat[0]) == len(flat[1]) else f"{list(before[1])} before, {list(after[1])} after"


def compare(group, commands, before, after):
    """Prints the group's line; returns [cases, bytes, differences]."""
    size = differences = 0
    for command in commands:
        with ThreadPoolExecutor() as pool:
            results = list(pool.map(lambda build: build.run(command), (before, after)))
        size += sum(len(data) for file in results[0][1].values() for _, data in file)
        found = difference(*results)
        # A command that ends otherwise than its author meant compares nothing.
        if not found and (results[0][0] == 0) == group.startswith("errors"):
            found = f"exit code {results[0][0]} of both, which {COMMANDS.name} does not expect"
        if found:
            differences += 1
            print(f"differs: pointsman {command}\n  {found}")
    print(f"{group:40} {len(commands):4} cases {size:12,} bytes {differences:4} differ", flush=True)
    return [len(commands), size, differences]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--quick", action="store_true")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        inputs = pathlib.Path(scratch) / "inputs"
        inputs.mkdir()
        write_inputs(inputs, 120 if flags.quick else 2000)
        groups = read_commands(inputs, 20 if flags.quick else 200)
        again = groups.pop("again")
        before, after = Build(flags.before, inputs), Build(flags.after, inputs)
        if before.version != after.version:
            LEFT_OUT.extend(("sha256", "model_sha256"))  # a model holds the version of the program that wrote it
        totals = [compare(group, commands, before, after) for group, commands in groups.items()]
        for name in ("avx2", "sse4"):
            pair = [Build(program, inputs, POINTSMAN_SIMD=name) for program in (flags.before, flags.after)]
            totals.append(compare(f"again, {name}", again, *pair))
        pair = [Build(flags.after, inputs, POINTSMAN_THREADS=threads) for threads in ("1", "2")]
        totals.append(compare("again, AFTER with 1 thread and with 2", again, *pair))
    cases, size, differences = map(sum, zip(*totals))
    print(f"same answers: {cases} cases, {size:,} bytes, {differences} differ")
    return differences > 0


if __name__ == "__main__":
    sys.exit(main())
