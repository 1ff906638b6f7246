// SPDX-License-Identifier: Apache-2.0
// Colourings of graphs: validator, rollouts and answers, generator, DSATUR, the exact search and the local
// one.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/search/exact/colouring.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/local_search.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;
using Edges = std::vector<std::array<int32_t, 2>>;

Instance graph_of(int n, const Edges& edges) {
  DistanceMatrix matrix = empty_graph(n);
  for (const auto& [a, b] : edges) join(matrix, a, b);
  Instance instance;
  instance.problem = ProblemKind::kColouring;
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
  return instance;
}

Edges cycle(int n) {
  Edges edges;
  for (int node = 0; node < n; ++node) edges.push_back({node, (node + 1) % n});
  return edges;
}

// Mycielski's graph of a graph: one colour more, and no larger clique.
Instance mycielski(int n, Edges edges) {
  const Edges old = edges;
  for (const auto& [a, b] : old) {
    edges.push_back({a, n + b});
    edges.push_back({b, n + a});
  }
  for (int copy = 0; copy < n; ++copy) edges.push_back({n + copy, 2 * n});
  return graph_of(2 * n + 1, edges);
}

// Squares of a chess board, joined where a queen goes.
Instance queens(int side) {
  Edges edges;
  for (int a = 0; a < side * side; ++a) {
    for (int b = 0; b < a; ++b) {
      const int rows = a / side - b / side, columns = a % side - b % side;
      if (rows == 0 || columns == 0 || rows == columns || rows == -columns) edges.push_back({a, b});
    }
  }
  return graph_of(side * side, edges);
}

// A graph of n nodes of which each pair is joined with this probability.
Instance random_graph(int n, double density, std::mt19937& random) {
  Edges edges;
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < a; ++b) {
      if (std::uniform_real_distribution<double>()(random) < density) edges.push_back({a, b});
    }
  }
  return graph_of(n, edges);
}

// What validate_solution() says of these colours; the number of them in `count`.
std::string verdict(const Instance& instance, Order colours, double* count = nullptr) {
  Solution solution;
  solution.order = std::move(colours);
  const std::string wrong = validate_solution(instance, solution);
  if (count != nullptr) *count = solution.objective;
  return wrong;
}

// By trying all ways to part the nodes.
int fewest_colours(const Instance& instance) {
  const int n = instance.n();
  Order colours(n, -1);
  int best = n;
  const std::function<void(int, int)> part = [&](int node, int used) {
    if (node == n) best = std::min(best, used);
    for (int colour = 0; node < n && colour <= used; ++colour) {
      bool is_free = true;
      for (int other = 0; other < node; ++other)
        is_free = is_free && (colours[other] != colour || instance.matrix->at(node, other) == 0.0);
      if (!is_free) continue;
      colours[node] = colour;
      part(node + 1, std::max(used, colour + 1));
    }
  };
  part(0, 0);
  return best;
}

void check_against_all_parts(int count, uint32_t seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < count; ++i) {
    const double density = std::uniform_real_distribution<double>()(random);
    const Instance instance = random_graph(1 + i % 8, density, random);
    const int fewest = fewest_colours(instance);
    const Solution exact = exact_colouring(instance, {});
    REQUIRE(exact.objective == fewest);
    CHECK(exact.start == Start::kExact);
    double colours = 0.0;
    REQUIRE(verdict(instance, exact.order, &colours).empty());
    REQUIRE(colours == fewest);
    REQUIRE(local_search(instance, {.kicks = 1000}, {}).objective == fewest);
    REQUIRE(quick_answer(instance).objective >= fewest);
    REQUIRE(random_search(instance, i, 3, 1, {}).objective >= fewest);
    REQUIRE(static_cast<int>(greedy_clique(Graph(instance)).size()) <= fewest);
  }
}

}  // namespace

TEST_CASE("the validator counts colours, numbers them and tells what is wrong") {
  const Instance square = graph_of(4, cycle(4));
  Solution solution;
  solution.order = {3, 1, 3, 0};
  CHECK(validate_solution(square, solution).empty());
  CHECK(solution.objective == 3.0);
  CHECK(solution.order == Order{0, 1, 0, 2});
  CHECK(verdict(square, {0, 1, 0}) == "expected a colour of each of 4 nodes, found 3");
  CHECK(verdict(square, {0, 1, 0, 1, 2}) == "expected a colour of each of 4 nodes, found 5");
  CHECK(verdict(square, {0, 1, 0, 4}) == "node 3: expected a colour from 0 to 3, found 4");
  CHECK(verdict(square, {0, -1, 0, 1}) == "node 1: expected a colour from 0 to 3, found -1");
  CHECK(verdict(square, {0, 1, 1, 2}) == "nodes 1 and 2 are joined and have the same colour");
  CHECK(verdict(square, {0, 1, 2, 0}) == "nodes 0 and 3 are joined and have the same colour");
}

TEST_CASE("a rollout's choices and the colours say the same") {
  const Problem& problem = problem_of(ProblemKind::kColouring);
  std::mt19937 random(4);
  for (int i = 0; i < 100; ++i) {
    const Instance instance = random_graph(1 + i % 12, 0.5, random);
    const Order colours = random_search(instance, i, 1, 1, {}).order;
    const Order choices = problem.choices_of(instance, colours);
    REQUIRE(choices.size() == 2 * colours.size());
    CHECK(problem.answer_of(instance.n(), choices) == colours);
    // As the rules have it: each node once, and behind it one that has its colour already, or itself.
    std::set<int32_t> seen;
    for (size_t t = 0; t < choices.size(); t += 2) {
      CHECK(seen.insert(choices[t]).second);
      CHECK(seen.count(choices[t + 1]) == 1);
      CHECK(colours[choices[t]] == colours[choices[t + 1]]);
    }
  }
}

TEST_CASE("a node's features: its degree, its neighbours' and how many of these are joined") {
  // A triangle 0 1 2 with 3 at 2, and 4 alone.
  const Instance instance = graph_of(5, {{0, 1}, {1, 2}, {0, 2}, {2, 3}});
  const std::vector<float> expected = {0.5f,        0.625f,
                                       1.0f,  // of 0
                                       0.5f,        0.625f,
                                       1.0f,  // of 1
                                       0.75f,       (2 + 2 + 1) / 12.0f,
                                       1.0f / 3.0f,  // of 2
                                       0.25f,       0.75f,
                                       0.0f,  // of 3
                                       0.0f,        0.0f,
                                       0.0f};
  const std::vector<float> features = problem_of(instance).features(instance, 0.0);
  REQUIRE(features.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(features[i] == Approx(expected[i]));
}

TEST_CASE("half of all pairs of a generated graph are joined, whatever else is generated") {
  const InstanceBatch batch = generate_instances(ProblemKind::kColouring, 40, 3, 0, 50);
  double edges = 0.0;
  for (const Instance& instance : batch) edges += static_cast<double>(edges_of(*instance.matrix).size());
  const double pairs = 50 * 40 * 39 / 2;
  CHECK(std::abs(edges - pairs / 2) < 5 * std::sqrt(pairs / 4));  // five standard deviations
  const InstanceBatch later = generate_instances(ProblemKind::kColouring, 40, 3, 7, 1);
  CHECK(later[0].matrix->above == batch[7].matrix->above);
  CHECK(batch[6].matrix->above != batch[7].matrix->above);
}

TEST_CASE("DSATUR gives graphs without odd cycles two colours") {  // Brelaz 1979, theorem 2
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const int n = 2 + i % 29;
    Order side(n);
    for (int32_t& s : side) s = static_cast<int32_t>(random() % 2);
    Edges edges;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < a; ++b) {
        if (side[a] != side[b] && random() % 3 == 0) edges.push_back({a, b});
      }
    }
    CHECK(quick_answer(graph_of(n, edges)).objective == (edges.empty() ? 1.0 : 2.0));
  }
}

TEST_CASE("the exact search finds the known numbers of colours") {
  CHECK(exact_colouring(graph_of(1, {}), {}).objective == 1.0);
  CHECK(exact_colouring(graph_of(6, {}), {}).objective == 1.0);
  CHECK(exact_colouring(graph_of(12, cycle(12)), {}).objective == 2.0);
  CHECK(exact_colouring(graph_of(13, cycle(13)), {}).objective == 3.0);
  CHECK(exact_colouring(mycielski(5, cycle(5)), {}).objective == 4.0);  // Groetzsch's graph
  CHECK(exact_colouring(queens(5), {}).objective == 5.0);
  CHECK(exact_colouring(queens(6), {}).objective == 7.0);
  CHECK(local_search(queens(6), {.kicks = 100000}, {}).objective == 7.0);
  CHECK(local_search(queens(7), {.kicks = 100000}, {}).objective == 7.0);
}

TEST_CASE("the exact search passes over what cannot become better: nodes that nothing joins") {
  const Instance board = queens(6);
  Instance instance = graph_of(96, edges_of(*board.matrix));
  SearchControl control;
  control.deadline = Clock::now() + std::chrono::seconds(20);
  const Solution found = exact_colouring(instance, control);
  CHECK(found.objective == 7.0);
  CHECK(found.start == Start::kExact);
}

TEST_CASE("of all ways to part the nodes of small graphs the searches find the best") {
  check_against_all_parts(1000, 1);
}

TEST_CASE("of all ways to part the nodes of 100,000 small graphs the searches find the best", "[.long]") {
  check_against_all_parts(100'000, 2);
}

TEST_CASE("a clique of a graph is one") {
  std::mt19937 random(6);
  for (int i = 0; i < 50; ++i) {
    const Instance instance = random_graph(30, 0.7, random);
    const Order clique = greedy_clique(Graph(instance));
    CHECK(clique.size() >= 4);
    for (const int32_t a : clique) {
      for (const int32_t b : clique) CHECK((a == b || instance.matrix->at(a, b) != 0.0));
    }
  }
}

TEST_CASE("searches of a large graph end in time with a colouring") {
  const Instance instance = generate_instances(ProblemKind::kColouring, 300, 8, 0, 1)[0];
  const double dsatur = quick_answer(instance).objective;
  SearchControl control;
  for (const bool is_exact : {true, false}) {
    control.deadline = Clock::now() + std::chrono::milliseconds(200);
    const auto begin = Clock::now();
    const Solution found = is_exact ? exact_colouring(instance, control)
                                    : local_search(instance, {.kicks = int64_t{1} << 40}, control);
    CHECK(Clock::now() - begin < std::chrono::seconds(5));
    CHECK(found.status == Status::kTimeLimit);
    CHECK(found.objective <= dsatur);
    CHECK(verdict(instance, found.order).empty());
    if (is_exact) CHECK(found.start == Start::kBranchAndBound);
  }
}

TEST_CASE("the local search is the same for the same seed, and no worse with more moves") {
  const Instance instance = generate_instances(ProblemKind::kColouring, 80, 8, 0, 1)[0];
  const Solution few = local_search(instance, {.kicks = 100, .seed = 3}, {});
  CHECK(local_search(instance, {.kicks = 100, .seed = 3}, {}).order == few.order);
  CHECK(few.kicks <= 100);
  CHECK(local_search(instance, {.kicks = 0, .seed = 3}, {}).objective == quick_answer(instance).objective);
  CHECK(local_search(instance, {.kicks = 20000, .seed = 3}, {}).objective <= few.objective);
}
