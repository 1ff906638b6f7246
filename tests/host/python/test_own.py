# SPDX-License-Identifier: Apache-2.0
"""pointsman.Problem: a user's own cost, trained and solved; what its functions throw; declared orders."""
import gc
import itertools
import json
import os
import pathlib
import signal
import threading
import time
import unittest
import weakref

import numpy as np
import pointsman
from program import FolderTest

N = 7


def tardiness(items, orders):
    """Weighted tardiness of jobs: processing time, weight, due date."""
    jobs = np.take_along_axis(items, orders[:, :, None], axis=1)
    late = np.cumsum(jobs[:, :, 0], axis=1) - jobs[:, :, 2]
    return (jobs[:, :, 1] * np.maximum(late, 0.0)).sum(axis=1)


def jobs(rng, count, n=N):
    return np.stack([rng.integers(1, 101, (count, n)), rng.integers(1, 11, (count, n)), rng.integers(0, 30 * n, (count, n))], axis=2)


def optimum(cost, items, allowed=lambda order: True):
    orders = np.array([order for order in itertools.permutations(range(len(items))) if allowed(order)])
    return cost(np.broadcast_to(items.astype(float), (len(orders), *items.shape)), orders).min()


SMALL = {"steps": 6, "batch_size": 4, "rollouts": 4, "layers": 1}
INSTANCES = jobs(np.random.default_rng(5), 6)


class Own(FolderTest):

    def bytes_of(self, model):
        model.save(self.folder / "model.safetensors", force=True)
        return (self.folder / "model.safetensors").read_bytes()

    def test_train_and_solve(self):
        problem = pointsman.Problem(tardiness)
        lines = []
        model = problem.train(jobs, steps=200, batch_size=16, rollouts=8, layers=1, callback=lines.append)
        self.assertIs(problem.trained, model)
        self.assertEqual((model.summary["status"], model.summary["step"]), ("done", 200))
        self.assertEqual(lines[-1]["step"], 200)
        self.assertGreater(model.summary["callback_seconds"], 0)
        self.assertLess(lines[-1]["val_cost"], lines[0]["train_cost"])
        greedy = model.solve(INSTANCES)
        sampled = model.solve(INSTANCES, samples=256)
        improved = model.solve(INSTANCES, samples=64, improve=True, kicks=20)
        self.assertEqual(sampled.orders.shape, (6, N))
        optima = [optimum(tardiness, one) for one in INSTANCES]
        np.testing.assert_array_equal(improved.costs, optima)
        self.assertLess(sampled.costs.sum(), greedy.costs.sum() + 1e-9)
        for result in (greedy, sampled, improved):
            np.testing.assert_array_equal(result.costs, tardiness(INSTANCES.astype(float), result.orders.astype(np.int64)))
            np.testing.assert_array_equal(problem.costs(INSTANCES, result.orders), result.costs)
            self.assertEqual(result.status, ["done"] * 6)
        np.testing.assert_array_equal(model.score(INSTANCES, sampled.orders), sampled.log_prob)
        active = model.solve(INSTANCES[:2], active=3, replicas=16)
        self.assertEqual(active.orders.shape, (2, N))
        uneven = model.solve([INSTANCES[0], INSTANCES[1, :4]], samples=16)
        self.assertEqual([len(order) for order in uneven.orders], [N, 4])

    def test_same_bits(self):
        models = [pointsman.Problem(tardiness).train(jobs, threads=threads, **SMALL) for threads in (1, 2)]
        self.assertEqual(*map(self.bytes_of, models))
        results = [models[0].solve(INSTANCES, samples=100, threads=threads) for threads in (1, 2)]
        np.testing.assert_array_equal(results[0].orders, results[1].orders)
        alone = models[0].solve(INSTANCES[0], samples=100)
        np.testing.assert_array_equal(results[0].orders[:1], alone.orders)

    def test_resume(self):
        checkpoint = os.path.join(self.folder, "training.ckpt")
        whole = pointsman.Problem(tardiness).train(jobs, **SMALL)
        stopped = []

        def stop_once(items, orders):
            stopped.append(len(orders))
            if len(stopped) == 256 + 5:  # behind those that the scale of the costs is taken from
                raise KeyboardInterrupt
            return tardiness(items, orders)

        problem = pointsman.Problem(stop_once)
        first = problem.train(jobs, checkpoint=checkpoint, checkpoint_every=1, **SMALL)
        self.assertEqual(first.summary["status"], "interrupted")
        self.assertLess(first.summary["step"], SMALL["steps"])
        again = pointsman.Problem(tardiness).train(jobs, resume=checkpoint, **SMALL)
        self.assertEqual(self.bytes_of(again), self.bytes_of(whole))

    def test_save_and_load(self):
        problem = pointsman.Problem(tardiness)
        model = problem.train(INSTANCES, **SMALL)
        path = os.path.join(self.folder, "jobs.safetensors")
        model.save(path)
        again = problem.load(path)
        np.testing.assert_array_equal(again.solve(INSTANCES).orders, model.solve(INSTANCES).orders)
        with self.assertRaises(pointsman.UsageError):
            model.save(path)
        longer = problem.train(INSTANCES, init=again, **{name: value for name, value in SMALL.items() if name != "layers"})
        self.assertEqual(longer.summary["training_tours"], 2 * model.summary["training_tours"])
        with self.assertRaisesRegex(pointsman.InputError, "expected a model of an own problem, found one of tsp"):
            problem.load(pointsman._core.find_model("tsp20"))

    def test_declared(self):
        def is_allowed(order):
            return order[0] == 2 and order[-1] == N - 1 and order.index(1) < order.index(0)

        for before in ([(1, 0)], lambda n: [(1, 0)]):
            problem = pointsman.Problem(tardiness, before=before, first=2, last=-1)
            model = problem.train(jobs, **SMALL)
            result = model.solve(INSTANCES, samples=32, improve=True, kicks=20)
            for order, cost, items in zip(result.orders.tolist(), result.costs, INSTANCES):
                self.assertTrue(is_allowed(order), order)
                self.assertEqual(cost, optimum(tardiness, items, is_allowed))
            with self.assertRaisesRegex(pointsman.Error, "item 0 may not come in place 0"):
                problem.costs(INSTANCES[0], [[0, 1, 2, 3, 4, 5, 6]])
        for wrong, text in (({"before": [(0, 1), (1, 0)]}, "circle"), ({"before": [(0, N)]}, "expected two of 7 items"),
                            ({"first": N}, "first: expected one of 7 items, found 7")):
            with self.assertRaisesRegex(pointsman.UsageError, text):
                pointsman.Problem(tardiness, **wrong).train(jobs, **SMALL)

    def test_capacity(self):
        """A knapsack: weight, value."""
        def value(items, orders):
            taken = np.take_along_axis(items[:, :, 1], np.maximum(orders, 0), axis=1)
            return (taken * (orders >= 0)).sum(axis=1)

        items = np.random.default_rng(1).random((4, 8, 2))
        problem = pointsman.Problem(value, maximise=True, capacity=(0, 1.5))
        model = problem.train(items, **SMALL)
        result = model.solve(items, samples=200)
        self.assertEqual(result.orders.shape, (4, 8))
        exact = pointsman.solve(weights=items[:, :, 0], values=items[:, :, 1], capacity=1.5, mode="exact")
        for order, cost, best, one in zip(result.orders, result.costs, exact.costs, items):
            self.assertLessEqual(one[order[order >= 0], 0].sum(), 1.5)
            self.assertLessEqual(cost, best + 1e-12)
            self.assertGreater(cost, 0.9 * best)
        self.assertGreater(model.summary["train_cost"], 0)
        log = self.folder / "log.jsonl"
        problem.train(items, log=log, **SMALL)
        self.assertGreater(json.loads(log.read_text().splitlines()[0])["train_cost"], 0)

    def test_a_tour(self):
        """The same costs and gradients as a TSP's would be: greedy tours get shorter."""
        def length(points, tours):
            at = np.take_along_axis(points, tours[:, :, None], axis=1)
            return np.linalg.norm(at - np.roll(at, -1, axis=1), axis=2).sum(axis=1)

        points = np.random.default_rng(2).random((5, 8, 2))
        model = pointsman.Problem(length).train(lambda rng, count: rng.random((count, 8, 2)), **SMALL)
        result = model.solve(points, samples=64)
        tours = pointsman.solve(points, mode="local").costs
        self.assertTrue((result.costs >= tours - 1e-9).all())
        self.assertLess(result.costs.mean(), 1.15 * tours.mean())

    def test_limits(self):
        problem = pointsman.Problem(tardiness)
        model = problem.train(jobs, minutes=0.05, layers=1)
        self.assertLess(model.summary["seconds"], 6)
        result = model.solve(INSTANCES, samples=10**8, time_limit=0.2)
        self.assertEqual(result.status, ["time_limit"] * 6)

    def test_what_the_cost_throws(self):
        fine = pointsman.Problem(tardiness).train(jobs, **SMALL)

        def after(calls, act):
            made = []

            def cost(items, orders):
                made.append(1)
                return act(items, orders) if len(made) > calls else tardiness(items, orders)
            return cost

        def fail(items, orders):
            raise ZeroDivisionError("in the user's own line")

        wrong = ((fail, ZeroDivisionError, "in the user's own line"),
                 (lambda items, orders: np.full(len(orders), np.nan), pointsman.InputError, "expected finite numbers, found nan"),
                 (lambda items, orders: np.zeros((len(orders), 1)), pointsman.InputError, "expected .* numbers, one for each order"),
                 (lambda items, orders: ["a"] * len(orders), pointsman.ArgumentError, "cost: expected an array of numbers"),
                 (lambda items, orders: None, pointsman.Error, "cost: expected"))
        for act, kind, text in wrong:
            for calls in (0, 300):
                problem = pointsman.Problem(after(calls, act))
                with self.assertRaisesRegex(kind, text):
                    problem.train(jobs, **SMALL | {"steps": 10000})
                self.assertEqual(problem.trained is None, calls == 0)
            self.assertGreater(problem.trained.summary["step"], 0)
            problem = pointsman.Problem(after(0, act))
            fine.problem = problem
            for how in ({}, {"samples": 50}, {"active": 2, "replicas": 4}):
                with self.assertRaisesRegex(kind, text):
                    fine.solve(INSTANCES, **how)
            with self.assertRaisesRegex(kind, text):
                problem.costs(INSTANCES[0], [range(N)])

    def test_nothing_is_kept(self):

        class Cost:
            error = None

            def __call__(self, items, orders):
                if self.error is not None and len(orders) > 3:
                    raise self.error
                return tardiness(items, orders)

        def one_round():
            cost = Cost()
            problem = pointsman.Problem(cost)
            model = problem.train(jobs, **SMALL)
            model.solve(INSTANCES, samples=8, improve=True, kicks=1)
            cost.error = ValueError("for the test")
            for call in (lambda: model.solve(INSTANCES, samples=8), lambda: problem.train(jobs, **SMALL)):
                with self.assertRaises(ValueError):
                    call()
            cost.error = None
            return [weakref.ref(one) for one in (cost, problem, model)]

        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

        for _ in range(5):
            kept = one_round()
        gc.collect()
        self.assertEqual([one() for one in kept], [None] * 3)
        before = resident()
        for _ in range(30):
            one_round()
        gc.collect()
        self.assertLess(resident() - before, 15 << 20)  # a model alone has 1.7 MB

    def test_interrupted(self):
        """Ctrl-C in the cost and between its calls."""
        for target in ("train", "solve"):
            problem = pointsman.Problem(tardiness)
            model = problem.train(jobs, **SMALL)
            timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
            timer.start()
            if target == "train":
                self.assertEqual(problem.train(jobs, **SMALL | {"steps": 10**6}).summary["status"], "interrupted")
            else:
                status = model.solve(INSTANCES, samples=10**8).status
                self.assertEqual((status[0], set(status) - {"unsolved"}), ("interrupted", {"interrupted"}))
            timer.join()

    def test_interrupted_before_training(self):
        """In the calls that scale the costs, and in costs()."""
        def slow(items, orders):
            time.sleep(0.02)
            return tardiness(items, orders)

        problem = pointsman.Problem(slow)
        many = np.repeat(INSTANCES, 200, axis=0)
        for call in (lambda: problem.train(jobs, **SMALL), lambda: problem.costs(many, [range(N)] * len(many))):
            begin = time.monotonic()
            timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                call()
            timer.join()
            self.assertLess(time.monotonic() - begin, 3)

    def test_interrupted_improvement(self):
        calls = []

        def cost(items, orders):
            calls.append(len(orders))
            if len(calls) == 300:
                raise KeyboardInterrupt
            return tardiness(items, orders)

        model = pointsman.Problem(tardiness).train(jobs, **SMALL)
        model.problem = pointsman.Problem(cost)
        result = model.solve(INSTANCES, improve=True, kicks=10**9)
        self.assertEqual(result.status, ["interrupted"] * 6)
        self.assertTrue((result.costs <= result.network_costs).all())

    def test_arguments(self):
        problem = pointsman.Problem(tardiness)
        model = problem.train(jobs, **SMALL)
        cases = ((lambda: pointsman.Problem(3), pointsman.ArgumentError, "cost: expected a function, found int"),
                 (lambda: pointsman.Problem(tardiness, last=1, capacity=(0, 1)), pointsman.UsageError, "last: does not go with capacity"),
                 (lambda: problem.train(jobs, layer=1), pointsman.ArgumentError, "layer'; did you mean layers?"),
                 (lambda: problem.train(lambda rng, count: jobs(rng, 3), **SMALL), pointsman.InputError, "expected .* of the generator"),
                 (lambda: problem.train(jobs, minutes=0), pointsman.UsageError, "minutes: expected a number from 1e-06 to 1e"),
                 (lambda: problem.costs(INSTANCES, [range(N)]), pointsman.InputError, "orders: expected 6, one for each instance, found 1"),
                 (lambda: problem.costs(INSTANCES[0], [[0.5] * N]), pointsman.InputError, "orders: expected whole numbers"),
                 (lambda: problem.train(jobs, init="model"), pointsman.ArgumentError, "init: expected a model, found str"),
                 (lambda: problem.train(jobs, steps=2.5), pointsman.UsageError, "steps: expected a whole number"),
                 (lambda: problem.train(jobs, seed=-1), pointsman.UsageError, "seed: expected a whole number from 0"),
                 (lambda: pointsman.Problem(tardiness, capacity=(0, np.nan)), pointsman.UsageError, "expected a finite limit"),
                 (lambda: pointsman.Problem(tardiness, capacity=3), pointsman.ArgumentError, "expected .column, limit."),
                 (lambda: pointsman.Problem(tardiness, first="a"), pointsman.ArgumentError, "first: expected a whole number"),
                 (lambda: pointsman.Problem(tardiness, before=[(0, -1)]).train(jobs, **SMALL), pointsman.UsageError, "before: expected"),
                 (lambda: model.solve(INSTANCES, mode="random"), pointsman.ArgumentError, "mode"),
                 (lambda: model.solve(INSTANCES, kicks=5), pointsman.UsageError, "kicks: goes with improve"),
                 (lambda: model.solve(INSTANCES, improve=True, kicks=-1), pointsman.UsageError, "kicks: expected a whole number from 0"),
                 (lambda: pointsman.Problem(lambda items, orders: 1e300 * orders[:, 0]).train(jobs, **SMALL), pointsman.InputError, "scale them"),
                 (lambda: problem.train(INSTANCES[0]), pointsman.InputError, "instances: expected"),
                 (lambda: problem.train(np.zeros((5, 4, 17))), pointsman.InputError, "at most 16 numbers an item, found 17"),
                 (lambda: model.solve(INSTANCES, samples=4, active=3), pointsman.UsageError, "expected one of them"),
                 (lambda: model.solve(np.full((4, 3), np.inf)), pointsman.InputError, "expected finite numbers"),
                 (lambda: model.solve(np.zeros((4, 2))), pointsman.UsageError, "expected 3 numbers an item, as in training, found 2"))
        for call, kind, text in cases:
            with self.assertRaisesRegex(kind, text):
                call()

    def test_torch(self):
        try:
            import torch
        except ModuleNotFoundError:
            self.skipTest("no torch here")

        def cost(items, orders):
            at = torch.take_along_dim(items, orders[:, :, None], dim=1)
            return at[:, :, 0].cumsum(dim=1).sum(dim=1)

        model = pointsman.Problem(cost, torch=True).train(jobs, **SMALL)
        result = model.solve(INSTANCES, improve=True)
        shortest_first = np.sort(INSTANCES[:, :, 0], axis=1).cumsum(axis=1).sum(axis=1)
        np.testing.assert_array_equal(result.costs, shortest_first)


if __name__ == "__main__":
    unittest.main()
