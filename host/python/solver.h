// SPDX-License-Identifier: Apache-2.0
// Instances, answers and the solver, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/search/limits.h"
#include "host/formats/write_solutions.h"
#include "host/python/arrays.h"
#include "host/python/options.h"
#include "host/run/solve_run.h"

namespace pointsman {

// Nobody changes them, so that answers may keep their instances.
using Instances = std::shared_ptr<const InstanceBatch>;

// As the functions of host/formats/formats.h, of one array or of several.
Instances instances_from_points(const std::vector<AnyArray>& points);
Instances instances_from_matrices(const std::vector<AnyArray>& matrices);
Instances instances_from_items(const std::vector<AnyArray>& weights, const std::vector<AnyArray>& values,
                               const AnyArray& capacity);

// By the path's suffix; as the program, without a clock.
void write_instances(const Instances& instances, const std::string& path, bool force);

struct Answers {
  Instances instances;
  SolutionBatch solutions;
  SolveSummary summary;

  void write(const std::string& path, bool force) const;
};

// Of a file, to these instances.
Answers read_answers(const Instances& instances, const std::string& path);

// A run of the program that answers many calls. One call at a time; others wait, as long as their limit lets
// them.
class Solver {
 public:
  // model: as -m; empty: by problem and size. keywords: of the device.
  Solver(std::string model, const Keywords& keywords);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // first_row: of the first instance, in the run that these are a part of.
  Answers solve(const Instances& instances, const Keywords& keywords, uint64_t first_row);
  // solutions: of the instances, (B, n) or a list of one row each. [instances]
  std::vector<double> score(const Instances& instances, const std::vector<AnyArray>& solutions,
                            float temperature);
  std::string device() const;

 private:
  // While it lives no other call runs. Waiting for the call of another thread throws CallStopped where that
  // is interrupted, UsageError at the deadline and in a handler, for which that call may be waiting.
  class Turn {
   public:
    Turn(Solver& solver, const SearchControl& control, bool in_handler);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Solver& solver_;
  };

  SolveRequest request_of(const Keywords& keywords);
  void require_own_process() const;

  std::string model_;
  std::mutex mutex_;  // of what follows but run_, which is that of the call under way
  std::condition_variable ended_;
  bool is_busy_ = false;
  SolveCalls calls_;
  std::unique_ptr<SolveRun> run_;
  pid_t process_ = getpid();
};

}  // namespace pointsman
