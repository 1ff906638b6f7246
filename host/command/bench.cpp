// SPDX-License-Identifier: Apache-2.0
// `pointsman bench`: becomes pointsman-bench (bench/engine), a program of its own.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "host/command/command.h"
#include "host/command/process.h"

namespace pointsman {

namespace {

// Where the build tree or the installation has it beside this program's folder.
std::filesystem::path bench_program() {
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto built = prefix / "bench/pointsman-bench";
  return std::filesystem::exists(built) ? built : prefix / "libexec/pointsman-bench";
}

[[noreturn]] void become_bench(Words words) {
  if (process_ranks().size() > 1) throw UsageError("bench: is for one process");
  const std::string program = bench_program();
  std::vector<char*> argv{const_cast<char*>(program.c_str()), const_cast<char*>("bench")};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw std::system_error(errno, std::generic_category(), "the bench is a program of its own: " + program);
}

}  // namespace

Command bench_command() {
  Command command{"bench", "Measure this machine, beside PyTorch where it is installed", ""};
  command.has_own_parser = true;
  command.run = [](const Command&, const Words& words) -> int { become_bench(words); };
  return command;
}

}  // namespace pointsman
