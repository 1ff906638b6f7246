// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/order_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "engine/problem/problem.h"

namespace pointsman {
namespace {

using Order = std::vector<int32_t>;

constexpr size_t kOrdersAtOnce = 64;  // that are searched together
constexpr int64_t kLooks = 1024;      // at neighbours that may not be as declared, before the clock is asked

// Neighbour `number` of an order, of neighbour_count(): an exchange or a reversal of places a < b, or the
// item of a place moved to another.
int64_t neighbour_count(int64_t length) { return 2 * length * (length - 1); }

Order neighbour(const Order& order, int64_t number) {
  const auto length = static_cast<int64_t>(order.size()), pairs = length * (length - 1);
  Order next = order;
  const auto begin = next.begin();
  int64_t a = number % pairs / (length - 1), b = number % pairs % (length - 1);
  b += b >= a;  // the other places
  if (number >= pairs) {
    if (a < b) {
      std::rotate(begin + a, begin + a + 1, begin + b + 1);
    } else {
      std::rotate(begin + b, begin + a, begin + a + 1);
    }
  } else if (a < b) {
    std::swap(next[a], next[b]);
  } else {
    std::reverse(begin + b, begin + a + 1);
  }
  return next;
}

// The numbers below `count`, around and around by a stride that has no divisor in common with it.
struct Round {
  int64_t count, number, stride;

  Round(int64_t count_, std::mt19937_64& random) : count(count_), number(below(count, random)) {
    do stride = 1 + below(count, random);
    while (std::gcd(stride, count) != 1);
  }
  int64_t next() { return number = (number + stride) % count; }

 private:
  static int64_t below(int64_t bound, std::mt19937_64& random) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  }
};

// One instance's search.
struct Climb {
  const Instance& instance;
  Solution& best;
  const uint64_t key;
  const OrderSearchOptions& options;

  Order order = best.order;
  double cost = best.objective;
  const int64_t count = neighbour_count(static_cast<int64_t>(order.size()));
  std::mt19937_64 random = std::mt19937_64(options.seed ^ 0x9E3779B97F4A7C15u * (key + 1));
  Round numbers = Round(std::max<int64_t>(count, 1), random);
  int64_t since_better = 0, kicks = 0;
  bool done = order.size() < 2;

  // The next neighbours that are as declared, at most `most`; none of many that are not.
  std::vector<Order> propose(size_t most) {
    if (std::isinf(cost)) return {order};  // after a kick
    std::vector<Order> rows;
    for (int64_t looked = 0; looked < std::min(count, kLooks) && rows.size() < most; ++looked) {
      Order next = neighbour(order, numbers.next());
      ++since_better;
      if (is_allowed(instance, next)) rows.push_back(std::move(next));
    }
    return rows;
  }

  void take(std::vector<Order>& rows, const double* costs) {
    const auto least = std::min_element(costs, costs + rows.size());
    if (least != costs + rows.size() && *least < cost) {
      order = std::move(rows[least - costs]);
      cost = *least;
      since_better = 0;
    } else if (since_better >= count) {
      settle();
    }
  }

 private:
  // At a local optimum.
  void settle() {
    if (cost < best.objective || kicks == 0) {
      best.order = order;
      best.objective = cost;
    } else if (cost > best.objective) {
      order = best.order;
    }
    best.kicks = kicks;
    done = kicks++ >= options.kicks;
    if (done) return;
    numbers = Round(count, random);
    int kicked = 0;
    for (int64_t looked = 0; looked < std::min(count, kLooks) && kicked < 2; ++looked) {
      Order next = neighbour(order, numbers.next());
      if (!is_allowed(instance, next)) continue;
      order = std::move(next);
      ++kicked;
    }
    done = kicked == 0;
    cost = std::numeric_limits<double>::infinity();  // until it is known
    since_better = 0;
  }
};

// Of instances of one size, until all are done or a stop comes.
void climb(std::vector<Climb>& climbs, const SearchControl& control) {
  const OwnProblem& problem = *climbs.front().instance.own;
  const int n = climbs.front().instance.n();
  const size_t most =
      std::max<size_t>(problem.rows_at_once(n) / kOrdersAtOnce, 1);  // whatever the others are
  for (;;) {
    std::vector<std::vector<Order>> rows(climbs.size());
    std::vector<double> items;
    std::vector<int64_t> orders;
    int64_t count = 0;
    for (size_t i = 0; i < climbs.size(); ++i) {
      if (climbs[i].done) continue;
      rows[i] = climbs[i].propose(most);
      for (const Order& order : rows[i]) {
        items.insert(items.end(), climbs[i].instance.values.begin(), climbs[i].instance.values.end());
        orders.insert(orders.end(), order.begin(), order.end());
        orders.resize(static_cast<size_t>(++count) * n, -1);
      }
    }
    const bool is_over = std::ranges::all_of(climbs, &Climb::done);
    if (is_over || control.check() != Status::kDone) return;
    const std::vector<double> costs =
        count == 0 ? std::vector<double>() : problem.cost(std::move(items), std::move(orders), count, n);
    const double* at = costs.data();
    for (size_t i = 0; i < climbs.size(); ++i) {
      if (climbs[i].done) continue;
      const size_t own = rows[i].size();
      climbs[i].take(rows[i], at);
      at += own;
    }
  }
}

void finish(std::vector<Climb>& climbs, const SearchControl& control) {
  if (climbs.empty()) return;
  try {
    climb(climbs, control);
  } catch (const CallStopped&) {  // of the user's function: what is best so far stands
  }
  for (Climb& one : climbs) {
    if (one.cost < one.best.objective) {
      one.best.order = one.order;
      one.best.objective = one.cost;
    }
    if (!one.done) one.best.status = control.check();
  }
  climbs.clear();
}

}  // namespace

void improve_orders(std::span<const Instance> instances, std::span<const uint64_t> keys,
                    std::span<Solution> solutions, const OrderSearchOptions& options,
                    const SearchControl& control) {
  std::map<int, std::vector<Climb>> by_size;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (!has_answer(solutions[i])) continue;
    std::vector<Climb>& climbs = by_size[instances[i].n()];
    climbs.push_back({instances[i], solutions[i], keys[i], options});
    if (climbs.size() == kOrdersAtOnce) finish(climbs, control);
  }
  for (auto& [n, climbs] : by_size) finish(climbs, control);
}

}  // namespace pointsman
