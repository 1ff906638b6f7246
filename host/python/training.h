// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "host/python/options.h"

namespace pointsman {

// What `pointsman train` does with these options. `callback`, unless None, gets a dict for each line of the
// log; what it throws ends the training after its model is written. Returns the program's summary as JSON.
std::string run_training(const Keywords& keywords, const nanobind::object& callback);

}  // namespace pointsman
