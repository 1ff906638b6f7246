#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one report of what bench/gpu/check.sh's stages left.

    python3 bench/gpu/report.py STATE OUTPUT

STATE: per stage STAGE.rows (JSON lines, other lines are ignored), STAGE.log, STAGE.result, and machine.txt.
OUTPUT gets report.md, rows.jsonl and the end of each log.
"""
import json
import pathlib
import sys

STAGES = ("build", "compare", "test", "bench", "sanitize", "torch", "profile")
LOG_BYTES = 1 << 20  # the end of a log that is kept
COLUMNS = {"name": "name", "variant": "variant", "encoder": "encoder", "n": "n", "batch": "batch", "ms": "ms", "spread": "spread",
           "floor_ms": "floor, ms", "bound": "bound by", "of_floor": "floor / ms", "per_second": "a second"}


def text_of(path):
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def read_rows(path):
    rows = []
    for line in text_of(path).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # a build's output, or a line cut off at the time limit
        if isinstance(row, dict):
            rows.append(row)
    return rows


def table(titles, rows):
    return ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles),
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def number(value):
    if not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def checks(rows):
    """A line for each name of rows that pass or fail: how many passed."""
    passes = {}
    for row in rows:
        if "pass" in row:
            passes.setdefault(row["name"], []).append(bool(row["pass"]))
    return [(f"checks: {name}", f"{sum(found)} of {len(found)}") for name, found in passes.items()]


def beside_cudnn(rows):
    """Our LSTM's rows, each beside the fastest of cuDNN's variants in fp32, and of all."""
    lines = []
    timed = [row for row in rows if row.get("name") in ("lstm_infer", "lstm_keep", "lstm_backward") and "ms" in row]
    for ours in (row for row in timed if row["variant"] == "ours"):
        cells = []
        for holds in ("_fp32", ""):
            peers = [row for row in timed if row["variant"].startswith("cudnn") and holds in row["variant"] and
                     all(row[key] == ours[key] for key in ("name", "n", "batch"))]
            best = min(peers, key=lambda row: row["ms"], default=None)
            cells += [f"{best['variant']} {number(best['ms'])}", f"{best['ms'] / ours['ms']:.2f}"] if best else ["-", "-"]
        lines.append((ours["name"], ours["n"], ours["batch"], number(ours["ms"]), *cells))
    titles = ("name", "steps", "batch", "ours, ms", "best cuDNN fp32, ms", "ratio", "best cuDNN, TF32 too, ms", "ratio")
    return ["## LSTM beside cuDNN", "", *table(titles, lines)] if lines else []


def note(row):
    if "skipped" in row:
        return "skipped: " + str(row["skipped"]).replace("|", "/").replace("\n", " ")
    if "pass" in row:
        return ("passed" if row["pass"] else "FAILED") + (f", error {number(row['error'])}" if "error" in row else "")
    return ", ".join(f"{key} {number(value)}" for key, value in row.items() if key not in ("stage", "runs", *COLUMNS))


def page(machine, results, rows):
    return ["# GPU report", "", "```", machine.strip(), "```", "",
            "ms: median of the runs; spread: (most - least) / median; floor: docs/kernels.md, from the fma peak and copy",
            "rate measured in the same run.", "",
            f"## Stages, {sum(result['seconds'] for result in results)} s in all", "",
            *table(("stage", "exit code", "seconds", "limit"),
                   [(r["stage"], f"{r['code']} (out of time)" if r["code"] in (124, 137) else r["code"], r["seconds"],
                     r["limit"]) for r in results]),
            "## Checks", "", *table(("what", "passed"), checks(rows)), *beside_cudnn(rows), "## All rows", "",
            *table((*COLUMNS.values(), "note"), [(*(number(row.get(key)) for key in COLUMNS), note(row)) for row in rows])]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    state, output = map(pathlib.Path, sys.argv[1:])
    results = [row for stage in STAGES for row in read_rows(state / f"{stage}.result")]
    rows = [{"stage": stage, **row} for stage in STAGES for row in read_rows(state / f"{stage}.rows")]
    output.mkdir(parents=True, exist_ok=True)
    files = {f"{stage}.log": text_of(state / f"{stage}.log")[-LOG_BYTES:] for stage in STAGES}
    files["report.md"] = "\n".join(page(text_of(state / "machine.txt"), results, rows))
    files["rows.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    for name, text in files.items():
        if text:
            (output / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
