#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/paper.md from the rows of cells.py: sorted ratios, gaps against samples, sample tours.

    POINTSMAN=PROGRAM python3 bench/paper/pictures.py OUTPUT FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import cells
from pointsman import plot
from tables import NETWORKS, Tables

STRATEGIES = {"greedy": "greedy", "1,280 samples, T*": "sample+1280{}+t*", "active search, 12,800 tours": "active+12800{}"}


def draw(axes, path):
    """Nothing where there are no rows yet."""
    if axes is None:
        return
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    figure.savefig(path, metadata={"Date": None})


def ratios(tables, n, scratch):
    files, labels = [], []
    for network, title in NETWORKS.items():
        for name, strategy in STRATEGIES.items():
            row = tables.row("tsp", n, network, strategy.format(cells.views(network, strategy.split("+")[0])))
            if row:
                files.append(scratch / f"{len(files)}.ndjson")
                files[-1].write_text("".join(json.dumps({"problem": "tsp", "gap": gap}) + "\n" for gap in row["gaps"]), encoding="utf-8")
                labels.append(f"{title}, {name} ({row['instances']:,})")
    return plot.ratio(*files, labels=labels) if files else None


def samples(tables, n, scratch):
    rows = []
    for network in NETWORKS:
        for mode, star in ("sample", ""), ("sample", "+t*"), ("active", ""):
            rows += [tables.row("tsp", n, network, f"{mode}+{count}{cells.views(network, mode)}{star}") for count in cells.SAMPLES]
    # The sets differ only by their number of instances. Fewer than ten say little of the gap.
    rows = [{**row, "set": "", "device": ""} for row in rows if row and row["instances"] >= 10]
    if not rows:
        return None
    (scratch / "rows.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return plot.progress(scratch / "rows.ndjson", log_y=True)


def tours(n, folder, scratch):
    """The first instance of the set."""
    instances, one = folder / f"sets/tsp{n}_test.ndjson", scratch / "one.ndjson"
    if not instances.exists():
        return None
    one.write_text(instances.read_text(encoding="utf-8").splitlines(True)[0], encoding="utf-8")
    searches = {"paper's network, greedy": ["-m", f"tsp{n}-lstm", "--mode", "greedy"],
                "paper's network, 1,280 samples": ["-m", f"tsp{n}-lstm", "--mode", "sample"],
                "best network, greedy": ["-m", f"tsp{n}", "--mode", "greedy"],
                "local search": ["--mode", "local", "--kicks", str(50 * n)]}
    files = []
    for flags in searches.values():
        files.append(scratch / f"{len(files)}.tour.json")
        subprocess.run([os.environ["POINTSMAN"], "solve", one, *flags, "-q", "-f", "-o", files[-1]], check=True)
    return plot.tour(one, *files, labels=list(searches))


def main():
    folder, target = map(pathlib.Path, sys.argv[1:3])
    target.mkdir(parents=True, exist_ok=True)
    tables = Tables(folder)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for n in 50, 100:
            draw(ratios(tables, n, scratch), target / f"paper_ratios_n{n}.svg")
            draw(tours(n, folder, scratch), target / f"paper_tours_n{n}.svg")
        draw(samples(tables, 100, scratch), target / "paper_samples.svg")


if __name__ == "__main__":
    main()
