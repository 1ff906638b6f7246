// SPDX-License-Identifier: Apache-2.0
// The C++ facade: what the command line and the library bindings are built on. Reads no files and prints
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/generate.h"
#include "engine/problem/instance.h"
#include "engine/problem/validate.h"
#include "engine/search/improve.h"
#include "engine/search/search.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"

namespace pointsman {

enum class Mode { kAuto, kGreedy, kSample, kActive };

struct SolveOptions {
  Mode mode = Mode::kAuto;
  int64_t samples = 0;  // 0: the mode's own (greedy 1 or `augment`; sample and auto 1,280)
  int64_t first_sample = 0;
  int batch_size = 0;  // instances per backend call; 0: chosen
  float temperature = 1.0f;
  float clip = 0.0f;  // 0: the model's
  int augment = 0;    // 1 or 8; 0: the mode's own (TSP: auto 8, active from a model 8; else 1)
  int shuffle = -1;   // 0 or 1; -1: the mode's own (auto: 1, else 0)
  int improve = -1;   // 0 or 1; -1: the mode's own (auto: 1 for TSP, else 0)
  int64_t kicks = 0;  // improvement: double-bridge kicks of the best tour after its first local optimum
  bool stop_at_first_misfit = false;
  int64_t steps = 0;  // active search; 0: 5,000
  int active_batch = 128;
  float learning_rate = 0.0f;  // active search; 0: 1e-3 untrained, the model's own / 100 from a trained one
  double entropy =
      -1.0;  // active search: temperature it anneals from; -1: 0.2 untrained, 0 from a trained model
  bool untrained = false;  // active search: start from fresh parameters instead of the model's
  uint64_t seed = 1234;
  std::function<void(const ActiveSearchProgress&)>
      on_step;  // active search: after each step of each instance
};

// What was really done, for the summary.
struct SolveReport {
  Mode mode = Mode::kAuto;
  int64_t samples = 0;  // per instance
  int augment = 1;
  bool shuffle = false, improve = false;
  double solving_ms = 0.0;
  PolicyStatistics statistics;
};

class Engine {
 public:
  explicit Engine(const BackendOptions& options);
  ~Engine();

  DeviceInfo device() const;
  const std::string& device_note() const;  // why "auto" fell back; empty when it did not
  Backend& backend();

  // Solves instances of one problem with one model. Sizes may differ between instances. `first_row` is the
  // row number of instances[0] in its file or stream: the draws depend on it (or on the instance's id), never
  // on the batch. on_solution, when given, is called in input order as answers become final.
  SolutionBatch solve(const Model& model, const InstanceBatch& instances, uint64_t first_row,
                      const SolveOptions& options, const SearchControl& control, SolveReport& report,
                      const std::function<void(size_t, const Solution&)>& on_solution = {});

  // log p of given solutions under the model, [instances]; NaN where the order is not feasible for the
  // network.
  std::vector<double> score(const Model& model, const InstanceBatch& instances,
                            const SolutionBatch& solutions, float temperature = 1.0f);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pointsman
