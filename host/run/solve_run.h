// SPDX-License-Identifier: Apache-2.0
// Instances of any sizes, each solved or scored with its model, in input order.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "host/run/model_lookup.h"
#include "host/run/ranks.h"

namespace pointsman {

// Models used by a run, as the summary names them.
struct ModelsUsed {
  std::string names, sha256;  // comma-separated, in order of first use
  void add(const Model& model);
};

// One engine, its models and what a run has used of them.
struct SolveRun {
  // Tells why `auto` fell back to another device. ranks: who shares the work; it must outlive the run.
  SolveRun(const BackendOptions& backend, const std::string& model, bool untrained, RunLog log,
           Communicator& ranks = one_process());

  // Solves instances of any problems and sizes, those of a model together. A time limit is shared among the
  // models by their work.
  void solve(const SolveJob& job);

  // log p of each solution under its instance's model, as Engine::score() gives it.
  std::vector<double> score(const InstanceBatch& instances, const SolutionBatch& solutions, float temperature,
                            const StopToken& stop);

  // What solves instances of this problem and size; null where the options ask no network for anything, or
  // none suits instances that can do without.
  const Model* model_for(ProblemKind problem, int n, const SolveOptions& options);

  Engine engine;
  ModelStore models;
  ModelsUsed used;
  SolveReport report;  // of all since it was reset, solving_ms is the sum

 private:
  // Instances of one problem that one model solves.
  struct Group {
    const Model* model = nullptr;  // null: the mode needs none
    std::vector<size_t> places = {};
    double work = 0.0;
  };
  std::vector<Group> groups_of(const SolveJob& job);

  Ranks ranks_;
  RunLog log_;
  // Warns, once, of a tour whose length is that of its rounded distances rather than its own.
  void tell_of_rounding(const Instance& instance, const Solution& solution);

  bool told_of_shuffle_ = false, told_of_size_ = false, told_of_rounding_ = false;
};

}  // namespace pointsman
