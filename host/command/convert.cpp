// SPDX-License-Identifier: Apache-2.0
// `pointsman convert`: the door to the Python package's `convert`, as PyTorch's files are Python's pickles.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "host/command/command.h"

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

// Becomes Python, with the same words.
int open_convert(std::vector<std::string> words) {
  const char* named = std::getenv("POINTSMAN_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  words.insert(words.begin(), {python, "-c", kScript, "convert"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(python.c_str(), argv.data());
  throw std::system_error(errno, std::generic_category(),
                          "convert needs Python (POINTSMAN_PYTHON names it): " + python);
}

}  // namespace

Command add_convert(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("convert", "A model's file to PyTorch's and back, by the Python package");
  app->set_help_flag();
  app->prefix_command();
  return {app, std::make_shared<CommonOptions>(), [=] { return open_convert(app->remaining()); }};
}

}  // namespace pointsman
