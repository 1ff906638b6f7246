// SPDX-License-Identifier: Apache-2.0
// Shortest tours of a few cities by dynamic programming over subsets (Held & Karp 1962).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/search/distances.h"

namespace pointsman {

// At 12 it takes about twice the time of the default kicks, at 10 less than half.
inline constexpr int kMostExactCities = 12;

// A sum of lengths of which the number of fixed edges counts first.
template <typename Length>
struct FixedFirst {
  int others = 0;  // edges that are not fixed
  Length length = 0;

  FixedFirst operator+(const FixedFirst& more) const { return {others + more.others, length + more.length}; }
  bool operator>=(const FixedFirst& than) const {
    return others != than.others ? others > than.others : length >= than.length;
  }
};

// Paths from the last place through a set of the others, a bit for each, that end at one of the set: of 2 to
// kMostExactCities places, in (n - 1)^2 2^(n - 1) steps. Length as LinKernighan has it, or FixedFirst;
// distance(a, b) is that of the way from a to b.
template <typename Length>
class ShortestPaths {
 public:
  template <typename Distance>
  ShortestPaths(int n, const Distance& distance)
      : others_(n - 1), lengths_(static_cast<size_t>(others_) << others_) {
    for (int a = 0; a <= others_; ++a) {
      for (int b = 0; b <= others_; ++b) distances_[a][b] = distance(a, b);
    }
    for (uint32_t set = 1; set < uint32_t{1} << others_; ++set) {
      for (int end = 0; end < others_; ++end) {
        if ((set >> end & 1) != 0)
          path(set, end) = through(set & ~(uint32_t{1} << end), best_end(set, end), end);
      }
    }
  }

  // From its last place back to its first.
  std::vector<int32_t> tour_backwards() {
    std::vector<int32_t> places = {others_};
    uint32_t left = (uint32_t{1} << others_) - 1;
    for (int next = others_; left != 0;) {
      next = best_end(left | bit(next), next);
      places.push_back(next);
      left &= ~bit(next);
    }
    return places;
  }

 private:
  // The last place has no bit: every path begins there.
  uint32_t bit(int place) const { return place < others_ ? uint32_t{1} << place : 0; }
  Length& path(uint32_t set, int end) { return lengths_[static_cast<size_t>(set) * others_ + end]; }

  // Of a path through `set` without `next` and then to `next`, where `before` is the place before `next`.
  Length through(uint32_t set, int before, int next) {
    return set == 0 ? distances_[others_][next] : path(set, before) + distances_[before][next];
  }

  // The place before `next` on the shortest path through `set`.
  int best_end(uint32_t set, int next) {
    const uint32_t before = set & ~bit(next);
    int best = -1;
    Length shortest{};
    for (int end = 0; end < others_; ++end) {
      if ((before >> end & 1) == 0) continue;
      const Length length = through(before, end, next);
      if (best >= 0 && length >= shortest) continue;
      best = end;
      shortest = length;
    }
    return best;
  }

  const int others_;
  Length distances_[kMostExactCities][kMostExactCities];
  std::vector<Length> lengths_;  // [sets][ends]
};

}  // namespace pointsman
