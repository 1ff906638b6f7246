// SPDX-License-Identifier: Apache-2.0
#include "host/options/train_options.h"

#include "host/options/call_options.h"

namespace pointsman {

namespace {

const OptionSet::Words<Baseline> kBaselines = {{"shared", Baseline::kShared},
                                               {"critic", Baseline::kCritic},
                                               {"ema", Baseline::kEma},
                                               {"rollout", Baseline::kRollout}};

void add_training_options(OptionSet& options, TrainRequest& request) {
  TrainOptions& train = request.options;
  options.add_words("--baseline", train.baseline, kBaselines,
                    "b of the gradient (L - b): leave-one-out mean of the instance's other rollouts, critic "
                    "network, moving average, or greedy rollout of the best actor");
  options
      .add("--rollouts", train.rollouts,
           "Copies of an instance, turned and reordered, with the shared baseline or --solutions")
      .range(1, 4096);
  options
      .add("--symmetries", train.symmetries,
           "With --encoder attention and the shared baseline: encodings an instance, each of another "
           "symmetry, that its rollouts are shared out to")
      .choices({"1", "2", "4", "8"});
  options.add("-b,--batch-size", train.batch, "Instances a step").range(1, 1 << 20);
  options.add("--steps", train.steps, "Gradient steps").range(1, int64_t{1} << 40);
  options
      .add("--learning-rate", request.learning_rate,
           "Of Adam, at the start; default: 3e-4 with --encoder attention, 1e-3 with lstm")
      .range(1e-9, 1.0);
  options.add("--decay", train.decay, "The learning rate is multiplied by this every --decay-steps")
      .range(0.01, 1.0);
  options.add("--decay-steps", train.decay_steps, "Steps between two decays").range(1, 1 << 30);
  options
      .add("--entropy", train.entropy,
           "Temperature T of the entropy term, in units of cost: E[L + T log p] is minimised; default: 0, of "
           "tsptw 0.5")
      .range(0, 1e6);
  options.add("--entropy-steps", train.entropy_steps, "T falls linearly to 0 over so many steps")
      .range(1, int64_t{1} << 40);
  options.add_words(
      "--infeasible", train.infeasible,
      OptionSet::Words<Infeasible>{
          {"mask", Infeasible::kMask}, {"penalty", Infeasible::kPenalty}, {"both", Infeasible::kBoth}},
      "TSPTW: what comes certainly too late is masked and late tours are left out; or nothing "
      "is masked and delays cost a penalty; or both");
  options
      .add("--penalty", train.penalty,
           "TSPTW: what a delay of the square's side, or being late at all, costs at the start; it grows "
           "while tours come late")
      .range(0, 1e6);
  options.add("--max-norm", train.max_norm, "The gradient's L2 norm is clipped to this").range(1e-6, 1e6);
  options.add("--validation-every", train.validation_every, "Steps between two greedy validations")
      .range(1.0, 1e12);
}

void add_training_files(OptionSet& options, TrainRequest& request) {
  TrainOptions& train = request.options;
  options.add_file("--instances", request.instances,
                   "Train on these instances of size -n (with --reread of any size), any format of `solve`, "
                   "instead of uniform ones; the "
                   "last tenth, at most 1,000, is for validation");
  options.add_file("--solutions", request.solutions,
                   "Supervised learning: the answers to all --instances, which the network learns to give "
                   "(cross entropy)");
  options.add_model("--init", request.init,
                    "Start from this model (path or name) instead of fresh parameters");
  options
      .add("--sharpen", request.sharpen,
           "With --init: all its logits times this, the prior's too; above 1 a colder policy with the same "
           "greedy answers")
      .range(0.01, 100.0);
  options.add_file(
      "--resume", request.resume,
      "Continue from this checkpoint, bit for bit as if never stopped; give the same flags again");
  options.add_file("--checkpoint", request.checkpoint, "Write a resumable state to this file");
  options.add("--checkpoint-every", train.checkpoint_every, "Steps between two checkpoints")
      .range(1, 1 << 30);
  options.add_file("--log", request.log, "Write a JSON line here every 100 steps and at each validation");
}

}  // namespace

void add_train_options(OptionSet& options, TrainRequest& request) {
  ModelConfig& model = request.options.model;
  add_problem(options, request.problem);
  options.add("-n,--size", model.n, "Cities or items of an instance; a depot counts too")
      .required()
      .range(2, 10000);
  options
      .add("--capacity", model.capacity,
           "Capacity; 0: KnapSack 12.5 up to n = 50, else 25; CVRP 20, 30, 40 up to n = 11, 21, 51, else 50")
      .range(0, 1e12);
  options.add_words("--encoder", model.encoder,
                    OptionSet::Words<Encoder>{{name_of(Encoder::kAttention), Encoder::kAttention},
                                              {name_of(Encoder::kLstm), Encoder::kLstm}},
                    "attention: layers of self-attention; lstm: the paper's");
  options.add("--layers", model.layers, "Of the attention encoder").range(1, 64);
  options.add_on_off("--prior", model.has_prior,
                     "Learned weight of what the rules know of a candidate (TSP: its distance), added to its "
                     "logit; off: the paper's form");
  options
      .add("--reread", model.reread,
           "TSP, with --solutions: the encoder reads the cities left again before every so many choices, so "
           "that one "
           "network serves all sizes; --instances may then be of several. 0: it reads an instance once")
      .range(0, kMostReread);
  options.add("--glimpses", model.glimpses, "Glimpses before the pointer").range(0, 4);
  options
      .add("--clip", model.clip,
           "C of the logits C tanh(u); with --init the model's. A larger one is a colder policy")
      .range(0.1, 1000.0);
  options.add_on_off(
      "--centre-logits", model.centre_logits,
      "Subtract the mean of u over the feasible cities before the clip; off: the paper's literal form");
  add_training_options(options, request);
  add_training_files(options, request);
}

const char* name_of(Baseline baseline) {
  for (const auto& [name, known] : kBaselines) {
    if (known == baseline) return name;
  }
  return "";
}

}  // namespace pointsman
