// SPDX-License-Identifier: Apache-2.0
// A user's own problem, as pointsman.Problem calls it: the user's functions, trainings and searches.
#pragma once

#include <nanobind/nanobind.h>

namespace pointsman {

void bind_own(nanobind::module_& module);

}  // namespace pointsman
