// SPDX-License-Identifier: Apache-2.0
// Instances of any sizes, each solved or scored with its model, in input order.
#pragma once

#include <functional>
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

  // Solves `instances`, those of a model together; rows[i] is the row of instance i in its file or stream.
  // A time limit is shared among the models by their work. `sink` is called in input order as answers become
  // final.
  void solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows, const SolveOptions& options,
             const SearchControl& control, const SolutionSink& sink);

  // log p of each solution under its instance's model, as Engine::score() gives it.
  std::vector<double> score(const InstanceBatch& instances, const SolutionBatch& solutions, float temperature,
                            const StopToken& stop);

  Engine engine;
  ModelStore models;
  ModelsUsed used;
  SolveReport report;  // of the last model; solving_ms is the sum of all

 private:
  // Instances of one problem that one model solves.
  struct Group {
    const Model* model = nullptr;  // null: the mode needs none
    std::vector<size_t> places = {};
    double work = 0.0;
  };
  const Model* model_for(const Instance& instance, const SolveOptions& options);
  std::vector<Group> groups_of(const InstanceBatch& instances, const SolveOptions& options);
  void solve_group(const Group& group, const InstanceBatch& instances, const std::vector<uint64_t>& rows,
                   SolveOptions options, const SearchControl& control, const SolutionSink& sink);

  Ranks ranks_;
  RunLog log_;
  bool told_of_shuffle_ = false, told_of_size_ = false;
};

}  // namespace pointsman
