# SPDX-License-Identifier: Apache-2.0
"""What a user calls: arrays become instances, keyword arguments become options, answers become arrays."""
from __future__ import annotations

import functools
import json
import operator
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from . import _core
from ._errors import argument_error, bool_of, make, path_of

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from ._options import DeviceOptions, SampleOptions, SolveOptions, TrainOptions

    Path = str | os.PathLike[str]
    Arrays = ArrayLike | Sequence[ArrayLike]  # of one instance or of several
    Floats = NDArray[np.float64]

    class Given(TypedDict, total=False):
        matrix: Arrays | None
        weights: Arrays | None
        values: Arrays | None
        capacity: ArrayLike | None
        problem: str | None
        start: int | None
        end: int | None
        metric: str | None

    class GivenToAny(Given, DeviceOptions, total=False):
        """With what a Solver is made of."""
        model: Path | None

    class Start(TypedDict, total=False):
        first_row: int
        init: Literal["random"] | Result | Arrays | None

    class SolveArguments(SolveOptions, GivenToAny, Start, total=False):
        pass

    class SampleArguments(SampleOptions, GivenToAny, Start, total=False):
        pass

    class SolversSampleArguments(SampleOptions, Given, Start, total=False):
        pass

    class ScoreArguments(GivenToAny, total=False):
        temperature: float


def _names(call):
    """The keywords of a call, by the table of options that the program has."""
    return frozenset(name for name, _ in _core.keywords(call))


_DEVICE, _READ, _GENERATE = _names("device"), _names("read"), _names("generate")
_SOLVE = _names("solve") - {"model", "init"}  # the Solver's own; a parameter, which may be solutions
_TRAIN = _names("train")
_KIND = frozenset(("problem", "start", "end", "metric"))  # of arrays, which do not say what they are
_PLAIN = frozenset((float, int))  # in a list of nothing else no entry is masked


def _keywords(caller, known, options):
    """The options that are given, as bool, int, float or text; None is an option that is not."""
    keywords = {}
    for name, value in options.items():
        if name not in known:
            meant = _core.did_you_mean(name, sorted(known))
            raise argument_error(f"{caller}() got an unexpected keyword argument '{name}'{meant}")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None:
            continue
        if not isinstance(value, (bool, int, float)):
            value = path_of(value, name)
            if not value:
                raise make(2, f"{name}: expected a value, found {value!r}")
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            value = str(value)  # for the message that refuses it
        keywords[name] = value
    return keywords


def _has_mask(value):
    """Whether an array, or one in lists of arrays, has entries that are masked."""
    if isinstance(value, (list, tuple)):
        return not _PLAIN.issuperset(map(type, value)) and any(map(_has_mask, value))
    return isinstance(value, sys.modules["numpy.ma"].MaskedArray) and bool(np.ma.is_masked(value))


def _array(value, name):
    if "numpy.ma" in sys.modules and _has_mask(value):  # np.asarray() would take what lies under the mask
        raise make(2, f"{name}: expected numbers, found a masked array with masked entries; "
                   "leave them out, or fill them (numpy.ma.filled)")
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise make(3, f"{name}: {error}") from None
    except (TypeError, RuntimeError) as error:  # a tensor that NumPy has no type for, or that it cannot reach
        found = f"{type(value).__name__} of {getattr(value, 'dtype', 'unknown type')}"
        raise argument_error(f"{name}: expected an array that NumPy can read, found a {found} ({error}); "
                             "of a PyTorch tensor pass .detach().cpu().float()") from None
    return _without_nullable(value, array) if array.dtype == object else array


def _without_nullable(value, array):
    """The columns of pandas that NumPy makes objects of, such as Int64, as floats: NaN where an entry is missing."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (pandas.DataFrame, pandas.Series)):
        return array
    types = value.dtypes if value.ndim == 2 else [value.dtype]
    if not all(map(pandas.api.types.is_numeric_dtype, types)):
        return array
    return value.to_numpy(dtype=np.float64, na_value=np.nan)


def _numbers(value, name):
    """An array that the engine can read where it lies, copied only where it cannot."""
    array = _array(value, name)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size not in (4, 8):
        array = array.astype(np.float64)
    elif kind not in "biuf":
        raise argument_error(f"{name}: expected an array of numbers, found {array.dtype}; convert it, such as by .astype(float)")
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array)


def _arrays(value, name, axes):
    """The arrays of one instance or of several: a list of arrays that have `axes` axes each is several."""
    if isinstance(value, (list, tuple)) and len(value) > 0 and _array(value[0], name).ndim == axes:
        return [_numbers(one, f"{name}[{i}]") for i, one in enumerate(value)]
    return [_numbers(value, name)]


def _coordinates(value):
    """x and y of a data frame that has columns of these names, or of a list of such frames."""
    if isinstance(value, (list, tuple)) and len(value) > 0 and hasattr(value[0], "columns"):
        return [_coordinates(one) for one in value]
    columns = getattr(value, "columns", None)
    return value[["x", "y"]] if hasattr(columns, "__iter__") and {"x", "y"}.issubset(columns) else value


def _given_solutions(init):
    """The arrays of solutions to start from; none where there are none."""
    if init is None or (isinstance(init, str) and init == "random"):
        return []
    if isinstance(init, (str, bytes, os.PathLike)):
        raise make(2, f"init: expected \"random\", an array of solutions or a Result, found {init!r}; read_answers() reads files")
    if not isinstance(init, Result):
        return _arrays(init, "init", 1)
    for i, word in enumerate(init.status):
        if word in ("unsolved", "infeasible"):
            raise make(3, f"init: expected a solution to each instance, found none to instance {i} ({word})")
    return _arrays(init._orders, "init", 1)


def _instances(points, matrix=None, weights=None, values=None, capacity=None, **kind):
    items = (weights, values, capacity)
    keywords = _keywords("solve", _KIND, kind)
    given = [points is not None, matrix is not None, any(item is not None for item in items)]
    if sum(given) != 1:
        raise argument_error("expected one of points, matrix=, or weights=, values= and capacity=")
    if keywords and (isinstance(points, Instances) or any(item is not None for item in items)):
        raise argument_error("problem, start, end and metric: go with an array of points, or matrix=")
    if isinstance(points, Instances):
        return points
    if given[0]:
        arrays = _arrays(_coordinates(points), "points", 2)
        for shape in (array.shape for array in arrays):
            if len(shape) > 1 and shape[-1] == shape[-2] != 2 and kind.get("problem") != "tsptw":
                raise make(3, f"points: expected (n, 2) or (B, n, 2), found {shape}; "
                           "distances are asked for by name, matrix=")
        return Instances(_core.from_points(arrays, keywords))
    if given[1]:
        return Instances(_core.from_matrices(_arrays(matrix, "matrix", 2), keywords))
    if any(item is None for item in items):
        raise argument_error("expected weights=, values= and capacity= together")
    return Instances(
        _core.from_items(_arrays(weights, "weights", 1), _arrays(values, "values", 1),
                         _numbers(capacity, "capacity")))


def _of_core(name, doc) -> Any:
    """An attribute that the compiled object has under this name."""
    return property(operator.attrgetter("_core." + name), doc=doc)


def _once(name, doc) -> Any:
    """The same, asked for once."""
    attribute = functools.cached_property(operator.attrgetter("_core." + name))
    attribute.__doc__ = doc
    return attribute


_NUMBERS = {"tsp": "a TSP has points", "knapsack": "a KnapSack has weights and values", "cvrp": "a CVRP has points and demands",
            "atsp": "an ATSP has matrices", "path": "a path has points", "tsptw": "a TSPTW has points, windows and visits",
            "colouring": "a colouring has matrices"}


class Instances:
    """Instances of one problem or several, as `read` and `generate` give them. They never change."""
    __slots__ = ("_core", )
    problem: str = _of_core("problem", '"tsp", "knapsack", "cvrp", "atsp", "path", "tsptw" or "colouring", of the first.')
    sizes: list[int] = _of_core("sizes", "Cities or items of each.")
    ids: list[str] = _of_core("ids", "The file's own names; empty where there are none.")
    metrics: list[str] = _of_core("metrics", "As TSPLIB names them; EUCLIDEAN is not rounded.")
    matrices: list[Floats | None] = _of_core("matrices", "(n, n) distances of each, or of a graph 1 where two nodes are joined; None where it has points.")

    def __init__(self, core):
        self._core = core

    def __reduce__(self):
        return _restored_instances, self._core.state()

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self):
        sizes = self.sizes
        shown = str(sizes[0]) if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)}"
        return f"<pointsman.Instances: {len(self)} {self.problem}, n = {shown}>"

    def _items(self, problems, place):
        """Of all instances, where they have a problem of those that have it."""
        if self.problem not in problems:
            raise AttributeError(_NUMBERS.get(self.problem, f"not for {self.problem}"))
        items = self._core.items()
        return [one[:, place] for one in items] if isinstance(items, list) else items[:, :, place]

    @property
    def points(self) -> Floats | list[Floats]:
        """(B, n, 2) x and y of a TSP, path, CVRP or TSPTW; a list of (n, 2) where sizes differ."""
        return self._items(("tsp", "path", "cvrp", "tsptw"), slice(0, 2))

    @property
    def windows(self) -> Floats | list[Floats]:
        """(B, n, 2) when the places of a TSPTW open and close; a list of (n, 2) where sizes differ."""
        return self._items(("tsptw",), slice(2, 4))

    @property
    def visits(self) -> Floats | list[Floats]:
        """(B, n) how long a visit of a TSPTW takes; a list where sizes differ."""
        return self._items(("tsptw",), 4)

    @property
    def demands(self) -> Floats | list[Floats]:
        """(B, n) of CVRP, the depot's 0 first; a list where sizes differ."""
        return self._items(("cvrp",), 2)

    @property
    def weights(self) -> Floats | list[Floats]:
        """(B, n) of KnapSack; a list where sizes differ."""
        return self._items(("knapsack",), 0)

    @property
    def values(self) -> Floats | list[Floats]:
        """(B, n) of KnapSack; a list where sizes differ."""
        return self._items(("knapsack",), 1)

    @property
    def capacities(self) -> Floats:
        """(B,) of KnapSack and CVRP."""
        return np.array(self._core.capacities)

    def write(self, path: Path, *, force: bool = False) -> None:
        """Writes them in the format that the suffix tells."""
        self._core.write(path_of(path, "path"), bool_of(force, "force"))


def _restored_instances(*state):
    return Instances(_core.instances_of_state(*state))


class Result:
    """The answers to B instances, in their order. What is asked for becomes an array once."""
    costs: Floats = _once("costs", "(B,) lengths under the instance's own metric, or packed values; NaN where there is no answer.")
    euclidean: Floats = _once("euclidean", "(B,) lengths that no metric rounds.")
    weights: Floats = _once("weights", "(B,) packed weights.")
    bounds: Floats = _once("bounds", "(B,) KnapSack: no packing's value is above it; NaN where the answer is proved optimal or none is known.")
    status: list[str] = _once("status", "B words: done, time_limit, interrupted, unsolved or infeasible.")
    log_prob: Floats = _once("log_prob", "(B,) of the network for the order that it drew; NaN where none did.")
    network_costs: Floats = _once("network_costs", "(B,) what the network reached before any improvement; NaN where none did.")
    start: list[str] = _once("start", "B words: what auto, local, 2opt and exact began with.")
    kicks: NDArray[np.int64] = _once("kicks", "(B,) kicks of the local search.")
    summary: dict[str, Any] = _once("summary", "What was really done: mode, samples, model, device, ..")

    def __init__(self, core):
        self._core = core

    def __reduce__(self):
        return _restored_result, (self.instances, *self._core.state())

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self):
        status = self.status
        counts = ", ".join(f"{status.count(word)} {word}" for word in dict.fromkeys(status))
        return f"<pointsman.Result: {len(self)} answers, {counts}>"

    @functools.cached_property
    def instances(self) -> Instances:
        return Instances(self._core.instances)

    @functools.cached_property
    def tours(self) -> NDArray[np.int32] | list[NDArray[np.int32]]:
        """(B, n) int32, -1 throughout where there is no answer; where sizes differ a list, empty there.

        Of CVRP (B, 2n): the customers in order, 0 between two routes, -1 after the last."""
        if not self.instances._core.has_all_items:
            raise AttributeError("a KnapSack has items")
        if self.instances.problem == "colouring":
            raise AttributeError("a colouring has colours")
        return self._core.tours()

    @functools.cached_property
    def colours(self) -> NDArray[np.int32] | list[NDArray[np.int32]]:
        """(B, n) int32 of a colouring: each node's colour, numbered from 0 as they first occur; a list where sizes differ."""
        if self.instances.problem != "colouring":
            raise AttributeError("only a colouring has colours")
        return self._core.tours()

    @functools.cached_property
    def items(self) -> list[NDArray[np.int32]]:
        """Of KnapSack the items taken, an int32 array an instance."""
        if self.instances._core.has_all_items:
            raise AttributeError("a TSP has tours")
        return self._core.items()

    @property
    def _orders(self):
        return self._core.tours() if self.instances._core.has_all_items else self.items

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each instance: index, id, n, status, cost (of KnapSack value) and order.

        `order` is the tour, the routes with 0 between two, the items, or the colours, as a list; None where there is no solution."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe() needs pandas: pip install pandas", name="pandas") from error
        solved = [word not in ("unsolved", "infeasible") for word in self.status]
        orders = [order.tolist() if known else None for order, known in zip(self._core.items(), solved)]
        objective = "value" if self.instances.problem == "knapsack" else "cost"
        return pandas.DataFrame({"index": range(len(self)), "id": self.instances.ids, "n": self.instances.sizes,
                                 "status": self.status, objective: self.costs, "order": orders})

    def write(self, path: Path, *, force: bool = False) -> None:
        """Writes them in the format that the suffix tells, as the program does."""
        self._core.write(path_of(path, "path"), bool_of(force, "force"))


def _restored_result(instances, *state):
    return Result(_core.answers_of_state(instances._core, *state))


class Solver:
    """A device, its threads and the models that were read, for many calls.

    Calls of several threads take turns."""

    def __init__(self, model: Path | None = None, device: str = "auto", threads: int = 0, precision: str = "fp32") -> None:
        keywords = _keywords("Solver", _DEVICE, {"device": device, "threads": threads, "precision": precision})
        self._core = _core.Solver("" if model is None else path_of(model, "model"), keywords)

    @property
    def device(self) -> str:
        return self._core.device

    def solve(self, points: Arrays | Instances | None = None, *, matrix: Arrays | None = None, weights: Arrays | None = None,
              values: Arrays | None = None, capacity: ArrayLike | None = None, problem: str | None = None, start: int | None = None,
              end: int | None = None, metric: str | None = None, first_row: int = 0,
              init: Literal["random"] | Result | Arrays | None = None, **options: Unpack[SolveOptions]) -> Result:
        """Answers to the instances; Ctrl-C and `time_limit` keep the best so far. As `pointsman solve`.

        An instance without any answer yet is unsolved. first_row: where these are a part of a larger batch, the place
        of the first; the answers are then those of the whole batch. problem: what arrays are, "tsp", "path",
        "atsp", "colouring", whose graphs are matrix=, not 0 where nodes are joined, or "tsptw", whose points are (B, n, 5),
        x, y, opens, closes, visit; start, end: a path's first and last city;
        metric: how points are measured, as --metric. init: "random", active search from fresh parameters; or a
        solution to each instance, than which none of the answers is worse: as score() takes them, or a Result."""
        instances = _instances(points, matrix, weights, values, capacity, problem=problem, start=start, end=end,
                               metric=metric)
        given = _given_solutions(init)
        if isinstance(first_row, bool) or not isinstance(first_row, (int, np.integer)) or not 0 <= first_row < 1 << 63:
            raise make(2, f"first_row: expected a whole number from 0, found {first_row!r}")
        keywords = _keywords("solve", _SOLVE, options)
        if init is not None and not given:
            keywords["init"] = init
        return Result(self._core.solve(instances._core, keywords, int(first_row), given))

    def sample(self, points: Arrays | Instances | None = None, samples: int | None = None,
               **options: Unpack[SolversSampleArguments]) -> Result:
        """solve() with mode="sample": the best of so many samples of the network."""
        return self.solve(points, samples=samples, mode="sample", **options)

    def score(self, points: Arrays | Instances | None = None, solutions: Arrays | None = None, *, matrix: Arrays | None = None,
              weights: Arrays | None = None, values: Arrays | None = None, capacity: ArrayLike | None = None,
              problem: str | None = None, start: int | None = None, end: int | None = None, temperature: float = 1.0) -> Floats:
        """(B,) log p of the solutions under the model, NaN where it reaches none. As `pointsman score`."""
        instances = _instances(points, matrix, weights, values, capacity, problem=problem, start=start, end=end)
        if solutions is None:
            raise argument_error("expected solutions")
        if isinstance(temperature, (bool, np.bool_)) or not isinstance(temperature, (int, float, np.number)):
            raise make(2, f"temperature: expected a number, found {temperature!r}")
        return self._core.score(instances._core, _arrays(solutions, "solutions", 1), float(temperature))


_local = threading.local()  # solvers of each thread, so that threads run side by side
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_local.__dict__.clear)


def _solver(model=None, device="auto", threads=0, precision="fp32"):
    solvers = _local.__dict__.setdefault("solvers", {})
    name = None if model is None else path_of(model, "model")
    key = (name, device, repr(threads), precision)  # threads=True is not 1
    if key not in solvers:
        solvers[key] = Solver(model, device=device, threads=threads, precision=precision)
    return solvers[key]


def _for_solver(options):
    return _solver(**{name: options.pop(name) for name in ("model", *_DEVICE) if name in options})


def solve(points: Arrays | Instances | None = None, **options: Unpack[SolveArguments]) -> Result:
    """Solver(model, device=.., threads=..).solve(..) with a solver that the thread keeps."""
    return _for_solver(options).solve(points, **options)


def sample(points: Arrays | Instances | None = None, samples: int | None = None, **options: Unpack[SampleArguments]) -> Result:
    """solve() with mode="sample"."""
    return _for_solver(options).sample(points, samples, **options)


def score(points: Arrays | Instances | None = None, solutions: Arrays | None = None, **options: Unpack[ScoreArguments]) -> Floats:
    """Solver(model, ..).score(..) with a solver that the thread keeps."""
    return _for_solver(options).score(points, solutions, **options)


def read(path: Path, *, input_format: str = "auto", problem: str | None = None, capacity: float | None = None,
         start: int | None = None, end: int | None = None, layout: str | None = None, metric: str | None = None,
         columns: str | None = None, first_city: str | int | None = None) -> Instances:
    """The instances of a file, in any format that the program reads, with the flags of these names."""
    if first_city is not None:
        first_city = str(first_city)
    options = {"input_format": input_format, "problem": problem, "capacity": capacity, "start": start, "end": end,
               "layout": layout, "metric": metric, "columns": columns, "first_city": first_city}
    return Instances(_core.read(path_of(path, "path"), _keywords("read", _READ, options)))


def read_answers(path: Path, instances: Instances | Arrays) -> Result:
    """The Result that a file of answers to these instances holds; every answer is measured again."""
    instances = _instances(instances)
    return Result(_core.read_answers(instances._core, path_of(path, "path")))


def write(path: Path, what: Instances | Result | Arrays, *, force: bool = False) -> None:
    """Writes Instances, a Result or an array of points in the format that the suffix tells."""
    if not isinstance(what, (Instances, Result)):
        what = _instances(what)
    what.write(path, force=force)


def generate(problem: str, size: int, count: int = 1, *, seed: int | None = None, like: Literal["numpy"] | None = None,
             capacity: float | None = None) -> Instances:
    """Random instances, the program's: `like="numpy"` gives those of numpy.random.seed(seed)."""
    options = {"problem": problem, "size": size, "count": count, "seed": seed, "like": like, "capacity": capacity}
    return Instances(_core.generate(_keywords("generate", _GENERATE, options)))


def train(problem: str, size: int, output: Path | None = None, *, callback: Callable[[dict[str, Any]], object] | None = None,
          **options: Unpack[TrainOptions]) -> dict[str, Any]:
    """Trains a model, writes it to `output` and returns the summary. As `pointsman train`.

    `callback` gets a dict for each line of the log. What it throws ends the training once its model is
    written; Ctrl-C ends it so too, and then train() returns.
    """
    if callback is not None and not callable(callback):
        raise argument_error(f"callback: expected a function, found {callback!r}")
    options.update(problem=problem, size=size, output=output)
    return json.loads(_core.train(_keywords("train", _TRAIN, options), callback))


def models() -> list[str]:
    """Names of the models that `model=` finds."""
    return _core.model_names()
