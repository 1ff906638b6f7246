#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a GPU could start what the emulation started: each recorded launch against the compiled kernel's
registers, launch bound and static shared memory, for each architecture that it is compiled for.

    launch_resources.py RECORD LIBRARY [--tools DIR]

RECORD: POINTSMAN_EMULATION_RECORD of the tests; LIBRARY: libpointsman_kernels_cuda.a or an object file. Needs
cuobjdump (--tools, PATH, /usr/local/cuda/bin); without it, or without LIBRARY, exits with 77 and a line that says so.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

REGISTERS = 65536  # of a multiprocessor, and of a block
MOST_SHARED = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # a block's, static and dynamic together
REGISTER_UNIT = 256  # registers are given to a warp in so many
WARP_UNIT = 4  # and to so many warps at a time: one a scheduler

Kernel = collections.namedtuple("Kernel", "registers static_shared most_threads")
Launch = collections.namedtuple("Launch", "name threads shared device")


def skip(line):
    print("skipped: " + line)
    sys.exit(77)


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def short(names):
    """Demangled names without what the compilers write differently: namespaces, parameters, casts, blanks."""
    result = []
    for name in names:
        name = re.sub(r"^void |pointsman::|cuda::|\(anonymous namespace\)::", "", name)
        name = re.sub(r"\((int|bool|Precision|TileBlock)\)", "", name).replace("true", "1").replace("false", "0")
        result.append(re.sub(r"\(.*$|\s", "", name))
    return result


def blocks_by_architecture(listing):
    parts = re.split(r"\narch = (sm_\d+)\n", "\n" + listing)
    return zip(parts[1::2], parts[2::2])


def compiled_kernels(cuobjdump, library):
    """{(architecture, mangled name): Kernel} of every kernel in the library."""
    bounds = {}
    for architecture, text in blocks_by_architecture(output_of([cuobjdump, "-elf", library])):
        for name, attributes in re.findall(r"^\.nv\.info\.(\S+)\n(.*?)(?=^\.\w|\Z)", text, re.MULTILINE | re.DOTALL):
            found = re.search(r"EIATTR_MAX_THREADS\s+Format:\s+EIFMT_SVAL\s+Value:\s+0x(\w+) 0x(\w+) 0x(\w+)", attributes)
            if found:
                x, y, z = (int(word, 16) for word in found.groups())
                bounds[architecture, name] = x * y * z
    kernels = {}
    for architecture, text in blocks_by_architecture(output_of([cuobjdump, "-res-usage", library])):
        for name, registers, shared in re.findall(r"Function (\w+):\n\s+REG:(\d+) .*?SHARED:(\d+)", text):
            kernels[architecture, name] = Kernel(int(registers), int(shared), bounds.get((architecture, name), 1024))
    return kernels


def by_short_name(kernels):
    mangled = sorted({name for _, name in kernels})
    plain = dict(zip(mangled, short(output_of(["c++filt", *mangled]).splitlines()))) if mangled else {}
    return {(architecture, plain[name]): kernel for (architecture, name), kernel in kernels.items()}


def read_record(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    names = short(row[0] for row in rows)
    return sorted({Launch(name, int(row[1]), int(row[2]), row[3]) for name, row in zip(names, rows)})


def registers_of(kernel, threads):
    warps = -(-threads // 32)
    warps = -(-warps // WARP_UNIT) * WARP_UNIT
    return warps * (-(-kernel.registers * 32 // REGISTER_UNIT) * REGISTER_UNIT)


def faults(launch, kernels):
    """What a GPU would refuse of a launch, a line each."""
    for architecture in sorted(MOST_SHARED):
        kernel = kernels.get((architecture, launch.name))
        where = f"{launch.name}, {launch.threads} threads, {launch.shared} bytes, {architecture}: "
        if kernel is None:
            yield where + "no such kernel in the library"
            continue
        if launch.threads > kernel.most_threads:
            yield where + f"compiled for at most {kernel.most_threads} threads"
        if registers_of(kernel, launch.threads) > REGISTERS:
            yield where + f"{kernel.registers} registers a thread make {registers_of(kernel, launch.threads)}"
        # The larger architecture's launches ask for more than the smaller one has.
        shared = launch.shared + kernel.static_shared
        if launch.device == architecture and shared > MOST_SHARED[architecture]:
            yield where + f"{shared} bytes of shared memory with the static ones"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("library")
    parser.add_argument("--tools", default="", help="folder of cuobjdump")
    options = parser.parse_args()
    path = os.pathsep.join(filter(None, [options.tools, os.environ["PATH"], "/usr/local/cuda/bin"]))
    cuobjdump = shutil.which("cuobjdump", path=path)
    if not os.path.exists(options.library):
        skip("no CUDA kernels compiled here: " + options.library)
    if cuobjdump is None:
        skip("no cuobjdump on the PATH or in /usr/local/cuda/bin")
    kernels = by_short_name(compiled_kernels(cuobjdump, options.library))
    launches = read_record(options.record)
    wrong = [line for launch in launches for line in faults(launch, kernels)]
    print("\n".join(wrong))
    names = {launch.name for launch in launches}
    print(f"{len(launches)} ways to launch {len(names)} kernels, {len(wrong)} that a GPU would refuse")
    sys.exit(1 if wrong or not launches else 0)


if __name__ == "__main__":
    main()
