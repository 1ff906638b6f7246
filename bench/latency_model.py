# SPDX-License-Identifier: Apache-2.0
"""How many clocks a step of the LSTM kernels takes, and a round of a loop, by a written model over machine code
(kernel_table.py).

A scheduler of sm_90 issues a warp's instructions in their order, one a clock. An instruction waits for its sources and
for its unit. A block of four warps has one a scheduler; they do the same at the same time and share the unit of shared
memory. So one warp is followed through the loop of the steps: branches around rare cases are taken, all others fall
through, inner loops go round as often as the rows of the tile say. All loads of device memory are taken to hit the L2.

The clocks below are assumptions: what microbenchmarks of Volta to Hopper published, rounded up. No GPU has confirmed
the sums.
"""
import collections
import re

import machine_code

Cost = collections.namedtuple("Cost", "unit busy latency")
COSTS = (  # the first whose pattern the opcode begins with
    (r"FFMA|FADD|FMUL", Cost("fma", 1, 4)),
    (r"MUFU", Cost("special", 8, 24)),
    (r"LDS\.128", Cost("shared", 16, 34)),  # 512 bytes at 128 a clock, times four warps; less where lanes read the same
    (r"LDS\.64", Cost("shared", 8, 32)),
    (r"LDS", Cost("shared", 4, 30)),
    (r"STS\.128", Cost("shared", 16, 0)),
    (r"ST\.", Cost("shared", 32, 0)),  # 32 words to other blocks of a cluster, at a quarter of the rate
    (r"ST|LDG|LD\b|ATOM|RED", Cost("shared", 4, 280)),  # the L2
    (r"SHFL", Cost("shared", 4, 25)),
    (r"[FI]SETP|PLOP3|R2P|VOTE", Cost("integer", 2, 13)),
    (r"S2R|S2UR|R2UR|LDC|ULDC", Cost("other", 2, 40)),
    (r"", Cost("integer", 2, 5)),  # 16 lanes
)
RARE = 16  # most instructions around a call to a rare case
QUEUE = 8  # operations of shared memory that wait for their unit, while the warp goes on
# Ends of waiting. A fence waits until other blocks have what was stored; the barrier of a cluster is an exchange.
WAITS = {"BAR": 30, "MEMBAR": 500, "UCGABAR_WAIT": 200, "BSYNC": 5}
NO_RESULT = re.compile(r"ST|BRA|EXIT|BAR|NOP|MEMBAR|ERRBAR|CGAERRBAR|UCGABAR|CCTL|BSSY|BSYNC|WARPSYNC|RED|RET|CALL")
REGISTER = re.compile(r"\b(U?R|U?P)(\d+)(\.64)?")


def named_registers(text, width=1):
    """Registers that the operands name, each with those that belong to it."""
    found = set()
    for kind, number, double in REGISTER.findall(text):
        count = max(width, 2 if double else 1) if kind.endswith("R") else 1
        found.update((kind, int(number) + k) for k in range(count))
    return found


def reads_and_writes(instruction):
    guard, _, operands = instruction.text.partition(instruction.opcode)
    width = 4 if ".128" in instruction.opcode else 2 if re.search(r"\.64|WIDE|CS2R", instruction.opcode) else 1
    if NO_RESULT.match(instruction.name):
        return named_registers(guard + operands, width if instruction.name == "STS" else 1), set()
    parts = operands.split(",")
    predicates = 1
    while predicates < len(parts) and re.fullmatch(r"\s*U?P[T\d]", parts[predicates]):
        predicates += 1  # carries, and the second result of a comparison
    results, sources = ",".join(parts[:predicates]), ",".join(parts[predicates:])
    return named_registers(guard + sources), named_registers(results, width)


def cost_of(instruction):
    return next(cost for pattern, cost in COSTS if re.match(pattern, instruction.opcode))


def is_rare(code):
    return len(code) <= RARE and any(instruction.name in ("CALL", "RET") for instruction in code)


def ends_step(code):
    """Is this the arrival at a cluster's barrier, which stands in the last round of a loop?"""
    return any(instruction.name == "UCGABAR_ARV" for instruction in code)


def trace(code, first, last, rounds):
    """Places in `code` that a warp passes from `first` to `last`; rounds(loop) is how often an inner loop goes round."""
    def loops_again(place):
        """Does the loop around `place` go round once more?"""
        return any(left.get(latch, rounds(code[begin:latch + 1])) > 1 for begin, latch in around if begin < place < latch)

    at, around = machine_code.places(code), [loop for loop in machine_code.loops(code) if loop[1] < last]
    left, place = {}, first
    while place < last:
        yield place
        instruction = code[place]
        target = at.get(instruction.target, place + 1)
        if instruction.target is None:
            place += 1
        elif target <= place:  # a loop
            left[place] = left.get(place, rounds(code[target:place + 1])) - 1
            if left[place] > 0:
                place = target
            else:
                del left[place]
                place += 1
        else:
            skipped = code[place + 1:target]
            is_taken = is_rare(skipped) or (len(skipped) <= RARE and ends_step(skipped) and loops_again(place))
            place = target if not instruction.conditional or is_taken else place + 1
    yield last


def step_loop(code):
    """First and last place of the loop of the steps: the longest one."""
    return max(machine_code.loops(code), key=lambda loop: loop[1] - loop[0])


def clocks_of_round(path, warps=1):
    """Clocks from one round's end to the next one's, where a warp goes round these instructions. With several warps a scheduler
    they hide each other's waits: then it is what their instructions and units take, if that is more."""
    uses = [(*reads_and_writes(instruction), cost_of(instruction)) for instruction in path]
    ready, free, now, ends, busy = {}, {}, 0, [], collections.Counter()
    for _ in range(3):
        for instruction, (reads, writes, cost) in zip(path, uses):
            busy.update({cost.unit: cost.busy, "issue": 1})
            queued = QUEUE * cost.busy if cost.unit == "shared" else 0
            now = max([now + 1, free.get(cost.unit, 0) - queued] + [ready.get(name, 0) for name in reads | writes])
            start = max(now, free.get(cost.unit, 0))
            free[cost.unit] = start + cost.busy
            ready.update((name, start + cost.latency) for name in writes)
            now += WAITS.get(instruction.name, 0)
        ends.append(now)
    return max(ends[2] - ends[1], int(warps * max(busy.values())) // len(ends))


def clocks_of_step(code, rounds, warps=1):
    first, last = step_loop(code)
    return clocks_of_round([code[place] for place in trace(code, first, last, rounds)], warps)


# --- The LSTM's kernels ---

CLOCK_GHZ = 1.98  # as in docs/kernels.md; under load a GPU may have a tenth less
QUARTERS = 4  # warps of a cluster's block: lstm_cluster.cu


def cluster_rounds(rows):
    """Inner loops of lstm_cluster.cu for a tile of so many rows."""
    def rounds(loop):
        names = collections.Counter(instruction.name for instruction in loop)
        if names["FFMA"] >= 128 and names["BAR"] > 0:
            return -(-(rows + QUARTERS - 1) // names["BAR"])  # a barrier a row
        return -(-rows // QUARTERS)
    return rounds


def block_rounds(loop):
    """Inner loops of lstm.cu: what a round of a product leaves of its fma."""
    fma = sum(instruction.name == "FFMA" for instruction in loop)
    return 4 * 8 * 128 // fma if fma >= 128 else 1  # of a thread's columns, rows and k


TILINGS = (  # rows of a tile, what takes it, its warps a scheduler, kernels forward and backward
    *((rows, "cluster of 4 blocks", 1, "lstm_forward_cluster_kernel<{}>", "lstm_backward_cluster_kernel")
      for rows in (4, 8, 16, 32)),
    (8, "block", 1, "lstm_forward_kernel<1, {}>", "lstm_backward_kernel<1>"),
    (32, "block", 4, "lstm_forward_kernel<4, {}>", "lstm_backward_kernel<4>"),
)


def lstm_table(code_of):
    """Lines of the table; code_of: {short name: [Instruction]}."""
    lines = ["A step of the LSTM kernels on sm_90 by the model of bench/latency_model.py: clocks, and microseconds at "
             f"{CLOCK_GHZ} GHz.", "Tiles up to a fourth of the multiprocessors' number (128 of 132) run at once in clusters, so that batches of 16 and of 128",
             "rows take tiles of 4.", "",
             "| rows of a tile | taken by | forward | with cells | backward |", "|---|---|---|---|---|"]
    for rows, owner, warps, forward, backward in TILINGS:
        rounds = cluster_rounds(rows) if "cluster" in forward else block_rounds
        cells = []
        for kernel in (forward.format("false"), forward.format("true"), backward):
            clocks = clocks_of_step(code_of[kernel], rounds, warps)
            cells.append(f"{clocks:,} = {clocks / CLOCK_GHZ / 1000:.1f} us")
        lines.append(f"| {rows} | {owner} | " + " | ".join(cells) + " |")
    return lines
