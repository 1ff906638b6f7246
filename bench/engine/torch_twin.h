// SPDX-License-Identifier: Apache-2.0
// The PyTorch twin (bench/torch_twin.py) as a child process that answers one JSON command a line, and the
// engine's answers beside its.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/engine/caller.h"
#include "bench/measure.h"

namespace pointsman::bench {

class TorchTwin {
 public:
  // Starts the twin on a model; it inherits the caller's CPU affinity. Throws std::runtime_error when it does
  // not come up.
  TorchTwin(const std::string& python, const std::string& script, const Model& model);
  ~TorchTwin();  // ends it
  TorchTwin(const TorchTwin&) = delete;
  TorchTwin& operator=(const TorchTwin&) = delete;

  // What it runs on: torch version and kernels chosen.
  const nlohmann::json& settings() const { return settings_; }

  // One command, one answer. Throws std::runtime_error when the twin has gone.
  nlohmann::json ask(const nlohmann::json& command);

  // The instances that the next commands are about are the caller's.
  void load(const Caller& caller);

  // Where files that the two exchange lie; gone when the twin is.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  TorchTwin();  // not started: so that the destructor follows one that does not come up
  nlohmann::json read_answer();

  std::filesystem::path folder_;
  FILE* answers_ = nullptr;  // its stdout
  std::ofstream commands_;   // its stdin
  nlohmann::json settings_;
};

// The first of the interpreters that can import torch and numpy: `wanted` alone when it is not empty, else
// python3, then /usr/bin/python3. Empty when none can.
std::string find_torch_python(const std::string& wanted);

// An answer that differs from the one it is compared with: the bench ends with exit code 5.
class CheckFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr double kChoiceBound = 1e-4;   // two cities are equally probable to rounding
inline constexpr double kLogProbBound = 1e-5;  // of log p and critic values, relative from 1 on

struct TwinDifference {
  Worst choice;    // of log p, between a greedy choice and the twin's most probable one
  Worst log_prob;  // of greedy and sampled tours

  bool passes() const { return choice.value <= kChoiceBound && log_prob.value <= kLogProbBound; }
};

// Greedy tours of the first `greedy` instances and `samples` of the first, which the twin has loaded.
TwinDifference compare_tours(Caller& caller, TorchTwin& twin, int greedy, int samples);

// Critic values, where the model has one, and gradients of the loss of a training step with `count` tours.
// Throws CheckFailure.
void check_gradient(Caller& caller, TorchTwin& twin, int count);

}  // namespace pointsman::bench
