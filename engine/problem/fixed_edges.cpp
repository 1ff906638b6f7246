// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/fixed_edges.h"

#include <numeric>

namespace pointsman {

std::string wrong_edges(int n, std::span<const std::array<int32_t, 2>> edges, size_t& index) {
  std::vector<int32_t> root(static_cast<size_t>(n));
  std::iota(root.begin(), root.end(), 0);
  std::vector<int> degree(root.size(), 0);
  const auto root_of = [&](int32_t city) {
    while (root[city] != city) city = root[city] = root[root[city]];
    return city;
  };
  for (index = 0; index < edges.size(); ++index) {
    const auto& [a, b] = edges[index];
    if (a == b) return "two cities";
    if (++degree[a] > 2 || ++degree[b] > 2) return "at most two edges at a city";
    const bool closes = root_of(a) == root_of(b);
    if (closes && (index + 1 < static_cast<size_t>(n) || n < 3)) return "no cycle of fewer than all cities";
    root[root_of(a)] = root_of(b);
  }
  return "";
}

}  // namespace pointsman
