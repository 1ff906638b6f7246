// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/ranks/asynchronous_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/backend/cpu/parameters.h"
#include "engine/cluster/message.h"

namespace pointsman {
namespace {

// The start of the shared memory; parameters, first and second moments follow.
struct Head {
  int64_t taken = 0;  // steps
  int64_t updates = 0;
  int64_t actor_steps = 0, critic_steps = 0;
};

using Lock = std::lock_guard<SharedMemory>;

class Asynchronous final : public AsynchronousBackend {
 public:
  Asynchronous(Communicator& ranks, std::unique_ptr<Backend> own, int most_stale)
      : ranks_(ranks), own_(std::move(own)), most_stale_(most_stale), ages_(most_stale + 2, 0) {}
  ~Asynchronous() override {
    if (has_ended_) return;
    ranks_.mark_broken();  // freeing the memory would wait for the other ranks
    static_cast<void>(memory_.release());
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
    state_.resize(3 * layout_->size);
    gradient_.resize(layout_->size);
  }

  void load_parameters(int set, std::span<const float> parameters) override {
    own_->load_parameters(set, parameters);
    if (ranks_.rank() > 0) return;
    const Lock lock(*memory_);
    put(0, parameters);
  }
  void load_optimiser(int, const OptimiserState& state) override {
    if (ranks_.rank() > 0) return;
    const Lock lock(*memory_);
    Head head = this->head();
    head.actor_steps = state.actor_steps;
    head.critic_steps = state.critic_steps;
    put(head);
    put(layout_->size, state.first_moment);
    put(2 * layout_->size, state.second_moment);
  }
  void read_parameters(int, std::span<float> parameters) const override {
    const Lock lock(*memory_);
    get(0, parameters);
  }
  OptimiserState read_optimiser(int) const override {
    OptimiserState state{std::vector<float>(layout_->size), std::vector<float>(layout_->size)};
    const Lock lock(*memory_);
    get(layout_->size, state.first_moment);
    get(2 * layout_->size, state.second_moment);
    const Head head = this->head();
    state.actor_steps = head.actor_steps;
    state.critic_steps = head.critic_steps;
    return state;
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    own_->rollout(request, result);
  }
  void gradient(const GradientRequest& request) override { own_->gradient(request); }
  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    own_->critic_gradient(sequences, targets, weight, values, stop);
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
      ++ages_[static_cast<size_t>(std::min<int64_t>(age, most_stale_ + 1))];
      get(0, state_);
      if (age <= most_stale_) norms = step(head, request);
      updates_ = head.updates;
    }
    own_->load_parameters(0, parameters());
    let_others_begin();
    return {norms};
  }

  int64_t take(int64_t first) override {
    const bool begins = !std::exchange(has_begun_, true);
    if (begins && ranks_.rank() > 0) ranks_.receive(0);
    const Lock lock(*memory_);
    Head head = this->head();
    if (begins && ranks_.rank() == 0) head.taken = first;
    const int64_t step = head.taken++;
    put(head);
    if (begins) catch_up(head);
    return step;
  }

  std::vector<int64_t> end(bool all) override {
    if (all) {
      const Lock lock(*memory_);
      Head head = this->head();
      head.taken = std::numeric_limits<int64_t>::max() / 2;
      put(head);
    }
    let_others_begin();
    if (ranks_.rank() > 0) {
      ranks_.send(0, MessageWriter().put(ages_).bytes());
      has_ended_ = true;
      return {};
    }
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      const auto theirs = MessageReader(ranks_.receive(rank).bytes).next<std::vector<int64_t>>();
      for (size_t age = 0; age < ages_.size(); ++age) ages_[age] += theirs.at(age);
    }
    const Lock lock(*memory_);
    catch_up(head());
    has_ended_ = true;
    return ages_;
  }

 private:
  // These need the lock. place: in floats behind the head.
  Head head() const {
    Head head;
    memory_->get(0, {reinterpret_cast<char*>(&head), sizeof head});
    return head;
  }
  void put(const Head& head) { memory_->put(0, {reinterpret_cast<const char*>(&head), sizeof head}); }
  void get(size_t place, std::span<float> to) const {
    memory_->get(sizeof(Head) + place * sizeof(float), {reinterpret_cast<char*>(to.data()), to.size_bytes()});
  }
  void put(size_t place, std::span<const float> from) {
    memory_->put(sizeof(Head) + place * sizeof(float),
                 {reinterpret_cast<const char*>(from.data()), from.size_bytes()});
  }

  // Loads the shared parameters into the own backend.
  void catch_up(const Head& head) {
    get(0, parameters());
    own_->load_parameters(0, parameters());
    updates_ = head.updates;
  }

  // Updates state_ and the shared memory, unless a norm is not finite.
  GradientNorms step(Head& head, const UpdateRequest& request) {
    const size_t size = layout_->size;
    const GradientNorms norms =
        adam_step(*layout_, {state_.data(), &state_[size], &state_[2 * size], gradient_.data()},
                  head.actor_steps, head.critic_steps, request, nullptr);
    if (!std::isfinite(norms.actor) || !std::isfinite(norms.critic)) return norms;
    ++head.updates;
    put(head);
    put(0, state_);
    return norms;
  }

  // After rank 0's first update, before which it may still load parameters.
  void let_others_begin() {
    if (ranks_.rank() > 0 || std::exchange(others_have_begun_, true)) return;
    const char nothing = 0;
    for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, {&nothing, 1});
  }

  std::span<float> parameters() { return std::span(state_).first(layout_->size); }

  Communicator& ranks_;
  const std::unique_ptr<Backend> own_;
  const int most_stale_;
  std::optional<ParameterLayout> layout_;
  std::unique_ptr<SharedMemory> memory_;
  std::vector<int64_t> ages_;  // of this rank's gradients; the last: of those that were too old
  bool has_begun_ = false, others_have_begun_ = false, has_ended_ = false;
  int64_t updates_ = 0;          // of all ranks, that the own backend's parameters have
  std::vector<float> gradient_;  // [layout.size]
  std::vector<float> state_;     // [3][layout.size] parameters and moments, as they lie in the shared memory
};

}  // namespace

std::unique_ptr<AsynchronousBackend> make_asynchronous_backend(Communicator& ranks,
                                                               std::unique_ptr<Backend> own, int most_stale) {
  return std::make_unique<Asynchronous>(ranks, std::move(own), most_stale);
}

}  // namespace pointsman
