// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pointsman {

Graph::Graph(const Instance& instance)
    : neighbours_(static_cast<size_t>(instance.n()), BitSet(instance.n())) {
  for (const auto& [a, b] : edges_of(*instance.matrix)) {
    neighbours_[a].add(b);
    neighbours_[b].add(a);
  }
  for (const BitSet& set : neighbours_) degrees_.push_back(set.count());
}

DistanceMatrix empty_graph(int n) {
  const auto size = static_cast<size_t>(n);
  return {n, std::vector<double>(size * (size - 1) / 2)};
}

void join(DistanceMatrix& graph, int a, int b) {
  graph.above[graph.place(std::min(a, b), std::max(a, b))] = 1.0;
}

std::vector<std::array<int32_t, 2>> edges_of(const DistanceMatrix& graph) {
  std::vector<std::array<int32_t, 2>> edges;
  for (int a = 0; a < graph.n; ++a) {
    for (int b = a + 1; b < graph.n; ++b) {
      if (graph.at(a, b) != 0.0) edges.push_back({a, b});
    }
  }
  return edges;
}

int renumber_colours(std::vector<int32_t>& colours) {
  std::vector<int32_t> numbers(colours.size(), -1);
  int32_t next = 0;
  for (int32_t& colour : colours) {
    int32_t& number = numbers[colour];
    if (number < 0) number = next++;
    colour = number;
  }
  return next;
}

namespace {

// The first that no neighbour has. colours: [n], -1: none yet.
int32_t first_free(const Graph& graph, const std::vector<int32_t>& colours, int node) {
  BitSet taken(graph.n());
  graph.neighbours(node).for_each([&](int other) {
    if (colours[other] >= 0) taken.add(colours[other]);
  });
  int32_t colour = 0;
  while (taken.has(colour)) ++colour;
  return colour;
}

}  // namespace

std::vector<int32_t> dsatur_colours(const Graph& graph) {
  std::vector<int32_t> colours(static_cast<size_t>(graph.n()), -1);
  by_saturation(graph, [&](int node) { return colours[node] = first_free(graph, colours, node); });
  return colours;
}

std::vector<int32_t> first_fit_colours(const Graph& graph, const std::vector<int32_t>& order) {
  std::vector<int32_t> colours(order.size(), -1);
  for (const int32_t node : order) colours[node] = first_free(graph, colours, node);
  return colours;
}

std::vector<int32_t> greedy_clique(const Graph& graph) {
  constexpr size_t kStarts = 100, kTests = 100'000'000;
  size_t tests = 0;
  std::vector<int32_t> nodes(static_cast<size_t>(graph.n()));
  std::iota(nodes.begin(), nodes.end(), 0);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](int32_t a, int32_t b) { return graph.degree(a) > graph.degree(b); });
  std::vector<int32_t> best;
  for (size_t start = 0; start < std::min(nodes.size(), kStarts) && tests < kTests; ++start) {
    std::vector<int32_t> clique = {nodes[start]};
    for (const int32_t node : nodes) {
      const auto is_joined = [&](int32_t other) { return ++tests, graph.neighbours(node).has(other); };
      if (std::all_of(clique.begin(), clique.end(), is_joined)) clique.push_back(node);
    }
    if (clique.size() > best.size()) best = std::move(clique);
  }
  return best;
}

}  // namespace pointsman
