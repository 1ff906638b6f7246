// SPDX-License-Identifier: Apache-2.0
// The engine's own calls on one device by the wall clock, transfers included: samples of one instance, greedy
// tours of many, a training step, active search of many instances at once; and the PyTorch twin on the same
// GPU.
#include <numeric>

#include "bench/engine/session.h"
#include "engine/problem/generate.h"
#include "engine/search/search.h"
#include "host/run/log.h"
#include "models/parameter_layout.h"

namespace pointsman::bench {

namespace {

struct Batches {
  std::vector<int> samples;    // of one instance
  int greedy;                  // instances
  std::vector<int> train;      // instances of a training step
  std::vector<int> active;     // instances searched at once
  int replicas, twin_samples;  // of an instance
};
const Batches kFull = {{1280, 65536, 1280000}, 10000, {128, 1024}, {1, 8, 32, 132, 264, 1024}, 128, 65536};
const Batches kSmall = {{128}, 32, {8}, {1, 2}, 8, 128};  // what one core bears

const Batches& batches_of(const Session& session) { return session.flags.small ? kSmall : kFull; }

// Beyond both a row takes as long as all others.
constexpr int kMostN = 50, kMostSamples = 65536, kMostActive = 264;
constexpr int kCompared = 64;  // tours of a comparison
constexpr int kActiveSteps = 6, kWarmSteps = 2;

// One size on the device, and its peaks.
struct Device {
  Device(Session& run, int n, int count)
      : session(run),
        caller(run.caller(n, count, run.common.device.threads)),
        peaks(run.measure_peaks(caller)) {
    if (peaks.bytes > 0.0) session.add(peaks_row(peaks));
  }

  Json row(const char* name, int batch) const {
    Json row = row_of(name, caller.backend->info().name, caller.n, batch);
    row["encoder"] = name_of(session.model.config.encoder);
    return row;
  }
  // bench/floors.h counts the network with the LSTM encoder, in fp32.
  Work counted(Work work) const {
    const bool has_floor =
        session.model.config.encoder == Encoder::kLstm && session.common.device.precision == Precision::kFp32;
    return has_floor ? work : Work{};
  }

  // Adds the row of a call; two calls warm up.
  void time(const char* name, void (Caller::*call)(int), int batch, Work work) {
    if (!session.goes_on()) return;
    const auto once = [&] {
      const Clock::time_point start = Clock::now();
      (caller.*call)(batch);
      return milliseconds_since(start);
    };
    once();
    std::vector<double> ms(static_cast<size_t>(runs_for(once(), session.flags.seconds)));
    for (double& value : ms) value = once();
    session.add(timed(row(name, batch), statistics_of(ms), counted(work), peaks));
  }

  Session& session;
  Caller caller;
  Peaks peaks;
};

// Milliseconds of each step of active search over `count` instances at once, after the first few.
Statistics time_active_steps(Device& device, const ModelConfig& config, int count) {
  const uint64_t seed = device.session.common.seed;
  const InstanceBatch instances = generate_instances(ProblemKind::kTsp, device.caller.n, seed, 0, count);
  std::vector<uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), uint64_t{0});
  const std::vector<float> initial = initial_parameters(config, seed);
  std::vector<double> ms;
  Clock::time_point last = Clock::now();
  ActiveSearchOptions options;
  options.initial = initial;
  options.steps = kWarmSteps + kActiveSteps + 1;  // the last step draws only
  options.replicas = batches_of(device.session).replicas;
  options.seed = seed;
  options.on_step = [&](const ActiveSearchProgress& progress) {
    if (progress.instance != count - 1) return;
    if (progress.step > kWarmSteps && progress.step < options.steps) ms.push_back(milliseconds_since(last));
    last = Clock::now();
  };
  run_search(*device.caller.backend, config, {pointers_to(instances), keys}, options, {});
  return statistics_of(ms);
}

// The twin's rows of one of its variants, after it agreed with ours.
void time_twin(Device& device, TorchTwin& twin, const char* variant) {
  const Batches& batches = batches_of(device.session);
  const std::tuple<const char*, const char*, int> tasks[] = {
      {"search_sample", "decode_sample", batches.twin_samples},
      {"search_greedy", "decode_greedy", batches.greedy},
      {"train_step", "train_step", batches.train.front()}};
  for (const auto& [name, task, batch] : tasks) {
    if (!device.session.goes_on()) return;
    const nlohmann::json answer = twin.ask({{"do", "time_device"},
                                            {"task", task},
                                            {"batch", batch},
                                            {"variant", variant},
                                            {"seconds", device.session.flags.seconds}});
    Json row = row_of(name, std::string("torch_") + variant, device.caller.n, batch);
    if (answer.contains("ms")) row = timed(row, {answer["ms"], answer["spread"], answer["runs"]});
    if (answer.contains("skipped")) row["skipped"] = answer["skipped"];
    device.session.add(row);
  }
}

bool agrees_with_twin(Device& device, TorchTwin& twin) {
  twin.load(device.caller);
  const TwinDifference difference = compare_tours(device.caller, twin, kCompared, kCompared);
  Json row = row_of("same_as_torch", "torch", device.caller.n, kCompared);
  row.update(Json{{"greedy_off", difference.choice.value},
                  {"error", difference.log_prob.value},
                  {"pass", difference.passes()}});
  device.session.add(row);
  return difference.passes();
}

}  // namespace

// The same tours from the same seeds as the CPU's, log p within kLogProbBound.
void bench_compare(Session& session) {
  for (const int n : kSizes) {
    if (!session.goes_on()) return;
    Caller ours = session.caller(n, kCompared, session.common.device.threads);
    Caller cpu({"cpu", 0}, session.model, n, kCompared, session.common.seed);
    Worst log_prob;
    int different = 0;
    for (const auto call : {&Caller::greedy, &Caller::sample}) {
      for (Caller* caller : {&ours, &cpu}) (caller->*call)(kCompared);
      for (int r = 0; r < kCompared; ++r) {
        log_prob.show(ours.result.log_probs[r] - cpu.result.log_probs[r]);
        const auto tour = cpu.result.orders.begin() + r * n;
        different += !std::equal(tour, tour + n, ours.result.orders.begin() + r * n);
      }
    }
    Json row = row_of("same_tours", ours.backend->info().name + " against cpu", n, 2 * kCompared);
    row["encoder"] = name_of(session.model.config.encoder);
    const bool pass = different == 0 && log_prob.value <= kLogProbBound;
    row.update(Json{{"different", different}, {"error", log_prob.value}, {"pass", pass}});
    session.add(row);
  }
}

void bench_sample(Session& session) {
  for (const int n : kSizes) {
    Device device(session, n, 1);
    for (const int samples : batches_of(session).samples) {
      if (n > kMostN && samples > kMostSamples) continue;
      const Work work = rollout_work(1, samples, n);
      device.time("search_sample", &Caller::sample, samples, work);
      device.time("search_sample_best", &Caller::sample_best, samples, work);
    }
  }
}

void bench_greedy(Session& session) {
  const int count = batches_of(session).greedy;
  for (const int n : kSizes) {
    Device(session, n, count).time("search_greedy", &Caller::greedy, count, rollout_work(count, count, n));
  }
}

void bench_train(Session& session) {
  const ParameterLayout layout(session.model.config);
  const double actor = static_cast<double>(layout.actor_size),
               critic = static_cast<double>(layout.size) - actor;
  const std::vector<int>& batches = batches_of(session).train;
  for (const int n : kSizes) {
    Device device(session, n, batches.back());
    for (const int batch : batches) {
      device.time("train_step", &Caller::train_step, batch,
                  actor_step_work(batch, n, 1, actor) + critic_step_work(batch, n, critic));
    }
  }
}

void bench_active(Session& session) {
  ModelConfig config = session.model.config;
  config.has_critic = false;
  const double parameters = static_cast<double>(ParameterLayout(config).size);
  for (const int n : kSizes) {
    Device device(session, n, 1);
    for (const int count : batches_of(session).active) {
      if (!session.goes_on()) return;
      if (n > kMostN && count > kMostActive) continue;
      const Json row = device.row("active_step", count);
      attempt([&](const Json& skipped) { session.add(skipped); }, row,
              [&] {
                const double sequences = 1.0 * count * batches_of(session).replicas;
                session.add(timed(row, time_active_steps(device, config, count),
                                  device.counted(actor_step_work(sequences, n, count, parameters)),
                                  device.peaks));
              });
    }
  }
}

// The compiled steps last: torch takes long to compile them.
void bench_torch(Session& session) {
  const auto twin = session.start_twin();
  if (!twin) return;
  const nlohmann::json moved = twin->ask({{"do", "device"}, {"name", "cuda"}});
  session.answer["torch"]["device"] = moved;
  if (moved.contains("skipped"))
    return log_warning("PyTorch twin skipped: " + moved["skipped"].get<std::string>());
  for (const std::vector<const char*>& variants : {std::vector{"eager", "graph"}, std::vector{"compiled"}}) {
    for (const int n : kSizes) {
      if (!session.goes_on()) return;
      Device device(session, n, std::max(kCompared, batches_of(session).greedy));
      if (!agrees_with_twin(device, *twin)) continue;
      for (const char* variant : variants) time_twin(device, *twin, variant);
    }
  }
}

}  // namespace pointsman::bench
