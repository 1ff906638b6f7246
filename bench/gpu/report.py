#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one report of what bench/gpu/check.sh's stages left.

    python3 bench/gpu/report.py STATE OUTPUT

STATE: per stage STAGE.rows (JSON lines, other lines are ignored), STAGE.log, STAGE.result, and machine.txt.
OUTPUT gets report.md, rows.jsonl and the end of each log.
"""
import json
import os
import sys

STAGES = ("build", "compare", "test", "bench", "sanitize", "torch", "train", "profile")
LOG_BYTES = 1 << 20  # the end of a log that is kept
SIZES = (20, 50, 100)
# Of docs/kernels.md: a step of the encoder and of the decoder with its barriers, and of each of the two backward.
CHAIN_STEP_MS = (2.3 + 2.4 + 0.7 + 2.2 + 2.2) / 1000
LSTM = ("lstm_infer", "lstm_keep", "lstm_backward")
COLUMNS = {"name": "name", "variant": "variant", "encoder": "encoder", "n": "n", "batch": "batch", "ms": "ms", "spread": "spread",
           "floor_ms": "floor, ms", "bound": "bound by", "of_floor": "floor / ms", "per_second": "a second"}


def text_of(path, last_bytes=None):
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - last_bytes) if last_bytes else 0)
        return file.read().decode("utf-8", "replace")


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


def read_state(folder):
    results, rows = [], []
    for stage in STAGES:
        results += read_rows(os.path.join(folder, stage + ".result"))
        rows += [{"stage": stage, **row} for row in read_rows(os.path.join(folder, stage + ".rows"))]
    return results, rows


def table(titles, rows):
    return ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles),
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def number(value):
    if not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class Rows:
    """Rows by name, with the time of one of them at hand."""

    def __init__(self, rows):
        self.rows = rows

    def of(self, name, n=None, batch=None, key="ms"):
        return [row for row in self.rows if row.get("name") == name and n in (None, row.get("n")) and
                batch in (None, row.get("batch")) and key in row]

    def best(self, name, n, batch, starts, holds=""):
        """The fastest of the variants whose name starts so and holds that, with the LSTM encoder; None without one."""
        found = [row for row in self.of(name, n, batch) if row["variant"].startswith(starts) and holds in row["variant"]
                 and row.get("encoder", "lstm") == "lstm"]
        return min(found, key=lambda row: row["ms"], default=None)


def ratio(theirs, ours):
    """How many times as long theirs takes; None where one of the two is missing."""
    return theirs["ms"] / ours["ms"] if theirs and ours else None


# --- The numbers that must be shown: what, value, its bound, how that is written ---


def judged(what, value, least, bar=None, text=None):
    bar = bar or f">= {least:g}"
    if value is None:
        return what, "not measured", bar, "-"
    return what, text or number(value), bar, "yes" if value >= least else "no"


def judge_checks(rows):
    for name in ("same_tours", "device_tests", "sanitize", "lstm_equal", "same_as_torch", "failed"):
        found = rows.of(name, key="pass")
        if found:
            passed = sum(bool(row["pass"]) for row in found)
            yield judged(f"checks: {name}", passed, len(found), bar="all", text=f"{passed} of {len(found)}")


def judge_floors(rows):
    for n in SIZES:
        for what, name, least_batch, of in (("sampling, the best batch", "decode_sample", 0, max),
                                            ("greedy tours of 10,000 instances", "greedy", 10000, min),
                                            ("training steps of 1,024 instances and more", "train_step", 1024, min),
                                            ("active search from 132 instances on", "active_step", 132, min)):
            shares = [row["of_floor"] for row in rows.of(name, n, key="of_floor")
                      if row["batch"] >= least_batch and row.get("precision", "fp32") == "fp32"]
            yield judged(f"{what}, n = {n}, of the floor", of(shares, default=None), 0.5)


def judge_chain(rows):
    """No bar: dependent steps take longer than the arithmetic whose floor the other rows are judged by."""
    for n in SIZES:
        for row in rows.of("train_step", n, 128, key="of_floor"):
            yield (f"training step of 128 instances, n = {n}, ms", number(row["ms"]),
                   f"none: half of the floor is out of reach; chain of 4 n steps: {CHAIN_STEP_MS * n:.2g} predicted", "-")


def judge_sampling(rows):
    for n in SIZES:
        for variant in ("eager", "compiled"):
            times = ratio(rows.best("search_sample", n, 65536, "torch_" + variant),
                          rows.best("search_sample", n, 65536, "cuda"))
            yield judged(f"sampling against PyTorch {variant}, n = {n}", times, 20, bar=">= 20x")


def judge_lstm(rows):
    for name in LSTM:
        ratios = [(ratio(rows.best(name, n, batch, "cudnn", "_fp32"), rows.best(name, n, batch, "ours")), n, batch)
                  for n in SIZES for batch in (16, 128, 1024, 4096)]
        found = sorted(entry for entry in ratios if entry[0]) or [(None, 0, 0)]
        worst, n, batch = found[0]
        yield judged(f"{name} against the best cuDNN fp32, batch 16 .. 4,096", worst, 1.3, bar=">= 1.3x everywhere",
                     text=worst and f"{worst:.2f} (n = {n}, batch {batch}) .. {found[-1][0]:.2f}")


# --- The page ---


def best_cudnn(rows):
    lines = []
    for name in LSTM:
        for ours in (row for row in rows.of(name) if row["variant"] == "ours"):
            cells = []
            for holds in ("_fp32", ""):
                peer = rows.best(name, ours["n"], ours["batch"], "cudnn", holds)
                cells += [f"{peer['variant']} {number(peer['ms'])}", f"{ratio(peer, ours):.2f}"] if peer else ["-", "-"]
            lines.append((name, ours["n"], ours["batch"], number(ours["ms"]), *cells))
    titles = ("name", "steps", "batch", "ours, ms", "best cuDNN fp32, ms", "ratio", "best cuDNN, TF32 too, ms", "ratio")
    return ["## LSTM beside cuDNN", "", *table(titles, lines)] if lines else []


def note(row):
    if "skipped" in row:
        return "skipped: " + str(row["skipped"]).replace("|", "/").replace("\n", " ")
    if "pass" in row:
        return ("passed" if row["pass"] else "FAILED") + (f", error {number(row['error'])}" if "error" in row else "")
    return ", ".join(f"{key} {number(value)}" for key, value in row.items() if key not in ("stage", "runs", *COLUMNS))


def all_rows(rows):
    return table((*COLUMNS.values(), "note"), [(*(number(row.get(key)) for key in COLUMNS), note(row)) for row in rows])


def page(machine, results, rows):
    found = Rows(rows)
    judgements = [line for judge in (judge_checks, judge_floors, judge_chain, judge_sampling, judge_lstm)
                  for line in judge(found)]
    total = sum(result["seconds"] for result in results)
    return ["# GPU report", "", "```", machine.strip(), "```", "",
            "ms: median of the runs; spread: (most - least) / median; floor: docs/kernels.md, from the fma peak and copy",
            "rate measured in the same run.", "",
            f"## Stages, {total} s in all", "",
            *table(("stage", "exit code", "seconds", "limit"),
                   [(r["stage"], f"{r['code']} (out of time)" if r["code"] in (124, 137) else r["code"], r["seconds"],
                     r["limit"]) for r in results]),
            "## What must be shown", "", *table(("what", "measured", "bar", "met"), judgements),
            *best_cudnn(found), "## All rows", "", *all_rows(rows)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    state, output = sys.argv[1:]
    results, rows = read_state(state)
    os.makedirs(output, exist_ok=True)
    files = {stage + ".log": text_of(os.path.join(state, stage + ".log"), LOG_BYTES) for stage in STAGES}
    files["report.md"] = "\n".join(page(text_of(os.path.join(state, "machine.txt")), results, rows))
    files["rows.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    for name, text in files.items():
        if text:
            with open(os.path.join(output, name), "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
