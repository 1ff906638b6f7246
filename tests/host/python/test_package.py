# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: its models, its types, its import."""
import ast
import inspect
import pathlib
import re
import subprocess
import sys
import unittest

import pointsman
from pointsman import _api, _core
from program import PROGRAM, run

PACKAGE = pathlib.Path(pointsman.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text())
OPTIONS = ast.parse((PACKAGE / "_options.pyi").read_text())  # made by stubs.py


def names_of(body):
    """Functions of the stub: {name: names of its parameters}."""
    return {
        node.name: {
            argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        } for node in body if isinstance(node, ast.FunctionDef)
    }


def class_of(name):
    [found] = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found


class Package(unittest.TestCase):

    def test_the_best_models_are_beside_the_library(self):
        self.assertEqual(pathlib.Path(_core.find_model("tsp20")), PACKAGE / "share/pointsman/models/tsp20.safetensors")
        shipped = {path.stem for path in (PACKAGE / "share/pointsman/models").glob("*")}
        self.assertEqual(shipped, {"tsp20", "tsp50", "tsp100", "tsp200", "knap50", "knap100", "knap200"})

    def test_no_model_comes_from_the_folder_of_the_build(self):
        with self.assertRaises(pointsman.InputError) as caught:
            _core.find_model("tsp20-lstm")  # in the source tree, and not in the package
        self.assertNotIn(str(pathlib.Path(__file__).parents[3] / "models"), str(caught.exception))

    def test_it_needs_only_numpy(self):
        loaded = subprocess.run([
            sys.executable, "-c", "import sys, numpy; before = set(sys.modules); import pointsman; "
            "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
        ], check=True, stdout=subprocess.PIPE).stdout.decode().split()
        self.assertEqual(set(loaded) - {"numpy"}, {"pointsman"})

    def test_the_version_is_the_programs(self):
        self.assertIn(f"pointsman {pointsman.__version__}\n", run("--version").decode())


class Stub(unittest.TestCase):

    def test_it_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_it_has_what_the_package_has(self):
        declared = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        declared |= {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
        self.assertEqual(declared - {"StateDict"}, set(pointsman.__all__))

    def test_classes_have_their_members(self):
        for name in ("Instances", "Result", "Solver"):
            real = {member for member in vars(getattr(pointsman, name)) if not member.startswith("_")}
            declared = {node.name for node in class_of(name).body if not node.name.startswith("_")}
            self.assertEqual(declared, real)

    def test_options_are_those_that_are_taken(self):
        declared = {
            node.name: {field.target.id: ast.unparse(field.annotation)
                        for field in node.body} for node in OPTIONS.body if isinstance(node, ast.ClassDef)
        }
        self.assertEqual(set(declared["SolveOptions"]), _api._SOLVE)
        self.assertEqual(set(declared["SampleOptions"]), _api._SOLVE - {"mode", "samples"})
        self.assertEqual(set(declared["TrainOptions"]), _api._TRAIN - {"problem", "size", "output"})
        solve = declared["SolveOptions"]
        self.assertEqual(solve["augment"], "Literal[0, 1, 8] | None")
        self.assertEqual(solve["improve"], "bool | None")
        self.assertEqual(solve["kicks"], "int | None")
        self.assertEqual(solve["learn"], "Literal['all', 'attention'] | None")

    def test_options_are_the_programs_flags(self):
        for command, options in (("solve", _api._SOLVE | _api._DEVICE), ("train", _api._TRAIN),
                                 ("generate", _api._GENERATE)):
            text = subprocess.run([PROGRAM, command, "--help"], stdout=subprocess.PIPE,
                                  check=True).stdout.decode()
            flags = {name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", text)}
            self.assertEqual(options - flags - {"problem"}, set())

    def test_positional_parameters_agree(self):
        for function in (pointsman.read, pointsman.read_answers, pointsman.write, pointsman.generate, pointsman.train,
                         pointsman.from_torch):
            real = [
                name for name, parameter in inspect.signature(function).parameters.items()
                if parameter.kind is not parameter.VAR_KEYWORD
            ]
            self.assertLessEqual(set(real), names_of(STUB.body)[function.__name__])


class Solvers(unittest.TestCase):

    def test_arguments_by_place_and_by_name(self):
        self.assertIn("1 thread", pointsman.Solver("tsp20", "cpu", 1, "fp32").device)
        self.assertIn("1 thread", pointsman.Solver(model=None, device="cpu", threads=1, precision="fp32").device)


if __name__ == "__main__":
    unittest.main()
