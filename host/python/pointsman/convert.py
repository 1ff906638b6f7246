# SPDX-License-Identifier: Apache-2.0
"""Instances in files of others: pickled test sets, GeoJSON, and the tables of road services."""
from __future__ import annotations

import json
import os
import pickle
import re
import sys

import numpy as np

from . import _core
from ._api import Instances, _instances
from ._errors import Error, InputError, make

INPUTS = (".pkl", ".pickle", ".geojson", ".json")
OUTPUTS = (".npy", ".npz", ".json", ".ndjson", ".jsonl")
_READ = "a pickled test set of TSP or CVRP, a GeoJSON of Points, or a table of durations or distances"
_TABLES = ("durations", "distances")


class _Type:
    """What a pickle gets for numpy.dtype, whose own state can make NumPy follow addresses that the pickle gives."""

    def __init__(self, code, *_):
        if not isinstance(code, str) or not re.fullmatch("[fiu][1248]|b1", code):
            raise pickle.UnpicklingError(f"expected arrays of numbers, found an array of {code!r:.40}")
        self.code, self.byte_order = code, "="

    def __setstate__(self, state):
        if state[1] not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("expected a byte order")
        self.byte_order = state[1]

    def read(self, raw, shape, order):
        raw = raw.encode("latin1") if isinstance(raw, str) else raw  # of Python 2
        if not isinstance(raw, (bytes, bytearray)):
            raise pickle.UnpicklingError("expected the bytes of an array")
        return np.frombuffer(bytes(raw), self.byte_order + self.code).reshape(shape, order=order)


class _Array:
    """The same for numpy.ndarray."""
    values = np.empty(0)

    def __setstate__(self, state):
        _, shape, kind, is_fortran, raw = state
        self.values = kind.read(raw, shape, "F" if is_fortran else "C")

    def __array__(self, dtype=None, copy=None):
        return self.values


def _frombuffer(buffer, kind, shape, order, *_):
    array = _Array()
    array.values = kind.read(buffer, shape, order)
    return array


def _latin1(text, encoding):
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"expected latin1, found the encoding {encoding!r}")
    return text.encode("latin1")


def _known():
    """What stands for the names in a pickle of arrays, of NumPy 1 and 2 and under every protocol."""
    known = {("numpy", "ndarray"): _Array, ("numpy", "dtype"): _Type, ("_codecs", "encode"): _latin1}
    for core in ("numpy.core", "numpy._core"):
        known[f"{core}.multiarray", "_reconstruct"] = lambda *_: _Array()
        known[f"{core}.multiarray", "scalar"] = lambda kind, raw: kind.read(raw, (), "C").item()
        known[f"{core}.numeric", "_frombuffer"] = _frombuffer
    return known


class _ArraysOnly(pickle.Unpickler):
    """Builds lists, tuples, numbers and arrays; calls nothing that a pickle names."""
    path = ""
    known = _known()

    def find_class(self, module, name):
        if (module, name) not in self.known:
            raise make(3, f"{self.path}: expected a pickle of lists, tuples, numbers and NumPy arrays, "
                       f"found {module}.{name}, which is not called", self.path)
        return self.known[module, name]


def _unpickled(path):
    with open(path, "rb") as file:
        unpickler = _ArraysOnly(file, encoding="latin1")
        unpickler.path = path
        try:
            found = unpickler.load()
            return found.values if isinstance(found, _Array) else found
        except (Error, OSError):
            raise
        except Exception as error:  # what a damaged pickle raises has many types
            raise make(3, f"{path}: expected a pickle, found none that can be read: {error}", path) from None


def _numbers(value):
    """As an array of floats; None where they are none, or of several lengths."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.astype(np.float64) if array.dtype.kind in "iuf" else None


def _kind(value):
    """What a value is, for a message."""
    if isinstance(value, (np.ndarray, _Array)):
        array = np.asarray(value)
        return f"an array of {array.dtype}, {array.shape}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _layout(value):
    """The same, with what a list or tuple holds."""
    if isinstance(value, (list, tuple)) and 0 < len(value) <= 8:
        return f"{_kind(value)} ({', '.join(map(_kind, value))})"
    return _kind(value)


def _cvrp(path, i, one):
    """The instance of (depot, locs, demands, capacity)."""
    parts = [_numbers(part) for part in one] if isinstance(one, (list, tuple)) and len(one) == 4 else [None]
    if any(part is None for part in parts) or [part.shape for part in parts] != [
            (2, ), (len(parts[2]) if parts[2].ndim == 1 else -1, 2), parts[2].shape, ()]:
        raise make(3, f"{path}: instance {i}: expected (depot, locs, demands, capacity) of a CVRP, "
                   f"or (n, 2) points of a TSP, found {_layout(one)}", path)
    depot, locs, demands, capacity = (part.tolist() for part in parts)
    return {"problem": "cvrp", "capacity": capacity, "coordinates": [depot, *locs], "demands": [0, *demands]}


def _of_objects(objects, path):
    """The instances of JSON objects, which the engine's reader checks, a line each."""
    lines = "\n".join(map(json.dumps, objects))
    try:
        return Instances(_core.instances_of_lines(lines.encode(), path))
    except InputError as error:
        found = re.sub(rf"^{re.escape(path)}[:\d]*: ", "", str(error))
        raise make(3, f"{path}: instance {(error.line or 1) - 1}: {found}", path) from None


def _test_set(path):
    """The instances of a pickled test set."""
    found = _unpickled(path)
    if not isinstance(found, (list, tuple, np.ndarray)) or getattr(found, "ndim", 1) == 0 or len(found) == 0:
        raise make(3, f"{path}: expected a list of instances, found {_layout(found)}", path)
    whole = _numbers(found)
    if whole is not None and whole.ndim in (2, 3) and whole.shape[-1] == 2:
        return _instances(whole)
    points = [_numbers(one) for one in found]
    if all(one is not None and one.ndim == 2 and one.shape[1] == 2 for one in points):
        return _instances(points)
    return _of_objects([_cvrp(path, i, one) for i, one in enumerate(found)], path)


def _features(document):
    """(place, feature, geometry) of each feature or geometry; None where it is no GeoJSON of several."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "GeometryCollection":
        found = document.get("geometries")
        return [(f"geometries[{i}]", {}, one) for i, one in enumerate(found)] if isinstance(found, list) else None
    found = document.get("features") if kind == "FeatureCollection" else document
    if not isinstance(found, list) or not all(isinstance(one, dict) and one.get("type") == "Feature" for one in found):
        return None
    return [(f"features[{i}]", one, one.get("geometry")) for i, one in enumerate(found)]


def _latitude_first(path, place, geometry):
    kind = geometry.get("type") if isinstance(geometry, dict) else geometry
    if kind != "Point":
        raise make(3, f"{path}: {place}: expected a Point, found {json.dumps(kind)}", path)
    position = geometry.get("coordinates")
    numbers = _numbers(position) if isinstance(position, list) else None
    if numbers is None or numbers.shape not in ((2, ), (3, )) or not (abs(numbers[0]) <= 180 and abs(numbers[1]) <= 90):
        raise make(3, f"{path}: {place}: expected [longitude, latitude] within +-180 and +-90, "
                   f"found {json.dumps(position)[:60]}", path)
    return [position[1], position[0]]


def _names(features):
    """The ids or else the names of all; None where some have none."""
    def properties(one):
        return one.get("properties") or {}

    for names in ([one.get("id") for one in features], [properties(one).get("name") for one in features]):
        if all(isinstance(name, (str, int)) and not isinstance(name, bool) for name in names):
            return names
    return None


def _places(path, features):
    """The instance of points on the globe."""
    if not features:
        raise make(3, f"{path}: expected at least one Point, found none", path)
    coordinates = [_latitude_first(path, place, geometry) for place, _, geometry in features]
    names = _names([feature for _, feature, _ in features])
    return {"problem": "tsp", "edge_weight_type": "HAVERSINE", "coordinates": coordinates,
            **({} if names is None else {"names": names})}


def _google(path, rows, name):
    """Google's rows of elements as a matrix; null where there is no way."""
    key = name[:-1]
    try:
        return [[element.get(key, {}).get("value") for element in row["elements"]] for row in rows]
    except (KeyError, TypeError, AttributeError):
        raise make(3, f"{path}: rows: expected [{{\"elements\": [{{\"{key}\": {{\"value\": ..}}}}, ..]}}, ..]", path) from None


def _tables(path, document):
    """{"durations": matrix, "distances": matrix}, those of them that a document has."""
    if not isinstance(document, dict):
        return {}
    if isinstance(document.get("rows"), list):
        tables = {name: _google(path, document["rows"], name) for name in _TABLES}
        return {name: rows for name, rows in tables.items() if any(value is not None for row in rows for value in row)}
    return {name: document[name] for name in _TABLES if isinstance(document.get(name), list)}


def _road_table(path, tables, key):
    """The ATSP of the table that `key` names."""
    if key is not None and key not in tables:
        raise make(2, f"--key {key}: {path} has only {', '.join(tables)}")
    if key is None and len(tables) > 1 and sys.stderr is not None:
        print(f"pointsman: {path}: converting durations; --key distances converts the distances", file=sys.stderr)
    name = key or next(iter(tables))
    rows = tables[name]
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(rows):
            raise make(3, f"{path}: {name}[{i}]: expected {len(rows)} numbers, as many as there are rows, found {_kind(row)}", path)
    return _of_objects([{"problem": "atsp", "distance_matrix": rows}], path)


def _document(path):
    with open(path, "rb") as file:
        text = file.read()
    try:
        return json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise make(3, f"{path}: expected {_READ}, found no JSON: {error}", path) from None


def _is_pickle(path):
    with open(path, "rb") as file:
        return file.read(1) == b"\x80" or os.path.splitext(path)[1] in (".pkl", ".pickle")


def _found(document):
    """What a document is that is none of those read, for a message."""
    if isinstance(document, dict):
        return "an object with " + (", ".join(map(repr, list(document)[:8])) or "no keys")
    return _kind(document)


def _write_places(instance, output, force):
    if not output.endswith((".json", ".ndjson", ".jsonl")):
        raise make(2, f"{output}: expected a name that ends in .json or .ndjson, which hold a metric")
    _core.write_text(output, force, json.dumps(instance, separators=(",", ":")) + "\n")


def convert(path: str, output: str, key: str | None = None, force: bool = False) -> None:
    """Reads the instances of one of those files and writes them in the format that the suffix of `output` selects."""
    try:
        pickled = _is_pickle(path)
        document = None if pickled else _document(path)
    except FileNotFoundError as error:
        raise make(3, f"{path}: {error.strerror}", path) from None
    tables, features = _tables(path, document), _features(document)
    if key is not None and not tables:
        raise make(2, f"--key {key}: is for a table of durations or distances")
    if pickled:
        _test_set(path).write(output, force=force)
    elif tables:
        _road_table(path, tables, key).write(output, force=force)
    elif features is not None:
        _write_places(_places(path, features), output, force)
    else:
        raise make(3, f"{path}: expected {_READ}, found {_found(document)}", path)
