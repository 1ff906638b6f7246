# SPDX-License-Identifier: Apache-2.0
"""Failures are exceptions that say what was found and what was expected."""
import pathlib
import pickle
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
                 (lambda: pointsman.solve(matrix=np.arange(9).reshape(3, 3)), "matrix: [1, 0]: expected 1 as"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1], capacity=3), "values: shape: expected that of weights"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1, -1], capacity=3), "values: [1]: expected a number from 0"),
                 (lambda: pointsman.solve(weights=[1, 2], values=[1, 1], capacity=[3, 4]), "capacity: expected a number or 1"),
                 (lambda: pointsman.score(POINTS, [0, 1, 2, 3, 4, 4]), "solutions: solution 0: "),
                 (lambda: pointsman.score(POINTS, [[0, 1, 2, 3, 4, 5]] * 2), "solutions: expected 1 solution"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.InputError, pointsman.Error, ValueError), text, 3)

    def test_a_matrix_is_asked_for_by_name(self):
        self.check(lambda: pointsman.solve(np.zeros((5, 5))), (ValueError,), "matrix=")

    def test_types(self):
        cases = ((lambda: pointsman.solve(), "expected one of points, matrix="),
                 (lambda: pointsman.solve(POINTS, matrix=np.zeros((2, 2))), "expected one of points, matrix="),
                 (lambda: pointsman.solve(weights=[1], values=[1]), "together"),
                 (lambda: pointsman.solve(["a"]), "expected an array of numbers"),
                 (lambda: pointsman.solve(POINTS, smaples=5), "argument 'smaples'; did you mean samples?"),
                 (lambda: pointsman.solve(POINTS, format="json"), "argument 'format'"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (TypeError,), text)

    def test_options(self):
        cases = ((lambda: pointsman.solve(POINTS, samples=-3), "--samples"),
                 (lambda: pointsman.solve(POINTS, temperature=0), "--temperature"),
                 (lambda: pointsman.solve(POINTS, mode="gredy"), "did you mean greedy?"),
                 (lambda: pointsman.solve(POINTS, mode="exact"), "--mode exact: is not for TSP"),
                 (lambda: pointsman.solve(POINTS, mode="greedy", samples=5), "greedy pass of the same input"),
                 (lambda: pointsman.solve(matrix=np.zeros((3, 3)), mode="greedy"), "has only distances"),
                 (lambda: pointsman.generate("tps", 5), "did you mean tsp?"),
                 (lambda: pointsman.generate("tsp", 5, capacity=3), "--capacity: is for knapsack only"),
                 (lambda: pointsman.train("tsp", 5, self.folder / "x.safetensors", symmetries=3), "--symmetries"))
        for call, text in cases:
            with self.subTest(text):
                self.check(call, (pointsman.UsageError, pointsman.Error, ValueError), text, 2)

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
        self.check(lambda: pointsman.Solver("nosuch").solve(POINTS), (pointsman.InputError,), "nosuch: expected a model", 3)

    def test_outputs(self):
        path = self.folder / "map.tsp"
        instances = pointsman.generate("tsp", 5)
        pointsman.write(path, instances)
        self.check(lambda: pointsman.write(path, instances), (pointsman.UsageError,), "map.tsp", 2)
        pointsman.write(path, instances, force=True)
        self.check(lambda: pointsman.write(self.folder / "x.tps", instances), (pointsman.UsageError,), "did you mean .tsp?", 2)
        self.check(lambda: pointsman.write(pathlib.Path("/nosuch/x.tsp"), instances), (pointsman.ResourceError, OSError),
                   "/nosuch", 4)

    def test_a_device_that_is_not_there(self):
        self.check(lambda: pointsman.Solver(device="cuda:999"), (pointsman.ResourceError,), "device cuda:999", 4)

    def test_the_other_problems_answers(self):
        with self.assertRaisesRegex(AttributeError, "has tours"):
            pointsman.solve(POINTS).items
        with self.assertRaisesRegex(AttributeError, "has items"):
            pointsman.solve(weights=[1], values=[1], capacity=1).tours


if __name__ == "__main__":
    unittest.main()
