// SPDX-License-Identifier: Apache-2.0
// `pointsman verify`: whether solutions are tours or packings, and cost what they claim.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/formats/read_files.h"
#include "host/formats/text_scan.h"
#include "host/formats/write_solutions.h"
#include "host/run/load.h"
#include "host/run/log.h"

namespace pointsman {

namespace {

constexpr const char* kVerifyExamples = R"(Examples:
  pointsman verify berlin52.tsp berlin52.tour
  pointsman verify set.npy tours.npy -q && echo all valid
Ends with 5 when a solution is not one or does not cost what it claims.)";

struct VerifyFlags {
  std::string instances, solutions;
  InstanceOptions input;
};

// Lengths that are no integers may come from a program that sums in another order.
constexpr double kRelativeTolerance = 1e-6;

std::string wrong_claim(const Instance& instance, double claimed, double cost) {
  if (std::isnan(claimed)) return {};
  const bool is_integer = has_integer_distances(instance);
  const double allowed = is_integer ? 1e-6 : kRelativeTolerance * std::max(1.0, std::abs(cost));
  if (std::abs(claimed - cost) <= allowed) return {};
  const auto text = is_integer ? objective_text : short_objective_text;
  return "claims " + text(instance, claimed) + ", found " + text(instance, cost);
}

std::string describe(const Instance& instance, const Solution& solution, const std::string& name,
                     const std::string& wrong) {
  if (!wrong.empty()) return name + ": WRONG: " + wrong + "\n";
  const Problem& problem = problem_of(instance);
  const std::string more = problem.has_packing
                               ? printed(", weight %.10g of %.10g", solution.weight, instance.capacity)
                           : instance.has_coordinates() ? printed(" (Euclidean %.10g)", solution.unrounded)
                                                        : "";
  return name + ": valid " + problem.answer + ", " + problem.measure + " " +
         short_objective_text(instance, solution.objective) + more + "\n";
}

Json row_json(size_t index, const Instance& instance, const Solution& solution, const std::string& wrong) {
  Json row = json_of({{"index", index}, {"id", instance.id}, {"problem", name_of(instance.problem)}});
  row["valid"] = wrong.empty();
  if (!wrong.empty()) row["error"] = wrong;
  const Problem& problem = problem_of(instance);
  row[problem.objective_key] = objective_json(instance, solution.objective);
  if (problem.has_packing) {
    row["weight"] = solution.weight;
  } else if (instance.has_coordinates()) {
    row["cost_euclidean"] = solution.unrounded;
  }
  return row;
}

// Whether the two files can be read in each other's place. A pipe cannot be read again.
bool are_swapped(const VerifyFlags& flags) {
  std::error_code absent;
  for (const std::string& path : {flags.instances, flags.solutions}) {
    if (!std::filesystem::is_regular_file(path, absent)) return false;
  }
  try {
    read_solutions(flags.instances, read_instances(flags.solutions, read_options(flags.input)).instances);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::pair<InstanceBatch, SolutionBatch> load_files(const VerifyFlags& flags) {
  try {
    InstanceBatch instances = load_instances(flags.instances, flags.input);
    SolutionBatch solutions = read_solutions(flags.solutions, instances);
    return {std::move(instances), std::move(solutions)};
  } catch (const InputError&) {
    if (!are_swapped(flags)) throw;
  }
  throw UsageError("verify: expected INSTANCES SOLUTIONS, found solutions in " + flags.instances +
                   " and their instances in " + flags.solutions + "; swap the two");
}

int run_verify(const VerifyFlags& flags, const CommonOptions& common) {
  refuse_inputs(common, {flags.instances, flags.solutions});
  OutputFile file = open_output(common);
  auto [instances, solutions] = load_files(flags);
  Json rows = Json::array();
  std::string text;
  size_t invalid = 0;
  double sum = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const double claimed = solutions[i].objective;
    std::string wrong = validate_solution(instances[i], solutions[i]);
    if (wrong.empty()) wrong = wrong_claim(instances[i], claimed, solutions[i].objective);
    const std::string name = instances[i].id.empty() ? "solution " + std::to_string(i) : instances[i].id;
    if (!wrong.empty()) {
      ++invalid;
      log_error(flags.solutions + ": " + name + ": " + wrong);
    }
    sum += solutions[i].objective;
    rows.push_back(row_json(i, instances[i], solutions[i], wrong));
    text += describe(instances[i], solutions[i], printable(name), wrong);
  }
  const int code = invalid > 0 ? kExitCheck : kExitDone;
  Json summary =
      json_of({{"instances", instances.size()}, {"valid", instances.size() - invalid}, {"invalid", invalid}});
  if (invalid == 0) summary["mean_cost"] = sum / static_cast<double>(instances.size());
  write_answer(file, common, json_of({{"code", code}, {"summary", summary}, {"solutions", rows}}), text);
  return code;
}

}  // namespace

Command verify_command() {
  auto flags = std::make_shared<VerifyFlags>();
  Command command{"verify", "Check solutions and their costs in double precision", kVerifyExamples};
  OptionSet& options = *command.options;
  options.add("INSTANCES", flags->instances, "Instances; - is stdin").required();
  options.add("SOLUTIONS", flags->solutions, "Their solutions: JSON, NDJSON, .tour, .npy or .npz").required();
  add_instance_options(options, flags->input);
  add_common_options(options, *command.common, {"json", "text"});
  command.run = [=](const Command& self, const Words&) { return run_verify(*flags, *self.common); };
  return command;
}

}  // namespace pointsman
