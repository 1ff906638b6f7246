// SPDX-License-Identifier: Apache-2.0
// The flags of `pointsman train`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "host/command/options.h"

namespace CLI {
class App;
}

namespace pointsman {

struct TrainFlags {
  std::string problem, baseline = "shared", centre_logits = "on", encoder = "attention", prior = "on", init,
                       resume, checkpoint, log;
  std::string instances, solutions;  // supervised learning; empty: policy gradient
  bool asynchronous = false;
  std::optional<double> learning_rate;  // kept in double for the model file's metadata
  TrainOptions options;
};

void add_train_flags(CLI::App& app, TrainFlags& flags);

// Turns the flags into `flags.options` and reads the files that they name; gives the parameters to start
// from. Throws UsageError for combinations that mean nothing and for output files that could not be written.
std::vector<float> finish_train_flags(TrainFlags& flags, const CLI::App& app, CommonOptions& common);

// Of the answer.
nlohmann::ordered_json train_summary(const TrainOptions& options, const TrainResult& result,
                                     const DeviceInfo& device);

}  // namespace pointsman
