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
OPTIONS = ast.parse((PACKAGE / "_options.pyi").read_text())  # made by stubs.py


def public_functions():
    """{name: function} of the package and of its classes, and of pictures where matplotlib is there."""
    functions = {}
    for name in pointsman.__all__:
        member = getattr(pointsman, name)
        if inspect.isfunction(member):
            functions[name] = member
        elif inspect.isclass(member):
            for part, value in vars(member).items():
                value = getattr(value, "fget", None) or getattr(value, "func", value)  # of a property
                if inspect.isfunction(value) and (not part.startswith("_") or issubclass(member, pointsman.Error)):
                    functions[f"{name}.{part}"] = value
    try:
        from pointsman import plot
        functions.update({f"plot.{name}": getattr(plot, name) for name in ("tour", "ratio", "curve", "progress")})
    except ImportError:
        pass
    return functions


class Package(unittest.TestCase):

    def test_the_best_models_are_beside_the_library(self):
        self.assertEqual(pathlib.Path(_core.find_model("tsp20")), PACKAGE / "share/pointsman/models/tsp20.safetensors")
        shipped = {path.stem for path in (PACKAGE / "share/pointsman/models").glob("*")}
        self.assertEqual(shipped, {"tsp20", "tsp50", "tsp100", "tsp200", "knap50", "knap100", "knap200", "cvrp20", "cvrp50", "path50", "atsp20", "atsp50"})

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


class Types(unittest.TestCase):

    def test_it_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_what_is_public_has_types(self):
        functions = public_functions()
        self.assertIn("Result.tours", functions)
        for name, function in functions.items():
            with self.subTest(name):
                if name.endswith("__reduce__"):
                    continue
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, signature.empty)
                untyped = [parameter.name for parameter in signature.parameters.values()
                           if parameter.name != "self" and parameter.annotation is parameter.empty]
                self.assertEqual(untyped, [])
        for kind in (pointsman.Instances, pointsman.Result):
            attributes = {name for name, value in vars(kind).items() if not name.startswith("_") and not inspect.isfunction(value)}
            functions_of_kind = {name.split(".")[1] for name in functions if name.startswith(kind.__name__ + ".")}
            self.assertEqual(attributes - functions_of_kind, set(kind.__annotations__))

    def test_options_are_those_that_are_taken(self):
        declared = {
            node.name: {field.target.id: ast.unparse(field.annotation)
                        for field in node.body} for node in OPTIONS.body if isinstance(node, ast.ClassDef)
        }
        self.assertEqual(set(declared["DeviceOptions"]), _api._DEVICE)
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


class Solvers(unittest.TestCase):

    def test_arguments_by_place_and_by_name(self):
        self.assertIn("1 thread", pointsman.Solver("tsp20", "cpu", 1, "fp32").device)
        self.assertIn("1 thread", pointsman.Solver(model=None, device="cpu", threads=1, precision="fp32").device)


if __name__ == "__main__":
    unittest.main()
