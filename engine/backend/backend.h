// SPDX-License-Identifier: Apache-2.0
// The seam between search/training and a device: batch-sized calls only, never one per time step, so that a
// device may fuse everything inside a call. All pointers are host memory owned by the caller and only read or
// written during the call. One Backend serves one caller at a time, or several at once that make rollouts
// without a tape: DeviceInfo::calls.
//
// Every sequence names its parameter set, so active search over many instances, each with weights of its own,
// is the same call as inference with one model.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/policy.h"
#include "kernels/common/precision.h"
#include "kernels/common/rules.h"
#include "kernels/common/tour_limits.h"
#include "kernels/tools/stop_token.h"
#include "models/config.h"

namespace pointsman {

class Communicator;  // engine/cluster/communicator.h

// Input sequences: an instance as the network reads it (scaled, mirrored, permuted). count x n items.
struct SequenceBatch {
  ProblemKind problem{};
  int n = 0;
  int count = 0;
  const float* features = nullptr;          // [count][n][2]
  const double* weights = nullptr;          // [count][n], in the capacity's units; null without capacities
  const double* capacities = nullptr;       // [count]; null where the problem has none
  const int32_t* parameter_sets = nullptr;  // [count], non-decreasing; null: all 0

  int set_of(int sequence) const { return parameter_sets == nullptr ? 0 : parameter_sets[sequence]; }
  const float* features_of(int sequence) const { return features + static_cast<size_t>(sequence) * n * 2; }
  // What the rules of one of them are made from.
  RuleInputs rule_inputs(int sequence, const Policy& policy) const {
    if (capacities == nullptr) return {};
    return {weights + static_cast<size_t>(sequence) * n, capacities[sequence], policy.stop_at_first_misfit};
  }
};

class TapeHead;

// Rollouts with their activations, from which their gradient goes back without computing them again: the same
// bits, sooner. rollout() fills a tape, gradient() uses it up. A backend knows the one tape that it filled
// last, and that tape only until parameters change or another call needs the memory: the gradient of any
// other tape is computed from the start. One tape held over all steps keeps its memory from step to step. It
// may outlive the backend.
class Tape {
 public:
  // What a backend writes on it.
  struct Storage {
    virtual ~Storage() = default;
  };

  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // The storage of a backend's own type, for backends; a fresh one where the tape had another.
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
  uint64_t rollouts_ = 0;  // fingerprint of what is on it
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
  uint32_t sample_stride = 1;
  uint64_t seed = kDefaultSeed;
  Policy policy;
  const int32_t* forced = nullptr;  // kForced: [rollouts][n], what to choose; -1 after the end
  Tape* tape = nullptr;             // filled with these rollouts for their gradient; null: not wanted
  bool best_only = false;  // answer with one rollout per sequence, the one of least cost; neither with a
                           // tape nor with kForced
  StopToken stop;          // ends the call early: see RolloutResult::finished

  bool wants_entropy() const { return decode == Decode::kSample && tape != nullptr; }
};

// Rollouts in sequence order. `orders` holds item indices of the input sequence (the caller undoes
// permutations). A forced order that asks for what cannot be chosen, or a forced tour that ends early, stops
// there: cost and log p NaN. With best_only the entries are the sequences' best rollouts; that of a sequence
// without rollouts has cost and log p NaN and no items; so have rollouts that a stop left unfinished.
struct RolloutResult {
  std::vector<int32_t> orders;    // [rollouts][n]; -1 after the last item of an answer without all of them
  std::vector<double> costs;      // [rollouts] what the policy minimises, in network units (Rules::cost)
  std::vector<double> log_probs;  // [rollouts]
  std::vector<int32_t> winners;   // best_only: [count] which rollout of its sequence, the lowest of equal
                                  // ones; -1: it has none. Else empty
  PolicyStatistics statistics;    // of all rollouts made
  std::vector<int32_t> finished = {};  // after a stop: [count] how many rollouts of a sequence were made.
                                       // Else empty: all of them
};

// One tour of each sequence by iterated 2-opt and Or-opt (kernels/common/two_opt.h), all of them side by
// side. No network is asked. The same tours on every device.
struct TwoOptRequest {
  SequenceBatch sequences;  // of the TSP, kFewestTourCities to kMostTourCities cities in the unit square
  const uint64_t* instance_keys = nullptr;  // [count] kicks depend on (seed, key, number of the kick) alone
  int kicks = 0;                            // of each tour after its first local optimum
  uint64_t seed = kDefaultSeed;
  StopToken stop;  // ends the call early: the best tours so far
};

struct TwoOptResult {
  std::vector<int32_t> orders;  // [count][n]
  std::vector<int32_t> kicks;   // [count] made; after a stop fewer, kDescentStopped, or kNotBegun, where the
                                // order is -1s
};

// Of which of the actor's parameters a gradient is. kAttention: glimpse, pointer and prior, the last ones of
// the layout; the way back then ends before the recurrences and the encoder, and the others' gradients stay.
enum class Learned : int32_t { kAll, kAttention };

// d/dparameters of sum over rollouts of weights[r] * log p(orders[r] | sequence). With weights (L - b) / B
// this is the REINFORCE gradient, equation (5); with -1 / B cross entropy on given tours.
struct GradientRequest {
  SequenceBatch sequences;
  const int32_t* counts = nullptr;  // [count] rollouts per sequence; null: 1 each
  const int32_t* orders = nullptr;  // [rollouts][n]; -1 after the last
  const float* weights = nullptr;   // [rollouts]
  Policy policy;                    // of the rollouts
  Tape* tape = nullptr;  // of these rollouts, or null. Throws std::invalid_argument where the tape holds
                         // other rollouts: other sequences, orders or policy
  StopToken stop;        // ends the call early with CallStopped: then the sets' gradients are of no use
  Learned learned = Learned::kAll;
};

// Of the rollouts, from the start.
inline GradientRequest gradient_of(const RolloutRequest& rollouts, const RolloutResult& result,
                                   const std::vector<float>& weights) {
  GradientRequest request;
  request.sequences = rollouts.sequences;
  request.counts = rollouts.counts;
  request.orders = result.orders.data();
  request.weights = weights.data();
  request.policy = rollouts.policy;
  return request;
}

// Is cost a less than b, where NaN, of a rollout that was not made, is more than all others?
inline bool costs_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// One Adam step (Kingma & Ba 2015) on the accumulated gradients, which are zeroed. Actor and critic are
// clipped to max_norm separately by their global L2 norms.
struct UpdateRequest {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float max_norm = 1.0f;
  bool actor = true;  // which networks to step
  bool critic = false;
};

struct GradientNorms {
  double actor = 0.0, critic = 0.0;  // before clipping
};

// A step of policy gradient: rollouts onto a tape, their gradient, an update of the sets from first_set on.
struct LearnRequest {
  RolloutRequest rollouts;  // with a tape
  // GradientRequest::weights [rollouts] of the rollouts, which are all there. It may be called by another
  // thread while learn() waits, and calls no backend.
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
  int threads = 1;         // of the host, for the work beside the device's
  bool uses_host = true;   // its calls keep those threads busy
  int64_t rollouts = 512;  // of one call for its gradient that fill it
  int calls = 1;           // for rollouts without a tape that it takes at once
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceInfo info() const = 0;

  // Forgets everything and makes `sets` parameter sets of this model, all zero.
  virtual void configure(const ModelConfig& config, int sets) = 0;
  // parameters: [layout.size]. Zeroes the Adam state and the gradient.
  virtual void load_parameters(int set, std::span<const float> parameters) = 0;
  virtual void read_parameters(int set, std::span<float> parameters) const = 0;
  virtual void load_optimiser(int set, const OptimiserState& state) = 0;
  virtual OptimiserState read_optimiser(int set) const = 0;

  virtual void rollout(const RolloutRequest& request, RolloutResult& result) = 0;

  // Without configure() too. Throws std::invalid_argument for sequences of another problem or size,
  // std::logic_error where the backend is one of several processes.
  virtual void two_opt(const TwoOptRequest& request, TwoOptResult& result);

  // Adds to the gradient accumulators of the sets named.
  virtual void gradient(const GradientRequest& request) = 0;

  // Critic values b(s) [count], network units.
  virtual void critic_values(const SequenceBatch& sequences, std::span<float> values) = 0;
  // Values [count] from the parameters as they are; adds the gradient of weight * sum (b(s) - targets[s])^2.
  // A stop ends it with CallStopped, as that of gradient().
  virtual void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                               std::span<float> values, const StopToken& stop = {}) = 0;

  virtual void read_gradient(int set, std::span<float> gradient) const = 0;  // [layout.size]
  // Called by all ranks: the gradient accumulators of these sets become the sum of every rank's, in rank
  // order, on every rank. Of devices only; others throw std::logic_error.
  virtual void sum_gradients(Communicator& ranks, int first_set, int count);
  // Steps the sets first_set .. first_set + count - 1; returns their norms before clipping.
  virtual std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) = 0;

  // rollout(), gradient() and update() in one call: the same bits. Where a stop leaves some rollouts unmade
  // or ends the gradient, it returns no norms and there is no update: parameters and Adam state stay as they
  // were, and the sets' gradients are of no use. After weigh() has thrown a device may make an update of zero
  // gradients.
  virtual std::vector<GradientNorms> learn(const LearnRequest& request, RolloutResult& result);
};

// learn() as the three calls it stands for, with a `weigh` that may call the backend.
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

inline void Backend::two_opt(const TwoOptRequest&, TwoOptResult&) {
  throw std::logic_error("two_opt: not of this backend");
}

inline void Backend::sum_gradients(Communicator&, int, int) {
  throw std::logic_error("sum_gradients: not of this backend");
}

// The steps of one training that several trainers make at once, each those that nobody else makes.
class SharedSteps {
 public:
  virtual ~SharedSteps() = default;

  // The lowest step that no trainer has taken, from `first` of rank 0 on.
  virtual int64_t take(int64_t first) = 0;
  // This trainer takes no more; `all`: nobody shall. On rank 0 it returns when the others have ended, too:
  // how many gradients were 0, 1, .. updates old when theirs was made; the last number is of those that were
  // too old for one. Empty elsewhere.
  virtual std::vector<int64_t> end(bool all) = 0;
};

// A device that was asked for by name and cannot be had (exit code 4).
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct BackendOptions {
  // auto | cpu | cuda[:i] | check[:DEVICE,DEVICE], which compares two | cuda:all, which make_backends() knows
  std::string device = "auto";
  int threads = 0;  // CPU worker threads; 0: all cores
  // Of rollouts, but not of those that a gradient may follow (RolloutRequest::tape), nor of gradients.
  Precision precision = Precision::kFp32;
};

// The backend of that name. "auto" takes CUDA where it can, else the CPU, and then tells the reason in
// `note`. Throws DeviceError for a named device that is missing and for a precision that no CUDA device is
// there for; std::invalid_argument for an unknown name.
std::unique_ptr<Backend> make_backend(const BackendOptions& options, std::string* note = nullptr);

// The same, of one device; those of all CUDA devices of the machine for "cuda:all".
std::vector<std::unique_ptr<Backend>> make_backends(const BackendOptions& options,
                                                    std::string* note = nullptr);

// Where the CUDA module is: the environment's POINTSMAN_CUDA_MODULE, or
// lib/pointsman/libpointsman_cuda.so of an install prefix (models/tools/install_prefixes.h); empty when there
// is none.
std::string find_cuda_module();

// What there is of CUDA on this machine.
struct CudaStatus {
  struct Device {
    std::string name;          // "NVIDIA H200"
    std::string architecture;  // "sm_90"
    int64_t memory = 0;        // bytes
    std::string identity;      // which no other device of any machine has
  };
  std::string module;           // find_cuda_module()
  std::string reason;           // why no CUDA device can be used; empty: one can
  std::string driver, runtime;  // versions of CUDA, "13.0"; empty: unknown
  std::vector<Device> devices;
};
CudaStatus cuda_status();

}  // namespace pointsman
