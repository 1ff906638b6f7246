// SPDX-License-Identifier: Apache-2.0
// fuzz_readers [--seconds S] [--executions N] [--seed K] [TARGET [FILE..]]
// Runs each target, or the one named, on changes of its corpus until S seconds or N executions of each are
// over, and says how many there were. With files it runs these alone. An input that a reader fails on is kept
// in the current folder; exit code 1.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "kernels/tools/fnv1a.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"

namespace {

size_t held_bytes = 0, most_bytes = std::numeric_limits<size_t>::max();

}  // namespace

// Sanitizers count for themselves.
#ifndef __SANITIZE_ADDRESS__
void* operator new(size_t size) {
  void* const block = held_bytes + size > most_bytes ? nullptr : std::malloc(std::max<size_t>(size, 1));
  if (block == nullptr) throw std::bad_alloc();
  held_bytes += malloc_usable_size(block);
  return block;
}
void operator delete(void* block) noexcept {
  held_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }
#else
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:max_allocation_size_mb=128:allocator_may_return_null=0";
}
#endif

namespace {

using namespace pointsman;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kSlowest = 20;  // seconds of one execution

struct Options {
  double seconds = 0.0;    // of all targets together; 0: none
  int64_t executions = 0;  // of each target; 0: none
  uint64_t seed = 1;
  std::vector<std::string> names;  // a target and its files
};

// The execution that runs: what a signal handler can keep.
struct {
  const char* target = "";
  const char* bytes = nullptr;
  size_t size = 0;
} running;

void keep_input() {
  char name[128];
  const uint64_t hash = fnv1a({running.bytes, running.size});
  std::snprintf(name, sizeof name, "finding-%s-%016llx", running.target,
                static_cast<unsigned long long>(hash));
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool is_kept =
      file >= 0 && write(file, running.bytes, running.size) == static_cast<ssize_t>(running.size);
  std::fprintf(stderr, "%s: %s %s\n", running.target,
               is_kept ? "the input is kept in" : "the input cannot be kept in", name);
  close(file);
}

void end_by_signal(int signal) {
  std::fprintf(stderr, "%s: FINDING: signal %d%s\n", running.target, signal,
               signal == SIGALRM ? ", too slow" : "");
  keep_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// False when the execution is a finding.
bool execute(const FuzzTarget& target, const std::string& input, int64_t& accepted) {
  running = {target.name.c_str(), input.data(), input.size()};
  most_bytes = held_bytes + target.memory + kMemoryPerByte * input.size();
  std::string wrong;
  try {
    accepted += target.accepts(input);
    most_bytes = std::numeric_limits<size_t>::max();
    return true;
  } catch (const std::exception& error) {
    most_bytes = std::numeric_limits<size_t>::max();
    std::fprintf(stderr, "%s: FINDING: %s\n", target.name.c_str(), error.what());
  }
  keep_input();
  return false;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// In an order that does not depend on the disk.
std::vector<std::string> seeds_of(const FuzzTarget& target) {
  std::vector<std::string> seeds = target.seeds ? target.seeds() : std::vector<std::string>();
  const fs::path folder = fs::path(POINTSMAN_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  std::vector<fs::path> paths;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) seeds.push_back(bytes_of(path));
  if (seeds.empty()) throw std::runtime_error(target.name + ": no corpus in " + folder.string());
  return seeds;
}

// Each seed is a valid file, so that changes of it reach far into the reader.
bool check_seeds(const FuzzTarget& target, const std::vector<std::string>& seeds) {
  for (size_t i = 0; i < seeds.size(); ++i) {
    int64_t accepted = 0;
    if (!execute(target, seeds[i], accepted)) return false;
    if (accepted == 1) continue;
    std::fprintf(stderr, "%s: FINDING: seed %zu is refused\n", target.name.c_str(), i);
    return false;
  }
  return true;
}

// Changes of the seeds, and of the changes that were accepted last. False at the first finding.
bool fuzz(const FuzzTarget& target, const Options& options, double seconds, int64_t& executions) {
  constexpr size_t kMostAccepted = 64;
  const std::vector<std::string> seeds = seeds_of(target);
  std::vector<std::string> pool = seeds;
  const size_t shortest = std::min_element(seeds.begin(), seeds.end(), [](const auto& a, const auto& b) {
                            return a.size() < b.size();
                          })->size();
  Mutator mutator(options.seed);
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  int64_t accepted = 0;
  bool is_good = check_seeds(target, seeds);
  for (executions = 0; is_good; ++executions) {
    if (options.executions > 0 && executions == options.executions) break;
    if (executions % 64 == 0) {
      alarm(kSlowest);
      if (seconds > 0.0 && Clock::now() >= end) break;
    }
    const std::string input =
        mutator.mutate(pool[mutator.below(pool.size())], seeds[mutator.below(seeds.size())]);
    const int64_t before = accepted;
    is_good = execute(target, input, accepted);
    if (accepted == before || input.size() < shortest / 2) continue;  // little is left to change
    if (pool.size() < seeds.size() + kMostAccepted) {
      pool.push_back(input);
    } else {
      pool[seeds.size() + mutator.below(kMostAccepted)] = input;
    }
  }
  alarm(0);
  std::printf("%-18s %12lld executions, %11lld accepted, findings=%d\n", target.name.c_str(),
              static_cast<long long>(executions), static_cast<long long>(accepted), is_good ? 0 : 1);
  std::fflush(stdout);
  return is_good;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = word.starts_with("--");
    if (is_flag && ++i == argc) throw std::runtime_error(word + ": expected a number behind it");
    if (word == "--seconds") {
      options.seconds = std::stod(argv[i]);
    } else if (word == "--executions") {
      options.executions = std::stoll(argv[i]);
    } else if (word == "--seed") {
      options.seed = std::stoull(argv[i]);
    } else if (is_flag) {
      throw std::runtime_error(word + ": expected --seconds, --executions or --seed");
    } else {
      options.names.push_back(word);
    }
  }
  if (options.seconds <= 0.0 && options.executions <= 0 && options.names.size() < 2)
    throw std::runtime_error("expected --seconds S, --executions N or files");
  return options;
}

int run(const Options& options) {
  std::vector<FuzzTarget> targets = fuzz_targets();
  if (!options.names.empty()) {
    const FuzzTarget* const named = find_fuzz_target(options.names[0]);
    if (named == nullptr) throw std::runtime_error("no target " + options.names[0]);
    targets = {*named};
  }
  int findings = 0;
  for (size_t i = 1; i < options.names.size(); ++i) {
    int64_t accepted = 0;
    findings += !execute(targets[0], bytes_of(options.names[i]), accepted);
    std::printf("%s: %s\n", options.names[i].c_str(), accepted == 1 ? "accepted" : "not accepted");
  }
  if (options.names.size() > 1) return findings > 0;
  int64_t total = 0;
  for (const FuzzTarget& target : targets) {
    int64_t executions = 0;
    findings += !fuzz(target, options, options.seconds / static_cast<double>(targets.size()), executions);
    total += executions;
  }
  std::printf("%-18s %12lld executions, findings=%d\n", "all", static_cast<long long>(total), findings);
  return findings > 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    std::signal(signal, end_by_signal);
  try {
    return run(parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_readers: %s\n", error.what());
    return 2;
  }
}
