// SPDX-License-Identifier: Apache-2.0
// LEMON's heuristics for the TSP, for rivals.py, which compiles this file where LEMON's headers are:
//
//   lemon_tsp christofides|nearest|greedy|insertion <POINTS >TOURS      all but the first followed by 2-opt
//   lemon_tsp                                                           LEMON's version
//
// POINTS: raw, the int32 numbers of instances and of cities, then float64 x and y of each
// city. TOURS: raw int32.
#include <lemon/christofides_tsp.h>
#include <lemon/config.h>
#include <lemon/full_graph.h>
#include <lemon/greedy_tsp.h>
#include <lemon/insertion_tsp.h>
#include <lemon/nearest_neighbor_tsp.h>
#include <lemon/opt2_tsp.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

namespace {

// Whole numbers: LEMON's matching is only sure to end with these.
using Costs = lemon::FullGraph::EdgeMap<std::int64_t>;
using Nodes = std::vector<lemon::FullGraph::Node>;

template <class Heuristic>
Nodes tour_of(Heuristic heuristic) {
  Nodes nodes;
  heuristic.run();
  heuristic.tourNodes(std::back_inserter(nodes));
  return nodes;
}

Nodes solve(const std::string& name, const lemon::FullGraph& graph, const Costs& costs) {
  if (name == "christofides") return tour_of(lemon::ChristofidesTsp<Costs>(graph, costs));
  const Nodes start = name == "nearest"  ? tour_of(lemon::NearestNeighborTsp<Costs>(graph, costs))
                      : name == "greedy" ? tour_of(lemon::GreedyTsp<Costs>(graph, costs))
                                         : tour_of(lemon::InsertionTsp<Costs>(graph, costs));
  lemon::Opt2Tsp<Costs> descent(graph, costs);
  descent.run(start);
  Nodes nodes;
  descent.tourNodes(std::back_inserter(nodes));
  return nodes;
}

}  // namespace

int main(int count, char** arguments) {
  std::array<std::int32_t, 2> sizes{};
  if (count != 2) return std::puts(LEMON_VERSION) < 0 ? 4 : 0;
  if (std::fread(sizes.data(), sizeof sizes, 1, stdin) != 1) return 2;
  const auto [instances, n] = sizes;
  std::vector<std::array<double, 2>> points(static_cast<std::size_t>(n));
  for (int i = 0; i < instances; ++i) {
    if (std::fread(points.data(), sizeof points[0], points.size(), stdin) != points.size()) return 3;
    const lemon::FullGraph graph(n);
    Costs costs(graph);
    const auto at = [&](const lemon::FullGraph::Node& node) {
      return points[static_cast<std::size_t>(graph.id(node))];
    };
    for (lemon::FullGraph::EdgeIt edge(graph); edge != lemon::INVALID; ++edge) {
      const auto a = at(graph.u(edge)), b = at(graph.v(edge));
      costs[edge] = std::llround(1e6 * std::hypot(a[0] - b[0], a[1] - b[1]));
    }
    for (const auto& node : solve(arguments[1], graph, costs)) {
      const std::int32_t city = graph.id(node);
      if (std::fwrite(&city, sizeof city, 1, stdout) != 1) return 4;
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 4;
}
