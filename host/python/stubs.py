# SPDX-License-Identifier: Apache-2.0
"""Writes _options.pyi, the keywords of the package's calls, by the table of options of its compiled module.

usage: stubs.py PACKAGE_FOLDER"""
import pathlib
import sys

package = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(package))  # the compiled module alone: the package needs numpy
import _core  # noqa: E402

lines = ["# SPDX-License-Identifier: Apache-2.0", "# Made by host/python/stubs.py.", "import os",
         "from typing import Literal, TypedDict", ""]
# The call, and its parameters that are no options.
CLASSES = {"DeviceOptions": ("device", set()), "SolveOptions": ("solve", {"model", "init"}),
           "SampleOptions": ("solve", {"model", "init", "mode", "samples"}), "TrainOptions": ("train", {"problem", "size", "output"})}
for name_of_class, (call, arguments) in CLASSES.items():
    lines.append(f"class {name_of_class}(TypedDict, total=False):")
    lines += [f"    {name}: {kind} | None" for name, kind in _core.keywords(call) if name not in arguments]
    lines.append("")
(package / "_options.pyi").write_text("\n".join(lines))
