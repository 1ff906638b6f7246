# SPDX-License-Identifier: Apache-2.0
"""What the pages show of rivals.py's rows: gap against CPU time for each size, and which methods lie on the front."""
import math
import statistics
import textwrap

import rows as files

SETS = {"tsp20_test": ("tsp", 20), "tsp50_test": ("tsp", 50), "tsp100_test": ("tsp", 100), "tsp200": ("tsp", 200),
        "tsp500": ("tsp", 500), "tsp1000": ("tsp", 1000), "knap50_test": ("knapsack", 50),
        "knap100_test": ("knapsack", 100), "knap200_test": ("knapsack", 200)}
TITLES = {"tsp": "TSP", "knapsack": "KnapSack"}
WHOLE = 1000  # instances of a batch
WALL_CAP = 200  # seconds for a search of OR-Tools that is limited by its solutions
OURS = "Pointsman: "  # so begin the names of the methods that are no rivals
FLOOR = 1e-4  # percent: where the picture shows smaller gaps


def last_rows(path):
    """The last row of each method, setting, set and way to solve."""
    return {(row["method"], row.get("setting"), row.get("set"), row.get("batch", 0) > 1): row for row in files.read(path)}


def mean_gap(row, count=None):
    return statistics.fmean(row["gaps"][:count])


def gap_text(row):
    found = files.statistics_of(row["gaps"])
    half = math.nan if found["gap_ci95"] is None else 100 * found["gap_ci95"]
    return f"{100 * found['gap'] + 0.0:.4f} ± {half:.4f}"


def dominates(a, b):
    """At least as fast and as good as b, and better in one of the two, on the instances that both solved."""
    count = min(len(a["gaps"]), len(b["gaps"]))
    better = [(a["cpu_ms"], b["cpu_ms"]), (mean_gap(a, count), mean_gap(b, count))]
    return all(x <= y for x, y in better) and any(x < y for x, y in better)


def front(rows):
    """The rows that no other dominates, the fastest first."""
    return sorted((row for row in rows if not any(dominates(other, row) for other in rows)), key=lambda row: row["cpu_ms"])


def name_of(row):
    return f"{row['method']} ({row['setting']})"


def point_text(row):
    return f"{name_of(row)}: {100 * mean_gap(row):.4f}% in {row['cpu_ms']:.3g} ms"


def front_text(alone, batches):
    """The fronts in words, first what of them is not ours. A method without batches stands in theirs as it is alone."""
    batched = {name_of(row) for row in batches}
    fronts = {"one at a time": front(alone), "in batches": front(batches + [row for row in alone if name_of(row) not in batched])}
    lines = []
    for how, rows in fronts.items():
        others = [point_text(row) for row in rows if not row["method"].startswith(OURS)]
        lines.append(f"Other solvers on the front, {how}: " + ("; ".join(others) or "none") + ".")
    for how, rows in fronts.items():
        lines.append(f"The front, {how}, fastest first: " + "; ".join(point_text(row) for row in rows) + ".")
    return "\n".join(f"{textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False)}\n" for line in lines)


def size_text(alone, batches):
    """The fronts and the table of a size."""
    if not alone:
        return "Not measured yet.\n"
    batched = {name_of(row): row for row in batches}
    lines = ["| method | setting | version | instances | gap (%) | CPU ms, alone | in batches |",
             "| :-- | :-- | :-- | --: | --: | --: | --: |"]
    for row in sorted(alone, key=lambda row: (row["method"], row["cpu_ms"])):
        batch = batched.get(name_of(row))
        cell = f"{batch['cpu_ms']:.3g}" + (f" (of {batch['batch']})" if batch["batch"] != WHOLE else "") if batch else "-"
        lines.append(f"| {row['method']} | {row['setting']} | {row['version']} | {row['instances']} | {gap_text(row)} | "
                     f"{row['cpu_ms']:.3g} | {cell} |")
    return front_text(alone, batches) + "\n" + "\n".join(lines) + "\n"


def draw(pyplot, path, title, alone, batches):
    axes = pyplot.figure(figsize=(9, 5.5), layout="constrained").add_subplot()
    names = list(dict.fromkeys(row["method"] for row in alone))
    styles = [(marker, f"C{i}") for marker in "osD^" for i in range(10)]
    for rows, how in (alone, {"linestyle": "-"}), (batches, {"linestyle": ":", "markerfacecolor": "none"}):
        for name, (marker, colour) in zip(names, styles):
            points = sorted((row["cpu_ms"] / 1e3, max(100 * mean_gap(row), FLOOR)) for row in rows if row["method"] == name)
            if points:
                wide = 2.2 if name.startswith(OURS) else 1
                label = name if rows is alone else None
                axes.plot(*zip(*points), marker=marker, color=colour, linewidth=wide, markersize=5, label=label, **how)
    axes.set(xscale="log", yscale="log", xlabel="CPU seconds an instance, one core (hollow: in batches)",
             ylabel=f"mean gap (%), {FLOOR:g} and less at the bottom", title=title)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, bbox_to_anchor=(1.02, 1), loc="upper left")
    axes.figure.savefig(path, metadata={"Date": None})
    pyplot.close(axes.figure)


def rows_of(rows, problem, n):
    """Those of one size: (one at a time, in batches)."""
    here = [row for row in rows.values() if "gaps" in row and (row["problem"], row["n"]) == (problem, n)]
    return [row for row in here if row["batch"] == 1], [row for row in here if row["batch"] > 1]


def missing_text(rows):
    """What did not run, and the machine of what did."""
    rows = rows.values()
    ran, machines = {row["method"] for row in rows if "gaps" in row}, {row["machine"] for row in rows if "gaps" in row}
    lines = [f"- Skipped: {row['method']}: {row['skipped']}." for row in rows if "skipped" in row and row["method"] not in ran]
    lines += [f"- Failed: {name_of(row)}, {row['set']}: {' '.join(row['error'].split())}" for row in rows if "error" in row]
    lines += [f"- Measured on {', '.join(sorted(machines))}."] * bool(machines)
    return "".join(f"{line}\n" for line in lines)


def plane(options):
    """A picture a size in options.folder, from the rows of options.output."""
    from matplotlib import pyplot, rcParams  # pylint: disable=import-outside-toplevel
    rcParams["svg.hashsalt"] = "rivals"
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = last_rows(options.output)
    for problem, n in SETS.values():
        alone, batches = rows_of(rows, problem, n)
        if alone:
            draw(pyplot, options.folder / f"plane_{problem}{n}.svg", f"{TITLES[problem]}, n = {n}", alone, batches)
