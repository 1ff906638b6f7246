// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/route_rings.h"

#include <numeric>
#include <utility>

#include "engine/problem/packing_units.h"

namespace pointsman {

RouteRings::RouteRings(const Instance& instance, const Distances& distances)
    : distances_(distances), n_(instance.n()), places_(n_), from_depot_(n_), demands_(n_) {
  const WeightUnits demands = weight_units(instance);
  room_ = demands.room;
  for (int32_t place = 0; place < n_; ++place) {
    const int32_t item = distances.city(place);
    places_[item] = place;
    demands_[place] = demands.weights[item];
    if (item == 0) {
      depot_ = place;
    } else {
      customers_.push_back(place);
    }
  }
  for (const int32_t place : customers_) from_depot_[place] = distances(place, depot_);
}

void RouteRings::load(std::span<const int32_t> order) {
  nodes_.assign(2 * static_cast<size_t>(n_), {});
  for (int32_t node = n_; node < 2 * n_; ++node) nodes_[node] = {node, node, 0.0};
  route_.assign(n_, kNone);
  loads_.assign(n_, 0);
  counts_.assign(n_, 0);
  free_.resize(n_);
  std::iota(free_.rbegin(), free_.rend(), 0);
  int32_t last = kNone;
  for (const int32_t item : order) {
    if (item == 0) {
      last = kNone;
      continue;
    }
    link(places_[item], last == kNone ? empty_route() : last);
    last = places_[item];
  }
  keep();
}

std::vector<int32_t> RouteRings::order() const {
  std::vector<int32_t> order;
  for (int32_t depot = n_; depot < 2 * n_; ++depot) {
    if (next(depot) == depot) continue;
    if (!order.empty()) order.push_back(0);
    for (int32_t node = next(depot); node != depot; node = next(node)) order.push_back(distances_.city(node));
  }
  return order;
}

std::vector<double> RouteRings::edges() const {
  std::vector<double> edges;
  for (int32_t depot = n_; depot < 2 * n_; ++depot) {
    if (next(depot) == depot) continue;
    edges.push_back(edge(depot));
    for (int32_t node = next(depot); node != depot; node = next(node)) edges.push_back(edge(node));
  }
  return edges;
}

double RouteRings::length() const {
  const std::vector<double> all = edges();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

// A customer keeps no trace of where it was, so these two undo each other, to the bit.
void RouteRings::link(int32_t customer, int32_t behind) {
  Node &one = nodes_[customer], &before = nodes_[behind], &after = nodes_[before.next];
  const int32_t route = is_depot(behind) ? behind - n_ : route_[behind];
  const double to = distance(customer, behind), from = distance(customer, before.next);
  change_ += to + from - before.edge;
  one = {before.next, behind, from};
  before.edge = to;
  before.next = after.previous = customer;
  route_[customer] = route;
  loads_[route] += demands_[customer];
  if (counts_[route]++ == 0) free_.pop_back();
}

void RouteRings::unlink(int32_t customer) {
  const Node& one = nodes_[customer];
  Node &before = nodes_[one.previous], &after = nodes_[one.next];
  const int32_t route = std::exchange(route_[customer], kNone);
  const double joined = --counts_[route] == 0    ? 0.0
                        : is_depot(one.previous) ? from_depot_[one.next]
                                                 : distance(one.previous, one.next);
  change_ += joined - before.edge - one.edge;
  before.edge = joined;
  before.next = one.next;
  after.previous = one.previous;
  loads_[route] -= demands_[customer];
  if (counts_[route] == 0) free_.push_back(route);
}

// Backwards, each place where a customer was is there again.
void RouteRings::undo() {
  for (; !changes_.empty(); changes_.pop_back()) {
    const auto [customer, behind] = changes_.back();
    if (is_served(customer)) {
      unlink(customer);
    } else {
      link(customer, behind);
    }
  }
  change_ = 0.0;
}

}  // namespace pointsman
