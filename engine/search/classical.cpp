// SPDX-License-Identifier: Apache-2.0
#include "engine/search/classical.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/network_input.h"
#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/search/space_curve.h"
#include "kernels/common/rules.h"

namespace pointsman {

namespace {

constexpr int64_t kSamplesPerCheck = 64;  // random orders between two questions to the control
constexpr int64_t kBranchesPerCheck = 1024;

using Order = std::vector<int32_t>;

void require(bool suits, const Instance& instance, const char* who) {
  if (suits) return;
  throw std::invalid_argument(std::string(who) + ": not for " + problem_of(instance).title);
}

Solution checked(const Instance& instance, Order order) {
  Solution solution;
  solution.order = std::move(order);
  solution.log_prob = solution.network_objective = std::numeric_limits<double>::quiet_NaN();
  require_valid(instance, solution, "an invalid answer without a network: ");
  return solution;
}

// The items of an order that are feasible when their turn comes.
Order feasible_part(ProblemKind problem, const RuleNumbers& numbers, const Order& order) {
  return with_rules(problem, [&]<typename Rules>() {
    Rules rules = Rules::make({numbers.weights.data(), numbers.capacity});
    Order taken;
    for (const int32_t item : order) {
      if (!rules.feasible(item)) continue;
      rules.step(item);
      taken.push_back(item);
    }
    return taken;
  });
}

struct Item {
  int64_t weight, value;  // in units
  int32_t number;
};

// By falling ratio of value to weight, both in units. What weighs nothing comes first; ties by number.
std::vector<Item> items_by_ratio(const Instance& instance, const WeightUnits& packing) {
  const std::vector<int64_t> values = value_units(instance, packing);
  std::vector<Item> items;
  items.reserve(values.size());
  for (int32_t item = 0; item < instance.n(); ++item)
    items.push_back({packing.weights[item], values[item], item});
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    if (a.weight == 0 || b.weight == 0) return a.weight == 0 && b.weight != 0;
    return static_cast<Int128>(a.value) * b.weight > static_cast<Int128>(b.value) * a.weight;
  });
  return items;
}

// Depth first over the items by falling ratio: each is first taken, then left. A branch is cut where even its
// fractional relaxation (Dantzig 1957) is no better than the best packing so far. All in units, so nothing
// rounds.
class BranchAndBound {
 public:
  explicit BranchAndBound(const Instance& instance) : instance_(instance), best_(ratio_packing(instance)) {
    const WeightUnits packing = weight_units(instance);
    room_ = packing.room;
    std::vector<bool> is_packed(packing.weights.size(), false);
    for (const int32_t item : best_.order) is_packed[item] = true;
    for (const Item& item : items_by_ratio(instance, packing)) {
      if (is_packed[item.number]) best_value_ += item.value;
      if (item.value > 0) items_.push_back(item);  // what does not fit alone has none
    }
  }

  Solution run(const SearchControl& control, int64_t most_branches) {
    Status status = Status::kDone;
    size_t next = 0;
    best_.start = Start::kBranchAndBound;
    for (int64_t branches = 1; branches <= most_branches; ++branches) {
      if (branches % kBranchesPerCheck == 0) {
        status = control.check();
        if (control.on_best) control.on_best(best_.objective);
      }
      if (status != Status::kDone) break;
      if (next < items_.size() && bound(next) > best_value_) {
        while (next < items_.size() && weight() + items_[next].weight <= room_) take(next++);
        ++next;  // does not fit: left
      } else if (!taken_.empty()) {
        next = taken_.back().place + 1;
        taken_.pop_back();
      } else {
        best_.start = Start::kExact;
        break;
      }
    }
    best_.status = status;
    return best_;
  }

 private:
  struct Taken {
    size_t place;    // in items_
    int64_t weight;  // of all taken up to this one
    Int128 value;    // likewise
  };

  int64_t weight() const { return taken_.empty() ? 0 : taken_.back().weight; }
  Int128 value() const { return taken_.empty() ? 0 : taken_.back().value; }

  // Upper bound of what is taken and any of the items from `place` on: these in order, the last in part.
  Int128 bound(size_t place) const {
    int64_t left = room_ - weight();
    Int128 most = value();
    for (; place < items_.size(); ++place) {
      const Item& item = items_[place];
      if (item.weight > left) return most + static_cast<Int128>(item.value) * left / item.weight;
      left -= item.weight;
      most += item.value;
    }
    return most;
  }

  void take(size_t place) {
    taken_.push_back({place, weight() + items_[place].weight, value() + items_[place].value});
    if (value() <= best_value_) return;
    best_value_ = value();
    best_.order.clear();
    for (const Taken& one : taken_) best_.order.push_back(items_[one.place].number);
    require_valid(instance_, best_, "an invalid packing: ");
  }

  const Instance& instance_;
  Solution best_;
  Int128 best_value_ = 0;
  std::vector<Item> items_;  // those that fit and are of any value, by falling ratio
  int64_t room_ = 0;
  std::vector<Taken> taken_;
};

Order order_by_ratio(const Instance& instance) {
  Order order;
  for (const Item& item : items_by_ratio(instance, weight_units(instance))) order.push_back(item.number);
  return order;
}

Order packing_by_ratio(const Instance& instance) {
  return feasible_part(instance.problem, rule_numbers(instance), order_by_ratio(instance));
}

}  // namespace

Solution quick_answer(const Instance& instance, Status status) {
  Solution solution = checked(
      instance, problem_of(instance).has_local_search ? along_curve(instance) : packing_by_ratio(instance));
  solution.status = status;
  return solution;
}

Solution local_search_tour(const Instance& instance, const ImproveOptions& options,
                           const SearchControl& control, WorkerThreads* workers) {
  require(problem_of(instance).has_local_search, instance, "local_search_tour");
  try {
    TourSearch search(instance, options, control);
    Solution solution = checked(instance, search.greedy_tour(control));
    if (control.on_best) control.on_best(solution.objective);
    if (!search.improve(solution, control, workers)) solution.status = control.check();
    return solution;
  } catch (const CallStopped&) {
    return quick_answer(instance, control.check());
  }
}

Solution random_search(const Instance& instance, uint64_t key, int64_t samples, uint64_t seed,
                       const SearchControl& control) {
  if (samples < 1 || samples > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("random_search: cannot draw " + std::to_string(samples) + " samples");
  }
  const Problem& problem = problem_of(instance);
  const RuleNumbers numbers = rule_numbers(instance);
  Order best;
  double best_objective = 0.0;
  Status status = Status::kDone;
  for (int64_t sample = 0; sample < samples; ++sample) {
    if (sample > 0 && sample % kSamplesPerCheck == 0) status = control.check();
    if (status != Status::kDone) break;
    Order order = feasible_part(problem.kind, numbers,
                                input_order(seed, key, static_cast<uint32_t>(sample), instance.n()));
    const double objective = problem.objective(instance, order);
    if (sample > 0 && !is_better(problem.kind, objective, best_objective)) continue;
    best = std::move(order);
    best_objective = objective;
  }
  Solution solution = checked(instance, std::move(best));
  solution.status = status;
  return solution;
}

Solution ratio_packing(const Instance& instance) {
  require(problem_of(instance).has_capacity, instance, "ratio_packing");
  return checked(instance, packing_by_ratio(instance));
}

Solution exact_packing(const Instance& instance, const SearchControl& control, int64_t most_branches) {
  require(problem_of(instance).has_capacity, instance, "exact_packing");
  return BranchAndBound(instance).run(control, most_branches);
}

}  // namespace pointsman
