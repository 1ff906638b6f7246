#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a line waits for its answer: feeds `solve - --format ndjson` at a steady pace.

  service.py PROGRAM [--lines 10000] [--cities 50] [--every 0.008] [--limit-each 0.005]

Prints the percentiles of the time from a line in to its answer out, and fails where an answer is missing, out of order or no
tour."""
import argparse
import json
import random
import subprocess
import sys
import threading
import time


def feed(pipe, lines, every, sent):
    begin = time.monotonic()
    for i, line in enumerate(lines):
        wait = begin + i * every - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        sent.append(time.monotonic())
        pipe.write(line)
        pipe.flush()
    pipe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=10000)
    parser.add_argument("--cities", type=int, default=50)
    parser.add_argument("--every", type=float, default=0.008)
    parser.add_argument("--limit-each", type=float, default=0.005)
    options = parser.parse_args()
    draw = random.Random(1234)
    lines = []
    for i in range(options.lines):
        cities = [[draw.random(), draw.random()] for _ in range(options.cities)]
        lines.append(json.dumps({"id": str(i), "problem": "tsp", "coordinates": cities}).encode() + b"\n")
    command = [options.program, "solve", "-", "--format", "ndjson", "--limit-each", str(options.limit_each), "-t", "1", "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sent, waits = [], []
    feeder = threading.Thread(target=feed, args=(process.stdin, lines, options.every, sent))
    feeder.start()
    for i, line in enumerate(process.stdout):
        waits.append(time.monotonic() - sent[i])
        answer = json.loads(line)
        if answer["id"] != str(i) or sorted(answer["tour"]) != list(range(options.cities)):
            sys.exit(f"line {i}: no answer to it: {line[:200]}")
    feeder.join()
    if process.wait() != 0 or len(waits) != options.lines:
        sys.exit(f"{len(waits)} answers to {options.lines} lines, exit code {process.returncode}")
    waits.sort()
    for share in (0.5, 0.9, 0.99, 0.999, 1.0):
        print(f"{100 * share:g}%: {1000 * waits[min(int(share * len(waits)), len(waits) - 1)]:.2f} ms")


if __name__ == "__main__":
    main()
