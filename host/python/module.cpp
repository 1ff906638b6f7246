// SPDX-License-Identifier: Apache-2.0
// pointsman._core: what the Python package (host/python/pointsman) is made of. Its functions take keyword
// arguments as options of the table that the command line has.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <cmath>
#include <utility>

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/options/did_you_mean.h"
#include "host/python/arrays.h"
#include "host/python/call.h"
#include "host/python/solver.h"
#include "host/python/training.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pointsman {

namespace {

// So that Python need not know of shared pointers to vectors.
struct Batch {
  Instances instances;

  const InstanceBatch& all() const { return *instances; }
  const Instance& at(size_t i) const { return instances->at(i); }
  const Problem& problem() const { return problem_of(instances->at(0)); }
};

// number(solution) of each, [B]
template <typename Number>
nb::object column(const Answers& answers, Number (*number)(const Solution&)) {
  std::vector<Number> numbers;
  numbers.reserve(answers.solutions.size());
  for (const Solution& solution : answers.solutions) numbers.push_back(number(solution));
  const size_t count = numbers.size();
  return numpy_array(std::move(numbers), {count});
}

// Few different words.
nb::list words(const Answers& answers, const char* (*word)(const Solution&)) {
  std::map<std::string_view, nb::object> known;
  nb::list list;
  for (const Solution& solution : answers.solutions) {
    nb::object& text = known[word(solution)];
    if (!text.is_valid()) text = nb::str(word(solution));
    list.append(text);
  }
  return list;
}

// The program's JSON, and two words that it leaves out where no model was used.
nb::dict summary_dict(const SolveSummary& summary) {
  auto dict = nb::cast<nb::dict>(nb::module_::import_("json").attr("loads")(summary_json(summary)));
  dict["model"] = summary.model;
  dict["model_sha256"] = summary.model_sha256;
  dict["solving_ms"] = summary.solving_ms;
  return dict;
}

Batch read_batch(const std::string& path, const Keywords& keywords) {
  const Unlocked unlocked;
  return {std::make_shared<const InstanceBatch>(load_instances(path, read_request(keywords)))};
}

Batch generate_batch(const Keywords& keywords) {
  const Unlocked unlocked;
  const GenerateRequest request = generate_request(keywords);
  return {std::make_shared<const InstanceBatch>(generate(request.options, request.seed))};
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
                                       ? numpy_array(std::move(values), {rows})
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
  const std::string bytes = model_bytes(model.config, model.parameters, path);
  OutputFile file(path, force);
  file.write(bytes);
  file.commit();
}

void bind_batch(nb::module_& module) {
  nb::class_<Batch>(module, "Instances")
      .def("__len__", [](const Batch& batch) { return batch.all().size(); })
      .def_prop_ro("problem", [](const Batch& batch) { return name_of(batch.problem().kind); })
      .def_prop_ro("has_all_items", [](const Batch& batch) { return batch.problem().has_all_items; })
      .def_prop_ro("has_capacity", [](const Batch& batch) { return batch.problem().has_capacity; })
      .def_prop_ro("is_uniform", [](const Batch& batch) { return is_uniform(batch.all()); })
      .def_prop_ro("has_coordinates",
                   [](const Batch& batch) {
                     for (const Instance& instance : batch.all()) {
                       if (!instance.has_coordinates()) return false;
                     }
                     return true;
                   })
      .def("size", [](const Batch& batch, size_t i) { return batch.at(i).n(); })
      .def("id", [](const Batch& batch, size_t i) { return batch.at(i).id; })
      .def("metric", [](const Batch& batch, size_t i) { return metric_name(batch.at(i).metric); })
      .def("capacity", [](const Batch& batch, size_t i) { return batch.at(i).capacity; })
      .def("items", [](const Batch& batch, size_t i) { return items_array(batch.at(i)); })
      .def("all_items", [](const Batch& batch) { return items_array(batch.all()); })
      .def("matrix",
           [](const Batch& batch, size_t i) -> nb::object {
             const auto& matrix = batch.at(i).matrix;
             return matrix ? matrix_array(*matrix) : nb::none();
           })
      .def("write", [](const Batch& batch, const std::string& path, bool force) {
        write_instances(batch.instances, path, force);
      });
  module.def("from_points",
             [](const std::vector<AnyArray>& points) { return Batch{instances_from_points(points)}; });
  module.def("from_matrices",
             [](const std::vector<AnyArray>& matrices) { return Batch{instances_from_matrices(matrices)}; });
  module.def("from_items",
             [](const std::vector<AnyArray>& weights, const std::vector<AnyArray>& values,
                const AnyArray& capacity) { return Batch{instances_from_items(weights, values, capacity)}; });
  module.def("read", read_batch);
  module.def("generate", generate_batch);
}

void bind_answers(nb::module_& module) {
  nb::class_<Answers>(module, "Answers")
      .def("__len__", [](const Answers& answers) { return answers.solutions.size(); })
      .def_prop_ro("instances", [](const Answers& answers) { return Batch{answers.instances}; })
      .def("tours",
           [](const Answers& answers) -> nb::object {
             if (!is_uniform(*answers.instances)) return orders_list(answers.solutions);
             return orders_array(answers.solutions, answers.instances->at(0).n());
           })
      .def("items", [](const Answers& answers) { return orders_list(answers.solutions); })
      .def("costs",
           [](const Answers& a) { return column<double>(a, [](const Solution& s) { return s.objective; }); })
      .def("unrounded",
           [](const Answers& a) { return column<double>(a, [](const Solution& s) { return s.unrounded; }); })
      .def("weights",
           [](const Answers& a) { return column<double>(a, [](const Solution& s) { return s.weight; }); })
      .def("log_prob",
           [](const Answers& a) { return column<double>(a, [](const Solution& s) { return s.log_prob; }); })
      .def("network_costs",
           [](const Answers& a) {
             return column<double>(a, [](const Solution& s) { return s.network_objective; });
           })
      .def("kicks",
           [](const Answers& a) { return column<int64_t>(a, [](const Solution& s) { return s.kicks; }); })
      .def("status",
           [](const Answers& a) { return words(a, [](const Solution& s) { return name_of(s.status); }); })
      .def("start",
           [](const Answers& a) { return words(a, [](const Solution& s) { return name_of(s.start); }); })
      .def("summary", [](const Answers& answers) { return summary_dict(answers.summary); })
      .def("write", &Answers::write, nb::call_guard<Unlocked>());
  module.def("read_answers", [](const Batch& batch, const std::string& path) {
    const Unlocked unlocked;
    return read_answers(batch.instances, path);
  });
}

}  // namespace

}  // namespace pointsman

NB_MODULE(_core, module) {
  using namespace pointsman;
  nb::set_leak_warnings(
      false);  // what a thread or a module still holds at Python's exit is no fault of its user
  translate_exceptions();
  log_to_python();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(end_calls));
  pthread_atfork(nullptr, nullptr, forget_calls);
  module.attr("__version__") = POINTSMAN_VERSION;
  bind_batch(module);
  bind_answers(module);
  nb::class_<Solver>(module, "Solver")
      .def(nb::init<std::string, Keywords>(), nb::call_guard<Unlocked>())
      .def("solve", [](Solver& solver, const Batch& batch, const Keywords& keywords,
                       uint64_t first_row) { return solver.solve(batch.instances, keywords, first_row); })
      .def("score",
           [](Solver& solver, const Batch& batch, const std::vector<AnyArray>& solutions, float temperature) {
             std::vector<double> scores = solver.score(batch.instances, solutions, temperature);
             const size_t count = scores.size();
             return numpy_array(std::move(scores), {count});
           })
      .def_prop_ro("device", &Solver::device);
  module.def("train", run_training, "keywords"_a, "callback"_a.none());
  module.def("did_you_mean", [](const std::string& word, const std::vector<std::string>& known) {
    return did_you_mean(word, known);
  });
  module.def("keywords", keywords_of);
  module.def("model_names", model_names);
  module.def("find_model", [](const std::string& name) { return find_model(name).string(); });
  module.def("read_tensors", read_tensors);
  module.def("write_tensors", write_tensors);
}
