// SPDX-License-Identifier: Apache-2.0
// What a user's own problem declares of its orders, against every order of small instances; costs and
// validation.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "engine/problem/problem.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

using Order = std::vector<int32_t>;
using Pairs = std::vector<std::array<int32_t, 2>>;

// The sum of the first numbers of the items, each times its place from the end.
std::vector<double> summed(const std::vector<double>& items, const std::vector<int64_t>& orders,
                           int64_t count, int n) {
  std::vector<double> costs(static_cast<size_t>(count), 0.0);
  for (int64_t row = 0; row < count; ++row) {
    for (int place = 0; place < n && orders[row * n + place] >= 0; ++place)
      costs[row] += (n - place) * items[2 * (row * n + orders[row * n + place])];
  }
  return costs;
}

struct Random {
  std::mt19937 bits;
  int below(int bound) { return static_cast<int>(bits() % static_cast<uint32_t>(bound)); }
};

// Declarations that some order keeps, or the exception that says there is none.
struct Declared {
  int n;
  OwnDeclarations declarations;
  Pairs pairs = {};

  Declared(int n_, Random& random) : n(n_) {
    if (random.below(3) == 0) declarations.first = random.below(2 * n) - n;
    if (random.below(3) == 0) declarations.last = random.below(2 * n) - n;
    for (int i = random.below(4); i > 0 && n > 1; --i) {
      const int32_t a = random.below(n), b = random.below(n);
      if (a != b) pairs.push_back({a, b});
    }
    if (!pairs.empty()) declarations.before = [this](int) { return pairs; };
    if (!declarations.last && random.below(3) == 0) {
      declarations.weight = 1;
      declarations.capacity = 1 + random.below(2 * n);
    }
  }
  Declared(const Declared&) = delete;

  int item(int wanted) const { return wanted < 0 ? wanted + n : wanted; }

  // Of a whole order, or with a capacity of one that no item fits behind.
  bool allows(const Instance& instance, const Order& order) const {
    const auto place = [&](int32_t at) { return std::find(order.begin(), order.end(), at) - order.begin(); };
    const auto size = static_cast<int64_t>(order.size());
    if (declarations.first && (size == 0 || order[0] != item(*declarations.first))) return false;
    if (declarations.last && (size == 0 || order.back() != item(*declarations.last))) return false;
    double left = declarations.capacity;
    for (const int32_t one : order) left -= declarations.weight < 0 ? 0.0 : instance.second(one);
    for (const auto& [a, b] : pairs) {
      if (place(b) < size && place(a) >= place(b)) return false;
    }
    return left >= 0.0;
  }
};

InstanceBatch with_items(const std::shared_ptr<const OwnProblem>& problem, int n, Random& random) {
  std::vector<double> values;
  for (int i = 0; i < 2 * n; ++i) values.push_back(random.below(4));
  return {own_instance(problem, values)};
}

std::shared_ptr<const OwnProblem> problem_with(const OwnDeclarations& declarations) {
  return std::make_shared<const OwnProblem>(OwnScaling{{0.0, 0.0}, {1.0, 1.0}}, declarations, summed);
}

void check_all_orders(int instances, uint32_t seed) {
  Random random{std::mt19937(seed)};
  int possible = 0, refused = 0;
  for (int i = 0; i < instances; ++i) {
    const int n = 1 + random.below(5);
    const Declared declared(n, random);
    const auto problem = problem_with(declared.declarations);
    Instance instance = with_items(problem, n, random)[0];
    const bool has_room = declared.declarations.weight >= 0;
    int allowed = 0;
    Order order(n);
    std::iota(order.begin(), order.end(), 0);
    bool is_refused = false;
    try {
      problem->declared(n);
    } catch (const std::invalid_argument&) {
      is_refused = true;
      ++refused;
    }
    do {
      const bool wanted = declared.allows(instance, order);
      allowed += wanted;
      if (is_refused || has_room) continue;
      Solution solution;
      solution.order = order;
      const bool found = validate_solution(instance, solution).empty();
      if (found != wanted) FAIL("instance " << i << ": an order is judged wrongly");
      if (found && solution.objective != problem_of(instance).objective(instance, order))
        FAIL("instance " << i << ": costs differ");
    } while (std::next_permutation(order.begin(), order.end()));
    if (is_refused && !has_room && allowed > 0)
      FAIL("instance " << i << ": refused, and an order is as declared");
    if (is_refused) continue;
    if (!has_room && allowed == 0) FAIL("instance " << i << ": taken, and no order is as declared");
    std::shuffle(order.begin(), order.end(), random.bits);
    Solution solution;
    solution.order = feasible_order(instance, order);
    const std::string wrong = validate_solution(instance, solution);
    if (!wrong.empty() || (!solution.order.empty() && !declared.allows(instance, solution.order)))
      FAIL("instance " << i << ": " << wrong);
    if (!is_reachable(instance, solution)) FAIL("instance " << i << ": the feasible order is not whole");
    ++possible;
  }
  CHECK(possible > instances / 3);
  CHECK(refused > instances / 50);
}

TEST_CASE("every order of small own problems is judged as it is declared") { check_all_orders(3000, 1); }
TEST_CASE("every order of 100,000 small own problems", "[.long]") { check_all_orders(100'000, 2); }

TEST_CASE("an own problem's wrong orders are named") {
  Random random{std::mt19937(1)};
  OwnDeclarations declarations;
  declarations.first = 1;
  Instance instance = with_items(problem_with(declarations), 3, random)[0];
  const auto wrong = [&](const Order& order) {
    Solution solution;
    solution.order = order;
    return validate_solution(instance, solution);
  };
  CHECK(wrong({1, 0, 2}).empty());
  CHECK(wrong({0, 1, 2}) == "item 0 may not come in place 0 of the order");
  CHECK(wrong({1, 0}) == "expected an order of 3 items, found 2");
  CHECK(wrong({1, 0, 0}) == "item 0 occurs twice");
  CHECK(wrong({1, 0, 3}) == "item 3 does not exist: there are 3");
}

TEST_CASE("an own problem's network reads numbers as its scaling says") {
  const OwnProblem problem({{1.0, -2.0}, {2.0, 0.5}}, {}, summed);
  CHECK(problem.features({1.0, 0.0, 3.0, 2.0}) == std::vector<float>{0.0f, 1.0f, 4.0f, 2.0f});
}

}  // namespace
}  // namespace pointsman
