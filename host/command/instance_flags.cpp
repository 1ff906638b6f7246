// SPDX-License-Identifier: Apache-2.0
#include "host/command/instance_flags.h"

#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "host/command/flags.h"
#include "host/command/log.h"
#include "host/files/read_solutions.h"

namespace pointsman {

std::vector<std::string> problem_choices() {
  std::vector<std::string> names;
  for_each_problem([&](ProblemKind kind) { names.emplace_back(name_of(kind)); });
  return names;
}

void add_instance_options(CLI::App& app, InstanceFlags& flags) {
  const std::string group = "Input";
  add_option(app, "--input-format", flags.format, "Format of the input; auto: told by suffix and first bytes")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "tsplib", "npy", "npz", "json", "ndjson", "kp"}))
      ->group(group);
  add_option(app, "--problem", flags.problem, "What the instances are, where the format does not say (.npy)")
      ->check(CLI::IsMember(problem_choices()))
      ->group(group);
  add_option(app, "--capacity", flags.capacity,
             "KnapSack: capacity, where the file has none; 0: the file's own")
      ->check(CLI::Range(0.0, 1e300))
      ->group(group);
}

void refuse_capacity(ProblemKind problem, double capacity) {
  if (!problem_of(problem).has_capacity && capacity != 0)
    throw UsageError("--capacity: is for knapsack only");
}

ReadOptions read_options(const InstanceFlags& flags) {
  ReadOptions options;
  options.format = parse_input_format(flags.format).value_or(InputFormat::kAuto);
  if (!flags.problem.empty()) options.problem = find_problem(flags.problem);
  if (flags.capacity > 0) options.capacity = flags.capacity;
  return options;
}

InstanceBatch load_instances(const std::string& path, const InstanceFlags& flags) {
  InstanceFile file = read_instances(path, read_options(flags));
  for (const std::string& warning : file.warnings) log_warning("%s", warning.c_str());
  return std::move(file.instances);
}

SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances) {
  SolutionBatch solutions = read_solutions(path, instances);
  for (size_t i = 0; i < solutions.size(); ++i) {
    const std::string wrong = validate_solution(instances[i], solutions[i]);
    if (!wrong.empty()) throw InputError(path, 0, "solution " + std::to_string(i) + ": " + wrong);
  }
  return solutions;
}

}  // namespace pointsman
