// SPDX-License-Identifier: Apache-2.0
#include "engine/search/exact/branch_and_bound.h"

#include <limits>
#include <vector>

#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"

namespace pointsman {
namespace {

constexpr int64_t kBranchesPerCheck = 1024;

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
    const ValueUnits values = value_units(instance, packing);
    for (const RatioItem& item : items_by_ratio(packing, values)) {
      if (is_packed[item.number]) best_value_ += item.value;
      if (item.value > 0) items_.push_back(item);  // what does not fit alone has none
    }
    best_.bound = value_above(values, bound(0));
  }

  Solution run(const SearchControl& control, int64_t most_branches) {
    Status status = Status::kDone;
    size_t next = 0;
    best_.start = Start::kBranchAndBound;
    for (int64_t branches = 1; branches <= most_branches; ++branches) {
      if (branches % kBranchesPerCheck == 0) {
        status = control.check();
        if (control.report.on_best) control.report.on_best(best_.objective);
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
        best_.bound = std::numeric_limits<double>::quiet_NaN();
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
      const RatioItem& item = items_[place];
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
  std::vector<RatioItem> items_;  // those that fit and are of any value, by falling ratio
  int64_t room_ = 0;
  std::vector<Taken> taken_;
};

}  // namespace

Solution exact_packing(const Instance& instance, const SearchControl& control, int64_t most_branches) {
  require_problem(problem_of(instance).has_packing, instance, "exact_packing");
  return BranchAndBound(instance).run(control, most_branches);
}

}  // namespace pointsman
