# SPDX-License-Identifier: Apache-2.0
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Path = str | os.PathLike[str]
_Mode = Literal["auto", "greedy", "sample", "active", "local", "2opt", "exact"]
_Metadata = str | int | float | bool

class Error(Exception):
    exit_code: int
    file: str | None
    line: int | None
    def __init__(self, message: str, exit_code: int = 1, file: str | None = None, line: int | None = None) -> None: ...

class UsageError(Error, ValueError): ...
class ArgumentError(UsageError, TypeError): ...
class InputError(Error, ValueError): ...
class MissingFileError(Error, FileNotFoundError): ...
class ResourceError(Error, OSError): ...

class Instances:
    def __len__(self) -> int: ...
    @property
    def problem(self) -> str: ...
    @property
    def sizes(self) -> list[int]: ...
    @property
    def ids(self) -> list[str]: ...
    @property
    def metrics(self) -> list[str]: ...
    @property
    def points(self) -> NDArray[np.float64] | list[NDArray[np.float64]]: ...
    @property
    def weights(self) -> NDArray[np.float64] | list[NDArray[np.float64]]: ...
    @property
    def values(self) -> NDArray[np.float64] | list[NDArray[np.float64]]: ...
    @property
    def capacities(self) -> NDArray[np.float64]: ...
    @property
    def matrices(self) -> list[NDArray[np.float64] | None]: ...
    def write(self, path: _Path, *, force: bool = False) -> None: ...

class Result:
    def __len__(self) -> int: ...
    @property
    def instances(self) -> Instances: ...
    @property
    def tours(self) -> NDArray[np.int32] | list[NDArray[np.int32]]: ...
    @property
    def items(self) -> list[NDArray[np.int32]]: ...
    @property
    def costs(self) -> NDArray[np.float64]: ...
    @property
    def euclidean(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def status(self) -> list[str]: ...
    @property
    def log_prob(self) -> NDArray[np.float64]: ...
    @property
    def network_costs(self) -> NDArray[np.float64]: ...
    @property
    def start(self) -> list[str]: ...
    @property
    def kicks(self) -> NDArray[np.int64]: ...
    @property
    def summary(self) -> dict[str, Any]: ...
    def write(self, path: _Path, *, force: bool = False) -> None: ...

class Solver:
    def __init__(self, model: _Path | None = None, device: str = "auto", threads: int = 0, precision: str = "fp32") -> None: ...
    @property
    def device(self) -> str: ...
    def solve(
        self, points: ArrayLike | Sequence[ArrayLike] | Instances | None = None, *,
        matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
        values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None, first_row: int = 0,
        mode: _Mode | None = None, samples: int | None = None,
        first_sample: int | None = None, batch_size: int | None = None, temperature: float | None = None,
        clip: float | None = None, augment: Literal[0, 1, 8] | None = None, shuffle: bool | None = None, improve: bool | None = None,
        kicks: int | None = None, limit_each: float | None = None, stop_at_first_misfit: bool | None = None,
        init: Literal["random"] | None = None, steps: int | None = None, replicas: int | None = None,
        learn: Literal["all", "attention"] | None = None,
        learning_rate: float | None = None, entropy: float | None = None, seed: int | None = None, time_limit: float | None = None,
    ) -> Result: ...
    def sample(
        self, points: ArrayLike | Sequence[ArrayLike] | Instances | None = None, samples: int | None = None, *,
        matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
        values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None, first_row: int = 0,
        first_sample: int | None = None, batch_size: int | None = None, temperature: float | None = None,
        clip: float | None = None, augment: Literal[0, 1, 8] | None = None, shuffle: bool | None = None, improve: bool | None = None,
        kicks: int | None = None, limit_each: float | None = None, stop_at_first_misfit: bool | None = None,
        init: Literal["random"] | None = None, steps: int | None = None, replicas: int | None = None,
        learn: Literal["all", "attention"] | None = None,
        learning_rate: float | None = None, entropy: float | None = None, seed: int | None = None, time_limit: float | None = None,
    ) -> Result: ...
    def score(
        self, points: ArrayLike | Sequence[ArrayLike] | Instances | None = None,
        solutions: ArrayLike | Sequence[ArrayLike] | None = None, *,
        matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
        values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None,
        temperature: float = 1.0,
    ) -> NDArray[np.float64]: ...

def solve(
    points: ArrayLike | Sequence[ArrayLike] | Instances | None = None, *,
    matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
    values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None, first_row: int = 0,
    model: _Path | None = None, device: str = "auto", threads: int = 0, precision: str = "fp32",
    mode: _Mode | None = None, samples: int | None = None,
    first_sample: int | None = None, batch_size: int | None = None, temperature: float | None = None,
    clip: float | None = None, augment: Literal[0, 1, 8] | None = None, shuffle: bool | None = None, improve: bool | None = None,
    kicks: int | None = None, limit_each: float | None = None, stop_at_first_misfit: bool | None = None,
    init: Literal["random"] | None = None, steps: int | None = None, replicas: int | None = None,
    learn: Literal["all", "attention"] | None = None,
    learning_rate: float | None = None, entropy: float | None = None, seed: int | None = None, time_limit: float | None = None,
) -> Result: ...
def sample(
    points: ArrayLike | Sequence[ArrayLike] | Instances | None = None, samples: int | None = None, *,
    matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
    values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None, first_row: int = 0,
    model: _Path | None = None, device: str = "auto", threads: int = 0, precision: str = "fp32",
    first_sample: int | None = None, batch_size: int | None = None, temperature: float | None = None,
    clip: float | None = None, augment: Literal[0, 1, 8] | None = None, shuffle: bool | None = None, improve: bool | None = None,
    kicks: int | None = None, limit_each: float | None = None, stop_at_first_misfit: bool | None = None,
    init: Literal["random"] | None = None, steps: int | None = None, replicas: int | None = None,
    learn: Literal["all", "attention"] | None = None,
    learning_rate: float | None = None, entropy: float | None = None, seed: int | None = None, time_limit: float | None = None,
) -> Result: ...
def score(
    points: ArrayLike | Sequence[ArrayLike] | Instances | None = None,
    solutions: ArrayLike | Sequence[ArrayLike] | None = None, *,
    matrix: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | Sequence[ArrayLike] | None = None,
    values: ArrayLike | Sequence[ArrayLike] | None = None, capacity: ArrayLike | None = None,
    model: _Path | None = None, device: str = "auto", threads: int = 0, precision: str = "fp32",
    temperature: float = 1.0,
) -> NDArray[np.float64]: ...
def read(path: _Path, *, input_format: str = "auto", problem: str | None = None, capacity: float | None = None) -> Instances: ...
def read_answers(path: _Path, instances: Instances | ArrayLike | Sequence[ArrayLike]) -> Result: ...
def write(path: _Path, what: Instances | Result | ArrayLike | Sequence[ArrayLike], *, force: bool = False) -> None: ...
def generate(
    problem: str, size: int, count: int = 1, *, seed: int | None = None, like: Literal["numpy"] | None = None,
    capacity: float | None = None,
) -> Instances: ...
def train(
    problem: str, size: int, output: _Path | None = None, *, callback: Callable[[dict[str, Any]], object] | None = None,
    force: bool = False, device: str = "auto", threads: int = 0, precision: str = "fp32", seed: int | None = None,
    time_limit: float | None = None, capacity: float | None = None, encoder: Literal["attention", "lstm"] | None = None,
    layers: int | None = None, prior: bool | None = None, glimpses: int | None = None, clip: float | None = None,
    centre_logits: bool | None = None, baseline: Literal["shared", "critic", "ema", "rollout"] | None = None,
    rollouts: int | None = None, symmetries: int | None = None, batch_size: int | None = None, steps: int | None = None,
    learning_rate: float | None = None, decay: float | None = None, decay_steps: int | None = None,
    entropy: float | None = None, entropy_steps: int | None = None, max_norm: float | None = None,
    validation_every: int | None = None, instances: _Path | None = None, solutions: _Path | None = None,
    init: _Path | None = None, resume: _Path | None = None, checkpoint: _Path | None = None,
    checkpoint_every: int | None = None, log: _Path | None = None,
) -> dict[str, Any]: ...
def models() -> list[str]: ...

class StateDict(OrderedDict[str, Any]):
    metadata: dict[str, str]

def to_torch(model: _Path) -> StateDict: ...
def from_torch(
    state_dict: Mapping[str, Any], path: _Path, *, like: _Path | None = None, force: bool = False, **metadata: _Metadata
) -> None: ...
