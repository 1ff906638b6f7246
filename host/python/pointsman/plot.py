# SPDX-License-Identifier: Apache-2.0
"""Tours, ratios to the reference, training curves and what more samples buy, drawn by matplotlib.

    from pointsman import plot
    plot.tour("berlin52.tsp", "berlin52.tour").figure.savefig("berlin52.pdf")

Each function draws into `ax`, a new figure's unless told, and returns it. Files may be packed with gzip. Lines that
cannot be drawn are told as warnings. `python -m pointsman plot` is the same on a command line.
"""
from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

try:
    from cycler import cycler
    from matplotlib import pyplot
except ImportError as error:
    raise ImportError("pointsman.plot needs matplotlib: pip install 'pointsman[plot]'") from error

from . import _core
from ._api import Instances, Result, read, read_answers
from ._errors import make, path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._api import Path

# Columns of a training log and of eval's rows (docs/file-formats.md), as an axis names them; the first is the usual.
LOG_X = {"tours": "tours seen in training", "step": "training steps", "seconds": "training time (seconds)"}
LOG_Y = {
    "val_cost": "mean cost of the validation set",
    "train_cost": "mean cost of the training samples",
    **LOG_X,
    "tours_per_second": "speed (tours per second)",
    "baseline_loss": "mean squared error of the baseline",
    "grad_norm": "norm of the actor's gradient",
    "entropy": "mean entropy of a step (nats)",
    "mean_logit": "mean logit u before centring",
    "saturated": "share of saturated logits, |tanh| > 0.99",
    "learning_rate": "learning rate",
    "cross_entropy": "-log p of a given answer (nats)",
}
EVAL_X = {"samples": "samples of an instance", "ms_per_instance": "time per instance (ms)"}
EVAL_Y = {
    "gap": "mean gap to the reference (%)",
    "mean_cost": "mean cost (tour length or packed value)",
    "shortfall": "mean shortfall of the value (reference - value)",
}
_ROUNDED_GAP = 1e-9  # a gap that is not above it is 0, but for the rounding of its sums
_MOST_MAPS = 25
# Okabe and Ito's, for the colour-blind; after seven the lines are dashed, and their markers others.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
_STYLES = cycler(linestyle=["-", "--", ":", "-."], marker=["o", "s", "^", "D"]) * cycler(color=_COLOURS)


def _text(path):
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except FileNotFoundError as error:
        raise make(3, f"{path}: {error.strerror}", path) from None
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError) as error:
        raise make(3, f"{path}: expected JSON, found none: {error}", path) from None


def _lines(path, text):
    """[(line's number, its object)] of NDJSON. A last line that is not whole is left out: its writer may be at work."""
    lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    objects = []
    for i, line in lines:
        try:
            objects.append((i, json.loads(line)))
        except json.JSONDecodeError as error:
            if i != lines[-1][0] or i == 1:
                raise _wrong(path, i, f"expected a line of JSON, found none: {error.msg}") from None
            warnings.warn(f"{path}: the last line is cut short and is left out")
    return objects


def _wrong(path, i, message):
    """An error in line i of a file; 0: of a document that has no lines."""
    return make(3, f"{path}:{i}: {message}" if i else f"{path}: {message}", path, i)


def _get(path, i, row, name, kinds, expected):
    """row[name], which must be of one of these types."""
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise _wrong(path, i, f'"{name}": expected {expected}, found {json.dumps(value)[:40]}')
    if isinstance(value, (int, float)) and not abs(value) <= 1e100:
        raise _wrong(path, i, f'"{name}": expected at most 1e100, found {value}')
    return value


def _number(path, i, row, name, logarithmic=False):
    value = _get(path, i, row, name, (int, float), "a number")
    if logarithmic and value <= 0:
        raise _wrong(path, i, f'"{name}": expected a number above 0 (the axis is logarithmic), found {value}')
    return value


def _same_problem(path, i, row, problem):
    """The row's problem, which must be `problem` where that is set."""
    kind = _get(path, i, row, "problem", str, "a problem")
    if problem not in (None, kind):
        raise _wrong(path, i, f'"problem": expected the same problem throughout, found {kind}')
    return kind


class _Column:
    """A column that an axis shows, as its rows are read."""

    def __init__(self, caller, axis, name, known, logarithmic, least=0.0):
        if name not in known:
            meant = _core.did_you_mean(name, list(known))
            raise make(2, f"{caller}: {axis} {name}: expected one of {', '.join(known)}{meant}")
        self.name, self.label, self.logarithmic, self.least, self.unplaced = name, known[name], logarithmic, least, 0

    def of(self, path, i, row):
        """The row's number; None where it is null or has no place on the axis."""
        if isinstance(row, dict) and self.name in row and row[self.name] is None:
            return None
        value = _number(path, i, row, self.name)
        if not self.logarithmic or value > self.least:
            return value
        self.unplaced += 1
        return None

    def finish(self, path, found):
        if self.unplaced > 0:
            warnings.warn(f"{path}: a logarithmic axis has no place for a {self.name} of 0 or less; "
                          f"lines left out: {self.unplaced}")
        if not found:
            raise make(3, f"{path}: expected at least one line with a number{' above 0' * self.logarithmic} in {self.name}, "
                       "found none", path)


def _paths(files):
    return [path_of(file, "file") for file in files]


def _names(paths, labels):
    """Of each file: its label, else its name, with its folders where two share one."""
    if labels:
        if len(labels) != len(paths):
            raise make(2, f"labels: expected {len(paths)}, one for each file drawn, found {len(labels)}")
        return list(labels)
    paths = _paths(paths)
    names = [os.path.basename(path).split(".")[0] for path in paths]
    return names if len(set(names)) == len(names) else paths


def _chart(ax, x_label, y_label, log_x=False, log_y=False, reference=None, reference_label=None):
    if ax is None:
        ax = pyplot.figure(figsize=(8, 5), layout="constrained").add_subplot()
    ax.set_prop_cycle(_STYLES)
    ax.set(xlabel=x_label, ylabel=y_label)
    if log_x:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log")
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if reference is not None:
        if log_y and not reference > 0:
            raise make(2, f"reference {reference}: expected a number above 0 with a logarithmic axis")
        ax.axhline(reference, color="#666666", linestyle=(0, (5, 4)), linewidth=1.2,
                   label=reference_label or f"reference {reference:g}")
    return ax


def _legend(ax):
    outside = {"bbox_to_anchor": (1.02, 1), "loc": "upper left"} if len(ax.get_legend_handles_labels()[0]) > 6 else {}
    ax.legend(frameon=False, **outside)
    return ax


def _degrees(values):
    """TSPLIB's DDD.MM (TSPLIB95, section 2)."""
    whole = np.trunc(values)
    return whole + (values - whole) * 5 / 3


def _loops(tour, problem):
    """The round trip or path, or each vehicle's trip, as indices of points."""
    if problem != "cvrp":
        return [tour if problem == "path" else [*tour, tour[0]]]
    tour = np.asarray(tour)
    tour = tour[tour >= 0]
    return [[0, *route[route > 0], 0] for route in np.split(tour, np.flatnonzero(tour == 0))]


def _map(ax, points, metric, tour, caption, problem):
    if metric == "GEO":
        y, x = _degrees(points).T
        middle = math.radians(min(max((y.min() + y.max()) / 2, -87), 87))
        ax.set(xlabel="longitude (degrees east)", ylabel="latitude (degrees north)", aspect=1 / math.cos(middle))
    else:
        x, y = points.T
        ax.set(xlabel="x", ylabel="y", aspect="equal")
    size = min(max(40 / math.sqrt(len(points)), 0.8), 6)
    ax.set_prop_cycle(color=_COLOURS if problem == "cvrp" else _COLOURS[:1])
    for loop in _loops(tour, problem):
        ax.plot(x[loop], y[loop], linewidth=min(max(size / 3, 0.4), 1.6), marker="o", markersize=size,
                markerfacecolor="#222222", markeredgewidth=0)
    if problem == "cvrp":
        ax.plot(x[0], y[0], color="#222222", marker="s", markersize=2 * size, linestyle="none")
    ax.set_title(caption, fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def tour(instances: Path | Instances | Result, *answers: Path | Result, labels: Sequence[str] = (), index: int | None = None,
         ax: Axes | None = None) -> Axes | list[Axes]:
    """The round trips of answers to TSP instances, paths, or the routes of CVRP: a map for each instance and answer, true to scale.

    `instances`: a file, Instances or a Result, which is its own answer. `answers`: files or Results. `index`: only that
    instance, from 0. Returns Axes, of several maps a list of them; `ax` is for one.
    """
    if isinstance(instances, Result):
        answers, instances = (instances, *answers), instances.instances
    if not answers:
        raise make(2, "plot tour: expected instances and at least one file of tours")
    source = "instances" if isinstance(instances, Instances) else path_of(instances, "instances")
    if not isinstance(instances, Instances):
        instances = read(instances)
    names = _names(["answer" if isinstance(answer, Result) else answer for answer in answers], labels)
    if index is not None and not 0 <= index < len(instances):
        raise make(2, f"index {index}: {source} has {len(instances)}, counted from 0")
    chosen = range(len(instances)) if index is None else [index]
    if len(chosen) * len(answers) > _MOST_MAPS:
        raise make(2, f"plot tour: {len(chosen) * len(answers)} maps are more than {_MOST_MAPS}; choose an instance by index")
    if instances.problem in ("knapsack", "colouring"):
        raise make(2, f"plot tour: {source}: a {instances.problem} has no map")
    maps = []
    for name, answer in zip(names, answers):
        result = answer if isinstance(answer, Result) else read_answers(answer, instances)
        for i in chosen:
            if instances.matrices[i] is not None:
                raise make(2, f"plot tour: {source}: instance {i} has no map, only distances")
            own = instances.ids[i] or f"instance {i}"
            shown = own if not labels and len(answers) == 1 else name + (f", {own}" if len(chosen) > 1 else "")
            maps.append((np.asarray(instances.points[i]), instances.metrics[i], result.tours[i], shown, result.costs[i]))
    if len(maps) > 1 and ax is not None:
        raise make(2, f"plot tour: one ax for {len(maps)} maps; choose an instance by index")
    columns = math.ceil(math.sqrt(len(maps)))
    rows = math.ceil(len(maps) / columns)
    if ax is None:
        across, up = np.ptp(maps[0][0], axis=0)[::-1 if maps[0][1] == "GEO" else 1]
        height = min(max(up / across if across > 0 else 1, 0.4), 1.6) * 5 + 1
        figure = pyplot.figure(figsize=(6 * columns, height * rows), layout="constrained")
        all_axes = [figure.add_subplot(rows, columns, i + 1) for i in range(len(maps))]
    else:
        all_axes = [ax]
    for one, (points, metric, order, name, cost) in zip(all_axes, maps):
        what = f"{len(points) - 1} customers" if instances.problem == "cvrp" else f"{len(points)} cities"
        _map(one, points, metric, order, f"{name}: {what}, length {cost:.6g}", instances.problem)
    return all_axes[0] if len(all_axes) == 1 else all_axes


def _solutions(path):
    """[(line, solution)] of an answer of `solve --ref`, JSON or NDJSON."""
    text = _text(path)
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = None
    if isinstance(document, dict) and "solutions" in document:
        return [(0, solution) for solution in _get(path, 0, document, "solutions", list, "a list")]
    rows = _lines(path, text)
    solutions = [(i, row) for i, row in rows if not (isinstance(row, dict) and "error" in row)]
    if len(solutions) < len(rows):
        warnings.warn(f"{path}: {len(rows) - len(solutions)} lines hold errors and no solutions")
    return solutions


def ratio(*answers: Path, labels: Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Ratios to the reference, sorted over the share of the instances, a line for each of the answers of `solve --ref`."""
    if not answers:
        raise make(2, "plot ratio: expected at least one file of answers")
    names, problem, lines = _names(answers, labels), None, []
    for path in _paths(answers):
        ratios = []
        for i, solution in _solutions(path):
            problem = _same_problem(path, i, solution, problem)
            gap = _get(path, i, solution, "gap", (int, float), "a number (of solve --ref)")
            ratios.append(1 - gap if problem == "knapsack" else 1 + gap)
        if not ratios:
            raise make(3, f"{path}: expected at least one solution, found none", path)
        lines.append(sorted(ratios))
    measure = {"knapsack": "packed value", "cvrp": "length of the routes", "path": "path length"}.get(problem, "tour length")
    ax = _chart(ax, "share of the instances, sorted (%)", f"ratio to optimal ({measure} / reference)", reference=1.0,
                reference_label="reference")
    for name, ratios in zip(names, lines):
        ax.step(np.linspace(0, 100, len(ratios) + 1), [ratios[0], *ratios], where="pre", label=name, marker="")
    return _legend(ax)


def curve(*logs: Path, x: Literal["tours", "step", "seconds"] = "tours", y: str = "val_cost", labels: Sequence[str] = (),
          log_x: bool = False, log_y: bool = False, reference: float | None = None, ax: Axes | None = None) -> Axes:
    """A column of training logs against another, a line a log. Where rows have a "stage", a line for each of a log's."""
    if not logs:
        raise make(2, "plot curve: expected at least one log")
    lines = {}
    for name, path in zip(_names(logs, labels), _paths(logs)):
        across, up = _Column("plot curve", "x", x, LOG_X, log_x), _Column("plot curve", "y", y, LOG_Y, log_y)
        found = 0
        for i, row in _lines(path, _text(path)):
            at, value = _number(path, i, row, x, log_x), up.of(path, i, row)
            if value is None:
                continue
            found += 1
            stage = row.get("stage")
            label = name if stage is None else str(stage) if len(logs) == 1 else f"{name}, {stage}"
            lines.setdefault(label, []).append((at, value))
        up.finish(path, found)
    ax = _chart(ax, across.label, up.label, log_x, log_y, reference)
    for label, points in lines.items():
        ax.plot(*zip(*points), label=label, linewidth=1.6, markersize=3, **({"marker": ""} if len(points) > 60 else {}))
    return _legend(ax)


_STRATEGY = {"mode": str, "model": (str, type(None)), "augment": int, "shuffle": bool, "improve": bool,
             "temperature": (int, float), "set": str, "device": (str, type(None)), "model_sha256": (str, type(None))}


def _strategy_name(strategy):
    """"tsp50 sample x8 shuffle T 1.5"; without a network what finds the answers."""
    by_kicks = strategy["mode"] in ("local", "2opt")
    words = [strategy["model"] or "", strategy["mode"]]
    words += ["search"] * (by_kicks or strategy["mode"] == "random") + ["greedy"] * (strategy["mode"] == "ratio")
    words += [f"x{strategy['augment']}"] * (strategy["augment"] > 1) + ["shuffle"] * strategy["shuffle"]
    words += ["improve"] * (strategy["improve"] and not by_kicks)
    words += [f"T {strategy['temperature']:g}"] * (strategy["temperature"] != 1)
    return " ".join(word for word in words if word)


def _tell_apart(names, strategies):
    """Names that several strategies share get what differs among these."""
    for key, letters in (("set", None), ("device", None), ("model_sha256", 8)):
        for name in {name for name in names if names.count(name) > 1}:
            those = [i for i, other in enumerate(names) if other == name]
            if len({strategies[i][key] for i in those}) > 1:
                for i in those:
                    names[i] += ", " + (strategies[i][key] or "")[:letters]
    return names


def progress(*rows: Path, x: Literal["samples", "ms_per_instance"] = "samples",
             y: Literal["gap", "mean_cost", "shortfall"] = "gap", log_y: bool = False, reference: float | None = None,
             ax: Axes | None = None) -> Axes:
    """What more samples or time buy: rows of `eval --format ndjson`, a line a strategy, with 95% confidence intervals."""
    if not rows:
        raise make(2, "plot progress: expected at least one file of rows")
    problem, series = None, {}
    unit = 100 if y == "gap" else 1
    for path in _paths(rows):
        across = _Column("plot progress", "x", x, EVAL_X, True)
        up = _Column("plot progress", "y", y, EVAL_Y, log_y, _ROUNDED_GAP if y == "gap" else 0.0)
        found = 0
        for i, row in _lines(path, _text(path)):
            problem, value = _same_problem(path, i, row, problem), up.of(path, i, row)
            if value is None:
                continue
            found += 1
            strategy = tuple(_get(path, i, row, name, kinds, name) for name, kinds in _STRATEGY.items())
            error = row.get(y + "_ci95")
            error = 0 if error is None else _number(path, i, row, y + "_ci95")
            point = (_number(path, i, row, x, True), unit * value, unit * error)
            series.setdefault(strategy, []).append(point)
        up.finish(path, found)
    strategies = [dict(zip(_STRATEGY, strategy)) for strategy in series]
    names = _tell_apart([_strategy_name(strategy) for strategy in strategies], strategies)
    ax = _chart(ax, across.label, up.label, True, log_y, reference)
    for name, points, style in zip(names, series.values(), itertools.cycle(_STYLES)):
        at, value, error = zip(*sorted(points, key=lambda point: point[0]))
        ax.errorbar(at, value, yerr=error if any(error) else None, label=name, linewidth=1.6, markersize=3.5,
                    capsize=2.5, elinewidth=0.9, **style)
    return _legend(ax)
