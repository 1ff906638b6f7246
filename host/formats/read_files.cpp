// SPDX-License-Identifier: Apache-2.0
#include "host/formats/read_files.h"

#include <array>
#include <cmath>
#include <utility>

#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "host/formats/tsplib_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// The first two bytes of a pickle of protocol 2 and later, and the first of one of a list before.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 &&
         ((bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) || bytes.starts_with("(l"));
}

// By the first bytes, else by the suffix, else by the first line, which stay unread.
InputFormat detect_format(InputFile& file) {
  const std::span<const InstanceFormat> formats = instance_formats();
  const std::string_view head = file.peek_line(kNpyMagic.size());
  if (const InstanceFormat* told = format_by_magic(formats, head)) return told->kind;
  if (is_pickle(head))
    throw InputError(file.name(), 0,
                     "this is a Python pickle; `python -m pointsman convert` makes an .npy or NDJSON of it");
  const std::string suffix = file_suffix(unpacked_name(file.name()));
  const InstanceFormat* const told = format_by_suffix(formats, unpacked_name(file.name()));
  if (told && suffix != ".txt") return told->kind;
  const std::string_view line = file.peek_line(), text = trim(line);
  const char first = text.empty() ? '\0' : text.front();
  if (first == '{' || first == '[') {
    const bool has_comma = text.ends_with(',');  // one too many, which is that line's error
    const bool is_stream =
        line.ends_with('\n') &&
        is_json_object_without("instances", text.substr(0, text.size() - has_comma), file.name());
    return is_stream ? InputFormat::kNdjson : InputFormat::kJson;
  }
  if (is_digit(first) || first == '-' || first == '.') {
    if (line.find(kOutputWord) != std::string_view::npos) return InputFormat::kTourLines;
  }
  if (begins_timed_text(text)) return InputFormat::kTimedText;
  if (begins_graph_text(text)) return InputFormat::kGraphText;
  if (text.find_first_of(",;\t") != std::string_view::npos && text.find(':') == std::string_view::npos &&
      !begins_tsplib(text))
    return InputFormat::kCsv;
  const bool is_name = text.find_first_of(": \t") == std::string_view::npos &&
                       !upper_case(text).ends_with("_SECTION");  // of a KnapSack of Pisinger's
  if (is_letter(first) && !is_name) return InputFormat::kTsplib;
  if (is_letter(first)) return InputFormat::kKnapsackText;
  if (is_digit(first) || told) return InputFormat::kKnapsackText;
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

// Whether minutes of GEO's DDD.MM are so often 60 or more that the numbers look like decimal degrees: then by
// chance 4 in 10 are, while the published files have a few in a thousand.
std::string degrees_warning(const Instance& instance) {
  constexpr double kMinutes = 0.6 - 1e-9;
  int count = 0;
  for (const double number : instance.values) count += std::fabs(number - std::trunc(number)) >= kMinutes;
  if (10 * static_cast<size_t>(count) < instance.values.size() || count == 0) return {};
  return "GEO reads DDD.MM, degrees and minutes, but " + std::to_string(count) + " of " +
         std::to_string(instance.values.size()) +
         " numbers have 60 minutes or more; --metric haversine_km measures decimal degrees, --metric geo "
         "says "
         "that minutes are meant";
}

void set_metric(Instance& instance, Metric metric, const std::string& name, int64_t line) {
  if (!instance.has_coordinates() || !has_metric(problem_of(instance).fields))
    throw InputError(
        name, line,
        std::string("expected coordinates for the metric ") + metric_name(metric) + ", found none");
  instance.metric = metric;
  instance.is_metric_chosen = true;
  for (int city = 0; is_on_sphere(metric) && city < instance.n(); ++city) {
    if (is_geographic(instance.first(city), instance.second(city))) continue;
    throw InputError(name, line,
                     "city " + std::to_string(city) + ": expected " + degrees_expected(metric) + ", found " +
                         number_text(instance.first(city)) + " " + number_text(instance.second(city)));
  }
}

// By the file's own id of it.
void set_first_city(Instance& instance, const std::string& id, const std::string& name, int64_t line) {
  const Problem& problem = problem_of(instance);
  if (!holds_tours(problem) || problem.depots() > 0 || is_open(instance.problem))
    throw InputError(name, line,
                     std::string("expected a tour to begin at city ") + id + ", found a " + problem.title);
  int64_t number = -1;
  if (instance.names) {
    const auto found = std::ranges::find(*instance.names, id);
    if (found != instance.names->end()) number = found - instance.names->begin();
  } else if (parse_integer(id, number)) {
    number -= instance.first_id;
  }
  if (number < 0 || number >= instance.n())
    throw InputError(name, line, "expected a city's id for the tour to begin at, found " + shown(id));
  instance.first_city = static_cast<int32_t>(number);
}

std::optional<InstanceLine> take_line(InputFile& file, const ReadOptions& options) {
  std::string text;
  if (!file.read_line(text)) return std::nullopt;
  InstanceLine out;
  out.line = file.line();
  try {
    Instance instance = parse_json_instance(text, file.name(), out.line, options, out.warning);
    const std::string warning = complete_instance(instance, options, file.name(), out.line);
    if (out.warning.empty()) out.warning = warning;
    out.instance = std::move(instance);
  } catch (const InputError& error) {
    out.error = error;
  }
  return out;
}

// Whether a text of numbers is one tour, or one a line, and not a cost a line.
bool has_tours(std::string_view bytes, size_t instances) {
  LineScanner lines(bytes);
  std::string_view line;
  std::array<std::string_view, 2> words;
  if (!lines.next_filled(line) || split_words(line, words) > 1) return true;
  return instances == 1 && lines.next_filled(line);
}

// The costs that the file lists; nothing if it holds solutions.
std::optional<std::vector<double>> listed_costs(std::string_view bytes, const std::string& file,
                                                size_t instances) {
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
  } else if (const std::string_view text = trim(bytes);
             !text.empty() && is_digit(text.front()) && !has_tours(bytes, instances)) {
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

std::string complete_instance(Instance& instance, const ReadOptions& options, const std::string& name,
                              int64_t line) {
  const bool is_tour = instance.problem == ProblemKind::kTsp || instance.problem == ProblemKind::kAtsp;
  if (options.problem == ProblemKind::kPath && is_tour && instance.forced.empty())
    instance.problem = ProblemKind::kPath;
  check_problem(instance, options, name, line);
  if (options.metric) set_metric(instance, *options.metric, name, line);
  if (!options.first_city.empty()) set_first_city(instance, options.first_city, name, line);
  std::string warning;
  if (instance.metric == Metric::kGeo && !options.metric) warning = degrees_warning(instance);
  if (!warning.empty()) warning = name + (line > 0 ? ":" + std::to_string(line) : "") + ": " + warning;
  if (options.start < 0 && options.end < 0) return warning;
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
  return warning;
}

InstanceInput::InstanceInput(std::unique_ptr<InputFile> file, const ReadOptions& options)
    : options_(options), file_(std::move(file)) {
  if (options_.format == InputFormat::kAuto) options_.format = detect_format(*file_);
  const bool is_timed =
      options_.problem && problem_of(*options_.problem).fields == ItemFields::kCoordinatesAndWindows;
  if (is_timed && options_.format == InputFormat::kKnapsackText) options_.format = InputFormat::kTimedText;
}

std::optional<InstanceLine> InstanceInput::next_line() {
  if (file_ == nullptr) return std::nullopt;  // after read_all()
  file_->forget_lines();
  std::optional<InstanceLine> line = take_line(*file_, options_);
  if (!line || line->warning.empty()) return line;
  if (std::exchange(has_warned_, true)) line->warning.clear();
  return line;
}

InstanceFile InstanceInput::read_all() {
  const std::unique_ptr<InputFile> file = std::move(file_);  // its bytes go with it
  InstanceFile out = format_of_kind(instance_formats(), options_.format).parse(*file, options_);
  std::string warning;  // the first says enough
  for (Instance& instance : out.instances) {
    std::string own = complete_instance(instance, options_, file->name(), 0);
    if (warning.empty()) warning = std::move(own);
  }
  if (!warning.empty()) out.warnings.push_back(std::move(warning));
  return out;
}

InstanceFile parse_ndjson(InputFile& file, const ReadOptions& options) {
  InstanceFile out;
  LoadingWatch watch(file.name());
  while (std::optional<InstanceLine> line = take_line(file, options)) {
    if (line->error) throw *line->error;
    if (out.warnings.empty() && !line->warning.empty()) out.warnings.push_back(line->warning);
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
    const size_t first = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    const std::string_view text = bytes.substr(std::min(first, bytes.size()));
    const bool is_tour = text.empty() || (text.front() != '{' && text.front() != '[');
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
  if (std::optional<std::vector<double>> listed = listed_costs(bytes, what, instances.size())) {
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
