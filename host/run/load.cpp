// SPDX-License-Identifier: Apache-2.0
#include "host/run/load.h"

#include <utility>

#include "engine/problem/generate.h"
#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "host/formats/read_files.h"
#include "host/formats/write_solutions.h"
#include "host/run/log.h"

namespace pointsman {

InstanceBatch load_instances(const std::string& path, const InstanceOptions& options) {
  InstanceFile file = read_instances(path, read_options(options));
  for (const std::string& warning : file.warnings) log_warning(warning);
  return std::move(file.instances);
}

void require_coordinates(const InstanceBatch& instances, const std::string& path, const std::string& who) {
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].suits_networks()) continue;
    const std::string what = instances[i].beyond_networks();
    throw UsageError(
        who + ": " + path + ": instance " + std::to_string(i) + " has " +
        (what == "only distances" ? "no coordinates, " + what : what + ", which no network reads"));
  }
}

Solution without_network(Solution solution) {
  solution.log_prob = solution.network_objective = kNoNumber;
  return solution;
}

SolutionBatch measured_answers(SolutionBatch solutions, const InstanceBatch& instances,
                               const std::string& file) {
  check_solutions(solutions, instances, file);
  for (Solution& solution : solutions) solution = without_network(std::move(solution));
  return solutions;
}

SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances) {
  return measured_answers(read_solutions(path, instances), instances, path);
}

void check_generate_options(const GenerateOptions& options, uint64_t seed) {
  const ProblemKind problem = *find_problem(options.problem);
  refuse_capacity(problem, options.capacity);
  if (options.n <= problem_of(problem).depots()) throw UsageError("--size: expected a depot and a customer");
  if (is_graph(problem) && options.n > kMostGraphNodes)
    throw UsageError("--size: expected at most " + std::to_string(kMostGraphNodes) + " nodes, found " +
                     std::to_string(options.n));
  if (options.like == "numpy" && !can_be_like_numpy(problem_of(problem).fields))
    throw UsageError("--like numpy: is not for " + std::string(problem_of(problem).title));
  if (options.like == "numpy" && seed > 0xffffffffu) {
    throw UsageError("--like numpy: a seed of NumPy is at most 4294967295");
  }
}

InstanceBatch generate(const GenerateOptions& options, uint64_t seed, const StopToken& stop) {
  const ProblemKind problem = *find_problem(options.problem);
  InstanceBatch instances =
      options.like == "numpy"
          ? generate_like_numpy(problem, options.n, static_cast<uint32_t>(seed), options.count, stop)
          : generate_instances(problem, options.n, seed, 0, options.count, stop);
  if (options.capacity != 0) {
    for (Instance& instance : instances) instance.capacity = options.capacity;
  }
  return instances;
}

}  // namespace pointsman
