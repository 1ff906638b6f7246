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

enum class ProblemKind : int32_t { kTsp, kKnapsack };

// As model files, instances and the command line say it; null past the last kind.
constexpr const char* name_of(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kTsp:
      return "tsp";
    case ProblemKind::kKnapsack:
      return "knapsack";
  }
  return nullptr;
}

// Calls visit(kind) for every kind, in order.
template <typename Visit>
constexpr void for_each_problem(Visit&& visit) {
  for (int32_t i = 0; name_of(static_cast<ProblemKind>(i)) != nullptr; ++i)
    visit(static_cast<ProblemKind>(i));
}

// Of all problems, for a message: "tsp or knapsack", each between `quote`.
inline std::string problem_names(const std::string& quote = "") {
  std::string names;
  for_each_problem(
      [&](ProblemKind kind) { names += (names.empty() ? "" : " or ") + quote + name_of(kind) + quote; });
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
