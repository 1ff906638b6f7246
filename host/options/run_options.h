// SPDX-License-Identifier: Apache-2.0
// Options of every call that computes or writes a file.
#pragma once

#include <cstdint>
#include <string>

#include "engine/backend/backend.h"
#include "host/options/option_set.h"

namespace pointsman {

// The device, its threads and the precision.
void add_device_options(OptionSet& options, BackendOptions& device);
void add_seed(OptionSet& options, uint64_t& seed);
void add_time_limit(OptionSet& options, double& seconds);
void add_output(OptionSet& options, std::string& path, bool& force);

}  // namespace pointsman
