// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_run.h"

#include <array>
#include <utility>

#include "host/command/log.h"

namespace pointsman {

namespace {

constexpr std::array<std::pair<const char*, Mode>, 4> kModes = {
    {{"auto", Mode::kAuto}, {"greedy", Mode::kGreedy}, {"sample", Mode::kSample}, {"active", Mode::kActive}}};

void append(std::string& list, const std::string& entry) {
  if (("," + list + ",").find("," + entry + ",") != std::string::npos) return;
  list += (list.empty() ? "" : ",") + entry;
}

}  // namespace

Mode parse_mode(const std::string& name) {
  for (const auto& [text, mode] : kModes) {
    if (name == text) return mode;
  }
  throw std::invalid_argument("unknown mode " + name);
}

const char* mode_name(Mode mode) {
  for (const auto& [text, value] : kModes) {
    if (value == mode) return text;
  }
  return "";
}

void ModelsUsed::add(const Model& model) {
  append(names, model.name);
  if (!model.sha256.empty()) append(sha256, model.sha256);
}

SolveRun::SolveRun(const BackendOptions& backend, const std::string& model, bool untrained)
    : engine(backend), models(model, untrained) {
  if (!engine.device_note().empty()) log_info("%s", engine.device_note().c_str());
}

void SolveRun::solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows,
                     const SolveOptions& options, const SearchControl& control, const SolutionSink& sink) {
  for (size_t begin = 0; begin < instances.size();) {
    const Model& model = models.get(instances[begin].problem, instances[begin].n());
    size_t end = begin + 1;
    while (end < instances.size() && instances[end].problem == instances[begin].problem &&
           rows[end] == rows[end - 1] + 1 &&
           &models.get(instances[end].problem, instances[end].n()) == &model) {
      ++end;
    }
    used.add(model);
    InstanceBatch copy;
    const bool whole = begin == 0 && end == instances.size();
    if (!whole) copy.assign(&instances[begin], &instances[begin] + (end - begin));
    SolveReport part;
    engine.solve(model, whole ? instances : copy, rows[begin], options, control, part,
                 [&](size_t index, const Solution& solution) { sink(begin + index, solution); });
    part.solving_ms += report.solving_ms;
    report = part;
    begin = end;
  }
}

}  // namespace pointsman
