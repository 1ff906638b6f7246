// SPDX-License-Identifier: Apache-2.0
// Encoder, references and the decode kernel, by device time: many samples of one instance, and one greedy
// tour of each of 10,000 instances.
#include "bench/operations/benches.h"
#include "bench/operations/device_network.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100, 200};
constexpr int kInstances = 10000;

// One row, and tours a second beside it. The floors are fp32's.
void print_tours(const Context& context, const char* name, const EncodedInstances& instances, int tours,
                 const Timing& timing, Work work) {
  Json row = row_of(name, "ours", instances.n, tours);
  row["precision"] = name_of(instances.precision);
  row["tours_per_second"] = 1e3 * tours / timing.median_ms;
  if (instances.precision == Precision::kFp32) {
    print_timing(row, timing, work, context.peaks);
  } else {
    print_timing(row, timing);
  }
}

bool check_sound(const char* name, const Rollouts& rollouts) {
  const bool sound = rollouts.sound();
  if (!sound) {
    Json row = row_of(name, "ours", rollouts.instances.n, rollouts.count);
    row.update(Json{{"error", "a tour that is no permutation or has no log p"}, {"pass", false}});
    print_row(row);
  }
  return sound;
}

// Samples of one instance that is already encoded: multiprocessors filled, and 1,280,000 at once as in the
// paper.
void bench_samples(const Context& context, const DeviceNetwork& network, int n, int samples,
                   Precision precision) {
  EncodedInstances instance(network, 1, n, precision);
  instance.encode(context.stream);
  instance.project(context.stream);
  Rollouts rollouts(instance, samples, Decode::kSample, false);
  const Timing timing = time_on_device(
      context.stream, [&] { rollouts.decode(context.stream); }, 1.0);
  if (!check_sound("decode_sample", rollouts)) return;
  print_tours(context, "decode_sample", instance, samples, timing, decode_work(samples, n, false));
}

void bench_greedy(const Context& context, const DeviceNetwork& network, int n, Precision precision) {
  EncodedInstances instances(network, kInstances, n, precision);
  Rollouts rollouts(instances, 1, Decode::kGreedy, false);
  const auto encode = [&] { instances.encode(context.stream); };
  const auto project = [&] { instances.project(context.stream); };
  const auto decode = [&] { rollouts.decode(context.stream); };
  const Work encoder = lstm_forward_work(kInstances, n, false),
             references = project_references_work(kInstances, n, DeviceNetwork::kSlices),
             decoder = decode_work(kInstances, n, false);
  const Timing whole = time_on_device(
      context.stream,
      [&] {
        encode();
        project();
        decode();
      },
      0.5);
  if (!check_sound("greedy", rollouts)) return;
  print_tours(context, "greedy", instances, kInstances, whole, encoder + references + decoder);
  print_tours(context, "greedy_encoder", instances, kInstances, time_on_device(context.stream, encode),
              encoder);
  print_tours(context, "project_references", instances, kInstances, time_on_device(context.stream, project),
              references);
  print_tours(context, "greedy_decode", instances, kInstances, time_on_device(context.stream, decode),
              decoder);
}

}  // namespace

void bench_decode(const Context& context) {
  const DeviceNetwork network(context.stream);
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32x3, Precision::kTf32, Precision::kBf16}) {
    const auto attempt = [&](const char* name, int n, int tours, const auto& bench) {
      try {
        bench();
      } catch (const std::exception& failure) {
        Json row = row_of(name, "ours", n, tours);
        row["precision"] = name_of(precision);
        print_skipped(row, failure.what());
      }
    };
    for (const int n : kSizes) {
      for (const int samples : {128, 1280, 65536, 1280000}) {
        attempt("decode_sample", n, samples, [&] { bench_samples(context, network, n, samples, precision); });
      }
      attempt("greedy", n, kInstances, [&] { bench_greedy(context, network, n, precision); });
    }
  }
}

}  // namespace pointsman::bench
