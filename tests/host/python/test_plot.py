# SPDX-License-Identifier: Apache-2.0
"""pointsman.plot: what stands in the picture, and how bad files end."""
import gzip
import json
import math
import os
import subprocess
import sys
import unittest
import warnings

import numpy as np

import pointsman
from program import FolderTest, ROOT, run

try:
    import matplotlib
    matplotlib.use("agg")
    from pointsman import plot
except ImportError:
    plot = None

ROW = {"problem": "tsp", "set": "tsp50.npy", "mode": "sample", "model": "tsp50", "augment": 8, "shuffle": False,
       "improve": False, "temperature": 1, "device": "cpu", "model_sha256": "0123456789", "samples": 16,
       "ms_per_instance": 2.5, "gap": 0.02, "gap_ci95": 0.005, "mean_cost": 5.7, "shortfall": None}


@unittest.skipIf(plot is None, "no matplotlib here")
class PlotTest(FolderTest):

    def setUp(self):
        super().setUp()
        self.addCleanup(plot.pyplot.close, "all")

    def write(self, name, *rows):
        path = self.folder / name
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
        return path

    def lines(self, ax):
        """{label: [(x, y)]} of the lines that the legend names."""
        return {line.get_label(): list(zip(*map(list, line.get_data()))) for line in ax.get_lines()
                if not line.get_label().startswith("_")}

    def fails(self, kind, words, call, *arguments, **options):
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        self.assertIn(words, str(caught.exception))

    def command(self, *words, stdin=None):
        return subprocess.run([sys.executable, "-m", "pointsman", "plot", *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.folder, input=stdin,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])})


class Tours(PlotTest):

    def test_a_round_trip(self):
        result = pointsman.solve([[0, 0], [0, 3], [4, 3], [4, 0]])
        ax = plot.tour(result)
        x, y = ax.get_lines()[0].get_data()
        self.assertEqual((x[0], y[0]), (x[-1], y[-1]))
        self.assertEqual(sum(math.dist(a, b) for a, b in zip(zip(x, y), zip(x[1:], y[1:]))), 14)
        self.assertEqual(ax.get_aspect(), 1)
        self.assertEqual(ax.get_title(), "instance 0: 4 cities, length 14")

    def test_files_side_by_side(self):
        cities, tour = ROOT / "tests/data/swiss_stations.tsp", ROOT / "tests/data/swiss_stations.opt.tour"
        axes = plot.tour(cities, tour, tour, labels=["one", "two"])
        self.assertEqual([ax.get_title().split(":")[0] for ax in axes], ["one", "two"])
        self.assertIn("length 1353", axes[0].get_title())

    def test_geographic(self):
        run("solve", ROOT / "tests/data/capitals.tsp", "-o", self.folder / "capitals.tour")
        ax = plot.tour(ROOT / "tests/data/capitals.tsp", self.folder / "capitals.tour")
        x, y = ax.get_lines()[0].get_data()
        self.assertIn("degrees east", ax.get_xlabel())
        self.assertLess(max(y), 90)
        self.assertAlmostEqual(ax.get_aspect(), 1 / math.cos(math.radians((min(y) + max(y)) / 2)))

    def test_routes(self):
        result = pointsman.solve(pointsman.generate("cvrp", 8, capacity=9))
        ax = plot.tour(result)
        *routes, depot = [line.get_xydata() for line in ax.get_lines()]
        self.assertGreater(len(routes), 1)
        self.assertEqual(sum(len(route) - 2 for route in routes), 7)
        for route in routes:
            self.assertEqual([route[0].tolist(), route[-1].tolist()], 2 * [depot[0].tolist()])
        length = sum(np.hypot(*np.diff(route, axis=0).T).sum() for route in routes)
        self.assertAlmostEqual(length, result.costs[0])
        self.assertIn("7 customers", ax.get_title())

    def test_refused(self):
        sets = pointsman.generate("tsp", 5, 30)
        result = pointsman.solve(sets)
        self.fails(pointsman.UsageError, "30 maps are more than 25", plot.tour, result)
        self.fails(pointsman.UsageError, "has 30, counted from 0", plot.tour, result, index=30)
        self.assertEqual(plot.tour(result, index=29).get_title().split(",")[0], "instance 29: 5 cities")
        self.fails(pointsman.UsageError, "at least one file of tours", plot.tour, sets)
        self.fails(pointsman.UsageError, "a knapsack has no map", plot.tour, pointsman.solve(pointsman.generate("knapsack", 5)))
        self.fails(pointsman.UsageError, "only distances", plot.tour, pointsman.solve(matrix=[[0, 1, 2], [1, 0, 3], [2, 3, 0]]))


class Ratios(PlotTest):

    def test_sorted_over_the_share(self):
        answers = self.write("a.json", {"solutions": [{"problem": "tsp", "gap": gap} for gap in (0.5, 0, 0.25, 0)]})
        line = self.lines(plot.ratio(answers))["a"]
        self.assertEqual(line, [(0, 1), (25, 1), (50, 1), (75, 1.25), (100, 1.5)])

    def test_a_knapsack_is_at_most_1(self):
        answers = self.write("k.ndjson", {"problem": "knapsack", "gap": 0.25}, {"error": "bad line"})
        with self.assertWarnsRegex(UserWarning, "1 lines hold errors"):
            ax = plot.ratio(answers)
        self.assertEqual(self.lines(ax)["k"], [(0, 0.75), (100, 0.75)])
        self.assertIn("packed value", ax.get_ylabel())

    def test_of_solve(self):
        points = np.random.RandomState(1).random_sample((8, 10, 2))
        np.save(self.folder / "set.npy", points)
        reference, greedy = self.folder / "best.json", self.folder / "greedy.json"
        run("solve", self.folder / "set.npy", "--mode", "local", "-o", reference)
        run("solve", self.folder / "set.npy", "--mode", "greedy", "-m", "tsp20", "--ref", reference, "-o", greedy)
        heights = [y for _, y in self.lines(plot.ratio(greedy))["greedy"]]
        self.assertEqual(heights, sorted(heights))
        self.assertGreaterEqual(heights[0], 1 - 1e-12)

    def test_refused(self):
        tsp, knapsack = {"problem": "tsp", "gap": 0.1}, {"problem": "knapsack", "gap": 0.1}
        for words, rows in (("expected at least one solution", [{"solutions": []}]),
                            ('a.json:1: "gap": expected a number (of solve --ref), found null', [{"problem": "tsp"}]),
                            ("the same problem throughout, found knapsack", [tsp, knapsack]),
                            ("a.json:2: expected a line of JSON", [tsp, "{\n", tsp])):
            with self.subTest(words):
                self.fails(pointsman.InputError, words, plot.ratio, self.write("a.json", *rows))
        self.fails(pointsman.MissingFileError, "no.json", plot.ratio, self.folder / "no.json")
        self.fails(pointsman.UsageError, "expected 1, one for each file", plot.ratio, self.write("a.json", tsp), labels=["x", "y"])


class Curves(PlotTest):

    def test_what_was_not_measured_is_left_out(self):
        log = self.write("run.jsonl", {"tours": 10, "val_cost": None}, {"tours": 20, "val_cost": 4.5}, {"tours": 30, "val_cost": 4.0},
                         '{"tours": 40, "val')
        with self.assertWarnsRegex(UserWarning, "cut short"):
            ax = plot.curve(log, reference=3.83)
        self.assertEqual(self.lines(ax)["run"], [(20, 4.5), (30, 4.0)])
        self.assertIn("reference 3.83", self.lines(ax))

    def test_packed_and_logarithmic(self):
        (self.folder / "run.jsonl.gz").write_bytes(
            gzip.compress(b'{"step": 1, "entropy": 2.0}\n{"step": 10, "entropy": 0}\n{"step": 100, "entropy": 1.0}\n'))
        with self.assertWarnsRegex(UserWarning, "lines left out: 1"):
            ax = plot.curve(self.folder / "run.jsonl.gz", x="step", y="entropy", log_x=True, log_y=True)
        self.assertEqual(self.lines(ax)["run"], [(1, 2.0), (100, 1.0)])
        self.assertEqual((ax.get_xscale(), ax.get_yscale()), ("log", "log"))

    def test_stages(self):
        log = self.write("model.jsonl", {"stage": "1 given", "tours": 1, "val_cost": 3}, {"stage": "2 polish", "tours": 1, "val_cost": 2})
        self.assertEqual(self.lines(plot.curve(log)), {"1 given": [(1, 3)], "2 polish": [(1, 2)]})

    def test_files_of_one_name(self):
        for folder in ("a", "b"):
            (self.folder / folder).mkdir()
            self.write(f"{folder}/run.jsonl", {"tours": 1, "val_cost": 2})
        paths = [str(self.folder / folder / "run.jsonl") for folder in ("a", "b")]
        self.assertEqual(list(self.lines(plot.curve(*paths))), paths)

    def test_refused(self):
        log = self.write("run.jsonl", {"tours": 0, "val_cost": 1})
        self.fails(pointsman.UsageError, "did you mean entropy?", plot.curve, log, y="entrpy")
        self.fails(pointsman.InputError, 'run.jsonl:1: "tours": expected a number above 0', plot.curve, log, log_x=True)
        self.fails(pointsman.UsageError, "a number above 0", plot.curve, log, log_y=True, reference=0)
        self.fails(pointsman.InputError, "at least one line with a number in entropy", plot.curve,
                   self.write("run.jsonl", {"tours": 0, "entropy": None}), y="entropy")
        self.fails(pointsman.InputError, "expected a number, found true", plot.curve, self.write("run.jsonl", {"tours": True, "val_cost": 1}))


class Progress(PlotTest):

    def test_a_line_for_each_strategy(self):
        local = {**ROW, "mode": "local", "model": None, "model_sha256": None, "augment": 1, "samples": 1, "gap_ci95": None}
        rows = self.write("rows.jsonl", {**ROW, "samples": 128, "gap": 0.01}, ROW, local, {**local, "gap": None})
        ax = plot.progress(rows)
        drawn = {c.get_label(): list(zip(*map(list, c.lines[0].get_data()))) for c in ax.containers}
        self.assertEqual(drawn, {"tsp50 sample x8": [(16, 2.0), (128, 1.0)], "local search": [(1, 2.0)]})
        self.assertIsNotNone(ax.containers[0].lines[2])  # error bars

    def test_strategies_of_one_name(self):
        rows = self.write("rows.jsonl", ROW, {**ROW, "model_sha256": "fedcba9876"})
        names = [c.get_label() for c in plot.progress(rows).containers]
        self.assertEqual(names, ["tsp50 sample x8, 01234567", "tsp50 sample x8, fedcba98"])

    def test_of_eval(self):
        np.save(self.folder / "set.npy", np.random.RandomState(1).random_sample((4, 10, 2)))
        rows = self.folder / "rows.jsonl"
        run("eval", self.folder / "set.npy", "-m", "tsp20", "--modes", "sample+4,sample+8", "-o", rows)
        ax = plot.progress(rows, y="mean_cost")
        self.assertEqual([list(c.lines[0].get_xdata()) for c in ax.containers], [[4, 8]])

    def test_refused(self):
        self.fails(pointsman.InputError, "the same problem throughout", plot.progress,
                   self.write("rows.jsonl", ROW, {**ROW, "problem": "knapsack"}))
        self.fails(pointsman.InputError, 'rows.jsonl:1: "mode": expected mode, found 3', plot.progress,
                   self.write("rows.jsonl", {**ROW, "mode": 3}))


class CommandLine(PlotTest):

    def test_every_format(self):
        log = self.write("run.jsonl", {"tours": 1, "val_cost": 2}, {"tours": 2, "val_cost": 1})
        for suffix, begin in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            answer = self.command("curve", log, "-o", f"a.{suffix}", "--title", "words")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertTrue((self.folder / f"a.{suffix}").read_bytes().startswith(begin))
        first = (self.folder / "a.svg").read_bytes()
        self.assertIn(b"words", first)
        again = self.command("curve", log, "-o", "a.svg")
        self.assertEqual((again.returncode, (self.folder / "a.svg").read_bytes()), (2, first))
        self.assertEqual(self.command("curve", log, "--title", "words").stdout, first)  # the same bytes, on stdout
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.pdf", "a.png", "a.svg", "run.jsonl"])

    def test_stdin(self):
        rows = b'{"problem": "tsp", "gap": 0.1}\n{"problem": "tsp", "gap": 0}\n'
        for kind, text in (("ratio", rows), ("ratio", b'{"solutions": [{"problem": "tsp", "gap": 0}]}'),
                           ("curve", b'{"tours": 1, "val_cost": 2}\n')):
            answer = self.command(kind, "-", stdin=text)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))

    def test_exit_codes(self):
        log = self.write("run.jsonl", {"tours": 1, "val_cost": 2})
        for code, words in ((2, ["curve", log, "-o", "a.gif"]), (2, ["ratio", log, "--log-y"]), (2, ["map", log]),
                            (3, ["ratio", log]), (3, ["curve", "no.jsonl"]), (4, ["curve", log, "-o", "no/a.svg"])):
            with self.subTest(words):
                answer = self.command(*words)
                self.assertEqual(answer.returncode, code, answer.stderr)
                self.assertIn(b"error", answer.stderr)


if __name__ == "__main__":
    warnings.simplefilter("always")
    unittest.main()
