// SPDX-License-Identifier: Apache-2.0
// Packings of integers and decimals beside integers that cannot round: none too heavy, none worse than best.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"
#include "engine/search/exact/branch_and_bound.h"
#include "engine/search/heuristics.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

Instance sack(double capacity, const std::vector<double>& weights, const std::vector<double>& values) {
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = capacity;
  for (size_t i = 0; i < weights.size(); ++i) {
    instance.values.push_back(weights[i]);
    instance.values.push_back(values[i]);
  }
  return instance;
}

std::vector<int32_t> best_items(const Instance& instance) {
  const Solution solution = exact_packing(instance, {});
  CHECK(solution.start == Start::kExact);
  std::vector<int32_t> items = solution.order;
  std::sort(items.begin(), items.end());
  return items;
}

bool is_valid(const Instance& instance, const std::vector<int32_t>& items) {
  Solution solution;
  solution.order = items;
  return validate_solution(instance, solution).empty();
}

using Items = std::vector<int32_t>;

// What is packed, in integers: weights and values of units of 10^-places.
struct Task {
  std::vector<int64_t> weights, values;
  int64_t capacity = 0;
  int places = 0;  // of the weights and the capacity
};

int64_t up_to(std::mt19937_64& random, int64_t most) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
}

// The capacity is the weight of a random choice of items, or one more or less.
void set_capacity(std::mt19937_64& random, int64_t most, Task& task) {
  task.capacity = 0;
  for (const int64_t weight : task.weights) {
    if (random() % 2 == 0 && task.capacity + weight < most) task.capacity += weight;
  }
  task.capacity = std::max<int64_t>(task.capacity + static_cast<int64_t>(random() % 3) - 1, 1);
}

// Few items of up to 2^52 units, often nearly alike.
Task large_numbers(std::mt19937_64& random) {
  Task task;
  task.places = static_cast<int>(random() % 7);
  const int64_t most = int64_t{1} << (4 + random() % 49), base = random() % 2 * (most / 8);
  const int64_t range = random() % 2 == 0 ? most - base : 2;
  const auto n = 1 + random() % 13;
  const bool alike = random() % 3 == 0;  // worth what they weigh
  for (size_t i = 0; i < n; ++i) {
    task.weights.push_back(base + up_to(random, range));
    task.values.push_back(alike ? task.weights.back() : base + up_to(random, range));
  }
  set_capacity(random, int64_t{1} << 52, task);
  return task;
}

// Many items of few units; their values add up beyond 2^53.
Task many_items(std::mt19937_64& random) {
  Task task;
  task.places = static_cast<int>(random() % 7);
  const int64_t most_value = int64_t{1} << (random() % 53);
  const auto n = 20 + random() % 20;
  for (size_t i = 0; i < n; ++i) {
    task.weights.push_back(up_to(random, 60));
    task.values.push_back(up_to(random, most_value));
  }
  set_capacity(random, 400, task);
  return task;
}

Int128 weight_of(const Task& task, const Items& items) {
  Int128 sum = 0;
  for (const int32_t item : items) sum += task.weights[item];
  return sum;
}

Int128 value_of(const Task& task, const Items& items) {
  Int128 sum = 0;
  for (const int32_t item : items) sum += task.values[item];
  return sum;
}

Int128 best_of_all_choices(const Task& task) {
  const size_t n = task.weights.size();
  Int128 best = 0;
  for (uint32_t set = 0; set < 1u << n; ++set) {
    Int128 weight = 0, value = 0;
    for (size_t i = 0; i < n; ++i) {
      if (set >> i & 1) weight += task.weights[i], value += task.values[i];
    }
    if (weight <= task.capacity) best = std::max(best, value);
  }
  return best;
}

Int128 best_by_programming(const Task& task) {
  std::vector<Int128> best(static_cast<size_t>(task.capacity) + 1, 0);  // within each capacity
  for (size_t i = 0; i < task.weights.size(); ++i) {
    for (int64_t c = task.capacity; c >= task.weights[i]; --c)
      best[c] = std::max(best[c], best[c - task.weights[i]] + task.values[i]);
  }
  return best[task.capacity];
}

Instance instance_of(const Task& task) {
  const double ten = std::pow(10.0, task.places);
  std::vector<double> weights, values;
  for (const int64_t weight : task.weights) weights.push_back(static_cast<double>(weight) / ten);
  for (const int64_t value : task.values) values.push_back(static_cast<double>(value));
  return sack(static_cast<double>(task.capacity) / ten, weights, values);
}

struct Counts {
  int tasks = 0, exact = 0, hit = 0, overweight = 0, suboptimal = 0, misjudged = 0;
};

void solve_task(const Task& task, Int128 best, uint64_t row, Counts& counts) {
  const Instance instance = instance_of(task);
  const Solution exact = exact_packing(instance, {}, int64_t{1} << 22);
  ++counts.tasks;
  counts.exact += exact.start == Start::kExact;
  counts.hit += weight_of(task, exact.order) == task.capacity;
  const bool claims = exact.start == Start::kExact, is_best = value_of(task, exact.order) == best;
  counts.suboptimal += claims && (!is_best || exact.objective != static_cast<double>(best));
  for (const Items& items :
       {exact.order, ratio_packing(instance).order, random_search(instance, row, 8, 1, {}).order})
    counts.overweight += weight_of(task, items) > task.capacity;
  for (int choice = 0; choice < 4; ++choice) {
    Items items = exact.order;
    for (int32_t item = 0; item < instance.n() && choice > 0; ++item) {
      const bool taken = std::find(items.begin(), items.end(), item) != items.end();
      if (!taken && (row + static_cast<uint64_t>(item)) % 4 < static_cast<uint64_t>(choice))
        items.push_back(item);
    }
    counts.misjudged += is_valid(instance, items) != (weight_of(task, items) <= task.capacity);
  }
}

void solve_tasks(int count) {
  std::mt19937_64 random(2026);
  Counts counts;
  for (int row = 0; row < count; ++row) {
    const bool is_large = row % 2 == 0;
    const Task task = is_large ? large_numbers(random) : many_items(random);
    const Int128 best = is_large ? best_of_all_choices(task) : best_by_programming(task);
    solve_task(task, best, static_cast<uint64_t>(row), counts);
  }
  WARN(counts.tasks << " packings: " << counts.exact << " exact, " << counts.hit << " of just the capacity, "
                    << counts.overweight << " too heavy, " << counts.suboptimal << " exact but not the best, "
                    << counts.misjudged << " misjudged");
  CHECK(counts.exact > count * 99 / 100);
  CHECK(counts.hit > count / 4);
  CHECK(counts.overweight == 0);
  CHECK(counts.suboptimal == 0);
  CHECK(counts.misjudged == 0);
}

}  // namespace

TEST_CASE("400 packings of integers and decimals are the best within the capacity") { solve_tasks(400); }

TEST_CASE("20,000 packings of integers and decimals", "[.long]") { solve_tasks(20'000); }

TEST_CASE("one unit above the capacity is too much, however large the numbers") {
  CHECK(best_items(sack(4503599627370496, {4503599627370495, 2}, {10, 1})) == Items{0});
  CHECK(best_items(sack(4503599627370496, {2251799813685248, 2251799813685249}, {1, 1})).size() == 1);
  CHECK(best_items(sack(4000000000000001, std::vector<double>(4, 1000000000000001), {1, 1, 1, 1})).size() ==
        3);
  CHECK(
      best_items(sack(1200000000000011, std::vector<double>(12, 100000000000001), std::vector<double>(12, 1)))
          .size() == 11);
  CHECK_FALSE(is_valid(sack(4503599627370496, {4503599627370495, 2}, {10, 1}), {0, 1}));
  std::vector<double> files(10'000, 1e8);
  files.back() += 1;
  CHECK(best_items(sack(1e12, files, files)).size() == 9'999);
  CHECK_FALSE(is_valid(sack(0.3, {0.1, 0.2, 0.000001}, {1, 1, 1}), {0, 1, 2}));
}

TEST_CASE("a packing worth one more is not cut") {
  CHECK(best_items(sack(10, {6, 5, 5}, {4503599627370000, 2251799813685000, 2251799813685001})) ==
        Items{1, 2});
  // 256 values of nearly 2^52 beside their sum, which no double holds.
  std::vector<double> weights(256, 1.0), values(256, 0x1p52 - 1);
  weights.push_back(256.0);
  values.push_back(0x1p60);
  CHECK(best_items(sack(256, weights, values)) == Items{256});
  values.back() = 0x1p60 - 0x1p9;  // 256 less than the others
  const Solution others = exact_packing(sack(256, weights, values), {});
  CHECK(others.order.size() == 256);
  CHECK(others.objective == 0x1p60 - 0x1p8);
}

TEST_CASE("decimals that are just the capacity fit, in every search") {
  for (const std::vector<double>& weights : {std::vector<double>{0.1, 0.2}, {0.2, 0.1}}) {
    const Instance instance = sack(0.3, weights, {1, 1});
    CHECK(best_items(instance) == Items{0, 1});
    CHECK(ratio_packing(instance).order.size() == 2);
    CHECK(random_search(instance, 1, 1, 1, {}).order.size() == 2);
    CHECK(is_reachable(instance, exact_packing(instance, {})));
  }
  const Instance tenths = sack(100.0, std::vector<double>(1'000, 0.1), std::vector<double>(1'000, 1.0));
  CHECK(best_items(tenths).size() == 1'000);
  CHECK(ratio_packing(tenths).order.size() == 1'000);
  CHECK(ratio_packing(sack(99.9, std::vector<double>(1'000, 0.1), std::vector<double>(1'000, 1.0)))
            .order.size() == 999);
}

TEST_CASE("integers above 2^53 are weighed exactly, and rules take what surely fits") {
  const double capacity = 0x1p53 + 2;
  const Instance odd = sack(capacity, {0x1p53, 1, 1, 1}, {5, 1, 1, 1});
  CHECK(best_items(odd).size() == 3);
  CHECK_FALSE(is_valid(odd, {0, 1, 2, 3}));
  CHECK(ratio_packing(sack(0x1p60, {0x1p60}, {1})).order == Items{0});
  CHECK(ratio_packing(odd).weight <= capacity);
  CHECK(best_items(sack(0x1p60, {0x1p60 - 0x1p9, 511, 2}, {1, 1, 1})).size() == 2);
}

TEST_CASE("other numbers may exceed the capacity by their roundings, and the rules never by more") {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Instance instance = random_knapsack(300, seed, 0.0);
    for (double& number : instance.values) number /= 3.0;
    for (const int32_t item : random_order(300, seed + 1)) instance.capacity += instance.first(item);
    CHECK(best_items(instance).size() == 300);
    const Solution drawn = random_search(instance, seed, 20, 1, {});  // validated within
    CHECK(drawn.order.size() >= 299);
    instance.values[0] += 1e-9;
    CHECK(best_items(instance).size() == 299);
  }
  // A weight above the capacity by no more than the roundings.
  CHECK(best_items(sack(0.3, {0.1 + 0.2}, {1})).size() == 1);
  CHECK(best_items(sack(0.3, {0.3 + 1e-12}, {1})).empty());
}

TEST_CASE("a search that was cut short has a bound: no packing is above it, the best close below") {
  std::mt19937_64 random(7);
  int cut = 0;
  for (int row = 0; row < 400; ++row) {
    const bool is_large = row % 2 == 0;
    const Task task = is_large ? large_numbers(random) : many_items(random);
    const Int128 best = is_large ? best_of_all_choices(task) : best_by_programming(task);
    const Instance instance = instance_of(task);
    const Solution first = exact_packing(instance, {}, 1);
    if (first.start == Start::kExact) {
      CHECK(std::isnan(first.bound));
      continue;
    }
    ++cut;
    CHECK(first.start == Start::kBranchAndBound);
    CHECK(static_cast<Int128>(first.bound) >= best);
    CHECK(first.bound == std::floor(first.bound));
    const int64_t largest = *std::max_element(task.values.begin(), task.values.end());
    if (first.bound < 0x1p53) CHECK(static_cast<Int128>(first.bound) < best + largest);
  }
  CHECK(cut > 200);
}

// Not 0.1 + 0.2 = 0.3 alone: the value of a packing is a sum of doubles that rounded.
TEST_CASE("a bound is above a sum of values however that was rounded") {
  std::mt19937_64 random(8);
  for (int row = 0; row < 600; ++row) {
    INFO("row " << row);
    const size_t n = 1 + random() % (row % 3 == 0 ? 1000 : 8);
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) {
      const auto number = static_cast<double>(up_to(random, int64_t{1} << (1 + random() % 40)));
      const double kinds[] = {number / 10.0, std::sqrt(number), number * 0x1p30, number * 0x1p60,
                              number * 1e-320};
      values.push_back(kinds[row % 5]);
    }
    const Instance all = sack(1.0, std::vector<double>(n, 0.0), values);
    const ValueUnits units = value_units(all, weight_units(all));
    Items items;
    Int128 sum = 0;
    for (size_t i = 0; i < n; ++i) {
      items.push_back(static_cast<int32_t>(i));
      sum += units.values[i];
    }
    const double objective = sum_of(all, items, 1), bound = value_above(units, sum);
    CHECK(bound >= objective);
    CHECK(bound <= objective * (1.0 + (static_cast<double>(n) + 8.0) * 0x1p-51));
    if (row % 5 == 2 && objective < 0x1p53) CHECK(bound == objective);
  }
  const Instance odd = sack(1.0, {0, 0}, {0x1p53, 1});
  const ValueUnits units = value_units(odd, weight_units(odd));
  CHECK(value_above(units, static_cast<Int128>(1) << 53) == 0x1p53);
  CHECK(value_above(units, (static_cast<Int128>(1) << 53) + 1) == 0x1p53 + 2);
}
