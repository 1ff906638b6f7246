// SPDX-License-Identifier: Apache-2.0
// `pointsman bench`: the door to a program of its own, pointsman-bench (bench/engine).
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "host/command/command.h"

namespace pointsman {

namespace {

// POINTSMAN_BENCH, or where the build tree or the installation has it beside this program's folder.
std::filesystem::path bench_program() {
  if (const char* program = std::getenv("POINTSMAN_BENCH")) return program;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto built = prefix / "bench/pointsman-bench";
  return std::filesystem::exists(built) ? built : prefix / "libexec/pointsman-bench";
}

// Becomes the bench, with the same words.
int open_bench(std::vector<std::string> words) {
  const std::string program = bench_program();
  words.insert(words.begin(), {program, "bench"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw std::system_error(errno, std::generic_category(),
                          "the bench is a program of its own (POINTSMAN_BENCH names it): " + program);
}

}  // namespace

Command add_bench(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("bench", "Measure this machine, beside PyTorch where it is installed");
  app->set_help_flag();
  app->prefix_command();
  return {app, std::make_shared<CommonOptions>(), [=] { return open_bench(app->remaining()); }};
}

}  // namespace pointsman
