// SPDX-License-Identifier: Apache-2.0
// Times the engine's own calls on one device by the wall clock, transfers included: samples of one instance,
// greedy tours of many, a training step, active search of many instances at once. Tours are compared with the
// CPU's first, and with the PyTorch twin's where there is one.
//
//   bench_search --device cuda                          sizes for a GPU
//   bench_search --device cuda --torch python3 torch    the twin on the same GPU
//   bench_search --device cpu --small                   sizes that one core bears
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "bench/measure.h"
#include "bench/search/make_instances.h"
#include "engine/backend/backend.h"
#include "engine/problem/generate.h"
#include "engine/search/search.h"
#include "host/command/temporary_folder.h"
#include "host/command/torch_twin.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"

namespace pointsman::bench {

namespace {

struct Sizes {
  std::vector<int> samples;    // of one instance
  int greedy;                  // instances
  std::vector<int> batches;    // of a training step
  std::vector<int> instances;  // active search at once
  double seconds;              // of a row
};
const Sizes kFull = {{1280, 65536, 1280000}, 10000, {128, 1024}, {1, 8, 32, 132, 264, 1024}, 0.5};
const Sizes kSmall = {{128}, 32, {8}, {1, 2}, 0.1};
constexpr int kItems[] = {20, 50, 100};
constexpr int kCompared = 64;  // tours of a comparison
constexpr int kReplicas = 128, kActiveSteps = 6, kWarmSteps = 2;
constexpr uint64_t kSeed = 1234;

struct Options {
  std::string device = "cuda", torch = "python3";
  std::vector<std::string> tasks;  // empty: all
  bool small = false;

  const Sizes& sizes() const { return small ? kSmall : kFull; }
  bool wants(const std::string& task) const {
    return tasks.empty() || std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  }
};

constexpr const char* kTasks[] = {"compare", "sample", "greedy", "train", "active", "torch"};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A synchronous call by the wall clock; two calls warm up.
template <typename Call>
Timing time_call(Call&& call, double seconds) {
  const auto once = [&] {
    const double start = now_ms();
    call();
    return now_ms() - start;
  };
  once();
  std::vector<double> ms(static_cast<size_t>(runs_for(once(), seconds)));
  for (double& value : ms) value = once();
  return timing_of(ms);
}

// A device with fresh parameters and instances of one size.
struct Caller {
  Caller(const std::string& device, int size, int count)
      : n(size),
        features(make_instances(device, size, kSeed, count)),
        keys(count),
        backend(make_backend({device, 0})) {
    backend->configure(config, 1);
    backend->load_parameters(0, initial_parameters(config, kSeed));
    std::iota(keys.begin(), keys.end(), uint64_t{0});
  }

  SequenceBatch batch(int count) const {
    SequenceBatch sequences;
    sequences.n = n;
    sequences.count = count;
    sequences.features = features.data();
    return sequences;
  }

  void greedy(int count) {
    RolloutRequest request;
    request.sequences = batch(count);
    backend->rollout(request, result);
  }

  // `samples` tours of each of the first `count` instances.
  void sample(int count, int32_t samples, bool onto_tape = false, bool best_only = false) {
    const std::vector<int32_t> counts(count, samples);
    RolloutRequest request;
    request.sequences = batch(count);
    request.decode = Decode::kSample;
    request.counts = onto_tape ? nullptr : counts.data();
    request.instance_keys = keys.data();
    request.seed = kSeed;
    request.tape = onto_tape ? &tape : nullptr;
    request.best_only = best_only;
    backend->rollout(request, result);
  }

  // Algorithm 1 of Bello et al.: sample, critic, both gradients, clip, Adam.
  void train_step(int count) {
    sample(count, 1, true);
    std::vector<float> targets(result.costs.begin(), result.costs.end()), values(count), weights(count);
    backend->critic_gradient(batch(count), targets, 1.0f / static_cast<float>(count), values);
    for (int s = 0; s < count; ++s) weights[s] = (targets[s] - values[s]) / static_cast<float>(count);
    GradientRequest request;
    request.sequences = batch(count);
    request.orders = result.orders.data();
    request.weights = weights.data();
    request.tape = &tape;
    backend->gradient(request);
    UpdateRequest update;
    update.critic = true;
    backend->update(0, 1, update);
  }

  int n;
  ModelConfig config;  // one glimpse, with a critic
  std::vector<float> features;
  std::vector<uint64_t> keys;
  std::unique_ptr<Backend> backend;
  RolloutResult result;
  Tape tape;
};

// The fma peak is measured, the memory's rate is an H200's: no row here is near its floor in bytes. Zeros on
// a CPU, whose units are not those of bench/floors.h.
Peaks peaks_of(Backend& backend, const std::string& device) {
  if (device == "cpu") return {};
  return {1e9 * backend.measure_fma_peak() / 2.0, 4.0e12};
}

// --- Comparisons ---

// The same tours from the same seeds, log p within 1e-5.
void compare_with_cpu(const Options& options, int n) {
  Caller ours(options.device, n, kCompared), cpu("cpu", n, kCompared);
  Json row = row_of("same_tours", options.device + " against cpu", n, 2 * kCompared);
  double worst = 0.0;
  int different = 0;
  const auto compare = [&] {
    for (size_t r = 0; r < cpu.result.log_probs.size(); ++r) {
      worst = std::max(worst, std::abs(ours.result.log_probs[r] - cpu.result.log_probs[r]));
      const auto first = cpu.result.orders.begin() + static_cast<int64_t>(r) * n;
      different += !std::equal(first, first + n, ours.result.orders.begin() + static_cast<int64_t>(r) * n);
    }
  };
  for (Caller* caller : {&ours, &cpu}) caller->greedy(kCompared);
  compare();
  for (Caller* caller : {&ours, &cpu}) caller->sample(1, kCompared);
  compare();
  row.update(Json{{"different", different}, {"error", worst}, {"pass", different == 0 && worst <= 1e-5}});
  print_row(row);
}

// The PyTorch twin on the same device; null when there is none, with a row that says why.
std::unique_ptr<TorchTwin> start_twin(const Options& options, const std::filesystem::path& folder) {
  const auto skip = [](const std::string& why) {
    print_skipped(row_of("torch", "torch", 0, 0), why);
    return nullptr;
  };
  const std::string python = find_torch_python(options.torch);
  if (python.empty()) return skip("no " + options.torch + " with torch and numpy");
  const ModelConfig config;
  write_model(folder / "model.safetensors", config, initial_parameters(config, kSeed));
  auto twin = std::make_unique<TorchTwin>(python, default_twin_script(), folder / "model.safetensors");
  Json row = row_of("torch", "torch", 0, 0);
  row["settings"] = twin->settings();
  if (options.device != "cpu") {
    const nlohmann::json moved = twin->ask({{"do", "device"}, {"name", "cuda"}});
    if (moved.contains("skipped")) return skip(moved["skipped"]);
    row["settings"]["device"] = moved["name"];
  }
  print_row(row);
  return twin;
}

Json rows_of(const std::vector<int32_t>& orders, int n, int count) {
  Json rows = Json::array();
  for (int r = 0; r < count; ++r) {
    rows.push_back(std::vector<int32_t>(orders.begin() + r * n, orders.begin() + (r + 1) * n));
  }
  return rows;
}

// Each choice of greedy tours must be the twin's most probable one, log p of greedy and sampled tours the
// same.
bool agrees_with_twin(Caller& caller, TorchTwin& twin) {
  const int n = caller.n;
  double off = 0.0, error = 0.0;
  const auto compare = [&](const nlohmann::json& theirs) {
    for (int r = 0; r < kCompared; ++r) {
      const double value = theirs["log_probs"][r];
      error = std::max(error, std::abs(caller.result.log_probs[r] - value) / std::max(1.0, std::abs(value)));
    }
  };
  caller.greedy(kCompared);
  const nlohmann::json judged =
      twin.ask({{"do", "judge_greedy"}, {"orders", rows_of(caller.result.orders, n, kCompared)}});
  for (const nlohmann::json& worst : judged["worst"]) off = std::max(off, worst.get<double>());
  compare(judged);
  caller.sample(1, kCompared);
  compare(twin.ask({{"do", "score"}, {"orders", rows_of(caller.result.orders, n, kCompared)}}));
  const bool pass = off <= 1e-4 && error <= 1e-5;
  Json row = row_of("same_as_torch", "torch", n, kCompared);
  row.update(Json{{"greedy_off", off}, {"error", error}, {"pass", pass}});
  print_row(row);
  return pass;
}

// --- Tasks ---

void print_measured(const Json& row, const Timing& timing, Work work, Peaks peaks) {
  if (peaks.fp32 > 0.0) {
    print_timing(row, timing, work, peaks);
  } else {
    print_timing(row, timing);
  }
}

void print_tours(Json row, const Timing& timing, int tours, Work work, Peaks peaks) {
  row["tours_per_second"] = 1e3 * tours / timing.median_ms;
  print_measured(row, timing, work, peaks);
}

void bench_sample(const Options& options, Caller& caller, Peaks peaks) {
  for (const int samples : options.sizes().samples) {
    const double n = caller.n;
    for (const bool best_only : {false, true}) {
      const Timing timing =
          time_call([&] { caller.sample(1, samples, false, best_only); }, options.sizes().seconds);
      print_tours(
          row_of(best_only ? "search_sample_best" : "search_sample", options.device, caller.n, samples),
          timing, samples,
          lstm_forward_work(1, n, false) + project_references_work(1, n, 3) + decode_work(samples, n, false),
          peaks);
    }
  }
}

void bench_greedy(const Options& options, Caller& caller, Peaks peaks) {
  const int count = options.sizes().greedy;
  const Timing timing = time_call([&] { caller.greedy(count); }, options.sizes().seconds);
  const double n = caller.n;
  print_tours(row_of("search_greedy", options.device, caller.n, count), timing, count,
              lstm_forward_work(count, n, false) + project_references_work(count, n, 3) +
                  decode_work(count, n, false),
              peaks);
}

void bench_train(const Options& options, Caller& caller, Peaks peaks) {
  const ParameterLayout layout(caller.config);
  const double actor = static_cast<double>(layout.actor_size),
               critic = static_cast<double>(layout.size - layout.actor_size);
  for (const int batch : options.sizes().batches) {
    const Timing timing = time_call([&] { caller.train_step(batch); }, options.sizes().seconds);
    print_tours(row_of("train_step", options.device, caller.n, batch), timing, batch,
                actor_step_work(batch, caller.n, 1, actor) + critic_step_work(batch, caller.n, critic),
                peaks);
  }
}

// Milliseconds of each step of active search over `count` instances at once, after the first few.
std::vector<double> active_steps(Backend& backend, const ModelConfig& config, int n, int count,
                                 int replicas) {
  const InstanceBatch instances = generate_instances(ProblemKind::kTsp, n, kSeed, 0, count);
  std::vector<uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), uint64_t{0});
  ActiveSearchOptions options;
  options.steps = kWarmSteps + kActiveSteps + 1;  // the last step draws only
  options.batch = replicas;
  options.seed = kSeed;
  options.instances_at_once = count;
  std::vector<double> ms;
  double last = now_ms();
  active_search(backend, config, initial_parameters(config, kSeed), instances, keys, options, {},
                [&](const ActiveSearchProgress& progress) {
                  if (progress.instance != count - 1) return;
                  if (progress.step > kWarmSteps && progress.step < options.steps)
                    ms.push_back(now_ms() - last);
                  last = now_ms();
                });
  return ms;
}

void bench_active(const Options& options, Caller& caller, Peaks peaks) {
  ModelConfig config;
  config.has_critic = false;
  const int replicas = options.small ? 8 : kReplicas;
  const double parameters = static_cast<double>(ParameterLayout(config).size);
  for (const int count : options.sizes().instances) {
    Json row = row_of("active_step", options.device, caller.n, count);
    try {
      const Timing timing = timing_of(active_steps(*caller.backend, config, caller.n, count, replicas));
      row["instance_steps_per_second"] = 1e3 * count / timing.median_ms;
      print_measured(row, timing, actor_step_work(1.0 * count * replicas, caller.n, count, parameters),
                     peaks);
    } catch (const std::exception& failure) {
      print_skipped(row, failure.what());
    }
  }
}

// The twin's rows of some of its variants, after it agreed with ours.
void bench_torch(const Options& options, Caller& caller, TorchTwin& twin, const std::filesystem::path& folder,
                 const std::vector<const char*>& variants) {
  const int samples = options.small ? 128 : 65536, greedy = options.sizes().greedy;
  const std::filesystem::path file = folder / "features.bin";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(caller.features.data()),
             static_cast<std::streamsize>(caller.features.size() * sizeof(float)));
  twin.ask({{"do", "load"}, {"features", file.string()}, {"count", caller.keys.size()}, {"n", caller.n}});
  if (!agrees_with_twin(caller, twin)) return;
  const std::tuple<const char*, const char*, int> tasks[] = {
      {"search_sample", "decode_sample", samples},
      {"search_greedy", "decode_greedy", greedy},
      {"train_step", "train_step", options.sizes().batches.front()}};
  for (const auto& [name, task, batch] : tasks) {
    for (const char* variant : variants) {
      Json row = row_of(name, std::string("torch_") + variant, caller.n, batch);
      const nlohmann::json answer = twin.ask({{"do", "time_device"},
                                              {"task", task},
                                              {"batch", batch},
                                              {"variant", variant},
                                              {"seconds", options.sizes().seconds}});
      for (const auto& [key, value] : answer.items()) row[key] = value;
      if (answer.contains("ms")) row["tours_per_second"] = 1e3 * batch / answer["ms"].get<double>();
      print_row(row);
    }
  }
}

Caller caller_of(const Options& options, int n) {
  return Caller(options.device, n,
                std::max({kCompared, options.sizes().greedy, options.sizes().batches.back()}));
}

// The compiled steps last: torch takes long to compile them.
void run_torch(const Options& options) {
  const TemporaryFolder folder;
  const auto twin = start_twin(options, folder.path);
  if (!twin) return;
  for (const std::vector<const char*>& variants : {std::vector{"eager", "graph"}, std::vector{"compiled"}}) {
    for (const int n : kItems) {
      Caller caller = caller_of(options, n);
      bench_torch(options, caller, *twin, folder.path, variants);
    }
  }
}

void run_size(const Options& options, int n) {
  if (options.wants("compare")) compare_with_cpu(options, n);
  Caller caller = caller_of(options, n);
  const Peaks peaks = peaks_of(*caller.backend, options.device);
  if (options.wants("sample")) bench_sample(options, caller, peaks);
  if (options.wants("greedy")) bench_greedy(options, caller, peaks);
  if (options.wants("train")) bench_train(options, caller, peaks);
  if (options.wants("active")) bench_active(options, caller, peaks);  // leaves parameter sets of its own
}

Options parse(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    const auto value = [&] {
      if (k + 1 == argc) throw std::invalid_argument(word + " takes a value");
      return std::string(argv[++k]);
    };
    if (word == "--device") {
      options.device = value();
    } else if (word == "--torch") {
      options.torch = value();
    } else if (word == "--small") {
      options.small = true;
    } else if (std::find(std::begin(kTasks), std::end(kTasks), word) != std::end(kTasks)) {
      options.tasks.push_back(word);
    } else {
      throw std::invalid_argument(
          "usage: bench_search [--device D] [--torch PYTHON] [--small] "
          "[compare|sample|greedy|train|active|torch]...");
    }
  }
  return options;
}

void run(const Options& options) {
  Json row = row_of("device", options.device, 0, 0);
  const auto backend = make_backend({options.device, 0});
  row["detail"] = backend->info().detail;
  row["fma_tflops"] = 1e-3 * backend->measure_fma_peak();
  print_row(row);
  for (const int n : kItems) run_size(options, n);
  if (options.wants("torch")) run_torch(options);
}

}  // namespace

}  // namespace pointsman::bench

int main(int argc, char** argv) {
  try {
    pointsman::bench::run(pointsman::bench::parse(argc, argv));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_search: %s\n", failure.what());
    return 1;
  }
}
