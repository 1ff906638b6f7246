# SPDX-License-Identifier: Apache-2.0
"""python -m pointsman convert: test sets, GeoJSON and tables of road services become instances."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import unittest

import numpy as np
import pointsman
from program import FolderTest

POINTS = np.random.RandomState(3).uniform(size=(3, 5, 2))


class ConvertTest(FolderTest):

    def convert(self, source, output, *options):
        """The output's path, and stderr."""
        output = self.folder / output
        done = subprocess.run([sys.executable, "-m", "pointsman", "convert", str(source), str(output), *options], stderr=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])})
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return output, done.stderr.decode()

    def check_refused(self, code, text, source, output="x.json", *options):
        """By the module in this process, which is faster."""
        from pointsman import convert
        with self.assertRaises(pointsman.Error) as caught:
            convert.convert(str(source), str(self.folder / output), *options)
        self.assertEqual(caught.exception.exit_code, code, caught.exception)
        self.assertIn(text, str(caught.exception))
        self.assertFalse((self.folder / output).exists())

    def pickled(self, value, protocol=pickle.HIGHEST_PROTOCOL, name="set.pkl"):
        path = self.folder / name
        path.write_bytes(pickle.dumps(value, protocol))
        return path

    def document(self, value, name="in.json"):
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path


class TestSets(ConvertTest):

    def read(self, value, protocol=pickle.HIGHEST_PROTOCOL, output="out.npz"):
        from pointsman import convert
        path = self.folder / output
        convert.convert(str(self.pickled(value, protocol)), str(path), force=True)
        return pointsman.read(path)

    def test_tsp(self):
        spellings = (POINTS, POINTS.tolist(), list(POINTS), [tuple(map(tuple, one)) for one in POINTS], [list(one) for one in POINTS],
                     POINTS.astype(">f8"), np.asfortranarray(POINTS))
        for i, value in enumerate(spellings):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.subTest(i, protocol=protocol):
                    np.testing.assert_array_equal(self.read(value, protocol, "out.npy").points, POINTS)
        np.testing.assert_array_equal(self.read([[tuple(point) for point in one] for one in POINTS.astype("f4")]).points,
                                      POINTS.astype("f4"))
        np.testing.assert_array_equal(self.read(POINTS[0]).points, POINTS[:1])

    def test_sizes_that_differ(self):
        again = self.read([POINTS[0].tolist(), POINTS[1, :3].tolist()], output="out.ndjson")
        self.assertEqual([one.tolist() for one in again.points], [POINTS[0].tolist(), POINTS[1, :3].tolist()])
        self.check_refused(2, "one problem and one size", self.pickled([POINTS[0], POINTS[1, :3]]), "x.npy")

    def test_names_of_either_numpy(self):
        text = pickle.dumps(POINTS, 2)
        names = (b"numpy.core.multiarray", b"numpy._core.multiarray")
        for there in names:
            path = self.folder / "set.pkl"
            path.write_bytes(text.replace(names[1], there).replace(names[0], there))
            output, _ = self.convert(path, "out.npy", "--force")
            np.testing.assert_array_equal(np.load(output), POINTS)

    def test_cvrp(self):
        depots, locs, demands, capacities = POINTS[:, 0], POINTS[:, 1:], np.arange(1, 13).reshape(3, 4), np.array([20.0, 30, 40])
        rows = list(zip(depots.tolist(), locs.tolist(), demands.tolist(), capacities.tolist()))
        for value in (rows, [list(row) for row in rows], list(zip(depots, locs, demands.astype("f4"), capacities))):
            self.read(value)
            arrays = np.load(self.folder / "out.npz")
            for name, expected in (("depot", depots), ("locs", locs), ("demand", demands), ("capacity", capacities)):
                np.testing.assert_array_equal(arrays[name], expected)
        again = self.read(rows, output="out.ndjson")
        self.assertEqual((again.problem, again.capacities.tolist()), ("cvrp", capacities.tolist()))
        np.testing.assert_array_equal(again.demands, np.pad(demands, ((0, 0), (1, 0))))

    def test_other_layouts_are_refused(self):
        depot, locs, demands = [0.5, 0.5], POINTS[0].tolist(), [1.0] * 5
        cases = (([(depot, locs, demands, demands, demands)], "instance 0: expected (depot, locs, demands, capacity) of a CVRP, or (n, 2) points of "
                  "a TSP, found a tuple of 5 (a list of 2, a list of 5, a list of 5, a list of 5, a list of 5)"),
                 ([(depot, locs, demands, 9.0), (depot, locs, demands[:4], 9.0)], "instance 1: expected (depot"),
                 ([(depot, locs, demands, [9.0])], "found a tuple of 4 (a list of 2, a list of 5, a list of 5, a list of 1)"),
                 ([([depot], locs, demands, 9.0)], "found a tuple of 4 (a list of 1"), ([np.zeros((4, 3))], "found an array of float64, (4, 3)"),
                 ([POINTS[0] > 0.5], "found an array of bool, (5, 2)"), ([["a", "b"]], "found a list of 2 (a str, a str)"),
                 ({"x": 1}, "expected a list of instances, found a dict"), ([], "expected a list of instances, found a list of 0"), (5, "found a int"),
                 (np.array(5.0), "expected a list of instances, found an array of float64, ()"))
        for value, text in cases:
            with self.subTest(text):
                self.check_refused(3, text, self.pickled(value))
        self.check_refused(3, "instance 1: demands[2]: expected at most the capacity, found 10",
                           self.pickled([(depot, locs, demands, 9.0), (depot, locs, [1, 10, 1, 1, 1], 9.0)]))
        self.check_refused(3, "[1, 0]: expected a finite number, found nan", self.pickled([[0, 0], [np.nan, 1], [2, 2]]))

    def test_nothing_in_a_pickle_is_run(self):
        marker = self.folder / "ran"

        class Attack:

            def __init__(self, function, *arguments):
                self.reduced = function, arguments

            def __reduce__(self):
                return self.reduced

        calls = ((os.system, f"touch {marker}"), (eval, f"open({str(marker)!r}, 'w')"), (pathlib.Path.touch, marker), (getattr, marker, "touch"),
                 (subprocess.run, ["touch", str(marker)]), (np.load, "x.npy"), (np.frompyfunc, print, 1, 1))
        for function, *arguments in calls:
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.subTest(function, protocol=protocol):
                    self.check_refused(3, ", which is not called", self.pickled([Attack(function, *arguments)], protocol))
                    self.assertFalse(marker.exists())
        self.check_refused(3, "expected a pickle of lists, tuples, numbers and NumPy arrays, found posix.system", self.pickled(Attack(os.system, "true")))
        for text in (b"cos\nsystem\n(S'true'\ntR.", b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.", b"cnumpy\nsave\n."):
            path = self.folder / "set.pkl"
            path.write_bytes(text)
            self.check_refused(3, "which is not called", path)

    def test_arrays_of_other_types_are_not_built(self):
        for array, code in ((POINTS.astype(complex), "c16"), (np.array([1, [2]], dtype=object), "O8"), (np.zeros(2, "f8,O"), "V16"),
                            (np.array(["a"]), "U1"), (np.array(["2020"], "M8[D]"), "M8")):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.subTest(code, protocol=protocol):
                    self.check_refused(3, f"expected arrays of numbers, found an array of '{code}'", self.pickled(array, protocol))
        text = pickle.dumps(POINTS, 4)
        for old, new in ((b"\x8c\x01<", b"\x8c\x01O"), (b"\x8c\x02f8", b"\x8c\x02O8")):
            self.assertEqual(text.count(old), 1)
            path = self.folder / "set.pkl"
            path.write_bytes(text.replace(old, new))
            self.check_refused(3, "found none that can be read: expected a", path)

    def test_bytes_of_an_array(self):

        class Fake:
            """An array with such bytes."""

            def __init__(self, raw):
                self.raw = raw

            def __reduce__(self):
                function, arguments, (version, shape, kind, is_fortran, _) = POINTS.__reduce__()
                return function, arguments, (version, shape, kind, is_fortran, self.raw)

        np.testing.assert_array_equal(self.read(Fake(POINTS.tobytes().decode("latin1"))).points, POINTS)  # as Python 2 has them
        for raw, text in ((10**15, "expected the bytes of an array"), ([POINTS], "expected the bytes of an array"), (b"123", "")):
            self.check_refused(3, "found none that can be read: " + text, self.pickled(Fake(raw)))

    def test_damaged_pickles(self):
        whole = self.pickled(POINTS).read_bytes()
        path = self.folder / "set.pkl"
        for text in (b"", b"junk", whole[:-20], whole[:40], b"\x80\x04.", b"\x80\x05K\x01P", b"c_codecs\nencode\n(Vx\nVzlib\ntR.", b"\x80\x04K\x01Q."):
            with self.subTest(text[:20]):
                path.write_bytes(text)
                self.check_refused(3, "set.pkl: expected a pickle, found none that can be read: ", path)

    def test_a_pickle_of_any_name(self):
        output, _ = self.convert(self.pickled(POINTS.tolist(), name="set.bin"), "out.npy")
        np.testing.assert_array_equal(np.load(output), POINTS)


def point(position, identifier=None, name=None):
    feature = {"type": "Feature", "properties": None if name is None else {"name": name}, "geometry": {"type": "Point", "coordinates": position}}
    return feature if identifier is None else {**feature, "id": identifier}


class GeoJson(ConvertTest):

    def written(self, document):
        output, said = self.convert(self.document(document, "in.geojson"), "out.json", "--force")
        self.assertEqual(said, "")
        text = output.read_text()
        self.assertEqual((text[-1], text.count("\n")), ("\n", 1))
        return json.loads(text)

    def test_points(self):
        expected = {"problem": "tsp", "edge_weight_type": "HAVERSINE", "coordinates": [[46.9, 7.4], [47.1, -7.2], [-46.8, 179.5]]}
        positions = ([7.4, 46.9], [-7.2, 47.1], [179.5, -46.8, 403.0])
        features = [point(position) for position in positions]
        for document in ({"type": "FeatureCollection", "features": features}, features,
                         {"type": "GeometryCollection", "geometries": [one["geometry"] for one in features]}):
            self.assertEqual(self.written(document), expected)
        self.assertEqual(self.written("\ufeff" + json.dumps(features)), expected)

    def test_names(self):
        a, b = [7, 46], [8, 47]
        for features, names in (([point(a, "one"), point(b, "two")], ["one", "two"]), ([point(a, 1), point(b, 2)], [1, 2]),
                                ([point(a, name="one"), point(b, name="two")], ["one", "two"]),
                                ([point(a, 1, "one"), point(b, None, "two")], ["one", "two"]), ([point(a, 1, "one"), point(b, 2, "two")], [1, 2]),
                                ([point(a, name="one"), point(b)], None), ([point(a, True), point(b, 2)], None), ([point(a, 1), point(b, 1.5)], None)):
            with self.subTest(names):
                self.assertEqual(self.written({"type": "FeatureCollection", "features": features}).get("names"), names)

    def test_what_is_refused(self):
        line = {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}
        wanted = "features[1]: expected [longitude, latitude] within +-180 and +-90, found "
        for features, text in (([point([0, 0]), line], 'features[1]: expected a Point, found "LineString"'), ([], "expected at least one Point, found none"),
                               ([{**line, "geometry": None}], "features[0]: expected a Point, found null"), ([point([0, 0]), point([47, 97])], wanted + "[47, 97]"),
                               ([point([0, 0]), point([-181, 7])], wanted), ([point([0, 0]), point([1])], wanted), ([point([0, 0]), point(["1", "2"])], wanted),
                               ([point([0, 0]), point(None)], wanted + "null"), ([point([0, 0]), point([float("nan"), 1])], wanted + "[NaN, 1]")):
            with self.subTest(text):
                self.check_refused(3, text, self.document({"type": "FeatureCollection", "features": features}))
        for geometry in ({"type": "MultiPoint", "coordinates": [[1, 2]]}, 5):
            self.check_refused(3, "geometries[0]: expected a Point, found", self.document({"type": "GeometryCollection", "geometries": [geometry]}))
        self.check_refused(2, "x.npy: expected a name that ends in .json or .ndjson", self.document([point([0, 0])]), "x.npy")


class RoadTables(ConvertTest):
    DURATIONS = [[0, 10, 15.5], [12, 0, None], [15, 35, 0]]
    DISTANCES = [[0, 100, 150], [120, 0, 90], [150, 350, 0]]

    def matrix(self, document, *options):
        """And stderr."""
        output, said = self.convert(self.document(document), "out.json", "--force", *options)
        found = json.loads(output.read_text())
        self.assertEqual(found["problem"], "atsp")
        self.assertEqual(set(found), {"problem", "distance_matrix"})
        return found["distance_matrix"], said

    def test_one_table(self):
        self.assertEqual(self.matrix({"code": "Ok", "durations": self.DURATIONS}), (self.DURATIONS, ""))
        self.assertEqual(self.matrix({"distances": self.DISTANCES, "metadata": {}}), (self.DISTANCES, ""))
        self.assertEqual(self.matrix({"durations": self.DISTANCES, "distances": None}), (self.DISTANCES, ""))
        # A symmetric one is an ATSP too, and solve reads what is written.
        symmetric = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
        self.assertEqual(self.matrix({"durations": symmetric})[0], symmetric)
        self.assertEqual(pointsman.solve(pointsman.read(self.folder / "out.json")).costs, [6])

    def test_both_tables(self):
        both = {"code": "Ok", "durations": self.DURATIONS, "distances": self.DISTANCES}
        matrix, said = self.matrix(both)
        self.assertEqual(matrix, self.DURATIONS)
        self.assertRegex(said, r"^pointsman: .*in.json: converting durations; --key distances converts the distances\n$")
        self.assertEqual(self.matrix(both, "--key", "durations"), (self.DURATIONS, ""))
        self.assertEqual(self.matrix(both, "--key", "distances"), (self.DISTANCES, ""))

    def test_googles_rows(self):

        def element(duration, distance):
            if duration is None:
                return {"status": "ZERO_RESULTS"}
            return {"status": "OK", "duration": {"value": duration, "text": "-"}, "distance": {"value": distance, "text": "-"}}

        rows = [{"elements": [element(*pair) for pair in zip(*both)]} for both in zip(self.DURATIONS, self.DISTANCES)]
        self.assertEqual(self.matrix({"status": "OK", "rows": rows})[0], self.DURATIONS)
        self.assertEqual(self.matrix({"status": "OK", "rows": rows}, "--key", "distances")[0], [[0, 100, 150], [120, 0, None], [150, 350, 0]])
        self.check_refused(3, 'rows: expected [{"elements": ', self.document({"rows": [{"elements": [{"duration": 5}]}]}))

    def test_as_an_array(self):
        output, _ = self.convert(self.document({"distances": self.DISTANCES}), "out.npy")
        self.assertEqual(np.load(output).tolist(), [self.DISTANCES] if np.load(output).ndim == 3 else self.DISTANCES)

    def test_what_is_refused(self):
        cases = (({"durations": [[0, 1], [1]]}, "durations[1]: expected 2 numbers, as many as there are rows, found a list of 1"),
                 ({"durations": [[0, 1, 2], [1, 0, 2]]}, "durations[0]: expected 2 numbers"), ({"durations": [5]}, "durations[0]: expected 1 numbers"),
                 ({"durations": [[0, -1], [1, 0]]}, "in.json: instance 0: distance_matrix[0][1]: expected a number"),
                 ({"durations": [[0, "a"], [1, 0]]}, "in.json: instance 0: distance_matrix[0][1]: expected a number"),
                 ({"code": "NoTable", "message": "-"}, "expected a pickled test set of TSP or CVRP, a GeoJSON of Points, or a table of durations "
                  "or distances, found an object with 'code', 'message'"), ({"type": "Point", "coordinates": [1, 2]}, "found an object with 'type', 'coordinates'"),
                 ({}, "found an object with no keys"), ([[0, 0]], "found a list of 1"), ("NAME : x\nEOF\n", "found no JSON: "), ("[" * 100000, "found no JSON: "))
        for document, text in cases:
            with self.subTest(text):
                self.check_refused(3, text, self.document(document))
        self.check_refused(2, "--key distances: ", self.document({"durations": self.DURATIONS}), "x.json", "distances")
        self.check_refused(2, "--key durations: is for a table", self.document([point([0, 0])]), "x.json", "durations")


class Command(ConvertTest):

    def check_fails(self, code, text, *arguments):
        done = subprocess.run([sys.executable, "-m", "pointsman", "convert", *map(str, arguments)], stderr=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])})
        lines = done.stderr.decode().splitlines()
        self.assertEqual((done.returncode, len(lines)), (code, 1), lines)
        self.assertTrue(lines[0].startswith("pointsman: error: "), lines)
        self.assertIn(text, lines[0])

    def test_files_and_flags(self):
        source, there = self.pickled(POINTS), self.folder / "there.npy"
        there.write_bytes(b"old")
        self.check_fails(2, "there.npy: is there already; --force replaces it", source, there)
        self.assertEqual(there.read_bytes(), b"old")
        self.convert(source, "there.npy", "-f")
        np.testing.assert_array_equal(np.load(there), POINTS)
        self.check_fails(3, "nosuch.pkl: No such file", self.folder / "nosuch.pkl", self.folder / "x.npy")
        self.check_fails(4, "", source, "/nosuch/x.npy")
        self.check_fails(2, "x.xyz: expected a suffix out of", source, self.folder / "x.xyz")
        self.check_fails(2, "--like: is not for", source, self.folder / "x.npy", "--like", "tsp20")
        self.check_fails(2, "--key: is not for", "tsp20", self.folder / "x.pt", "--key", "durations")


if __name__ == "__main__":
    unittest.main()
