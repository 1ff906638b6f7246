// SPDX-License-Identifier: Apache-2.0
// Which problem a batch holds: one enumerator a problem, numbered from 0. CONTRIBUTING.md ("Adding a
// problem") lists all that a problem consists of; every switch over this enum is without a default, so what
// is forgotten does not compile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pointsman {

enum class ProblemKind : int32_t { kTsp, kKnapsack, kCvrp, kAtsp, kPath };

// As model files, instances and the command line say it; null past the last kind.
constexpr const char* name_of(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kTsp:
      return "tsp";
    case ProblemKind::kKnapsack:
      return "knapsack";
    case ProblemKind::kCvrp:
      return "cvrp";
    case ProblemKind::kAtsp:
      return "atsp";
    case ProblemKind::kPath:
      return "path";
  }
  return nullptr;
}

// Whether an answer ends at its last item: there is no way back.
constexpr bool is_open(ProblemKind kind) { return kind == ProblemKind::kPath; }

// How many numbers of an item an instance holds.
constexpr int numbers_of_item(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kTsp:
    case ProblemKind::kPath:
    case ProblemKind::kKnapsack:
      return 2;
    case ProblemKind::kCvrp:
      return 3;
    case ProblemKind::kAtsp:
      return 0;  // a matrix
  }
  return 0;
}

// Calls visit(kind) for every kind, in order.
template <typename Visit>
constexpr void for_each_problem(Visit&& visit) {
  for (int32_t i = 0; name_of(static_cast<ProblemKind>(i)) != nullptr; ++i)
    visit(static_cast<ProblemKind>(i));
}

// Of all problems, for a message: "tsp, knapsack or cvrp", each between `quote`.
inline std::string problem_names(const std::string& quote = "") {
  std::string names;
  for_each_problem([&](ProblemKind kind) {
    const bool last = name_of(static_cast<ProblemKind>(static_cast<int32_t>(kind) + 1)) == nullptr;
    names += (names.empty() ? "" : last ? " or " : ", ") + quote + name_of(kind) + quote;
  });
  return names;
}

constexpr std::optional<ProblemKind> find_problem(std::string_view name) {
  std::optional<ProblemKind> found;
  for_each_problem([&](ProblemKind kind) {
    if (name == name_of(kind)) found = kind;
  });
  return found;
}

}  // namespace pointsman
