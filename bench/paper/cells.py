#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cells of the paper's tables with the paper's network (tsp50-lstm, ..) and with the best (tsp50, ..).

    python3 bench/paper/cells.py OUTPUT [--minutes M] [--pointsman PROGRAM] [--models FOLDER]

OUTPUT gets the instances (sets/) and cells.jsonl: a row for each run of a strategy on the first 1, 10, 100 or 1,000 instances.
Cells are first measured on one instance, then on more, the cheapest first. A run that would not fit into M minutes takes
fewer instances, or is left for a later call with the same OUTPUT. Rows of other weights of shipped models do not count.

A strategy is named as in `pointsman eval`, with more words: `noise0.5` (solve --noise), `misfit` (--stop-at-first-misfit),
`scratch` (active search from fresh parameters), and of the models that train.sh put into FOLDER `supervised` (one of them,
before its policy gradient) and `16models` (the best of all). The paper's network searches as in the paper; the best network
also reads the 8 symmetries of the square. `t*` and `noise*` are the best of a grid on 30 other instances.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import time

import rows as files

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {"tsp": (20, 50, 100), "knapsack": (50, 100, 200)}
NETWORKS = ("lstm", "best")
GRIDS = {"t*": ("t", (0.35, 0.5, 0.7, 1, 1.5, 2)), "noise*": ("noise", (0.25, 0.5, 1, 2))}
COUNTS = (1, 10, 100, 1000)
SAMPLES = (128, 1280, 12800, 128000, 1280000)
SCRATCH = tuple(128 * steps for steps in (50, 500, 5000))  # solutions from fresh parameters, 128 a step

Cell = collections.namedtuple("Cell", "problem n network strategy")  # network: of NETWORKS, or "" for none


def name_of(problem, n, network=""):
    return f"{'knap' if problem == 'knapsack' else problem}{n}" + ("-lstm" if network == "lstm" else "")


def number_in(strategy):
    """Its samples, kicks or solutions; 1 where it names none."""
    return next((int(word) for word in strategy.split("+") if word.isdigit()), 1)


def views(network, mode):
    """How a search reads a TSP: attention reads all input orders alike."""
    return "+x8" if network == "best" else "+shuffle" if mode == "active" else ""


def objective(solution):
    return solution["cost"] if solution["problem"] == "tsp" else solution["value"]


# --- What is measured ---


def tsp_cells(n):
    cells = [Cell("tsp", n, "", f"local+{kicks}") for kicks in (0, n, 10 * n)] + [Cell("tsp", n, "", "random+1280")]
    for network in NETWORKS:
        sample, active = views(network, "sample"), views(network, "active")
        both = "+x8" if network == "best" else "+x8+shuffle"
        names = ["greedy", "greedy+x8", f"sample+1280{both}+t*", "sample+1280+x8+improve", f"sample+1280{sample}+noise*"]
        names += [f"sample+{count}{sample}{tuned}" for count in SAMPLES for tuned in ("", "+t*")]
        names += [f"active+{count}{active}" for count in SAMPLES]
        names += [f"active+{count}+scratch" for count in SCRATCH]
        cells += [Cell("tsp", n, network, name) for name in dict.fromkeys(names)]
    return cells


def larger_cells():
    """Beyond the paper's sizes."""
    names = ("greedy", "greedy+x8", "sample+1280+x8+t0.35", "sample+1280+x8+improve")
    return [Cell("tsp", 200, "best", name) for name in names] + [Cell("tsp", 200, "", "local+2000")]


def knapsack_cells(n):
    cells = [Cell("knapsack", n, "", strategy) for strategy in ("exact", "ratio", "random+640000")]
    for network in NETWORKS:
        names = ["greedy", "greedy+misfit", "sample+1280", "sample+1280+misfit"]
        names += [f"active+{count}+scratch" for count in SCRATCH]
        cells += [Cell("knapsack", n, network, name) for name in names]
    return cells


def trained_cells(folder):
    """Of the sizes and networks that train.sh has finished."""
    found = [Cell("tsp", n, network, f"greedy+{word}") for n in SIZES["tsp"] for network in NETWORKS for word in ("supervised", "16models")]
    return [cell for cell in found if all(path.exists() for path in trained_models(folder, cell))]


def trained_models(folder, cell):
    stage, seeds = ("supervised", [1]) if "supervised" in cell.strategy else ("final", range(1, 17))
    return [folder / f"{name_of(*cell[:3])}_{stage}_{seed}.safetensors" for seed in seeds]


def all_cells():
    tsp, knapsack = map(SIZES.get, ("tsp", "knapsack"))
    return [cell for n in tsp for cell in tsp_cells(n)] + larger_cells() + [cell for n in knapsack for cell in knapsack_cells(n)]


# --- Rows ---


def key_of(row):
    return Cell(row["problem"], row["n"], row["network"], row["name"]), row["set"].split(".")[0]


def best_rows(rows):
    """Of each cell and set the row with the most instances, the last of as many. Rows of replaced weights do not count."""
    best, weights = {}, {row["model"]: row["model_sha256"] for row in rows}  # the last ones
    for row in rows:
        if row["model_sha256"] == weights[row["model"]] and row["instances"] >= best.get(key_of(row), row)["instances"]:
            best[key_of(row)] = row
    return best


def tuned(best, cell):
    """The strategy with the grid's best value in place of its star; None while the grid is not measured."""
    star = next((word for word in cell.strategy.split("+") if word in GRIDS), None)
    if star is None:
        return cell.strategy
    word, values = GRIDS[star]
    found = []
    for value in values:
        strategy = grid_strategy(cell, f"{word}{value:g}")
        row = best.get((cell._replace(strategy=strategy), "validation"))
        if row is None:
            return None
        found.append((row["mean_cost"], value))
    setting = f"{word}{min(found)[1]:g}"
    return cell.strategy.replace(f"+{star}", "" if setting == "t1" else f"+{setting}")  # T = 1 is no setting


def grid_strategy(cell, setting):
    copies = "+x8" if "x8" in cell.strategy.split("+") else ""
    return f"sample+1280{copies}+{setting}"


def row_of(best, cell):
    """Of the test set, with the grid's best value; None where there is none yet."""
    strategy = tuned(best, cell)
    return strategy and best.get((cell._replace(strategy=strategy), "test"))


# --- Runs ---


class Measurer:
    def __init__(self, options):
        self.program, self.folder, self.models = options.pointsman, options.output, options.models
        self.deadline = time.monotonic() + 60 * options.minutes
        (self.folder / "sets").mkdir(parents=True, exist_ok=True)
        self.shas = {}
        self.about = json.loads(self.call("info", "--format", "json"))
        kept = files.read(self.folder / "cells.jsonl")
        self.best = best_rows([row for row in kept if row["model_sha256"] == self.sha(row["model"])])

    def call(self, *arguments):
        command = [self.program, *map(str, arguments)]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if run.returncode != 0:
            sys.exit(f"cells.py: exit code {run.returncode}: {' '.join(command)}")
        return run.stdout

    def sha(self, model):
        if model and model not in self.shas:
            self.shas[model] = json.loads(self.call("info", model, "--format", "json"))["model"]["sha256"]
        return self.shas.get(model)

    def make_set(self, problem, n, which, count):
        """The first instances of a set: "test", the community's (numpy.random.seed(1234)), or "validation", 30 others."""
        path = self.folder / f"sets/{name_of(problem, n)}_{which}.ndjson"
        if not path.exists():
            like = ["-b", 1000, "-s", 1234, "--like", "numpy"] if which == "test" else ["-b", 30, "-s", 4321]
            self.call("generate", problem, "-n", n, *like, "-o", path, "-q")
        first = path.with_name(f"first{count}_{path.name}")
        optima = first.with_suffix(".opt.txt")
        if not optima.exists():
            first.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:count]), encoding="utf-8")
            exact = ["--mode", "exact"] if problem == "knapsack" else ["--mode", "local", "--kicks", 50 * n]
            answer = json.loads(self.call("solve", first, *exact, "--device", "cpu", "--format", "json", "-q"))
            part = optima.with_suffix(".part")
            part.write_text("".join(f"{objective(solution)!r}\n" for solution in answer["solutions"]), encoding="utf-8")
            part.rename(optima)
        return first, optima

    def fresh_model(self, cell):
        """The paper's network before training, made by one step that changes nothing."""
        path = self.folder / f"sets/fresh_{name_of(*cell[:3])}.safetensors"
        if not path.exists():
            self.call("train", cell.problem, "-n", cell.n, "--encoder", "lstm", "--prior", "off", "-b", 2, "--rollouts", 2,
                      "--steps", 1, "--learning-rate", 1e-9, "--validation-every", 10, "--device", "cpu", "-o", path, "-q")
        return path

    def arguments(self, cell, strategy):
        """The arguments of `solve`."""
        mode, *words = strategy.split("+")
        found = ["--mode", mode]
        model = name_of(cell.problem, cell.n, cell.network)
        if "supervised" in words:
            model = trained_models(self.models, cell)[0]
        if "scratch" in words and cell.network == "lstm":  # Algorithm 2 to the letter
            model = self.fresh_model(cell)
            found += ["--learn", "all", "--learning-rate", 1e-3, "--augment", 1]
        elif "scratch" in words:
            found += ["--init", "random"]
        elif mode == "active":
            found += ["--augment", 8 if "x8" in words else 1]
        if cell.network:
            found += ["-m", model]
        flags = {"x8": ["--augment", 8], "shuffle": ["--shuffle"], "improve": ["--improve", "on"], "misfit": ["--stop-at-first-misfit"]}
        for word in words if mode != "active" else []:
            found += flags.get(word, [])
            found += ["--temperature", word[1:]] if word[0] == "t" else ["--noise", word[5:]] if word.startswith("noise") else []
        number = number_in(strategy)
        counted = {"sample": ["-n", number], "active": ["--steps", number // 128], "local": ["--kicks", number]}
        return found + counted.get(mode, [])

    def measure(self, cell, strategy, which, count):
        path, optima = self.make_set(cell.problem, cell.n, which, count)
        row = self.describe(cell, strategy, which) | {"instances": count}
        common = [path, "--device", "cpu", "--format", "json", "-q"]
        if row["mode"] in ("random", "ratio") or "16models" in strategy:  # what solve cannot do
            models = ["-m", ",".join(map(str, trained_models(self.models, cell)))] if row["mode"] == "greedy" else []
            found = json.loads(self.call("eval", *common, *models, "--modes", strategy.split("+16")[0], "--ref", optima))["rows"][0]
            row |= {key: found[key] for key in ("mean_cost", "gap", "gap_ci95", "ms_per_instance")}
        else:
            found = json.loads(self.call("solve", *common, *self.arguments(cell, strategy)))
            summary, sign = found["summary"], 1 if cell.problem == "tsp" else -1
            costs = map(float, optima.read_text(encoding="utf-8").split())
            gaps = [sign * (objective(solution) / cost - 1) for solution, cost in zip(found["solutions"], costs, strict=True)]
            row |= {"mean_cost": summary["mean_cost"], **files.statistics_of(gaps), "gaps": [round(gap, 6) for gap in gaps],
                    "ms_per_instance": summary["computing_times"]["solving"] / count, "device": summary["device"]}
        files.append(self.folder / "cells.jsonl", row)
        self.best[key_of(row)] = row
        print(f"{name_of(*cell[:3])} {strategy}: {100 * row['gap']:.3f}% of {count} {which}, {row['ms_per_instance']:.3g} ms",
              file=sys.stderr, flush=True)

    def describe(self, cell, strategy, which):
        """What a row says of a strategy: the keys of a row of eval, and the network of NETWORKS."""
        mode, *words = strategy.split("+")
        temperature = next((float(word[1:]) for word in words if word[0] == "t"), 1)
        shipped = cell.network and not {"scratch", "supervised", "16models"} & set(words)
        network = name_of(*cell[:3]) if shipped else None
        return {"name": strategy, "mode": mode, "problem": cell.problem, "n": cell.n, "network": cell.network,
                "augment": 8 if "x8" in words else 1, "shuffle": "shuffle" in words, "improve": "improve" in words,
                "samples": number_in(strategy) if cell.network or mode == "random" else 1, "temperature": temperature,
                "model": network, "model_sha256": self.sha(network), "set": f"{which}.ndjson", "device": None,
                "seed": 1234, "version": self.about["version"], "threads": self.about["threads"], "machine": files.machine()}

    def tune(self, cells):
        for cell in cells:
            for star, (word, values) in GRIDS.items():
                if star not in cell.strategy.split("+"):
                    continue
                for value in values:
                    strategy = grid_strategy(cell, f"{word}{value:g}")
                    if (cell._replace(strategy=strategy), "validation") not in self.best and self.left() > 0:
                        self.measure(cell, strategy, "validation", 30)

    def left(self):
        return self.deadline - time.monotonic()

    def seconds_each(self, cell):
        """Measured, or in proportion to a run with fewer samples. 0: unknown."""
        row = row_of(self.best, cell)
        if row is not None:
            return row["ms_per_instance"] / 1000
        number, words = number_in(cell.strategy), [word for word in cell.strategy.split("+") if not word.isdigit()]
        found = 0.0
        for smaller in sorted(SAMPLES + SCRATCH):
            sibling = row_of(self.best, cell._replace(strategy="+".join([words[0], str(smaller), *words[1:]])))
            if smaller < number and sibling is not None:
                found = sibling["ms_per_instance"] / 1000 * number / smaller
        return found

    def next_run(self, cells):
        """(cell, instances): the cheapest, where ten times as many instances count as a hundred times the time. As many
        instances as fit into the time that is left; None where no run fits."""
        runs = []
        for i, cell in enumerate(cells):
            row, seconds = row_of(self.best, cell), self.seconds_each(cell)
            done = row["instances"] if row else 0
            target = next((count for count in COUNTS if count > done), 0)
            fitting = min(target, int(self.left() / seconds) if seconds > 0 else target)
            if tuned(self.best, cell) and fitting > done:
                runs.append((seconds * target ** 2, i, cell, fitting))
        return min(runs)[2:] if runs else None

    def run(self):
        cells = all_cells() + (trained_cells(self.models) if self.models else [])
        self.tune(cells)
        while self.left() > 0 and (found := self.next_run(cells)) is not None:
            self.measure(found[0], tuned(self.best, found[0]), "test", found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, metavar="OUTPUT")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pointsman", default=ROOT / "build/host/pointsman", metavar="PROGRAM")
    parser.add_argument("--models", type=pathlib.Path, metavar="FOLDER", help="of train.sh")
    Measurer(parser.parse_args()).run()


if __name__ == "__main__":
    main()
