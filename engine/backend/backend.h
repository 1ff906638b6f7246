// SPDX-License-Identifier: Apache-2.0
// The interface between search or training and a device. Each call handles a whole batch, never one time
// step, so that a device may fuse everything inside a call. Pointers are host memory owned by the caller and
// used only during the call. One Backend serves one caller at a time, or DeviceInfo::calls callers that make
// rollouts without a tape.
//
// Every sequence names its parameter set. So active search over many instances, each with its own weights, is
// the same call as inference with one model.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/own_problem.h"
#include "kernels/common/policy.h"
#include "kernels/common/precision.h"
#include "kernels/common/rules.h"
#include "kernels/common/tour_limits.h"
#include "kernels/tools/stop_token.h"
#include "models/config.h"

namespace pointsman {

class Communicator;  // engine/cluster/communicator.h

// Instances as the network reads them (scaled, mirrored, permuted). count x n items. A model that re-reads
// (ModelConfig::reread) makes rollouts of a TSP's instances and learns from stretches
// (engine/backend/stretch.h).
struct SequenceBatch {
  ProblemKind problem{};
  int n = 0;
  int count = 0;
  const float* features = nullptr;  // [count][n][width()]
  // As RuleInputs, [count][number_rows][n] and [count]; null where the rules read no such numbers.
  const double* weights = nullptr;
  const double* capacities = nullptr;
  const int32_t* parameter_sets = nullptr;  // [count], non-decreasing; null: all 0
  // A user's own problem, which must outlive the call, and the items in the user's units, [count][n][F].
  const OwnProblem* own = nullptr;
  const OwnDeclared* declared = nullptr;  // own->declared(n)
  const double* items = nullptr;

  int width() const { return own != nullptr ? own->width() : feature_count(problem); }
  int steps() const { return max_steps(problem, n); }                                       // of an order
  size_t numbers_each() const { return static_cast<size_t>(number_rows(problem, n)) * n; }  // of `weights`
  int set_of(int sequence) const { return parameter_sets == nullptr ? 0 : parameter_sets[sequence]; }
  const float* features_of(int sequence) const {
    return features + static_cast<size_t>(sequence) * n * width();
  }
  const double* items_of(int sequence) const { return items + static_cast<size_t>(sequence) * n * width(); }
  RuleInputs rule_inputs(int sequence, const Policy& policy) const {
    RuleInputs inputs;
    inputs.n = n;
    inputs.is_open = pointsman::is_open(problem);
    if (own != nullptr) {
      inputs.declared = declared;
      inputs.items = items_of(sequence);
      inputs.features = features_of(sequence);
    }
    if (capacities == nullptr) return inputs;
    inputs.weights = weights + static_cast<size_t>(sequence) * numbers_each();
    inputs.capacity = capacities[sequence];
    inputs.stop_at_first_misfit = policy.stop_at_first_misfit;
    inputs.masks = policy.masks;
    inputs.penalty = policy.penalty;
    return inputs;
  }
};

class TapeHead;

// Rollouts with their activations, so that gradient() need not compute them again: the same bits, sooner.
// rollout() fills a tape and gradient() uses it up. A backend remembers only the tape that it filled last,
// until parameters change or another call needs the memory; it computes the gradient of any other tape from
// the start. A tape kept over all steps keeps its memory. It may outlive the backend.
class Tape {
 public:
  struct Storage {
    virtual ~Storage() = default;
  };

  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // For backends: the storage, of the backend's own type; a new one if the tape had another.
  template <typename Own>
  Own& storage() {
    if (dynamic_cast<Own*>(storage_.get()) == nullptr) {
      storage_ = std::make_unique<Own>();
      filled_by_ = nullptr;
    }
    return static_cast<Own&>(*storage_);
  }

 private:
  friend class TapeHead;
  std::unique_ptr<Storage> storage_;
  const TapeHead* filled_by_ = nullptr;
  uint64_t rollouts_ = 0;  // their fingerprint
};

// Which rollouts to make of each sequence. The j-th rollout of sequence s is sample
// first_samples[s] + j * sample_stride of the instance instance_keys[s]; its draws depend on
// (seed, instance key, sample, step) and nothing else.
struct RolloutRequest {
  SequenceBatch sequences;
  Decode decode = Decode::kGreedy;
  const int32_t* counts = nullptr;          // [count] rollouts per sequence; null: 1 each
  const uint64_t* instance_keys = nullptr;  // [count]; sampling only
  const uint32_t* first_samples = nullptr;  // [count]; null: all 0
  // [rollouts] the number of each sample, in place of those; null: not given. On the CPU only.
  const uint32_t* samples = nullptr;
  uint32_t sample_stride = 1;
  uint64_t seed = kDefaultSeed;
  Policy policy;
  const int32_t* forced = nullptr;  // kForced: [rollouts][steps], what to choose; -1 after the end
  Tape* tape = nullptr;             // to fill with these rollouts, or null
  bool best_only = false;  // return only the cheapest rollout of each sequence; not with a tape or kForced
  StopToken stop;          // ends the call early: see RolloutResult::finished

  bool wants_entropy() const { return decode == Decode::kSample && tape != nullptr; }
};

// Rollouts in sequence order, or with best_only the best rollout of each sequence. Cost and log p are NaN for
// a forced order that is infeasible or ends early, and, without items, for a sequence without rollouts and
// for rollouts that a stop left unfinished.
struct RolloutResult {
  std::vector<int32_t> orders;         // [rollouts][steps] items of the input sequence; -1 after the last one
  std::vector<double> costs;           // [rollouts] what the policy minimises, in network units (Rules::cost)
  std::vector<double> log_probs;       // [rollouts]
  std::vector<int32_t> winners;        // best_only: [count] number of the best, the first of equals; -1: none
  PolicyStatistics statistics;         // of all rollouts made
  std::vector<int32_t> finished = {};  // after a stop: [count] rollouts made of each sequence; else empty
};

using RolloutCall = std::function<void(const RolloutRequest& request, RolloutResult& result)>;

// One tour of each sequence by iterated 2-opt and Or-opt (kernels/common/two_opt.h), without a network. The
// same tours on every device.
struct TwoOptRequest {
  SequenceBatch sequences;  // of the TSP, kFewestTourCities to kMostTourCities cities in the unit square
  const uint64_t* instance_keys = nullptr;  // [count] a kick depends on (seed, key, its number) alone
  int kicks = 0;                            // of each tour after its first local optimum
  uint64_t seed = kDefaultSeed;
  StopToken stop;  // ends the call early with the best tours so far
};

struct TwoOptResult {
  std::vector<int32_t> orders;  // [count][n]
  std::vector<int32_t> kicks;   // [count] made; after a stop fewer, kDescentStopped, or kNotBegun: no order
};

class TwoOptDevice {
 public:
  virtual ~TwoOptDevice() = default;
  // Needs no Backend::configure(). Throws std::invalid_argument for sequences of another problem or size.
  virtual void two_opt(const TwoOptRequest& request, TwoOptResult& result) = 0;
};

// Devices of several ranks whose gradients can be added.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  // Called by all ranks: the gradient accumulators of these sets become, on every rank, the sum over all
  // ranks in rank order.
  virtual void sum_gradients(Communicator& ranks, int first_set, int count) = 0;
};

// Which actor parameters receive gradients. kAttention: glimpse, pointer and prior, the last ones of the
// layout; the backward pass then ends before the recurrences and the encoder.
enum class Learned : int32_t { kAll, kAttention };

// d/dparameters of sum over rollouts of weights[r] * log p(orders[r] | sequence). With weights (L - b) / B
// this is the REINFORCE gradient, equation (5); with -1 / B cross entropy on given tours.
struct GradientRequest {
  SequenceBatch sequences;
  const int32_t* counts = nullptr;  // [count] rollouts per sequence; null: 1 each
  const int32_t* orders = nullptr;  // [rollouts][steps]; -1 after the last
  const float* weights = nullptr;   // [rollouts]
  Policy policy;                    // of the rollouts
  Tape* tape = nullptr;             // of these rollouts, or null; std::invalid_argument if it holds others
  StopToken stop = {};  // ends the call early with CallStopped; the sets' gradients are then undefined
  Learned learned = Learned::kAll;
};

// Without a tape.
inline GradientRequest gradient_of(const RolloutRequest& rollouts, const RolloutResult& result,
                                   const std::vector<float>& weights) {
  return {rollouts.sequences, rollouts.counts, result.orders.data(), weights.data(), rollouts.policy};
}

// Whether cost a is less than b. NaN, the cost of a rollout that was not made, is the largest.
inline bool costs_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// One Adam step (Kingma & Ba 2015) on the accumulated gradients, which are zeroed. Actor and critic are
// clipped to max_norm separately by their global L2 norms.
struct UpdateRequest {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float max_norm = 1.0f;
  bool critic = false;  // whether it is updated, too
};

struct GradientNorms {
  double actor = 0.0, critic = 0.0;  // before clipping
};

// A training step: rollouts onto a tape, their gradient, an update of the sets from first_set on.
struct LearnRequest {
  RolloutRequest rollouts;  // with a tape
  // Returns GradientRequest::weights. It may be called by another thread while learn() waits, and calls no
  // backend.
  std::function<std::vector<float>(const RolloutResult&)> weigh;
  Learned learned = Learned::kAll;
  int first_set = 0, sets = 1;
  UpdateRequest update;
};

struct OptimiserState {
  std::vector<float> first_moment, second_moment;  // [layout.size]
  int64_t actor_steps = 0, critic_steps = 0;
};

struct DeviceInfo {
  std::string name;        // "cpu"
  std::string detail;      // "AVX-512, 2 threads"
  int threads = 1;         // of the host, for work besides the device's
  bool uses_host = true;   // its calls keep those threads busy
  int64_t rollouts = 512;  // that fill it in one call onto a tape
  int calls = 1;           // concurrent calls for rollouts without a tape
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceInfo info() const = 0;

  // Makes `sets` parameter sets of this model, all zero, and drops those before.
  virtual void configure(const ModelConfig& config, int sets) = 0;
  // parameters: [layout.size]. Zeroes the Adam state and the gradient.
  virtual void load_parameters(int set, std::span<const float> parameters) = 0;
  virtual void read_parameters(int set, std::span<float> parameters) const = 0;
  virtual void load_optimiser(int set, const OptimiserState& state) = 0;
  virtual OptimiserState read_optimiser(int set) const = 0;

  virtual void rollout(const RolloutRequest& request, RolloutResult& result) = 0;

  // Adds to the gradient accumulators of the sets named.
  virtual void gradient(const GradientRequest& request) = 0;

  // Critic values b(s), [count], in network units; adds the gradient of weight * sum (b(s) - targets[s])^2. A
  // stop acts as in gradient().
  virtual void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                               std::span<float> values, const StopToken& stop = {}) = 0;

  virtual void read_gradient(int set, std::span<float> gradient) const = 0;  // [layout.size]
  // Updates the sets first_set .. first_set + count - 1; returns their norms before clipping.
  virtual std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) = 0;

  // rollout(), gradient() and update() in one call: the same bits. If a stop ends it, it returns no norms,
  // parameters and Adam state stay as they were, and the sets' gradients are undefined. After weigh() has
  // thrown a device may make an update of zero gradients.
  virtual std::vector<GradientNorms> learn(const LearnRequest& request, RolloutResult& result);

  // What only some backends can do; null: this one cannot.
  virtual TwoOptDevice* two_opt_device() { return nullptr; }
  virtual GradientSum* gradient_sum() { return nullptr; }
};

// learn() as three calls; here weigh() may call the backend.
inline std::vector<GradientNorms> learn_in_calls(Backend& backend, const LearnRequest& request,
                                                 RolloutResult& result) {
  backend.rollout(request.rollouts, result);
  if (!result.finished.empty()) return {};
  const std::vector<float> weights = request.weigh(result);
  GradientRequest gradient = gradient_of(request.rollouts, result, weights);
  gradient.tape = request.rollouts.tape;
  gradient.stop = request.rollouts.stop;
  gradient.learned = request.learned;
  try {
    backend.gradient(gradient);
  } catch (const CallStopped&) {
    return {};
  }
  return backend.update(request.first_set, request.sets, request.update);
}

inline std::vector<GradientNorms> Backend::learn(const LearnRequest& request, RolloutResult& result) {
  return learn_in_calls(*this, request, result);
}

// Gives each step of a training to exactly one of several concurrent trainers.
class SharedSteps {
 public:
  virtual ~SharedSteps() = default;

  // The lowest step that no trainer has taken. Steps begin at rank 0's `first`.
  virtual int64_t take(int64_t first) = 0;
  // This trainer takes no more steps; with `all` nobody does. Rank 0 waits for the others and returns how
  // many gradients were 0, 1, .. updates old when applied; the last number counts those too old to apply.
  // Other ranks return nothing.
  virtual std::vector<int64_t> end(bool all) = 0;
};

// A device that was named is not available (exit code 4).
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct BackendOptions {
  // auto | cpu | cuda[:i] | check[:DEVICE,DEVICE], which compares two | cuda:all, for make_backends() only
  std::string device = "auto";
  int threads = 0;  // CPU worker threads; 0: all cores
  // Of rollouts without a tape; all else is fp32.
  Precision precision = Precision::kFp32;
  // The problem whose gradients the backend will be asked for, if any.
  std::optional<ProblemKind> learned = {};
  int auto_index = 0;  // which CUDA device "auto" takes
};

// CUDA computes gradients of plain problems. Throws DeviceError for others.
inline void require_cuda_gradient(ProblemKind problem) {
  if (is_plain(problem)) return;
  throw DeviceError(std::string("CUDA computes no gradients for ") + name_of(problem) + "; the CPU does");
}

// The backend of that name. "auto" is CUDA if available and able to learn what is learned, else the CPU, with
// the reason in `note`. Throws DeviceError for a named device or a precision that is not available,
// std::invalid_argument for an unknown name.
std::unique_ptr<Backend> make_backend(const BackendOptions& options, std::string* note = nullptr);

// The same as a list: for "cuda:all" a backend for each CUDA device of the machine.
std::vector<std::unique_ptr<Backend>> make_backends(const BackendOptions& options,
                                                    std::string* note = nullptr);

// Whether this machine has NVIDIA's driver.
bool has_cuda_driver();

// Path of the CUDA module: POINTSMAN_CUDA_MODULE of the environment, or lib/pointsman/libpointsman_cuda.so of
// an install prefix (models/tools/install_prefixes.h); empty: there is none.
std::string find_cuda_module();

// CUDA on this machine.
struct CudaStatus {
  struct Device {
    std::string name;          // "NVIDIA H200"
    std::string architecture;  // "sm_90"
    int64_t memory = 0;        // bytes
    std::string identity;      // unique among the devices of all machines
  };
  std::string module;           // find_cuda_module()
  std::string reason;           // why no CUDA device can be used, or empty
  std::string driver, runtime;  // versions of CUDA, "13.0"; empty: unknown
  std::vector<Device> devices;
};
CudaStatus cuda_status();

}  // namespace pointsman
