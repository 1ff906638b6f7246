#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole truth about the CUDA half on a machine that has a GPU: builds, tests, sanitizes, measures, and leaves one
report. Needs nvcc, CMake, a C++20 compiler and python3; no network.

  build      the program, its CUDA module, the device tests and the benches, Release
  test       the CUDA tests on the GPU; the same tours from the same seeds on cuda and cpu
  sanitize   compute-sanitizer's four tools on the cases tagged [race]
  bench      every operation beside its floor, the LSTM beside cuDNN, the engine's calls
  torch      PyTorch's twin on the same GPU: eager, as CUDA graphs, compiled
  train      a minute and a half of training, with a checkpoint

Without stages: build test sanitize bench. A stage that fails or runs out of its time stops no other, and a stage named
again replaces its part of the report, so that `check.py torch train` goes on where the first call ended.
"""
import argparse
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from report import text_of, write_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = {"build": 300, "test": 90, "sanitize": 120, "bench": 260, "torch": 400, "train": 150}
MACHINE = r"""date -u '+%Y-%m-%d %H:%M UTC'
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit --format=csv 2>/dev/null ||
  echo "no nvidia-smi"
nvcc --version 2>&1 | grep release
cmake --version | head -n 1
c++ --version | head -n 1
git rev-parse HEAD 2>/dev/null
lscpu | grep -E 'Model name|^CPU\(s\)'"""


class OutOfTime(Exception):
    pass


class Stage:
    """One stage: what its commands leave, as STAGE.rows and STAGE.log, until its time is over."""

    def __init__(self, name, state, build, seconds):
        self.build = build
        self.end = time.monotonic() + seconds
        self.rows = open(state / f"{name}.rows", "w", buffering=1, encoding="utf-8")
        self.log = open(state / f"{name}.log", "w", buffering=1, encoding="utf-8")

    def row(self, name, variant, **more):
        print(json.dumps({"name": name, "variant": variant, "n": 0, "batch": 0, **more}), file=self.rows)

    def row_of_code(self, name, variant, code):
        self.row(name, variant, **{"pass": code == 0, "error": f"exit code {code}"})
        return code

    def run(self, *command, output=None):
        """The exit code. What it prints goes to the log, or to `output`."""
        left = self.end - time.monotonic()
        if left < 1:
            raise OutOfTime
        code = subprocess.run(["timeout", "--kill-after=5", f"{left:.0f}", *map(str, command)], cwd=ROOT,
                              stdin=subprocess.DEVNULL, stdout=output or self.log, stderr=self.log, check=False).returncode
        if code in (124, 137):
            raise OutOfTime
        return code

    def measure(self, program, *words):
        """Runs a program that prints rows; says so in a row when it fails."""
        print("---", self.build / program, *words, "---", file=self.log)
        code = self.run(self.build / program, *words, output=self.rows)
        return code and self.row_of_code("failed", " ".join([pathlib.Path(program).name, *words]), code)

    def bench_engine(self, *names):
        return self.measure("host/pointsman", "bench", *names, "--device", "cuda", "--format", "ndjson")


def build(stage, dependencies):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("no nvcc", file=stage.log)
        return 1
    flags = [f"-DCMAKE_CUDA_COMPILER={nvcc}"]
    if dependencies:
        flags += [f"-DCMAKE_PREFIX_PATH={dependencies}", f"-Dhwy_DIR={dependencies}/lib/x86_64-linux-gnu/cmake/hwy"]
    try:
        import nvidia  # NVIDIA's Python packages hold cuBLAS and cuDNN where the toolkit comes without
        packages = list(nvidia.__path__)
    except ImportError:
        packages = []
    has_cublas = glob.glob(str(pathlib.Path(nvcc).resolve().parents[1] / "**/cublas_v2.h"), recursive=True)
    for package in packages:
        if os.path.exists(f"{package}/cudnn/include/cudnn.h"):
            flags.append(f"-DPOINTSMAN_CUDNN={package}/cudnn")
        if not has_cublas and os.path.exists(f"{package}/cu13/include/cublas_v2.h"):
            os.environ["CPLUS_INCLUDE_PATH"] = f"{package}/cu13/include"
            flags += [f"-DCUDA_cublas_LIBRARY={package}/cu13/lib/libcublas.so.13",
                      f"-DCUDA_cublasLt_LIBRARY={package}/cu13/lib/libcublasLt.so.13"]
    if shutil.which("ninja"):
        flags += ["-G", "Ninja"]
    return (stage.run("cmake", "-S", ROOT, "-B", stage.build, "-DCMAKE_BUILD_TYPE=Release", "-DPOINTSMAN_CUDA=ON",
                      "-DPOINTSMAN_BUILD_BENCH=ON", *flags) or
            stage.run("cmake", "--build", stage.build, "--parallel", os.cpu_count(), "--target", "pointsman",
                      "pointsman_cuda", "test_cuda_device", "pointsman_bench", "bench_operations") or
            stage.run(stage.build / "host/pointsman", "info", "--device", "cuda"))


def test(stage):
    same = stage.bench_engine("compare")
    code = stage.run(stage.build / "tests/kernels/cuda/test_cuda_device", "--durations", "yes")
    return stage.row_of_code("device_tests", "test_cuda_device", code) or bool(same)


def sanitize(stage):
    if shutil.which("compute-sanitizer") is None:
        stage.row("sanitize", "compute-sanitizer", skipped="no compute-sanitizer")
        return 0
    codes = []
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        print("---", tool, "---", file=stage.log)
        code = stage.run("compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                         stage.build / "tests/kernels/cuda/test_cuda_device", "[race]")
        codes.append(stage.row_of_code("sanitize", tool, code))
    return max(codes)


def bench(stage):
    codes = [stage.measure("bench/bench_operations", part) for part in ("decode", "training")]
    codes.append(stage.bench_engine("sample", "greedy", "train", "active"))
    codes.append(stage.measure("bench/bench_operations", "lstm"))
    return any(codes)


def train(stage):
    folder = stage.build / "gpu_check/training"
    folder.mkdir(exist_ok=True)
    return (stage.run(stage.build / "host/pointsman", "train", "tsp", "-n", "50", "--device", "cuda", "--batch-size", "512",
                      "--time-limit", "90", "--log", folder / "log.jsonl", "--checkpoint", folder / "tsp50.ckpt",
                      "--output", folder / "tsp50.safetensors", "--force") or
            stage.run("tail", "-n", "3", folder / "log.jsonl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="stage")
    parser.add_argument("--dependencies", type=pathlib.Path, help="headers and libraries of collect_dependencies.sh, "
                        "where the packages are not installed")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-cuda", help="build tree (default: build-cuda)")
    parser.add_argument("--output", type=pathlib.Path, help="where report.md, rows.jsonl and the stages' logs go (default: "
                        "report in the build tree)")
    parser.add_argument("--limit", type=float, default=570, metavar="SECONDS", help="for the whole call (default: 570)")
    options = parser.parse_args()
    stages = options.stages or ["build", "test", "sanitize", "bench"]
    if not set(stages) <= set(SECONDS):
        parser.error("the stages are " + ", ".join(SECONDS))
    dependencies = options.dependencies and options.dependencies.resolve(strict=True)
    run = {"build": lambda stage: build(stage, dependencies), "test": test, "sanitize": sanitize, "bench": bench,
           "torch": lambda stage: stage.bench_engine("torch"), "train": train}
    tree = options.build.resolve()
    state = tree / "gpu_check"  # a stage's rows, log and result, until the report is made of them
    state.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] += ":/usr/local/cuda/bin"
    machine = subprocess.run(["bash", "-c", MACHINE], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    begin = time.monotonic()
    failed = False
    for name in stages:
        start = time.monotonic()
        allowed = min(SECONDS[name], round(begin + options.limit - start))
        print(f"{name}: at most {allowed} s", flush=True)
        code = 124
        try:
            if allowed > 0:
                code = int(run[name](Stage(name, state, tree, allowed)))
        except OutOfTime:
            pass
        seconds = round(time.monotonic() - start)
        result = {"stage": name, "code": code, "seconds": seconds, "limit": allowed}
        (state / f"{name}.result").write_text(json.dumps(result) + "\n", encoding="utf-8")
        print(f"{name}: exit code {code} after {seconds} s", flush=True)
        if code:
            failed = True
            print(*text_of(state / f"{name}.log").splitlines()[-5:], sep="\n")
    output = options.output or tree / "report"
    write_report(machine, state, output)
    print(f"report: {output}/report.md; {time.monotonic() - begin:.0f} s in all")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
