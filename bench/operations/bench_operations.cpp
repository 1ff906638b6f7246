// SPDX-License-Identifier: Apache-2.0
// Times the CUDA operations on the first device, by CUDA events: bench_operations [lstm|decode]...
#include "bench/operations/device_batch.h"

namespace {

using namespace pointsman::bench;

void run(const std::vector<std::string>& names) {
  const Peaks peaks = cuda_peaks(0);
  DeviceNetwork network;
  print_row(peaks_row(peaks));
  const auto is_named = [&](const char* name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  const Context context{network, network.get(), peaks};
  if (is_named("lstm")) bench_lstm(context);
  if (is_named("decode")) bench_decode(context);
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
