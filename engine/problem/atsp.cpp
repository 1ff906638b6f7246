// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/atsp.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "kernels/common/atsp.h"

namespace pointsman {
namespace {

constexpr int kSmallest = 3;
constexpr int kSweepsOfAll = 25;

using Matrix = std::vector<double>;  // [n][n]

// In units of their mean, with 0 on the diagonal.
Matrix scaled_ways(const Instance& instance) {
  const int n = instance.n();
  Matrix ways(static_cast<size_t>(n) * n, 0.0);
  double total = 0.0;
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b)
      if (a != b) total += ways[static_cast<size_t>(a) * n + b] = city_distance(instance, a, b);
  }
  const double mean = total / (static_cast<double>(n) * std::max(n - 1, 1));
  if (mean > 0.0)
    for (double& way : ways) way /= mean;
  return ways;
}

// Subtracts from each row, then from each column, the least of its entries off the diagonal.
void reduce(int n, Matrix& ways) {
  for (const bool by_rows : {true, false}) {
    for (int a = 0; a < n; ++a) {
      const auto at = [&](int b) -> double& { return ways[by_rows ? a * n + b : b * n + a]; };
      double least = at(a == 0 ? 1 : 0);
      for (int b = 0; b < n; ++b)
        if (b != a) least = std::min(least, at(b));
      for (int b = 0; b < n; ++b)
        if (b != a) at(b) -= least;
    }
  }
}

// Scales rows and columns to sum 1 by turns.
Matrix affinities_of(int n, Matrix ways) {
  if (n < 2) return ways;
  reduce(n, ways);
  const auto limited = [](double share) { return std::clamp<double>(share, AtspRules::kLeast, 1.0); };
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      double& entry = ways[a * n + b];
      entry = a == b ? 0.0 : limited(exp_f32(static_cast<float>(-entry * n)));
    }
  }
  std::vector<double> columns(n);
  for (int sweep = 0; sweep < kSweepsOfAll; ++sweep) {
    std::ranges::fill(columns, 0.0);
    for (int a = 0; a < n; ++a) {
      double* const row = &ways[a * n];
      const double scale = 1.0 / std::accumulate(row, row + n, 0.0);
      for (int b = 0; b < n; ++b) columns[b] += row[b] *= scale;
    }
    for (double& column : columns) column = 1.0 / column;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) ways[a * n + b] *= columns[b];
    }
  }
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b)
      if (a != b) ways[a * n + b] = limited(ways[a * n + b]);
  }
  return ways;
}

// Appends the smallest of numbers [n] but the one in place `left_out`, ascending, limited; of too few the
// last again.
void append_smallest(std::vector<double> numbers, int left_out, std::vector<float>& features) {
  if (numbers.size() > 1) numbers.erase(numbers.begin() + left_out);
  const size_t count = std::min<size_t>(kSmallest, numbers.size());
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<int64_t>(count), numbers.end());
  for (size_t k = 0; k < kSmallest; ++k)
    features.push_back(static_cast<float>(std::min(numbers[std::min(k, count - 1)], 8.0)));
}

}  // namespace

std::vector<float> matrix_features(const Instance& instance, double) {
  const int n = instance.n();
  const RuleNumbers read = matrix_numbers(instance);
  const double *const ways = read.weights.data(), *const shares = ways + static_cast<size_t>(n) * n;
  std::vector<float> features;
  const auto entries = [&](const double* matrix, int city, bool from, const auto& shown) {
    std::vector<double> numbers;
    for (int other = 0; other < n; ++other)
      numbers.push_back(shown(matrix[from ? city * n + other : other * n + city]));
    return numbers;
  };
  const auto length = [n](double way) { return 0.1 * n * way; };
  const auto log_share = [](double share) {
    return share > 0.0 ? -0.1 * static_cast<double>(log_f32(static_cast<float>(share))) : 0.0;
  };
  for (int city = 0; city < n; ++city) {
    for (const bool from : {true, false}) {
      double total = 0.0;
      for (const double way : entries(ways, city, from, [](double number) { return number; })) total += way;
      features.push_back(static_cast<float>(total / std::max(n - 1, 1)));
    }
    for (const bool from : {true, false}) append_smallest(entries(ways, city, from, length), city, features);
    for (const bool from : {true, false})
      append_smallest(entries(shares, city, from, log_share), city, features);
  }
  return features;
}

RuleNumbers matrix_numbers(const Instance& instance) {
  if (!instance.suits_networks())
    throw std::invalid_argument(std::string("an ATSP with ") + instance.beyond_networks());
  RuleNumbers out;
  out.weights = scaled_ways(instance);
  const Matrix shares = affinities_of(instance.n(), out.weights);
  out.weights.insert(out.weights.end(), shares.begin(), shares.end());
  return out;
}

void make_circuit_example(int n, const float* features, int32_t* tour) {
  const auto mean_way = [&](int32_t city) { return features[AtspRules::kFeatures * city]; };
  int32_t* const first =
      std::min_element(tour, tour + n, [&](int32_t a, int32_t b) { return mean_way(a) < mean_way(b); });
  std::rotate(tour, first, tour + n);
}

}  // namespace pointsman
