#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/results: the tables that results.py makes and what it refuses; what evaluate.sh asks of the program, which a
script stands in for here. CTest runs this.

After a wanted change of the tables:

    python3 bench/results/results.py tests/data/results --tables tests/data/results/expected
    python3 bench/results/results.py
"""
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/results"

# Writes down its arguments; `eval` prints a row a mode, better the nearer its temperature is to 1.5.
PROGRAM = r'''#!/usr/bin/env python3
import json, os, re, sys
with open(os.environ["CALLS"], "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
if sys.argv[1] == "info":
    sys.exit(0 if sys.argv[2] != "tsp100" else 3)
if sys.argv[1] == "generate":
    open(sys.argv[sys.argv.index("-o") + 1], "w").close()
if sys.argv[1] == "eval":
    if os.environ.get("BREAKS", "none") in sys.argv[sys.argv.index("--modes") + 1]:
        sys.exit(4)
    for mode in sys.argv[sys.argv.index("--modes") + 1].split(","):
        temperature = float((re.findall(r"\+t([\d.]+)", mode) or [1])[0])
        sign = -1 if "knapsack" in sys.argv else 1
        print(json.dumps({"name": mode, "temperature": temperature, "mean_cost": sign * abs(temperature - 1.5)}))
'''


def npy(rows, columns):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    numbers = [float(i) for i in range(rows * columns)]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(numbers)}d", *numbers))


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def results(self, *rows):
        command = [sys.executable, ROOT / "bench/results/results.py", *rows, "--tables", self.folder / "tables"]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class Results(Folder):
    def check_tables(self, expected, *rows):
        self.maxDiff = None
        answer = self.results(*rows)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        made = {path.name: path.read_text() for path in (self.folder / "tables").iterdir()}
        self.assertEqual(made, {path.name: path.read_text() for path in expected.glob("*[0-9].md")})

    def test_tables(self):
        self.check_tables(DATA / "expected", DATA)

    def test_kept_tables(self):
        self.check_tables(ROOT / "bench/results/tables")

    def test_refuses(self):
        row = json.loads((DATA / "tsp50.jsonl").read_text().splitlines()[0])
        rows = self.folder / "rows"
        rows.mkdir()
        del row["gap"]
        for text, message in (("", "expected rows of eval in *.jsonl or *.jsonl.gz, found none"),
                              (json.dumps(row), "a.jsonl:1: expected a row of eval --format ndjson, found no gap"),
                              ("\n\n{", "a.jsonl:1: expected a row"), ("[]", "found no name")):
            (rows / "a.jsonl").write_text(text)
            answer = self.results(rows)
            self.assertEqual(answer.returncode, 3)
            self.assertIn(message, answer.stderr)
        self.assertFalse((self.folder / "tables").exists())


class Evaluate(Folder):
    def setUp(self):
        super().setUp()
        for name in ("tsp20", "tsp50", "tsp100", "knap50"):
            (self.folder / f"{name}_test.npy").write_bytes(npy(120, 3))
            (self.folder / f"{name}_test.opt.npy").write_bytes(npy(120, 1))
        (self.folder / "program").write_text(PROGRAM)
        (self.folder / "program").chmod(0o755)

    def run_script(self, *arguments, **environment):
        environment = {**os.environ, "POINTSMAN": str(self.folder / "program"),
                       "CALLS": str(self.folder / "calls"), **environment}
        command = ["bash", ROOT / "bench/results/evaluate.sh", self.folder, self.folder / "out", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    def names(self, model):
        with gzip.open(self.folder / "out" / f"{model}.jsonl.gz", "rt") as lines:
            return [json.loads(line)["name"] for line in lines]

    def test_rows(self):
        answer = self.run_script("tsp50", "tsp100", "knap50")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("no model tsp100", answer.stderr)
        tsp = self.names("tsp50")
        for name in ("greedy+x8+improve", "local+500", "random+1280", "sample+1280+x8+shuffle+t2"):
            self.assertEqual(tsp.count(name), 1, tsp)
        self.assertEqual(tsp.count("sample+1280+x8+shuffle+t1.5"), 2, tsp)  # in the search for T*, and on the test set
        self.assertIn("sample+1280+shuffle+t1.5", self.names("knap50"))
        calls = (self.folder / "calls").read_text()
        self.assertIn("--capacity 12.5", calls)
        self.assertEqual(self.run_script("tsp50").returncode, 0)
        again = (self.folder / "calls").read_text()[len(calls):]
        self.assertEqual([line for line in again.splitlines() if not line.startswith("info")], [])

    def test_interrupted(self):
        self.assertEqual(self.run_script("tsp50", BREAKS="active").returncode, 4)
        self.assertFalse((self.folder / "out/tsp50.jsonl.gz").exists())
        self.assertEqual(self.run_script("tsp50").returncode, 0)
        self.assertEqual(self.names("tsp50").count("greedy"), 1)


if __name__ == "__main__":
    unittest.main()
