// SPDX-License-Identifier: Apache-2.0
#include "host/formats/write_solutions.h"

#include <cmath>

#include "engine/problem/metric.h"
#include "host/formats/text_scan.h"
#include "models/tools/json_text.h"

namespace pointsman {

std::optional<int64_t> integer_objective(const Instance& instance, double objective) {
  constexpr double kEnd = 0x1p63;
  const bool fits = std::abs(objective) < kEnd && objective == std::floor(objective);
  if (!fits || !has_integer_distances(instance)) return std::nullopt;
  return static_cast<int64_t>(objective);
}

std::string objective_text(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? std::to_string(*integer) : number_text(objective);
}

std::string short_objective_text(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? std::to_string(*integer) : printed("%.10g", objective);
}

}  // namespace pointsman
