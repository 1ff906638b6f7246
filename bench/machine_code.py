# SPDX-License-Identifier: Apache-2.0
"""Machine code as cuobjdump lists it, for kernel_table.py and latency_model.py."""
import collections
import re

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", re.MULTILINE)
Instruction = collections.namedtuple("Instruction", "address conditional opcode name target text")


def instruction_of(address, text):
    words = text.split()
    conditional = words[0].startswith("@")
    opcode = words[conditional]
    # BRA.DIV branches only when the lanes have parted.
    target = re.search(r"0x([0-9a-f]+)$", text) if opcode == "BRA" else None
    return Instruction(int(address, 16), conditional, opcode, opcode.split(".")[0], target and int(target[1], 16), text)


def functions(listing):
    """{mangled name: [Instruction]} of cuobjdump -sass."""
    parts = re.split(r"Function : (\S+)", listing)
    return {name: [instruction_of(*match) for match in INSTRUCTION.findall(code)]
            for name, code in zip(parts[1::2], parts[2::2])}


def places(code):
    """{address: its place in `code`}"""
    return {instruction.address: place for place, instruction in enumerate(code)}


def loops(code):
    """[(first place, place of the branch back)]"""
    at = places(code)
    return [(at[instruction.target], place) for place, instruction in enumerate(code)
            if instruction.target is not None and instruction.target <= instruction.address]
