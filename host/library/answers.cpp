// SPDX-License-Identifier: Apache-2.0
// Answers: of a call, of the caller's own, from files and to files.
#include "engine/problem/problem.h"
#include "host/formats/read_files.h"
#include "host/library/handles.h"
#include "host/run/load.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

static_assert(static_cast<int>(Status::kDone) == POINTSMAN_DONE);
static_assert(static_cast<int>(Status::kTimeLimit) == POINTSMAN_TIME_LIMIT);
static_assert(static_cast<int>(Status::kInterrupted) == POINTSMAN_INTERRUPTED);
static_assert(static_cast<int>(Status::kUnsolved) == POINTSMAN_UNSOLVED);
static_assert(static_cast<int>(Status::kInfeasible) == POINTSMAN_INFEASIBLE);

// As the file of this format has them.
std::string formatted(const AnswerFormat& format, const pointsman_instances* instances,
                      const pointsman_answers* answers) {
  const InstanceBatch& batch = required(instances, "instances")->batch;
  const SolutionBatch& solutions = required(answers, "answers")->solutions;
  require_answers_to(batch, solutions);
  const bool is_own = answers->summary.version.empty();  // of the caller, not of a call
  return format.write({batch, solutions, {}, is_own ? summary_of_given(batch, solutions) : answers->summary});
}

}  // namespace

void require_answers_to(const InstanceBatch& instances, const SolutionBatch& solutions) {
  if (solutions.size() != instances.size()) {
    throw std::invalid_argument("answers: expected " + solutions_wanted(instances) + ", found " +
                                std::to_string(solutions.size()));
  }
  for (size_t i = 0; i < solutions.size(); ++i) {
    if (!has_answer(solutions[i])) continue;
    Solution measured = solutions[i];
    const std::string wrong = validate_solution(instances[i], measured);
    const std::string at = "[" + std::to_string(i) + "]";
    if (!wrong.empty())
      throw std::invalid_argument("answers" + at + ": is none to instances" + at + ": " + wrong);
  }
}

}  // namespace pointsman

using namespace pointsman;

extern "C" {

int pointsman_answer_init(pointsman_answer* answer, size_t size) {
  return give(pointsman_answer{}, answer, size);
}

int pointsman_answers_create(pointsman_solver* solver, pointsman_answers** answers) {
  return call_with(solver, [&] {
    required(answers, "answers");
    *answers = new pointsman_answers;
  });
}

void pointsman_answers_free(pointsman_answers* answers) { delete answers; }

size_t pointsman_answers_count(const pointsman_answers* answers) {
  return answers == nullptr ? 0 : answers->solutions.size();
}

int pointsman_answers_get(const pointsman_answers* answers, size_t index, pointsman_answer* answer) {
  if (index >= pointsman_answers_count(answers) || answer == nullptr) return POINTSMAN_USAGE;
  const Solution& own = answers->solutions[index];
  pointsman_answer view = {};
  view.order = has_answer(own) ? own.order.data() : nullptr;
  view.length = own.order.size();
  view.cost = own.objective;
  view.unrounded = own.unrounded;
  view.weight = own.weight;
  view.log_prob = own.log_prob;
  view.network_cost = own.network_objective;
  view.start = name_of(own.start);
  view.kicks = own.kicks;
  view.bound = own.bound;
  view.status = static_cast<int32_t>(own.status);
  return give(view, answer, answer->size);
}

int pointsman_add_answer(pointsman_solver* solver, pointsman_answers* answers,
                         const pointsman_instances* instances, const int32_t* order, size_t length) {
  return call_with(solver, [&] {
    SolutionBatch& solutions = required(answers, "answers")->solutions;
    const InstanceBatch& batch = required(instances, "instances")->batch;
    const size_t index = solutions.size();
    if (index >= batch.size()) {
      throw std::invalid_argument("answers: expected no more than " + solutions_wanted(batch));
    }
    Solution solution;
    if (length > 0) solution.order.assign(required(order, "order"), order + length);
    const std::string wrong = validate_solution(batch[index], solution);
    if (!wrong.empty()) throw InputError("answers[" + std::to_string(index) + "]", 0, wrong);
    solutions.push_back(without_network(std::move(solution)));
  });
}

int pointsman_read_answers(pointsman_solver* solver, const pointsman_instances* instances, const char* path,
                           pointsman_answers** answers) {
  return call_with(solver, [&] {
    const InstanceBatch& batch = required(instances, "instances")->batch;
    required(answers, "answers");
    required(path, "path");
    *answers = new pointsman_answers{load_solutions(path, batch), {}};
  });
}

int pointsman_parse_answers(pointsman_solver* solver, const pointsman_instances* instances, const void* bytes,
                            size_t size, const char* name, pointsman_answers** answers) {
  return call_with(solver, [&] {
    const InstanceBatch& batch = required(instances, "instances")->batch;
    required(answers, "answers");
    const std::string_view text(static_cast<const char*>(required(bytes, "bytes")), size);
    required(name, "name");
    *answers = new pointsman_answers{measured_answers(parse_solutions(text, name, batch), batch, name), {}};
  });
}

int pointsman_write_answers(pointsman_solver* solver, const pointsman_instances* instances,
                            const pointsman_answers* answers, const char* path, const char* format,
                            int replace) {
  return call_with(solver, [&] {
    const auto& chosen =
        chosen_format(answer_formats(), format, required(path, "path"), &AnswerFormat::write);
    write_output(path, replace != 0, [&] { return formatted(chosen, instances, answers); });
  });
}

int pointsman_format_answers(pointsman_solver* solver, const pointsman_instances* instances,
                             const pointsman_answers* answers, const char* format, const void** bytes,
                             size_t* size) {
  return call_with(solver, [&] {
    required(bytes, "bytes");
    required(size, "size");
    const auto& chosen =
        chosen_format(answer_formats(), required(format, "format"), "", &AnswerFormat::write);
    solver->give_bytes(formatted(chosen, instances, answers), bytes, size);
  });
}
}
