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

// No command names the last two: kOwn, a user's own problem (own_problem.h), and kStretch, what a network for
// the TSP that re-reads is asked for (stretch.h).
enum class ProblemKind : int32_t {
#define POINTSMAN_PROBLEM(Kind, name, numbers) k##Kind,
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
  kOwn,
  kStretch
};

// As model files, instances and the command line say it.
constexpr const char* name_of(ProblemKind kind) {
  switch (kind) {
#define POINTSMAN_PROBLEM(Kind, name, numbers) \
  case ProblemKind::k##Kind:                   \
    return name;
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
    case ProblemKind::kOwn:
      return "own";
    case ProblemKind::kStretch:
      return "stretch";
  }
  return nullptr;
}

constexpr bool is_own(ProblemKind kind) { return kind == ProblemKind::kOwn; }

// Whether an answer ends at its last item: there is no way back.
constexpr bool is_open(ProblemKind kind) { return kind == ProblemKind::kPath; }

// Whether an instance's matrix says which items are joined, and no distances.
constexpr bool is_graph(ProblemKind kind) { return kind == ProblemKind::kColouring; }

// How many numbers of an item an instance holds; 0: a matrix, or as many as a user's own problem says.
constexpr int numbers_of_item(ProblemKind kind) {
  switch (kind) {
#define POINTSMAN_PROBLEM(Kind, name, numbers) \
  case ProblemKind::k##Kind:                   \
    return numbers;
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
    case ProblemKind::kOwn:
    case ProblemKind::kStretch:
      break;
  }
  return 0;
}

// Calls visit(kind) for every kind that has a name for commands, in order.
template <typename Visit>
constexpr void for_each_problem(Visit&& visit) {
  for (auto kind = ProblemKind::kTsp; kind != ProblemKind::kOwn;
       kind = static_cast<ProblemKind>(static_cast<int32_t>(kind) + 1))
    visit(kind);
}

// Of all problems, for a message: "tsp, knapsack or cvrp", each between `quote`.
inline std::string problem_names(const std::string& quote = "") {
  std::string names;
  for_each_problem([&](ProblemKind kind) {
    const bool last = static_cast<int32_t>(kind) + 1 == static_cast<int32_t>(ProblemKind::kOwn);
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

// Of a model or a checkpoint, which a user's own problem has too.
constexpr std::optional<ProblemKind> find_learned_problem(std::string_view name) {
  if (name == name_of(ProblemKind::kOwn)) return ProblemKind::kOwn;
  return find_problem(name);
}

}  // namespace pointsman
