// SPDX-License-Identifier: Apache-2.0
// Instances, answers and the solver, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/files/write_solutions.h"
#include "host/python/arrays.h"
#include "host/python/options.h"
#include "host/run/solve_run.h"

namespace pointsman {

// Nobody changes them, so that answers may keep their instances.
using Instances = std::shared_ptr<const InstanceBatch>;

// As the functions of host/files/arrays.h, of one array or of several.
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

// A run of the program that answers many calls. One call at a time; others wait.
class Solver {
 public:
  // model: as -m; empty: by problem and size. arguments: those of parse_common().
  Solver(std::string model, const Arguments& arguments);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  Answers solve(const Instances& instances, const Arguments& arguments);
  // solutions: of the instances, (B, n) or a list of one row each. [instances]
  std::vector<double> score(const Instances& instances, const std::vector<AnyArray>& solutions,
                            float temperature);
  std::string device() const;

 private:
  const SolveRequest& request_of(const Arguments& arguments);
  void require_own_process() const;

  std::string model_;
  std::mutex mutex_;
  std::unique_ptr<SolveRun> run_;
  std::map<Arguments, SolveRequest> requests_;
  pid_t process_ = getpid();
};

}  // namespace pointsman
