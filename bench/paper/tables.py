#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of docs/paper.md, docs/results.md and docs/rivals.md.

    python3 bench/paper/tables.py                                  from the rows that are kept in bench/results/paper
    python3 bench/paper/tables.py --rows OUTPUT --pages FOLDER     from other rows, into copies of the pages

The rows are those of cells.py, rivals.py and train.sh. In a page the text between `<!-- table: NAME -->` and `<!-- end -->`
is replaced. The same rows make the same bytes. Exit code 3: a file holds something else than such rows.
"""
import argparse
import functools
import pathlib
import re
import sys

import cells
import paper_numbers as paper
import plane
import rows as files

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("docs/paper.md", "docs/results.md", "docs/rivals.md")
NETWORKS = {"lstm": "paper's network", "best": "best network"}
MISSING = "–"


def fail(message):
    print(f"tables.py: error: {message}", file=sys.stderr)
    sys.exit(3)


# --- Text of a cell ---


def interval(row, places):
    """Gap in percent, its 95% interval, and the instances."""
    if row is None:
        return MISSING
    gap = round(100 * row["gap"], places) + 0.0  # no "-0.00" of a rounding
    half = "" if row["gap_ci95"] is None else f" ± {100 * row['gap_ci95']:.{places}f}"
    return f"{gap:.{places}f}{half} ({row['instances']:,})"


def with_samples(row, places):
    text = interval(row, places)
    return text[:-1] + f"; {row['samples']:,})" if row and row["samples"] > 1 else text


def paper_gap(problem, n, costs):
    key = problem, n
    places = 1 if problem == "tsp" else 2
    return f"{round(paper.gap(key, costs[key]), places) + 0.0:.{places}f}" if key in costs else MISSING


def seconds_text(seconds):
    """Or milliseconds: two digits, or all of a whole number."""
    return MISSING if seconds is None else f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.2g}"


def table(columns, lines, left=1):
    """Markdown; the first `left` columns hold words."""
    rule = [":--"] * left + ["--:"] * (len(columns) - left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, rule, *lines]) + "\n"


# --- Rivals, by the paper's names for them ---

RIVALS = {"Christofides": ("Christofides (LEMON)", "no budget"),
          "OR-Tools' local search": ("OR-Tools local search", "from path cheapest arc"),
          "Concorde": ("Concorde", "exact"), "LK-H": ("LKH (elkai)", "1 run")}


def named_rivals(rows):
    """Rows by (name, n), those of Table 6 by (name, n, solutions)."""
    found = {}
    names = {how: name for name, how in RIVALS.items()}
    for (method, setting, _, batched), row in rows.items():
        solutions = re.match(r"([\d,]+) solutions?,", setting or "")
        if batched or "gaps" not in row or row["problem"] != "tsp":
            continue
        row = row | files.statistics_of(row["gaps"]) | {"ms_per_instance": row["cpu_ms"], "samples": 1}
        if solutions:
            found[method.removeprefix("OR-Tools "), row["n"], int(solutions[1].replace(",", ""))] = row
        elif (method, setting) in names:
            found[names[method, setting], row["n"]] = row
    return found


# --- The tables ---


class Tables:
    def __init__(self, folder):
        self.best = cells.best_rows(files.read(folder / "cells.jsonl"))
        self.planes = plane.last_rows(folder / "rivals.jsonl")
        self.rivals = named_rivals(self.planes)
        if not self.best:
            fail(f"{folder}: expected rows of cells.py in cells.jsonl, found none")

    def row(self, problem, n, network, strategy):
        return cells.row_of(self.best, cells.Cell(problem, n, network, strategy))

    def longest(self, problem, n, network, search):
        """The row with the most solutions of those that ten instances or more were measured with. `search`: mode, and what
        follows the number."""
        counts = cells.SCRATCH if "scratch" in search[1] else cells.SAMPLES
        rows = [self.row(problem, n, network, f"{search[0]}+{count}{search[1]}") for count in counts]
        return next((row for row in reversed(rows) if row and row["instances"] >= 10), None)

    def searched(self, strategy, problem, n, network):
        """A row of Table 2 or 5."""
        views = {mode: cells.views(network, mode) if problem == "tsp" else "" for mode in ("sample", "active")}
        searches = {"samples": ("sample", views["sample"] + "+t*"), "active search": ("active", views["active"]),
                    "active search from fresh parameters": ("active", "+scratch")}
        if strategy in searches:
            return self.longest(problem, n, network, searches[strategy])
        names = {"supervised": "greedy+supervised", "greedy, best of 16 models": "greedy+16models"}
        return self.row(problem, n, network, names.get(strategy, strategy))

    def table2(self):
        strategies = {"supervised": paper.SUPERVISED, "greedy": paper.GREEDY, "greedy, best of 16 models": paper.GREEDY_OF_16,
                      "samples": paper.SAMPLING, "active search": paper.ACTIVE_SEARCH,
                      "active search from fresh parameters": paper.FROM_SCRATCH}
        rivals = {"Christofides": paper.CHRISTOFIDES, "OR-Tools' local search": paper.LOCAL_SEARCH}
        lines = []
        for strategy, costs in strategies.items():
            line = [strategy]
            for n in (20, 50, 100):
                line.append(paper_gap("tsp", n, costs))
                for network in NETWORKS:
                    line.append(with_samples(self.searched(strategy, "tsp", n, network), 2))
            lines.append(line)
        for rival, costs in rivals.items():
            line = [rival]
            for n in (20, 50, 100):
                line += [paper_gap("tsp", n, costs), *[interval(self.rivals.get((rival, n)), 2)] * 2]
            lines.append(line)
        sizes = [f"{n}: {column}" for n in (20, 50, 100) for column in ("paper", *NETWORKS.values())]
        return table(["TSP, gap in %", *sizes], lines)

    def table3(self):
        lines = []
        for name, seconds in paper.SECONDS.items():
            line = [name]
            for n, theirs in zip((50, 100), seconds):
                line.append(seconds_text(theirs))
                strategy = {"greedy": "greedy", "greedy of 16 models": "greedy+16models"}.get(name)
                for network in NETWORKS:
                    row = self.row("tsp", n, network, strategy) if strategy else self.rivals.get((name, n))
                    line.append(seconds_text(row and row["ms_per_instance"] / 1000))
            lines.append(line)
        sizes = [f"{n}: {column}" for n in (50, 100) for column in ("paper", *NETWORKS.values())]
        return table(["seconds an instance", *sizes], lines)

    def search_cell(self, n, network, search, count):
        """A cell of Table 4. Where it was not measured: the seconds that a smaller count predicts."""
        mode, star = search
        rows = {other: self.row("tsp", n, network, f"{mode}+{other}{cells.views(network, mode)}{star}") for other in cells.SAMPLES}
        if rows[count]:
            return interval(rows[count], 2)[:-1] + f"; {seconds_text(rows[count]['ms_per_instance'] / 1000)} s)"
        smaller = [(other, row["ms_per_instance"] / 1000) for other, row in rows.items() if row and other < count]
        return f"{MISSING} ({seconds_text(smaller[-1][1] * count / smaller[-1][0])} s)" if smaller else MISSING

    def table4(self, n):
        lines = []
        searches = {"T = 1": ("sample", ""), "T*": ("sample", "+t*"), "active search": ("active", "")}
        for count in cells.SAMPLES:
            line = [f"{count:,}"]
            for i, search in enumerate(searches.values()):
                line.append(f"{paper.gap(('tsp', n), paper.SEARCH[n][count][i]):.1f} ({paper.SEARCH_SECONDS[n][count][i]:g} s)")
                line += [self.search_cell(n, network, search, count) for network in NETWORKS]
            lines.append(line)
        columns = [f"{search}: {column}" for search in searches for column in ("paper", *NETWORKS.values())]
        return table(["solutions", *columns], lines, left=0)

    def table5(self):
        rows = {"greedy": ("greedy", paper.GREEDY), "greedy, first misfit ends": ("greedy+misfit", {}),
                "samples": ("sample+1280", {}),
                "samples, first misfit ends": ("sample+1280+misfit", {}),
                "active search from fresh parameters": ("active search from fresh parameters", paper.FROM_SCRATCH),
                "random search": ("random+640000", paper.RANDOM), "by value per weight": ("ratio", paper.RATIO)}
        lines = []
        for name, (strategy, costs) in rows.items():
            line = [name]
            for n in cells.SIZES["knapsack"]:
                line.append(paper_gap("knapsack", n, costs))
                for network in NETWORKS:
                    own = "" if strategy.split("+")[0] in ("random", "ratio") else network
                    line.append(with_samples(self.searched(strategy, "knapsack", n, own), 3))
            lines.append(line)
        sizes = [f"{n}: {column}" for n in cells.SIZES["knapsack"] for column in ("paper", *NETWORKS.values())]
        return table(["KnapSack, gap in %", *sizes], lines)

    def table6(self):
        lines = []
        for n, searches in paper.METAHEURISTICS.items():
            for name, costs in searches.items():
                line = [f"{n}, {name}"]
                for count, cost in zip((1, *cells.SAMPLES), costs):
                    found = interval(self.rivals.get((name, n, count)), 2)
                    line.append(f"{paper.gap(('tsp', n), cost):.1f} / {found}")
                lines.append(line)
        return table(["paper / here, gap in %", *[f"{count:,}" for count in (1, *cells.SAMPLES)]], lines)

    def grid(self, star):
        """The validation rows of a search for its best value."""
        word, values = cells.GRIDS[star]
        lines = []
        for n in cells.SIZES["tsp"]:
            for network in NETWORKS:
                cell = cells.Cell("tsp", n, network, f"sample+1280{cells.views(network, 'sample')}+{star}")
                rows = [self.best.get((cell._replace(strategy=cells.grid_strategy(cell, f"{word}{value:g}")), "validation"))
                        for value in values]
                theirs = [f"{paper.TEMPERATURE[n]:g}"] if star == "t*" else []
                lines.append([cells.name_of("tsp", n, network), *[interval(row, 3).split(" (")[0] for row in rows], *theirs])
        names = [f"{'T' if star == 't*' else 'S'} = {value:g}" for value in values]
        return table(["gap in %", *names, *(["paper's T*"] if star == "t*" else [])], lines)

    def noise(self):
        lines = []
        for n in cells.SIZES["tsp"]:
            for network in NETWORKS:
                names = [f"sample+1280{cells.views(network, 'sample')}{star}" for star in ("+noise*", "", "+t*")]
                lines.append([cells.name_of("tsp", n, network), *[interval(self.row("tsp", n, network, name), 3) for name in names]])
        return table(["gap in % of 1,280", "perturbed greedy tours, best S", "samples, T = 1", "samples, T*"], lines)

    def short_cell(self, problem, n, network, strategy):
        row = self.row(problem, n, network, strategy)
        return f"{100 * row['gap']:.3f} ({seconds_text(row['ms_per_instance'])}; {row['instances']:,})" if row else MISSING

    def short(self, problem):
        """The summary of docs/results.md: gap, milliseconds an instance, instances."""
        tsp = {"one greedy tour": "greedy", "best greedy tour of 8 symmetries": "greedy+x8",
               "1,280 samples of 8 symmetries at T*": "sample+1280+x8{orders}+t*",
               "1,280 samples of 8 symmetries, then local search": "sample+1280+x8+improve",
               "active search of 12,800 tours": "active+12800{views}"}
        knapsack = {"one greedy packing": "greedy", "1,280 samples": "sample+1280"}
        sizes, lines = cells.SIZES[problem], []
        for network, title in NETWORKS.items():
            for name, strategy in (tsp if problem == "tsp" else knapsack).items():
                strategy = strategy.format(orders="+shuffle" if network == "lstm" else "", views=cells.views(network, "active"))
                lines.append([f"{title}, {name}", *[self.short_cell(problem, n, network, strategy) for n in sizes]])
        rivals = {"local search, n kicks": "local+{0}", "local search, 10 n kicks": "local+{0}0"} if problem == "tsp" else {
            "by value per weight": "ratio", "exact": "exact"}
        for name, strategy in rivals.items():
            lines.append([f"no network: {name}", *[self.short_cell(problem, n, "", strategy.format(n)) for n in sizes]])
        lines.append(["paper, greedy", *[paper_gap(problem, n, paper.GREEDY) for n in sizes]])
        return table(["gap in % (ms; instances)", *[f"n = {n}" for n in sizes]], lines)

    def larger(self):
        names = ("one greedy tour", "best greedy tour of 8 symmetries", "1,280 samples of 8 symmetries at T = 0.35",
                 "1,280 samples of 8 symmetries, then local search", "no network: local search, 10 n kicks")
        lines = [[name, self.short_cell(*cell)] for name, cell in zip(names, cells.larger_cells(), strict=True)]
        return table(["gap in % (ms; instances)", "`tsp200`"], lines)

    def size(self, problem, n):
        """Of docs/rivals.md, with the picture that `rivals.py plane` draws."""
        alone, batches = plane.rows_of(self.planes, problem, n)
        picture = f"\n![Gap against CPU time, {plane.TITLES[problem]}, n = {n}](images/plane_{problem}{n}.svg)\n" if alone else ""
        return plane.size_text(alone, batches) + picture

    def blocks(self):
        """What makes each table, by its name in the pages."""
        found = {"2": self.table2, "3": self.table3, "4, n = 50": lambda: self.table4(50), "4, n = 100": lambda: self.table4(100),
                 "5": self.table5, "6": self.table6, "temperatures": lambda: self.grid("t*"), "noise grid": lambda: self.grid("noise*"),
                 "noise": self.noise, "short TSP": lambda: self.short("tsp"), "short KnapSack": lambda: self.short("knapsack"),
                 "200": self.larger, "missing rivals": lambda: plane.missing_text(self.planes)}
        for problem, n in plane.SETS.values():
            found[f"plane {plane.TITLES[problem]} {n}"] = functools.partial(self.size, problem, n)
        return found


# --- Pages ---


def filled(text, blocks, path):
    def replace(match):
        if match[1] not in blocks:
            fail(f"{path}: no table {match[1]!r}; there are: {', '.join(blocks)}")
        return f"<!-- table: {match[1]} -->\n{blocks[match[1]]()}<!-- end -->"
    return re.sub(r"<!-- table: (.*?) -->\n.*?<!-- end -->", replace, text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=pathlib.Path, default=ROOT / "bench/results/paper", metavar="OUTPUT")
    parser.add_argument("--pages", type=pathlib.Path, default=ROOT, metavar="FOLDER", help="for their docs")
    options = parser.parse_args()
    blocks = Tables(options.rows).blocks()
    for page in PAGES:
        target = options.pages / page
        text = filled((ROOT / page).read_text(encoding="utf-8"), blocks, page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
