// SPDX-License-Identifier: Apache-2.0
// A graph in memory for searches: for each node a set of bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

inline constexpr int kMostGraphNodes = 10000;  // of a file; the matrix then takes 0.4 GB
inline constexpr int kMostExactNodes = 1000;   // of the exact search

// A set of numbers from 0.
class BitSet {
 public:
  explicit BitSet(int size) : words_(static_cast<size_t>(size + 63) / 64) {}

  bool has(int i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void add(int i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  int count() const {
    int sum = 0;
    for (const uint64_t word : words_) sum += std::popcount(word);
    return sum;
  }
  // How many both have.
  int count_common(const BitSet& other) const {
    int sum = 0;
    for (size_t i = 0; i < words_.size(); ++i) sum += std::popcount(words_[i] & other.words_[i]);
    return sum;
  }
  // visit(i) of each, upward.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t left = words_[i]; left != 0; left &= left - 1)
        visit(static_cast<int>(64 * i) + std::countr_zero(left));
    }
  }

 private:
  std::vector<uint64_t> words_;
};

class Graph {
 public:
  // Nodes are joined where the instance's matrix has another number than 0.
  explicit Graph(const Instance& instance);

  int n() const { return static_cast<int>(neighbours_.size()); }
  const BitSet& neighbours(int node) const { return neighbours_[node]; }
  int degree(int node) const { return degrees_[node]; }

 private:
  std::vector<BitSet> neighbours_;
  std::vector<int> degrees_;
};

// The matrix of a graph of n nodes, without edges.
DistanceMatrix empty_graph(int n);

// Adds the edge between two different nodes, in either order.
void join(DistanceMatrix& graph, int a, int b);

// The edges (a, b), a < b, ascending.
std::vector<std::array<int32_t, 2>> edges_of(const DistanceMatrix& graph);

// Numbers the colours, [n], from 0 in the order in which they first occur. Returns how many there are.
int renumber_colours(std::vector<int32_t>& colours);

// The nodes in the order of DSATUR (Brelaz 1979): next comes a node without a colour that has the most
// colours among its neighbours; of equals one of the highest degree, of these the first. colour(node) then
// gives it one, and is called in that order. Returns it.
template <typename Colour>
std::vector<int32_t> by_saturation(const Graph& graph, const Colour& colour);

// DSATUR: the first colour that no neighbour has.
std::vector<int32_t> dsatur_colours(const Graph& graph);

// A node at a time, in this order, the first colour that no neighbour has.
std::vector<int32_t> first_fit_colours(const Graph& graph, const std::vector<int32_t>& order);

// A clique: the largest that greed finds from each of the up to 100 nodes of highest degree, or from fewer
// once it has looked at 10^8 pairs. No colouring has fewer colours than a clique has nodes.
std::vector<int32_t> greedy_clique(const Graph& graph);

template <typename Colour>
std::vector<int32_t> by_saturation(const Graph& graph, const Colour& colour) {
  const int n = graph.n();
  std::vector<BitSet> seen(static_cast<size_t>(n), BitSet(n));  // colours of each node's neighbours
  std::vector<int> saturation(static_cast<size_t>(n), 0);
  std::vector<bool> is_done(static_cast<size_t>(n), false);
  std::vector<int32_t> order;
  for (int step = 0; step < n; ++step) {
    int next = -1;
    for (int node = 0; node < n; ++node) {
      if (is_done[node]) continue;
      const bool comes_first =
          next < 0 || saturation[node] > saturation[next] ||
          (saturation[node] == saturation[next] && graph.degree(node) > graph.degree(next));
      if (comes_first) next = node;
    }
    is_done[next] = true;
    order.push_back(next);
    const int chosen = colour(next);
    graph.neighbours(next).for_each([&](int other) {
      saturation[other] += !seen[other].has(chosen);
      seen[other].add(chosen);
    });
  }
  return order;
}

}  // namespace pointsman
