// SPDX-License-Identifier: Apache-2.0
// Times the CUDA operations on the current device, by CUDA events: bench_operations [lstm|decode|training]...
#include <cstring>

#include "bench/operations/benches.h"
#include "bench/operations/device_timing.h"
#include "kernels/cuda/stream.h"

namespace pointsman::bench {

namespace {

struct Bench {
  const char* name;
  void (*run)(const Context&);
};
constexpr Bench kBenches[] = {{"lstm", bench_lstm}, {"decode", bench_decode}, {"training", bench_training}};

bool wanted(const Bench& bench, int count, char** names) {
  return count == 0 || std::any_of(names, names + count,
                                   [&](const char* name) { return std::strcmp(name, bench.name) == 0; });
}

void run(int count, char** names) {
  const cuda::Stream stream;
  const Context context{stream.get(), measure_peaks(stream.get())};
  print_row({{"bench", "peaks"},
             {"variant", "measured"},
             {"fma_tflops", 2e-12 * context.peaks.fp32},
             {"copy_tb_per_second", 1e-12 * context.peaks.bytes}});
  for (const Bench& bench : kBenches) {
    if (wanted(bench, count, names)) bench.run(context);
  }
}

}  // namespace

}  // namespace pointsman::bench

int main(int argc, char** argv) {
  try {
    pointsman::bench::run(argc - 1, argv + 1);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_operations: %s\n", failure.what());
    return 1;
  }
}
