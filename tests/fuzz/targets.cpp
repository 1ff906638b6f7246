// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/search/heuristics.h"
#include "engine/training/checkpoint.h"
#include "host/command/command.h"
#include "host/command/eval_modes.h"
#include "host/command/parser.h"
#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "host/formats/npy_array.h"
#include "host/formats/read_files.h"
#include "kernels/tools/fnv1a.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "models/safetensors.h"
#include "models/tools/crc32c.h"
#include "tests/packed.h"

namespace pointsman {
namespace {

const std::string kName = "fuzz";  // of the file, in messages

void promise(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("broken promise: ") + what);
}

// What a file, not the command line, holds must reach the terminal only as text of a readable length.
void check_message(const std::string& message) {
  constexpr size_t kLongest = 4096;
  promise(message.size() <= kLongest, "an error is told in a readable length");
  promise(std::none_of(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 && c != '\n'; }),
          "an error is told in printable characters");
}

template <typename Error, void (*kRead)(std::string_view)>
bool accepts(std::string_view bytes) {
  try {
    kRead(bytes);
    return true;
  } catch (const Error& error) {
    if constexpr (!std::is_same_v<Error, UsageError>) check_message(error.what());
    return false;
  } catch (const InputTooLarge& error) {
    check_message(error.what());
    return false;
  }
}

// Runs each; throws the last one's error when all do.
template <typename Error = InputError, typename... Read>
void any_of(Read... read) {
  size_t refused = 0;
  const auto attempt = [&](auto& one) {
    try {
      one();
    } catch (const Error&) {
      if (++refused == sizeof...(Read)) throw;
    }
  };
  (attempt(read), ...);
}

// A file in memory with these bytes and, behind them, zeros up to `size`; the path stays the same.
std::string file_of(std::string_view bytes, size_t size = 0) {
  static const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
  const auto length = static_cast<off_t>(std::max(bytes.size(), size));
  if (ftruncate(descriptor, 0) != 0 || ftruncate(descriptor, length) != 0 ||
      pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "a file in memory");
  }
  return "/proc/self/fd/" + std::to_string(descriptor);
}

// ------------------------------------------------------------------ instances

void check_matrix(const Instance& instance) {
  const auto n = static_cast<size_t>(instance.n());
  const bool has_own = problem_of(instance).has_first;  // times, beside the matrix
  promise(instance.metric == Metric::kExplicit && (has_own || instance.values.empty()),
          "a matrix stands alone");
  promise(instance.matrix->above.size() == n * (n - 1) / 2, "a matrix has all its numbers");
  for (const auto* distances : {&instance.matrix->above, &instance.matrix->back}) {
    for (const double distance : *distances)
      promise(distance >= 0.0 && (distance <= kLargestNumber || distance == MatrixBuilder::kNoWay) &&
                  (!is_graph(instance.problem) || distance <= 1.0),
              "distances are bounded");
  }
}

void check_instance(const Instance& instance) {
  const Problem& problem = problem_of(instance);
  promise(instance.n() >= 1 &&
              (instance.matrix || instance.values.size() % static_cast<size_t>(instance.width()) == 0),
          "an instance has items with all their numbers");
  size_t wrong = 0;
  promise(wrong_edges(instance.n(), instance.forced, wrong).empty(), "a tour has all forced edges");
  promise(instance.start < instance.n() && instance.end < instance.n(), "the ends are cities");
  promise(std::ranges::is_sorted(instance.forbidden), "forbidden edges ascend");
  for (const auto& [a, b] : instance.forbidden)
    promise(0 <= a && a < b && b < instance.n(), "forbidden edges have two cities");
  promise(instance.has_coordinates() == (instance.metric != Metric::kExplicit), "a metric has what it needs");
  if (!instance.has_coordinates()) check_matrix(instance);
  for (size_t i = 0; i < instance.values.size(); ++i) {
    const size_t field = i % static_cast<size_t>(instance.width());
    const bool is_time =
        problem.has_first && field >= InstancePlaces::kOpens && field <= InstancePlaces::kCloses;
    const bool may_be_negative = is_time || (has_metric(problem.fields) && field < 2);
    const double value = instance.values[i];
    const bool is_never = is_time && field == InstancePlaces::kCloses && std::isinf(value) && value > 0.0;
    promise(is_never || (std::fabs(value) <= kLargestNumber && (may_be_negative || value >= 0.0)),
            "numbers are bounded");
  }
  for (size_t i = 0; problem.has_first && std::cmp_less(i, instance.n()); ++i)
    promise(*wrong_times(instance, i) == '\0', "a place closes no sooner than it opens");
  if (problem.has_capacity)
    promise(instance.capacity >= 0.0 && instance.capacity <= kLargestNumber, "a capacity is bounded");
  promise(!instance.has_id || !instance.id.empty(), "an id has characters");
  for (int i = 0; is_on_sphere(instance.metric) && i < instance.n(); ++i)
    promise(is_geographic(instance.first(i), instance.second(i)), "the sphere has latitudes and longitudes");
  promise(!instance.names || std::cmp_equal(instance.names->size(), instance.n()),
          "all items have names, or none");
  promise(instance.first_city < instance.n(), "tours begin at a city");
  Solution solution;
  if (problem.has_depot) {  // a vehicle for each customer
    for (int32_t customer = 1; customer < instance.n(); ++customer)
      solution.order.insert(solution.order.end(), {customer, 0});
  } else if (problem.has_all_items) {
    solution.order = quick_answer(instance).order;
  }
  const bool is_valid = validate_solution(instance, solution).empty();
  promise(is_valid || solution.violation > 0, "there is an answer");
  promise(std::isfinite(solution.objective) == is_valid && solution.objective >= 0.0,
          "an answer can be measured");
}

void check_instances(const InstanceBatch& instances) {
  promise(!instances.empty(), "a file has an instance");
  for (const Instance& instance : instances) check_instance(instance);
  const auto is_read_back = [](const Instance& i) { return i.has_coordinates() || is_graph(i.problem); };
  if (!std::ranges::all_of(instances, is_read_back)) return;  // where a matrix has no way JSON has null
  ReadOptions json;
  json.format = InputFormat::kJson;
  const InstanceBatch again = parse_instances(write_json(instances), kName, json).instances;
  const auto same = [](const Instance& a, const Instance& b) {
    return a.problem == b.problem && a.metric == b.metric && a.values == b.values && a.has_id == b.has_id &&
           (!a.has_id || a.id == b.id) && (!problem_of(a).has_capacity || a.capacity == b.capacity) &&
           (!is_graph(a.problem) || a.matrix->above == b.matrix->above) &&
           (a.names == nullptr) == (b.names == nullptr) && (!a.names || *a.names == *b.names) &&
           a.forced == b.forced && a.forbidden == b.forbidden && a.start == b.start && a.end == b.end;
  };
  promise(std::equal(instances.begin(), instances.end(), again.begin(), again.end(), same),
          "an instance written as JSON is read back");
}

template <InputFormat kFormat>
void read_format(std::string_view bytes) {
  ReadOptions options;
  options.format = kFormat;
  check_instances(parse_instances(bytes, kName, options).instances);
}

// As its numbers tell, and in every layout; what they tell is one that can be named.
void read_knapsack_text(std::string_view bytes) {
  std::vector<std::string> readings;  // [layouts] as JSON; empty: refused
  for (const LayoutName& name : knapsack_layouts()) {
    ReadOptions options;
    options.format = InputFormat::kKnapsackText;
    options.layout = name.layout;
    readings.emplace_back();
    try {
      const InstanceBatch instances = parse_instances(bytes, kName, options).instances;
      check_instances(instances);
      readings.back() = write_json(instances);
    } catch (const InputError& error) {
      check_message(error.what());
    }
  }
  const std::string& told = readings[0];
  if (told.empty()) throw InputError(kName, 0, "no layout");
  promise(std::find(readings.begin() + 1, readings.end(), told) != readings.end(), "the layout has a name");
}

// With what the user says of a table.
void read_csv_columns(std::string_view bytes) {
  ReadOptions options;
  options.format = InputFormat::kCsv;
  for (const char* columns : {"x,y", "1,2", "none"}) {
    options.columns = columns;
    options.metric = Metric::kHaversine;
    options.first_city = "1";
    try {
      check_instances(parse_instances(bytes, kName, options).instances);
    } catch (const InputError& error) {
      check_message(error.what());
    }
  }
}

// Whole and in pieces of seven bytes.
void read_json_text(std::string_view bytes) {
  bool is_taken = true;
  InputFile opened(bytes, kName);
  std::string_view rest = opened.read_rest();  // without a byte order mark
  const auto next_piece = [&] {
    const std::string piece(rest.substr(0, 7));
    rest.remove_prefix(piece.size());
    return piece;
  };
  InstanceBatch in_pieces;
  try {
    in_pieces = read_json(next_piece, kName, {}).instances;
  } catch (const InputError&) {
    is_taken = false;
  }
  try {
    InputFile file(bytes, kName);
    const InstanceBatch whole = parse_json(file, {}).instances;
    promise(is_taken && write_json(whole) == write_json(in_pieces), "pieces are read as the whole is");
    check_instances(whole);
  } catch (const InputError&) {
    promise(!is_taken, "pieces are refused as the whole is");
    throw;
  }
}

void read_npy_knapsack(std::string_view bytes) {
  ReadOptions options;
  options.format = InputFormat::kNpy;
  options.problem = ProblemKind::kKnapsack;
  options.capacity = 2.0;
  check_instances(parse_instances(bytes, kName, options).instances);
}

// An archive of .npy files, which stand in `bytes` one behind the other. Their CRCs are right.
std::string archive_of(std::string_view bytes, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& name : names) {
    const size_t end = bytes.find(kNpyMagic, 1);
    entries.emplace_back(name + ".npy", bytes.substr(0, end));
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end);
  }
  return zip_stored(entries);
}

void read_npz_arrays(std::string_view bytes) {
  const auto read = [&](const std::vector<std::string>& names) {
    return [&bytes, names] { read_format<InputFormat::kNpz>(archive_of(bytes, names)); };
  };
  any_of(read({"locs", "ids"}), read({"weights", "values", "capacity", "ids"}),
         read({"depot", "locs", "demand", "capacity", "ids"}));
}

// By an opened input, whose format the bytes tell; NDJSON line by line.
void read_input(std::string_view bytes) {
  InstanceInput input(file_of(bytes));
  if (!input.is_stream()) return check_instances(input.read_all().instances);
  while (const std::optional<InstanceLine> line = input.next_line()) {
    promise(line->instance.has_value() != line->error.has_value(), "a line is an instance or an error");
    if (line->instance) check_instance(*line->instance);
    if (line->error) check_message(line->error->what());
  }
}

// Less than a run's, so that a few bytes do not unpack to more than a target's memory.
constexpr size_t kMaxInput = size_t{16} << 20;

std::string rest_of(std::string_view bytes) { return std::string(InputFile(file_of(bytes)).read_rest()); }

void read_gzip(std::string_view bytes) {
  const std::string whole = rest_of(bytes);
  InputFile input(file_of(bytes));
  std::string joined_pieces;
  for (std::string piece = input.read_piece(); !piece.empty(); piece = input.read_piece())
    joined_pieces += piece;
  promise(joined_pieces == whole, "pieces are unpacked as the whole is");
  promise(whole.size() <= kMaxInput + 65536, "unpacked bytes are bounded");
  read_input(bytes);
}

// The bytes, packed as two members.
void read_packed_input(std::string_view bytes) {
  const size_t half = bytes.size() / 2;
  const std::string file = packed(bytes.substr(0, half), 1) + packed(bytes.substr(half), 0);
  promise(rest_of(file) == bytes, "what was packed is unpacked");
  read_input(file);
}

// ------------------------------------------------------------------ answers and rows

// Instances of four items that answers are read for: a tour and a packing, the tour alone, routes alone, a
// graph alone.
const InstanceBatch& tour_and_packing() {
  static const InstanceBatch instances = [] {
    Instance square, sack;
    square.values = {0, 0, 1, 0, 1, 1, 0, 1};
    sack.problem = ProblemKind::kKnapsack;
    sack.capacity = 2.0;
    sack.values = {1, 1, 1, 2, 1, 3, 2, 2};
    return InstanceBatch{square, sack};
  }();
  return instances;
}

const InstanceBatch& tour_alone() {
  static const InstanceBatch instances = {tour_and_packing()[0]};
  return instances;
}

const InstanceBatch& routes_alone() {
  static const InstanceBatch instances = [] {
    Instance routes;
    routes.problem = ProblemKind::kCvrp;
    routes.capacity = 10.0;
    routes.values = {0, 0, 0, 3, 4, 4, 6, 8, 6, -3, 4, 7};
    return InstanceBatch{routes};
  }();
  return instances;
}

const InstanceBatch& graph_alone() {
  static const InstanceBatch instances = {
      parse_instances(R"({"n":4,"edges":[[0,1],[1,2],[2,3]]})", kName).instances[0]};
  return instances;
}

template <OutputFormat kFormat>
void read_answers_to(const InstanceBatch& instances, std::string_view bytes) {
  const AnswerFormat& format = format_of_kind(answer_formats(), kFormat);
  const std::string file = kName + std::string(format.suffixes[0]);
  InputFile input(bytes, file);
  SolutionBatch solutions = format.parse(input, instances);
  promise(solutions.size() == instances.size(), "there is a solution for each instance");
  check_solutions(solutions, instances, file);
  for (const Solution& solution : solutions)
    promise(std::isfinite(solution.objective), "an answer can be measured");
}

template <OutputFormat kFormat>
void read_answers(std::string_view bytes) {
  const auto read = [&](const InstanceBatch& instances) {
    return [&bytes, &instances] { read_answers_to<kFormat>(instances, bytes); };
  };
  if constexpr (kFormat == OutputFormat::kTour) {
    read(tour_alone())();
  } else if constexpr (kFormat == OutputFormat::kRoutes) {
    read(routes_alone())();
  } else {
    any_of(read(tour_and_packing()), read(routes_alone()), read(graph_alone()));
  }
}

void read_npz_answer_arrays(std::string_view bytes) {
  const auto read = [&](const std::string& orders) {
    return [&bytes, orders] { read_answers<OutputFormat::kNpz>(archive_of(bytes, {orders, "costs"})); };
  };
  any_of(read("tours"), read("selections"), read("routes"), read("colours"));
}

void read_reference_file(std::string_view bytes) {
  const std::string path = file_of(bytes);
  const auto read = [&](const InstanceBatch& instances) {
    return [&path, &instances] {
      const std::vector<double> costs = read_reference(path, instances);
      promise(costs.size() == instances.size(), "there is a cost for each instance");
      for (const double cost : costs) promise(std::isfinite(cost) && cost >= 0.0, "a cost is 0 or more");
    };
  };
  any_of(read(tour_and_packing()), read(tour_alone()), read(routes_alone()), read(graph_alone()));
}

// ------------------------------------------------------------------ models and checkpoints

void check_model(const std::string& path) {
  const std::optional<ModelClaim> claim = peek_model(path);
  const Model model = read_model(path);
  promise(claim && claim->problem == model.config.problem && claim->n == model.config.n,
          "a model is what its header claims");
  promise(model.parameters.size() == ParameterLayout(model.config).size, "a model has its parameters");
  model_bytes(model.config, model.parameters, kName);
}

void read_model_file(std::string_view bytes) { check_model(file_of(bytes)); }

// The header, a newline and the first of the tensors' bytes: the rest are zeros, and length and checksum are
// right.
void read_sealed_model(std::string_view bytes) {
  constexpr uint64_t kLargest = 4 << 20;
  constexpr std::string_view kKey = "\"checksum\":\"";
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string header(bytes.substr(0, end));
  uint64_t size = 0;
  for (const SafetensorsEntry& tensor : parse_safetensors_json(header, kName).tensors)
    size = std::max(size, tensor.end);
  std::string data(bytes.substr(std::min(end + 1, bytes.size())));
  if (size <= kLargest) data.resize(size);
  std::string file;
  append_bytes(file, static_cast<uint64_t>(header.size()));
  file += header + data;
  const size_t place = file.find(kKey);
  if (place != std::string::npos && place + kKey.size() + 8 <= 8 + header.size()) {
    file.replace(place + kKey.size(), 8, 8, ' ');
    file.replace(place + kKey.size(), 8, printed("%08x", crc32c(file.data(), file.size())));
  }
  check_model(file_of(file));
}

std::vector<std::string> model_seeds() {
  std::vector<std::string> seeds;
  for (const Encoder encoder : {Encoder::kLstm, Encoder::kAttention}) {
    ModelConfig config;
    config.encoder = encoder;
    config.layers = 1;
    config.feed_forward = 16;
    config.has_prior = encoder == Encoder::kAttention;
    config.glimpses = 0;
    config.has_critic = false;
    seeds.push_back(model_bytes(config, initial_parameters(config, 1), kName));
  }
  return seeds;
}

std::vector<std::string> sealed_model_seeds() {
  std::vector<std::string> seeds = model_seeds();
  for (std::string& seed : seeds) {
    const auto length = static_cast<size_t>(load_bytes<uint64_t>(seed, 0));
    seed = seed.substr(8, length) + "\n" + seed.substr(8 + length, 64);
  }
  return seeds;
}

void read_checkpoint_file(std::string_view bytes) {
  const Checkpoint checkpoint = parse_checkpoint(bytes, kName);
  promise(checkpoint_bytes(checkpoint.options, checkpoint.state) == bytes,
          "a checkpoint is one that was written");
}

// The same with the right size and checksum.
void read_sealed_checkpoint(std::string_view bytes) {
  constexpr size_t kSizePlace = 12;
  std::string sealed(bytes.substr(0, bytes.size() - std::min<size_t>(bytes.size(), 8)));
  const uint64_t size = sealed.size() + 8;
  if (sealed.size() >= kSizePlace + 8) std::memcpy(sealed.data() + kSizePlace, &size, sizeof size);
  append_bytes(sealed, fnv1a(sealed));
  read_checkpoint_file(sealed);
}

std::vector<std::string> checkpoint_seeds() {
  std::vector<std::string> seeds;
  for (const Encoder encoder : {Encoder::kLstm, Encoder::kAttention}) {
    TrainOptions options;
    options.model.encoder = encoder;
    options.model.hidden = 1;
    options.model.layers = 1;
    options.model.feed_forward = 16;
    options.model.glimpses = 0;
    options.model.has_critic = false;
    TrainState state;
    state.parameters.assign(ParameterLayout(options.model).size, 0.5f);
    state.optimiser.first_moment = state.optimiser.second_moment = state.parameters;
    seeds.push_back(checkpoint_bytes(options, state));
  }
  return seeds;
}

// ------------------------------------------------------------------ settings

class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void read_config_text(std::string_view bytes) {
  static const std::vector<Command> commands = {solve_command(), train_command()};
  std::istringstream text{std::string(bytes)};
  try {
    for (const auto& [name, value] : read_config(text, kName, commands, commands[0])) {
      promise(commands[0].options->find(name) != nullptr, "a setting is an option's");
      promise(value.find('\0') == std::string::npos, "a value holds no NUL");
    }
  } catch (const UsageError& error) {
    throw Refused(error.what());
  }
}

void read_modes(std::string_view bytes) {
  const auto read = [&](ProblemKind problem) {
    return [&bytes, problem] {
      for (const EvalMode& mode : parse_eval_modes(std::string(bytes), problem, 100, 1)) {
        const SolveOptions& options = mode.options;
        promise(options.samples.value_or(1) >= 1 && options.steps.value_or(1) >= 1 &&
                    options.kicks.value_or(0) >= 0,
                "a mode's numbers are positive");
        promise(options.augment.value_or(1) == 1 || options.augment == 8, "an instance has 1 or 8 copies");
        promise(mode.temperature >= 1e-3 && mode.temperature <= 1e3, "a temperature is bounded");
      }
    };
  };
  any_of<UsageError>(read(ProblemKind::kTsp), read(ProblemKind::kKnapsack), read(ProblemKind::kCvrp));
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  constexpr size_t kModelMemory = size_t{64} << 20;  // its tensors, beside the header that is the input
  constexpr size_t kLargeMemory = size_t{64} << 20;  // of what a few bytes unpack to, or of a graph
  set_input_limit(kMaxInput);
  static const std::vector<FuzzTarget> targets = {
      {"tsplib", accepts<InputError, read_format<InputFormat::kTsplib>>},
      {"knapsack_text", accepts<InputError, read_knapsack_text>},
      {"json", accepts<InputError, read_json_text>, kLargeMemory},
      {"ndjson", accepts<InputError, read_format<InputFormat::kNdjson>>, kLargeMemory},
      {"npy", accepts<InputError, read_format<InputFormat::kNpy>>},
      {"npy_knapsack", accepts<InputError, read_npy_knapsack>},
      {"npz", accepts<InputError, read_format<InputFormat::kNpz>>},
      {"npz_arrays", accepts<InputError, read_npz_arrays>},
      {"csv", accepts<InputError, read_format<InputFormat::kCsv>>},
      {"csv_columns", accepts<InputError, read_csv_columns>},
      {"matrix", accepts<InputError, read_format<InputFormat::kMatrix>>},
      {"timed_text", accepts<InputError, read_format<InputFormat::kTimedText>>},
      {"graph_text", accepts<InputError, read_format<InputFormat::kGraphText>>, kLargeMemory},
      {"lines", accepts<InputError, read_format<InputFormat::kTourLines>>},
      {"input", accepts<InputError, read_input>, kLargeMemory},
      {"gzip", accepts<InputError, read_gzip>, kLargeMemory},
      {"gzip_packed", accepts<InputError, read_packed_input>, kLargeMemory},
      {"tour", accepts<InputError, read_answers<OutputFormat::kTour>>},
      {"sol", accepts<InputError, read_answers<OutputFormat::kRoutes>>},
      {"json_answers", accepts<InputError, read_answers<OutputFormat::kJson>>},
      {"ndjson_answers", accepts<InputError, read_answers<OutputFormat::kNdjson>>},
      {"npy_answers", accepts<InputError, read_answers<OutputFormat::kNpy>>},
      {"npz_answers", accepts<InputError, read_npz_answer_arrays>},
      {"reference", accepts<InputError, read_reference_file>},
      {"model", accepts<ModelFileError, read_model_file>, kModelMemory, model_seeds},
      {"model_sealed", accepts<ModelFileError, read_sealed_model>, kModelMemory, sealed_model_seeds},
      {"checkpoint", accepts<CheckpointError, read_checkpoint_file>, size_t{1} << 20, checkpoint_seeds},
      {"checkpoint_sealed", accepts<CheckpointError, read_sealed_checkpoint>, size_t{1} << 20,
       checkpoint_seeds},
      {"config", accepts<Refused, read_config_text>},
      {"modes", accepts<UsageError, read_modes>}};
  return targets;
}

const FuzzTarget* find_fuzz_target(const std::string& name) {
  const auto found = std::find_if(fuzz_targets().begin(), fuzz_targets().end(),
                                  [&](const FuzzTarget& target) { return target.name == name; });
  return found == fuzz_targets().end() ? nullptr : &*found;
}

}  // namespace pointsman
