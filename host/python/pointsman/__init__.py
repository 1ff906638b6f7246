# SPDX-License-Identifier: Apache-2.0
"""Pointer networks and a local search for the travelling salesman problem and KnapSack.

    import pointsman
    result = pointsman.solve(points)          # (n, 2), (B, n, 2) or a list of (n, 2)
    result.tours, result.costs, result.status

Options have the names of the program's flags. docs/python.md shows the rest.
"""
from . import _core
from ._api import (Instances, Result, Solver, generate, models, read, read_answers, sample, score, solve,
                   train, write)
from ._errors import ArgumentError, Error, InputError, MissingFileError, ResourceError, UsageError
from ._torch import from_torch, to_torch
from .own import OwnModel, OwnResult, Problem

__version__: str = _core.__version__


def __getattr__(name):
    """`pointsman.plot` is loaded where it is used: it needs matplotlib."""
    if name == "plot":
        import importlib
        return importlib.import_module(".plot", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ArgumentError", "Error", "InputError", "Instances", "MissingFileError", "OwnModel", "OwnResult", "Problem",
    "ResourceError", "Result",
    "Solver", "UsageError", "__version__", "from_torch", "generate", "models", "read", "read_answers",
    "sample", "score", "solve", "to_torch", "train", "write"
]
