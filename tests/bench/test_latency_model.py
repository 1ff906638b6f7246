#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/latency_model.py on short programs whose clocks are counted by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import latency_model
import machine_code


def program(*lines):
    """Instructions at 0x00, 0x10, .."""
    return [machine_code.instruction_of(f"{16 * place:04x}", text) for place, text in enumerate(lines)]


class LatencyModel(unittest.TestCase):
    def clocks(self, *lines, rounds=lambda loop: 1):
        return latency_model.clocks_of_step(program(*lines), rounds)

    def test_chain(self):
        # Each waits 4 clocks for the one before it.
        self.assertEqual(self.clocks("FFMA R1, R0, R0, R1", "FFMA R1, R0, R0, R1", "FFMA R1, R0, R0, R1", "BRA 0x0"), 12)

    def test_independent(self):
        # One a clock, and the first of a step waits for its own result of the step before.
        self.assertEqual(self.clocks(*(f"FFMA R{i}, R9, R9, R{i}" for i in range(1, 7)), "BRA 0x0"), 7)

    def test_shared_memory(self):
        # Three loads of 16 clocks wait in the queue while the program goes on; the last one's number takes 34.
        self.assertEqual(self.clocks("LDS.128 R4, [R0]", "LDS.128 R8, [R0]", "LDS.128 R12, [R0]", "FADD R1, R12, R1", "BRA 0x0"), 68)

    def test_queue(self):
        # 20 sums of 4 clocks do not wait for three loads of 16, which wait for their unit meanwhile.
        loads = ("LDS.128 R4, [R0]", "LDS.128 R8, [R0]", "LDS.128 R12, [R0]")
        self.assertLess(self.clocks(*loads, *["FADD R1, R1, R1"] * 20, "BRA 0x0"), 20 * 4 + 16)

    def test_inner_loop(self):
        body = ("FADD R1, R1, R1", "@P0 BRA 0x0", "@P1 BRA 0x0")
        self.assertEqual(self.clocks(*body, rounds=lambda loop: 5), 5 * 4)

    def test_rare_case(self):
        # The branch over a call is taken; the one over plain work falls through.
        rare = ("@P0 BRA 0x20", "CALL 0x100", "FADD R1, R1, R1", "BRA 0x0")
        plain = ("@P0 BRA 0x20", "FADD R1, R1, R1", "FADD R1, R1, R1", "BRA 0x0")
        self.assertEqual(self.clocks(*plain) - self.clocks(*rare), 4)

    def test_work_around_a_rare_case(self):
        # A long block with a rare case in it is work like any other.
        work = ["@P0 BRA 0x160", *["FADD R1, R1, R1"] * 19, "@P1 BRA 0x160", "CALL 0x900", "BRA 0x0"]
        self.assertGreaterEqual(self.clocks(*work), 19 * 4)

    def test_last_round(self):
        # What arrives at the cluster's barrier does so in the last round only.
        body = ("FADD R1, R1, R1", "@P2 BRA 0x40", "MEMBAR.ALL.GPU", "UCGABAR_ARV", "@P0 BRA 0x0", "@P1 BRA 0x0")
        one, four = (self.clocks(*body, rounds=lambda loop, rounds=rounds: rounds) for rounds in (1, 4))
        self.assertLess(four - one, latency_model.WAITS["MEMBAR"])
        self.assertGreater(one, latency_model.WAITS["MEMBAR"])

    def test_several_warps(self):
        chain = ("FFMA R1, R0, R0, R1", "BRA 0x0")
        self.assertEqual(latency_model.clocks_of_step(program(*chain), lambda loop: 1, 9), 9 * 2)

    def test_barrier(self):
        without, with_one = (self.clocks(*line, "FADD R1, R1, R1", "BRA 0x0") for line in ((), ("BAR.SYNC 0x0",)))
        self.assertGreaterEqual(with_one - without, latency_model.WAITS["BAR"] - 3)
        self.assertGreater(with_one, 30)

    def test_operands(self):
        def operands(text):
            reads, writes = latency_model.reads_and_writes(program(text)[0])
            return [sorted(f"{kind}{number}" for kind, number in names) for names in (reads, writes)]

        self.assertEqual(operands("IADD3 R8, P1, R4, R5.reuse, RZ"), [["R4", "R5"], ["P1", "R8"]])
        self.assertEqual(operands("@!P0 LDG.E.64 R2, desc[UR8][R6.64+0x200]"), [["P0", "R6", "R7", "UR8"], ["R2", "R3"]])
        self.assertEqual(operands("STS.128 [R20], R4"), [["R20", "R21", "R22", "R23", "R4", "R5", "R6", "R7"], []])
        self.assertEqual(operands("ISETP.GE.AND P0, PT, R3, UR4, PT"), [["R3", "UR4"], ["P0"]])


if __name__ == "__main__":
    unittest.main()
