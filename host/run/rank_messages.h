// SPDX-License-Identifier: Apache-2.0
// What rank 0 asks of another rank, and what it is answered. put() returns `message`.
#pragma once

#include "engine/cluster/message.h"
#include "engine/engine.h"

namespace pointsman {

// What a message to another rank begins with.
enum class RankCall : int32_t {
  kEngine,  // BackendOptions: of all that follows
  kModel,   // a model; the first is number 0
  kSolve,   // number of a model or -1, options, limits, rows, instances; answered with report and solutions
  kScore,   // number of a model, temperature, instances, solutions; answered with log p of each
  kCudaDevice,  // answered with the identity of the one it would take, and why there is none
  kBackend,  // BackendOptions; then the calls of a cluster backend (engine/backend/ranks/cluster_backend.h)
  kTrainAlone,  // BackendOptions, a checkpoint of the options; then an asynchronous backend's messages
  kEnd
};

MessageWriter& put(MessageWriter& message, const BackendOptions& options);
MessageWriter& put(MessageWriter& message, const Model& model);
// Without on_step.
MessageWriter& put(MessageWriter& message, const SolveOptions& options);
// Its limits, as seconds from now: ranks have clocks of their own.
MessageWriter& put(MessageWriter& message, const SearchControl& control);
MessageWriter& put(MessageWriter& message, const Instance& instance);
MessageWriter& put(MessageWriter& message, const Solution& solution);

BackendOptions take_backend_options(MessageReader& message);
Model take_model(MessageReader& message);
SolveOptions take_solve_options(MessageReader& message);
SearchControl take_limits(MessageReader& message);
Instance take_instance(MessageReader& message);
Solution take_solution(MessageReader& message);

}  // namespace pointsman
