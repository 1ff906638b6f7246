// SPDX-License-Identifier: Apache-2.0
// From the options of a training to what the engine trains, and from its result to a summary.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/engine.h"
#include "host/options/train_options.h"

namespace pointsman {

// Completes `request.options` and `device.learned`, reads the files that the request names, and returns the
// parameters to start from. Throws UsageError for combinations that mean nothing and for output files that
// could not be written.
std::vector<float> prepare_training(TrainRequest& request, const OptionSet& options, BackendOptions& device,
                                    uint64_t seed);

// What a training writes hours later must be possible now: throws UsageError or std::system_error where it is
// not. A continued training replaces its own earlier files.
void check_outputs(const TrainRequest& request);

nlohmann::ordered_json train_summary(const TrainOptions& options, const TrainResult& result,
                                     const DeviceInfo& device);

}  // namespace pointsman
