// SPDX-License-Identifier: Apache-2.0
// Policy-gradient training: Algorithm 1 of Bello et al. 2017 (actor-critic) and three other baselines. And
// supervised learning from given answers, what the paper compares it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "models/config.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

// A user's own instances to train on: with solutions by supervised learning (Vinyals et al. 2015; Bello et
// al. 2017, section 5.2), without by policy gradient.
struct Examples {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 0;
  std::vector<float> features = {};  // [count][n][F] as the network reads them
  std::vector<int32_t> orders = {};  // [count][steps] the answers; -1 after the last item; empty: none given
  std::vector<double> numbers = {};  // [count][number_rows][n] where features do not tell what the rules read
  // For a network that re-reads tours may differ in size: [count] cities, and where each tour begins in
  // `orders` and, times 2, its places in `features`. Else empty.
  std::vector<int32_t> sizes = {};
  std::vector<size_t> begins = {};
  // Packings left out, as the network packs until nothing fits.
  size_t unreachable = 0;
  uint64_t fingerprint = 0;  // FNV-1a over all of these, never 0: what a checkpoint remembers

  size_t count() const {
    if (!sizes.empty()) return sizes.size();
    return n == 0 ? 0 : features.size() / (static_cast<size_t>(n) * feature_count(problem));
  }
  bool have_answers() const { return !orders.empty(); }
};

inline constexpr int kFewestRead = 3;  // cities of an instance for a network that re-reads

// instances: of config.n items each, for a network that re-reads of kFewestRead or more. solutions: a valid
// one for each, or none at all. Throws std::invalid_argument naming the first row that is not, or if nothing
// is left to learn from. after(numbers): called for each instance and each piece of the fingerprint; it may
// throw.
Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions, const std::function<void(size_t)>& after = {});

// The last tenth of them, at most `most`, taken off `examples` for validation; of fewer than ten, a copy of
// all.
Examples split_off(Examples& examples, size_t most);

// b of equation (5).
enum class Baseline {
  kShared,  // k rollouts of each instance, leave-one-out mean of the others (Kool et al. 2019b, POMO)
  kCritic,  // the critic network, trained beside the actor
  kEma,     // exponential moving average of the batch's mean cost
  // Greedy rollout of the best actor so far, replaced when a paired t-test says so (Kool et al. 2019).
  kRollout,
};

// What a training makes of rollouts that cannot end well (TSPTW; Bello et al. 2017, section 6).
enum class Infeasible {
  kMask,     // what comes certainly too late is masked; late rollouts are left out
  kPenalty,  // nothing is masked; a delay costs a penalty
  kBoth
};

struct TrainOptions {
  // The shape of the network and the problem. Of a model to start from also training_tours and learning_rate,
  // which stays that of its first training.
  ModelConfig model;
  // To train on; null: fresh uniform ones. With answers training is supervised, without a baseline.
  std::shared_ptr<const Examples> examples;
  std::shared_ptr<const Examples> validation;  // null: validation_instances fresh uniform instances
  uint64_t examples_fingerprint = 0;           // theirs, filled in by train(); 0: none
  // A user's own problem, which draws the instances: with Encoder::kAttention, by policy gradient.
  std::shared_ptr<const OwnProblem> own;
  Baseline baseline = Baseline::kShared;
  int rollouts = 8;  // k of an instance, kShared and supervised
  // Only for kShared with Encoder::kAttention: how many encodings, each of another dihedral copy of a TSP
  // instance, an instance's rollouts share. A divisor of k, at most 8. Elsewhere each rollout is an input
  // sequence of its own.
  int symmetries = 1;
  int batch = 32;         // instances per step
  int64_t steps = 60000;  // about 40 minutes of two cores at n = 20
  float learning_rate = 1e-3f;
  float decay = 0.96f;     // learning rate x decay every decay_steps
  int decay_steps = 1000;  // the paper's 5,000 suit runs of hours; this one ends near a tenth of the rate
  // T of the objective E[L + T log p]; it falls linearly to 0 over entropy_steps. 0: as in the paper.
  float entropy = 0.0f;
  int64_t entropy_steps = 30000;
  float max_norm = 1.0f;
  float ema_decay = 0.8f;
  // TSPTW. The penalty of a policy begins at `penalty`; each step adds penalty_rate times the mean of what it
  // is multiplied with (a Lagrange multiplier: it grows while rollouts come late).
  Infeasible infeasible = Infeasible::kBoth;
  double penalty = 1.0, penalty_rate = 0.01;
  int64_t validation_every = 500;  // steps
  int validation_instances = 1000;
  uint64_t seed = kDefaultSeed;
  std::filesystem::path output;      // model file; written at each checkpoint and at the end
  std::filesystem::path checkpoint;  // resumable state; empty: none
  int checkpoint_every = 500;        // steps
  std::filesystem::path log;         // JSON lines; empty: none

  bool is_supervised() const { return examples != nullptr && examples->have_answers(); }
  int64_t tours_a_step() const {
    return int64_t{batch} * (is_supervised() || baseline == Baseline::kShared ? rollouts : 1);
  }
};

// One line of the training log (docs/file-formats.md).
struct TrainProgress {
  int64_t step = 0, tours = 0;
  // val_cost: of TSPTW the mean of those in time; NaN when not measured.
  double seconds = 0, tours_per_second = 0, train_cost = 0, val_cost = 0;
  double baseline_loss = 0, grad_norm = 0, entropy = 0, mean_logit = 0, saturated = 0, learning_rate = 0;
  double infeasible = 0;     // TSPTW: share of the validation's answers that come late; else NaN
  double penalty = 0;        // likewise: Policy's
  double cross_entropy = 0;  // supervised learning: mean -log p of an answer, nats; else NaN
  double eta_seconds = 0;
};

struct TrainResult {
  ModelConfig config;             // training_tours filled in
  std::vector<float> parameters;  // actor and critic
  // The state at the end; val_cost is the last one measured. Costs that were not measured are NaN.
  TrainProgress last;
  Status status = Status::kDone;
  std::vector<int64_t> ages = {};  // from SharedSteps::end()
};

struct TrainJob {
  TrainOptions options;
  std::vector<float> initial;  // [ParameterLayout(options.model).size]
  // A checkpoint to resume instead, with the bits of a training that never stopped.
  std::filesystem::path resume = {};
  SearchControl control = {};
  std::function<void(const TrainProgress&)> progress = {};
  // Gives several processes that train together their steps. Progress and results then count the steps of
  // all, and their means are over this one's. May be null.
  SharedSteps* shared = nullptr;
};

// Throws CheckpointError for a file that is no checkpoint.
TrainResult train(Backend& backend, const TrainJob& job);

struct CheckpointError : FileError {
  using FileError::FileError;
};

}  // namespace pointsman
