# SPDX-License-Identifier: Apache-2.0
"""pointsman.dask on a real cluster of two worker processes, one of which is killed half-way: all answers, in order, the
bytes of one call. Exit code 77 where Dask or the package is missing."""
import os
import signal
import sys
import time
import unittest

MISSING = []
for name, package in (("numpy", "numpy"), ("dask.array", "dask"), ("distributed", "distributed"),
                      ("pointsman", "the Python package (-D POINTSMAN_PYTHON=ON)")):
    try:
        __import__(name)
    except ImportError:
        MISSING.append(package)
if MISSING:
    print("skipped: needs " + ", ".join(MISSING))
    sys.exit(77)

import dask
import dask.array
import dask.bag
import distributed
import numpy as np
import pointsman
import pointsman.dask

OPTIONS = {"mode": "sample", "samples": 24, "model": "tsp20"}


class Dask(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        cls.client = distributed.Client(cls.cluster)
        cls.points = np.random.RandomState(1).uniform(size=(2000, 20, 2))
        cls.whole = pointsman.solve(cls.points, **OPTIONS)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def check(self, tours, costs):
        self.assertEqual(tours.tobytes(), self.whole.tours.tobytes())
        self.assertEqual(costs.tobytes(), self.whole.costs.tobytes())

    def test_a_killed_worker_loses_nothing(self):
        tours, costs = pointsman.dask.solve(dask.array.from_array(self.points, chunks=(50, 7, 1)), **OPTIONS)
        self.assertEqual(tours.chunks, ((50,) * 40, (20,)))
        whole = self.client.compute(dask.delayed(lambda *both: both)(tours, costs))
        workers = self.client.run(os.getpid)
        start = time.monotonic()
        while not self.client.processing() or sum(map(len, self.client.has_what().values())) < 10:
            if whole.done() or time.monotonic() - start > 30:
                break
            time.sleep(0.01)
        was_busy = not whole.done()
        os.kill(sorted(workers.values())[0], signal.SIGKILL)
        self.check(*whole.result(timeout=120))
        self.assertTrue(was_busy, "the run was over before a worker was killed")

    def test_a_bag_of_several_sizes(self):
        sizes = (9, 5, 14, 5, 9, 20, 7)
        points = [np.random.RandomState(seed).uniform(size=(size, 2)) for seed, size in enumerate(sizes)]
        expected = pointsman.solve(points, **OPTIONS)
        answers = pointsman.dask.solve(dask.bag.from_sequence(points, npartitions=3), **OPTIONS).compute()
        self.assertEqual([tour.tolist() for tour, _ in answers], [tour.tolist() for tour in expected.tours])
        self.assertEqual([cost for _, cost in answers], expected.costs.tolist())

    def test_what_is_no_batch_of_points_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected a Dask array"):
            pointsman.dask.solve(dask.array.zeros((3, 4)))

    def test_rows_of_a_part_are_those_of_the_batch(self):
        part = pointsman.solve(self.points[300:320], first_row=300, **OPTIONS)
        self.assertEqual(part.tours.tobytes(), self.whole.tours[300:320].tobytes())
        other = pointsman.solve(self.points[300:320], **OPTIONS)
        self.assertNotEqual(other.tours.tobytes(), part.tours.tobytes())
        with self.assertRaisesRegex(pointsman.UsageError, "first_row: expected a whole number from 0, found -1"):
            pointsman.solve(self.points[:2], first_row=-1)


if __name__ == "__main__":
    unittest.main()
