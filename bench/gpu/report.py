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

STAGES = ("build", "test", "sanitize", "bench", "torch", "train")
LOG_BYTES = 1 << 20  # the end of a log that is kept
SIZES = (20, 50, 100)


def read_rows(path):
    rows = []
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
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

    def of(self, bench, n=None, batch=None, timed=True):
        return [row for row in self.rows if row.get("bench") == bench and n in (None, row.get("n")) and
                batch in (None, row.get("batch")) and (not timed or "ms" in row)]

    def best(self, bench, n, batch, starts, holds=""):
        """The fastest of the variants whose name starts so and holds that; None without one."""
        found = [row for row in self.of(bench, n, batch) if row["variant"].startswith(starts) and holds in row["variant"]]
        return min(found, key=lambda row: row["ms"], default=None)


# --- The numbers that must be shown ---


def judged(what, value, bar, met):
    return what, value, bar, "yes" if met else "no"


def missing(what, bar):
    return what, "not measured", bar, "-"


def judge_checks(rows):
    for bench in ("same_tours", "device_tests", "sanitize", "lstm_equal", "same_as_torch", "failed"):
        found = [row for row in rows.of(bench, timed=False) if "pass" in row]
        if found:
            passed = sum(bool(row["pass"]) for row in found)
            yield judged(f"checks: {bench}", f"{passed} of {len(found)}", "all", passed == len(found))


def judge_sampling(rows):
    for n, floor in zip(SIZES, (17e6, 6.0e6, 2.5e6)):
        what, bar = f"sampling, fp32, n = {n}, million tours/s", f">= {0.4 * floor / 1e6:.1f} (40% of {floor / 1e6:g})"
        rates = [row["tours_per_second"] for row in rows.of("decode_sample", n) if row["precision"] == "fp32"]
        yield judged(what, number(max(rates) / 1e6), bar, max(rates) >= 0.4 * floor) if rates else missing(what, bar)
    for n in SIZES:
        ours = rows.best("search_sample", n, 65536, "cuda")
        for variant, least in (("eager", 10), ("compiled", 5)):
            what, bar = f"sampling against PyTorch {variant}, n = {n}", f">= {least}x"
            theirs = rows.best("search_sample", n, 65536, "torch_" + variant)
            if ours and theirs:
                yield judged(what, number(theirs["ms"] / ours["ms"]), bar, theirs["ms"] >= least * ours["ms"])
            else:
                yield missing(what, bar)


def judge_times(rows):
    limits = [("greedy of 10,000 instances, device time", "greedy", 100, 10000, 10.0)]
    limits += [("train step, batch 128", "train_step", n, 128, ms) for n, ms in zip(SIZES, (0.25, 0.5, 1.0))]
    for title, bench, n, batch, most in limits:
        what, bar = f"{title}, n = {n}, ms", f"<= {most:g}"
        row = rows.best(bench, n, batch, ("ours", "cuda"))
        yield judged(what, number(row["ms"]), bar, row["ms"] <= most) if row else missing(what, bar)


def judge_active(rows):
    for n in SIZES:
        what, bar = f"active search from 132 instances on, n = {n}, of the floor", ">= 0.35"
        shares = [row["of_floor"] for row in rows.of("active_step", n) if row["batch"] >= 132 and "of_floor" in row]
        yield judged(what, number(min(shares)), bar, min(shares) >= 0.35) if shares else missing(what, bar)


def judge_lstm(rows):
    for bench in ("lstm_infer", "lstm_keep", "lstm_backward"):
        for least, batches in ((1.3, (16,)), (2.0, (128, 1024, 8192, 65536))):
            what = f"{bench} against the best cuDNN fp32, batch {batches[0]}" + (" and more" if len(batches) > 1 else "")
            ratios = []
            for n in SIZES:
                for batch in batches:
                    ours, theirs = rows.best(bench, n, batch, "ours"), rows.best(bench, n, batch, "cudnn", "_fp32")
                    if ours and theirs:
                        ratios.append((theirs["ms"] / ours["ms"], n, batch))
            bar = f">= {least}x everywhere"
            if ratios:
                worst, n, batch = min(ratios)
                yield judged(what, f"{worst:.2f} (n = {n}, batch {batch}) .. {max(ratios)[0]:.2f}", bar, worst >= least)
            else:
                yield missing(what, bar)


# --- The page ---


def best_cudnn(rows):
    lines = []
    for bench in ("lstm_infer", "lstm_keep", "lstm_backward"):
        for row in rows.of(bench):
            if row["variant"] != "ours":
                continue
            theirs = rows.best(bench, row["n"], row["batch"], "cudnn")
            fastest = rows.best(bench, row["n"], row["batch"], "cudnn", "_fp32")
            lines.append((bench, row["n"], row["batch"], number(row["ms"]),
                          f"{fastest['variant']} {number(fastest['ms'])}" if fastest else "-",
                          f"{fastest['ms'] / row['ms']:.2f}" if fastest else "-",
                          f"{theirs['variant']} {number(theirs['ms'])}" if theirs else "-",
                          f"{theirs['ms'] / row['ms']:.2f}" if theirs else "-"))
    if not lines:
        return []
    return ["## LSTM beside cuDNN", "",
            *table(("bench", "steps", "batch", "ours, ms", "best cuDNN fp32, ms", "ratio", "best cuDNN, TF32 too, ms",
                    "ratio"), lines)]


def note(row):
    if "skipped" in row:
        return "skipped: " + str(row["skipped"]).replace("|", "/").replace("\n", " ")
    if "pass" in row:
        return ("passed" if row["pass"] else "FAILED") + (f", error {number(row['error'])}" if "error" in row else "")
    known = {"stage", "bench", "variant", "n", "batch", "ms", "spread", "runs", "floor_ms", "bound", "of_floor",
             "tours_per_second", "instance_steps_per_second"}
    return ", ".join(f"{key} {number(value)}" for key, value in row.items() if key not in known)


def all_rows(rows):
    lines = []
    for row in rows:
        rate = row.get("tours_per_second", row.get("instance_steps_per_second"))
        lines.append((row.get("bench"), row.get("variant"), row.get("n", ""), row.get("batch", ""), number(row.get("ms")),
                      number(row.get("spread")), number(row.get("floor_ms")), row.get("bound", ""),
                      number(row.get("of_floor")), number(rate), note(row)))
    return table(("bench", "variant", "n", "batch", "ms", "spread", "floor, ms", "bound by", "floor / ms",
                  "a second", "note"), lines)


def page(machine, results, rows):
    found = Rows(rows)
    judgements = [line for judge in (judge_checks, judge_sampling, judge_times, judge_active, judge_lstm)
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
    machine = ""
    if os.path.exists(os.path.join(state, "machine.txt")):
        with open(os.path.join(state, "machine.txt"), encoding="utf-8") as file:
            machine = file.read()
    os.makedirs(output, exist_ok=True)
    with open(os.path.join(output, "report.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page(machine, results, rows)))
    with open(os.path.join(output, "rows.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    for stage in STAGES:
        path = os.path.join(state, stage + ".log")
        if not os.path.exists(path):
            continue
        with open(path, "rb") as log:
            log.seek(max(0, os.path.getsize(path) - LOG_BYTES))
            text = log.read()
        with open(os.path.join(output, stage + ".log"), "wb") as file:
            file.write(text)


if __name__ == "__main__":
    main()
