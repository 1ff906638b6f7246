# SPDX-License-Identifier: Apache-2.0
"""python -m pointsman convert: models between this program's files and PyTorch's.

The program itself does not convert, because PyTorch's files are Python's pickles.
"""
import argparse
import sys

from . import Error, from_torch, to_torch


def convert(arguments):
    import torch

    if arguments.output.endswith(".safetensors"):
        saved = torch.load(arguments.input, map_location="cpu")
        metadata = saved.get("metadata", {}) if "state_dict" in saved else {}
        state_dict = saved.get("state_dict", saved)
        from_torch(state_dict, arguments.output, like=arguments.like, force=arguments.force, **metadata)
    else:
        state_dict = to_torch(arguments.input)
        with open(arguments.output, "wb" if arguments.force else "xb") as file:
            torch.save({"metadata": dict(state_dict.metadata), "state_dict": dict(state_dict)}, file)


def main():
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
    except (Error, OSError) as error:
        print(f"pointsman: error: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 4)
    return 0


if __name__ == "__main__":
    sys.exit(main())
