// SPDX-License-Identifier: Apache-2.0
// Edges that every tour must have.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

// Edges of n places, at most two at a place.
class FixedEdges {
 public:
  FixedEdges(int n, std::span<const std::array<int32_t, 2>> edges)
      : count_(static_cast<int>(edges.size())),
        others_(edges.empty() ? 0 : static_cast<size_t>(n), {-1, -1}) {
    for (const auto& [a, b] : edges) {
      add(a, b);
      add(b, a);
    }
  }

  int count() const { return count_; }
  bool has(int32_t a, int32_t b) const { return count_ > 0 && (others_[a][0] == b || others_[a][1] == b); }
  // The other ends of those at `place`; -1: none.
  const std::array<int32_t, 2>& at(int32_t place) const { return others_[place]; }

 private:
  void add(int32_t a, int32_t b) { others_[a][others_[a][0] < 0 ? 0 : 1] = b; }

  int count_;
  std::vector<std::array<int32_t, 2>> others_;  // [n], or empty
};

// Whether a tour of n cities can have all of these edges: they are paths, or one tour. Of the first edge that
// no tour has together with those before it what is wrong, as in "expected ..", and its index; empty:
// nothing.
std::string wrong_edges(int n, std::span<const std::array<int32_t, 2>> edges, size_t& index);

}  // namespace pointsman
