// SPDX-License-Identifier: Apache-2.0
// The options of a solve, and which of them mean something together.
#pragma once

#include <string>

#include "engine/engine.h"
#include "host/options/option_set.h"

namespace pointsman {

struct SolveRequest {
  SolveOptions options;
  std::string model;                      // a file or a name; empty: by problem and size
  std::string init;                       // "random", or a file of solutions to start from
  double time_limit = 0, limit_each = 0;  // seconds, of the call and of an instance; 0: none
};

// All but the seed and the time limit (call_options.h), which every subcommand of the program has.
void add_solve_options(OptionSet& options, SolveRequest& request);
// Of a policy from which samples are drawn or whose log p is asked.
void add_temperature(OptionSet& options, float& temperature);
// Those of the engine alone, which messages between ranks carry.
void add_engine_options(OptionSet& options, SolveOptions& solve);

// After they are set: what some say of others. Throws UsageError for combinations that mean nothing.
void finish_solve_options(const OptionSet& options, SolveRequest& request);

// The requests of a library's solver, one after the other: the table is made once, not for each call.
class SolveCalls {
 public:
  SolveCalls();

  // The options of the next call, at their defaults, with the seed and the time limit.
  OptionSet& begin();
  const SolveRequest& request() const { return request_; }
  const SolveRequest& finish() {
    finish_solve_options(options_, request_);
    return request_;
  }

 private:
  SolveRequest request_;
  OptionSet options_;
};

// Why these options cannot solve this instance; empty: they can.
std::string wrong_options(const SolveOptions& options, const Instance& instance);

// What is wrong where a network cannot read so many items, as its rules read numbers of each pair; empty:
// nothing.
std::string too_many_pairs(const Instance& instance);

// Throws UsageError where they cannot solve one of these.
void check_instances(const SolveOptions& options, const InstancePointers& instances);

// Whether the mode improves tours without being told.
bool improves(const SolveOptions& options);

}  // namespace pointsman
