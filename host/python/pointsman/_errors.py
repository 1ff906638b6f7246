# SPDX-License-Identifier: Apache-2.0
"""The program's failures as exceptions."""
from __future__ import annotations

import os
import re

# What stands in a message where a file would: an argument.
_ARGUMENT = re.compile(r"(points|matrix|weights|values|capacity|solutions|init|state_dict|pickle|instances|cost)(\[\d+\])?")


class Error(Exception):
    """What went wrong. `exit_code` is the program's; `file` and `line` are None where they are not known."""

    def __init__(self, message: str, exit_code: int = 1, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.file = file
        self.line = line

    def __reduce__(self):
        return type(self), (*self.args, self.exit_code, self.file, self.line)


class UsageError(Error, ValueError):
    """Options that mean nothing, or an output that is there already (exit code 2)."""


class ArgumentError(UsageError, TypeError):
    """Arguments that no call takes: of another type, of another name, or not together (exit code 2)."""


class InputError(Error, ValueError):
    """A bad file, array, model or checkpoint (exit code 3)."""


class MissingFileError(Error, FileNotFoundError):
    """A file that is not there (exit code 3)."""

    __str__ = Exception.__str__


class ResourceError(Error, OSError):
    """Disk or device (exit code 4)."""

    __str__ = Exception.__str__


def make(exit_code, message, file=None, line=None):
    """The exception for a failure of the program."""
    kind = {2: UsageError, 3: InputError, 4: ResourceError}.get(exit_code, Error)
    if not file or _ARGUMENT.fullmatch(file):
        file = None
    elif exit_code == 3 and not os.path.lexists(file):
        kind = MissingFileError
    return kind(message, exit_code, file, line or None)


def argument_error(message):
    return ArgumentError(message, 2)


def bool_of(value, name):
    if value is not True and value is not False:
        raise argument_error(f"{name}: expected a bool, found {value!r}")
    return value


def path_of(value, name):
    """A path or another word as text."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise argument_error(f"{name}: expected text or a path, found {value!r}") from None
