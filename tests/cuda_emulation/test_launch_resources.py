#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launch_resources.py on launches that a GPU takes and on ones that it refuses."""
import unittest

from launch_resources import Kernel, Launch, faults, registers_of, short


class LaunchResources(unittest.TestCase):
    def refused(self, launch, kernel):
        kernels = {(architecture, "k"): kernel for architecture in ("sm_80", "sm_90")}
        return list(faults(launch, kernels))

    def test_registers(self):
        # 8 a thread, 256 a warp, four warps at a time.
        self.assertEqual(registers_of(Kernel(128, 0, 512), 512), 65536)
        self.assertEqual(registers_of(Kernel(129, 0, 512), 512), 16 * 4352)
        self.assertEqual(registers_of(Kernel(32, 0, 512), 1), 4 * 1024)
        self.assertEqual(self.refused(Launch("k", 512, 0, "sm_90"), Kernel(128, 0, 512)), [])
        self.assertEqual(len(self.refused(Launch("k", 512, 0, "sm_90"), Kernel(129, 0, 512))), 2)

    def test_threads(self):
        self.assertEqual(self.refused(Launch("k", 384, 0, "sm_90"), Kernel(160, 0, 384)), [])
        self.assertIn("at most 384", self.refused(Launch("k", 385, 0, "sm_90"), Kernel(40, 0, 384))[0])

    def test_shared_memory(self):
        most = 163 * 1024
        self.assertEqual(self.refused(Launch("k", 32, most, "sm_80"), Kernel(40, 0, 32)), [])
        self.assertEqual(len(self.refused(Launch("k", 32, most, "sm_80"), Kernel(40, 16, 32))), 1)
        self.assertEqual(self.refused(Launch("k", 32, most + 1, "sm_90"), Kernel(40, 0, 32)), [])

    def test_unknown_kernel(self):
        self.assertIn("no such kernel", self.refused(Launch("other", 32, 0, "sm_90"), Kernel(40, 0, 32))[0])

    def test_names(self):
        names = ["pointsman::cuda::k<pointsman::TspRules, (pointsman::Precision)2, (pointsman::cuda::TileBlock)1, false>",
                 "void pointsman::cuda::k<pointsman::TspRules, (pointsman::Precision)2, (pointsman::cuda::TileBlock)1, false>"
                 "(pointsman::cuda::DecodeArgs, bool)"]
        self.assertEqual(short(names), ["k<TspRules,2,1,0>"] * 2)


if __name__ == "__main__":
    unittest.main()
