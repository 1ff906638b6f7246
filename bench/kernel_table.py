#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nvcc makes of the CUDA kernels: registers, stack and spills of each, and the instructions of the decode kernel's
inner loops, counted in the machine code.

    python3 bench/kernel_table.py                 prints the tables
    python3 bench/kernel_table.py --write         writes them to bench/results/tables/cuda_kernels.md
    python3 bench/kernel_table.py --tools DIR     where cuobjdump and nvdisasm lie, when PATH has them not

Needs nvcc, cuobjdump and nvdisasm (CUDA toolkit; the last two also as PyPI's nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm). Exits 1 when a kernel spills or uses a stack.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARCHITECTURES = ("sm_80", "sm_90")
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-fmad=false", "-Xptxas", "-v,-warn-spills", "-I" + ROOT]


def run(command, environment=None):
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")
    return result


def demangled(names):
    """Mangled names -> their function and template arguments, without namespaces and parameters."""
    lines = run(["c++filt", *names]).stdout.splitlines()
    short = (re.sub(r"pointsman::(cuda::)?|^void ", "", line) for line in lines)
    plain = (re.sub(r"\((?!int|bool|cuda)[^()]*\)$", "", name) for name in short)
    return dict(zip(names, (name.replace("(int)", "").replace("(bool)", "") for name in plain)))


# --- Registers, stack, spills ---

RESOURCES = re.compile(
    r"Compiling entry function '(\w+)' for '(\w+)'\n.*\n\s*(\d+) bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads\n.*?Used (\d+) registers")


def compile_source(nvcc, source, folder):
    """Name of the source, its object file and {kernel: {architecture: (registers, stack, spills)}}."""
    target = os.path.join(folder, os.path.basename(source) + ".o")
    code = [f"-gencode=arch={a.replace('sm', 'compute')},code={a}" for a in ARCHITECTURES]
    report = run([nvcc, *FLAGS, *code, "-c", source, "-o", target]).stderr
    found = [match for match in RESOURCES.findall(report) if "pointsman" in match[0]]  # the others are CUB's
    names = demangled([match[0] for match in found]) if found else {}
    kernels = {}
    for mangled, architecture, stack, stores, loads, registers in found:
        kernels.setdefault(names[mangled], {})[architecture] = int(registers), int(stack), int(stores) + int(loads)
    return os.path.basename(source), target, kernels


def resource_table(compiled):
    lines = ["| kernel | source | registers " + " / ".join(ARCHITECTURES) + " | stack, bytes | spills, bytes |",
             "|---|---|---|---|---|"]
    clean = True
    for source, _, kernels in compiled:
        for name, values in sorted(kernels.items()):
            columns = (" / ".join(str(values[a][k]) if a in values else "-" for a in ARCHITECTURES) for k in range(3))
            lines.append(f"| `{name}` | `{source}` | " + " | ".join(columns) + " |")
            clean = clean and all(stack == spills == 0 for _, stack, spills in values.values())
    return lines, clean


# --- Instructions of inner loops ---

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", re.MULTILINE)
Instruction = collections.namedtuple("Instruction", "address conditional opcode name target")
CLASSES = (("fp32", ("FFMA", "FADD", "FMUL")),
           ("compare, select", ("FMNMX", "FSEL", "FSETP", "SEL", "ISETP")), ("special", ("MUFU",)),
           ("shared or generic loads", ("LDS", "LD")), ("global loads", ("LDG",)),
           ("shuffles", ("SHFL",)), ("stores", ("STS", "STG", "ST")))


def instruction_of(address, text):
    words = text.split()
    conditional = words[0].startswith("@")
    opcode = words[conditional]
    # BRA.DIV branches only when the lanes have parted.
    target = re.search(r"0x([0-9a-f]+)$", text) if opcode == "BRA" else None
    return Instruction(int(address, 16), conditional, opcode, opcode.split(".")[0], target and int(target[1], 16))


def shortest_round(code, at, latch):
    """The fewest instructions from the target of code[latch] back to it: what one round of the loop costs when no
    branch into a rare case is taken."""
    paths = collections.deque([[at[code[latch].target]]])
    seen = set()
    while paths:
        path = paths.popleft()
        index, instruction = path[-1], code[path[-1]]
        if index == latch:
            return [code[place] for place in path]
        if index in seen:
            continue
        seen.add(index)
        ends = instruction.target is not None or instruction.name in ("EXIT", "RET")
        if index + 1 < len(code) and (instruction.conditional or not ends):
            paths.append([*path, index + 1])
        if instruction.target is not None:
            paths.append([*path, at[instruction.target]])
    return []


def inner_loops(code):
    """Rounds of the innermost loops, as lists of instructions."""
    at = {instruction.address: place for place, instruction in enumerate(code)}
    spans = [(at[instruction.target], place) for place, instruction in enumerate(code)
             if instruction.target is not None and instruction.target <= instruction.address]
    latches = [latch for first, latch in spans
               if not any((a, b) != (first, latch) and first <= a and b <= latch for a, b in spans)]
    return list(filter(None, (shortest_round(code, at, latch) for latch in latches)))


def recognised(loop, kernel):
    """Title and elements a round of the attention's loops and of the product; None for others."""
    names = [instruction.name for instruction in loop]
    if "HMMA" in names:
        # 1,024 fma a warp, of bf16 2,048; tf32x3 makes three of each.
        fma = sum(64 if ".BF16" in i.opcode else 32 for i in loop if i.name == "HMMA")
        return "product, tensor cores", fma // (3 if "(Precision)2" in kernel else 1)
    place = "shared" if any(i.opcode == "LDS.128" for i in loop) and "LDG" not in names else "device"
    if sum(i.opcode.startswith("MUFU.RCP") for i in loop) == 8 and "SHFL" in names:
        # Four items by a half-warp: 32 elements a lane, four of them joined over one division.
        if names.count("FFMA") > 300:
            return None  # the direct tanh
        return ("scores, capped, " if names.count("FMNMX") > 16 else "scores, ") + place, 32
    if (names.count("FFMA"), names.count("FADD"), names.count("MUFU")) == (32, 4, 0):
        return "readout, " + place, 32
    if (names.count("FFMA"), names.count("FADD"), names.count("MUFU")) == (16, 8, 0):
        return "readout, two elements a thread, " + ("device" if "LDG" in names else "shared"), 16
    products = {256: "gates", 128: "query"} if kernel.startswith("decode") else {256: "128 rows", 64: "32 rows"}
    if names.count("FFMA") in products and "MUFU" not in names:
        return "product, " + products[names.count("FFMA")], names.count("FFMA")
    return None


def code_of_source(name, compiled, cuobjdump, environment):
    """{kernel: [Instruction]} of a source for sm_90."""
    target = next(target for source, target, _ in compiled if source == name)
    _, *parts = re.split(r"Function : (\S+)", run([cuobjdump, "-sass", "-arch", "sm_90", target], environment).stdout)
    names = demangled(parts[::2])
    return {names[mangled]: [instruction_of(*match) for match in INSTRUCTION.findall(code)]
            for mangled, code in zip(parts[::2], parts[1::2])}


def loop_table(code):
    titles = [name for name, _ in CLASSES] + ["others", "all"]
    lines = ["Inner loops of the decode kernels and of the linear layers, sm_90: instructions a lane issues for one",
             "element (attention) or one fma (product). \"shared\" and \"device\" say where the references lie; a load is of 16 bytes, where an",
             "element is a thread's of 4.", "",
             "| kernel | loop | elements a round | " + " | ".join(titles) + " |",
             "|---|---|---|" + "---|" * len(titles)]
    rows, costs = {}, {}
    for kernel, instructions in code.items():
        for loop in inner_loops(instructions):
            found = recognised(loop, kernel)
            if found is None:
                continue
            title, elements = found
            if len(loop) / elements >= costs.get((kernel, title), float("inf")):
                continue  # the same work in fewer columns at a time
            costs[kernel, title] = len(loop) / elements
            counts = {name: sum(i.name in opcodes for i in loop) for name, opcodes in CLASSES}
            counts.update({"others": len(loop) - sum(counts.values()), "all": len(loop)})
            cells = " | ".join(f"{counts[name] / elements:.2f}" for name in titles)
            rows[kernel, title] = f"| `{kernel}` | {title} | {elements} | {cells} |"
    return lines + [rows[key] for key in sorted(rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write bench/results/tables/cuda_kernels.md")
    parser.add_argument("--tools", default="", help="folder of cuobjdump and nvdisasm")
    options = parser.parse_args()
    path = os.pathsep.join(filter(None, [options.tools, os.environ["PATH"], "/usr/local/cuda/bin"]))
    nvcc, cuobjdump = (shutil.which(tool, path=path) or sys.exit(f"no {tool} on the PATH") for tool in ("nvcc", "cuobjdump"))
    sources = sorted(glob.glob(os.path.join(ROOT, "kernels", "cuda", "*.cu")))
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = list(pool.map(lambda source: compile_source(nvcc, source, folder), sources))
        lines, clean = resource_table(compiled)
        version = re.search(r"release ([\d.]+)", run([nvcc, "--version"]).stdout).group(1)
        lines = ["<!-- Made by: python3 bench/kernel_table.py --write -->", "# What nvcc makes of the CUDA kernels", "",
                 f"nvcc {version}. No kernel has static shared memory; docs/kernels.md lists the dynamic.", "", *lines, ""]
        lines += loop_table({kernel: code for source in ("decode.cu", "decode_cluster.cu", "linear.cu") for kernel, code
                             in code_of_source(source, compiled, cuobjdump, {**os.environ, "PATH": path}).items()})
    text = "\n".join(lines)
    print(text)
    if options.write:
        target = os.path.join(ROOT, "bench", "results", "tables", "cuda_kernels.md")
        with open(target, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
