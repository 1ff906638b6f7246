// SPDX-License-Identifier: Apache-2.0
// A run on several ranks. Rank 0 reads, hands instances out in small pieces to whichever rank is free, works
// on pieces itself, and has the answers in the input's order; the others serve it. Answers depend on neither
// pieces nor ranks.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/cluster/communicator.h"
#include "engine/engine.h"

namespace pointsman {

// As one of several ranks on a machine computes: CPU threads that were not named are its share of the
// machine's, unless the launcher bound it to some already; of several CUDA devices it takes one of its own.
BackendOptions options_of_rank(BackendOptions options, const Communicator& ranks);

// What rank 0 has of the other ranks, while they are in serve_rank(). With one rank all of it is the engine's
// own call.
class Ranks {
 public:
  // options: of every rank's engine, before options_of_rank(). ranks must outlive it.
  Ranks(Communicator& ranks, const BackendOptions& options) : ranks_(ranks), options_(options) {}

  // As Engine::solve() and Engine::score() of `own`, this rank's engine; the same answers. One instance alone
  // is solved here, by active search on CPUs with the processors of all ranks; a stop then waits for the call
  // under way (half a step). Steps of active search are reported for those that are solved here. The job's
  // sink may be called by a thread of its own, one at a time. What another rank throws ends the run there.
  // Models must stay as they are and outlive this.
  SolveReport solve(Engine& own, const Model* model, const SolveJob& job);
  std::vector<double> score(Engine& own, const Model& model, std::span<const Instance> instances,
                            std::span<const Solution> solutions, float temperature, const StopToken& stop);

 private:
  bool is_alone(size_t instances) const { return ranks_.size() == 1 || instances < 2; }
  // The number that the others know the model by, -1 for null; tells them first where they don't.
  int32_t number_of(const Model* model);

  Communicator& ranks_;
  BackendOptions options_;
  bool is_open_ = false;                   // do the others have their engines?
  std::map<const Model*, int32_t> known_;  // that the others have
};

// What every other rank does until rank 0 says kEnd. interrupted: whether a signal came. Throws what a call
// throws: then the run cannot go on.
void serve_rank(Communicator& ranks, const std::function<bool()>& interrupted);

// Rank 0's place in a training of all ranks, until it is destroyed.
struct RankedTraining {
  Engine engine;
  SharedSteps* shared = nullptr;  // of `engine`; null: it makes all steps
};

// An engine whose backend is what all ranks compute on: their CPUs, or a CUDA device each. options.learned
// names the problem. With `asynchronous`, of several ranks, it is rank 0's own, and the others train by the
// same options. Throws DeviceError where a rank has not the device that was asked for.
RankedTraining ranked_training(Communicator& ranks, const BackendOptions& options,
                               const TrainOptions* asynchronous = nullptr);

// Rank 0, after the last call: the others return from serve_rank().
void end_ranks(Communicator& ranks);

}  // namespace pointsman
