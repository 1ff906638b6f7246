// SPDX-License-Identifier: Apache-2.0
// Graph colouring, as the table of problems knows it.
#include "kernels/common/colouring.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/problem/graph.h"
#include "engine/problem/problem.h"

namespace pointsman {

namespace {

using Order = std::vector<int32_t>;

// Of each node its degree, its neighbours' mean degree, and the share of pairs of these that are joined, all
// between 0 and 1.
std::vector<float> graph_features(const Instance& instance, double) {
  const Graph graph(instance);
  const int n = graph.n();
  const double most = std::max(n - 1, 1);
  std::vector<float> features;
  for (int node = 0; node < n; ++node) {
    double degrees = 0.0, joined = 0.0;
    graph.neighbours(node).for_each([&](int other) {
      degrees += graph.degree(other);
      joined += graph.neighbours(node).count_common(graph.neighbours(other));
    });
    const double degree = graph.degree(node), pairs = degree * (degree - 1.0);
    features.push_back(static_cast<float>(degree / most));
    features.push_back(static_cast<float>(degree > 0.0 ? degrees / degree / most : 0.0));
    features.push_back(static_cast<float>(pairs > 0.0 ? joined / pairs : 0.0));
  }
  return features;
}

RuleNumbers edge_numbers(const Instance& instance) {
  RuleNumbers out;
  const int n = instance.n();
  out.weights.reserve(static_cast<size_t>(n) * n);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) out.weights.push_back(instance.matrix->at(a, b));
  }
  return out;
}

std::string validate_colours(const Instance& instance, Solution& solution) {
  Order& colours = solution.order;
  const int n = instance.n();
  if (!std::cmp_equal(colours.size(), n))
    return "expected a colour of each of " + std::to_string(n) + " nodes, found " +
           std::to_string(colours.size());
  for (int a = 0; a < n; ++a) {
    if (colours[a] < 0 || colours[a] >= n)
      return "node " + std::to_string(a) + ": expected a colour from 0 to " + std::to_string(n - 1) +
             ", found " + std::to_string(colours[a]);
  }
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      if (colours[a] == colours[b] && instance.matrix->at(a, b) != 0.0)
        return "nodes " + std::to_string(a) + " and " + std::to_string(b) +
               " are joined and have the same colour";
    }
  }
  solution.objective = solution.unrounded = renumber_colours(colours);
  return "";
}

double colour_count(const Instance&, const Order& colours) {
  Order copy = colours;
  return renumber_colours(copy);
}

// A rollout's choices are nodes and, behind each, who first got its colour.
Order colours_of(int n, Order choices) {
  Order colours(static_cast<size_t>(n), 0);
  for (size_t i = 0; i + 1 < choices.size(); i += 2) colours[choices[i]] = choices[i + 1];
  renumber_colours(colours);
  return colours;
}

// In DSATUR's order of the nodes.
Order choices_of(const Instance& instance, Order colours) {
  Order firsts(colours.size(), -1), choices;
  by_saturation(Graph(instance), [&](int node) {
    int32_t& first = firsts[colours[node]];
    if (first < 0) first = node;
    choices.insert(choices.end(), {node, first});
    return colours[node];
  });
  return choices;
}

}  // namespace

extern const Problem kColouringProblem = {.kind = ProblemKind::kColouring,
                                          .title = "colouring",
                                          .model_prefix = "colouring",
                                          .item = "node",
                                          .items = "nodes",
                                          .answer = "colouring",
                                          .order_key = "colours",
                                          .objective_key = "cost",
                                          .measure = "colours",
                                          .full_measure = "number of colours",
                                          .fields = ItemFields::kEdges,
                                          .sense = Sense::kMinimise,
                                          .has_capacity = ColouringRules::kHasCapacity,
                                          .has_packing = false,
                                          .has_exact = true,
                                          .has_depot = false,
                                          .has_symmetries = false,
                                          .has_all_items = true,
                                          .has_local_search = true,
                                          .has_two_opt = false,
                                          .features = graph_features,
                                          .validate = validate_colours,
                                          .objective = colour_count,
                                          .canonical = [](Order colours) { return colours; },
                                          .make_example = [](int, const float*, int32_t*) {},
                                          .default_capacity = [](int) { return 0.0; },
                                          .rule_numbers = edge_numbers,
                                          .has_labels = true,
                                          .answer_of = colours_of,
                                          .choices_of = choices_of};

}  // namespace pointsman
