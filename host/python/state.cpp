// SPDX-License-Identifier: Apache-2.0
#include "host/python/state.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <tuple>
#include <typeinfo>

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "host/python/arrays.h"

namespace nb = nanobind;

namespace pointsman {

namespace {

constexpr const char* kName = "pickle";  // in messages

// What NDJSON leaves out of an instance.
constexpr std::tuple kOfInstance{&Instance::id, &Instance::first_id, &Instance::first_city,
                                 &Instance::is_metric_chosen};

// The members in a state. Those of a solution come after its status, its start and its order, those of the
// summary after its groups.
constexpr std::tuple kOfSolution{&Solution::objective, &Solution::violation, &Solution::unrounded,
                                 &Solution::weight,    &Solution::log_prob,  &Solution::network_objective,
                                 &Solution::kicks,     &Solution::bound,     &Solution::redrawn};
constexpr std::tuple kOfSummary{
    &SolveSummary::code,       &SolveSummary::instances,  &SolveSummary::unsolved,
    &SolveSummary::infeasible, &SolveSummary::mean_cost,  &SolveSummary::mean_network_cost,
    &SolveSummary::gap,        &SolveSummary::loading_ms, &SolveSummary::solving_ms,
    &SolveSummary::mode,       &SolveSummary::start,      &SolveSummary::kicks,
    &SolveSummary::samples,    &SolveSummary::augment,    &SolveSummary::shuffle,
    &SolveSummary::improve,    &SolveSummary::model,      &SolveSummary::model_sha256,
    &SolveSummary::device,     &SolveSummary::seed,       &SolveSummary::version};
constexpr std::tuple kOfGroup{&SummaryGroup::problem, &SummaryGroup::n,         &SummaryGroup::mode,
                              &SummaryGroup::model,   &SummaryGroup::instances, &SummaryGroup::mean_cost,
                              &SummaryGroup::gap};

[[noreturn]] void fail() {
  throw InputError(kName, 0, "expected a Result of pointsman " POINTSMAN_VERSION ", found another state");
}

template <typename Object, typename... Members, typename... First>
nb::tuple with_members(const Object& object, const std::tuple<Members Object::*...>& members,
                       const First&... first) {
  return std::apply([&](auto... member) { return nb::make_tuple(first..., object.*member...); }, members);
}

// Sets them to what stands in the state from `next` on.
template <typename Object, typename... Members>
void set_members(Object& object, const std::tuple<Members Object::*...>& members, const nb::tuple& state,
                 size_t next) {
  if (state.size() != next + sizeof...(Members)) fail();
  std::apply([&](auto... member) { ((object.*member = nb::cast<Members>(state[next++])), ...); }, members);
}

// The value with this name, up to the last one.
template <typename Named>
Named named(const std::string& name, Named last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name == name_of(static_cast<Named>(i))) return static_cast<Named>(i);
  }
  fail();
}

Solution solution_of_state(const nb::tuple& state, const Instance& instance) {
  Solution solution;
  set_members(solution, kOfSolution, state, 3);
  solution.status = named(nb::cast<std::string>(state[0]), Status::kInfeasible);
  solution.start = named(nb::cast<std::string>(state[1]), Start::kDsatur);
  const auto order =
      nb::cast<nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(state[2]);
  solution.order.assign(order.data(), order.data() + order.size());
  // What is asked of a result finds room for so many, and items of these numbers.
  if (order.size() > static_cast<size_t>(longest_order(instance))) fail();
  for (const int32_t item : solution.order) {
    if (item < 0 || item >= instance.n()) fail();
  }
  return solution;
}

SolveSummary summary_of_state(const nb::tuple& state) {
  SolveSummary summary;
  set_members(summary, kOfSummary, state, 1);
  for (const nb::handle group : nb::cast<nb::list>(state[0]))
    set_members(summary.groups.emplace_back(), kOfGroup, nb::cast<nb::tuple>(group), 0);
  return summary;
}

}  // namespace

nb::tuple state_of(const Instances& instances) {
  const std::string lines = write_ndjson(instances.all());
  nb::list members;
  for (const Instance& instance : instances.all()) members.append(with_members(instance, kOfInstance));
  return nb::make_tuple(nb::bytes(lines.data(), lines.size()), members);
}

Instances instances_of_lines(const nb::bytes& lines, const std::string& name) {
  InstanceBatch all;
  std::string warning;  // was told when they were made
  LineScanner scanner(std::string_view(lines.c_str(), lines.size()));
  for (std::string_view line; scanner.next_filled(line);)
    all.push_back(parse_json_instance(line, name, scanner.number(), {}, warning));
  if (all.empty()) throw InputError(name, 0, "expected at least one instance, found none");
  return Instances(std::move(all));
}

Instances instances_of_state(const nb::bytes& lines, const nb::list& members) {
  InstanceBatch all = instances_of_lines(lines, kName).all();
  if (members.size() != all.size()) fail();
  for (size_t i = 0; i < all.size(); ++i) {
    const nb::tuple state = nb::cast<nb::tuple>(members[i]);
    set_members(all[i], kOfInstance, state, 0);
    if (all[i].first_city < -1 || all[i].first_city >= all[i].n()) fail();
  }
  return Instances(std::move(all));
}

nb::tuple state_of(const Answers& answers) {
  nb::list solutions, groups;
  for (const Solution& solution : answers.solutions) {
    solutions.append(with_members(solution, kOfSolution, name_of(solution.status), name_of(solution.start),
                                  numpy_array(solution.order)));
  }
  for (const SummaryGroup& group : answers.summary.groups) groups.append(with_members(group, kOfGroup));
  return nb::make_tuple(solutions, with_members(answers.summary, kOfSummary, groups));
}

Answers answers_of_state(const Instances& instances, const nb::list& solutions, const nb::tuple& summary) {
  Answers answers{instances, {}, {}};
  if (solutions.size() != instances.all().size()) fail();
  try {
    for (const Instance& instance : instances.all())
      answers.solutions.push_back(
          solution_of_state(nb::cast<nb::tuple>(solutions[answers.solutions.size()]), instance));
    answers.summary = summary_of_state(summary);
  } catch (const std::bad_cast&) {
    fail();
  }
  return answers;
}

}  // namespace pointsman
