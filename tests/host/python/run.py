#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it into a fresh virtual environment and runs the tests beside this file there.

    python3 tests/host/python/run.py BUILD_DIR PROGRAM [TEST..]

BUILD_DIR keeps what was compiled, BUILD_DIR-environment the virtual environment. PROGRAM is the `pointsman` whose
answers the package must give. Where pip's index cannot be reached nothing is run, a line says so, and the exit code is
77. Without its models the wheel, which has no CUDA module, must hold at most 2 MB.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SKIPPED = 77
LARGEST_CODE = 2_000_000  # bytes, compressed
NEEDED = ["numpy", "nanobind", "scikit-build-core"]


def pip_install(python):
    # Python compiles the few modules that the tests import; pip would compile all of them.
    return [python, "-m", "pip", "install", "--quiet", "--no-compile"]


def make_environment(folder):
    """The Python of a fresh environment with what a build needs; None where pip cannot get it."""
    shutil.rmtree(folder, ignore_errors=True)
    # Debian's PyTorch, where it is installed, is for its tests.
    made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder])
    python = folder / "bin/python"
    if made.returncode != 0:
        return None
    got = subprocess.run(pip_install(python) + NEEDED)
    return python if got.returncode == 0 else None


def install_examples(python, folder):
    """What examples of docs/python.md and the tests of other libraries need, for the numpy that is there. Their tests pass
    over what pip cannot get."""
    command = [python, "-c", "import numpy; print(numpy.__version__)"]
    version = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    constraint = folder / "constraint.txt"
    constraint.write_text("numpy==" + version.decode())
    command = [*pip_install(python), "--constraint", constraint]
    groups = (["networkx", "pandas"], ["matplotlib"], ["dask", "distributed"], ["joblib"])
    if subprocess.run(command + sum(groups, [])).returncode != 0:
        for packages in groups:
            subprocess.run(command + packages)


def install(python, build, wheels):
    """Of a wheel that is built from this tree; what an earlier run compiled is used again."""
    shutil.rmtree(wheels, ignore_errors=True)
    settings = (f"build-dir={build}", "cmake.define.POINTSMAN_CUDA=OFF")
    pip = [python, "-m", "pip"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels,
                    *(f"--config-settings={setting}" for setting in settings), ROOT], check=True)
    [wheel] = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        code = sum(file.compress_size for file in archive.infolist() if not file.filename.endswith(".safetensors"))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {code / 1e6:.1f} MB of them no model", flush=True)
    if code > LARGEST_CODE:
        sys.exit(f"expected at most {LARGEST_CODE / 1e6:.0f} MB beside the models")
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--force-reinstall", wheel], check=True)


def main():
    build, program, *names = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    # Beside the build folder, in which the package would find the models of the source tree.
    folder = build.with_name(build.name + "-environment")
    python = make_environment(folder / "venv")
    if python is None:
        print("SKIPPED: pip cannot get " + ", ".join(NEEDED))
        return SKIPPED
    install_examples(python, folder)
    install(python, build, folder / "wheels")
    environment = {
        **os.environ, "POINTSMAN_PROGRAM": str(pathlib.Path(program).resolve()),
        "PYTHONPYCACHEPREFIX": str(folder / "pycache")
    }
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    failed = []
    for test in sorted(HERE.glob("test_*.py")):
        if names and test.stem not in names:
            continue
        print(f"== {test.stem}", flush=True)
        if subprocess.run([python, test], env=environment, cwd=folder).returncode not in (0, SKIPPED):
            failed.append(test.stem)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
