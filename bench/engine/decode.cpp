// SPDX-License-Identifier: Apache-2.0
// The engine beside its PyTorch twin, on one core, in turns, correctness first; then more threads against
// one.
#include <sched.h>
#include <unistd.h>

#include <ctime>

#include "bench/engine/session.h"
#include "host/run/log.h"

namespace pointsman::bench {

namespace {

constexpr int kInstances = 256;
constexpr int kScored = 32;  // sampled tours whose log p the twin recomputes, and tours of its gradient

struct Task {
  const char* name;
  void (Caller::*run)(int batch);
};
constexpr Task kTasks[] = {{"encode", &Caller::encode},
                           {"decode_sample", &Caller::sample},
                           {"decode_greedy", &Caller::greedy},
                           {"train_step", &Caller::train_step}};

// One size of the bench and the batches of its tasks.
struct Size {
  int n, batches[std::size(kTasks)];
};
constexpr Size kSizesOfDecode[] = {
    {20, {256, 1024, 256, 128}}, {50, {256, 512, 256, 128}}, {100, {128, 256, 128, 128}}};

// All of them for fresh parameters; of a model the size that it was trained on, in the batches of the next.
std::vector<Size> sizes_of(const Session& session) {
  const auto begin = std::begin(kSizesOfDecode), end = std::end(kSizesOfDecode);
  if (session.flags.model.empty()) return {begin, end};
  const int n = session.model.config.n;
  Size size = *std::find_if(begin, end - 1, [&](const Size& s) { return s.n >= n; });
  size.n = n;
  return {size};
}

// Keeps this process, and the children it starts meanwhile, on the last of its cores.
struct OneCore {
  OneCore() {
    sched_getaffinity(0, sizeof before, &before);
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &before)) --last;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before, &before); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

  cpu_set_t before;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Tours a second over at least `seconds` of the clock.
double rate_of(Caller& caller, const Task& task, int batch, double seconds, double (*clock)()) {
  const double start = clock();
  for (int64_t tours = batch;; tours += batch) {
    (caller.*task.run)(batch);
    const double spent = clock() - start;
    if (spent >= seconds) return static_cast<double>(tours) / spent;
  }
}

Work encode_work(const ModelConfig& config, int n) {
  const int slices = projections_of(config.glimpses).count;
  if (config.encoder == Encoder::kLstm) return lstm_encoding_work(n, slices);
  return attention_encoding_work(n, config.layers, config.feed_forward, slices);
}

void add_task(Session& session, Caller& caller, TorchTwin* twin, const Task& task, int batch) {
  const double seconds = session.flags.seconds;
  std::vector<double> ours, torch, ratios;
  double peak = 0.0;
  nlohmann::json answer;
  caller.start_over();
  (caller.*task.run)(batch);  // warm-up; the twin makes its own while it chooses its chunk
  const PolicyStatistics statistics = caller.result.statistics;
  for (int turn = 0; turn < session.flags.turns && session.goes_on(); ++turn) {
    peak = std::max(peak, 2e-9 * session.measure_peaks(caller).fp32);
    ours.push_back(rate_of(caller, task, batch, seconds, cpu_seconds));
    if (!twin) continue;
    answer = twin->ask({{"do", "time"}, {"task", task.name}, {"batch", batch}, {"seconds", seconds}});
    torch.push_back(answer["calls_per_second"].get<double>() * batch);
    ratios.push_back(ours.back() / torch.back());
  }
  if (!session.goes_on()) return;
  const Statistics rate = statistics_of(ours);
  Json row = {{"name", task.name},
              {"encoder", name_of(caller.model.config.encoder)},
              {"n", caller.n},
              {"batch", batch},
              {"ours", rate.median},
              {"torch", nullptr},
              {"ratio", nullptr},
              {"per_gflops", rate.median / peak},
              {"spread", rate.spread},
              {"fma_peak_gflops", peak},
              {"evaluations_per_step",
               static_cast<double>(statistics.evaluations) / static_cast<double>(statistics.steps)}};
  if (task.run == &Caller::encode) {
    const Work work = encode_work(caller.model.config, caller.n);
    row["of_floor"] = rate.median * work.fp32 / (0.5e9 * peak);
  }
  if (twin) {
    row["torch"] = statistics_of(torch).median;
    row["ratio"] = statistics_of(ratios).median;  // of what stood side by side: a machine's speed drifts
    row["torch_spread"] = statistics_of(torch).spread;
    row["torch_chunk"] = answer["chunk"];
  }
  session.add(row);
}

// Compares all answers of one size with the twin's. Throws CheckFailure.
void check_size(Caller& caller, TorchTwin& twin) {
  twin.load(caller);
  const TwinDifference difference = compare_tours(caller, twin, kInstances, kScored);
  if (!difference.passes()) {
    throw CheckFailure("n = " + std::to_string(caller.n) + ": a greedy choice " +
                       Json(difference.choice.value).dump() + " and log p " +
                       Json(difference.log_prob.value).dump() + " from the twin's");
  }
  check_gradient(caller, twin, kScored);
  log_info("n = " + std::to_string(caller.n) + ": tours, log p, critic and gradients agree with the twin's");
}

// All tasks of all sizes on one core.
void bench_one_core(Session& session) {
  const OneCore pinned;
  const auto twin = session.start_twin();
  for (const Size& size : sizes_of(session)) {
    if (!session.goes_on()) return;
    Caller caller = session.caller(size.n, kInstances, 1);
    if (twin) check_size(caller, *twin);
    for (size_t t = 0; t < std::size(kTasks) && session.goes_on(); ++t) {
      add_task(session, caller, twin.get(), kTasks[t], size.batches[t]);
    }
  }
}

// More threads against one, by the wall clock, of the middle size.
void bench_threads(Session& session) {
  const int threads = session.common.device.threads > 1 ? session.common.device.threads : 2;
  if (sysconf(_SC_NPROCESSORS_ONLN) < threads) return;
  const auto sizes = sizes_of(session);
  const Size& size = sizes[sizes.size() / 2];
  const double seconds = session.flags.seconds;
  Caller one = session.caller(size.n, kInstances, 1), many = session.caller(size.n, kInstances, threads);
  for (size_t t = 0; t < std::size(kTasks); ++t) {
    const Task& task = kTasks[t];
    const int batch = size.batches[t];
    std::vector<double> rates_one, rates_many, ratios;
    for (int turn = 0; turn < session.flags.turns && session.goes_on(); ++turn) {
      rates_one.push_back(rate_of(one, task, batch, seconds, seconds_now));
      rates_many.push_back(rate_of(many, task, batch, seconds, seconds_now));
      ratios.push_back(rates_many.back() / rates_one.back());
    }
    if (!session.goes_on()) return;
    session.add({{"name", std::string(task.name) + "_threads"},
                 {"encoder", name_of(session.model.config.encoder)},
                 {"n", size.n},
                 {"batch", batch},
                 {"threads", threads},
                 {"ours", statistics_of(rates_many).median},
                 {"torch", nullptr},
                 {"one_thread", statistics_of(rates_one).median},
                 {"ratio", statistics_of(ratios).median},
                 {"per_gflops", nullptr},
                 {"spread", statistics_of(rates_many).spread}});
  }
}

}  // namespace

void bench_decode(Session& session) {
  for (const Encoder encoder : session.encoders()) {
    session.start_over(encoder);
    if (session.goes_on()) bench_one_core(session);
    if (session.goes_on()) bench_threads(session);
  }
}

}  // namespace pointsman::bench
