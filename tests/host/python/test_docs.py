# SPDX-License-Identifier: Apache-2.0
"""docs/python.md: its blocks of Python run, one after the other, and print what the blocks behind them say."""
import contextlib
import io
import os
import re
import unittest

from program import FolderTest, ROOT

PAGE = (ROOT / "docs/python.md").read_text()
# A block of Python and, where nothing but blank lines is between, the block of what it prints.
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n*```text\n(.*?)```\n)?", re.DOTALL)
OPTIONAL = ("networkx", "pandas", "torch")


class Page(FolderTest):

    def test_blocks(self):
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        names, blocks = {}, BLOCK.findall(PAGE)
        self.assertGreater(len(blocks), 8)
        for code, expected in blocks:
            line = PAGE[:PAGE.index(code)].count("\n") + 1
            printed = io.StringIO()
            with self.subTest(line=line):
                try:
                    with contextlib.redirect_stdout(printed):
                        exec(compile("\n" * (line - 1) + code, "docs/python.md", "exec"), names)
                except ModuleNotFoundError as error:
                    if error.name not in OPTIONAL:
                        raise
                    print(f"SKIPPED: the block of line {line}: no {error.name} here")
                    continue
                self.assertEqual(printed.getvalue(), expected)


if __name__ == "__main__":
    unittest.main()
