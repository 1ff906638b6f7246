// SPDX-License-Identifier: Apache-2.0
// Times the CUDA operations on the first device, by CUDA events: bench_operations
// [lstm|decode|training|2opt]...
#include "bench/operations/device_batch.h"

namespace {

using namespace pointsman::bench;

struct Bench {
  const char* name;
  void (*run)(const Context&);
};
constexpr Bench kBenches[] = {
    {"lstm", bench_lstm}, {"decode", bench_decode}, {"training", bench_training}, {"2opt", bench_two_opt}};

void run(const std::vector<std::string>& names) {
  const Peaks peaks = cuda_peaks(0);
  DeviceNetwork network;
  print_row(peaks_row(peaks));
  for (const Bench& bench : kBenches) {
    const bool named = std::find(names.begin(), names.end(), bench.name) != names.end();
    if (names.empty() || named) bench.run({network, network.get(), peaks});
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_operations: %s\n", failure.what());
    return 1;
  }
}
