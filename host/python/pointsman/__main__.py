# SPDX-License-Identifier: Apache-2.0
"""python -m pointsman convert: models between this program's files and PyTorch's.

`pointsman convert` comes here, because PyTorch's files are Python's pickles.
"""
import argparse
import os
import sys

from . import Error, from_torch, to_torch
from ._errors import make
from ._torch import StateDict, as_text


def occupy_standard_streams():
    """As the program does: no file that is opened takes the place of a standard stream that is closed."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)


def printable(text):
    """On one line, without what a terminal obeys."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def load(path):
    """The state dict of a file of torch.save, of which nothing is run."""
    import torch

    try:
        with open(path, "rb") as file:
            saved = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise make(3, f"{path}: {error.strerror}", path) from None
    except Exception as error:  # what PyTorch throws for a damaged file has many types
        found = str(error).split("\n")[0]
        raise make(3, f"{path}: expected tensors that torch.save wrote, found none: {found}", path) from None
    state_dict, metadata = saved, {}
    if isinstance(saved, dict) and "state_dict" in saved:
        state_dict, metadata = saved["state_dict"], saved.get("metadata", {})
    for part in (state_dict, metadata):
        if not isinstance(part, dict) or not all(isinstance(name, str) for name in part):
            raise make(3, f"{path}: expected a state dict, found {type(part).__name__}", path)
    state_dict = StateDict(state_dict)
    state_dict.metadata = {name: as_text(value) for name, value in metadata.items()}
    return state_dict


def convert(arguments):
    import torch

    if arguments.output.endswith(".safetensors"):
        from_torch(load(arguments.input), arguments.output, like=arguments.like, force=arguments.force)
        return
    state_dict = to_torch(arguments.input)
    try:
        with open(arguments.output, "wb" if arguments.force else "xb") as file:
            torch.save({"metadata": dict(state_dict.metadata), "state_dict": dict(state_dict)}, file)
    except FileExistsError:
        path = arguments.output
        raise make(2, f"{path}: is there already; --force replaces it", path) from None


def main():
    occupy_standard_streams()
    parser = argparse.ArgumentParser(prog="python -m pointsman", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("convert",
                                  help="a model's file to PyTorch's, or back where OUTPUT is .safetensors")
    command.add_argument("input", metavar="INPUT")
    command.add_argument("output", metavar="OUTPUT")
    command.add_argument("--like", help="the model whose metadata a plain state dict gets")
    command.add_argument("-f", "--force", action="store_true", help="replace an existing OUTPUT")
    command.set_defaults(run=convert)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (Error, OSError, ImportError) as error:
        if sys.stderr is not None:  # closed; print would choose stdout
            print(f"pointsman: error: {printable(str(error))}", file=sys.stderr)
        return getattr(error, "exit_code", 4)
    return 0


if __name__ == "__main__":
    sys.exit(main())
