// SPDX-License-Identifier: Apache-2.0
// Encoder, references and the decode kernel, by device time: many samples of one instance, and one greedy
// tour of each of 128 and 10,000 instances.
#include "bench/operations/device_batch.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100, 200};
constexpr int kSamples[] = {128, 1280, 65536, 1280000};  // multiprocessors filled .. as many as in the paper
// As many samples as in the paper are drawn up to this n: beyond, such a row takes as long as all others.
constexpr int kLargestN = 50;
constexpr int kInstances[] = {128, 10000};  // in clusters of blocks, and all multiprocessors filled

Json row_with(Precision precision, const char* name, int n, int tours) {
  Json row = row_of(name, "ours", n, tours);
  row["precision"] = name_of(precision);
  return row;
}

// Times the rows of one size and precision.
struct DecodeBench {
  template <typename Run>
  void time(const char* name, int tours, Work work, Run&& run, double seconds = 0.2) const {
    if (precision != Precision::kFp32) work = {};  // the floors are fp32's
    context.time(row_with(precision, name, n, tours), work, run, seconds);
  }

  bool is_sound(const char* name, int tours, const DeviceBatch& batch) const {
    if (batch.sound()) return true;
    Json row = row_with(precision, name, n, tours);
    row["pass"] = false;
    print_row(row);
    return false;
  }

  // Samples of one instance that is already encoded.
  void samples(int samples) const {
    DeviceBatch batch(context.network, n, 1, samples, Decode::kSample, precision);
    const auto decode = [&] { batch.decode(); };
    batch.encode();
    decode();
    if (is_sound("decode_sample", samples, batch)) {
      time("decode_sample", samples, decode_work(samples, n, false), decode, 1.0);
    }
  }

  void greedy(int instances) const {
    DeviceBatch batch(context.network, n, instances, 1, Decode::kGreedy, precision);
    const auto encode = [&] { batch.encode(); };
    const auto decode = [&] { batch.decode(); };
    const auto all = [&] { encode(), decode(); };
    all();
    if (!is_sound("greedy", instances, batch)) return;
    time("greedy", instances, rollout_work(instances, instances, n), all, 0.5);
    time("greedy_encoder", instances,
         lstm_forward_work(instances, n, false) + project_references_work(instances, n, 3.0), encode);
    time("greedy_decode", instances,
         decode_work(instances, n, false) + distinct_references_work(instances, n), decode);
  }

  const Context& context;
  const Precision precision;
  const int n;
};

}  // namespace

void bench_decode(const Context& context) {
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32x3, Precision::kTf32, Precision::kBf16}) {
    for (const int n : kSizes) {
      const DecodeBench bench{context, precision, n};
      for (const int samples : kSamples) {
        if (samples == kSamples[3] && (n > kLargestN || precision != Precision::kFp32)) continue;
        attempt(print_row, row_with(precision, "decode_sample", n, samples), [&] { bench.samples(samples); });
      }
      for (const int instances : kInstances) {
        attempt(print_row, row_with(precision, "greedy", n, instances), [&] { bench.greedy(instances); });
      }
    }
  }
}

}  // namespace pointsman::bench
