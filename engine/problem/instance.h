// SPDX-License-Identifier: Apache-2.0
// An instance as the user gave it, in the user's units and in double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/own_problem.h"
#include "kernels/common/problem_kind.h"
#include "kernels/tools/fnv1a.h"

namespace pointsman {

// How a tour is measured: kEuclidean is the plain, unrounded length; kExplicit takes the distances of a
// matrix as they are; kGeom is Concorde's great circle between decimal degrees, in whole metres; kHaversine
// and kHaversineKm are unrounded ones, in metres and kilometres; kFloor2d is the length rounded down. The
// others are TSPLIB95's, section 2.
enum class Metric {
  kEuclidean,
  kEuc2d,
  kCeil2d,
  kGeo,
  kAtt,
  kMan2d,
  kMax2d,
  kExplicit,
  kGeom,
  kHaversine,
  kHaversineKm,
  kFloor2d
};

// Distances of n cities, 0 from a city to itself.
struct DistanceMatrix {
  int n = 0;
  // [n (n - 1) / 2] the strict upper triangle by rows: (0, 1) .. (0, n - 1), (1, 2) ..; 0 or more, infinite
  // where there is no way; of a graph 1 where the two are joined, else 0.
  std::vector<double> above;
  // The way back of each; empty where it is as long.
  std::vector<double> back = {};

  bool is_symmetric() const { return back.empty(); }
  bool has_gaps() const {
    const auto is_gap = [](double way) { return std::isinf(way); };
    return std::ranges::any_of(above, is_gap) || std::ranges::any_of(back, is_gap);
  }

  // Where the distance of a and b > a stands in `above`.
  size_t place(int a, int b) const {
    return static_cast<size_t>(a) * (2 * static_cast<size_t>(n) - static_cast<size_t>(a) - 1) / 2 +
           static_cast<size_t>(b - a - 1);
  }
  double at(int a, int b) const {
    if (a == b) return 0.0;
    return a < b ? above[place(a, b)] : (is_symmetric() ? above : back)[place(b, a)];
  }
};

struct Instance {
  std::string id;                 // the file's own name for it; empty when it has none
  bool has_id = false;            // from the file: its 64-bit hash seeds the draws instead of the row number
  bool is_metric_chosen = false;  // by the user, not by the file
  int8_t first_id = 0;
  ProblemKind problem = ProblemKind::kTsp;
  Metric metric = Metric::kEuclidean;  // of problems with places
  double capacity = 0.0;               // of problems with one; CVRP: of each vehicle
  // [n][width()]: TSP x, y; KnapSack weight, value; CVRP x, y, demand, the depot first; TSPTW x, y, when it
  // opens, closes (may be infinite), and how long a visit takes, the depot first; a user's own problem what
  // it says; empty with a matrix, as ATSP and graphs always have, but of TSPTW with x and y 0
  std::vector<double> values;
  // Set exactly when the metric is kExplicit. All copies of the instance share it and nobody changes it.
  std::shared_ptr<const DistanceMatrix> matrix;
  // Pairs of cities that every tour must join (TSP): paths, or one tour of all cities.
  std::vector<std::array<int32_t, 2>> forced = {};
  // Pairs a < b, ascending, of cities that no tour or path may join, beside those of a matrix.
  std::vector<std::array<int32_t, 2>> forbidden = {};
  int32_t start = -1, end = -1;                     // the path's given first and last city; -1: any
  int32_t first_city = -1;                          // where the tours of its answers begin; -1: anywhere
  std::shared_ptr<const OwnProblem> own = nullptr;  // of a user's own problem
  // [n] what the file calls its items; null: it counts them from first_id.
  std::shared_ptr<const std::vector<std::string>> names = nullptr;

  int width() const { return own ? own->width() : numbers_of_item(problem); }
  int n() const { return matrix ? matrix->n : static_cast<int>(values.size()) / width(); }
  // False where only distances are known.
  bool has_coordinates() const { return matrix == nullptr; }
  // What no network reads, for a message; null: nothing.
  const char* beyond_networks() const {
    const bool is_atsp = problem == ProblemKind::kAtsp;
    return matrix && !is_atsp && !is_graph(problem)  ? "only distances"
           : matrix && is_atsp && matrix->has_gaps() ? "forbidden ways"
           : !forced.empty()                         ? "forced edges"
           : !forbidden.empty()                      ? "forbidden edges"
           : start >= 0 || end >= 0                  ? "given ends"
                                                     : nullptr;
  }
  bool suits_networks() const { return beyond_networks() == nullptr; }
  const double* item(int i) const { return values.data() + static_cast<size_t>(width()) * i; }
  double first(int i) const { return item(i)[0]; }   // x or weight
  double second(int i) const { return item(i)[1]; }  // y or value
};

using InstanceBatch = std::vector<Instance>;

// Some instances of a batch, which must outlive it.
using InstancePointers = std::vector<const Instance*>;

inline InstancePointers pointers_to(std::span<const Instance> instances) {
  InstancePointers pointers;
  for (const Instance& instance : instances) pointers.push_back(&instance);
  return pointers;
}

// kUnsolved: a limit or a signal came first. kInfeasible: every order found takes forbidden ways, or comes
// too late. Neither has an order and an objective.
enum class Status { kDone, kTimeLimit, kInterrupted, kUnsolved, kInfeasible };

// As the JSON says it.
inline const char* name_of(Status status) {
  constexpr const char* kNames[] = {"done", "time_limit", "interrupted", "unsolved", "infeasible"};
  return kNames[static_cast<int>(status)];
}

// What an answer's search began with; kNone: its mode does not tell.
enum class Start {
  kNone,
  kGreedyEdges,
  kNetwork,
  kExact,
  kBranchAndBound,
  kNearestNeighbour,
  kSavings,
  kClosingTimes,
  kDsatur
};

// As the JSON says it. kBranchAndBound: the best that its bounded work found, not proved to be the best.
inline const char* name_of(Start start) {
  constexpr const char* kNames[] = {"",        "greedy_edges",     "network",
                                    "exact",   "branch_and_bound", "nearest_neighbour",
                                    "savings", "closing_times",    "dsatur"};
  return kNames[static_cast<int>(start)];
}

// An answer in the user's units, re-checked in double (validate_solution) before it leaves the program.
struct Solution {
  // 0-based. TSP: the tour, n cities, open; KnapSack: the items taken, in order; CVRP: the customers in
  // order, 0 between two routes; colouring: of each node its colour, numbered as they first occur; a user's
  // own problem: its items in order
  std::vector<int32_t> order;
  // TSP, CVRP: length under the instance's metric; KnapSack: packed value; colouring: number of colours
  double objective = 0.0;
  // How many forbidden ways the order takes, or of TSPTW its delays, in the user's units; above 0 its length
  // is infinite.
  double violation = 0.0;
  double unrounded = 0.0;  // the Euclidean length, which no metric rounds; without coordinates the objective
  double weight = 0.0;     // packed by KnapSack
  double log_prob = 0.0;   // of the network for the order it drew; NaN when no network did
  double network_objective = 0.0;  // what the network reached before any improvement; NaN when none did
  // KnapSack: no packing's value is above it; NaN where the value is proved to be the best, or nothing is
  // known
  double bound = std::numeric_limits<double>::quiet_NaN();
  Status status = Status::kDone;
  Start start = Start::kNone;
  int64_t kicks = 0;    // that local search made
  int64_t redrawn = 0;  // samples drawn because all those before were infeasible
};

using SolutionBatch = std::vector<Solution>;

inline bool has_answer(const Solution& solution) {
  return solution.status != Status::kUnsolved && solution.status != Status::kInfeasible;
}

// Of an instance that no search came to.
inline Solution unsolved() {
  Solution solution;
  solution.objective = solution.unrounded = solution.weight = std::numeric_limits<double>::quiet_NaN();
  solution.log_prob = solution.network_objective = std::numeric_limits<double>::quiet_NaN();
  solution.status = Status::kUnsolved;
  return solution;
}

// Of one whose best order violates so much.
inline Solution infeasible(double violation) {
  Solution solution = unsolved();
  solution.violation = violation;
  solution.status = Status::kInfeasible;
  return solution;
}

// What the instance's random draws depend on: row number, or the 64-bit hash (FNV-1a) of the file's own id.
inline uint64_t instance_key(const Instance& instance, uint64_t row) {
  return instance.has_id ? fnv1a(instance.id) : row;
}

// Of all that an answer to the instance depends on: problem, metric, capacity and numbers, to the bit; not
// its id. It tells instances apart that nobody made to have the same one.
inline uint64_t instance_hash(const Instance& instance) {
  const char metric = static_cast<char>(instance.metric);
  uint64_t hash = fnv1a({&metric, 1}, fnv1a(name_of(instance.problem)));
  hash = hash_array(&instance.capacity, sizeof instance.capacity, hash);
  const auto add = [&](const auto& numbers) {
    hash = hash_array(numbers.data(), numbers.size() * sizeof numbers[0], hash);
  };
  if (instance.matrix) add(instance.matrix->above);
  add(instance.values);
  if (instance.matrix) add(instance.matrix->back);
  add(instance.forced);
  if (!instance.forbidden.empty()) {
    hash = fnv1a("forbidden", hash);
    add(instance.forbidden);
  }
  if (instance.first_city >= 0) add(std::array{instance.first_city});
  if (instance.start >= 0 || instance.end >= 0) add(std::array{instance.start, instance.end});
  return hash;
}

}  // namespace pointsman
