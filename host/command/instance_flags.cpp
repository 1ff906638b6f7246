// SPDX-License-Identifier: Apache-2.0
#include "host/command/instance_flags.h"

#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "host/command/flags.h"
#include "host/command/log.h"
#include "host/formats/formats.h"
#include "host/formats/read_solutions.h"

namespace pointsman {

std::vector<std::string> problem_choices() {
  std::vector<std::string> names;
  for_each_problem([&](ProblemKind kind) { names.emplace_back(name_of(kind)); });
  return names;
}

void add_instance_options(CLI::App& app, InstanceFlags& flags) {
  begin_group(app, "Input");
  std::vector<std::string> formats = of_formats(instance_formats(), &InstanceFormat::name);
  formats.insert(formats.begin(), "auto");
  add_option(app, "--input-format", flags.format, "Format of the input; auto: told by suffix and first bytes",
             one_of(formats));
  add_option(app, "--problem", flags.problem, "What the instances are, where the format does not say (.npy)",
             one_of(problem_choices()));
  add_option(app, "--capacity", flags.capacity,
             "KnapSack: capacity, where the file has none; 0: the file's own", within(0.0, 1e300))
      .check(judged_by([](const std::string& text) {
        double capacity = 0.0;
        return parse_number(text, capacity) ? lost_digits(text, capacity) : "";
      }));
}

void refuse_capacity(ProblemKind problem, double capacity) {
  if (!problem_of(problem).has_capacity && capacity != 0)
    throw UsageError("--capacity: is for knapsack only");
}

ReadOptions read_options(const InstanceFlags& flags) {
  ReadOptions options;
  if (const InstanceFormat* format = format_named(instance_formats(), flags.format))
    options.format = format->kind;
  if (!flags.problem.empty()) options.problem = find_problem(flags.problem);
  if (flags.capacity > 0) options.capacity = flags.capacity;
  return options;
}

InstanceBatch load_instances(const std::string& path, const InstanceFlags& flags) {
  InstanceFile file = read_instances(path, read_options(flags));
  for (const std::string& warning : file.warnings) log_warning(warning);
  return std::move(file.instances);
}

void require_coordinates(const InstanceBatch& instances, const std::string& path, const std::string& who) {
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].has_coordinates()) continue;
    throw UsageError(who + ": " + path + ": instance " + std::to_string(i) +
                     " has no coordinates, only distances");
  }
}

SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances) {
  SolutionBatch solutions = read_solutions(path, instances);
  check_solutions(solutions, instances, path);
  return solutions;
}

}  // namespace pointsman
