// SPDX-License-Identifier: Apache-2.0
// `pointsman bench`: the door to a program of its own, pointsman-bench (bench/engine).
#include <cstdlib>
#include <filesystem>

#include "host/command/door.h"

namespace pointsman {

namespace {

// POINTSMAN_BENCH, or where the build tree or the installation has it beside this program's folder.
std::filesystem::path bench_program() {
  if (const char* program = std::getenv("POINTSMAN_BENCH")) return program;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto built = prefix / "bench/pointsman-bench";
  return std::filesystem::exists(built) ? built : prefix / "libexec/pointsman-bench";
}

Door bench() {
  // Absolute: a bare name is a file here, not one of PATH.
  const std::filesystem::path program = std::filesystem::absolute(bench_program());
  return {{program, "bench"}, "the bench is a program of its own (POINTSMAN_BENCH names it)"};
}

}  // namespace

Command add_bench(CLI::App& parent) {
  return add_door(parent, "bench", "Measure this machine, beside PyTorch where it is installed", bench);
}

}  // namespace pointsman
