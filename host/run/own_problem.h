// SPDX-License-Identifier: Apache-2.0
// A user's own problem, as the library and the Python package call it: what it is made of, and the calls of
// the engine that ask its functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "host/options/train_options.h"

namespace pointsman {

inline constexpr int kScalingInstances = 256;  // that a scaling is taken from

// The functions may throw; CallStopped only ends the call.
struct OwnDefinition {
  int width = 0;  // F, numbers an item
  OwnDeclarations declarations;
  OwnProblem::Cost cost;  // in the user's sense: with `maximise` more is better
  OwnProblem::Draw draw;  // null: no instances to train on
};

// The user's functions in one call of the engine. What one of them throws ends the call, as a stop does, and
// is kept. The definition must outlive it.
class OwnCall {
 public:
  explicit OwnCall(const OwnDefinition& definition) : definition_(definition) {}
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

  // The call must outlive it.
  std::shared_ptr<const OwnProblem> problem(OwnScaling scaling);
  // For calls in which no network reads the items.
  std::shared_ptr<const OwnProblem> problem();
  double sign() const { return definition_.declarations.maximise ? -1.0 : 1.0; }

  bool stopped() const { return stopped_; }
  // What a function threw, which is the reason of any other end; once.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  template <typename Call>
  auto ask(const Call& call);

  const OwnDefinition& definition_;
  std::atomic<bool> stopped_ = false;
  std::exception_ptr thrown_;
};

// Appends instances of n items each. items: [count][n][F].
void add_own_instances(const std::shared_ptr<const OwnProblem>& problem, std::span<const double> items, int n,
                       InstanceBatch& instances);

// Of the options of `pointsman train` those that a training of an own problem has beside the size, as the
// libraries name them.
std::span<const char* const> own_train_options();

// A training by policy gradient, and its options at their defaults.
struct OwnTraining {
  OwnTraining();

  TrainRequest request;
  BackendOptions device;
  double time_limit = 0;  // seconds; 0: none
  // How long, by which the number of steps is chosen; none: as many as the request says.
  std::optional<double> minutes;
  OptionSet options;            // of the members above
  const Model* init = nullptr;  // to start from
  std::vector<double> sample;   // [count][n][F] instances that the scaling is taken from
  // May be empty: whether to end it, which several threads may ask at once, and who is told each line of the
  // log, and what went wrong and is tried again.
  std::function<bool()> interrupted;
  std::function<void(const TrainProgress&)> tell;
  std::function<void(const std::string&)> warn;
};

struct OwnTrained {
  TrainResult result;
  double callback_seconds = 0.0;  // that the user's functions took
};

// Trains on instances that the definition draws, of as many items as the option `size` says. What no option
// says follows the course of docs/own-problems.md. A stop, also by a function of the user's, ends it with
// the parameters up to then; before the first step it may throw CallStopped.
OwnTrained train_own(OwnCall& call, OwnTraining& training);

// The best order of each instance, with costs in the user's sense. The job is of these instances; its sink is
// told of each answer that is final, and given none. kicks: of the local search that follows; none: no such
// search. Where a function of the user's stops it, instances may be left unsolved.
SolutionBatch solve_own(OwnCall& call, Engine& engine, const Model& model, const InstanceBatch& instances,
                        SolveJob job, std::optional<int64_t> kicks);

// What the orders cost, in the user's sense. Throws std::invalid_argument for one that is not as declared.
std::vector<double> own_costs(OwnCall& call, const InstanceBatch& instances, const SolutionBatch& orders,
                              const StopToken& stop);

// Throws InputError where the file holds no model of an own problem.
Model read_own_model(const std::string& path);

}  // namespace pointsman
