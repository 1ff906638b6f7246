#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/paper/rivals.py without any rival: the text that it makes of rows, and which rows it adds. CTest runs this."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/paper"))
import plane  # pylint: disable=wrong-import-position


def row(method, setting, cpu_ms, gaps, batch=1):
    return {"method": method, "setting": setting, "version": "1", "problem": "tsp", "n": 50, "set": "tsp50_test", "batch": batch,
            "machine": "a machine", "instances": len(gaps), "threads": 1, "cpu_ms": cpu_ms, "mean_cost": 5.7, "gaps": gaps}


class Rivals(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.output = self.folder / "rows.jsonl"

    def rivals(self, *arguments):
        """-S: as where neither numpy nor a rival is installed."""
        command = [sys.executable, "-S", ROOT / "bench/paper/rivals.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    def read(self, *rows):
        self.output.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return plane.last_rows(self.output)

    def test_front(self):
        rows = self.read(row("Pointsman: fast", "a", 1, [0.02, 0.02]), row("Pointsman: fast", "a", 0.5, [0.02, 0.02], 1000),
                         row("slow", "b", 9, [0.03, 0.01]), row("best", "c", 5, [0.001, 0.003]),
                         row("best", "d", 3, [0.05, 0.05]), row("lucky", "e", 6, [0.0015]))
        text = plane.size_text(*plane.rows_of(rows, "tsp", 50))
        first, batches, alone = [line for line in text.splitlines() if "front" in line][:3]
        self.assertEqual(first, "Other solvers on the front, one at a time: best (c): 0.2000% in 5 ms.")
        self.assertEqual(batches, "Other solvers on the front, in batches: best (c): 0.2000% in 5 ms.")
        self.assertIn("fastest first: Pointsman: fast (a): 2.0000% in 1 ms; best (c)", alone)
        self.assertIn("| Pointsman: fast | a | 1 | 2 | 2.0000 ± 0.0000 | 1 | 0.5 |", text)
        self.assertEqual(plane.size_text(*plane.rows_of(rows, "tsp", 20)), "Not measured yet.\n")

    def test_last_row_counts(self):
        failed = {**row("r", "a", 1, []), "error": "crashed"}
        del failed["gaps"]
        self.assertNotIn("crashed", plane.missing_text(self.read(failed, row("r", "a", 1, [0.1]))))
        text = plane.missing_text(self.read(failed, {"method": "s", "skipped": "no Python package s"}, row("t", "a", 1, [0.1])))
        self.assertIn("Failed: r (a), tsp50_test: crashed", text)
        self.assertIn("Skipped: s: no Python package s.", text)

    def test_missing_rivals(self):
        """After a torn line; a second run adds nothing."""
        self.output.write_text('{"method": "to')
        for _ in range(2):
            answer = self.rivals("run", self.folder, self.output, "--only", "PyVRP")
            self.assertIn("PyVRP: skipped: no Python package pyvrp", answer.stderr)
            self.assertEqual(self.output.read_text().splitlines()[1:],
                             ['{"method": "PyVRP", "skipped": "no Python package pyvrp"}'])


if __name__ == "__main__":
    unittest.main()
