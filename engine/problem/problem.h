// SPDX-License-Identifier: Apache-2.0
// Everything about a problem that is not arithmetic of the decode loop (its rules, kernels/common/rules.h):
// one table that readers, writers, searches and the command line ask, so that nobody else needs to know which
// problems there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/packing_units.h"
#include "kernels/common/remaining.h"

namespace pointsman {

// What the numbers of an item are.
// kDistances: an instance is a matrix, and items have no numbers of their own.
// kEdges: likewise, of a graph, whose matrix has 1 where nodes are joined.
// kOwn: a user's own, of which nothing else is known.
// kCoordinatesAndWindows: x, y, when the place opens and closes, and how long a visit takes.
enum class ItemFields {
  kCoordinates,
  kWeightAndValue,
  kCoordinatesAndDemand,
  kCoordinatesAndWindows,
  kDistances,
  kEdges,
  kOwn
};

// A length measures an answer, under the instance's metric.
inline bool has_metric(ItemFields fields) {
  return fields != ItemFields::kWeightAndValue && fields != ItemFields::kEdges && fields != ItemFields::kOwn;
}

enum class Sense { kMinimise, kMaximise };  // of Solution::objective

struct Problem {
  ProblemKind kind;

  // Words, for messages and files.
  const char* title;          // "TSP"
  const char* model_prefix;   // models are called <prefix><n>
  const char* item;           // "city"
  const char* items;          // "cities"
  const char* answer;         // "tour"
  const char* order_key;      // Solution::order in JSON
  const char* objective_key;  // Solution::objective in JSON
  const char* measure;        // of an answer: "length"
  const char* full_measure;   // "tour length"

  // Properties.
  ItemFields fields;
  Sense sense;
  bool has_capacity;      // as its rules say
  bool has_packing;       // an answer is a packing, which the ratio heuristic can make
  bool has_exact;         // there is a search that ends with the best answer
  bool has_depot;         // item 0 is a depot: an order may name it again and again
  bool has_symmetries;    // the eight symmetries of the unit square leave an instance what it is
  bool has_all_items;     // an answer is an order of all items, else a choice of some
  bool has_local_search;  // LocalSearch (engine/search/local) can improve an answer
  bool has_two_opt;       // an answer is a tour, which TwoOptDevice can search

  // The instance as the network reads it, [n][F]; empty where it has no features that a network could read.
  // std::invalid_argument where Instance::beyond_networks() has a reason.
  std::vector<float> (*features)(const Instance& instance, double trained_capacity);
  // As validate_solution(), of an order whose items exist and are distinct.
  std::string (*validate)(const Instance& instance, Solution& solution);
  // Of a valid order, summed as it runs: what searches compare before they validate.
  double (*objective)(const Instance& instance, const std::vector<int32_t>& order);
  // Equal for equal answers, whatever the order they were found in.
  std::vector<int32_t> (*canonical)(std::vector<int32_t> order);
  // Of all orders that mean the same answer the one that supervised learning teaches, so that an item has one
  // right successor. features: [n][F] of the sequence as it is read; order: [steps], ended by -1 when
  // shorter; in place.
  void (*make_example)(int n, const float* features, int32_t* order);
  // Capacity of generated instances of n items; 0 without capacities.
  double (*default_capacity)(int n);
  // What its rules read (RuleInputs::weights, capacity); null: no numbers. trained_numbers() writes those of
  // a training, numbers: [Rules::number_rows(n)][n], of its features [n][F]; null: a training keeps them.
  RuleNumbers (*rule_numbers)(const Instance& instance) = nullptr;
  void (*trained_numbers)(int n, const float* features, double trained_capacity, double* numbers) = nullptr;
  // Number `field` of a generated item, of one uniform in [0, 1).
  double (*drawn_number)(int item, int field, double uniform) = [](int, int, double uniform) {
    return uniform;
  };

  // Makes an instance of its drawn numbers; null: they are it.
  void (*finish_drawn)(Instance& instance) = nullptr;

  double least_capacity = 0.0;  // of generated instances: the largest number that is drawn
  bool has_first = false;       // item 0 is a depot that every order begins with
  bool has_labels = false;      // an answer is a label of each item, and not an order

  // What a rollout's choices of n items mean as an answer, and choices that make a valid answer.
  std::vector<int32_t> (*answer_of)(int n, std::vector<int32_t> choices) =
      [](int, std::vector<int32_t> choices) { return choices; };
  std::vector<int32_t> (*choices_of)(const Instance& instance, std::vector<int32_t> of) =
      [](const Instance&, std::vector<int32_t> of) { return of; };

  int depots() const { return has_depot || has_first ? 1 : 0; }
};

const Problem& problem_of(ProblemKind kind);
inline const Problem& problem_of(const Instance& instance) { return problem_of(instance.problem); }

// Most items of a problem whose rules read a number of each pair, for networks: the rules look at all pairs.
inline constexpr int kMostPairedItems = 200;
bool reads_pairs(const Problem& problem);

// Whether an answer is one order of all items.
inline bool holds_tours(const Problem& problem) {
  return problem.has_all_items && !problem.has_depot && !problem.has_labels;
}

// Whether an instance may be a matrix and nothing else.
inline bool are_in_matrix(ItemFields fields) {
  return fields == ItemFields::kCoordinates || fields == ItemFields::kDistances ||
         fields == ItemFields::kEdges;
}

// Whether the features of an instance do not tell what its rules read.
inline bool keeps_numbers(const Problem& problem) { return problem.rule_numbers && !problem.trained_numbers; }

// What the policy minimises times this is the objective: 1, or -1 where more is better.
inline double sign_of(const Problem& problem) { return problem.sense == Sense::kMinimise ? 1.0 : -1.0; }

// True when objective a is the better one.
bool is_better(ProblemKind kind, double a, double b);
// True when answer a is: less violation first.
bool is_better(ProblemKind kind, const Solution& a, const Solution& b);

// How far an objective is from a reference >= 0, as a fraction of it; NaN above 1e100, as beside a 0.
double gap(ProblemKind kind, double objective, double reference);

// The last word on every answer, recomputed on the host in double from the user's own numbers. Fills
// objective, unrounded, weight and violation from `order`. Returns an empty string when the order is a
// permutation of all cities that takes no forbidden way, a set of distinct items within the capacity, routes
// within it that serve all customers, or a colour of each node; else what is wrong with it, for a person.
std::string validate_solution(const Instance& instance, Solution& solution);

// The routes of an order that names a depot, none of which is empty.
std::vector<std::vector<int32_t>> routes_of(const std::vector<int32_t>& order);
// And back: 0 between two routes. None is empty.
std::vector<int32_t> order_of(const std::vector<std::vector<int32_t>>& routes);

// Of a problem with demands: what is wrong with that of item i, as in "expected ..", or empty. A depot has
// none, and a customer's fits into a vehicle.
std::string wrong_demand(const Instance& instance, size_t i);

// The same of an answer of our own: one that is invalid but for forbidden ways is a defect of the program,
// std::logic_error `what` + why.
void require_valid(const Instance& instance, Solution& solution, const char* what);

// What the rules of an instance are made from.
class InstanceRules {
 public:
  explicit InstanceRules(const Instance& instance);
  InstanceRules(const InstanceRules&) = delete;
  InstanceRules& operator=(const InstanceRules&) = delete;

  const RuleInputs& inputs() const { return inputs_; }

 private:
  RuleNumbers numbers_;
  std::vector<float> features_;
  RuleInputs inputs_;
};

// Of a user's own problem. values: [n][F].
Instance own_instance(std::shared_ptr<const OwnProblem> problem, std::vector<double> values);
// Whether an order of distinct items is as a user's own problem declares it, but for what may be missing at
// its end.
bool is_allowed(const Instance& instance, const std::vector<int32_t>& order);
// Of a user's own problem: the order that takes each time the feasible item that comes first in `wanted`, a
// permutation of all items.
std::vector<int32_t> feasible_order(const Instance& instance, const std::vector<int32_t>& wanted);

// How many items an answer to the instance may have.
int longest_order(const Instance& instance);

// Whether a network could have drawn this answer: valid, every item feasible when its turn came, and none
// left that still would be.
bool is_reachable(const Instance& instance, Solution solution);
// The same of a valid order, by rules made of `inputs`.
bool is_reachable(ProblemKind kind, const RuleInputs& inputs, const std::vector<int32_t>& order);

// What the rules of an instance read, and those of a sequence of a training; empty where they read nothing.
RuleNumbers rule_numbers(const Instance& instance);
RuleNumbers trained_numbers(const Problem& problem, int n, const float* features, double trained_capacity);

}  // namespace pointsman
