// SPDX-License-Identifier: Apache-2.0
#include "engine/search/classical.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/network_input.h"
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
Order feasible_part(const Instance& instance, const Order& order) {
  std::vector<double> weights;
  if (problem_of(instance).has_capacity) {
    for (int item = 0; item < instance.n(); ++item) weights.push_back(instance.first(item));
  }
  return with_rules(instance.problem, [&]<typename Rules>() {
    Rules rules = Rules::make({weights.data(), instance.capacity});
    Order taken;
    for (const int32_t item : order) {
      if (!rules.feasible(item)) continue;
      rules.step(item);
      taken.push_back(item);
    }
    return taken;
  });
}

// What weighs nothing comes first; ties by number.
Order items_by_ratio(const Instance& instance) {
  std::vector<double> ratio(static_cast<size_t>(instance.n()), std::numeric_limits<double>::infinity());
  for (int item = 0; item < instance.n(); ++item) {
    if (instance.first(item) > 0.0) ratio[item] = instance.second(item) / instance.first(item);
  }
  Order items(ratio.size());
  std::iota(items.begin(), items.end(), 0);
  std::stable_sort(items.begin(), items.end(), [&](int32_t a, int32_t b) { return ratio[a] > ratio[b]; });
  return items;
}

// Depth first over the items by falling ratio: each is first taken, then left. A branch is cut where even its
// fractional relaxation (Dantzig 1957) is no better than the best packing so far.
class BranchAndBound {
 public:
  explicit BranchAndBound(const Instance& instance) : instance_(instance), best_(ratio_packing(instance)) {
    for (const int32_t item : items_by_ratio(instance)) {
      if (instance.second(item) > 0.0) items_.push_back(item);
    }
    rounding_ = static_cast<double>(instance.n()) * std::numeric_limits<double>::epsilon();
    // Sums in another order than the validator's, and its own tolerance: some 3 roundings in all.
    most_weight_ = instance.capacity * (1.0 + 4.0 * rounding_);
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
      if (next < items_.size() && bound(next) > best_.objective * (1.0 + rounding_)) {
        while (next < items_.size() && fits(next)) take(next++);
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
    size_t place;          // in items_
    double weight, value;  // of all taken up to this one
  };

  double weight() const { return taken_.empty() ? 0.0 : taken_.back().weight; }
  double value() const { return taken_.empty() ? 0.0 : taken_.back().value; }
  bool fits(size_t place) const { return weight() + instance_.first(items_[place]) <= most_weight_; }

  // Upper bound of what is taken and any of the items from `place` on: these in order, the last in part.
  double bound(size_t place) const {
    double left = most_weight_ - weight(), most = value();
    for (; place < items_.size(); ++place) {
      const double item_weight = instance_.first(items_[place]), item_value = instance_.second(items_[place]);
      if (item_weight > left) return most + item_value * (left / item_weight);
      left -= item_weight;
      most += item_value;
    }
    return most;
  }

  void take(size_t place) {
    taken_.push_back(
        {place, weight() + instance_.first(items_[place]), value() + instance_.second(items_[place])});
    if (value() <= best_.objective) return;
    Solution found = best_;
    found.order.clear();
    for (const Taken& one : taken_) found.order.push_back(items_[one.place]);
    // The validator has the last word on a weight within a few roundings of the capacity, and on the value.
    if (validate_solution(instance_, found).empty() && found.objective > best_.objective)
      best_ = std::move(found);
  }

  const Instance& instance_;
  Solution best_;
  Order items_;  // those of any value, by falling ratio
  double rounding_ = 0.0, most_weight_ = 0.0;
  std::vector<Taken> taken_;
};

}  // namespace

Solution quick_answer(const Instance& instance, Status status) {
  Solution solution = checked(instance, problem_of(instance).has_local_search
                                            ? along_curve(instance)
                                            : feasible_part(instance, items_by_ratio(instance)));
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
  Order best;
  double best_objective = 0.0;
  Status status = Status::kDone;
  for (int64_t sample = 0; sample < samples; ++sample) {
    if (sample > 0 && sample % kSamplesPerCheck == 0) status = control.check();
    if (status != Status::kDone) break;
    Order order =
        feasible_part(instance, input_order(seed, key, static_cast<uint32_t>(sample), instance.n()));
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
  return checked(instance, feasible_part(instance, items_by_ratio(instance)));
}

Solution exact_packing(const Instance& instance, const SearchControl& control, int64_t most_branches) {
  require(problem_of(instance).has_capacity, instance, "exact_packing");
  return BranchAndBound(instance).run(control, most_branches);
}

}  // namespace pointsman
