// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/backend/backends.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/forward.h"
#include "engine/backend/cuda/rank_sum.h"

namespace pointsman {
namespace cuda {
namespace {

constexpr int kRolloutsPerMultiprocessor = 128;  // some 16,900 in all fill an H100

void clear(const DeviceStream& stream, float* array, int64_t floats) {
  require(cudaMemsetAsync(array, 0, sizeof(float) * floats, stream.get()), "clearing");
}

// What an update copies, to the device and back, and behind it on the device its scratch.
struct UpdateArrays {
  UpdateArrays(Placement& placement, int all_sets, int count, int64_t scratch_numbers)
      : steps(placement.take<int64_t>(2 * all_sets)),
        norms(placement.take<double>(2 * count)),
        scratch(placement.take<double>(scratch_numbers)) {}
  int64_t* steps;   // [actor, critic][all sets]
  double* norms;    // [actor, critic][count]
  double* scratch;  // of adam_update()
};

// In three steps: its memory, work for the stream, and the norms once that is done.
struct Update {
  const MainStream& main;
  const int first_set, count;
  const UpdateRequest& request;
  const bool critic;
  const UpdateArrays arrays;
  const UpdateArrays host;  // page-locked, so that no copy waits for the work before it
  CudaParameters& p = *main.device.parameters;

  void enqueue() const {
    const auto actor_size = static_cast<int64_t>(main.device.layout->actor_size);
    step(0, p.actor_steps, 0, actor_size);
    if (critic)
      step(1, p.critic_steps, actor_size, static_cast<int64_t>(main.device.layout->size) - actor_size);
    clear(main, p.set(p.gradient(), first_set), count * p.stride());  // also of a network that took no step
    p.prepare(first_set, count);
    main.download(host.norms, arrays.norms, sizeof(double) * (critic ? 2 : 1) * count);
  }

  void step(int network, std::vector<int64_t>& steps, int64_t offset, int64_t size) const {
    for (int s = first_set; s < first_set + count; ++s) ++steps[s];
    int64_t* const device_steps = arrays.steps + network * p.sets();
    int64_t* const host_steps = host.steps + network * p.sets();
    std::copy(steps.begin(), steps.end(), host_steps);
    main.upload(device_steps, host_steps, steps.size() * sizeof(int64_t));
    adam_update(
        {p.all(p.parameters()), p.all(p.first_moment()), p.all(p.second_moment()), p.all(p.gradient()),
         offset, size, first_set, count, request.max_norm, request.learning_rate, request.beta1,
         request.beta2, request.epsilon, device_steps, arrays.norms + network * count, arrays.scratch},
        main.get());
  }

  // Before the stream has come to it: nothing is updated but the gradients, which are zeroed.
  void withdraw() const {
    std::fill_n(host.steps, 2 * p.sets(), 0);
    for (int s = first_set; s < first_set + count; ++s) {
      --p.actor_steps[s];
      if (critic) --p.critic_steps[s];
    }
  }

  std::vector<GradientNorms> norms() const {
    std::vector<GradientNorms> all(count);
    for (int i = 0; i < count; ++i) all[i] = {host.norms[i], critic ? host.norms[count + i] : 0.0};
    return all;
  }
};

class CudaBackend final : public Backend, TwoOptDevice, GradientSum {
 public:
  CudaBackend(int index, int64_t memory_limit, Precision precision)
      : device_(index, precision), main_(device_), pool_(device_), memory_limit_(memory_limit) {
    device_.memory_budget.configure(memory_limit_);
  }
  ~CudaBackend() override { cudaSetDevice(device_.index); }

  DeviceInfo info() const override {
    const cudaDeviceProp& p = device_.properties;
    return {device_.index == 0 ? "cuda" : "cuda:" + std::to_string(device_.index),
            std::string(p.name) + ", sm_" + std::to_string(p.major) + std::to_string(p.minor) + ", " +
                std::to_string(p.totalGlobalMem >> 30) + " GiB" +
                (device_.precision == Precision::kFp32 ? "" : std::string(", ") + name_of(device_.precision)),
            std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
            false,
            int64_t{kRolloutsPerMultiprocessor} * p.multiProcessorCount,
            StreamPool::kStreams};
  }

  void configure(const ModelConfig& config, int sets) override {
    if (config.reread > 0)
      throw DeviceError("CUDA: there are no kernels for a network that re-reads; use --device cpu");
    device_.make_current();
    device_.parameters.reset();
    device_.memory_budget.release();
    device_.config = config;
    device_.layout.emplace(device_.config);
    device_.parameters.emplace(device_.config, *device_.layout, sets, main_.get());
    try {
      device_.parameters->allocate();
    } catch (const std::bad_alloc&) {
      size_t free = 0, total = 0;
      require(cudaMemGetInfo(&free, &total), "free memory");
      throw DeviceError("CUDA: " + std::to_string(sets) + " parameter sets need " +
                        mebibytes(device_.parameters->bytes()) + " of device memory, and there are " +
                        mebibytes(free));
    }
    main_.synchronize();
    device_.memory_budget.configure(memory_limit_);
  }

  void load_parameters(int set, std::span<const float> parameters) override {
    CudaParameters& p = changed(set);
    if (parameters.size() != device_.layout->size)
      throw std::invalid_argument("load_parameters: wrong number of parameters");
    write(parameters, p.set(p.parameters(), set));
    for (float* array : {p.first_moment(), p.second_moment(), p.gradient()})
      clear(main_, p.set(array, set), p.stride());
    p.actor_steps[set] = p.critic_steps[set] = 0;
    p.prepare(set, 1);
    main_.synchronize();
  }

  void read_parameters(int set, std::span<float> parameters) const override {
    const CudaParameters& p = of(set);
    read(p.set(p.parameters(), set), parameters);
  }

  void load_optimiser(int set, const OptimiserState& state) override {
    of(set);
    CudaParameters& p = *device_.parameters;
    if (state.first_moment.size() != device_.layout->size ||
        state.second_moment.size() != device_.layout->size)
      throw std::invalid_argument("load_optimiser: wrong number of moments");
    write(state.first_moment, p.set(p.first_moment(), set));
    write(state.second_moment, p.set(p.second_moment(), set));
    main_.synchronize();
    p.actor_steps[set] = state.actor_steps;
    p.critic_steps[set] = state.critic_steps;
  }

  OptimiserState read_optimiser(int set) const override {
    const CudaParameters& p = of(set);
    const size_t size = device_.layout->size;
    OptimiserState state{std::vector<float>(size), std::vector<float>(size), p.actor_steps[set],
                         p.critic_steps[set]};
    read(p.set(p.first_moment(), set), state.first_moment);
    read(p.set(p.second_moment(), set), state.second_moment);
    return state;
  }

  void read_gradient(int set, std::span<float> gradient) const override {
    const CudaParameters& p = of(set);
    read(p.set(p.gradient(), set), gradient);
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    if (request.policy.noise > 0.0f)
      throw DeviceError("noise: only the CPU perturbs logits; expected device cpu");
    if (request.tape != nullptr) require_cuda_gradient(request.sequences.problem);
    device_.make_current();
    roll_out(main_, pool_, request, result);
  }

  TwoOptDevice* two_opt_device() override { return this; }
  void two_opt(const TwoOptRequest& request, TwoOptResult& result) override {
    device_.make_current();
    search_tours(main_, request, result);
  }

  void gradient(const GradientRequest& request) override {
    require_cuda_gradient(request.sequences.problem);
    device_.make_current();
    add_gradient(main_, request);
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    require_cuda_gradient(sequences.problem);
    device_.make_current();
    run_critic(main_, sequences, targets, weight, values, stop);
  }

  GradientSum* gradient_sum() override { return this; }
  void sum_gradients(Communicator& ranks, int first_set, int count) override {
    if (count == 0) return;
    const CudaParameters& p = of(first_set + count - 1);
    if (!rank_sum_) rank_sum_.emplace(ranks, main_);
    for (int s = first_set; s < first_set + count; ++s)
      rank_sum_->add_up(p.set(p.gradient(), s), device_.layout->size);
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    if (count == 0) return {};
    changed(first_set);
    const Update update = place_update(first_set, count, request);
    update.enqueue();
    main_.synchronize();
    update_is_under_way_ = false;
    return update.norms();
  }
  std::vector<GradientNorms> learn(const LearnRequest& request, RolloutResult& result) override;

 private:
  Update place_update(int first_set, int count, const UpdateRequest& request) {
    of(first_set + count - 1);
    const int sets = device_.parameters->sets();
    Placement counted;
    UpdateArrays(counted, sets, count, 0);
    if (std::exchange(update_is_under_way_, true)) main_.synchronize();  // it ended by an exception
    Placement placed(update_copies_.reserve(counted.bytes()));
    return {main_,
            first_set,
            count,
            request,
            request.critic && device_.config.has_critic,
            main_.memory.place<UpdateArrays>(sets, count, update_scratch(count)),
            UpdateArrays(placed, sets, count, 0)};
  }
  int64_t update_scratch(int count) const {
    const size_t actor = device_.layout->actor_size, critic = device_.layout->size - actor;
    return adam_update_scratch(static_cast<int64_t>(std::max(actor, critic)), count);
  }

  const CudaParameters& of(int set) const {
    if (!device_.parameters || set < 0 || set >= device_.parameters->sets())
      throw std::out_of_range("no parameter set " + std::to_string(set));
    device_.make_current();
    return *device_.parameters;
  }

  // For calls that change parameters: a tape's activations are those of the old ones.
  CudaParameters& changed(int set) {
    of(set);
    main_.memory.let_go();
    return *device_.parameters;
  }

  void write(std::span<const float> from, float* to) const {
    main_.upload(to, from.data(), from.size_bytes());
  }
  void read(const float* from, std::span<float> to) const {
    main_.download(to.data(), from, to.size_bytes());
    main_.synchronize();
  }

  CudaDevice device_;
  MainStream main_;
  StreamPool pool_;
  std::optional<RankSum> rank_sum_;  // from the first sum_gradients() on
  PinnedBuffer update_copies_;
  bool update_is_under_way_ = false;
  const int64_t memory_limit_;
};

// One graph: the rollouts, their weights by a call of the host, the gradient, and the update. After a stop
// the weights are zeros, and the update is withdrawn.
std::vector<GradientNorms> CudaBackend::learn(const LearnRequest& request, RolloutResult& result) {
  of(request.first_set);
  const RolloutRequest& rollouts = request.rollouts;
  require_cuda_gradient(rollouts.sequences.problem);
  if (rollouts.sequences.n < 2 || request.sets == 0) return learn_in_calls(*this, request, result);
  std::vector<float> weights(count_rollouts(rollouts));  // they stay where they are, as the result does
  GradientRequest of_these;
  std::unique_ptr<TapeGradient> gradient;
  std::optional<Update> update;
  Placement update_bytes;
  UpdateArrays(update_bytes, device_.parameters->sets(), request.sets, update_scratch(request.sets));
  const auto prepare = [&] {
    of_these = gradient_of(rollouts, result, weights);
    of_these.learned = request.learned;
    gradient = gradient_from_tape(main_, of_these);
    update.emplace(place_update(request.first_set, request.sets, request.update));
  };
  const auto on_host = [&] {
    std::exception_ptr failure;
    if (result.finished.empty()) {
      try {
        const std::vector<float> given = request.weigh(result);
        if (given.size() != weights.size()) throw std::invalid_argument("learn: expected a weight a rollout");
        std::copy(given.begin(), given.end(), weights.begin());
      } catch (...) {
        failure = std::current_exception();
      }
    } else {
      update->withdraw();
    }
    gradient->stage();  // in any case: what follows reads it
    if (failure) std::rethrow_exception(failure);
  };
  const auto enqueue = [&] {
    gradient->enqueue();
    update->enqueue();
  };
  if (!run_step(main_, rollouts, result, {update_bytes.bytes(), prepare, on_host, enqueue}))
    return learn_in_calls(*this, request, result);
  update_is_under_way_ = false;
  return result.finished.empty() ? update->norms() : std::vector<GradientNorms>();
}

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(int index, int64_t memory_limit, Precision precision) {
  return std::make_unique<cuda::CudaBackend>(index, memory_limit, precision);
}

}  // namespace pointsman
