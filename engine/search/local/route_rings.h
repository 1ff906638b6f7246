// SPDX-License-Identifier: Apache-2.0
// The routes of a CVRP while a search changes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/distances.h"

namespace pointsman {

// Each route is a ring of its customers and of a node that stands for the depot, so that a change is a few
// links. Customers are places, as `distances` numbers them; the depot's nodes are the numbers from n on. All
// changes since the last keep() can be undone.
//
// A load is a sum of weight_units() in int64_t, as validate_solution() adds it. Lengths are doubles; those of
// integers below 2^53 are exact.
class RouteRings {
 public:
  // Of an instance with a depot. It and the distances must outlive this.
  RouteRings(const Instance& instance, const Distances& distances);

  // Both in the instance's own numbers, 0 between two routes. load() takes a valid order, and keeps it.
  void load(std::span<const int32_t> order);
  std::vector<int32_t> order() const;

  int customers() const { return n_ - 1; }
  int32_t customer(int i) const { return customers_[i]; }  // the place of the i-th, 0 <= i < customers()
  int routes() const { return n_ - static_cast<int>(free_.size()); }  // that have a customer
  double length() const;                                              // of all, summed route by route
  std::vector<double> edges() const;                                  // [customers() + routes()]

  bool is_depot(int32_t node) const { return node >= n_; }
  int32_t next(int32_t node) const { return nodes_[node].next; }
  int32_t previous(int32_t node) const { return nodes_[node].previous; }
  double edge(int32_t node) const { return nodes_[node].edge; }  // from the node to the next one
  double from_depot(int32_t customer) const { return from_depot_[customer]; }
  double distance(int32_t customer, int32_t node) const {
    return is_depot(node) ? from_depot_[customer] : distances_(customer, node);
  }
  int64_t demand(int32_t customer) const { return demands_[customer]; }

  bool is_served(int32_t customer) const { return route_[customer] != kNone; }
  int32_t route_of(int32_t customer) const { return route_[customer]; }  // of one that is served
  int customers_of(int32_t route) const { return counts_[route]; }
  bool has_room(int32_t route, int32_t customer) const { return loads_[route] + demands_[customer] <= room_; }
  int32_t empty_route() const {
    return n_ + free_.back();
  }  // its depot's node; while a customer is not served

  void remove(int32_t customer) {
    changes_.push_back({customer, previous(customer)});
    unlink(customer);
  }
  // Puts a customer that is not served behind a node, into a route with room.
  void insert(int32_t customer, int32_t behind) {
    changes_.push_back({customer, behind});
    link(customer, behind);
  }

  double change() const { return change_; }  // of the length, since the last keep()
  void keep() {
    changes_.clear();
    change_ = 0.0;
  }
  void undo();

 private:
  static constexpr int32_t kNone = -1;

  struct Node {
    int32_t next, previous;
    double edge;
  };
  struct Change {
    int32_t customer, behind;
  };

  void link(int32_t customer, int32_t behind);
  void unlink(int32_t customer);

  const Distances& distances_;
  const int n_;  // the depot counts, as in the instance
  int32_t depot_ = 0;
  int64_t room_;
  std::vector<int32_t> places_;     // [n] of the instance's items
  std::vector<int32_t> customers_;  // [n - 1] places
  std::vector<double> from_depot_;  // [n] of places
  std::vector<int64_t> demands_;    // [n] of places
  std::vector<Node> nodes_;         // [2 n]
  std::vector<int32_t> route_;      // [n] of places
  std::vector<int64_t> loads_;      // [n] of routes
  std::vector<int32_t> counts_;     // [n] customers of routes
  std::vector<int32_t> free_;       // routes without customers
  std::vector<Change> changes_;
  double change_ = 0.0;
};

}  // namespace pointsman
