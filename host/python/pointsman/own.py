# SPDX-License-Identifier: Apache-2.0
"""A problem of your own: items with F numbers each, and a function that says what an order of them costs.

    problem = pointsman.Problem(cost)                 # cost(items (B, n, F), orders (B, n)) -> (B,)
    model = problem.train(generate, minutes=2)        # generate(rng, count) -> (count, n, F)
    result = model.solve(items, samples=1000)         # items: (n, F), (B, n, F) or a list of (n, F)
    result.orders, result.costs

docs/own-problems.md says what to expect of it.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._api import _array, _arrays, _keywords, _numbers
from ._errors import argument_error, bool_of, make, path_of

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Instances = ArrayLike | Sequence[ArrayLike]
    Cost = Callable[[Any, Any], Any]
    Generate = Callable[[np.random.Generator, int], ArrayLike]
    Pairs = Sequence[tuple[int, int]] | Callable[[int], Sequence[tuple[int, int]]]

_TRAIN = frozenset(_core.own_train_options()) - {"steps", "seed"}  # which are arguments
_SOLVE = frozenset(("temperature", "clip", "seed", "time_limit", "batch_size", "replicas", "learn", "learning_rate", "entropy"))


def _items_of(instances, name="items"):
    """Arrays of (n, F) or (B, n, F) float64, and F."""
    arrays = [np.ascontiguousarray(one, dtype=np.float64) for one in _arrays(instances, name, 2)]
    for array in arrays:
        if array.ndim not in (2, 3) or 0 in array.shape:
            raise make(3, f"{name}: expected (n, F) or (B, n, F), found {array.shape}")
        if array.shape[-1] != arrays[0].shape[-1]:
            raise make(3, f"{name}: expected {arrays[0].shape[-1]} numbers an item, found {array.shape[-1]}")
        if not np.isfinite(array).all():
            raise make(3, f"{name}: expected finite numbers")
    if arrays[0].shape[-1] > _core.MOST_OWN_NUMBERS:
        raise make(3, f"{name}: expected at most {_core.MOST_OWN_NUMBERS} numbers an item, found {arrays[0].shape[-1]}")
    return arrays, arrays[0].shape[-1]


def _orders_of(orders, items):
    """Arrays of (n,) or (B, n) int64, an order for each instance."""
    arrays = _arrays(orders, "orders", 1)
    for array in arrays:
        if array.ndim not in (1, 2) or array.dtype.kind not in "iu":
            raise make(3, f"orders: expected whole numbers, (n,) or (B, n), found {array.dtype}, {array.shape}")
    wanted, found = (sum(1 if one.ndim == axes else len(one) for one in all_of) for all_of, axes in ((items, 2), (arrays, 1)))
    if wanted != found:
        raise make(3, f"orders: expected {wanted}, one for each instance, found {found}")
    return [np.ascontiguousarray(one, dtype=np.int64) for one in arrays]


def _pairs(pairs):
    array = np.asarray(pairs if len(pairs) > 0 else np.zeros((0, 2), dtype=int))
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu" or np.any((array < 0) | (array >= 1 << 31)):
        raise make(2, f"before: expected pairs of items, found {pairs!r}")
    return array.tolist()


class OwnResult:
    """The best order found for each of B instances: `orders` (B, n) int32, -1 behind a shorter one and throughout where there
    is none; where sizes differ a list."""

    def __init__(self, core, summary, sizes):
        self.orders: NDArray[np.int32] | list[NDArray[np.int32]] = core.orders()
        if len(sizes) == 1:
            n = sizes.pop()
            self.orders = np.stack([np.pad(order, (0, n - len(order)), constant_values=-1) for order in self.orders])
        self.costs: Floats = core.costs
        self.network_costs: Floats = core.network_costs
        self.log_prob: Floats = core.log_prob
        self.status: list[str] = core.status
        self.summary: dict[str, Any] = summary

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self):
        return f"<pointsman.OwnResult: {len(self)} answers>"


class Problem:
    """What an order of items costs, and what is declared of the orders.

    cost      cost(items (B, n, F) float64, orders (B, n) int64) -> B finite numbers; with a capacity -1 stands behind the
              last item of an order
    maximise  more is better
    before    pairs (a, b) of items of which a comes first, or a function of n that returns them
    first     the item that every order begins with; last: ends with. -1 is the last item
    capacity  (column, limit): that number of an item is its weight, and an order takes items as long as one fits; else all
    torch     cost takes and returns CPU tensors
    """

    def __init__(self, cost: Cost, *, maximise: bool = False, before: Pairs | None = None, first: int | None = None,
                 last: int | None = None, capacity: tuple[int, float] | None = None, torch: bool = False):
        if not callable(cost):
            raise argument_error(f"cost: expected a function, found {type(cost).__name__}")
        if capacity is not None and last is not None:
            raise make(2, "last: does not go with capacity, where nobody knows which item fits last")
        self._user_cost, self._torch, self._maximise = cost, bool_of(torch, "torch"), bool_of(maximise, "maximise")
        self._before, self._first, self._last = before, _item(first, "first"), _item(last, "last")
        self._capacity = None if capacity is None else _column_and_limit(capacity)
        self.trained: OwnModel | None = None
        """Of the last training, also of one that an exception ended."""

    def _cost(self, items, orders):
        count = len(orders)
        if self._torch:
            import torch
            found = self._user_cost(torch.from_numpy(items), torch.from_numpy(orders))
        else:
            found = self._user_cost(items, orders)
        costs = _numbers(_array(found, "cost"), "cost")
        if costs.shape != (count, ):
            raise make(3, f"cost: expected {count} numbers, one for each order, found an array of shape {costs.shape}")
        costs = np.ascontiguousarray(costs, dtype=np.float64)
        if not np.isfinite(costs).all():
            worst = int(np.argmin(np.isfinite(costs)))
            raise make(3, f"cost: expected finite numbers, found {costs[worst]} for the order {orders[worst].tolist()}")
        return costs

    def _core(self, width, draw=None):
        before = self._before
        pairs = before if before is None or callable(before) else lambda n: before
        as_ints = pairs and (lambda n: _pairs(pairs(n)))
        weight, capacity = (-1, 0.0) if self._capacity is None else self._capacity
        if self._capacity is not None and not 0 <= weight < width:
            raise make(2, f"capacity: expected one of {width} numbers of an item, found {weight}")
        return _core.OwnProblem(width, self._cost, draw, as_ints, self._first, self._last, weight, capacity, self._maximise)

    def costs(self, items: Instances, orders: Instances) -> Floats:
        """What given orders cost, (B,); an order that is not as declared is refused."""
        arrays, width = _items_of(items)
        return self._core(width).costs(arrays, _orders_of(orders, arrays))

    def train(self, instances: Instances | Generate, *, minutes: float = 2, steps: int | None = None, seed: int = 1234,
              init: OwnModel | None = None, callback: Callable[[dict[str, Any]], object] | None = None,
              **options: Any) -> OwnModel:
        """A model trained by policy gradient on `instances` (B, n, F), or on those that a function of (rng, count) makes.

        minutes: how long; or `steps`, of which a training is reproducible. callback gets each line of the log as a dict.
        The options are those of pointsman.train(). Ctrl-C ends the training and returns the model up to then; what `cost`
        or the callback throws is thrown again, and `trained` holds that model."""
        self.trained = None
        course = {"minutes": minutes} if steps is None else {"steps": steps}
        keywords = _keywords("train", _TRAIN, options) | _keywords("train", course, course) | {"seed": seed}
        if init is not None and not isinstance(init, OwnModel):
            raise argument_error(f"init: expected a model, found {type(init).__name__}; load() reads files")
        seed = _index(seed, "seed", 0, (1 << 64) - 1)
        generate = _generator_of(instances)
        (sample, ), width = _items_of(_some(generate, np.random.default_rng([seed, 0]), _core.SCALING_INSTANCES), "instances")
        n = keywords["size"] = sample.shape[1]
        if init is not None:
            init._require(width)

        def keep(summary, model):
            self.trained = OwnModel(self, model, summary)

        core = self._core(width, _drawn_by(generate, n, width))
        core.train(sample, keywords, init and init._core, callback, keep)
        return self.trained

    def load(self, path: str | os.PathLike[str]) -> OwnModel:
        """A model that `save` wrote, to be used with this problem's cost."""
        return OwnModel(self, _core.read_own_model(path_of(path, "path")), {})


def _index(value, name, low, high):
    try:
        index = operator.index(value)
    except TypeError:
        raise argument_error(f"{name}: expected a whole number, found {value!r}") from None
    if not low <= index <= high:
        raise make(2, f"{name}: expected a whole number from {low} to {high}, found {index}")
    return index


def _item(value, name):
    return None if value is None else _index(value, name, -10**9, 10**9)


def _column_and_limit(capacity):
    try:
        column, limit = capacity
        limit = float(limit)
    except (TypeError, ValueError):
        raise argument_error(f"capacity: expected (column, limit), found {capacity!r}") from None
    if not np.isfinite(limit):
        raise make(2, f"capacity: expected a finite limit, found {limit}")
    return _index(column, "capacity", 0, _core.MOST_OWN_NUMBERS - 1), limit


def _generator_of(instances):
    if callable(instances):
        return instances
    arrays, _ = _items_of(instances, "instances")
    if len(arrays) != 1 or arrays[0].ndim != 3:
        raise make(3, "instances: expected (B, n, F), all of one size, or a function of (rng, count)")
    rows = arrays[0]
    return lambda rng, count: rows[rng.integers(len(rows), size=count)]


def _some(generate, rng, count):
    """What a generator makes, one array (B, n, F)."""
    items = np.asarray(generate(rng, count))
    if items.ndim != 3:
        raise make(3, f"instances: expected (count, n, F) of the generator, found {items.shape}")
    return items


def _drawn_by(generate, n, width):
    def draw(seed, first, count, _):
        rng = np.random.default_rng([seed >> 32, seed & 0xFFFFFFFF, first >> 32, first & 0xFFFFFFFF])
        (items,), _ = _items_of(_some(generate, rng, count), "instances")
        if items.shape != (count, n, width):
            raise make(3, f"instances: expected {(count, n, width)} of the generator, found {items.shape}")
        return items
    return draw


class OwnModel:
    """A network for a Problem, as train() and load() return it."""

    def __init__(self, problem: Problem, core: Any, summary: dict[str, Any]):
        self.problem, self._core, self.summary = problem, core, summary

    def __repr__(self):
        return f"<pointsman.OwnModel: n = {self._core.n}, {self._core.training_tours} orders seen in training>"

    def _require(self, width):
        trained = len(self._core.scaling[0])
        if width != trained:
            raise make(2, f"items: expected {trained} numbers an item, as in training, found {width}")

    def _items(self, items):
        arrays, width = _items_of(items)
        self._require(width)
        return arrays, width

    def solve(self, items: Instances, *, samples: int | None = None, active: int | None = None, improve: bool = False,
              kicks: int | None = None, threads: int | None = None, **options: Any) -> OwnResult:
        """The best order of each instance: one greedy pass; the best of `samples`; or by `active` steps of active search.

        improve: then a local search that knows `cost` alone, with `kicks` (0) random changes after its first optimum; with a
        capacity it does not change which items are taken.
        Options: temperature, clip, seed, time_limit, batch_size; of active search replicas, learn, learning_rate, entropy."""
        arrays, width = self._items(items)
        if samples is not None and active is not None:
            raise make(2, "samples, active: expected one of them")
        if kicks is not None and not improve:
            raise make(2, "kicks: goes with improve=True")
        mode = "active" if active is not None else "sample" if samples is not None else "greedy"
        number = {"steps": active} if active is not None else {} if samples is None else {"samples": samples}
        keywords = _keywords("solve", _SOLVE, options) | _keywords("solve", {"mode", *number}, {"mode": mode} | number)
        device = _keywords("solve", frozenset(("device", "threads")), {"device": "cpu", "threads": threads})
        kicks = _index(kicks or 0, "kicks", 0, 10**12) if bool_of(improve, "improve") else None
        found = self.problem._core(width).solve(self._core, arrays, keywords, device, kicks)
        summary = {"mode": mode, "solving_ms": found.solving_ms, "callback_seconds": found.callback_seconds}
        return OwnResult(found, summary, {array.shape[-2] for array in arrays})

    def score(self, items: Instances, orders: Instances, temperature: float = 1.0) -> Floats:
        """log p of given orders, (B,); NaN of one that the network cannot make."""
        arrays, width = self._items(items)
        return self.problem._core(width).score(self._core, arrays, _orders_of(orders, arrays), float(temperature))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """As a model file, in which the cost is not."""
        self._core.save(path_of(path, "path"), bool_of(force, "force"))
