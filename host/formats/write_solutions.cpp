// SPDX-License-Identifier: Apache-2.0
// Solutions as a table, and their costs as text.
#include "host/formats/write_solutions.h"

#include <cmath>

#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr const char* kRowFormat = "%6s  %-20.40s %6s %16s %16s %9s  %s\n";

std::string short_number(double value) { return printed("%.10g", value); }

std::string number_or_dash(double value) { return std::isfinite(value) ? short_number(value) : "-"; }

std::string percent(double gap) { return std::isfinite(gap) ? printed("%.3g%%", 100.0 * gap) : "-"; }

std::string mean_and_gap(double mean, double gap) {
  return (std::isfinite(mean) ? ", mean " + short_number(mean) : "") +
         (std::isfinite(gap) ? ", gap " + percent(gap) : "");
}

std::string model_text(const std::string& model) {
  return model.empty() ? "" : ", model " + printable(model);
}

}  // namespace

std::optional<int64_t> integer_objective(const Instance& instance, double objective) {
  constexpr double kEnd = 0x1p63;
  const bool fits = std::abs(objective) < kEnd && objective == std::floor(objective);
  if (!fits || !has_integer_distances(instance)) return std::nullopt;
  return static_cast<int64_t>(objective);
}

std::string objective_text(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? std::to_string(*integer) : number_text(objective);
}

std::string short_objective_text(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? std::to_string(*integer) : printed("%.10g", objective);
}

std::string summary_text(const SolveSummary& s) {
  return std::to_string(s.instances - s.unsolved - s.infeasible) + " solved" +
         (s.unsolved > 0 ? ", " + std::to_string(s.unsolved) + " not" : "") +
         (s.infeasible > 0 ? ", " + std::to_string(s.infeasible) + " infeasible" : "") +
         mean_and_gap(s.mean_cost, s.gap) +
         (std::isfinite(s.mean_network_cost) ? ", the network alone " + short_number(s.mean_network_cost)
                                             : "") +
         ", mode " + s.mode +
         (s.samples.value_or(1) > 1 ? ", " + std::to_string(*s.samples) + " samples" : "") +
         (s.augment.value_or(1) > 1 ? ", augment " + std::to_string(*s.augment) : "") +
         (s.shuffle ? ", shuffle" : "") + (s.improve ? ", improve" : "") +
         (s.kicks > 0 ? ", " + std::to_string(s.kicks) + " kicks" : "") + model_text(s.model) + ", seed " +
         std::to_string(s.seed);
}

std::string group_text(const SummaryGroup& group) {
  return (group.n > 0 ? group.problem + " n=" + std::to_string(group.n) : "others") + ": " +
         std::to_string(group.instances) + (group.instances == 1 ? " instance" : " instances") +
         mean_and_gap(group.mean_cost, group.gap) + model_text(group.model);
}

std::string write_text_answers(const Answer& answer) {
  std::string out =
      printed(kRowFormat, "index", "id", "n", "cost or value", "float or weight", "gap", "status");
  for (size_t i = 0; i < answer.solutions.size(); ++i) {
    const Instance& instance = answer.instances[i];
    const Solution& solution = answer.solutions[i];
    out += printed(
        kRowFormat, std::to_string(i).c_str(), instance.id.empty() ? "-" : printable(instance.id).c_str(),
        std::to_string(instance.n()).c_str(),
        (std::isfinite(solution.objective) ? short_objective_text(instance, solution.objective) : "-")
            .c_str(),
        number_or_dash(problem_of(instance).has_packing ? solution.weight
                       : instance.has_coordinates()     ? solution.unrounded
                                                        : kNoNumber)
            .c_str(),
        percent(answer.gap(i)).c_str(), name_of(solution.status));
  }
  out += summary_text(answer.summary) + "\n";
  const std::vector<SummaryGroup>& groups = answer.summary.groups;
  for (size_t i = 0; i < groups.size() && groups.size() > 1; ++i) out += group_text(groups[i]) + "\n";
  return out;
}

}  // namespace pointsman
