# SPDX-License-Identifier: Apache-2.0
"""The program beside the package: what both must answer alike."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ["POINTSMAN_PROGRAM"]


def run(*arguments):
    """stdout of the program, which must succeed."""
    return subprocess.run([PROGRAM, *map(str, arguments), "-q"], check=True, stdout=subprocess.PIPE).stdout


def answers(*arguments):
    return json.loads(run("solve", *arguments, "--format", "json"))


def flags(options):
    """Keyword arguments as a user would type them."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag if name == "shuffle" else flag + "=on")
        elif value is False:
            words.append("--no-shuffle" if name == "shuffle" else flag + "=off")
        else:
            words.append(f"{flag}={value}")
    return words


class FolderTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
