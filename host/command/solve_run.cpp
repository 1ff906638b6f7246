// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_run.h"

#include <utility>

#include "host/command/log.h"

namespace pointsman {

namespace {

void append(std::string& list, const std::string& entry) {
  if (("," + list + ",").find("," + entry + ",") != std::string::npos) return;
  list += (list.empty() ? "" : ",") + entry;
}

}  // namespace

void ModelsUsed::add(const Model& model) {
  append(names, model.name);
  if (!model.sha256.empty()) append(sha256, model.sha256);
}

SolveRun::SolveRun(const BackendOptions& backend, const std::string& model, bool untrained)
    : engine(backend), models(model, untrained) {
  if (!engine.device_note().empty()) log_info(engine.device_note());
}

void SolveRun::solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows,
                     const SolveOptions& options, const SearchControl& control, const SolutionSink& sink) {
  const bool has_network = info_of(options.mode).has_network;
  const auto model_of = [&](const Instance& instance) {
    return has_network ? &models.get(instance.problem, instance.n()) : nullptr;
  };
  for (size_t begin = 0; begin < instances.size();) {
    const Model* model = model_of(instances[begin]);
    size_t end = begin + 1;
    while (end < instances.size() && instances[end].problem == instances[begin].problem &&
           rows[end] == rows[end - 1] + 1 && model_of(instances[end]) == model) {
      ++end;
    }
    if (model != nullptr) used.add(*model);
    InstanceBatch copy;
    const bool whole = begin == 0 && end == instances.size();
    if (!whole) copy.assign(&instances[begin], &instances[begin] + (end - begin));
    const double earlier_ms = report.solving_ms;
    report =
        engine.solve(model, whole ? instances : copy, rows[begin], options, control,
                     [&](size_t index, Solution&& solution) { sink(begin + index, std::move(solution)); });
    report.solving_ms += earlier_ms;
    if (options.shuffle.value_or(false) && !report.shuffle && !std::exchange(told_of_shuffle_, true))
      log_info("--shuffle: ignored, the attention encoder reads all orders of the items alike");
    begin = end;
  }
}

}  // namespace pointsman
