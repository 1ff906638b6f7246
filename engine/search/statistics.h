// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/backend/backend.h"

namespace pointsman {

inline void add_statistics(PolicyStatistics& sum, const PolicyStatistics& more) {
  sum.entropy += more.entropy;
  sum.mean_logit += more.mean_logit;
  sum.saturated += more.saturated;
  sum.steps += more.steps;
  sum.evaluations += more.evaluations;
  sum.direct_rows += more.direct_rows;
}

}  // namespace pointsman
