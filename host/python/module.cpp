// SPDX-License-Identifier: Apache-2.0
// pointsman._core: what the Python package (host/python/pointsman) is made of. Its functions take keyword
// arguments as options of the table that the command line has.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/options/did_you_mean.h"
#include "host/python/arrays.h"
#include "host/python/call.h"
#include "host/python/own.h"
#include "host/python/solver.h"
#include "host/python/state.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pointsman {

namespace {

// of(instance) of each.
template <typename Of>
auto each(Of of) {
  return [of](const Instances& instances) {
    nb::list all;
    for (const Instance& instance : instances.all()) all.append(std::invoke(of, instance));
    return all;
  };
}

// x and y, weight and value, or x, y and demand: (B, n, 2 or 3), or a list of (n, ..) where sizes differ or
// some have no coordinates.
nb::object items_of(const Instances& instances) {
  const InstanceBatch& all = instances.all();
  if (!is_uniform(all) || !std::ranges::all_of(all, &Instance::has_coordinates)) {
    return each([](const Instance& one) {
      const auto width = static_cast<size_t>(one.width());
      return numpy_array(one.values, {one.values.size() / width, width});
    })(instances);
  }
  const auto n = static_cast<size_t>(all.at(0).n());
  std::vector<double> values;
  const auto width = static_cast<size_t>(all.at(0).width());
  values.reserve(all.size() * width * n);
  for (const Instance& one : all) values.insert(values.end(), one.values.begin(), one.values.end());
  return numpy_array(std::move(values), {all.size(), n, width});
}

// (n, n), its diagonal 0.
nb::object matrix_of(const Instance& instance) {
  if (!instance.matrix) return nb::none();
  const DistanceMatrix& matrix = *instance.matrix;
  const auto n = static_cast<size_t>(matrix.n);
  std::vector<double> all;
  all.reserve(n * n);
  for (int i = 0; i < matrix.n; ++i) {
    for (int j = 0; j < matrix.n; ++j) all.push_back(matrix.at(i, j));
  }
  return numpy_array(std::move(all), {n, n});
}

// One array an answer.
nb::list orders_of(const Answers& answers) {
  nb::list all;
  for (const Solution& solution : answers.solutions) all.append(numpy_array(solution.order));
  return all;
}

// (B, steps), -1 where there is no answer and behind a shorter one; where sizes differ a list.
nb::object tours_of(const Answers& answers) {
  const InstanceBatch& instances = answers.instances.all();
  if (!is_uniform(instances)) return orders_of(answers);
  const auto steps = static_cast<size_t>(longest_order(instances.at(0)));
  std::vector<int32_t> all(instances.size() * steps, -1);
  for (size_t i = 0; i < instances.size(); ++i)
    std::ranges::copy(answers.solutions[i].order, all.data() + i * steps);
  return numpy_array(std::move(all), {instances.size(), steps});
}

// That member of each solution, [B].
template <typename Number>
auto column(Number Solution::*member) {
  return [member](const Answers& answers) {
    std::vector<Number> numbers(answers.solutions.size());
    std::ranges::transform(answers.solutions, numbers.begin(), member);
    return numpy_array(std::move(numbers));
  };
}

// The names of that member; few differ.
template <typename Named>
auto words(Named Solution::*member) {
  return [member](const Answers& answers) {
    std::map<Named, nb::str> known;
    nb::list list;
    for (const Solution& solution : answers.solutions) {
      const Named value = solution.*member;
      list.append(known.try_emplace(value, name_of(value)).first->second);
    }
    return list;
  };
}

// The program's JSON, and two words that it leaves out where no model was used.
nb::dict summary_dict(const SolveSummary& summary) {
  auto dict = nb::cast<nb::dict>(nb::module_::import_("json").attr("loads")(summary_json(summary)));
  dict["model"] = summary.model;
  dict["model_sha256"] = summary.model_sha256;
  dict["solving_ms"] = summary.solving_ms;
  return dict;
}

Instances read(const std::string& path, const Keywords& keywords) {
  return Instances(load_instances(path, read_request(keywords)));
}

Instances generate_instances(const Keywords& keywords) {
  const GenerateRequest request = generate_request(keywords);
  return Instances(generate(request.options, request.seed));
}

using Tensors = std::map<std::string, nb::ndarray<float, nb::ro, nb::c_contig, nb::device::cpu>>;

// (metadata, {name: array}) of a model's path or name.
nb::tuple read_tensors(const std::string& name) {
  const Model model = load_model(find_model(name), run_log());
  nb::dict tensors;
  for (const Tensor& tensor : ParameterLayout(model.config).tensors) {
    const float* const begin = model.parameters.data() + tensor.offset;
    std::vector<float> values(begin, begin + tensor.size);
    const auto rows = static_cast<size_t>(tensor.shape[0]);
    tensors[tensor.name.c_str()] = tensor.shape.size() == 1
                                       ? numpy_array(std::move(values))
                                       : numpy_array(std::move(values), {rows, tensor.size / rows});
  }
  return nb::make_tuple(metadata_of(model.config), tensors);
}

void write_tensors(const std::string& path, std::map<std::string, std::string> metadata,
                   const Tensors& tensors, bool force) {
  std::vector<NamedTensor> named;
  for (const auto& [name, array] : tensors) {
    NamedTensor& tensor = named.emplace_back(NamedTensor{name, {}, array.data()});
    for (size_t axis = 0; axis < array.ndim(); ++axis) tensor.shape.push_back(array.shape(axis));
  }
  metadata["version"] = POINTSMAN_VERSION;
  const Model model = make_model(std::move(metadata), named, "state_dict");
  write_file(path, force, model_bytes(model.config, model.parameters, path));
}

void bind_instances(nb::module_& module) {
  const auto problem = [](const Instances& all) -> const Problem& { return problem_of(all.all().at(0)); };
  nb::class_<Instances>(module, "Instances")
      .def("__len__", [](const Instances& instances) { return instances.all().size(); })
      .def_prop_ro("problem", [=](const Instances& all) { return name_of(problem(all).kind); })
      .def_prop_ro("has_all_items", [=](const Instances& all) { return problem(all).has_all_items; })
      .def_prop_ro("sizes", each(&Instance::n))
      .def_prop_ro("ids", each(&Instance::id))
      .def_prop_ro("metrics", each([](const Instance& instance) { return metric_name(instance.metric); }))
      .def_prop_ro("capacities", each(&Instance::capacity))
      .def_prop_ro("matrices", each(matrix_of))
      .def("items", items_of)
      .def("state", [](const Instances& instances) { return state_of(instances); })
      .def("write", &Instances::write);
  module.def("instances_of_state", instances_of_state);
  module.def("instances_of_lines", instances_of_lines);
  module.def("from_points", instances_from_points);
  module.def("from_matrices", instances_from_matrices);
  module.def("from_items", instances_from_items);
  module.def("read", read, nb::call_guard<Unlocked>());
  module.def("generate", generate_instances, nb::call_guard<Unlocked>());
}

void bind_answers(nb::module_& module) {
  nb::class_<Answers>(module, "Answers")
      .def("__len__", [](const Answers& answers) { return answers.solutions.size(); })
      .def_prop_ro("instances", [](const Answers& answers) { return answers.instances; })
      .def("tours", tours_of)
      .def("items", orders_of)
      .def_prop_ro("costs", column(&Solution::objective))
      .def_prop_ro("euclidean", column(&Solution::unrounded))
      .def_prop_ro("weights", column(&Solution::weight))
      .def_prop_ro("bounds", column(&Solution::bound))
      .def_prop_ro("log_prob", column(&Solution::log_prob))
      .def_prop_ro("network_costs", column(&Solution::network_objective))
      .def_prop_ro("kicks", column(&Solution::kicks))
      .def_prop_ro("status", words(&Solution::status))
      .def_prop_ro("start", words(&Solution::start))
      .def_prop_ro("summary", [](const Answers& answers) { return summary_dict(answers.summary); })
      .def("state", [](const Answers& answers) { return state_of(answers); })
      .def("write", &Answers::write, nb::call_guard<Unlocked>());
  module.def("answers_of_state", answers_of_state);
  module.def("read_answers", read_answers, nb::call_guard<Unlocked>());
}

}  // namespace

}  // namespace pointsman

NB_MODULE(_core, module) {
  using namespace pointsman;
  // What a thread or a module still holds at Python's exit is no fault of its user.
  nb::set_leak_warnings(false);
  prepare_calls();
  module.attr("__version__") = POINTSMAN_VERSION;
  bind_instances(module);
  bind_answers(module);
  nb::class_<Solver>(module, "Solver")
      .def(nb::init<std::string, Keywords>(), nb::call_guard<Unlocked>())
      .def("solve", &Solver::solve)
      .def("score",
           [](Solver& solver, const Instances& instances, const std::vector<AnyArray>& solutions,
              float temperature) { return numpy_array(solver.score(instances, solutions, temperature)); })
      .def_prop_ro("device", &Solver::device);
  module.def("train", train_by_options, "keywords"_a, "callback"_a.none());
  bind_own(module);
  module.def("did_you_mean", did_you_mean);
  module.def("keywords", keywords_of);
  module.def("model_names", model_names);
  module.def("find_model", [](const std::string& name) { return find_model(name).string(); });
  module.def("read_tensors", read_tensors);
  module.def("write_tensors", write_tensors);
  module.def("write_text", write_file);
}
