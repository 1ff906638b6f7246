// SPDX-License-Identifier: Apache-2.0
// `pointsman convert`: the door to the Python package's `convert`, as PyTorch's files are Python's pickles.
#include <cstdlib>

#include "host/command/door.h"

namespace pointsman {

namespace {

// The package that is installed, not a folder of its name where the user happens to be.
constexpr const char* kScript = R"(import sys
sys.path[:] = filter(None, sys.path)
try:
    from pointsman.__main__ import main
except ImportError as error:
    sys.stderr.write(f"pointsman: error: convert needs the Python package (pip install .): {error}\n")
    sys.exit(4)
sys.exit(main())
)";

Door python() {
  const char* named = std::getenv("POINTSMAN_PYTHON");
  return {{named != nullptr ? named : "python3", "-c", kScript, "convert"},
          "convert needs Python (POINTSMAN_PYTHON names it)"};
}

}  // namespace

Command add_convert(CLI::App& parent) {
  return add_door(parent, "convert", "A model's file to PyTorch's and back, by the Python package", python);
}

}  // namespace pointsman
