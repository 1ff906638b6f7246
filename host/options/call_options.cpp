// SPDX-License-Identifier: Apache-2.0
#include "host/options/call_options.h"

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/text_scan.h"

namespace pointsman {

namespace {

std::vector<std::string> problem_choices() {
  std::vector<std::string> names;
  for_each_problem([&](ProblemKind kind) { names.emplace_back(name_of(kind)); });
  return names;
}

// The registry knows the names behind "check:".
std::string wrong_device(const std::string& device) {
  for (const char* name : {"auto", "cpu", "cuda", "cuda:all", "check"}) {
    if (device == name) return {};
  }
  const bool is_numbered = device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
                           device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (is_numbered || device.starts_with("check:")) return {};
  return "expected auto, cpu, cuda, cuda:NUMBER or cuda:all, found \"" + device + "\"";
}

// Metrics of coordinates, in lower case.
std::vector<std::string> metric_choices() {
  std::vector<std::string> choices;
  for (const std::string_view name : coordinate_metrics()) choices.push_back(lower_case(name));
  return choices;
}

}  // namespace

void add_problem(OptionSet& options, std::string& problem) {
  options.add("problem", problem, problem_names()).required().choices(problem_choices());
}

void add_instance_options(OptionSet& options, InstanceOptions& instances) {
  options.begin_group("Input");
  std::vector<std::string> formats = of_formats(instance_formats(), &InstanceFormat::name);
  formats.insert(formats.begin(), "auto");
  options.add("--input-format", instances.format, "Format of the input; auto: told by suffix and first bytes")
      .choices(formats);
  OptionSet::Words<KnapsackLayout> layouts;
  for (const auto& [layout, name] : knapsack_layouts()) layouts.emplace_back(name, layout);
  options.add_words("--layout", instances.layout, layouts,
                    "KnapSack text: how its numbers stand in the lines; auto: as they are counted");
  options.add("--problem", instances.problem, "What the instances are, where the format does not say (.npy)")
      .choices(problem_choices());
  options.add("--capacity", instances.capacity, "Capacity, where the file has none; 0: the file's own")
      .range(0, 1e300)
      .judged_by([](const std::string& text) {
        double capacity = 0.0;
        return parse_number(text, capacity) ? lost_digits(text, capacity) : "";
      });
  for (const auto& [name, what, city] :
       {std::tuple("--start", "first", &instances.start), std::tuple("--end", "last", &instances.end)}) {
    options
        .add(name, *city,
             std::string("Path: its ") + what + " city, from 0, where the file has none; -1: any")
        .range(-1, kLargestSize - 1);
  }
  options
      .add("--metric", instances.metric,
           "How coordinates are measured, in place of the file's own metric. haversine (metres) and "
           "haversine_km take latitude and longitude in decimal degrees. Named, it silences warnings about "
           "the metric")
      .choices(metric_choices());
  options.add(
      "--columns", instances.columns,
      "CSV: the two columns to read, by names or by numbers from 0, such as x,y; none: the first line "
      "is a row");
  options.add(
      "--first-city", instances.first_city,
      "The city, by the file's id of it, that the tour of an answer begins at; cities without ids count "
      "from 0");
}

ReadOptions read_options(const InstanceOptions& instances) {
  ReadOptions options;
  if (const InstanceFormat* format = format_named(instance_formats(), instances.format))
    options.format = format->kind;
  if (!instances.problem.empty()) options.problem = find_problem(instances.problem);
  if (instances.capacity > 0) options.capacity = instances.capacity;
  if (!instances.metric.empty()) options.metric = find_metric(upper_case(instances.metric));
  options.columns = instances.columns;
  options.first_city = instances.first_city;
  options.layout = instances.layout;
  options.start = instances.start;
  options.end = instances.end;
  return options;
}

void add_generate_options(OptionSet& options, GenerateOptions& generate) {
  add_problem(options, generate.problem);
  options.add("-n,--size", generate.n, "Cities or items of an instance; a depot counts too")
      .required()
      .range(1, 1000000);
  options.add("-b,--count", generate.count, "Number of instances").range(1, 100000000);
  options.add("--like", generate.like, "numpy: what numpy.random.seed(SEED); numpy.random.uniform(..) gives")
      .choices({"numpy"});
  options
      .add("--capacity", generate.capacity,
           "Capacity; 0: KnapSack 12.5 up to n = 50, else 25; CVRP 20, 30, 40 up to n = 11, 21, 51, else 50")
      .range(0, 1e12);
}

void refuse_capacity(ProblemKind problem, double capacity) {
  const Problem& own = problem_of(problem);
  if (!own.has_capacity && capacity != 0)
    throw UsageError("--capacity: not for " + std::string(name_of(problem)));
  if (capacity != 0 && capacity < own.least_capacity)
    throw UsageError("--capacity: expected at least " + printed("%g", own.least_capacity) +
                     ", the largest demand that is drawn");
}

void add_device_options(OptionSet& options, BackendOptions& device) {
  options.add("-t,--threads", device.threads, "CPU threads; 0: all").range(0, 4096);
  options
      .add("--device", device.device,
           "Where to compute; cuda:1 is the second of its kind, cuda:all all of them; auto takes a CUDA "
           "device where one works, else the CPU")
      .choices({"auto", "cpu", "cuda"})
      .judged_by(wrong_device);
  OptionSet::Words<Precision> precisions;
  for (const char* name : kPrecisionNames)
    precisions.emplace_back(name, static_cast<Precision>(precisions.size()));
  options.add_words("--precision", device.precision, precisions,
                    "Of products: fp32; tf32, tf32x3 and bf16 use tensor cores and need a CUDA device");
}

void add_seed(OptionSet& options, uint64_t& seed) {
  options.add("-s,--seed", seed, "Seed of every random number");
}

void add_time_limit(OptionSet& options, double& seconds) {
  options
      .add("-l,--time-limit", seconds,
           "Seconds from the start of the program, then the best so far is the answer; 0: none")
      .range(0, 1e9)
      .type_name("SECONDS");
}

void add_output(OptionSet& options, std::string& path, bool& force) {
  options.add_file("-o,--output", path, "Write the result here instead of to stdout");
  options.add("-f,--force", force, "Replace an existing output file");
}

}  // namespace pointsman
