// SPDX-License-Identifier: Apache-2.0
// Rows of a bench, one JSON object each, and the statistics they hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/floors.h"

namespace pointsman::bench {

using Json = nlohmann::ordered_json;

// Of repeated measurements: milliseconds, or tours a second.
struct Statistics {
  double median = 0.0;
  double spread = 0.0;  // (most - least) / median
  int runs = 0;
};

inline Statistics statistics_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
  return {median, (values.back() - values.front()) / median, static_cast<int>(values.size())};
}

// How often to repeat what took `ms` once, to spend about `seconds`.
inline int runs_for(double ms, double seconds) {
  return static_cast<int>(std::clamp(1e3 * seconds / std::max(ms, 1e-3), 3.0, 100.0));
}

// The largest of the differences it was shown; one that is not a number is larger than any.
struct Worst {
  double value = 0.0;

  void show(double difference) {
    value = std::isnan(difference) ? INFINITY : std::max(value, std::abs(difference));
  }
};

inline Json row_of(const std::string& name, const std::string& variant, int n, int64_t batch) {
  return {{"name", name}, {"variant", variant}, {"n", n}, {"batch", batch}};
}

// The row with its time, how much of its batch that is a second and, where work and peaks are known, the
// floor: floor / achieved is of_floor.
inline Json timed(Json row, const Statistics& ms, Work work = {}, Peaks peaks = {}) {
  const double per_second = 1e3 * row["batch"].get<double>() / ms.median;
  row.update(Json{{"ms", ms.median}, {"spread", ms.spread}, {"runs", ms.runs}, {"per_second", per_second}});
  if (work.fp32 > 0.0 && peaks.bytes > 0.0) {
    const Floor floor = floor_of(work, peaks);
    row.update(Json{{"floor_ms", floor.ms}, {"bound", floor.bound}, {"of_floor", floor.ms / ms.median}});
  }
  return row;
}

inline Json peaks_row(Peaks peaks) {
  Json row = row_of("peaks", "measured", 0, 0);
  row.update(Json{{"fma_tflops", 2e-12 * peaks.fp32}, {"copy_tb_per_second", 1e-12 * peaks.bytes}});
  return row;
}

// Measures; what throws is left out, with a row that says why, and the bench goes on.
template <typename Add, typename Measure>
void attempt(Add&& add, Json row, Measure&& measure) {
  try {
    measure();
  } catch (const std::exception& failure) {
    row["skipped"] = failure.what();
    add(row);
  }
}

}  // namespace pointsman::bench
