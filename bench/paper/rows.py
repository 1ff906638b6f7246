# SPDX-License-Identifier: Apache-2.0
"""Rows of measurements, a JSON object a line, in a file that outlives an interrupted run."""
import json
import math
import statistics


def read(path):
    """A torn line is no row."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            pass
    return rows


def append(path, row):
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with open(path, "ab", buffering=0) as file:
        file.write(b"\n" * bool(torn) + json.dumps(row).encode() + b"\n")


def machine():
    """The processor's name."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def statistics_of(gaps):
    """Mean and half the width of its 95% interval; null for one instance."""
    half = 1.96 * statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None
    return {"gap": statistics.fmean(gaps), "gap_ci95": half}
