// SPDX-License-Identifier: Apache-2.0
// `pointsman score`: what a model thinks of given solutions.
#include <nlohmann/json.hpp>

#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/command/process.h"
#include "host/formats/text_scan.h"
#include "host/options/solve_options.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/solve_run.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

constexpr const char* kScoreExamples = R"(Examples:
  pointsman score berlin52.tsp --solutions berlin52.tour -m tsp50
  pointsman score set.npy --solutions tours.npy | jq '.solutions[].log_prob')";

struct ScoreFlags {
  std::string file, solutions, model;
  InstanceOptions input;
  float temperature = 1.0f;
};

int run_score(const ScoreFlags& flags, const CommonOptions& common) {
  refuse_inputs(common, {flags.file, flags.solutions});
  OutputFile file = open_output(common);
  const InstanceBatch instances = load_instances(flags.file, flags.input);
  require_coordinates(instances, flags.file, "score");
  const SolutionBatch solutions = load_solutions(flags.solutions, instances);
  SolveRun run(common.device, flags.model, false, run_log(), process_ranks());
  Json rows = Json::array();
  std::string text = "index  log_prob  cost\n";
  double sum = 0;
  const std::vector<double> log_probs = run.score(instances, solutions, flags.temperature,
                                                  StopToken([] { return interrupt_exit_code() != 0; }));
  for (size_t i = 0; i < instances.size(); ++i) {
    const Instance& instance = instances[i];
    rows.push_back(
        json_of({{"index", i},
                 {"id", instance.id},
                 {"problem", name_of(instance.problem)},
                 {"n", instance.n()},
                 {problem_of(instance).objective_key, objective_json(instance, solutions[i].objective)},
                 {"log_prob", log_probs[i]}}));  // null where the network could not have chosen this order
    text += printed("%5zu  %.8g  %.8g\n", i, log_probs[i], solutions[i].objective);
    sum += log_probs[i];
  }
  const Json summary = json_of({{"instances", instances.size()},
                                {"mean_log_prob", sum / static_cast<double>(instances.size())},
                                {"temperature", flags.temperature},
                                {"model", run.used.names},
                                {"model_sha256", run.used.sha256},
                                {"device", device_text(run.engine.device())},
                                {"version", POINTSMAN_VERSION}});
  write_answer(file, common, json_of({{"code", kExitDone}, {"summary", summary}, {"solutions", rows}}), text);
  return kExitDone;
}

}  // namespace

Command score_command() {
  auto flags = std::make_shared<ScoreFlags>();
  Command command{"score", "Log probability of given solutions under a model", kScoreExamples};
  OptionSet& options = *command.options;
  options.add("FILE", flags->file, "Instances; - is stdin").required();
  options.add_file("--solutions", flags->solutions, "Their solutions: JSON, NDJSON, .tour, .npy or .npz")
      .required();
  options.add_model("-m,--model", flags->model, "Model file or name; default: same problem, nearest size");
  add_temperature(options, flags->temperature);
  add_instance_options(options, flags->input);
  add_common_options(options, *command.common, {"json", "text"});
  command.run = [=](const Command& self, const Words&) { return run_score(*flags, *self.common); };
  return command;
}

}  // namespace pointsman
