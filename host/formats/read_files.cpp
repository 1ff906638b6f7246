// SPDX-License-Identifier: Apache-2.0
#include "host/formats/read_files.h"

#include <utility>

#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// By the first bytes, else by the suffix, else by the first line, which stay unread.
InputFormat detect_format(InputFile& file) {
  const std::span<const InstanceFormat> formats = instance_formats();
  const InstanceFormat* told = format_by_magic(formats, file.peek_line(kNpyMagic.size()));
  if (!told) told = format_by_suffix(formats, unpacked_name(file.name()));
  if (told) return told->kind;
  const std::string_view line = file.peek_line(), text = trim(line);
  const char first = text.empty() ? '\0' : text.front();
  if (first == '{' || first == '[') {
    const bool is_stream = line.ends_with('\n') && is_json_object_without("instances", text, file.name());
    return is_stream ? InputFormat::kNdjson : InputFormat::kJson;
  }
  if (is_digit(first)) return InputFormat::kKnapsackText;
  if (first >= 'A' && first <= 'Z') return InputFormat::kTsplib;
  throw InputError(file.name(), 1,
                   "expected " + joined(formats, ", ", &InstanceFormat::title, " or ") + ", found " +
                       (line.empty() ? "an empty file" : shown(text)) + "; pass --input-format");
}

void check_problem(const Instance& instance, const ReadOptions& options, const std::string& name,
                   int64_t line) {
  if (!options.problem || instance.problem == *options.problem) return;
  throw InputError(name, line,
                   std::string("expected a ") + problem_of(*options.problem).title + " instance, found a " +
                       problem_of(instance).title + " one");
}

std::optional<InstanceLine> take_line(InputFile& file, const ReadOptions& options) {
  std::string text;
  if (!file.read_line(text)) return std::nullopt;
  InstanceLine out;
  out.line = file.line();
  try {
    Instance instance = parse_json_instance(text, file.name(), out.line);
    complete_instance(instance, options, file.name(), out.line);
    out.instance = std::move(instance);
  } catch (const InputError& error) {
    out.error = error;
  }
  return out;
}

// The costs that the file lists; nothing if it holds solutions.
std::optional<std::vector<double>> listed_costs(std::string_view bytes, const std::string& file) {
  std::vector<double> costs;
  if (bytes.starts_with(kNpyMagic)) {
    InputFile whole(bytes, file);
    const NpyArray array(whole);
    if (array.shape().size() != 1 || !array.header().is_float()) return std::nullopt;
    for (size_t i = 0; i < array.header().count; ++i) costs.push_back(array.number(i));
  } else if (bytes.starts_with('{') && !is_ndjson(bytes, file)) {
    const JsonDocument document(bytes, file);
    const std::optional<JsonValue> list = document.root().find("costs");
    if (!list) return std::nullopt;
    for (const JsonValue& cost : list->elements()) costs.push_back(cost.number());
  } else if (!bytes.empty() && bytes.front() >= '0' && bytes.front() <= '9') {
    TextReader lines(bytes, file);
    for (std::string_view line; lines.next_row(line);) {
      if (!parse_number(trim(line), costs.emplace_back()))
        lines.fail("expected a number, found " + shown(trim(line)));
    }
  } else {
    return std::nullopt;
  }
  return costs;
}

}  // namespace

void complete_instance(Instance& instance, const ReadOptions& options, const std::string& name,
                       int64_t line) {
  const bool is_tour = instance.problem == ProblemKind::kTsp || instance.problem == ProblemKind::kAtsp;
  if (options.problem == ProblemKind::kPath && is_tour && instance.forced.empty())
    instance.problem = ProblemKind::kPath;
  check_problem(instance, options, name, line);
  if (options.start < 0 && options.end < 0) return;
  if (!is_open(instance.problem)) {
    throw InputError(name, line,
                     std::string("expected a path to start and end, found a ") + problem_of(instance).title);
  }
  for (const auto& [end, given] :
       {std::pair(&instance.start, options.start), std::pair(&instance.end, options.end)}) {
    if (*end >= 0 || given < 0) continue;  // the file's own stays
    *end = given;
    if (given >= instance.n()) {
      throw InputError(name, line,
                       "expected a city below " + std::to_string(instance.n()) +
                           " to start or end at, found " + std::to_string(given));
    }
  }
  if (instance.start == instance.end && instance.n() > 1)
    throw InputError(name, line, "expected an end that is not the start");
}

InstanceInput::InstanceInput(std::unique_ptr<InputFile> file, const ReadOptions& options)
    : options_(options), file_(std::move(file)) {
  if (options_.format == InputFormat::kAuto) options_.format = detect_format(*file_);
}

std::optional<InstanceLine> InstanceInput::next_line() {
  if (file_ == nullptr) return std::nullopt;  // after read_all()
  file_->forget_lines();
  return take_line(*file_, options_);
}

InstanceFile InstanceInput::read_all() {
  const std::unique_ptr<InputFile> file = std::move(file_);  // its bytes go with it
  InstanceFile out = format_of_kind(instance_formats(), options_.format).parse(*file, options_);
  for (Instance& instance : out.instances) complete_instance(instance, options_, file->name(), 0);
  return out;
}

InstanceFile parse_ndjson(InputFile& file, const ReadOptions& options) {
  InstanceFile out;
  LoadingWatch watch(file.name());
  while (std::optional<InstanceLine> line = take_line(file, options)) {
    if (line->error) throw *line->error;
    watch.after(static_cast<size_t>(line->instance->n()));
    out.instances.push_back(std::move(*line->instance));
  }
  if (out.instances.empty()) throw InputError(file.name(), 0, "expected at least one instance, found none");
  return out;
}

InstanceFile read_instances(const std::string& path, const ReadOptions& options) {
  return InstanceInput(path, options).read_all();
}

InstanceFile parse_instances(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  return InstanceInput(std::make_unique<InputFile>(bytes, name), options).read_all();
}

SolutionBatch parse_solutions(std::string_view bytes, const std::string& name,
                              const InstanceBatch& instances) {
  if (instances.empty()) return {};
  InputFile file(bytes, name);
  const AnswerFormat* format = format_by_magic(answer_formats(), file.peek_line(kNpyMagic.size()));
  if (!format) {
    const std::string_view text = trim(file.peek_line());
    const bool is_tour = !text.empty() && text.front() >= 'A' && text.front() <= 'Z';
    const bool is_routes = text.starts_with("Route") || text.starts_with("Cost");
    format = &format_of_kind(answer_formats(), is_routes ? OutputFormat::kRoutes
                                               : is_tour ? OutputFormat::kTour
                                                         : OutputFormat::kJson);
  }
  return format->parse(file, instances);
}

SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances) {
  return parse_solutions(InputFile(path).read_rest(), path, instances);
}

void check_solutions(SolutionBatch& solutions, const InstanceBatch& instances, const std::string& path) {
  for (size_t i = 0; i < solutions.size(); ++i) {
    const std::string wrong = validate_solution(instances[i], solutions[i]);
    if (!wrong.empty()) throw InputError(path, 0, "solution " + std::to_string(i) + ": " + wrong);
  }
}

std::optional<double> reference_number(const std::string& what) {
  double value = 0.0;
  if (!parse_number(what, value)) return std::nullopt;
  if (value < 0.0) throw std::invalid_argument("--ref " + what + ": expected a cost of 0 or more");
  return value;
}

std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances) {
  if (const auto number = reference_number(what)) return std::vector<double>(instances.size(), *number);
  InputFile file(what);
  const std::string_view bytes = file.read_rest();
  std::vector<double> costs;
  if (std::optional<std::vector<double>> listed = listed_costs(bytes, what)) {
    costs = std::move(*listed);
    check_count(costs.size(), instances, what);
  } else {
    SolutionBatch solutions = parse_solutions(bytes, what, instances);
    check_solutions(solutions, instances, what);
    for (const Solution& solution : solutions) costs.push_back(solution.objective);
  }
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] >= 0.0) continue;  // false for NaN
    throw InputError(
        what, 0,
        "cost " + std::to_string(i) + ": expected a number of 0 or more, found " + number_text(costs[i]));
  }
  return costs;
}

}  // namespace pointsman
