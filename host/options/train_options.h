// SPDX-License-Identifier: Apache-2.0
// The options of a training.
#pragma once

#include <optional>
#include <string>

#include "engine/training/trainer.h"
#include "host/options/option_set.h"

namespace pointsman {

struct TrainRequest {
  TrainRequest() {
    options.model.encoder = Encoder::kAttention;
    options.model.has_prior = options.model.centre_logits = true;
  }

  std::string problem, init, resume, checkpoint, log;
  std::string instances, solutions;     // supervised learning; empty: policy gradient
  double sharpen = 1.0;                 // what the logits of `init` are multiplied with
  std::optional<double> learning_rate;  // kept in double for the model file's metadata
  TrainOptions options;
  // Not declared by add_train_options().
  std::string output;
  bool force = false, asynchronous = false;
};

// The problem is a positional.
void add_train_options(OptionSet& options, TrainRequest& request);

const char* name_of(Baseline baseline);

}  // namespace pointsman
