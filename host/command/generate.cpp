// SPDX-License-Identifier: Apache-2.0
// `pointsman generate`: random instances, our own or bit for bit NumPy's.
#include "host/command/command.h"
#include "host/formats/formats.h"
#include "host/run/load.h"
#include "host/run/log.h"
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
  const std::string format = common.format.empty() && common.is_on_stdout() ? "json" : common.format;
  const InstanceFormat* const found =
      format_by_suffix(instance_formats(), format.empty() ? common.output : "x." + format);
  if (!found || !found->write) refuse_suffix(common);
  return *found;
}

constexpr size_t kPiece = size_t{1} << 22;  // bytes between two looks at the clock

void write_instances(const InstanceFormat& format, const GenerateOptions& generate,
                     const CommonOptions& common, OutputFile& file) {
  const SearchControl control = search_control(common);
  const StopToken stop = control.stop();
  try {
    const std::string bytes = format.write(pointsman::generate(generate, common.seed, stop));
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      stop.check();
      file.write(std::string_view(bytes).substr(at, kPiece));
    }
    return;
  } catch (const CallStopped&) {
  } catch (const InputStopped&) {  // by the writers, which look as the readers do
  }
  throw OutputStopped(
      std::string(control.interrupted() ? "interrupted" : "the time limit came") +
      printed(" before all %d instances were written; ", generate.count) +
      (common.is_on_stdout() ? "what was written is not whole" : common.output + " is not written"));
}

int run_generate(const GenerateOptions& generate, const CommonOptions& common) {
  const InstanceFormat& format = chosen_format(common);
  check_generate_options(generate, common.seed);
  OutputFile file = open_output(common);
  write_instances(format, generate, common, file);
  file.commit();
  log_info(printed("%d %s instances of n = %d, seed %llu", generate.count, generate.problem.c_str(),
                   generate.n, static_cast<unsigned long long>(common.seed)));
  return kExitDone;
}

}  // namespace

Command generate_command() {
  auto flags = std::make_shared<GenerateOptions>();
  Command command{"generate", "Random instances, uniform in the unit square or in [0, 1)", kGenerateExamples};
  add_generate_options(*command.options, *flags);
  std::vector<std::string> formats, names;  // those that can be written
  for (const InstanceFormat& format : instance_formats()) {
    if (!format.write) continue;
    formats.emplace_back(format.suffixes[0].substr(1));
    names.emplace_back(format.name);
  }
  add_common_options(*command.options, *command.common, formats);
  command.common->suffixes = suffixes_of(instance_formats(), names);
  command.run = [=](const Command& self, const Words&) { return run_generate(*flags, *self.common); };
  return command;
}

}  // namespace pointsman
