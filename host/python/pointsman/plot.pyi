# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes

from . import Instances, Result

_Path = str | os.PathLike[str]

def tour(
    instances: _Path | Instances | Result, *answers: _Path | Result, labels: Sequence[str] = (), index: int | None = None,
    ax: Axes | None = None,
) -> Axes | list[Axes]: ...
def ratio(*answers: _Path, labels: Sequence[str] = (), ax: Axes | None = None) -> Axes: ...
def curve(
    *logs: _Path, x: Literal["tours", "step", "seconds"] = "tours", y: str = "val_cost", labels: Sequence[str] = (),
    log_x: bool = False, log_y: bool = False, reference: float | None = None, ax: Axes | None = None,
) -> Axes: ...
def progress(
    *rows: _Path, x: Literal["samples", "ms_per_instance"] = "samples", y: Literal["gap", "mean_cost", "shortfall"] = "gap",
    log_y: bool = False, reference: float | None = None, ax: Axes | None = None,
) -> Axes: ...
