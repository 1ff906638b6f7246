# SPDX-License-Identifier: Apache-2.0
"""docs/python.md and own-problems.md: their blocks of Python run, one after the other, and print what the blocks behind
them say."""
import contextlib
import io
import os
import re
import unittest

from program import FolderTest, ROOT

PAGES = "docs/python.md", "docs/own-problems.md"
# A block of Python and, where nothing but blank lines is between, the block of what it prints.
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n*```text\n(.*?)```\n)?", re.DOTALL)
OPTIONAL = ("matplotlib", "networkx", "pandas", "torch")


class Page(FolderTest):

    def test_blocks(self):
        for page in PAGES:
            with self.subTest(page=page):
                self.run_page(page, (ROOT / page).read_text())

    def run_page(self, name, page):
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        names, blocks = {}, BLOCK.findall(page)
        self.assertGreater(len(blocks), 2)
        for code, expected in blocks:
            line = page[:page.index(code)].count("\n") + 1
            printed = io.StringIO()
            with self.subTest(line=line):
                try:
                    with contextlib.redirect_stdout(printed):
                        exec(compile("\n" * (line - 1) + code, name, "exec"), names)
                except ModuleNotFoundError as error:
                    if error.name not in OPTIONAL:
                        raise
                    print(f"SKIPPED: the block of line {line}: no {error.name} here")
                    continue
                self.assertEqual(printed.getvalue(), expected)


if __name__ == "__main__":
    unittest.main()
