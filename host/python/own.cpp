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
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/problem/generate.h"
#include "engine/search/local/order_search.h"
#include "host/python/arrays.h"
#include "host/python/call.h"
#include "host/python/options.h"
#include "host/python/solver.h"
#include "host/run/log.h"
#include "host/run/train_setup.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pointsman {

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Orders = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;

// What a problem is made of. The functions return arrays that pointsman.own has checked.
struct Definition {
  int width = 0;
  OwnDeclarations declarations;
  nb::object cost;    // (items (B, n, F), orders (B, n)) -> (B,) float64
  nb::object draw;    // (seed, first, count, n) -> (count, n, F) float64; or None
  nb::object before;  // (n) -> [(a, b), ..]; or None
};

// Where no network reads the items.
OwnScaling plain_scaling(const Definition& definition) {
  const auto width = static_cast<size_t>(definition.width);
  return {std::vector<double>(width, 0.0), std::vector<double>(width, 1.0)};
}

// The user's functions in one call of the engine. What one of them throws ends the call, as a stop does, and
// is thrown again behind it.
class Asked {
 public:
  explicit Asked(const Definition& definition) : definition_(definition) {}

  std::shared_ptr<const OwnProblem> problem(OwnScaling scaling) {
    OwnDeclarations declarations = definition_.declarations;
    if (!definition_.before.is_none()) {
      declarations.before = [this](int n) {
        std::vector<std::array<int32_t, 2>> pairs;
        ask([&] {
          for (const auto& [a, b] : nb::cast<std::vector<std::pair<int32_t, int32_t>>>(definition_.before(n)))
            pairs.push_back({a, b});
        });
        return pairs;
      };
    }
    const auto cost = [this](std::vector<double> items, std::vector<int64_t> orders, int64_t count, int n) {
      return numbers([&] {
        const auto rows = static_cast<size_t>(count), each = static_cast<size_t>(n);
        return definition_.cost(
            numpy_array(std::move(items), {rows, each, static_cast<size_t>(definition_.width)}),
            numpy_array(std::move(orders), {rows, each}));
      });
    };
    const auto draw = [this](uint64_t seed, uint64_t first, int count, int n) {
      return numbers([&] { return definition_.draw(seed, first, count, n); });
    };
    return std::make_shared<const OwnProblem>(
        std::move(scaling), std::move(declarations), cost,
        definition_.draw.is_none() ? OwnProblem::Draw() : OwnProblem::Draw(draw));
  }

  bool stopped() const { return stopped_; }

  // Runs Python code with the lock; throws CallStopped where it threw.
  void ask(const std::function<void()>& work) {
    if (stopped_) throw CallStopped();
    run_locked([&] {
      try {
        work();
      } catch (nb::python_error& error) {
        stopped_ = true;
        if (!error.matches(PyExc_KeyboardInterrupt)) thrown_.emplace(std::move(error));
      }
    });
    if (stopped_) throw CallStopped();
  }

  // With the lock.
  void rethrow() {
    if (thrown_) throw *std::exchange(thrown_, std::nullopt);
  }

 private:
  std::vector<double> numbers(const std::function<nb::object()>& call) {
    std::vector<double> found;
    ask([&] {
      const auto array = nb::cast<Doubles>(call());
      found.assign(array.data(), array.data() + array.size());
    });
    return found;
  }

  const Definition& definition_;
  std::atomic<bool> stopped_ = false;
  std::optional<nb::python_error> thrown_;
};

// run_stoppable(work), then `rethrow` of what the user's functions threw, which is the reason of any other
// end.
void run_asking(const std::function<void(const std::function<bool()>& stopped)>& work,
                const std::function<void()>& rethrow) {
  try {
    run_stoppable(work);
  } catch (...) {
    rethrow();
    throw;
  }
  rethrow();
}

// Instances of (n, F) or (B, n, F) numbers each.
InstanceBatch own_instances(const std::vector<Doubles>& arrays,
                            const std::shared_ptr<const OwnProblem>& problem) {
  InstanceBatch instances;
  for (const Doubles& array : arrays) {
    const size_t count = array.ndim() == 3 ? array.shape(0) : 1;
    const size_t numbers = array.shape(array.ndim() - 2) * array.shape(array.ndim() - 1);
    for (size_t i = 0; i < count; ++i) {
      const double* const first = array.data() + i * numbers;
      instances.push_back(own_instance(problem, {first, first + numbers}));
    }
  }
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
void train_own(const Definition& definition, const OwnScaling& scaling, const Keywords& keywords,
               const Model* init, const nb::object& callback, const nb::callable& kept) {
  Asked asked(definition);
  std::optional<TrainResult> result;
  double seconds = 0.0;
  const auto work = [&](const std::function<bool()>& interrupted, const auto& tell) {
    PreparedTraining training = own_training(keywords, scaling, init);
    TrainOptions& options = training.request.options;
    const auto problem = options.own = asked.problem(scaling);
    Engine engine(training.device);
    SearchControl control = within_limits(Clock::now(), training.time_limit);
    control.interrupted = [&] { return asked.stopped() || interrupted(); };
    control.report.warn = log_warning;
    result = train(engine.backend(), {options, training.initial, training.request.resume, control, tell});
    seconds = problem->seconds();
  };
  const auto done = [&] {
    nb::dict summary = dict_of(result->last);
    summary["status"] = name_of(result->status);
    summary["training_tours"] = result->config.training_tours;
    summary["callback_seconds"] = seconds;
    kept(summary, Model{result->config, std::move(result->parameters), "", "", true});
    asked.rethrow();
  };
  try {
    run_training(callback, work, done);
  } catch (...) {
    asked.rethrow();
    throw;
  }
}

// What solve() found, and what it took.
struct OwnAnswers {
  SolutionBatch solutions;
  double solving_ms = 0.0, callback_seconds = 0.0;
};

OwnAnswers solve_own(const Definition& definition, const Model& model, const std::vector<Doubles>& items,
                     const Keywords& keywords, const Keywords& device, std::optional<int64_t> kicks) {
  const Clock::time_point start = Clock::now();
  Asked asked(definition);
  const auto problem = asked.problem(model.config.own);
  const InstanceBatch instances = own_instances(items, problem);
  OwnAnswers answers{SolutionBatch(instances.size())};
  const auto rethrow = [&] { asked.rethrow(); };
  run_asking(
      [&](const std::function<bool()>& stopped) {
        SolveCalls calls;
        const SolveRequest request = solve_request(calls, keywords);
        SearchControl control = within_limits(start, request.time_limit, request.limit_each);
        control.interrupted = [&] { return asked.stopped() || stopped(); };
        control.report.warn = log_warning;
        const SolutionSink sink = [&](size_t i, Solution&& solution) {
          answers.solutions[i] = std::move(solution);
        };
        const SolveJob job(instances, 0, request.options, control, sink);
        Engine(device_request(device)).solve(&model, job);
        if (kicks)
          improve_orders(instances, job.rows, answers.solutions, {*kicks, request.options.seed}, control);
      },
      rethrow);
  answers.callback_seconds = problem->seconds();
  answers.solving_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return answers;
}

// Of `count` orders at random, as declared, of each instance; [instances][count].
nb::object random_costs(const Definition& definition, const std::vector<Doubles>& items, int count,
                        uint64_t seed) {
  Asked asked(definition);
  const InstanceBatch instances = own_instances(items, asked.problem(plain_scaling(definition)));
  std::vector<double> costs;
  run_asking(
      [&](const std::function<bool()>& stopped) {
        for (size_t i = 0; i < instances.size(); ++i) {
          if (stopped()) throw CallStopped();
          std::vector<double> rows;
          std::vector<int64_t> orders;
          for (int sample = 0; sample < count; ++sample) {
            const Instance& one = instances[i];
            const auto wanted = input_order(seed, i, static_cast<uint32_t>(sample), one.n());
            rows.insert(rows.end(), one.values.begin(), one.values.end());
            std::ranges::copy(feasible_order(one, wanted), std::back_inserter(orders));
            orders.resize(static_cast<size_t>(sample + 1) * static_cast<size_t>(one.n()), -1);
          }
          std::ranges::copy(
              instances[i].own->cost(std::move(rows), std::move(orders), count, instances[i].n()),
              std::back_inserter(costs));
        }
      },
      [&] { asked.rethrow(); });
  return numpy_array(std::move(costs), {instances.size(), static_cast<size_t>(count)});
}

// Checked orders of the instances and what they cost, [instances].
nb::object costs_of(const Definition& definition, const std::vector<Doubles>& items,
                    const std::vector<Orders>& orders) {
  Asked asked(definition);
  const InstanceBatch instances = own_instances(items, asked.problem(plain_scaling(definition)));
  SolutionBatch solutions = own_solutions(orders);
  std::vector<double> costs;
  run_asking(
      [&](const std::function<bool()>& stopped) {
        for (size_t i = 0; i < instances.size(); ++i) {
          if (stopped()) throw CallStopped();
          const std::string wrong = validate_solution(instances[i], solutions[i]);
          if (!wrong.empty()) throw std::invalid_argument("orders[" + std::to_string(i) + "]: " + wrong);
          costs.push_back(solutions[i].objective);
        }
      },
      [&] { asked.rethrow(); });
  return numpy_array(std::move(costs));
}

nb::object score_own(const Definition& definition, const Model& model, const std::vector<Doubles>& items,
                     const std::vector<Orders>& orders, float temperature) {
  Asked asked(definition);
  const InstanceBatch instances = own_instances(items, asked.problem(model.config.own));
  const SolutionBatch solutions = own_solutions(orders);
  std::vector<double> scores;
  run_asking(
      [&](const std::function<bool()>& stopped) {
        BackendOptions device;
        device.device = "cpu";
        const StopToken stop([&] { return asked.stopped() || stopped(); });
        scores = Engine(device).score(model, instances, solutions, temperature, stop);
      },
      [&] { asked.rethrow(); });
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
  module.def("read_own_model", [](const std::string& path) {
    Model model = read_model(path);
    if (!is_own(model.config.problem))
      throw InputError(
          path, 0,
          std::string("expected a model of an own problem, found one of ") + name_of(model.config.problem));
    return model;
  });
}

}  // namespace

void bind_own(nb::module_& module) {
  bind_answers(module);
  bind_models(module);
  nb::class_<Definition>(module, "OwnProblem")
      .def(
          "__init__",
          [](Definition* made, int width, nb::object cost, nb::object draw, nb::object before,
             std::optional<int> first, std::optional<int> last, int weight, double capacity, bool maximise) {
            new (made) Definition{width,
                                  {maximise, first, last, weight, capacity},
                                  std::move(cost),
                                  std::move(draw),
                                  std::move(before)};
          },
          "width"_a, "cost"_a, "draw"_a.none(), "before"_a.none(), "first"_a.none(), "last"_a.none(),
          "weight"_a, "capacity"_a, "maximise"_a)
      .def("check",
           [](const Definition& definition, int n) {
             Asked asked(definition);
             const auto problem = asked.problem(plain_scaling(definition));
             run_asking([&](const std::function<bool()>&) { problem->declared(n); },
                        [&] { asked.rethrow(); });
           })
      .def(
          "train",
          [](const Definition& definition, std::vector<double> offsets, std::vector<double> scales,
             double cost_unit, const Keywords& keywords, const Model* init, const nb::object& callback,
             const nb::callable& kept) {
            train_own(definition, {std::move(offsets), std::move(scales), cost_unit}, keywords, init,
                      callback, kept);
          },
          "offsets"_a, "scales"_a, "cost_unit"_a, "keywords"_a, "init"_a.none(), "callback"_a.none(),
          "kept"_a)
      .def("solve", solve_own, "model"_a, "items"_a, "keywords"_a, "device"_a, "kicks"_a.none())
      .def("costs", costs_of)
      .def("random_costs", random_costs)
      .def("score", score_own);
}

}  // namespace pointsman
