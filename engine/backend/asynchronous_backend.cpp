// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/asynchronous_backend.h"

#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/backend/cpu_adam_step.h"
#include "engine/cluster/message.h"

namespace pointsman {

namespace {

// What the shared memory begins with; parameters, first and second moments follow.
struct Head {
  int64_t is_open = 0;  // rank 0 has loaded its parameters
  int64_t taken = 0;    // steps
  int64_t updates = 0;
  int64_t actor_steps = 0, critic_steps = 0;
};

class Lock {
 public:
  explicit Lock(SharedMemory& memory) : memory_(memory) { memory_.lock(); }
  ~Lock() { memory_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  SharedMemory& memory_;
};

class Asynchronous final : public AsynchronousBackend {
 public:
  Asynchronous(Communicator& ranks, std::unique_ptr<Backend> own, int most_stale)
      : ranks_(ranks), own_(std::move(own)), most_stale_(most_stale), ages_(most_stale + 2, 0) {}

  ~Asynchronous() override {
    if (!memory_ || has_ended_) return;
    ranks_.mark_broken();  // the others know nothing of it, and giving the memory back would wait for them
    memory_.release();     // NOLINT(bugprone-unused-return-value)
  }

  DeviceInfo info() const override {
    DeviceInfo info = own_->info();
    info.detail += ", " + std::to_string(ranks_.size()) + " asynchronous ranks";
    return info;
  }

  void configure(const ModelConfig& config, int sets) override {
    if (sets != 1) throw std::invalid_argument("asynchronous training: one set of parameters, no more");
    own_->configure(config, 1);
    layout_.emplace(config);
    memory_ = ranks_.share_memory(sizeof(Head) + 3 * layout_->size * sizeof(float));
    parameters_.resize(layout_->size);
    gradient_.resize(layout_->size);
    state_.first_moment.resize(layout_->size);
    state_.second_moment.resize(layout_->size);
  }

  // Of a rank that began, what only the first update of all may overwrite: the critic's start.
  void load_parameters(int set, std::span<const float> parameters) override {
    own_->load_parameters(set, parameters);
    if (ranks_.rank() > 0 && !has_begun_) return;
    const Lock lock(*memory_);
    if (head().updates == 0) put_array(0, parameters);
  }
  void load_optimiser(int, const OptimiserState& state) override {
    if (ranks_.rank() > 0) return;
    const Lock lock(*memory_);
    Head head = this->head();
    head.actor_steps = state.actor_steps;
    head.critic_steps = state.critic_steps;
    put_head(head);
    put_array(1, state.first_moment);
    put_array(2, state.second_moment);
  }
  void read_parameters(int, std::span<float> parameters) const override {
    const Lock lock(*memory_);
    get_array(0, parameters);
  }
  OptimiserState read_optimiser(int) const override {
    OptimiserState state = state_;
    const Lock lock(*memory_);
    read(state);
    return state;
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    own_->rollout(request, result);
  }
  void gradient(const GradientRequest& request) override { own_->gradient(request); }
  void critic_values(const SequenceBatch& sequences, std::span<float> values) override {
    own_->critic_values(sequences, values);
  }
  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values) override {
    own_->critic_gradient(sequences, targets, weight, values);
  }
  void read_gradient(int set, std::span<float> gradient) const override {
    own_->read_gradient(set, gradient);
  }

  std::vector<GradientNorms> update(int, int, const UpdateRequest& request) override {
    GradientNorms norms;
    own_->read_gradient(0, gradient_);
    {
      const Lock lock(*memory_);
      Head head = this->head();
      const int64_t age = head.updates - updates_;
      get_array(0, parameters_);
      ++ages_[static_cast<size_t>(std::min<int64_t>(age, most_stale_ + 1))];
      if (age <= most_stale_) norms = step(head, request);
      updates_ = head.updates;
    }
    own_->load_parameters(0, parameters_);
    return {norms};
  }

  int64_t take(int64_t first_step) override {
    const bool begins = !std::exchange(has_begun_, true);
    for (;;) {
      {
        const Lock lock(*memory_);
        Head head = this->head();
        if (begins && ranks_.rank() == 0) head.is_open = 1, head.taken = first_step;
        if (head.is_open != 0) {
          const int64_t step = head.taken++;
          put_head(head);
          if (begins) begin(head);
          return step;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::vector<int64_t> end(bool all) override {
    if (all) {
      const Lock lock(*memory_);
      Head head = this->head();
      head.taken = std::numeric_limits<int64_t>::max() / 2;
      put_head(head);
    }
    has_ended_ = true;
    if (ranks_.rank() > 0) {
      ranks_.send(0, MessageWriter().put(ages_).bytes());
      return {};
    }
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      const auto theirs = MessageReader(ranks_.receive(rank).bytes).next<std::vector<int64_t>>();
      for (size_t age = 0; age < ages_.size(); ++age) ages_[age] += theirs.at(age);
    }
    return ages_;
  }

 private:
  // Within the lock, these five.
  Head head() const {
    Head head;
    memory_->get(0, {reinterpret_cast<char*>(&head), sizeof head});
    return head;
  }
  void put_head(const Head& head) { memory_->put(0, {reinterpret_cast<const char*>(&head), sizeof head}); }
  size_t offset_of(int array) const { return sizeof(Head) + array * layout_->size * sizeof(float); }
  void get_array(int array, std::span<float> to) const {
    memory_->get(offset_of(array), {reinterpret_cast<char*>(to.data()), to.size_bytes()});
  }
  void put_array(int array, std::span<const float> from) {
    memory_->put(offset_of(array), {reinterpret_cast<const char*>(from.data()), from.size_bytes()});
  }

  void read(OptimiserState& state) const {
    get_array(1, state.first_moment);
    get_array(2, state.second_moment);
    const Head head = this->head();
    state.actor_steps = head.actor_steps;
    state.critic_steps = head.critic_steps;
  }

  // The parameters that are there, for this rank's first step. Within the lock.
  void begin(const Head& head) {
    get_array(0, parameters_);
    own_->load_parameters(0, parameters_);
    updates_ = head.updates;
  }

  // An update of parameters_ and of what is shared. Within the lock.
  GradientNorms step(Head& head, const UpdateRequest& request) {
    read(state_);
    const GradientNorms norms = adam_step(
        *layout_,
        {parameters_.data(), state_.first_moment.data(), state_.second_moment.data(), gradient_.data()},
        head.actor_steps, head.critic_steps, request);
    ++head.updates;
    put_head(head);
    put_array(0, parameters_);
    put_array(1, state_.first_moment);
    put_array(2, state_.second_moment);
    return norms;
  }

  Communicator& ranks_;
  const std::unique_ptr<Backend> own_;
  const int most_stale_;
  std::optional<ParameterLayout> layout_;
  std::unique_ptr<SharedMemory> memory_;
  std::vector<int64_t> ages_;  // of this rank's gradients; the last: of those that were too old
  bool has_begun_ = false, has_ended_ = false;
  int64_t updates_ = 0;  // of all ranks, that the own backend's parameters have
  std::vector<float> parameters_, gradient_;
  OptimiserState state_;
};

}  // namespace

std::unique_ptr<AsynchronousBackend> make_asynchronous_backend(Communicator& ranks,
                                                               std::unique_ptr<Backend> own, int most_stale) {
  return std::make_unique<Asynchronous>(ranks, std::move(own), most_stale);
}

}  // namespace pointsman
