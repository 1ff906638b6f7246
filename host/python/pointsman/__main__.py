# SPDX-License-Identifier: Apache-2.0
"""What is made in Python: pictures by matplotlib, models as PyTorch's files, and instances of files of others."""
import argparse
import io
import os
import sys
import warnings

from . import Error, from_torch, read, to_torch
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


def convert_command(arguments):
    """Instances where a suffix is one of theirs, else a model."""
    from .convert import INPUTS, OUTPUTS, convert
    is_data = arguments.input.endswith(INPUTS) or arguments.output.endswith(OUTPUTS)
    is_model = arguments.output.endswith(".safetensors") or not is_data
    for flag, value, belongs in (("--like", arguments.like, is_model), ("--key", arguments.key, not is_model)):
        if value is not None and not belongs:
            raise make(2, f"{flag}: is not for {arguments.output}")
    if is_model:
        convert_model(arguments)
    elif os.path.lexists(arguments.output) and not arguments.force:
        raise make(2, f"{arguments.output}: is there already; --force replaces it", arguments.output)
    else:
        convert(arguments.input, arguments.output, arguments.key, arguments.force)


def convert_model(arguments):
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


def draw(arguments):
    """The figure of `plot KIND FILE..`."""
    from . import plot
    kind, files = arguments.kind, list(arguments.files)
    options = {name: getattr(arguments, name) for name in FLAGS if getattr(arguments, name) is not None}
    for name in options:
        if name not in OPTIONS[kind]:
            raise make(2, f"{FLAGS[name]}: is not for plot {kind}")
    if kind == "tour":
        files[0] = read(files[0], **{name: options.pop(name) for name in READING if name in options})
    axes = getattr(plot, kind)(*files, **options)
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    if arguments.title:
        figure.suptitle(arguments.title)
    return figure


def plot_command(arguments):
    import matplotlib
    matplotlib.use("agg")
    # The same bytes of the same picture, and words that can be searched.
    matplotlib.rcParams.update({"svg.hashsalt": "pointsman", "svg.fonttype": "none"})
    path = arguments.output
    kind = "svg" if path is None else os.path.splitext(path)[1][1:].lower()
    if kind not in ("svg", "png", "pdf"):
        raise make(2, f"{path}: expected a name that ends in .svg, .png or .pdf")
    if path is not None and os.path.lexists(path) and not arguments.force:
        raise make(2, f"{path}: is there already; --force replaces it", path)
    picture = io.BytesIO()
    draw(arguments).savefig(picture, format=kind, dpi=150, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind))
    if path is None:
        sys.stdout.buffer.write(picture.getvalue())
        sys.stdout.flush()
        return
    part = f"{path}.{os.getpid()}.tmp"  # what is there is whole, the old picture or the new one
    try:
        with open(part, "xb") as file:
            file.write(picture.getvalue())
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise


READING = ("input_format", "problem")
OPTIONS = {"tour": ("labels", "index", *READING), "ratio": ("labels", ),
           "curve": ("labels", "x", "y", "log_x", "log_y", "reference"), "progress": ("x", "y", "log_y", "reference")}
FLAGS = {"labels": "--label", "index": "--index", "x": "--x", "y": "--y", "log_x": "--log-x", "log_y": "--log-y",
         "reference": "--ref", "input_format": "--input-format", "problem": "--problem"}


def add_plot(commands):
    command = commands.add_parser("plot", help="tours, ratios to optimal, training curves and eval's rows as SVG, PNG or PDF")
    command.add_argument("kind", metavar="KIND", choices=sorted(OPTIONS), help="tour, ratio, curve or progress")
    command.add_argument("files", metavar="FILE", nargs="+",
                         help="tour: instances, then their solutions, a file an answer; ratio: JSON or NDJSON of solve --ref; "
                         "curve: logs of train; progress: rows of eval --format ndjson")
    command.add_argument("--label", dest="labels", action="append", metavar="NAME",
                         help="name of a file in the picture; repeat it for each, in order")
    command.add_argument("--title", help="title above the picture")
    command.add_argument("--x", metavar="COLUMN", help="curve, progress: column along the bottom")
    command.add_argument("--y", metavar="COLUMN", help="curve, progress: column up the side")
    command.add_argument("--log-x", action="store_true", default=None, help="curve: the bottom axis is logarithmic")
    command.add_argument("--log-y", action="store_true", default=None, help="curve, progress: the side axis is logarithmic")
    command.add_argument("--ref", dest="reference", type=float, help="curve, progress: a horizontal line here")
    command.add_argument("--index", type=int, help="tour: only this instance, from 0")
    command.add_argument("--input-format", help="tour: format of the instances; default: told by suffix and first bytes")
    command.add_argument("--problem", help="tour: what the instances are, where the format does not say (.npy)")
    command.add_argument("-o", "--output", help="FILE.svg, FILE.png or FILE.pdf instead of SVG on stdout")
    command.add_argument("-f", "--force", action="store_true", help="replace an existing output file")
    command.set_defaults(run=plot_command)


def add_convert(commands):
    command = commands.add_parser(
        "convert", help="a model's file to PyTorch's or back; test sets in .pkl, GeoJSON and tables of road services to instances")
    command.add_argument("input", metavar="INPUT")
    command.add_argument("output", metavar="OUTPUT",
                         help="a model for PyTorch, .safetensors from it, or instances as .npy, .npz, .json or .ndjson")
    command.add_argument("--like", help="the model whose metadata a plain state dict gets")
    command.add_argument("--key", choices=("durations", "distances"),
                         help="which of the tables of a road service; default: durations where both are there")
    command.add_argument("-f", "--force", action="store_true", help="replace an existing OUTPUT")
    command.set_defaults(run=convert_command)


def main():
    occupy_standard_streams()
    warnings.showwarning = lambda message, *_: print(f"pointsman: warning: {printable(str(message))}", file=sys.stderr)
    parser = argparse.ArgumentParser(prog="python -m pointsman", description=__doc__)
    commands = parser.add_subparsers(required=True)
    add_plot(commands)
    add_convert(commands)
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
