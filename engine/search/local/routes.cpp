// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/routes.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {
namespace {

constexpr int kNearest = 40;

struct Saving {
  double saved;
  int32_t i, j;
};

// By falling saving. A pair that is near both ways stands there twice.
std::vector<Saving> savings_of(const Instance& instance, const StopToken& stop) {
  const Distances distances(instance, stop);
  std::vector<int32_t> customers;  // as `distances` numbers them
  for (int32_t place = 0; place < distances.n(); ++place)
    if (distances.city(place) != 0) customers.push_back(place);
  const NeighbourLists lists(distances, customers, kNearest, stop);
  const auto from_depot = [&](int32_t customer) { return city_distance(instance, 0, customer); };
  std::vector<Saving> savings;
  for (size_t k = 0; k < customers.size(); ++k) {
    const int32_t i = distances.city(customers[k]);
    for (const Neighbour& near : lists[k]) {
      const int32_t j = distances.city(near.place);
      const double saved = from_depot(i) + from_depot(j) - near.distance;
      if (saved > 0.0) savings.push_back({saved, std::min(i, j), std::max(i, j)});
    }
  }
  std::sort(savings.begin(), savings.end(), [](const Saving& a, const Saving& b) {
    return std::tuple(b.saved, a.i, a.j) < std::tuple(a.saved, b.i, b.j);
  });
  return savings;
}

// Customers with a link to none, one or two others.
class Routes {
 public:
  explicit Routes(const Instance& instance)
      : numbers_(rule_numbers(instance)),
        links_(instance.n()),
        parent_(instance.n()),
        load_(numbers_.weights) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // Joins the routes of two customers that stand at ends of different ones, if a vehicle can carry both.
  void join(int32_t i, int32_t j) {
    const int32_t a = route_of(i), b = route_of(j);
    if (a == b || links_[i].count == 2 || links_[j].count == 2 || load_[a] + load_[b] > numbers_.capacity)
      return;
    links_[i].add(j);
    links_[j].add(i);
    parent_[b] = a;
    load_[a] += load_[b];
  }

  std::vector<int32_t> order() const {
    std::vector<int32_t> order;
    std::vector<bool> is_done(links_.size(), false);
    for (int32_t first = 1; first < static_cast<int32_t>(links_.size()); ++first) {
      if (is_done[first] || links_[first].count == 2) continue;  // not an end
      if (!order.empty()) order.push_back(0);
      for (int32_t last = 0, customer = first; customer != 0;) {
        order.push_back(customer);
        is_done[customer] = true;
        const int32_t next = links_[customer].other(last);
        last = std::exchange(customer, next);
      }
    }
    return order;
  }

 private:
  struct Links {
    int32_t to[2] = {0, 0};  // 0: none
    int count = 0;

    void add(int32_t customer) { to[count++] = customer; }
    int32_t other(int32_t than) const { return to[0] == than ? to[1] : to[0]; }
  };

  int32_t route_of(int32_t customer) {
    while (parent_[customer] != customer) customer = parent_[customer] = parent_[parent_[customer]];
    return customer;
  }

  const RuleNumbers numbers_;
  std::vector<Links> links_;
  std::vector<int32_t> parent_;  // the customer that a route is known by, in the end
  std::vector<double> load_;     // of that route
};

}  // namespace

Solution savings_routes(const Instance& instance, const SearchControl& control) {
  require_problem(problem_of(instance).has_depot, instance, "savings_routes");
  try {
    Routes routes(instance);
    const StopToken stop = control.stop();
    StopMeter meter(&stop);
    for (const Saving& saving : savings_of(instance, stop)) {
      meter.check(1);
      routes.join(saving.i, saving.j);
    }
    return checked_solution(instance, routes.order());
  } catch (const CallStopped&) {
    return quick_answer(instance, control.check());
  }
}

}  // namespace pointsman
