// SPDX-License-Identifier: Apache-2.0
// What `solve` and `eval` share: instances of any sizes, each solved with its model, in input order.
#pragma once

#include <functional>

#include "engine/engine.h"
#include "host/command/model_lookup.h"

namespace pointsman {

// Models used by a run, as the summary names them.
struct ModelsUsed {
  std::string names, sha256;  // comma-separated, in order of first use
  void add(const Model& model);
};

// One engine, its models and what a run has used of them.
struct SolveRun {
  SolveRun(const BackendOptions& backend, const std::string& model, bool untrained);

  // Solves `instances`; rows[i] is the row of instance i in its file or stream. Cuts them where the model
  // changes or the rows do not follow each other. `sink` is called in input order as answers become final.
  void solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows, const SolveOptions& options,
             const SearchControl& control, const SolutionSink& sink);

  Engine engine;
  ModelStore models;
  ModelsUsed used;
  SolveReport report;  // of the last part; solving_ms is the sum of all

 private:
  bool told_of_shuffle_ = false;
};

}  // namespace pointsman
