// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/local_search.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "engine/search/heuristics.h"
#include "engine/search/local/colour_search.h"
#include "engine/search/local/route_search.h"
#include "engine/search/local/timed_search.h"
#include "engine/search/local/tour_search.h"

namespace pointsman {

std::unique_ptr<LocalSearch> make_local_search(const Instance& instance, const ImproveOptions& options,
                                               const SearchControl& control) {
  const Problem& problem = problem_of(instance);
  require_problem(problem.has_local_search, instance, "local search");
  if (problem.has_depot) return std::make_unique<RouteSearch>(instance, options, control);
  if (problem.has_first) return std::make_unique<TimedSearch>(instance, options);
  if (problem.has_labels) return std::make_unique<ColourSearch>(instance, options);
  return std::make_unique<TourSearch>(instance, options, control);
}

int64_t default_kicks(const Problem& problem, int n) {
  if (problem.has_first) return int64_t{TimedSearch::kKicksPerPlace} * n;
  if (problem.has_depot) return int64_t{RouteSearch::kKicksPerCustomer} * (n - 1);
  if (problem.has_labels) return int64_t{ColourSearch::kKicksPerNode} * n;
  return int64_t{is_open(problem.kind) ? TourSearch::kKicksPerCityOfPath : TourSearch::kKicksPerCity} * n;
}

int64_t kicks_of(const Instance& instance, const ImproveOptions& options, const SearchControl& control) {
  if (options.kicks) return *options.kicks;
  return control.deadline && options.fills_limit ? std::numeric_limits<int64_t>::max()
                                                 : default_kicks(problem_of(instance), instance.n());
}

bool divides(const Problem& problem, int n) {
  return problem.depots() == 0 && !problem.has_labels && TourSearch::divides(n);
}

void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control) {
  if (!problem_of(instance).has_local_search) return;
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty() && solution.violation <= 0.0) throw std::invalid_argument("improve_solution: " + wrong);
  try {
    make_local_search(instance, options, control)->improve(solution, control);
  } catch (const CallStopped&) {  // the solution stays what it was
  }
}

Solution local_search(const Instance& instance, const ImproveOptions& options, const SearchControl& control,
                      WorkerThreads* workers) {
  try {
    const auto search = make_local_search(instance, options, control);
    Solution solution = search->start(control);
    if (control.report.on_best && solution.violation == 0) control.report.on_best(solution.objective);
    if (!search->improve(solution, control, workers)) solution.status = control.check();
    return solution;
  } catch (const CallStopped&) {
    return quick_answer(instance, control.check());
  }
}

}  // namespace pointsman
