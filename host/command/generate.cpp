// SPDX-License-Identifier: Apache-2.0
// `pointsman generate`: random instances, our own or bit for bit NumPy's.
#include "engine/problem/generate.h"

#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/command/generate_flags.h"
#include "host/command/instance_flags.h"
#include "host/command/log.h"
#include "host/command/output.h"
#include "host/formats/formats.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
namespace {

constexpr const char* kGenerateExamples = R"(Examples:
  pointsman generate tsp -n 50 -b 10000 -s 1234 -o tsp50.npy
  pointsman generate tsp -n 20 -b 10000 -s 1234 --like numpy -o tsp20.npy  NumPy's, bit for bit
  pointsman generate knapsack -n 50 -b 1000 -o knap50.npz                  with its capacity
  pointsman generate tsp -n 30 -b 1 -o map.tsp
An .npy of knapsack holds the columns weight, value and no capacity: solve it with --problem knapsack --capacity W.)";

const InstanceFormat& chosen_format(const CommonOptions& common) {
  const bool on_stdout = common.output.empty() || common.output == "-";
  const std::string format = common.format.empty() && on_stdout ? "json" : common.format;
  const InstanceFormat* const found =
      format_by_suffix(instance_formats(), format.empty() ? common.output : "x." + format);
  if (!found || !found->write) refuse_suffix(common);
  return *found;
}

constexpr size_t kPiece = size_t{1} << 22;  // bytes between two looks at the clock

void write_instances(const InstanceFormat& format, const GenerateFlags& flags, const CommonOptions& common,
                     OutputFile& file) {
  const SearchControl control = search_control(common);
  const StopToken stop = control.stop();
  try {
    const std::string bytes = format.write(generate(flags, common.seed, stop));
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      stop.check();
      file.write(std::string_view(bytes).substr(at, kPiece));
    }
    return;
  } catch (const CallStopped&) {
  } catch (const InputStopped&) {  // by the writers, which look as the readers do
  }
  const bool on_stdout = common.output.empty() || common.output == "-";
  throw OutputStopped(std::string(control.interrupted() ? "interrupted" : "the time limit came") +
                      printed(" before all %d instances were written; ", flags.count) +
                      (on_stdout ? "what was written is not whole" : common.output + " is not written"));
}

int run_generate(const GenerateFlags& flags, const CommonOptions& common) {
  const InstanceFormat& format = chosen_format(common);
  check_generate_flags(flags, common.seed);
  OutputFile file = open_output(common);
  write_instances(format, flags, common, file);
  file.commit();
  log_info(printed("%d %s instances of n = %d, seed %llu", flags.count, flags.problem.c_str(), flags.n,
                   static_cast<unsigned long long>(common.seed)));
  return kExitDone;
}

}  // namespace

void add_generate_flags(CLI::App& app, GenerateFlags& flags) {
  add_positional(app, "problem", flags.problem, problem_names()).required().check(one_of(problem_choices()));
  add_option(app, "-n,--size", flags.n, "Cities or items of an instance")
      .required()
      .check(within(1, 1000000));
  add_option(app, "-b,--count", flags.count, "Number of instances", within(1, 100000000));
  add_option(app, "--like", flags.like, "numpy: what numpy.random.seed(SEED); numpy.random.uniform(..) gives",
             one_of({"numpy"}));
  add_option(app, "--capacity", flags.capacity, "KnapSack: capacity; 0: 12.5 up to n = 50, else 25",
             within(0.0, 1e12));
}

void check_generate_flags(const GenerateFlags& flags, uint64_t seed) {
  refuse_capacity(*find_problem(flags.problem), flags.capacity);
  if (flags.like == "numpy" && seed > 0xffffffffu) {
    throw UsageError("--like numpy: a seed of NumPy is at most 4294967295");
  }
}

InstanceBatch generate(const GenerateFlags& flags, uint64_t seed, const StopToken& stop) {
  const ProblemKind problem = *find_problem(flags.problem);
  InstanceBatch instances =
      flags.like == "numpy"
          ? generate_like_numpy(problem, flags.n, static_cast<uint32_t>(seed), flags.count, stop)
          : generate_instances(problem, flags.n, seed, 0, flags.count, stop);
  if (flags.capacity != 0) {
    for (Instance& instance : instances) instance.capacity = flags.capacity;
  }
  return instances;
}

Command add_generate(CLI::App& parent) {
  auto flags = std::make_shared<GenerateFlags>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* const app = add_subcommand(
      parent, "generate", "Random instances, uniform in the unit square or in [0, 1)", kGenerateExamples);
  add_generate_flags(*app, *flags);
  std::vector<std::string> formats, names;  // those that can be written
  for (const InstanceFormat& format : instance_formats()) {
    if (!format.write) continue;
    formats.emplace_back(format.suffixes[0].substr(1));
    names.emplace_back(format.name);
  }
  add_common_options(*app, *common, formats);
  common->suffixes = suffixes_of(instance_formats(), names);
  return {app, common, [=] { return run_generate(*flags, *common); }};
}

}  // namespace pointsman
