// SPDX-License-Identifier: Apache-2.0
#include "host/python/own.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "host/python/arrays.h"
#include "host/python/call.h"
#include "host/python/options.h"
#include "host/python/solver.h"
#include "host/run/log.h"
#include "host/run/own_problem.h"
#include "models/parameter_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pointsman {

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Orders = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;

// Functions of Python, which return arrays that pointsman.own has checked, as the engine calls them:
//   cost    (items (B, n, F), orders (B, n)) -> (B,) float64
//   draw    (seed, first, count, n) -> (count, n, F) float64; or None
//   before  (n) -> [(a, b), ..]; or None
// What they throw is thrown on, but KeyboardInterrupt only ends the call.
template <typename Found>
Found asked(const std::function<Found()>& call) {
  std::optional<nb::python_error> thrown;
  bool is_interrupted = false;
  Found found;
  run_locked([&] {
    try {
      found = call();
    } catch (nb::python_error& error) {
      is_interrupted = error.matches(PyExc_KeyboardInterrupt);
      if (!is_interrupted) thrown.emplace(std::move(error));
    }
  });
  if (is_interrupted) throw CallStopped();
  if (thrown) throw std::move(*thrown);
  return found;
}

std::vector<double> asked_numbers(const std::function<nb::object()>& call) {
  return asked<std::vector<double>>([&] {
    const auto array = nb::cast<Doubles>(call());
    return std::vector<double>(array.data(), array.data() + array.size());
  });
}

OwnProblem::Cost cost_of(const nb::object& cost, int width) {
  return [cost = cost.ptr(), width](std::vector<double> items, std::vector<int64_t> orders, int64_t count,
                                    int n) {
    return asked_numbers([&] {
      const auto rows = static_cast<size_t>(count), each = static_cast<size_t>(n);
      return nb::borrow(cost)(numpy_array(std::move(items), {rows, each, static_cast<size_t>(width)}),
                              numpy_array(std::move(orders), {rows, each}));
    });
  };
}

OwnProblem::Draw draw_of(const nb::object& draw) {
  if (draw.is_none()) return {};
  return [draw = draw.ptr()](uint64_t seed, uint64_t first, int count, int n) {
    return asked_numbers([&] { return nb::borrow(draw)(seed, first, count, n); });
  };
}

using Pairs = std::vector<std::array<int32_t, 2>>;

std::function<Pairs(int)> before_of(const nb::object& before) {
  if (before.is_none()) return {};
  return [before = before.ptr()](int n) {
    return asked<Pairs>([&] {
      Pairs pairs;
      for (const auto& [a, b] : nb::cast<std::vector<std::pair<int32_t, int32_t>>>(nb::borrow(before)(n)))
        pairs.push_back({a, b});
      return pairs;
    });
  };
}

// Keeps the functions alive. The calls hold plain pointers, since copying a reference needs Python's lock.
struct Definition : OwnDefinition {
  std::vector<nb::object> kept;
};

// work(call, stopped) as run_stoppable(), then what a function of the user's threw.
template <typename Work>
void run_asking(const OwnDefinition& definition, const Work& work) {
  OwnCall call(definition);
  try {
    run_stoppable([&](const std::function<bool()>& stopped) {
      work(call, [&] { return call.stopped() || stopped(); });
    });
  } catch (...) {
    call.rethrow();
    throw;
  }
  call.rethrow();
}

// Instances of (n, F) or (B, n, F) numbers each.
InstanceBatch own_instances(const std::vector<Doubles>& arrays,
                            const std::shared_ptr<const OwnProblem>& problem) {
  InstanceBatch instances;
  for (const Doubles& array : arrays)
    add_own_instances(problem, {array.data(), array.size()}, static_cast<int>(array.shape(array.ndim() - 2)),
                      instances);
  return instances;
}

// One order for each, (B, n) or a list of one row each.
SolutionBatch own_solutions(const std::vector<Orders>& arrays) {
  SolutionBatch solutions;
  for (const Orders& array : arrays) {
    const size_t rows = array.ndim() == 2 ? array.shape(0) : 1, each = array.shape(array.ndim() - 1);
    for (size_t i = 0; i < rows; ++i) {
      Solution& solution = solutions.emplace_back();
      for (size_t k = 0; k < each && array.data()[i * each + k] >= 0; ++k)
        solution.order.push_back(
            static_cast<int32_t>(std::min<int64_t>(array.data()[i * each + k], INT32_MAX)));
    }
  }
  return solutions;
}

// A training by policy gradient. `kept` gets (summary, model) also where the training ends in an exception.
void train_own_by_options(const Definition& definition, const Doubles& sample, const Keywords& keywords,
                          const Model* init, const nb::object& callback, const nb::callable& kept) {
  OwnCall call(definition);
  std::optional<OwnTrained> trained;
  const auto work = [&](const std::function<bool()>& interrupted, const auto& tell) {
    OwnTraining training;
    set_all(training.options, keywords);
    training.init = init;
    training.sample.assign(sample.data(), sample.data() + sample.size());
    training.interrupted = interrupted;
    training.tell = tell;
    training.warn = log_warning;
    trained = train_own(call, training);
  };
  const auto done = [&] {
    TrainResult& result = trained->result;
    nb::dict summary = dict_of(result.last);
    summary["status"] = name_of(result.status);
    summary["training_tours"] = result.config.training_tours;
    summary["callback_seconds"] = trained->callback_seconds;
    kept(summary, Model{result.config, std::move(result.parameters), "", "", true});
    call.rethrow();
  };
  try {
    run_training(callback, work, done);
  } catch (...) {
    call.rethrow();
    throw;
  }
}

// What solve() found, and what it took.
struct OwnAnswers {
  SolutionBatch solutions;
  double solving_ms = 0.0, callback_seconds = 0.0;
};

OwnAnswers solve_own_by_options(const Definition& definition, const Model& model,
                                const std::vector<Doubles>& items, const Keywords& keywords,
                                const Keywords& device, std::optional<int64_t> kicks) {
  const Clock::time_point start = Clock::now();
  OwnAnswers answers;
  run_asking(definition, [&](OwnCall& call, const std::function<bool()>& stopped) {
    const auto problem = call.problem(model.config.own);
    SolveCalls calls;
    const SolveRequest request = solve_request(calls, keywords);
    const InstanceBatch instances = own_instances(items, problem);
    SolveJob job(instances, 0, request.options, within_limits(start, request.time_limit, request.limit_each));
    job.control.interrupted = stopped;
    job.control.report.warn = log_warning;
    Engine engine(device_request(device));
    answers.solutions = solve_own(call, engine, model, instances, std::move(job), kicks);
    const auto is_unsolved = [](const Solution& solution) { return solution.status == Status::kUnsolved; };
    if (call.stopped() && std::ranges::any_of(answers.solutions, is_unsolved)) throw CallStopped();
    answers.callback_seconds = problem->seconds();
  });
  answers.solving_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return answers;
}

// Checked orders of the instances and what they cost, [instances].
nb::object costs_of(const Definition& definition, const std::vector<Doubles>& items,
                    const std::vector<Orders>& orders) {
  std::vector<double> costs;
  run_asking(definition, [&](OwnCall& call, const std::function<bool()>& stopped) {
    costs = own_costs(call, own_instances(items, call.problem()), own_solutions(orders), StopToken(stopped));
  });
  return numpy_array(std::move(costs));
}

nb::object score_own(const Definition& definition, const Model& model, const std::vector<Doubles>& items,
                     const std::vector<Orders>& orders, float temperature) {
  std::vector<double> scores;
  run_asking(definition, [&](OwnCall& call, const std::function<bool()>& stopped) {
    BackendOptions device;
    device.device = "cpu";
    const InstanceBatch instances = own_instances(items, call.problem(model.config.own));
    scores = Engine(device).score(model, instances, own_solutions(orders), temperature, StopToken(stopped));
  });
  return numpy_array(std::move(scores));
}

template <typename Number>
nb::object column_of(const OwnAnswers& answers, Number Solution::*member) {
  std::vector<Number> numbers;
  for (const Solution& solution : answers.solutions) numbers.push_back(solution.*member);
  return numpy_array(std::move(numbers));
}

void bind_answers(nb::module_& module) {
  nb::class_<OwnAnswers>(module, "OwnAnswers")
      .def("orders",
           [](const OwnAnswers& answers) {
             nb::list orders;
             for (const Solution& solution : answers.solutions) orders.append(numpy_array(solution.order));
             return orders;
           })
      .def_prop_ro("costs", [](const OwnAnswers& all) { return column_of(all, &Solution::objective); })
      .def_prop_ro("log_prob", [](const OwnAnswers& all) { return column_of(all, &Solution::log_prob); })
      .def_prop_ro("network_costs",
                   [](const OwnAnswers& all) { return column_of(all, &Solution::network_objective); })
      .def_prop_ro("status",
                   [](const OwnAnswers& answers) {
                     nb::list names;
                     for (const Solution& solution : answers.solutions)
                       names.append(name_of(solution.status));
                     return names;
                   })
      .def_ro("solving_ms", &OwnAnswers::solving_ms)
      .def_ro("callback_seconds", &OwnAnswers::callback_seconds);
}

void bind_models(nb::module_& module) {
  nb::class_<Model>(module, "OwnModel")
      .def_prop_ro("n", [](const Model& model) { return model.config.n; })
      .def_prop_ro("training_tours", [](const Model& model) { return model.config.training_tours; })
      .def_prop_ro("scaling",
                   [](const Model& model) {
                     const OwnScaling& own = model.config.own;
                     return nb::make_tuple(own.offsets, own.scales, own.cost_unit);
                   })
      .def("save", [](const Model& model, const std::string& path, bool force) {
        write_file(path, force, model_bytes(model.config, model.parameters, path));
      });
  module.def("read_own_model", read_own_model);
}

}  // namespace

void bind_own(nb::module_& module) {
  bind_answers(module);
  bind_models(module);
  module.def("own_train_options", [] {
    const std::span<const char* const> names = own_train_options();
    return std::vector<std::string>(names.begin(), names.end());
  });
  module.attr("MOST_OWN_NUMBERS") = kMostOwnFeatures;
  module.attr("SCALING_INSTANCES") = kScalingInstances;
  nb::class_<Definition>(module, "OwnProblem")
      .def(
          "__init__",
          [](Definition* made, int width, nb::object cost, nb::object draw, nb::object before,
             std::optional<int> first, std::optional<int> last, int weight, double capacity, bool maximise) {
            OwnDeclarations declarations{maximise, first, last, weight, capacity, before_of(before)};
            new (made) Definition{{width, std::move(declarations), cost_of(cost, width), draw_of(draw)},
                                  {std::move(cost), std::move(draw), std::move(before)}};
          },
          "width"_a, "cost"_a, "draw"_a.none(), "before"_a.none(), "first"_a.none(), "last"_a.none(),
          "weight"_a, "capacity"_a, "maximise"_a)
      .def("train", train_own_by_options, "sample"_a, "keywords"_a, "init"_a.none(), "callback"_a.none(),
           "kept"_a)
      .def("solve", solve_own_by_options, "model"_a, "items"_a, "keywords"_a, "device"_a, "kicks"_a.none())
      .def("costs", costs_of)
      .def("score", score_own);
}

}  // namespace pointsman
