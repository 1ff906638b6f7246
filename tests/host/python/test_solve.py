# SPDX-License-Identifier: Apache-2.0
"""solve(): the program's own bits in every mode, whatever the arrays look like."""
import math
import pickle
import time
import unittest

import numpy as np
import pointsman
from program import ROOT, FolderTest, answers, flags, run

TSP_MODES = (
    {},
    {"kicks": 7},
    {"time_limit": 0.0},
    {"samples": 32},
    {"samples": 32, "improve": False, "temperature": 1.3},
    {"mode": "greedy"},
    {"mode": "greedy", "augment": 8, "clip": 7.5},
    {"mode": "sample", "samples": 40, "seed": 99},
    {"mode": "sample", "samples": 40, "first_sample": 8, "batch_size": 2, "shuffle": True},
    {"mode": "sample", "samples": 40, "improve": True, "kicks": 3},
    {"mode": "active", "steps": 2, "replicas": 16},
    {"mode": "active", "steps": 2, "replicas": 16, "init": "random", "entropy": 0.1, "learning_rate": 0.002},
    {"mode": "local", "kicks": 20},
    {"mode": "2opt", "kicks": 20},
)
KNAPSACK_MODES = ({}, {"mode": "exact"}, {"mode": "greedy"}, {"mode": "sample", "samples": 40},
                  {"mode": "active", "steps": 2,
                   "replicas": 16}, {"mode": "sample", "samples": 40, "shuffle": False})


def nan_where_none(values):
    return [math.nan if value is None else value for value in values]


class SameAsTheProgram(FolderTest):

    def check(self, result, expected):
        rows = expected["solutions"]
        self.assertEqual(len(result), len(rows))
        key = {"tsp": "tour", "path": "path", "knapsack": "items"}[result.instances.problem]
        orders = result.items if key == "items" else result.tours
        for order, row in zip(orders, rows):
            self.assertEqual(order.tolist(), row[key])
        np.testing.assert_array_equal(result.costs, [row["value" if key == "items" else "cost"] for row in rows])
        np.testing.assert_array_equal(result.log_prob, nan_where_none([row["log_prob"] for row in rows]))
        np.testing.assert_array_equal(result.network_costs,
                                      nan_where_none([row.get("network_cost") for row in rows]))
        np.testing.assert_array_equal(result.bounds, nan_where_none([row.get("bound") for row in rows]))
        self.assertEqual(result.status, [row["status"] for row in rows])
        self.assertEqual(result.start, [row.get("start", "") for row in rows])
        for kicks, row in zip(result.kicks.tolist(), rows):  # JSON has those of some modes only
            self.assertEqual(kicks, row.get("kicks", kicks))
        if key == "items":
            np.testing.assert_array_equal(result.weights, [row["weight"] for row in rows])
        for name in ("mode", "samples", "augment", "shuffle", "improve", "seed", "version", "groups"):
            self.assertEqual(result.summary[name], expected["summary"][name])
        self.assertEqual(result.summary["model"], expected["summary"].get("model", ""))

    def test_points_in_every_mode(self):
        path = self.folder / "set.npy"
        run("generate", "tsp", "-n", 12, "-b", 3, "-o", path)
        for options in TSP_MODES:
            with self.subTest(options):
                self.check(pointsman.solve(np.load(path), **options), answers(path, *flags(options)))

    def test_items_in_every_mode(self):
        path = self.folder / "set.npz"
        run("generate", "knapsack", "-n", 30, "-b", 3, "-o", path)
        arrays = np.load(path)
        for options in KNAPSACK_MODES:
            with self.subTest(options):
                result = pointsman.solve(weights=arrays["weights"], values=arrays["values"],
                                         capacity=arrays["capacity"], **options)
                self.check(result, answers(path, *flags(options)))

    def test_a_matrix(self):
        path = self.folder / "matrix.npy"
        upper = np.triu(np.random.RandomState(5).randint(1, 99, (9, 9)), 1)
        np.save(path, upper + upper.T)
        for options in ({}, {"mode": "local", "kicks": 4}):
            with self.subTest(options):
                self.check(pointsman.solve(matrix=upper + upper.T, **options),
                           answers(path, "--input-format", "matrix", *flags(options)))

    def test_paths_with_given_ends(self):
        path = self.folder / "set.npy"
        points = np.random.RandomState(6).uniform(size=(3, 14, 2))
        np.save(path, points)
        result = pointsman.solve(points, problem="path", start=3, end=0)
        self.check(result, answers(path, "--problem", "path", "--start", 3, "--end", 0))
        np.testing.assert_array_equal(result.tours[:, [0, -1]], [[3, 0]] * 3)
        self.check(pointsman.solve(pointsman.read(path, problem="path", start=3)),
                   answers(path, "--problem", "path", "--start", 3))
        for options, said in (({"start": 3}, "found a TSP"), ({"problem": "path", "end": 14}, "below 14"),
                              ({"problem": "path", "start": 2, "end": 2}, "not the start"),
                              ({"problem": "cvrp"}, "no demands"), ({"problem": "atsp"}, "points are no ATSP")):
            with self.subTest(options), self.assertRaisesRegex(pointsman.InputError, said):
                pointsman.solve(points, **options)
        with self.assertRaisesRegex(pointsman.ArgumentError, "go with an array"):
            pointsman.solve(pointsman.read(path), problem="path")

    def test_infeasible_instances_have_their_rows(self):
        ways = np.ones((2, 13, 13))
        ways[0, 0, 1:] = np.inf
        ways[1, 1:, 0] = np.nan
        ways[1, 2, 0] = 1
        result = pointsman.solve(matrix=ways)
        self.assertEqual(result.status, ["infeasible", "done"])
        np.testing.assert_array_equal(result.costs, [np.nan, 13])
        np.testing.assert_array_equal(result.tours[0], -1)
        tour = result.tours[1].tolist()
        self.assertEqual(tour[tour.index(0) - 1], 2)  # the only way to city 0
        self.assertEqual(result.summary["infeasible"], 1)
        # Not after a search that a limit cut short, but after one that had its number of kicks.
        self.assertEqual(pointsman.solve(matrix=ways[0], time_limit=1e-9).status, ["unsolved"])
        self.assertEqual(pointsman.solve(matrix=ways[0], time_limit=1).status, ["infeasible"])

    def test_time_windows(self):
        instances = pointsman.generate("tsptw", 9, 4)
        exact = pointsman.solve(instances, mode="exact")
        self.assertEqual(exact.status, ["done"] * 4)
        np.testing.assert_array_equal(exact.tours[:, 0], 0)
        np.testing.assert_allclose(pointsman.solve(instances).costs, exact.costs, rtol=1e-12)
        again = pickle.loads(pickle.dumps(exact))
        np.testing.assert_array_equal(again.tours, exact.tours)
        rows = np.concatenate([instances.points, instances.windows, instances.visits[:, :, None]], axis=2)
        np.testing.assert_array_equal(pointsman.solve(rows, problem="tsptw", mode="exact").costs, exact.costs)
        five = pointsman.solve(rows[0, :5], problem="tsptw")
        self.assertEqual(sorted(five.tours[0].tolist()), list(range(5)))
        with self.assertRaisesRegex(AttributeError, "a TSPTW has points, windows and visits"):
            instances.demands
        path = self.folder / "windows.json"
        instances.write(path)
        np.testing.assert_array_equal(pointsman.solve(pointsman.read(path), mode="exact").costs, exact.costs)

    def test_colourings(self):
        graphs = pointsman.generate("colouring", 12, 6)
        exact = pointsman.solve(graphs, mode="exact")
        self.assertEqual(exact.colours.shape, (6, 12))
        np.testing.assert_array_equal(exact.colours.max(axis=1) + 1, exact.costs)
        again = pickle.loads(pickle.dumps(exact))
        np.testing.assert_array_equal(again.colours, exact.colours)
        with self.assertRaisesRegex(AttributeError, "a colouring has colours"):
            exact.tours
        with self.assertRaisesRegex(AttributeError, "a colouring has matrices"):
            graphs.points
        joined = np.array(graphs.matrices)
        for colours, matrix in zip(exact.colours, joined):
            self.assertEqual(set(np.unique(matrix)), {0.0, 1.0})
            self.assertFalse(matrix[colours[:, None] == colours].any())
        one_way = np.triu(joined) > 0
        np.testing.assert_array_equal(pointsman.solve(matrix=one_way, problem="colouring", mode="exact").costs, exact.costs)
        with self.assertRaisesRegex(AttributeError, "only a colouring has colours"):
            pointsman.solve(np.random.rand(5, 2)).colours

    def test_dsatur_is_networkx(self):
        try:
            import networkx
        except ImportError:
            self.skipTest("no networkx")
        for n in (1, 2, 9, 30, 60):
            graphs = pointsman.generate("colouring", n, 20, seed=n)
            for ours, matrix in zip(pointsman.solve(graphs, kicks=0).colours, graphs.matrices):
                colours = networkx.greedy_color(networkx.from_numpy_array(np.asarray(matrix)), "DSATUR")
                firsts = {}
                theirs = [firsts.setdefault(colours[node], len(firsts)) for node in range(n)]
                self.assertEqual(ours.tolist(), theirs)

    def test_a_model_by_name_and_by_path(self):
        path = self.folder / "set.npy"
        run("generate", "tsp", "-n", 20, "-b", 2, "-o", path)
        file = self.folder / "mine.safetensors"
        run("train", "tsp", "-n", 20, "--steps", 1, "-b", 2, "-o", file)
        for model in ("tsp50", file):
            solver = pointsman.Solver(model, threads=1)
            for options in ({}, {"mode": "greedy"}):  # the same solver, other flags
                with self.subTest(model=model, **options):
                    self.check(solver.solve(np.load(path), **options),
                               answers(path, "-m", model, *flags(options)))

    def test_an_lstm_by_path_and_the_order_it_reads(self):
        path = self.folder / "set.npy"
        run("generate", "tsp", "-n", 20, "-b", 2, "-o", path)
        model = ROOT / "models/pretrained/tsp20-lstm.safetensors"
        for options in ({"samples": 32}, {"samples": 32, "shuffle": False},
                        {"mode": "sample", "samples": 32, "shuffle": True}):
            with self.subTest(options):
                result = pointsman.solve(np.load(path), model=model, **options)
                self.check(result, answers(path, "-m", model, *flags(options)))

    def test_mixed_sizes(self):
        random = np.random.RandomState(3)
        maps = [random.random_sample((n, 2)) for n in (7, 12, 7, 5)]
        path = self.folder / "set.ndjson"
        path.write_text("".join(f'{{"problem":"tsp","coordinates":{points.tolist()}}}\n' for points in maps))
        for options in ({}, {"mode": "sample", "samples": 16}):
            with self.subTest(options):
                self.check(pointsman.solve(maps, **options), answers(path, *flags(options)))

    def test_bounds_of_knapsacks_that_are_not_proved(self):
        # Each item is worth its even weight, and the capacity is odd: no packing fills it.
        weights = 1e6 + 2.0 * np.random.RandomState(3).randint(0, 500000, 60)
        result = pointsman.solve(weights=[weights, weights[:3]], values=[weights, weights[:3]], capacity=30000001)
        self.assertEqual(result.bounds[0], 30000001)
        self.assertLess(result.costs[0], 30000001)
        self.assertTrue(np.isnan(result.bounds[1]))

    def test_knapsacks_of_mixed_sizes(self):
        random = np.random.RandomState(3)
        weights, values = ([random.random_sample(n) for n in (4, 9, 6)] for _ in range(2))
        result = pointsman.solve(weights=weights, values=values, capacity=[1.0, 2.0, 1.5])
        for i, capacity in enumerate((1.0, 2.0, 1.5)):
            one = pointsman.solve(weights=weights[i], values=values[i], capacity=capacity)
            self.assertEqual(one.items[0].tolist(), result.items[i].tolist())
            self.assertLessEqual(result.weights[i], capacity)

    def test_files_keep_their_metric_and_ids(self):
        path = self.folder / "map.tsp"
        run("generate", "tsp", "-n", 10, "-o", path)
        path.write_text(path.read_text().replace("EUC_2D", "CEIL_2D"))
        instances = pointsman.read(path)
        self.assertEqual(instances.metrics, ["CEIL_2D"])
        self.check(pointsman.solve(instances, mode="greedy"), answers(path, "--mode", "greedy"))


class Arrays(unittest.TestCase):

    def setUp(self):
        self.points = np.random.RandomState(1).randint(0, 100, (2, 9, 2))
        self.tours = pointsman.solve(self.points).tours.tolist()

    def check(self, points):
        self.assertEqual(pointsman.solve(points).tours.tolist(), self.tours)

    def test_every_type_of_number(self):
        for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", ">f8", ">i4"):
            with self.subTest(name):
                self.check(self.points.astype(name))

    def test_layouts(self):
        points = self.points.astype(float)
        read_only = points.copy()
        read_only.flags.writeable = False
        for name, array in (("Fortran", np.asfortranarray(points)), ("steps", np.repeat(points, 2,
                                                                                        axis=1)[:, ::2]),
                            ("backwards", points[:, ::-1][:, ::-1]), ("read only", read_only),
                            ("list", points.tolist()), ("list of arrays", list(points)), ("tuple",
                                                                                          tuple(points))):
            with self.subTest(name):
                self.check(array)

    def test_one_instance_is_a_batch_of_one(self):
        result = pointsman.solve(self.points[0])
        self.assertEqual(result.tours.shape, (1, 9))
        self.assertEqual(result.tours.dtype, np.int32)
        self.assertEqual((result.costs.shape, len(result.status), len(result.start)), ((1, ), 1, 1))
        self.assertEqual(result.tours[0].tolist(), self.tours[0])

    def test_the_input_stays_as_it_is(self):
        points = self.points.astype(float)
        before = points.copy()
        pointsman.solve(points, mode="greedy")
        np.testing.assert_array_equal(points, before)

    def test_answers_outlive_their_result(self):
        tours = pointsman.solve(self.points).tours
        self.assertEqual(tours.tolist(), self.tours)
        tours[0, 0] = 0  # its own memory


class WarmStarts(SameAsTheProgram):

    def test_the_programs_init(self):
        for problem, key in (("tsp", "tour"), ("knapsack", "items"), ("cvrp", "routes")):
            source, given = self.folder / f"{problem}.json", self.folder / f"{problem}.out.json"
            instances = pointsman.generate(problem, 14, 3)
            instances.write(source)
            start = pointsman.solve(instances, mode="sample", samples=1, seed=3)
            start.write(given)
            for options in ({}, {"mode": "greedy"}, {"mode": "sample", "samples": 4, "improve": problem != "knapsack"}):
                with self.subTest(problem=problem, options=options):
                    result = pointsman.solve(instances, init=start, **options)
                    rows = answers(source, "--init", given, *flags(options))["solutions"]
                    orders = result.items if problem == "knapsack" else result._core.items()
                    for order, row in zip(orders, rows):
                        expected = [stop for route in row[key] for stop in (0, *route)][1:] if key == "routes" else row[key]
                        self.assertEqual(order.tolist(), expected)
                    np.testing.assert_array_equal(result.costs, [row.get("cost", row.get("value")) for row in rows])
                    self.assertEqual(result.status, [row["status"] for row in rows])
                    self.assertEqual(result.kicks.tolist(), [row.get("kicks", 0) for row in rows])

    def test_none_gets_worse(self):
        points = np.random.RandomState(2).uniform(size=(4, 30, 2))
        best = pointsman.solve(points)
        poor = {"mode": "sample", "samples": 1, "temperature": 1000}
        for init in (best, best.tours, list(best.tours), best.tours.tolist(), best.tours.astype("u1")):
            np.testing.assert_array_equal(pointsman.solve(points, init=init, **poor).costs, best.costs)
        result = pointsman.Solver().sample(points, samples=1, temperature=1000, init=best)
        np.testing.assert_array_equal(result.tours, best.tours)
        mean = best.costs.mean()
        self.assertAlmostEqual(result.summary["mean_cost"], mean)
        # A limit that leaves nothing else returns the given ones.
        late = pointsman.solve(points, init=best, mode="sample", samples=64, time_limit=1e-9)
        np.testing.assert_array_equal(late.costs, best.costs)
        self.assertEqual(late.status, ["time_limit"] * 4)

    def test_they_are_improved_where_the_run_improves(self):
        points = np.random.RandomState(2).uniform(size=(4, 100, 2))
        best = pointsman.solve(points, kicks=3000)
        given = best.tours.copy()
        given[:, 10:14] = given[:, 13:9:-1].copy()
        poor = {"mode": "sample", "samples": 1, "temperature": 1000, "init": given}
        self.assertTrue((pointsman.solve(points, **poor).costs > best.costs).all())
        # From the network's own tours alone local search ends above these.
        np.testing.assert_allclose(pointsman.solve(points, improve=True, **poor).costs, best.costs, rtol=1e-12)

    def test_sizes_that_differ(self):
        maps = [np.random.RandomState(n).uniform(size=(n, 2)) for n in (7, 12)]
        best = pointsman.solve(maps)
        for init in (best, best.tours, [tour.tolist() for tour in best.tours]):
            result = pointsman.solve(maps, init=init, mode="sample", samples=1, temperature=1000)
            np.testing.assert_array_equal(result.costs, best.costs)

    def test_random_is_still_active_search(self):
        options = {"mode": "active", "steps": 2, "replicas": 16, "init": "random"}
        points = np.random.RandomState(2).uniform(size=(9, 2))
        self.assertEqual(pointsman.solve(points, **options).summary["model"], "untrained")
        with self.assertRaisesRegex(pointsman.UsageError, "is for mode active"):
            pointsman.solve(points, init="random")


class Frames(unittest.TestCase):

    def setUp(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas here")
        self.pandas = pandas
        self.points = np.array([[0, 0], [4, 3], [0, 3], [4, 0], [2, 5]])
        self.tours = pointsman.solve(self.points).tours.tolist()

    def frame(self, kind):
        return self.pandas.DataFrame(self.points, columns=["x", "y"]).astype(kind)

    def test_nullable_columns(self):
        for kind in ("Int64", "Float64", "Float32", "UInt8"):
            with self.subTest(kind):
                self.assertEqual(pointsman.solve(self.frame(kind)).tours.tolist(), self.tours)
                self.assertEqual(pointsman.solve([self.frame(kind)] * 2).tours.tolist(), self.tours * 2)
                frame = self.frame(kind)
                frame.loc[2, "y"] = self.pandas.NA
                with self.assertRaisesRegex(pointsman.InputError, r"points: \[2, 1\]: expected a finite number, found nan"):
                    pointsman.solve(frame)
                weights = self.pandas.Series([3, 4, 5], dtype=kind)
                self.assertEqual(pointsman.solve(weights=weights, values=[1, 2, 3], capacity=8).costs, [4])
                with self.assertRaisesRegex(pointsman.InputError, r"weights: \[1\]: expected a finite number, found nan"):
                    pointsman.solve(weights=self.pandas.Series([3, None, 5], dtype=kind), values=[1, 2, 3], capacity=8)

    def test_x_and_y_among_other_columns(self):
        frame = self.frame("Float64")
        frame.insert(0, "stop", list("abcde"))
        frame = frame[["y", "stop", "x"]]
        self.assertEqual(pointsman.solve(frame).instances.points[0].tolist(), self.points.tolist())
        self.assertEqual(pointsman.solve([frame, frame[:4]]).tours[0].tolist(), self.tours[0])

    def test_columns_that_are_no_numbers(self):
        frame = self.frame("Int64").assign(y=list("abcde"))
        with self.assertRaisesRegex(pointsman.ArgumentError, "points: expected an array of numbers, found object; convert it"):
            pointsman.solve(frame)


class Limits(unittest.TestCase):

    def test_unsolved_instances_have_their_rows(self):
        points = np.random.RandomState(1).random_sample((20000, 50, 2))
        result = pointsman.solve(points, mode="sample", samples=64, time_limit=0.3)
        unsolved = np.array([word == "unsolved" for word in result.status])
        self.assertEqual(len(result.status), len(points))
        self.assertTrue(unsolved.any())
        np.testing.assert_array_equal(np.isnan(result.costs), unsolved)
        np.testing.assert_array_equal((result.tours == -1).all(1), unsolved)
        np.testing.assert_array_equal(np.sort(result.tours[~unsolved], 1) == np.arange(50), True)

    def test_the_limit_counts_from_the_call(self):
        points = np.random.RandomState(1).random_sample((100, 2))
        for _ in range(2):
            before = time.monotonic()
            self.assertEqual(pointsman.solve(points, mode="local", time_limit=0.1).status, ["time_limit"])
            self.assertGreater(time.monotonic() - before, 0.09)


if __name__ == "__main__":
    unittest.main()
