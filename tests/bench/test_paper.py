#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/paper: which cells are measured, on how many instances and how often, with a stand-in for the program; and that the
pages hold what tables.py makes of the kept rows. CTest runs this.

After a wanted change of the tables or rows: python3 bench/paper/tables.py
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/paper"))
import cells  # pylint: disable=wrong-import-position
import rows  # pylint: disable=wrong-import-position
import tables  # pylint: disable=wrong-import-position


class StandIn(cells.Measurer):
    """Tours are 10% too long, those of samples less the nearer their temperature is to 1.5. An instance takes `milliseconds`."""
    sha256, milliseconds = "first", 2.0

    def __init__(self, folder, minutes=60.0):
        self.calls, self.spent = [], 0.0
        super().__init__(argparse.Namespace(pointsman="", output=folder, minutes=minutes, models=None))
        self.minutes = minutes

    def left(self):
        return 60 * self.minutes - self.spent

    def call(self, *arguments):
        words = [str(word) for word in arguments]
        self.calls.append(" ".join(words))
        return json.dumps(getattr(self, words[0])(words))

    def info(self, words):
        return {"version": "1", "threads": 2, "model": {"sha256": self.sha256}}

    def generate(self, words):
        count = int(words[words.index("-b") + 1])
        pathlib.Path(words[words.index("-o") + 1]).write_text(f'{{"problem":"{words[1]}"}}\n' * count, encoding="utf-8")

    def train(self, words):
        pathlib.Path(words[words.index("-o") + 1]).touch()

    def solve(self, words):
        lines = [json.loads(line) for line in pathlib.Path(words[1]).read_text(encoding="utf-8").splitlines()]
        temperature = float(words[words.index("--temperature") + 1]) if "--temperature" in words else 1.0
        distance = abs(temperature - 1.5) / 100 if "sample" in words else 0 if {"exact", "local"} & set(words) else 0.1
        solutions = [line | {"cost": 1 + distance, "value": 1 - distance} for line in lines]
        self.spent += 1e-3 * self.milliseconds * len(lines)
        mean = sum(map(cells.objective, solutions)) / len(lines)
        return {"solutions": solutions, "summary": {"mean_cost": mean, "device": "cpu (AVX2, 2 threads)",
                                                    "computing_times": {"solving": self.milliseconds * len(lines)}}}

    def eval(self, words):
        return {"rows": [{"mean_cost": 3, "gap": 2, "gap_ci95": 0.1, "ms_per_instance": 1}]}


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

        self.addCleanup(setattr, cells, "all_cells", cells.all_cells)
        cells.all_cells = lambda: cells.tsp_cells(20) + cells.knapsack_cells(50)

    def run_cells(self, **options):
        measurer = StandIn(self.folder, **options)
        measurer.run()
        return measurer


class Cells(Folder):
    def test_every_cell(self):
        measurer = self.run_cells()
        for cell in cells.all_cells():
            self.assertGreaterEqual(cells.row_of(measurer.best, cell)["instances"], 10, cell)
        self.assertEqual(cells.tuned(measurer.best, cells.Cell("tsp", 20, "best", "sample+1280+x8+t*")), "sample+1280+x8+t1.5")
        self.assertTrue(any("--noise 0.25" in call for call in measurer.calls))
        self.assertTrue(any("--stop-at-first-misfit" in call for call in measurer.calls))
        row = cells.row_of(measurer.best, cells.Cell("tsp", 20, "lstm", "greedy"))
        self.assertEqual((row["instances"], row["gaps"], row["model"], row["threads"]), (1000, [0.1] * 1000, "tsp20-lstm", 2))
        self.assertAlmostEqual(row["gap"], 0.1)

    def test_time_and_resume(self):
        StandIn.milliseconds = 1000.0
        self.addCleanup(setattr, StandIn, "milliseconds", 2.0)
        first = self.run_cells(minutes=18)  # the grids take 13, two references of 10 instances more than is planned
        self.assertLess(first.spent, 60 * 18 + 20)
        done = {cell: cells.row_of(first.best, cell) for cell in cells.all_cells()}
        counts = [row["instances"] if row else 0 for row in done.values()]
        self.assertLessEqual({0, 1, 10}, set(counts))  # what takes long on one instance, or not yet
        again = self.run_cells(minutes=10)
        self.assertFalse([call for call in again.calls if call.startswith("solve") and "validation" in call])
        self.assertGreater(sum(cells.row_of(again.best, cell) is not None for cell in done), sum(count > 0 for count in counts))
        StandIn.sha256 = "second"
        self.addCleanup(setattr, StandIn, "sha256", "first")
        other = StandIn(self.folder)
        self.assertIsNone(cells.row_of(other.best, cells.Cell("tsp", 20, "lstm", "greedy")))
        self.assertIsNotNone(cells.row_of(other.best, cells.Cell("knapsack", 50, "", "exact")))

    def test_replaced_weights(self):
        old = {"problem": "tsp", "n": 20, "network": "lstm", "name": "greedy", "set": "test.ndjson", "model": "m", "model_sha256": "a"}
        new = old | {"model_sha256": "b", "instances": 10}
        self.assertEqual(list(cells.best_rows([old | {"instances": 100}, new]).values()), [new])

    def test_torn_row(self):
        self.run_cells(minutes=0.5)
        path = self.folder / "cells.jsonl"
        kept = rows.read(path)
        path.write_bytes(path.read_bytes() + b'{"name": "gre')
        rows.append(path, {"name": "new"})
        self.assertEqual(rows.read(path), [*kept, {"name": "new"}])


# Writes -o, or the checkpoint and fails as interrupted.
TRAINER = r"""#!/usr/bin/env bash
while [ $# -gt 0 ]; do
  case $1 in -o) output=$2 ;; --checkpoint) checkpoint=$2 ;; --resume) [ -f "$2" ] || exit 9 ;; esac
  shift
done
if [ -n "$INTERRUPTED" ] && [ -n "$checkpoint" ]; then touch "$checkpoint" && exit 6; fi
touch "$output"
"""


class Train(Folder):
    def run_script(self, *words, interrupted=""):
        program = self.folder / "program"
        program.write_text(TRAINER, encoding="utf-8")
        program.chmod(0o755)
        command = ["bash", ROOT / "bench/paper/train.sh", self.folder / "models", *words]
        environment = {**os.environ, "POINTSMAN": str(program), "INTERRUPTED": interrupted}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def test_interrupted(self):
        words = "--sizes", "20", "--networks", "lstm"
        answer = self.run_script(*words, interrupted="1")
        self.assertNotEqual(answer.returncode, 0)
        self.assertNotIn("trained", answer.stdout)
        self.assertEqual(len(list((self.folder / "models").glob("*_supervised_*.ckpt"))), 16)
        cell = cells.Cell("tsp", 20, "lstm", "greedy+16models")
        self.assertNotIn(cell, cells.trained_cells(self.folder / "models"))
        answer = self.run_script(*words)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        self.assertEqual(answer.stdout.count("trained 20 lstm"), 16)
        self.assertFalse(list((self.folder / "models").glob("*.ckpt")))
        self.assertEqual(cells.trained_cells(self.folder / "models"), [cell._replace(strategy="greedy+supervised"), cell])

    def test_usage(self):
        self.assertEqual(self.run_script("--sizes").returncode, 2)


class Pages(Folder):
    def make(self, *words):
        command = [sys.executable, ROOT / "bench/paper/tables.py", *words, "--pages", self.folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_kept_pages(self):
        answer = self.make()
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.maxDiff = None
        for page in tables.PAGES:
            self.assertEqual((self.folder / page).read_text(encoding="utf-8"), (ROOT / page).read_text(encoding="utf-8"))

    def test_refuses(self):
        answer = self.make("--rows", self.folder)
        self.assertEqual(answer.returncode, 3)
        self.assertIn("expected rows of cells.py", answer.stderr)
        with self.assertRaises(SystemExit):
            tables.filled("<!-- table: 7 -->\n<!-- end -->", {"2": str}, "page.md")


if __name__ == "__main__":
    unittest.main()
