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
from program import FolderTest

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
def leave(answer):  # whatever other threads are at
    print(json.dumps(answer), flush=True)
    os._exit(0)
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


    def test_training_between_two_lines_tells_its_steps(self):
        answer, code, _ = child(START + """
import tempfile
path = tempfile.mkdtemp() + "/x.safetensors"
summary = pointsman.train("tsp", 50, path, steps=99, time_limit=1.0)
print(json.dumps([summary[name] for name in ("status", "steps", "seconds", "training_tours", "train_cost")]))""")
        status, steps, seconds, tours, cost = answer
        self.assertEqual((code, status), (0, "time_limit"))
        self.assertGreater(steps, 0)
        self.assertGreater(seconds, 0.5)
        self.assertEqual(tours % steps, 0)
        self.assertGreater(cost, 1)


class Exit(FolderTest):
    """Python ends while other threads are inside of a call, or with all that it made."""

    def check_quiet(self, code):
        done = subprocess.run([sys.executable, "-c", START + code], stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))

    def test_daemon_threads_inside_of_a_call(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for call in ('pointsman.solve(points, mode="local", kicks=1 << 40)',
                     'pointsman.train("tsp", 10, path(), steps=1 << 30)',
                     'pointsman.train("tsp", 10, path(), steps=1 << 30, callback=lambda line: time.sleep(0.02))',
                     'solve_for_ever()', f'pointsman.read("{fifo}")', 'log_for_ever()'):
            with self.subTest(call):
                self.check_quiet(f"""
import logging
def path(): return f"{self.folder}/{{threading.get_ident()}}.safetensors"
def solve_for_ever():
    while True: pointsman.solve(points[:5])
class Slow(logging.Handler):
    def emit(self, record): time.sleep(0.01)
def log_for_ever():
    logger = logging.getLogger("pointsman")
    logger.addHandler(Slow())
    logger.setLevel("DEBUG")
    while True: pointsman.Solver().solve(points[:5], mode="greedy")
threads = [threading.Thread(target=lambda: {call}, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
time.sleep(0.4)""")

    def test_what_is_left_at_the_end_is_not_told(self):
        self.check_quiet("""
def hold(solver, result): time.sleep(1000)
solver = pointsman.Solver(threads=1)
threading.Thread(target=hold, args=(solver, solver.solve(points[:5])), daemon=True).start()
time.sleep(0.2)""")

    def test_a_call_at_exit_has_its_answer(self):
        answer, code, _ = child("import atexit, json\natexit.register(lambda: print(json.dumps(len(pointsman.solve(points[:9])))))"
                                + START)
        self.assertEqual((answer, code), (1, 0))


class Taken(unittest.TestCase):
    """A solver that another call uses."""

    def test_waiting_counts_against_the_limit(self):
        answer, code, seconds = child(START + """
solver = pointsman.Solver(threads=1)
threading.Thread(target=lambda: solver.solve(points, mode="local", kicks=1 << 40, time_limit=6)).start()
time.sleep(0.5)
found = []
def wait():
    started = time.monotonic()
    try: solver.solve(points[:9], time_limit=0.5)
    except pointsman.UsageError as error: found.append([str(error), time.monotonic() - started])
waiting = threading.Thread(target=wait)
waiting.start()
wait()
waiting.join()
leave(found)""")
        self.assertEqual((len(answer), code), (2, 0))
        for text, waited in answer:
            self.assertIn("time_limit: was over while another thread used the Solver", text)
            self.assertLess(waited, 3)

    def test_control_c_ends_the_wait(self):
        for call in ("solver.solve(points[:9])", "solver.score(points[:9], np.arange(9))"):
            with self.subTest(call):
                answer, code, seconds = child(START + f"""
solver = pointsman.Solver(threads=1)
threading.Thread(target=lambda: solver.solve(points, mode="local", kicks=1 << 40, time_limit=6)).start()
time.sleep(0.5)
interrupt()
started = time.monotonic()
try: {call}
except KeyboardInterrupt: leave(time.monotonic() - started)""")
                self.assertEqual(code, 0)
                self.assertLess(answer, 4)

    def test_a_handler_of_its_own_call(self):
        for how in ("threading.Thread(target=call)", ""):
            with self.subTest(how or "main thread"):
                answer, code, _ = child(START + f"""
import logging
solver = pointsman.Solver("tsp20", threads=1)
told = []
class Handler(logging.Handler):
    def emit(self, record):
        if told: return
        told.append("called")
        try: solver.solve(points[:5], mode="greedy")
        except pointsman.UsageError as error: told.append(str(error))
logging.getLogger("pointsman").addHandler(Handler())
logging.getLogger("pointsman").setLevel(logging.INFO)
def call(): told.append(solver.solve(points[:5], mode="greedy").status)
{f"thread = {how}; thread.start(); thread.join()" if how else "call()"}
print(json.dumps(told))""")
                self.assertEqual(code, 0)
                self.assertEqual(answer[0], "called")
                self.assertIn("a Solver in use was called by a handler", answer[1])
                self.assertEqual(answer[2], ["done"])

    def test_a_handler_of_a_signal(self):
        answer, code, _ = child(START + """
solver = pointsman.Solver(threads=1)
told = []
def handle(*_):
    try: solver.solve(points[:5])
    except pointsman.UsageError as error: told.append(str(error))
signal.signal(signal.SIGUSR1, handle)
interrupt(signal=signal.SIGUSR1)
solver.solve(points, mode="local", kicks=1 << 40, time_limit=2)
print(json.dumps(told))""")
        self.assertEqual(code, 0)
        self.assertIn("a Solver in use was called by a handler", answer[0])


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
