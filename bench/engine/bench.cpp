// SPDX-License-Identifier: Apache-2.0
// The bench's command line: `pointsman-bench bench NAME...` is what `pointsman bench NAME...` runs. The
// program is `pointsman` with this subcommand in place of its door (host/command/bench.cpp).
#include "bench/engine/session.h"
#include "host/command/command.h"

namespace pointsman {

namespace bench {

namespace {

constexpr const char* kExamples = R"(Examples:
  pointsman bench decode                n = 20, 50, 100 on one core beside PyTorch, then two threads against one
  pointsman bench decode -m tsp50       a trained model on cities as many as it was trained on: its samples share most steps
  pointsman bench decode --torch none   without the twin
  pointsman bench decode --check bench/results/baseline.json   fails if a row fell by more than 10%
  pointsman bench compare sample greedy train active --device cuda --format ndjson
Rates of decode are tours a second of CPU time; rates and ratios are medians of turns, spread is (most - least) / median.
Answers are compared before anything is timed: a difference ends the bench with exit code 5.
--check fails with exit code 5, too. It compares ratios to PyTorch, or else the rates per GFLOP/s of the fma peak.)";

struct Bench {
  const char* name;
  void (*run)(Session&);
};
constexpr Bench kBenches[] = {{"decode", bench_decode}, {"compare", bench_compare}, {"sample", bench_sample},
                              {"greedy", bench_greedy}, {"train", bench_train},     {"active", bench_active},
                              {"torch", bench_torch}};

int run_bench(const Flags& flags, CommonOptions& common) {
  if (flags.json) common.format = "json";
  if (!flags.check.empty() && flags.names != Words{"decode"})
    throw UsageError("--check: is for decode alone");
  Session session(flags, common);
  std::string failure;
  try {
    for (const std::string& name : flags.names) {
      const auto bench = std::find_if(std::begin(kBenches), std::end(kBenches),
                                      [&](const Bench& candidate) { return candidate.name == name; });
      if (session.goes_on()) bench->run(session);
    }
  } catch (const CheckFailure& difference) {
    failure = difference.what();
  }
  return session.finish(failure);
}

}  // namespace

}  // namespace bench

Command bench_command() {
  auto flags = std::make_shared<bench::Flags>();
  Command command{"bench", "Measure this machine, beside PyTorch where it is installed", bench::kExamples};
  OptionSet& options = *command.options;
  std::vector<std::string> names;
  for (const bench::Bench& bench : bench::kBenches) names.emplace_back(bench.name);
  options.add("name", flags->names, "What to measure: decode; or one call of the engine on a device")
      .choices(names);
  options.add("--json", flags->json, "The same as --format json");
  options.add("-m,--model", flags->model, "A TSP model (path or name); default: fresh parameters");
  options.add("--encoder", flags->encoder, "Of fresh parameters; default: lstm, decode measures both")
      .choices({name_of(Encoder::kLstm), name_of(Encoder::kAttention)});
  options.add("--torch", flags->torch,
              "Python with torch and numpy, or none; default: python3, then /usr/bin/python3");
  options.add("--twin", flags->twin,
              "The twin's script; default, in a build tree: bench/torch_twin.py of the source tree");
  options.add("--turns", flags->turns, "Times that each side is measured").range(1, 1000);
  options.add("--seconds", flags->seconds, "CPU seconds of one measurement, at least").range(0.01, 600.0);
  options.add("--check", flags->check, "Compare the rows with this output of `bench decode --json`");
  options.add("--small", flags->small, "Batches that one core bears, for all but decode");
  add_common_options(options, *command.common, {"json", "ndjson", "text"});
  command.run = [=](const Command& self, const Words&) { return bench::run_bench(*flags, *self.common); };
  return command;
}

}  // namespace pointsman
