#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rehearses bench/gpu/check.sh without a GPU: the emulated CUDA module, with a hang, a sticky error and a slow part planted.

    python3 tests/cuda_emulation/rehearse_check.py BUILD

BUILD is a build tree with the emulated module and its tests. `pointsman bench compare` and the device tests run on the
module; the other parts of the bench, which need a GPU's speed, are stand-ins that print a row. The report must have all
rows but the planted ones, within five minutes. Exit code 1 when it has not.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG, STICKY = "planted: a kernel that hangs", "planted: an error that stays"
# Names of cases, a name each: what Catch2 2 prints for --list-test-names-only.
TESTS = """#!/bin/bash
test={tests}/test_cuda_sums_emulated
case $1 in
  --list-tests) echo "All available test cases:" ;;
  --list-test-names-only) "$test" --list-test-names-only; echo "{hang}"; echo "{sticky}" ;;
  "{hang}") sleep 1000 ;;
  "{sticky}") echo "an illegal memory access was encountered"; exit 1 ;;
  *) exec "$test" "$1" ;;
esac
"""
LSTM = """#!/bin/bash
echo '{"name": "stand_in", "variant": "lstm", "n": 20, "batch": 8, "ms": 1.0, "per_second": 8000}'
sleep 1000
"""
ENCODER = """#!/bin/bash
echo '{"name": "stand_in", "variant": "encoder", "n": 20, "batch": 8, "ms": 1.0, "per_second": 8000}'
"""
PROGRAM = """#!/bin/bash
export POINTSMAN_CUDA_MODULE={module}/libpointsman_cuda.so LD_LIBRARY_PATH={module}
case "$1 $2" in
  "bench compare") exec {program} "$@" --small ;;
  "bench "*) echo '{{"name": "stand_in", "variant": "'"$2 ${{@: -5:1}}"'", "n": 20, "batch": 8, "ms": 1.0}}' ;;
  "eval "*) echo '{{"name": "stand_in", "variant": "2opt", "n": 20, "instances": 8}}' ;;
  *) exec {program} "$@" ;;
esac
"""


def plant(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def faults(report, rows, seconds):
    failed = {row["variant"] for row in rows if row.get("pass") is False}
    passed = [row for row in rows if row.get("pass") is True]
    timed = [row for row in rows if row["name"] == "stand_in"]
    if failed != {HANG, STICKY, "bench_lstm"}:
        yield f"failed rows: {sorted(failed)}"
    if sum(row["name"] == "same_tours" for row in passed) != 6:
        yield "not 6 rows of same_tours"
    if sum(row["name"] == "device_tests" for row in passed) < 4:
        yield "fewer than 4 device tests passed"
    if len(timed) != 13:  # 4 calls of each encoder, the LSTM (it hangs after its row), the encoder, 2opt at 3 sizes
        yield f"{len(timed)} rows of the bench's stand-ins, expected 13"
    if "checks: device_tests" not in report:
        yield "report.md has no line for device_tests"
    if seconds > 300:
        yield f"{seconds:.0f} s, more than five minutes"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    emulated = build / "tests" / "cuda_emulation"
    with tempfile.TemporaryDirectory() as scratch:
        folder, output = pathlib.Path(scratch) / "tree", pathlib.Path(scratch) / "report"
        plant(folder, "tests/kernels/cuda/test_cuda_device", TESTS.format(tests=emulated, hang=HANG, sticky=STICKY))
        plant(folder, "bench/bench_lstm", LSTM)
        plant(folder, "bench/bench_encoder", ENCODER)
        plant(folder, "host/pointsman", PROGRAM.format(module=emulated / "module", program=build / "host" / "pointsman"))
        start = time.monotonic()
        run = subprocess.run([ROOT / "bench/gpu/check.sh", "--build", folder, "--output", output, "compare", "test", "bench"],
                             env={**os.environ, "TMPDIR": scratch}, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start
        rows = [json.loads(line) for line in (output / "rows.jsonl").read_text().splitlines()]
        found = list(faults((output / "report.md").read_text(), [row for row in rows if "variant" in row], seconds))
    if run.returncode == 0:
        found.append("check.sh exits with 0 although parts failed")
    print(f"{len(rows)} rows in {seconds:.0f} s", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
