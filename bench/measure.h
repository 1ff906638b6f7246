// SPDX-License-Identifier: Apache-2.0
// Rows of a bench: one JSON object a line on stdout, and the statistics they hold.
#pragma once

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/floors.h"

namespace pointsman::bench {

using Json = nlohmann::ordered_json;

struct Timing {
  double median_ms = 0.0;
  double spread = 0.0;  // (most - least) / median
  int runs = 0;
};

inline Timing timing_of(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const size_t middle = ms.size() / 2;
  const double median = ms.size() % 2 ? ms[middle] : 0.5 * (ms[middle - 1] + ms[middle]);
  return {median, (ms.back() - ms.front()) / median, static_cast<int>(ms.size())};
}

// How often to repeat what took `ms` once, to spend about `seconds`.
inline int runs_for(double ms, double seconds) {
  return static_cast<int>(std::clamp(1e3 * seconds / std::max(ms, 1e-3), 5.0, 100.0));
}

inline void print_row(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// {"bench": name, "variant": variant, "n": n, "batch": batch}
inline Json row_of(const std::string& name, const std::string& variant, int n, int64_t batch) {
  return {{"bench", name}, {"variant", variant}, {"n", n}, {"batch", batch}};
}

inline void print_timing(Json row, const Timing& timing) {
  row.update(Json{{"ms", timing.median_ms}, {"spread", timing.spread}, {"runs", timing.runs}});
  print_row(row);
}

// With the floor of the work: achieved / floor is of_floor.
inline void print_timing(Json row, const Timing& timing, Work work, Peaks peaks) {
  const Floor floor = floor_of(work, peaks);
  row.update(Json{{"ms", timing.median_ms},
                  {"spread", timing.spread},
                  {"runs", timing.runs},
                  {"floor_ms", floor.ms},
                  {"bound", floor.bound},
                  {"of_floor", floor.ms / timing.median_ms}});
  print_row(row);
}

inline void print_skipped(Json row, const std::string& why) {
  row["skipped"] = why;
  print_row(row);
}

}  // namespace pointsman::bench
