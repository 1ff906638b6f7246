// SPDX-License-Identifier: Apache-2.0
// `pointsman bench decode`: the engine beside its PyTorch twin, on one core, in turns, correctness first.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <numeric>

#include "engine/backend/backend.h"
#include "engine/problem/generate.h"
#include "host/command/command.h"
#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/command/model_lookup.h"
#include "host/command/output.h"
#include "host/command/temporary_folder.h"
#include "host/command/torch_twin.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  pointsman bench decode                n = 20, 50, 100 on one core beside PyTorch, then two threads against one
  pointsman bench decode --json -o bench.json
  pointsman bench decode --torch none   without the twin
Rates are tours a second of CPU time; rates and ratios are medians of turns, spread is (most - least) / median.
Answers are compared with the twin's before anything is timed: a difference ends the bench with exit code 5.)";

constexpr int kTrainBatch = 128;
constexpr int kScored = 32;  // sampled tours whose log p the twin recomputes

struct BenchFlags {
  std::vector<std::string> names = {"decode"};
  bool json = false;
  std::string torch, twin, model;
  int turns = 5;
  double seconds = 0.5;
};

// One size of the bench: what is decoded and how many at once.
struct Size {
  int n, samples, greedy;
};
constexpr Size kSizes[] = {{20, 1024, 256}, {50, 512, 256}, {100, 256, 128}};
constexpr int kInstances = 256;

// An answer that differs from the twin's.
class CheckFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Keeps this process, and the children it starts meanwhile, on the last of its cores.
struct OneCore {
  OneCore() {
    sched_getaffinity(0, sizeof before, &before);
    for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
      if (!CPU_ISSET(core, &before)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
  ~OneCore() { sched_setaffinity(0, sizeof before, &before); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

  cpu_set_t before;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double spread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / median(values);
}

// --- The engine's side ---

// The engine with a model and the instances of one size, and what the last call left.
struct Decoder {
  Decoder(const BackendOptions& options, const ModelConfig& config, const std::vector<float>& parameters,
          int size, uint64_t base_seed)
      : n(size),
        seed(base_seed),
        features(size_t{2} * static_cast<size_t>(size) * kInstances),
        keys(kInstances),
        backend(make_backend(options)) {
    backend->configure(config, 1);
    backend->load_parameters(0, parameters);
    generate_features(n, seed, 0, kInstances, features.data());
    std::iota(keys.begin(), keys.end(), uint64_t{0});
  }

  void greedy(int count) {
    RolloutRequest request;
    request.sequences = batch(count);
    backend->rollout(request, result);
  }

  // `samples` tours of each of the first `count` instances; new ones with each call.
  void sample(int count, int32_t samples) {
    const std::vector<int32_t> counts(count, samples);
    RolloutRequest request;
    request.sequences = batch(count);
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = keys.data();
    request.seed = seed + ++draws;
    backend->rollout(request, result);
  }

  // d/dparameters of mean((b - L)^2) + sum of (L - b) / count x log p over the last result, one tour an
  // instance.
  void add_gradient(int count, Tape* from) {
    targets.assign(result.costs.begin(), result.costs.end());
    values.resize(count);
    weights.resize(count);
    const SequenceBatch sequences = batch(count);
    backend->critic_gradient(sequences, targets, 1.0f / static_cast<float>(count), values);
    for (int s = 0; s < count; ++s) weights[s] = (targets[s] - values[s]) / static_cast<float>(count);
    GradientRequest request;
    request.sequences = sequences;
    request.orders = result.orders.data();
    request.weights = weights.data();
    request.tape = from;
    backend->gradient(request);
  }

  // Algorithm 1 of Bello et al., as `train` runs it: sample, critic, both gradients, clip, Adam.
  void train_step(int count) {
    RolloutRequest request;
    request.sequences = batch(count);
    request.decode = Decode::kSample;
    request.instance_keys = keys.data();
    request.seed = seed + ++draws;
    request.tape = &tape;
    backend->rollout(request, result);
    add_gradient(count, &tape);
    UpdateRequest update;
    update.critic = true;
    backend->update(0, 1, update);
  }

  SequenceBatch batch(int count) const {
    SequenceBatch sequences;
    sequences.n = n;
    sequences.count = count;
    sequences.features = features.data();
    return sequences;
  }

  int n;
  uint64_t seed, draws = 0;
  std::vector<float> features;  // [kInstances][n][2]
  std::vector<uint64_t> keys;   // [kInstances]
  std::unique_ptr<Backend> backend;
  RolloutResult result;
  Tape tape;
  std::vector<float> targets, values, weights;  // of the last gradient: L, b, (L - b) / count
};

struct Task {
  const char* name;
  int Size::*batch;  // null: kTrainBatch

  int batch_of(const Size& size) const { return batch ? size.*batch : kTrainBatch; }
};
constexpr Task kTasks[] = {
    {"decode_sample", &Size::samples}, {"decode_greedy", &Size::greedy}, {"train_step", nullptr}};

void run_task(Decoder& decoder, const Task& task, const Size& size) {
  if (task.batch == &Size::samples) decoder.sample(1, size.samples);
  if (task.batch == &Size::greedy) decoder.greedy(size.greedy);
  if (task.batch == nullptr) decoder.train_step(kTrainBatch);
}

// Tours a second over at least `seconds` of the clock.
double rate_of(Decoder& decoder, const Task& task, const Size& size, double seconds, double (*clock)()) {
  const double start = clock();
  int64_t tours = 0;
  double spent = 0.0;
  do {
    run_task(decoder, task, size);
    tours += task.batch_of(size);
    spent = clock() - start;
  } while (spent < seconds);
  return static_cast<double>(tours) / spent;
}

// --- Correctness ---

std::string text_of(const char* format, double a, double b) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

void check_close(const std::string& what, double ours, double theirs) {
  if (std::abs(ours - theirs) <= 1e-5 * std::max(1.0, std::abs(theirs))) return;
  throw CheckFailure(what + text_of(" %.9g, the twin's %.9g", ours, theirs));
}

Json rows_of(const std::vector<int32_t>& orders, int n, int count) {
  Json rows = Json::array();
  for (int r = 0; r < count; ++r) {
    rows.push_back(std::vector<int32_t>(orders.begin() + r * n, orders.begin() + (r + 1) * n));
  }
  return rows;
}

// Each choice must be the twin's most probable one, up to the rounding of two equally probable cities.
void check_greedy(Decoder& decoder, TorchTwin& twin, const Size& size) {
  decoder.greedy(kInstances);
  const RolloutResult& ours = decoder.result;
  const nlohmann::json judged =
      twin.ask({{"do", "judge_greedy"}, {"orders", rows_of(ours.orders, size.n, kInstances)}});
  for (size_t s = 0; s < kInstances; ++s) {
    const double worst = judged["worst"][s];
    if (!(worst <= 1e-4))
      throw CheckFailure(text_of("greedy: tour %.0f, a choice %.6g off", static_cast<double>(s), worst));
    check_close("greedy: log p", ours.log_probs[s], judged["log_probs"][s]);
  }
}

void check_sample(Decoder& decoder, TorchTwin& twin, const Size& size) {
  decoder.sample(1, kScored);
  const RolloutResult& ours = decoder.result;
  const nlohmann::json theirs =
      twin.ask({{"do", "score"}, {"orders", rows_of(ours.orders, size.n, kScored)}});
  for (size_t r = 0; r < kScored; ++r)
    check_close("sampling: log p", ours.log_probs[r], theirs["log_probs"][r]);
}

double largest(const float* values, size_t size) {
  double result = 0.0;
  for (size_t k = 0; k < size; ++k) result = std::max(result, static_cast<double>(std::abs(values[k])));
  return result;
}

// Two float32 gradients: 1e-3 of the tensor's largest magnitude, plus the rounding of what cancels in tensors
// whose gradient is next to nothing at the initial weights.
void compare_gradients(const ParameterLayout& layout, const std::vector<float>& ours,
                       const std::vector<float>& theirs) {
  for (const Tensor& slot : layout.tensors) {
    const bool actor = slot.offset < layout.actor_size;
    const size_t first = actor ? 0 : layout.actor_size, last = actor ? layout.actor_size : layout.size;
    const double bound =
        1e-3 * largest(&theirs[slot.offset], slot.size) + 1e-6 * largest(&theirs[first], last - first);
    for (size_t k = slot.offset; k < slot.offset + slot.size; ++k) {
      if (!(std::abs(static_cast<double>(ours[k]) - static_cast<double>(theirs[k])) <= bound)) {
        throw CheckFailure(slot.name + text_of(": gradient %.6g, the twin's %.6g",
                                               static_cast<double>(ours[k]), static_cast<double>(theirs[k])));
      }
    }
  }
}

void check_gradient(Decoder& decoder, TorchTwin& twin, const ModelConfig& config, const Size& size,
                    const std::filesystem::path& folder) {
  const ParameterLayout layout(config);
  decoder.greedy(kScored);
  decoder.add_gradient(kScored, nullptr);
  std::vector<float> ours(layout.size), theirs(layout.size);
  decoder.backend->read_gradient(0, ours);
  const std::filesystem::path file = folder / "gradient.bin";
  const nlohmann::json answer = twin.ask({{"do", "gradient"},
                                          {"orders", rows_of(decoder.result.orders, size.n, kScored)},
                                          {"weights", decoder.weights},
                                          {"targets", decoder.targets},
                                          {"out", file.string()}});
  for (size_t s = 0; s < kScored; ++s) {
    check_close("critic: value", static_cast<double>(decoder.values[s]), answer["values"][s]);
  }
  std::ifstream stream(file, std::ios::binary);
  for (const std::string name : answer["names"]) {
    const auto slot = std::find_if(layout.tensors.begin(), layout.tensors.end(),
                                   [&](const Tensor& tensor) { return tensor.name == name; });
    stream.read(reinterpret_cast<char*>(&theirs[slot->offset]),
                static_cast<std::streamsize>(slot->size * sizeof(float)));
  }
  compare_gradients(layout, ours, theirs);
}

// --- Rows ---

struct BenchModel {
  ModelConfig config;
  std::vector<float> parameters;
};

// What a run of the command carries around.
struct Bench {
  const BenchFlags& flags;
  const CommonOptions& common;
  SearchControl control;
  BenchModel model;
  TemporaryFolder folder = {};
  Json rows = Json::array();

  bool goes_on() const { return control.check() == Status::kDone; }

  Decoder decoder(int threads, const Size& size) const {
    BackendOptions options = backend_options(common);
    options.threads = threads;
    return Decoder(options, model.config, model.parameters, size.n, common.seed);
  }

  void add_row(const Json& row) {
    log_info("%s", row.dump().c_str());
    rows.push_back(row);
  }
};

// -m's model with a fresh critic when it has none, or a fresh one, whose spread-out policy shares the least
// work.
BenchModel bench_model(const BenchFlags& flags, uint64_t seed) {
  BenchModel model;
  if (!flags.model.empty()) model.config = read_model(find_model(flags.model)).config;
  if (model.config.problem != ProblemKind::kTsp)
    throw UsageError("--model: bench decode needs a model for tsp");
  model.config.has_critic = true;
  model.parameters = initial_parameters(model.config, seed);
  if (!flags.model.empty()) {
    const std::vector<float> read = read_model(find_model(flags.model)).parameters;
    std::copy(read.begin(), read.end(), model.parameters.begin());
  }
  return model;
}

// Null when the run was stopped meanwhile.
Json measure_row(const Bench& bench, Decoder& decoder, TorchTwin* twin, const Task& task, const Size& size) {
  const BenchFlags& flags = bench.flags;
  const int batch = task.batch_of(size);
  std::vector<double> ours, torch, ratios;
  double peak = 0.0;
  nlohmann::json answer;
  run_task(decoder, task, size);  // warm-up; the twin makes its own while it chooses its chunk
  const PolicyStatistics statistics = decoder.result.statistics;
  for (int turn = 0; turn < flags.turns && bench.goes_on(); ++turn) {
    peak = std::max(peak, decoder.backend->measure_fma_peak());
    ours.push_back(rate_of(decoder, task, size, flags.seconds, cpu_seconds));
    if (!twin) continue;
    answer = twin->ask({{"do", "time"}, {"task", task.name}, {"batch", batch}, {"seconds", flags.seconds}});
    torch.push_back(answer["calls_per_second"].get<double>() * batch);
    ratios.push_back(ours.back() / torch.back());
  }
  if (!bench.goes_on()) return nullptr;
  Json row = {{"name", task.name},
              {"n", size.n},
              {"batch", batch},
              {"ours", median(ours)},
              {"torch", nullptr},
              {"ratio", nullptr},
              {"per_gflops", median(ours) / peak},
              {"spread", spread(ours)},
              {"fma_peak_gflops", peak},
              {"evaluations_per_step",
               static_cast<double>(statistics.evaluations) / static_cast<double>(statistics.steps)}};
  if (twin) {
    row["torch"] = median(torch);
    row["ratio"] = median(ratios);  // of what stood side by side: a machine's speed drifts
    row["torch_spread"] = spread(torch);
    row["torch_chunk"] = answer["chunk"];
  }
  return row;
}

// Compares all answers of one size with the twin's. Throws CheckFailure.
void check_size(const Bench& bench, Decoder& decoder, TorchTwin& twin, const Size& size) {
  const std::filesystem::path file = bench.folder.path / "features.bin";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(decoder.features.data()),
             static_cast<std::streamsize>(decoder.features.size() * sizeof(float)));
  twin.ask({{"do", "load"}, {"features", file.string()}, {"count", kInstances}, {"n", size.n}});
  check_greedy(decoder, twin, size);
  check_sample(decoder, twin, size);
  check_gradient(decoder, twin, bench.model.config, size, bench.folder.path);
  log_info("n = %d: tours, log p, critic and gradients agree with the twin's", size.n);
}

// All tasks of one size on one core.
void bench_size(Bench& bench, TorchTwin* twin, const Size& size) {
  Decoder decoder = bench.decoder(1, size);
  if (twin) check_size(bench, decoder, *twin, size);
  for (const Task& task : kTasks) {
    decoder.backend->load_parameters(0, bench.model.parameters);  // forgets gradients and training
    const Json row = measure_row(bench, decoder, twin, task, size);
    if (row.is_null()) return;
    bench.add_row(row);
  }
}

// More threads against one, by the wall clock, n = 50.
void bench_threads(Bench& bench) {
  const int threads = bench.common.threads > 1 ? bench.common.threads : 2;
  if (sysconf(_SC_NPROCESSORS_ONLN) < threads) return;
  const Size size = kSizes[1];
  const double seconds = bench.flags.seconds;
  Decoder one = bench.decoder(1, size), many = bench.decoder(threads, size);
  for (const Task& task : kTasks) {
    std::vector<double> rates_one, rates_many, ratios;
    for (int turn = 0; turn < bench.flags.turns && bench.goes_on(); ++turn) {
      rates_one.push_back(rate_of(one, task, size, seconds, wall_seconds));
      rates_many.push_back(rate_of(many, task, size, seconds, wall_seconds));
      ratios.push_back(rates_many.back() / rates_one.back());
    }
    if (!bench.goes_on()) return;
    bench.add_row({{"name", std::string(task.name) + "_threads"},
                   {"n", size.n},
                   {"batch", task.batch_of(size)},
                   {"threads", threads},
                   {"ours", median(rates_many)},
                   {"torch", nullptr},
                   {"one_thread", median(rates_one)},
                   {"ratio", median(ratios)},
                   {"per_gflops", nullptr},
                   {"spread", spread(rates_many)}});
  }
}

// --- The answer ---

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

std::string table(const Json& answer) {
  char line[200];
  std::string text;
  std::snprintf(line, sizeof line, "%s, %d cores, %s; fma peak %.1f GFLOP/s of one thread\n",
                answer["machine"]["cpu"].get<std::string>().c_str(), answer["machine"]["cores"].get<int>(),
                answer["machine"]["device"].get<std::string>().c_str(),
                answer["fma_peak_gflops"].get<double>());
  text += line;
  text += "torch: " +
          (answer["torch"].is_string() ? answer["torch"].get<std::string>() : answer["torch"].dump()) + "\n";
  std::snprintf(line, sizeof line, "%-22s %4s %6s %12s %12s %8s %10s %7s %6s\n", "name", "n", "batch",
                "tours/s", "torch", "ratio", "per GFLOP", "spread", "eval");
  text += line;
  const auto number = [](const Json& row, const char* key, const char* format) {
    char cell[32] = "-";
    if (row.contains(key) && row[key].is_number())
      std::snprintf(cell, sizeof cell, format, row[key].get<double>());
    return std::string(cell);
  };
  for (const Json& row : answer["rows"]) {
    std::snprintf(line, sizeof line, "%-22s %4d %6d %12s %12s %8s %10s %7s %6s\n",
                  row["name"].get<std::string>().c_str(), row["n"].get<int>(), row["batch"].get<int>(),
                  number(row, "ours", "%.1f").c_str(), number(row, "torch", "%.1f").c_str(),
                  number(row, "ratio", "%.2f").c_str(), number(row, "per_gflops", "%.2f").c_str(),
                  number(row, "spread", "%.2f").c_str(), number(row, "evaluations_per_step", "%.3f").c_str());
    text += line;
  }
  return text +
         "A row *_threads is by the wall clock; its ratio is to one thread. eval: network evaluations a "
         "step; "
         "below 1 where samples share a prefix.\n";
}

Json machine(const CommonOptions& common) {
  BackendOptions options = backend_options(common);
  options.threads = 1;
  return {{"cpu", processor_name()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"device", device_text(make_backend(options)->info())}};
}

// Starts the twin, or says in answer["torch"] why there is none.
std::unique_ptr<TorchTwin> start_twin(const BenchFlags& flags, const std::filesystem::path& model,
                                      Json& answer) {
  const std::filesystem::path script =
      flags.twin.empty() ? default_twin_script() : std::filesystem::path(flags.twin);
  const std::string python = flags.torch == "none" ? "" : find_torch_python(flags.torch);
  std::string skipped;
  if (flags.torch == "none") {
    skipped = "skipped: --torch none";
  } else if (!std::filesystem::is_regular_file(script)) {
    skipped = "skipped: no " + script.string() + "; name it with --twin";
  } else if (python.empty()) {
    skipped = "skipped: no python3 with torch and numpy; name one with --torch";
  }
  if (!skipped.empty()) {
    log_warning("PyTorch twin %s", skipped.c_str());
    answer["torch"] = skipped;
    return nullptr;
  }
  auto twin = std::make_unique<TorchTwin>(python, script, model);
  answer["torch"] = twin->settings();
  return twin;
}

int run_bench(const BenchFlags& flags, CommonOptions& common) {
  if (flags.json) common.format = "json";
  OutputFile file = open_output(common);
  Bench bench{flags, common, search_control(common), bench_model(flags, common.seed)};
  const std::filesystem::path model = bench.folder.path / "model.safetensors";
  write_model(model, bench.model.config, bench.model.parameters);
  Json answer = {{"code", 0}, {"machine", machine(common)}, {"fma_peak_gflops", 0.0}, {"torch", nullptr}};
  int code = kExitDone;
  try {
    {
      const OneCore pinned;
      const auto twin = start_twin(flags, model, answer);
      for (const Size& size : kSizes) {
        if (bench.goes_on()) bench_size(bench, twin.get(), size);
      }
    }
    double peak = 0.0;
    for (const Json& row : bench.rows) peak = std::max(peak, row["fma_peak_gflops"].get<double>());
    answer["fma_peak_gflops"] = peak;
    if (bench.goes_on()) bench_threads(bench);
    code = interrupt_exit_code();
  } catch (const CheckFailure& failure) {
    log_error(std::string("bench check failed: ") + failure.what());
    answer["error"] = failure.what();
    code = kExitCheck;
  }
  answer["code"] = code;
  answer["rows"] = bench.rows;
  write_answer(file, common, answer, table(answer));
  return code;
}

}  // namespace

Command add_bench(CLI::App& parent) {
  auto flags = std::make_shared<BenchFlags>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* app =
      parent.add_subcommand("bench", "Measure this machine, beside PyTorch where it is installed");
  app->footer(kExamples);
  app->add_option("name", flags->names, "What to measure: decode")
      ->check(CLI::IsMember(std::vector<std::string>{"decode"}));
  add_flag(*app, "--json", flags->json, "The same as --format json");
  add_option(*app, "-m,--model", flags->model, "A TSP model (path or name); default: fresh parameters");
  add_option(*app, "--torch", flags->torch,
             "Python with torch and numpy, or none; default: python3, then "
             "/usr/bin/python3");
  add_option(*app, "--twin", flags->twin,
             "The twin's script; default: bench/torch_twin.py of the source tree");
  add_option(*app, "--turns", flags->turns, "Times that each side is measured")->check(CLI::Range(1, 1000));
  add_option(*app, "--seconds", flags->seconds, "CPU seconds of one measurement, at least")
      ->check(CLI::Range(0.01, 600.0));
  add_common_options(*app, *common, {"json", "text"});
  return {app, common, [=] { return run_bench(*flags, *common); }};
}

}  // namespace pointsman
