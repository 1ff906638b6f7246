// SPDX-License-Identifier: Apache-2.0
#include "host/options/run_options.h"

#include <iterator>

namespace pointsman {

namespace {

// The registry knows the names behind "check:".
std::string wrong_device(const std::string& device) {
  for (const char* name : {"auto", "cpu", "cuda", "cuda:all", "check"}) {
    if (device == name) return {};
  }
  if (device.starts_with("check:")) return {};
  if (device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
      device.find_first_not_of("0123456789", 5) == std::string::npos) {
    return {};
  }
  return "expected auto, cpu, cuda, cuda:NUMBER or cuda:all, found \"" + device + "\"";
}

}  // namespace

void add_device_options(OptionSet& options, BackendOptions& device) {
  options.add("-t,--threads", device.threads, "CPU threads; 0: all").range(0, 4096);
  options
      .add("--device", device.device,
           "Where to compute; cuda:1 is the second of its kind, cuda:all all of them; auto takes a CUDA "
           "device "
           "where one works, else the CPU")
      .shown_choices({"auto", "cpu", "cuda"})
      .judged_by(wrong_device);
  OptionSet::Words<Precision> precisions;
  for (const char* name : kPrecisionNames)
    precisions.emplace_back(name, static_cast<Precision>(precisions.size()));
  options.add_words("--precision", device.precision, precisions,
                    "Of rollouts: fp32; tf32, tf32x3 and bf16 use tensor cores and need a CUDA device");
}

void add_seed(OptionSet& options, uint64_t& seed) {
  options.add("-s,--seed", seed, "Seed of every random number");
}

void add_time_limit(OptionSet& options, double& seconds) {
  options
      .add("-l,--time-limit", seconds,
           "Seconds from the start of the program, then the best so far is the answer; 0: none")
      .range(0.0, 1e9)
      .type_name("SECONDS");
}

void add_output(OptionSet& options, std::string& path, bool& force) {
  options.add("-o,--output", path, "Write the result here instead of to stdout").type_name(kFileValue);
  options.add("-f,--force", force, "Replace an existing output file");
}

}  // namespace pointsman
