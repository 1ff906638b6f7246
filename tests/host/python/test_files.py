# SPDX-License-Identifier: Apache-2.0
"""read, write, generate, score and train: what the program does with files, byte for byte. What pickle and copy keep."""
import copy
import json
import multiprocessing
import pickle
import re
import subprocess
import sys
import unittest

import numpy as np
import pointsman
from program import FolderTest, run


def without_clock(answer):
    return re.sub(rb'"(loading|solving)":[-+.e\d]+', rb'"\1":0', answer)


class Files(FolderTest):

    def test_generate(self):
        for problem, suffixes in (("tsp", ("npy", "npz", "json", "ndjson")), ("knapsack", ("npz", "json")), ("cvrp", ("npz", "json"))):
            instances = pointsman.generate(problem, 9, 3, seed=7)
            for suffix in suffixes:
                with self.subTest(problem=problem, suffix=suffix):
                    ours, theirs = self.folder / f"{problem}.{suffix}", self.folder / f"{problem}2.{suffix}"
                    instances.write(ours)
                    run("generate", problem, "-n", 9, "-b", 3, "-s", 7, "-o", theirs)
                    self.assertEqual(ours.read_bytes(), theirs.read_bytes())

    def test_generate_like_numpy(self):
        np.random.seed(11)
        expected = np.random.uniform(size=(3, 9, 2))
        np.testing.assert_array_equal(pointsman.generate("tsp", 9, 3, seed=11, like="numpy").points, expected)
        knapsack = pointsman.generate("knapsack", 9, 3, seed=11, like="numpy", capacity=2.5)
        np.random.seed(11)
        np.testing.assert_array_equal(knapsack.weights, np.random.uniform(size=(3, 9)))
        np.testing.assert_array_equal(knapsack.values, np.random.uniform(size=(3, 9)))
        self.assertEqual(knapsack.capacities.tolist(), [2.5] * 3)
        cvrp = pointsman.generate("cvrp", 9, 3, seed=11, like="numpy")
        np.random.seed(11)
        np.testing.assert_array_equal(cvrp.points[:, 0], np.random.uniform(size=(3, 2)))
        np.testing.assert_array_equal(cvrp.points[:, 1:], np.random.uniform(size=(3, 8, 2)))
        np.testing.assert_array_equal(cvrp.demands[:, 1:], np.random.randint(1, 10, size=(3, 8)))
        self.assertEqual(cvrp.demands[:, 0].tolist(), [0] * 3)

    def test_instances_go_round(self):
        points = np.random.RandomState(2).random_sample((2, 5, 2))
        for suffix in ("npy", "npz", "json", "ndjson"):
            path = self.folder / f"set.{suffix}"
            pointsman.write(path, points)
            np.testing.assert_array_equal(pointsman.read(path).points, points)
        mixed = self.folder / "mixed.json"
        pointsman.write(mixed, [points[0], points[1][:3]])
        self.assertEqual([one.tolist() for one in pointsman.read(mixed).points],
                         [points[0].tolist(), points[1][:3].tolist()])

    def test_a_matrix_of_a_file(self):
        matrix = np.array([[0, 2, 9], [2, 0, 4], [9, 4, 0]])
        np.save(self.folder / "m.npy", matrix)
        instances = pointsman.read(self.folder / "m.npy", input_format="matrix")
        np.testing.assert_array_equal(instances.matrices[0], matrix)
        self.assertEqual(pointsman.solve(instances).costs.tolist(), [15.0])

    def test_columns_of_a_knapsack(self):
        np.save(self.folder / "k.npy", np.array([[[1.0, 5.0], [2.0, 6.0]]]))
        instances = pointsman.read(self.folder / "k.npy", problem="knapsack", capacity=2)
        self.assertEqual((instances.weights.tolist(), instances.values.tolist()),
                         ([[1.0, 2.0]], [[5.0, 6.0]]))
        self.assertEqual(pointsman.solve(instances).items[0].tolist(), [1])

    def test_the_layout_of_a_knapsack(self):
        path = self.folder / "both.kp"
        path.write_text("2 10\n4 6\n5 7\n")
        self.assertEqual(pointsman.read(path, layout="pairs").weights.tolist(), [[6.0, 7.0]])
        self.assertEqual(pointsman.read(path, layout="lists").weights.tolist(), [[4.0, 6.0]])

    def test_what_a_table_means(self):
        path = self.folder / "cities.csv"
        path.write_text("city,lon,lat\nBern,7.45,46.95\nZurich,8.54,47.37\nGeneva,6.15,46.2\n")
        instances = pointsman.read(path, metric="haversine_km", first_city="Zurich")
        result = pointsman.solve(instances)
        self.assertAlmostEqual(result.costs[0], 448.1, 1)
        self.assertEqual(result.tours[0][0], 1)
        plane = pointsman.read(path, columns="lat,lon", metric="euclidean")
        self.assertEqual(plane.points[0].tolist(), [[46.95, 7.45], [47.37, 8.54], [46.2, 6.15]])
        with self.assertRaisesRegex(pointsman.InputError, "a city's id for the tour to begin at"):
            pointsman.read(path, metric="haversine", first_city=1)
        with self.assertRaisesRegex(pointsman.UsageError, "metric"):
            pointsman.read(path, metric="furlongs")

    def test_answers(self):
        for problem, suffixes in (("tsp", ("json", "ndjson", "npy", "npz", "tour")),
                                  ("knapsack", ("json", "npy", "npz"))):
            source = self.folder / f"{problem}.json"
            instances = pointsman.generate(problem, 12)
            instances.write(source)
            result = pointsman.solve(pointsman.read(source), mode="sample", samples=32)
            for suffix in suffixes:
                with self.subTest(problem=problem, suffix=suffix):
                    ours, theirs = self.folder / f"{problem}1.{suffix}", self.folder / f"{problem}2.{suffix}"
                    result.write(ours)
                    run("solve", source, "--mode", "sample", "-n", 32, "-o", theirs)
                    self.assertEqual(without_clock(ours.read_bytes()), without_clock(theirs.read_bytes()))

    def test_answers_go_round(self):
        for problem, suffixes in (("tsp", ("json", "ndjson", "npy", "npz", "tour")),
                                  ("knapsack", ("json", "ndjson", "npy", "npz")), ("cvrp", ("json", "ndjson", "npy", "npz"))):
            instances = pointsman.generate(problem, 12, 1 if problem == "tsp" else 3)
            result = pointsman.solve(instances)
            for suffix in suffixes:
                with self.subTest(problem=problem, suffix=suffix):
                    path, again = self.folder / f"{problem}.{suffix}", self.folder / f"{problem}2.{suffix}"
                    result.write(path)
                    copy = pointsman.read_answers(path, instances)
                    np.testing.assert_allclose(copy.costs, result.costs, rtol=1e-15)
                    self.assertEqual(copy.status, result.status)
                    self.assertTrue(np.isnan(copy.log_prob).all())
                    copy.write(again)
                    orders = [sorted(one) for one in (copy.items if problem == "knapsack" else copy.tours)]
                    expected = [sorted(one) for one in (result.items if problem == "knapsack" else result.tours)]
                    self.assertEqual(orders, expected)
                    if problem == "tsp":
                        [ours], [theirs] = copy.tours, result.tours
                        if suffix == "tour":  # begins at city 0, towards the lower of its neighbours
                            theirs = np.roll(theirs, -list(theirs).index(0))
                            theirs = np.array(min(theirs.tolist(), [0, *theirs[:0:-1].tolist()]))
                        self.assertEqual(ours.tolist(), theirs.tolist())
                        self.assertEqual(pointsman.read_answers(again, instances.points).costs, copy.costs)

    def test_answers_that_are_none(self):
        instances = pointsman.generate("tsp", 5, 2)
        np.save(self.folder / "tours.npy", np.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 3]]))
        with self.assertRaisesRegex(pointsman.InputError, "solution 1: city 3 occurs twice"):
            pointsman.read_answers(self.folder / "tours.npy", instances)
        with self.assertRaisesRegex(pointsman.InputError, "expected 1 solution"):
            pointsman.read_answers(self.folder / "tours.npy", pointsman.generate("tsp", 5))
        with self.assertRaises(pointsman.MissingFileError):
            pointsman.read_answers(self.folder / "nosuch.npy", instances)

    def test_score(self):
        for problem, model in (("tsp", "tsp50"), ("knapsack", "knap50")):
            source, answers = self.folder / f"{problem}.npz", self.folder / f"{problem}.json"
            run("generate", problem, "-n", 15, "-b", 3, "-o", source)
            run("solve", source, "-o", answers)
            expected = json.loads(
                run("score", source, "--solutions", answers, "-m", model, "--temperature", 1.5))
            orders = [
                row["tour" if problem == "tsp" else "items"]
                for row in json.loads(answers.read_text())["solutions"]
            ]
            scores = pointsman.score(pointsman.read(source), [np.array(order) for order in orders],
                                     model=model, temperature=1.5)
            np.testing.assert_array_equal(scores, [row["log_prob"] for row in expected["solutions"]])

    def test_score_of_choices(self):
        instances = pointsman.generate("knapsack", 15, 3)
        result = pointsman.solve(instances)
        choices = np.zeros((3, 15), dtype=np.uint8)
        for row, items in zip(choices, result.items):
            row[items] = 1
        expected = pointsman.score(instances, [np.sort(items) for items in result.items])
        np.testing.assert_array_equal(pointsman.score(instances, choices), expected)


try:
    import joblib
except ImportError:
    joblib = None

LINES = (
    '{"id": "a", "problem": "tsp", "edge_weight_type": "CEIL_2D", "coordinates": [[0, -0.0], [1e-300, 3], [4, 0.1], [5e99, 2]]}',
    '{"problem": "tsp", "coordinates": [[0, 0], [3, 1], [4, 2], [1, 7]], "forced": [[0, 2]], "forbidden": [[1, 3]]}',
    '{"problem": "tsp", "distance_matrix": [[0, 2, null], [2, 0, 0.1], [null, 0.1, 0]]}',
    '{"id": "p", "problem": "path", "coordinates": [[0, 0], [3, 1], [4, 2]], "start": 2, "end": 1}',
    '{"problem": "path", "distance_matrix": [[0, 2, 7], [3, 0, null], [1, 4, 0]]}',
    '{"problem": "atsp", "distance_matrix": [[0, 2, 2], [2, 0, 2], [2, 2, 0]]}',
    '{"problem": "cvrp", "capacity": 2.5, "edge_weight_type": "EUC_2D", "coordinates": [[0, 0], [3, 1], [4, 2]], "demands": [0, 2.5, 1]}',
    '{"problem": "knapsack", "capacity": 9007199254740994, "weights": [9007199254740992, 1e22, 0.1], "values": [1e21, 2, 0.3]}')


def copies(value):
    yield copy.copy(value)
    yield copy.deepcopy(value)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))


class Copies(FolderTest):

    def setUp(self):
        super().setUp()
        path = self.folder / "all.ndjson"
        path.write_text("\n".join(LINES))
        self.instances = pointsman.read(path)

    def written(self, what):
        """All that JSON and NDJSON hold, and so the 64-bit hash of each instance where these are of a Result."""
        path, texts = self.folder / "written", []
        for suffix in (".json", ".ndjson"):
            what.write(path.with_suffix(suffix), force=True)
            texts.append(path.with_suffix(suffix).read_bytes())
        return texts

    def test_instances(self):
        for again in copies(self.instances):
            self.assertEqual(self.written(again), self.written(self.instances))
            self.assertEqual((again.ids, again.metrics), (self.instances.ids, self.instances.metrics))
            self.assertEqual([len(matrix) for matrix in again.matrices if matrix is not None], [3, 3, 3])

    def test_names_that_are_not_the_files_own(self):
        path = self.folder / "map.csv"
        path.write_text("0,0\n1,2\n3,4\n")
        instances = pointsman.read(path)
        self.assertTrue(instances.ids[0])
        for again in copies(instances):
            self.assertEqual(again.ids, instances.ids)
            self.assertEqual(self.written(again), self.written(instances))

    def check_result(self, result):
        for again in copies(result):
            self.assertEqual(self.written(again), self.written(result))
            self.assertEqual(again.summary, result.summary)
            self.assertEqual((again.status, again.start), (result.status, result.start))
            for name in ("costs", "euclidean", "weights", "log_prob", "network_costs", "kicks"):
                np.testing.assert_array_equal(getattr(again, name), getattr(result, name))

    def test_results(self):
        self.check_result(pointsman.solve(self.instances))
        self.check_result(pointsman.solve(pointsman.generate("cvrp", 8, 2), mode="sample", samples=16, seed=2**64 - 1))
        self.check_result(pointsman.solve(pointsman.generate("tsp", 8, 2), samples=16))
        self.check_result(pointsman.solve(pointsman.generate("knapsack", 30, 2)))

    def test_results_without_solutions(self):
        ways = np.ones((2, 13, 13))
        ways[0, 0, 1:] = np.inf
        for result in (pointsman.solve(matrix=ways), pointsman.solve(matrix=ways, time_limit=1e-9)):
            self.assertNotEqual(result.status[0], "done")
            self.check_result(result)

    def test_a_copys_state_is_checked(self):
        function, (instances, solutions, summary) = pointsman.solve(np.eye(4)[:, :2]).__reduce__()
        status, start, order, *numbers = solutions[0]
        for what, changed in (("fewer", []), ("word", [("tired", start, order, *numbers)]), ("city", [(status, start, order + 1, *numbers)]),
                              ("length", [(status, start, np.tile(order, 2), *numbers)]), ("number", [(status, start, order, *numbers[1:])]),
                              ("type", [(status, start, order, "x", *numbers[1:])]), ("kind", [5])):
            with self.subTest(what), self.assertRaisesRegex(pointsman.InputError, "pickle: expected a Result of pointsman"):
                function(instances, changed, summary)
        with self.assertRaisesRegex(pointsman.InputError, "pickle: expected a Result of pointsman"):
            function(instances, solutions, summary[:-1])

    def test_other_processes(self):
        points = np.random.RandomState(4).uniform(size=(3, 9, 2))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results = pool.map(pointsman.solve, [pointsman.solve(points).instances, points])
            self.assertEqual(pool.map(len, results), [3, 3])
        np.testing.assert_array_equal(results[0].tours, results[1].tours)
        np.testing.assert_array_equal(results[0].costs, pointsman.solve(points).costs)

    @unittest.skipIf(joblib is None, "no joblib here")
    def test_joblib(self):
        points = np.random.RandomState(4).uniform(size=(2, 9, 2))
        results = joblib.Parallel(2)(joblib.delayed(pointsman.solve)(one) for one in points)
        np.testing.assert_array_equal([one.costs[0] for one in results], pointsman.solve(points).costs)
        joblib.dump(results, self.folder / "results.joblib")
        self.assertEqual(joblib.load(self.folder / "results.joblib")[1].costs, results[1].costs)


class Frames(FolderTest):

    def setUp(self):
        super().setUp()
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("no pandas here")

    def test_a_row_for_each_instance(self):
        points = np.random.RandomState(4).uniform(size=(9, 2))
        path = self.folder / "two.ndjson"
        path.write_text(json.dumps({"id": "a", "problem": "tsp", "coordinates": points.tolist()}) + "\n" +
                        json.dumps({"problem": "tsp", "coordinates": points[:5].tolist()}))
        result = pointsman.solve(pointsman.read(path))
        frame = result.to_dataframe()
        self.assertEqual(list(frame.columns), ["index", "id", "n", "status", "cost", "order"])
        self.assertEqual(frame["order"].tolist(), [tour.tolist() for tour in result.tours])
        self.assertEqual(frame["cost"].tolist(), result.costs.tolist())
        self.assertEqual([frame[name].tolist() for name in ("index", "id", "n", "status")],
                         [[0, 1], ["a", ""], [9, 5], ["done", "done"]])

    def test_values_routes_and_no_solution(self):
        packed = pointsman.solve(weights=[3, 4, 5], values=[1.0, 2.0, 3.0], capacity=8).to_dataframe()
        self.assertEqual((packed["value"].tolist(), packed["order"].tolist()), ([4.0], [[2, 0]]))
        routes = pointsman.solve(pointsman.generate("cvrp", 6))
        self.assertEqual(routes.to_dataframe()["order"][0], [stop for stop in routes.tours[0].tolist() if stop >= 0])
        ways = np.full((3, 3), np.inf)
        [row] = pointsman.solve(matrix=ways).to_dataframe().to_dict("records")
        self.assertEqual((row["status"], row["order"]), ("infeasible", None))
        self.assertTrue(np.isnan(row["cost"]))

    def test_without_pandas(self):
        script = ("import sys; sys.modules['pandas'] = None; import pointsman\n"
                  "try: pointsman.solve([[0, 0], [1, 0], [0, 1]]).to_dataframe()\n"
                  "except ImportError as error: print(error)")
        said = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(said.strip(), b"to_dataframe() needs pandas: pip install pandas")


class Training(FolderTest):
    OPTIONS = {"steps": 4, "batch_size": 4, "rollouts": 2, "validation_every": 2, "threads": 1, "layers": 1}

    def test_the_models_and_logs_bytes(self):
        lines = []
        ours, theirs = self.folder / "ours.safetensors", self.folder / "theirs.safetensors"
        summary = pointsman.train("tsp", 6, ours, callback=lines.append, log=self.folder / "ours.jsonl",
                                  **self.OPTIONS)
        run("train", "tsp", "-n", 6, "-o", theirs, "--steps", 4, "-b", 4, "--rollouts", 2,
            "--validation-every", 2, "-t", 1, "--layers", 1)
        self.assertEqual(ours.read_bytes(), theirs.read_bytes())
        logged = [json.loads(line) for line in (self.folder / "ours.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], [2, 4])
        self.assertEqual([line.keys() for line in lines], [line.keys() for line in logged])
        for name in ("step", "tours", "learning_rate"):  # the file rounds the others
            self.assertEqual([line[name] for line in lines], [line[name] for line in logged])
        self.assertEqual((summary["status"], summary["steps"], summary["model"]), ("done", 4, str(ours)))

    def test_what_the_callback_throws_ends_it_with_a_model(self):
        path = self.folder / "x.safetensors"

        def fail(line):
            raise ZeroDivisionError(line["step"])

        with self.assertRaisesRegex(ZeroDivisionError, "^2$"):
            pointsman.train("tsp", 6, path, callback=fail, **self.OPTIONS)
        self.assertEqual(len(pointsman.solve(pointsman.generate("tsp", 6), model=path, mode="greedy")), 1)

    def test_it_refuses_to_replace(self):
        path = self.folder / "x.safetensors"
        pointsman.train("tsp", 6, path, **self.OPTIONS)
        with self.assertRaises(pointsman.UsageError):
            pointsman.train("tsp", 6, path, **self.OPTIONS)
        pointsman.train("tsp", 6, path, force=True, **self.OPTIONS)


if __name__ == "__main__":
    unittest.main()
