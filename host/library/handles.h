// SPDX-License-Identifier: Apache-2.0
// What the library's handles hold, and how a call with a solver begins and ends.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "host/formats/formats.h"
#include "host/library/include/pointsman.h"
#include "host/options/did_you_mean.h"
#include "host/options/solve_options.h"
#include "host/run/failure.h"
#include "host/run/own_problem.h"
#include "host/run/solve_run.h"

struct pointsman_instances {
  pointsman::InstanceBatch batch;
};

struct pointsman_answers {
  pointsman::SolutionBatch solutions;
  pointsman::SolveSummary summary;  // of the call that gave them
};

struct pointsman_problem {
  pointsman::OwnDefinition definition;
};

struct pointsman_model {
  pointsman::Model model;
  pointsman_training training;
};

struct pointsman_solver {
  std::optional<pointsman::SolveRun> run;  // none: it could not be made
  int64_t threads = 0;                     // as it was asked for
  std::optional<pointsman::Engine> cpu;    // for problems of the caller's own, where the run has a GPU
  pointsman::RunLog log;
  std::map<std::string, std::string> settings;  // of pointsman_set_option()
  std::optional<pointsman::SolveCalls> calls;   // made by the first
  std::string device;
  std::unique_ptr<const std::string> bytes;  // of a format call: until the next call ends
  std::atomic<bool> is_busy{false};
  pointsman::Failure failure;  // of the last call; without a message it had none
  bool memory_failed = false;  // in the last call: told without taking any

  // The status of the exception that is being handled, and what is told of it from now on.
  int remember_failure() noexcept;
  // Keeps what a format call made, and tells where.
  void give_bytes(std::string made, const void** data, size_t* size);
  // Throws std::invalid_argument where there is none.
  pointsman::SolveRun& ready_run();
  pointsman::Engine& cpu_engine();
  // The options of the next call, at their defaults.
  pointsman::OptionSet& begin_call() { return (calls ? *calls : calls.emplace()).begin(); }
};

namespace pointsman {

// work() between the beginning and the end of a call, and the status that it returns; where it returns none,
// POINTSMAN_OK.
template <typename Work>
int call_with(pointsman_solver* solver, Work work) noexcept {
  if (solver == nullptr || solver->is_busy.exchange(true)) return POINTSMAN_USAGE;
  int status = POINTSMAN_OK;
  const auto readable = std::move(solver->bytes);  // by this call, which may parse them
  try {
    solver->failure = {};
    solver->memory_failed = false;
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
    } else {
      status = work();
    }
  } catch (...) {
    status = solver->remember_failure();
  }
  solver->is_busy = false;
  return status;
}

template <typename Pointer>
Pointer* required(Pointer* pointer, const char* name) {
  if (pointer == nullptr) throw std::invalid_argument(std::string(name) + ": expected a pointer, found NULL");
  return pointer;
}

// Throws std::invalid_argument for another count, and for the first that is no answer to its instance.
void require_answers_to(const InstanceBatch& instances, const SolutionBatch& solutions);

// The format of this name, which may be null, else by the suffix of the path. Throws std::invalid_argument
// where that is none that `can` holds of (&Format::write: one that can be written).
template <typename Format, typename Can>
const Format& chosen_format(std::span<const Format> formats, const char* name, const std::string& path,
                            Can can) {
  const Format* const chosen =
      name != nullptr ? format_named(formats, name) : format_by_suffix(formats, path);
  if (chosen != nullptr && chosen->*can) return *chosen;
  std::vector<std::string> known;
  for (const Format& format : formats) {
    if (format.*can) known.emplace_back(format.name);
  }
  const std::string found = name != nullptr ? name : file_suffix(path);
  throw std::invalid_argument("format: expected one of " + joined(known, ", ") + ", found " +
                              (found.empty() ? "none" : shown(found)) +
                              did_you_mean(found.substr(found.starts_with('.')), known));
}

// Writes a file, whole or not at all; bytes() is called once the file can be written. Throws as OutputFile.
template <typename Bytes>
void write_output(const std::string& path, bool replace, Bytes bytes) {
  if (path.empty()) throw std::invalid_argument("path: expected one, found \"\"");
  OutputFile file(path, replace);
  file.write(bytes());
  file.commit();
}

// The size that a struct had in the first version of the interface: nothing smaller is one.
template <typename Struct>
constexpr size_t kFirstSize = 0;
template <>
inline constexpr size_t kFirstSize<pointsman_solver_options> = 48;
template <>
inline constexpr size_t kFirstSize<pointsman_solve_options> = 168;
template <>
inline constexpr size_t kFirstSize<pointsman_read_options> = 32;
template <>
inline constexpr size_t kFirstSize<pointsman_instance> = 56;
template <>
inline constexpr size_t kFirstSize<pointsman_answer> = 88;
template <>
inline constexpr size_t kFirstSize<pointsman_problem_options> = 80;
template <>
inline constexpr size_t kFirstSize<pointsman_train_options> = 48;
template <>
inline constexpr size_t kFirstSize<pointsman_training> = 64;

template <typename Struct>
bool is_known_size(size_t size) {
  static_assert(kFirstSize<Struct> > 0 && kFirstSize<Struct> <= sizeof(Struct));
  return size >= kFirstSize<Struct> && size <= sizeof(Struct);
}

// Copies as much of `from` as the caller's struct has.
template <typename Struct>
int give(Struct from, Struct* to, size_t size) {
  if (to == nullptr || !is_known_size<Struct>(size)) return POINTSMAN_USAGE;
  from.size = size;
  std::memcpy(to, &from, size);
  return POINTSMAN_OK;
}

// What the caller's struct says, and for members that it does not have `defaults`.
template <typename Struct>
Struct taken(const Struct* given, const Struct& defaults) {
  Struct own = defaults;
  if (given == nullptr) return own;
  if (!is_known_size<Struct>(given->size)) {
    throw std::invalid_argument("options: expected the size that their init function sets, found " +
                                std::to_string(given->size));
  }
  std::memcpy(&own, given, given->size);
  own.size = sizeof own;
  return own;
}

}  // namespace pointsman
