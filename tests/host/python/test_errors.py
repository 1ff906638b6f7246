# SPDX-License-Identifier: Apache-2.0
"""Failures are exceptions that say what was found and what was expected."""
import pathlib
import pickle
import subprocess
import sys
import unittest

import numpy as np
import pointsman
from program import FolderTest

POINTS = np.random.RandomState(1).random_sample((6, 2))


class Failures(FolderTest):

    def check(self, call, kinds, text, code=None):
        with self.assertRaises(kinds[0]) as caught:
            call()
        for kind in kinds:
            self.assertIsInstance(caught.exception, kind)
        self.assertIn(text, str(caught.exception))
        if code is not None:
            self.assertEqual(caught.exception.exit_code, code)
        return caught.exception

    def test_arrays(self):
        bad = POINTS.copy()
        bad[3, 1] = np.nan
        cases = ((lambda: pointsman.solve(bad), "points: [3, 1]: expected a finite number, found nan"),
                 (lambda: pointsman.solve([POINTS, bad]), "points[1]: [3, 1]: expected a finite number"),
                 (lambda: pointsman.solve(POINTS[:, 0]), "points: shape: expected (B, n, 2) or (n, 2), found (6,)"),
                 (lambda: pointsman.solve(POINTS[:0]), "points: shape: expected at least one instance"),
                 (lambda: pointsman.solve(POINTS > 0.5), "points: descr: expected floats or integers"),
                 (lambda: pointsman.solve(POINTS * 1e101), "within +-1e100"),
                 (lambda: pointsman.solve(matrix=-np.arange(9).reshape(3, 3)), "matrix: [0, 1]: expected a number from 0 to 1e100, found -1"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1], capacity=3), "values: shape: expected that of weights"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1, -1], capacity=3), "values: [1]: expected a number from 0"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1, 1], capacity=[3, 4]), "capacity: expected a number or 1"),
                 (lambda: pointsman.score(POINTS, [0, 1, 2, 3, 4, 4]), "solutions: solution 0: "),
                 (lambda: pointsman.score(POINTS, [[0, 1, 2, 3, 4, 5]] * 2), "solutions: expected 1 solution"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.InputError, pointsman.Error, ValueError), text, 3)

    def test_solutions_to_start_from(self):
        tour = list(range(6))
        infeasible = pointsman.solve(matrix=np.full((6, 6), np.inf))
        self.assertEqual(infeasible.status, ["infeasible"])
        cases = ((tour[:5], "init: shape: expected"), ([0, *tour[:5]], "init: solution 0: city 0 occurs twice"), ([tour, tour], "init: expected 1 solution"),
                 (np.array(tour) + 1, "init: solution 0: "), ([-1, *tour[1:]], "init: [0]: expected a city, from 0, found -1"),
                 (np.array(tour, float), "init: descr: expected integers, found"), (5, "init: shape: expected"),
                 (infeasible, "init: expected a solution to each instance, found none to instance 0 (infeasible)"))
        for init, text in cases:
            with self.subTest(text):
                self.check(lambda: pointsman.solve(POINTS, init=init), (pointsman.InputError, ValueError), text, 3)
        for init in ("x.tour", self.folder / "x.tour"):
            text = 'init: expected "random", an array of solutions or a Result, found '
            self.check(lambda: pointsman.solve(POINTS, init=init), (pointsman.UsageError, ), text, 2)
        self.check(lambda: pointsman.solve(POINTS, init=["a"]), (pointsman.ArgumentError, ), "init: expected an array of numbers", 2)

    def test_arrays_that_numpy_cannot_read(self):

        class Tensor:
            dtype = "torch.bfloat16"

            def __array__(self, *_, **__):
                raise TypeError("Got unsupported ScalarType BFloat16")

        text = "points: expected an array that NumPy can read, found a Tensor of torch.bfloat16 (Got unsupported ScalarType BFloat16)"
        error = self.check(lambda: pointsman.solve(Tensor()), (pointsman.ArgumentError, TypeError), text, 2)
        self.assertIn(".float()", str(error))
        self.check(lambda: pointsman.solve([POINTS, Tensor()]), (pointsman.ArgumentError, ), "points[1]: expected an array", 2)
        self.check(lambda: pointsman.solve(POINTS.astype(complex)), (pointsman.ArgumentError, ), "found complex128; convert it", 2)

    def test_a_matrix_is_asked_for_by_name(self):
        self.check(lambda: pointsman.solve(np.zeros((5, 5))), (pointsman.InputError, ValueError), "matrix=", 3)

    def test_a_mask_is_not_dropped(self):
        mask = np.zeros(POINTS.shape, bool)
        whole = np.ma.array(POINTS, mask=mask)
        np.testing.assert_array_equal(pointsman.solve(whole).tours, pointsman.solve(POINTS).tours)
        mask[3, 1] = True
        masked, square = np.ma.array(POINTS, mask=mask), np.ma.array(np.ones((6, 6)), mask=np.eye(6))
        order = np.ma.array(range(6), mask=[1, 0, 0, 0, 0, 0])
        cases = ((lambda: pointsman.solve(masked), "points: expected numbers, found a masked array"),
                 (lambda: pointsman.solve([POINTS, masked]), "points"),
                 (lambda: pointsman.solve([[masked[0], masked[3]], [POINTS[0], POINTS[1]]]), "points"),
                 (lambda: pointsman.solve(matrix=square), "matrix: expected numbers, found a masked array"),
                 (lambda: pointsman.solve(weights=order, values=range(6), capacity=3), "weights: expected numbers"),
                 (lambda: pointsman.solve(weights=range(6), values=order, capacity=3), "values: expected numbers"),
                 (lambda: pointsman.solve(weights=[1], values=[1], capacity=np.ma.masked), "capacity: expected numbers"),
                 (lambda: pointsman.score(POINTS, order), "solutions: expected numbers"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.UsageError, ValueError), text, 2)

    def test_text_that_looks_like_a_flag_is_a_value(self):
        for text in ("--help", "--version", "-h", "--steps=3", "--", "-n", "@x", "tps"):
            calls = (lambda: pointsman.train(text, 5), lambda: pointsman.generate(text, 5),
                     lambda: pointsman.train(text, 5, self.folder / "x.safetensors"))
            for call in calls:
                with self.subTest(text):
                    error = str(self.check(call, (pointsman.UsageError,), "problem: ", 2))
                    for part in (text, "tsp", "knapsack"):
                        self.assertIn(part, error)
        for name in ("mode", "init", "device", "precision"):
            with self.subTest(name):
                self.check(lambda: pointsman.solve(POINTS, **{name: "--help"}), (pointsman.UsageError, ), name, 2)
        self.check(lambda: pointsman.read(__file__, problem="--help"), (pointsman.UsageError, ), "problem", 2)
        self.check(lambda: pointsman.read("--help"), (pointsman.MissingFileError, ), "--help", 3)
        self.check(lambda: pointsman.solve(POINTS, model="--help"), (pointsman.InputError, ), "--help", 3)

    def test_lists_of_several_lengths(self):
        for points in ([[0, 1], [2]], [[[0, 1], [2]], POINTS]):
            self.check(lambda: pointsman.solve(points), (pointsman.InputError, ValueError), "points", 3)

    def test_types(self):
        cases = ((lambda: pointsman.solve(), "expected one of points, matrix="),
                 (lambda: pointsman.solve(POINTS, matrix=np.zeros((2, 2))), "expected one of points, matrix="),
                 (lambda: pointsman.solve(weights=[1], values=[1]), "together"),
                 (lambda: pointsman.solve(["a"]), "expected an array of numbers"),
                 (lambda: pointsman.solve(POINTS, smaples=5), "argument 'smaples'; did you mean samples?"),
                 (lambda: pointsman.solve(POINTS, format="json"), "argument 'format'"),
                 (lambda: pointsman.solve(POINTS, samples=[5]), "samples: expected text or a path, found [5]"),
                 (lambda: pointsman.read(5), "path: expected text or a path, found 5"),
                 (lambda: pointsman.Solver(5), "model: expected text or a path"),
                 (lambda: pointsman.score(POINTS), "expected solutions"),
                 (lambda: pointsman.write(self.folder / "x.npy", POINTS, force="no"), "force: expected a bool, found 'no'"),
                 (lambda: pointsman.from_torch([1], self.folder / "x.safetensors"), "state_dict: expected a mapping"),
                 (lambda: pointsman.train("tsp", 5, callback=5), "callback: expected a function, found 5"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.ArgumentError, pointsman.UsageError, TypeError), text, 2)

    def test_options(self):
        cases = ((lambda: pointsman.solve(POINTS, samples=-3), "samples: "),
                 (lambda: pointsman.solve(POINTS, temperature=0), "temperature: "),
                 (lambda: pointsman.solve(POINTS, mode="gredy"), "did you mean greedy?"),
                 (lambda: pointsman.solve(POINTS, mode="exact"), "mode exact: is not for TSP"),
                 (lambda: pointsman.solve(POINTS, mode="greedy", samples=5), "greedy pass of the same input"),
                 (lambda: pointsman.solve(matrix=np.zeros((3, 3)), mode="greedy"), "has only distances"),
                 (lambda: pointsman.solve(POINTS, init="models"), "init: expected"),
                 (lambda: pointsman.generate("tps", 5), "did you mean tsp?"),
                 (lambda: pointsman.generate("tsp", 5, capacity=3), "capacity: not for tsp"),
                 (lambda: pointsman.train("tsp", 5, self.folder / "x.safetensors", symmetries=3), "symmetries: "))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.UsageError, pointsman.Error, ValueError), text, 2)

    def test_no_value_takes_the_next_flag_for_its_own(self):
        cases = ((lambda: pointsman.solve(POINTS, mode=""), "mode: expected a value, found ''"),
                 (lambda: pointsman.generate("tsp", 5, like="", seed=3), "like: expected a value"),
                 (lambda: pointsman.Solver(device="", threads=1), "device: expected a value"),
                 (lambda: pointsman.train("tsp", 5, "", steps=3), "output: expected a value"),
                 (lambda: pointsman.generate("", 5), "problem: expected a value"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.UsageError,), text, 2)

    def test_a_bool_is_no_number(self):
        pointsman.solve(POINTS, threads=1)  # a solver that True must not find
        calls = {
            "samples": pointsman.solve, "seed": pointsman.solve, "kicks": pointsman.solve,
            "time_limit": pointsman.solve, "temperature": pointsman.score, "threads": pointsman.solve,
            "mode": pointsman.solve
        }
        for name, call in calls.items():
            for value in (True, False, np.True_, np.False_):
                with self.subTest(name, value=value):
                    arguments = {name: value} if call is pointsman.solve else {name: value, "solutions": range(6)}
                    self.check(lambda: call(POINTS, **arguments), (pointsman.UsageError,), f"{name}: expected", 2)
        self.check(lambda: pointsman.generate("tsp", True), (pointsman.UsageError,), "size: expected", 2)

    def test_seeds(self):
        for seed in (-1, 1 << 64, np.int64(-5), 1.5, "-1"):
            for call in (lambda: pointsman.solve(POINTS, seed=seed), lambda: pointsman.generate("tsp", 5, seed=seed)):
                self.check(call, (pointsman.UsageError,), "seed: expected a whole number from 0 to 2^64 - 1", 2)
        for seed in (0, (1 << 64) - 1, np.uint64((1 << 64) - 1)):
            self.assertEqual(pointsman.solve(POINTS, seed=seed).summary["seed"], int(seed))

    def test_how_a_file_is_read(self):
        path = self.folder / "map.json"
        pointsman.write(path, POINTS)
        cases = ({"input_format": "jsn"}, {"input_format": ""}, {"layout": "list"}, {"problem": "tps"}, {"problem": ""}, {"capacity": 0},
                 {"capacity": -1}, {"capacity": float("nan")}, {"capacity": float("inf")}, {"capacity": 1e101},
                 {"capacity": True})
        for options in cases:
            with self.subTest(**options):
                [name] = options
                error = self.check(lambda: pointsman.read(path, **options), (pointsman.UsageError,), "", 2)
                self.assertRegex(str(error), name.replace("_", "[-_]"))
        self.check(lambda: pointsman.read(path, problem="knapsack"), (pointsman.InputError,), "expected a KnapSack", 3)
        self.assertEqual(len(pointsman.read(path, problem="tsp", capacity=1e100)), 1)

    def test_files(self):
        missing = self.folder / "points.tsp"
        error = self.check(lambda: pointsman.read(missing), (pointsman.MissingFileError, FileNotFoundError), str(missing), 3)
        self.assertEqual(error.file, str(missing))
        bad = self.folder / "bad.tsp"
        bad.write_text("NAME: x\nTYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 x 0\nEOF\n")
        error = self.check(lambda: pointsman.read(bad), (pointsman.InputError, ValueError), f"{bad}:7: ", 3)
        self.assertEqual((error.file, error.line), (str(bad), 7))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.exit_code, again.line), (str(error), 3, 7))
        for call, file in ((lambda: pointsman.solve([POINTS, POINTS * np.nan]), None),
                           (lambda: pointsman.Solver(bad).solve(POINTS), bad),
                           (lambda: pointsman.Solver("knap50").solve(POINTS), pointsman._core.find_model("knap50")),
                           (lambda: pointsman.train("tsp", 5, self.folder / "x.safetensors", resume=bad), bad)):
            error = self.check(call, (pointsman.InputError,), str(file or "points[1]"), 3)
            self.assertEqual(error.file, file and str(file))
        resume = self.folder / "nosuch.ckpt"
        error = self.check(lambda: pointsman.train("tsp", 5, self.folder / "x.safetensors", resume=resume),
                           (pointsman.MissingFileError,), str(resume), 3)
        self.assertEqual(error.file, str(resume))
        self.check(lambda: pointsman.Solver("nosuch").solve(POINTS), (pointsman.InputError,), "nosuch: expected a model", 3)

    def test_outputs(self):
        path = self.folder / "map.tsp"
        instances = pointsman.generate("tsp", 5)
        pointsman.write(path, instances)
        error = self.check(lambda: pointsman.write(path, instances), (pointsman.UsageError,), "map.tsp", 2)
        self.assertEqual(error.file, str(path))
        pointsman.write(path, instances, force=True)
        self.check(lambda: pointsman.write(self.folder / "x.tps", instances), (pointsman.UsageError,), "did you mean .tsp?", 2)
        error = self.check(lambda: pointsman.write(pathlib.Path("/nosuch/x.tsp"), instances),
                           (pointsman.ResourceError, OSError), "/nosuch", 4)
        self.assertEqual(error.file, "/nosuch/x.tsp")
        error = self.check(lambda: pointsman.write(path, pointsman.generate("tsp", 5, 2), force=True),
                           (pointsman.UsageError,), "one instance with distances", 2)
        self.assertIsNone(error.file)

    def test_a_device_that_is_not_there(self):
        self.check(lambda: pointsman.Solver(device="cuda:999"), (pointsman.ResourceError,), "device cuda:999", 4)

    def test_the_modules_error_is_one_printable_line(self):
        from pointsman.__main__ import printable

        self.assertEqual(printable("a\n\x1b[31m\x7f\x9b\u202e\u2066\u061c\xe9 b"),
                         r"a\n\x1b[31m\x7f\x9b\u202e\u2066\u061c" + "\xe9 b")

    def test_the_module_opens_no_file_as_a_standard_stream(self):
        path = self.folder / "descriptor"
        script = ("import os, pointsman.__main__ as module; module.occupy_standard_streams(); "
                  f"file = open({str(path)!r}, 'w'); file.write(str(file.fileno()))")
        for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script]
            subprocess.run(command, check=True)
            self.assertGreater(int(path.read_text()), 2)

    def test_the_other_problems_answers(self):
        with self.assertRaisesRegex(AttributeError, "has tours"):
            pointsman.solve(POINTS).items
        with self.assertRaisesRegex(AttributeError, "has items"):
            pointsman.solve(weights=[1], values=[1], capacity=1).tours


if __name__ == "__main__":
    unittest.main()
