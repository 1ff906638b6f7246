// SPDX-License-Identifier: Apache-2.0
// A user's own problem on the host: how many numbers an item has, what is declared of the orders, how a
// network reads the items, and the user's functions that say what orders cost and make instances to train on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/own.h"

namespace pointsman {

// How a network reads numbers and costs of one problem: part of its models.
struct OwnScaling {
  std::vector<double> offsets, scales;  // [F] a feature is (number - offset) * scale
  double cost_unit = 1.0;               // the user's cost that is 1 to the network

  int width() const { return static_cast<int>(offsets.size()); }
  bool operator==(const OwnScaling&) const = default;
};

// What needs no function. first, last: an item, or counted from the end as -1, -2, ..
struct OwnDeclarations {
  bool maximise = false;  // the costs are minus what the user maximises
  std::optional<int> first, last;
  int weight = -1;        // which of its numbers an item weighs, with a capacity; -1: none
  double capacity = 0.0;  // no order weighs more
  // Of n items the pairs (a, b) of which a comes first; null: none.
  std::function<std::vector<std::array<int32_t, 2>>(int n)> before = {};
};

// The declarations for n items, as the rules read them.
class OwnOrders {
 public:
  // Throws std::invalid_argument where no order of n items is as declared.
  OwnOrders(int n, int width, const OwnDeclarations& declarations) {
    declared_.width = width;
    declared_.first = item_of("first", declarations.first, n);
    declared_.last = item_of("last", declarations.last, n);
    declared_.weight = declarations.weight;
    declared_.capacity = declarations.capacity;
    if (declarations.before) add_pairs(n, declarations.before(n));
    if (n > 1 && declared_.first >= 0 && declared_.first == declared_.last)
      throw std::invalid_argument("first and last are the same item of " + std::to_string(n));
  }
  OwnOrders(const OwnOrders&) = delete;
  OwnOrders& operator=(const OwnOrders&) = delete;

  const OwnDeclared& declared() const { return declared_; }

 private:
  static int item_of(const char* name, std::optional<int> item, int n) {
    if (!item) return -1;
    if (*item < -n || *item >= n) {
      throw std::invalid_argument(std::string(name) + ": expected one of " + std::to_string(n) +
                                  " items, found " + std::to_string(*item));
    }
    return *item < 0 ? *item + n : *item;
  }

  void add_pairs(int n, const std::vector<std::array<int32_t, 2>>& pairs) {
    begin_.assign(static_cast<size_t>(n) + 1, 0);
    for (const auto& [a, b] : pairs) {
      if (std::min(a, b) < 0 || std::max(a, b) >= n) {
        throw std::invalid_argument("before: expected two of " + std::to_string(n) + " items, found (" +
                                    std::to_string(a) + ", " + std::to_string(b) + ")");
      }
      if (b == declared_.first) throw std::invalid_argument("before: an item comes before the first");
      if (a == declared_.last) throw std::invalid_argument("before: an item comes after the last");
      ++begin_[static_cast<size_t>(b) + 1];
    }
    for (int item = 0; item < n; ++item) begin_[item + 1] += begin_[item];
    before_.resize(pairs.size());
    std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [a, b] : pairs) before_[next[b]++] = a;
    declared_.begin = begin_.data();
    declared_.before = before_.data();
    require_no_circle(n);
  }

  void require_no_circle(int n) const {
    std::vector<bool> placed(n, false);
    for (int left = n, before = n + 1; left > 0;) {
      if (left == before) throw std::invalid_argument("before: the pairs go round in a circle");
      before = left;
      for (int item = 0; item < n; ++item) {
        bool is_free = !placed[item];
        for (int32_t i = begin_[item]; i < begin_[item + 1]; ++i) is_free = is_free && placed[before_[i]];
        if (is_free) placed[item] = true;
        left -= is_free;
      }
    }
  }

  OwnDeclared declared_;
  std::vector<int32_t> begin_, before_;
};

class OwnProblem {
 public:
  // What `count` orders cost, [count] finite numbers, less being better. items: [count][n][F] in the user's
  // units; orders: [count][n], -1 behind the last item.
  using Cost = std::function<std::vector<double>(std::vector<double> items, std::vector<int64_t> orders,
                                                 int64_t count, int n)>;
  // `count` instances of n items to train on, [count][n][F], a function of seed and `first` alone.
  using Draw = std::function<std::vector<double>(uint64_t seed, uint64_t first, int count, int n)>;

  OwnProblem(OwnScaling scaling, OwnDeclarations declarations, Cost cost, Draw draw = {})
      : scaling_(std::move(scaling)),
        declarations_(std::move(declarations)),
        cost_(std::move(cost)),
        draw_(std::move(draw)) {}

  const OwnScaling& scaling() const { return scaling_; }
  int width() const { return scaling_.width(); }
  // The user's number is a cost times this.
  double sign() const { return declarations_.maximise ? -1.0 : 1.0; }
  // Orders of n items that a call of cost() is given, at most: their items then take some 32 MB.
  size_t rows_at_once(int n) const {
    constexpr size_t kMost = 4096, kNumbers = size_t{1} << 22;
    return std::clamp<size_t>(kNumbers / (static_cast<size_t>(n) * static_cast<size_t>(width())), 1, kMost);
  }

  // Lives as long as this. Throws std::invalid_argument as OwnOrders.
  const OwnDeclared& declared(int n) const {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<OwnOrders>& orders = orders_[n];
    if (!orders) orders = std::make_unique<OwnOrders>(n, width(), declarations_);
    return orders->declared();
  }

  // Calls of the user's functions, by one thread at a time. What they throw comes through.
  std::vector<double> cost(std::vector<double> items, std::vector<int64_t> orders, int64_t count,
                           int n) const {
    return timed([&] { return cost_(std::move(items), std::move(orders), count, n); });
  }
  std::vector<double> draw(uint64_t seed, uint64_t first, int count, int n) const {
    if (!draw_) throw std::logic_error("a problem without instances to train on");
    return timed([&] { return draw_(seed, first, count, n); });
  }
  double seconds() const { return seconds_; }  // that they took

  // items: [items][F] in the user's units. A number outside a float's range becomes infinite.
  std::vector<float> features(const std::vector<double>& items) const {
    std::vector<float> features(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t f = i % scaling_.offsets.size();
      features[i] = static_cast<float>((items[i] - scaling_.offsets[f]) * scaling_.scales[f]);
    }
    return features;
  }

 private:
  template <typename Call>
  std::vector<double> timed(const Call& call) const {
    const std::lock_guard lock(calls_);
    const auto start = std::chrono::steady_clock::now();
    std::vector<double> found = call();
    seconds_ = seconds_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return found;
  }

  const OwnScaling scaling_;
  const OwnDeclarations declarations_;
  const Cost cost_;
  const Draw draw_;
  mutable std::mutex mutex_;  // of orders_
  mutable std::map<int, std::unique_ptr<OwnOrders>> orders_;
  mutable std::mutex calls_;
  mutable std::atomic<double> seconds_ = 0.0;
};

}  // namespace pointsman
