# SPDX-License-Identifier: Apache-2.0
"""Instances of a Dask array or bag, solved by Dask's workers.

    import dask.array, pointsman.dask
    tours, costs = pointsman.dask.solve(points, mode="greedy")     # points: a Dask array (B, n, 2)
    answers = pointsman.dask.solve(bag)                            # a Dask bag of (n, 2)

Answers are those of one call of pointsman.solve() with all instances, whichever worker has which. Nothing is
computed before Dask is asked to.
"""
import itertools

import dask
import dask.array
import dask.bag
import numpy as np

from . import _api


def _solve(points, first_row, options):
    """(tours, costs) of a chunk, with the solver that the worker's thread keeps. Dask has a thread for each core already."""
    result = _api.solve(points, first_row=first_row, **{"threads": 1, **options})
    return result.tours, result.costs


def _solve_list(partition, first_row, options):
    points = list(partition)
    return list(zip(*_solve(points, first_row, options))) if points else []


def _solve_array(points, options):
    if points.ndim != 3 or points.shape[2] != 2:
        raise ValueError(f"points: expected a Dask array (B, n, 2), found {points.shape}")
    points = points.rechunk({1: -1, 2: -1})
    rows = points.chunks[0]
    if any(np.isnan(rows)):
        raise ValueError("points: the lengths of the chunks are not known; compute_chunk_sizes() finds them")
    tours, costs = [], []
    for block, count, first_row in zip(points.to_delayed().ravel(), rows, itertools.accumulate((0, *rows))):
        solved = dask.delayed(_solve)(block, first_row, options)
        tours.append(dask.array.from_delayed(solved[0], (count, points.shape[1]), np.int32))
        costs.append(dask.array.from_delayed(solved[1], (count,), np.float64))
    return dask.array.concatenate(tours), dask.array.concatenate(costs)


def _solve_bag(bag, options):
    """Where a partition begins is only known when those before it are counted: that is computed at once."""
    counts = dask.compute(*(dask.delayed(len)(dask.delayed(list)(part)) for part in bag.to_delayed()))
    solved = [
        dask.delayed(_solve_list)(part, first_row, options)
        for part, first_row in zip(bag.to_delayed(), itertools.accumulate((0, *counts)))
    ]
    return dask.bag.from_delayed(solved)


def solve(points, **options):
    """(tours, costs) of a Dask array of points (B, n, 2), as Dask arrays (B, n) and (B,) with its chunks. Of a
    Dask bag of (n, 2), which may differ in size, a bag of (tour, cost).

    options: as pointsman.solve(). dask.compute(tours, costs) solves once, two calls solve twice."""
    if isinstance(points, dask.bag.Bag):
        return _solve_bag(points, options)
    return _solve_array(dask.array.asarray(points), options)
