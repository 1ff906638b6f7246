#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tiles decode_tiling() (kernels/cuda/decode.cu) chooses on an H100 or H200 without clusters, how many of their
blocks a multiprocessor takes at once, and how many waves that makes; beside blocks of 8 and of 32 rows by their own threads.

    python3 bench/occupancy.py              prints the table
    python3 bench/occupancy.py --write      writes it to bench/results/tables/occupancy.md

Registers are those of bench/results/tables/cuda_kernels.md, which bench/kernel_table.py makes; shared memory is
counted here as kernels/cuda/decode_memory.cuh does. "time" is decode.cu's step_time(). Exits 1 where the choice is slower by
it than 8 or 32 rows.
"""
import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join(ROOT, "bench", "results", "tables", "cuda_kernels.md")
TABLE = os.path.join(ROOT, "bench", "results", "tables", "occupancy.md")
MULTIPROCESSORS, SHARED, RESERVED, REGISTERS, MOST_BLOCKS = 132, 227 << 10, 1 << 10, 65536, 32
HIDDEN, TILE_ROWS, MOST_ROWS, HALF_WARP = 128, 8, 32, 16
ROW_BYTES, BLOCK_BYTES, PROJECTIONS, STEP_ROWS = 88, 48, 3, 32
PRECISIONS = ("fp32", "tf32", "tf32x3", "bf16")
SIZES, SAMPLES, INSTANCES = (20, 50, 100), (128, 1280, 2048, 4096, 65536), (1280, 2048, 4096)


def read_registers():
    """{(precision, TileBlock): registers on sm_90} of the tours' decode_kernel."""
    found = re.findall(r"`decode_kernel<TspRules, \(Precision\)(\d), \(TileBlock\)(\d)>` \|[^|]*\| \d+ / (\d+) ",
                       open(KERNELS, encoding="utf-8").read())
    return {(int(precision), int(block)): int(count) for precision, block, count in found}


def shared_bytes(n, rows, keeps_references):
    padded = (n + 15) // 16 * 16
    own = rows * (2 * HIDDEN * 4 + 12 * padded + ROW_BYTES) + BLOCK_BYTES
    references = own + PROJECTIONS * n * HIDDEN * 4
    return references if keeps_references and references <= SHARED else own


def blocks_at_once(registers, threads, shared):
    warps = threads // 32
    of_warp = (registers * 32 + 255) // 256 * 256
    return min(REGISTERS // (warps * of_warp), (SHARED + RESERVED) // (shared + RESERVED), 2048 // threads, MOST_BLOCKS)


OWN, WHOLE, TOGETHER = range(3)  # TileBlock


class Choice:
    def __init__(self, n, rollouts, rows, precision, registers, keeps_references, together=False):
        self.rows, self.together = rows, together
        block = TOGETHER if together else WHOLE if precision != 0 and rows == MOST_ROWS else OWN
        threads = HALF_WARP * (MOST_ROWS if together else rows)
        self.blocks = blocks_at_once(registers[(precision, block)], threads, shared_bytes(n, rows, keeps_references))
        tiles = -(-rollouts // rows)
        self.waves = -(-tiles // (MULTIPROCESSORS * self.blocks))
        self.time = self.waves * (STEP_ROWS + rows * min(self.blocks, -(-tiles // MULTIPROCESSORS)))

    def cell(self):
        return f"{self.rows}{' together' if self.together else ''} x {self.blocks}, {self.waves}, {self.time}"


def choose(n, rollouts, precision, registers, keeps_references):
    choices = [Choice(n, rollouts, rows, precision, registers, keeps_references)
               for rows in range(TILE_ROWS, MOST_ROWS + 1, TILE_ROWS)]
    few = rollouts < MOST_ROWS * MULTIPROCESSORS
    for rows in (TILE_ROWS, 2 * TILE_ROWS):
        if precision == 0 and -(-rollouts // rows) <= MULTIPROCESSORS:
            return Choice(n, rollouts, rows, precision, registers, keeps_references, True), choices[0], choices[-1]
    return min(reversed(choices), key=lambda choice: choice.time) if few else choices[-1], choices[0], choices[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table to " + os.path.relpath(TABLE, ROOT))
    write = parser.parse_args().write
    registers = read_registers()
    lines, worse = [], []
    for what, counts, keeps in (("samples of one instance", SAMPLES, True), ("greedy tours", INSTANCES, False)):
        for precision, name in enumerate(PRECISIONS):
            for n in SIZES:
                for rollouts in counts:
                    chosen, *others = choose(n, rollouts, precision, registers, keeps)
                    lines.append(f"| {what} | {name} | {n} | {rollouts:,} | **{chosen.cell()}** | "
                                 + " | ".join(other.cell() for other in others) + " |")
                    if any(chosen.time > other.time for other in others):
                        worse.append(lines[-1])
    text = "\n".join(["<!-- Made by: python3 bench/occupancy.py --write -->", "# Tiles and waves of `decode_kernel` on an H100", "",
                      "Each cell: rows of a tile (together: 512 threads share their attention) x blocks that a multiprocessor takes at once, waves, and a step's time in rows as", 
                      "`step_time()` in `kernels/cuda/decode.cu` estimates it. Tours, one glimpse, no clusters, nothing shared between samples.", "",
                      "| what | precision | n | rollouts | chosen | 8 rows | 32 rows |", "|---|---|---|---|---|---|---|", *lines, ""])
    if write:
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)
    if worse:
        sys.exit("slower than 8 or 32 rows:\n" + "\n".join(worse))


if __name__ == "__main__":
    main()
