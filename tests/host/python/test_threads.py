# SPDX-License-Identifier: Apache-2.0
"""Signals, threads, forks and the log: what a library must leave to the program around it."""
import json
import logging
import os
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import pointsman

POINTS = np.random.RandomState(1).random_sample((200, 2))
SLOW = {"mode": "local", "kicks": 1 << 40}  # for ever


def child(code, **environment):
    """What a Python of its own prints, as JSON, and how it ended."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, env={**os.environ, **environment})
    lines = done.stdout.decode().splitlines()
    return (json.loads(lines[-1])
            if lines else done.stderr.decode()), done.returncode, time.monotonic() - started


START = """
import json, os, signal, sys, threading, time
import numpy as np, pointsman
points = np.random.RandomState(1).random_sample((200, 2))
def interrupt(after=0.5, signal=signal.SIGINT):
    threading.Timer(after, os.kill, (os.getpid(), signal)).start()
"""


class Signals(unittest.TestCase):

    def test_control_c_keeps_the_best(self):
        for options in ('mode="local", kicks=1 << 40', 'mode="active", steps=1000000',
                        'mode="sample", samples=1 << 30'):
            with self.subTest(options):
                answer, code, seconds = child(START + f"""
interrupt(1.5)
result = pointsman.solve(points[:20], {options})
print(json.dumps([result.status, sorted(result.tours[0].tolist()) == list(range(20))]))""")
                self.assertEqual((answer, code), ([["interrupted"], True], 0))
                self.assertLess(seconds, 20)

    def test_a_handler_that_throws_something_else(self):
        answer, code, _ = child(START + """
def fail(*_): raise ZeroDivisionError("mine")
signal.signal(signal.SIGUSR1, fail)
interrupt(signal=signal.SIGUSR1)
try: pointsman.solve(points, mode="local", kicks=1 << 40)
except ZeroDivisionError as error: print(json.dumps(str(error)))""")
        self.assertEqual((answer, code), ("mine", 0))

    def test_a_handler_that_returns_stops_nothing(self):
        answer, code, _ = child(START + """
signal.signal(signal.SIGINT, lambda *_: None)
interrupt(0.2)
print(json.dumps(pointsman.solve(points, mode="local", time_limit=1.0).status))""")
        self.assertEqual((answer, code), (["time_limit"], 0))

    def test_training_ends_with_its_model(self):
        answer, code, _ = child(START + """
import tempfile
path = tempfile.mkdtemp() + "/x.safetensors"
interrupt(1.0)
summary = pointsman.train("tsp", 10, path, steps=1 << 30)
print(json.dumps([summary["status"], os.path.exists(path)]))""")
        self.assertEqual((answer, code), (["interrupted", True], 0))


class Threads(unittest.TestCase):

    def test_the_interpreter_runs_on(self):
        counted = [0]
        solving = threading.Thread(target=lambda: pointsman.solve(POINTS, time_limit=0.5, **SLOW))
        solving.start()
        started = time.monotonic()
        while solving.is_alive():
            counted[0] += 1
            time.sleep(0.001)
        self.assertGreater(counted[0], 20)
        self.assertGreater(time.monotonic() - started, 0.4)

    def test_many_threads_have_the_same_answers(self):
        expected = pointsman.solve(POINTS[:30], mode="greedy").tours.tolist()
        shared = pointsman.Solver(threads=2)
        found = []

        def work(solve):
            for _ in range(10):
                found.append(solve(POINTS[:30], mode="greedy").tours.tolist())

        threads = [
            threading.Thread(target=work, args=(solve, )) for solve in (pointsman.solve, shared.solve) * 3
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 60)

    def test_forks(self):
        answer, code, _ = child(START + """
solver = pointsman.Solver()
before = pointsman.solve(points, mode="greedy").tours.tolist()
solver.solve(points)
readable, writable = os.pipe()
if os.fork() == 0:
    try: solver.solve(points); refused = False
    except pointsman.UsageError: refused = True
    same = pointsman.solve(points, mode="greedy").tours.tolist() == before
    os.write(writable, json.dumps([refused, same]).encode())
    sys.exit(0)
code = os.wait()[1]
print(json.dumps([json.loads(os.read(readable, 100)), code]))""")
        self.assertEqual((answer, code), ([[True, True], 0], 0))


class Quiet(unittest.TestCase):

    def test_the_log_is_pythons(self):
        with self.assertLogs("pointsman", logging.INFO) as caught:
            pointsman.Solver("tsp50").solve(POINTS[:20], mode="greedy")
        self.assertIn("model tsp50", "".join(caught.output))

    def test_nothing_is_printed(self):
        done = subprocess.run([sys.executable, "-c", START + 'pointsman.solve(points, mode="greedy")'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"", b"", 0))

    def test_the_programs_environment_is_not_ours(self):
        answer, _, _ = child(START + 'print(json.dumps(pointsman.solve(points[:9]).summary["mode"]))',
                             POINTSMAN_MODE="greedy", POINTSMAN_SEED="7")
        self.assertEqual(answer, "auto")


if __name__ == "__main__":
    unittest.main()
