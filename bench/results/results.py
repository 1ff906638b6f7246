#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes bench/results/tables: a file for each problem and size. A table holds the rows of bench/results/evaluate.sh, each
beside the paper's number where there is one. docs/results.md says what the columns mean.

    python3 bench/results/results.py                            the rows that are kept in bench/results/eval
    python3 bench/results/results.py OUTPUT --tables FOLDER     other rows, elsewhere

The same rows make the same bytes. Exit code 3: a file holds something else than such rows.
"""
import argparse
import gzip
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("name mode model improve samples temperature mean_cost gap gap_ci95 instances ms_per_instance threads "
          "problem n model_sha256 device seed version").split()
VALIDATION = "validation.npy"  # the set on which evaluate.sh searches T*

# --- The paper: Bello et al., Neural Combinatorial Optimization with Reinforcement Learning, 2017 ---

# Table 2 (TSP, mean tour length) and Table 5 (KnapSack, mean value).
OPTIMAL = {("tsp", 20): 3.82, ("tsp", 50): 5.68, ("tsp", 100): 7.77,
           ("knapsack", 50): 20.07, ("knapsack", 100): 40.50, ("knapsack", 200): 57.45}
GREEDY = {("tsp", 20): 3.89, ("tsp", 50): 5.95, ("tsp", 100): 8.30,
          ("knapsack", 50): 19.86, ("knapsack", 100): 40.27, ("knapsack", 200): 57.10}
GREEDY_OF_16 = {("tsp", 50): 5.80, ("tsp", 100): 7.97}
# What else the two tables hold: (name, mode of the row that is the same, None: nothing here is).
RIVALS = {("tsp", 20): [("Christofides", None, 4.30), ("OR-Tools' local search", None, 3.85)],
          ("tsp", 50): [("Christofides", None, 6.62), ("OR-Tools' local search", None, 5.80)],
          ("tsp", 100): [("Christofides", None, 9.18), ("OR-Tools' local search", None, 7.99)],
          ("knapsack", 50): [("random search", "random", 17.91), ("ratio greedy", "ratio", 19.24)],
          ("knapsack", 100): [("random search", "random", 33.23), ("ratio greedy", "ratio", 38.53)],
          ("knapsack", 200): [("random search", "random", 35.95), ("ratio greedy", "ratio", 55.42)]}
# Table 4: after so many tours sampling at T = 1, at T*, and active search.
SEARCH = {("tsp", 50): {128: (5.80, 5.80, 5.80), 1280: (5.77, 5.75, 5.76), 12800: (5.75, 5.73, 5.74),
                        128000: (5.73, 5.71, 5.72), 1280000: (5.72, 5.70, 5.70)},
          ("tsp", 100): {128: (8.05, 8.09, 8.04), 1280: (8.00, 8.00, 7.98), 12800: (7.95, 7.95, 7.92),
                         128000: (7.92, 7.91, 7.87), 1280000: (7.89, 7.88, 7.83)}}


def paper_cell(row):
    """(mean cost, table) of the paper's row of the same strategy and as many tours; None where it has none."""
    key = row["problem"], row["n"]
    if row["improve"]:
        return None
    if row["mode"] in ("sample", "active") and row["samples"] in SEARCH.get(key, {}):
        column = 2 if row["mode"] == "active" else 0 if row["temperature"] == 1 else 1
        return SEARCH[key][row["samples"]][column], 4
    costs = {mode: cost for _, mode, cost in RIVALS.get(key, [])}
    costs["exact"] = OPTIMAL.get(key)
    costs["greedy"] = GREEDY.get(key) if row["samples"] == 1 else GREEDY_OF_16.get(key) if models_of(row) == 16 else None
    cost = costs.get(row["mode"])
    return None if cost is None else (cost, 2 if key[0] == "tsp" else 5)


def paper_text(key, cost, table):
    # Two decimals of the cost leave 0.1% of a tour and 0.02% of a value unknown.
    if key[0] == "tsp":
        return f"{cost:.2f} ({100 * (cost / OPTIMAL[key] - 1):.1f}%), table {table}"
    return f"{cost:.2f} ({100 * (1 - cost / OPTIMAL[key]):.2f}%), table {table}"


# --- Rows ---


def models_of(row):
    return len(row["model"].split(",")) if row["model"] else 0


def model_text(row):
    return f"{models_of(row)} models" if models_of(row) > 1 else row["model"] or "-"


def read_rows(folder):
    """All rows but those of the search for T*. A rival without a network that is in two files counts once."""
    rows, rivals = [], set()
    for path in sorted(folder.glob("*.jsonl*")):
        text = gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row = json.loads(line)
            except ValueError:
                fail(f"{path}:{number}: expected a row of eval --format ndjson, found {line[:40]!r}")
            missing = [key for key in NEEDED if not isinstance(row, dict) or key not in row]
            if missing:
                fail(f"{path}:{number}: expected a row of eval --format ndjson, found no {', '.join(missing)}")
            rival = row["problem"], row["n"], row["name"], row["instances"], row["device"]
            if row.get("set") == VALIDATION or (not row["model"] and rival in rivals):
                continue
            rows.append(row)
            if not row["model"]:
                rivals.add(rival)
    if not rows:
        fail(f"{folder}: expected rows of eval in *.jsonl or *.jsonl.gz, found none")
    return rows


def fail(message):
    print(f"results.py: error: {message}", file=sys.stderr)
    sys.exit(3)


# --- Tables ---


def strategy_text(row):
    text = row["name"]
    if row["temperature"] != 1 and "+t" not in text:
        text += f"+t{row['temperature']:g}"
    status = row.get("status", "done").replace("_", " ")
    return f"`{text}`" + (f" ({status})" if status != "done" else "")


def interval(mean, half, factor, places):
    if mean is None:
        return "-"
    shown = round(factor * mean, places) + 0.0  # no "-0.000" of a rounding
    return f"{shown:.{places}f}" + ("" if half is None else f" ± {factor * half:.{places}f}")


def time_text(milliseconds):
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def cells(row, columns):
    paper = paper_cell(row)
    values = {"strategy": strategy_text(row), "model": model_text(row),
              "tours": f"{row['samples']:,}", "instances": f"{row['instances']:,}",
              "mean length": f"{row['mean_cost']:.4f}", "mean value": f"{row['mean_cost']:.4f}",
              "gap (%)": interval(row["gap"], row["gap_ci95"], 100, 3),
              "short by": interval(row.get("shortfall"), row.get("shortfall_ci95"), 1, 4),
              "ms": time_text(row["ms_per_instance"]), "threads": str(row["threads"]),
              "device": row["device"], "paper": paper_text((row["problem"], row["n"]), *paper) if paper else "-"}
    return [values[column] for column in columns]


def table(columns, lines):
    left = ("strategy", "model", "device", "paper")
    rule = [":--" if column in left else "--:" for column in columns]
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, rule, *lines]) + "\n"


def columns_of(rows, without=()):
    """Of a table for these rows: what differs between the problems, and the device where there are two."""
    costs = ["mean length", "gap (%)"] if rows[0]["problem"] == "tsp" else ["mean value", "gap (%)", "short by"]
    devices = ["device"] if len({row["device"] for row in rows}) > 1 else []
    columns = ["strategy", "model", "tours", "instances", *costs, "ms", "threads", *devices, "paper"]
    return [column for column in columns if column not in without]


def source_text(rows):
    """Which devices, seeds and programs the rows come from."""
    texts = [", ".join(one + str(value) for value in sorted({row[key] for row in rows}, key=str))
             for key, one in (("device", ""), ("seed", "seed "), ("version", "version "))]
    return "Measured on " + "; ".join(texts) + ".\n"


def weights_text(rows):
    """The weights that the rows were measured with, by the first digits of their sha256."""
    weights = sorted({f"{model_text(row)} `{row['model_sha256'][:8]}…`" for row in rows if row["model_sha256"]})
    return f"Weights: {', '.join(weights)}.\n" if weights else ""


def page(key, rows, source):
    """One problem and size: networks, then rivals, each beside the paper's."""
    networks = [row for row in rows if row["model"]]
    rivals = [row for row in rows if not row["model"]]
    text = f"<!-- Made by: python3 bench/results/results.py {source} -->\n"
    text += f"# {'TSP' if key[0] == 'tsp' else 'KnapSack'}, n = {key[1]}\n"
    text += "\n[docs/results.md](../../../docs/results.md) says what the columns mean.\n"
    if networks:
        columns = columns_of(networks)
        text += "\n" + table(columns, [cells(row, columns) for row in networks])
    columns = columns_of(rows, without=("model",))
    lines = [cells(row, columns) for row in rivals]
    if key in OPTIMAL:
        here = {row["mode"] for row in rivals}
        for name, mode, cost in (*RIVALS[key], ("optimum", "exact", OPTIMAL[key])):
            if mode not in here:
                paper = paper_text(key, cost, 2 if key[0] == "tsp" else 5)
                lines.append([name, *["-"] * (len(columns) - 2), paper])
    if lines:
        text += "\nWithout a network:\n\n" + table(columns, lines)
    return text + "\n" + source_text(rows) + weights_text(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="OUTPUT", nargs="?", help="of evaluate.sh",
                        default=ROOT / "bench/results/eval")
    parser.add_argument("--tables", type=pathlib.Path, default=ROOT / "bench/results/tables", help="their folder")
    options = parser.parse_args()
    rows = read_rows(options.folder)
    folder = options.folder.resolve()
    source = folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else options.folder
    options.tables.mkdir(parents=True, exist_ok=True)
    for key in {(row["problem"], row["n"]) for row in rows}:
        text = page(key, [row for row in rows if (row["problem"], row["n"]) == key], source)
        name = f"{'tsp' if key[0] == 'tsp' else 'knap'}{key[1]}.md"
        (options.tables / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
