# SPDX-License-Identifier: Apache-2.0
"""Models as PyTorch's state dicts and back.

The tensors have the names and shapes of the model file (docs/file-formats.md)."""
from __future__ import annotations

import collections
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._errors import argument_error, bool_of, make, path_of

if TYPE_CHECKING:
    from ._api import Path

# What a state dict alone cannot tell and every file has, where nobody says otherwise.
_DEFAULTS = {
    "capacity": "0", "hidden": "128", "glimpse_values": "raw", "attention_bias": "false",
    "learning_rate": "0", "training_tours": "0", "seed": "0"
}


class StateDict(collections.OrderedDict):
    """A state dict with the model file's `metadata`: {name: text}."""
    metadata: dict[str, str] = {}


def to_torch(model: Path) -> StateDict:
    """The float32 tensors of a model, by path or name; `metadata` of the state dict are the file's."""
    import torch

    metadata, tensors = _core.read_tensors(path_of(model, "model"))
    state_dict = StateDict((name, torch.from_numpy(array)) for name, array in tensors.items())
    state_dict.metadata = metadata
    return state_dict


def as_text(value):
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _shape_of_encoder(tensors):
    """What the tensors tell of the attention encoder."""
    matches = (re.match(r"actor\.encoder\.layers\.(\d+)\.", name) for name in tensors)
    layers = {match[1] for match in matches if match}
    if not layers:
        return {}
    width = tensors["actor.encoder.layers.0.linear1.bias"].shape[0]
    return {"encoder": "attention", "layers": str(len(layers)), "heads": "8", "feed_forward": str(width)}


def _array_of(name, tensor):
    try:
        return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
    except (AttributeError, TypeError, RuntimeError):
        found = type(tensor).__name__
        raise make(3, f"state_dict: {name}: expected a tensor of numbers, found {found}") from None


def from_torch(state_dict: Mapping[str, Any], path: Path, *, like: Path | None = None, force: bool = False,
               **metadata: str | int | float | bool) -> None:
    """Writes a state dict as a model file.

    Metadata (problem=, n=, glimpses=, clip=, centre_logits=, capacity=, ..) not given by name are those of
    the state dict of to_torch(), else those of the model `like`.
    """
    if not isinstance(state_dict, Mapping):
        raise argument_error(f"state_dict: expected a mapping, found {type(state_dict).__name__}")
    tensors = {name: _array_of(name, tensor) for name, tensor in state_dict.items()}
    known = dict(getattr(state_dict, "metadata", {}))
    if like is not None:
        known = {**_core.read_tensors(path_of(like, "like"))[0], **known}
    named = {name: as_text(value) for name, value in metadata.items()}
    _core.write_tensors(path_of(path, "path"), {**_DEFAULTS, **_shape_of_encoder(tensors), **known, **named},
                        tensors, bool_of(force, "force"))
