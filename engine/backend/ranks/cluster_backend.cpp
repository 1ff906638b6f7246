// SPDX-License-Identifier: Apache-2.0
// Rank 0 sends the other ranks their segments of every call. Each rank makes every update itself, from the
// same sums, so parameters are sent only once.
#include "engine/backend/ranks/cluster_backend.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/backend/backends.h"
#include "engine/backend/cpu/network.h"
#include "engine/backend/requests.h"
#include "engine/cluster/message.h"

namespace pointsman {
namespace {

enum class Call : int32_t {
  kConfigure,
  kLoadParameters,
  kLoadOptimiser,
  kRollout,
  kGradient,
  kCriticGradient,
  kUpdate,
  kLeave
};

// One rank's rollouts of a call.
struct Share {
  RolloutRequest request;  // of the arrays below, to which it points where it is taken
  bool has_tape = false;
  SegmentWindow window;
  Learned learned = Learned::kAll;  // of a gradient
  float weight = 0.0f;              // of a critic's gradient
  std::vector<float> features = {};
  std::vector<double> weights = {}, capacities = {};
  std::vector<int32_t> sets = {}, counts = {};
  std::vector<uint64_t> keys = {};
  std::vector<uint32_t> first_samples = {};
  std::vector<int32_t> orders = {};  // [rollouts][steps] forced, or of a gradient
  std::vector<float> factors = {};   // [rollouts] weights of a gradient, a critic's targets
};

// All of a share, in one order for both ways.
template <typename AnyShare, typename Field>
void for_each_part(AnyShare&& share, const Field& field) {
  auto& request = share.request;
  field(request.sequences.problem), field(request.sequences.n), field(request.sequences.count);
  field(request.decode), field(request.sample_stride), field(request.seed), field(request.policy);
  field(share.has_tape), field(share.window), field(share.learned), field(share.weight);
  field(share.features), field(share.weights), field(share.capacities), field(share.sets);
  field(share.counts), field(share.keys), field(share.first_samples), field(share.orders);
  field(share.factors);
}

Share take_share(MessageReader& message) {
  Share share;
  for_each_part(share, [&](auto& part) { message.get(part); });
  const auto array = [](const auto& values) { return values.empty() ? nullptr : values.data(); };
  SequenceBatch& batch = share.request.sequences;
  batch.features = array(share.features);
  batch.weights = array(share.weights);
  batch.capacities = array(share.capacities);
  batch.parameter_sets = array(share.sets);
  share.request.counts = array(share.counts);
  share.request.instance_keys = array(share.keys);
  share.request.first_samples = array(share.first_samples);
  share.request.forced = array(share.orders);
  return share;
}

template <typename T>
void append_row(std::vector<T>& to, const T* from, size_t row, size_t width) {
  if (from != nullptr) to.insert(to.end(), from + row * width, from + (row + 1) * width);
}

// A call that is shared out.
struct Source {
  const RolloutRequest& rollouts;
  const float* factors = nullptr;  // the rest as Share's
  Learned learned = Learned::kAll;
  float weight = 0.0f;
};

void append_sequence(const RolloutRequest& rollouts, int sequence, Share& share) {
  const SequenceBatch& batch = rollouts.sequences;
  const auto s = static_cast<size_t>(sequence), n = static_cast<size_t>(batch.n);
  append_row(share.features, batch.features, s, static_cast<size_t>(batch.width()) * n);
  append_row(share.weights, batch.weights, s, batch.numbers_each());
  append_row(share.capacities, batch.capacities, s, 1);
  append_row(share.keys, rollouts.instance_keys, s, 1);
  share.sets.push_back(batch.set_of(sequence));
  share.counts.push_back(0);
  ++share.request.sequences.count;
}

// The rollouts of the window's tiles. A sequence that is cut starts anew in each share.
Share share_of(const Source& source, const std::vector<RolloutTile>& tiles, const SegmentWindow& window) {
  const RolloutRequest& all = source.rollouts;
  Share share{all, all.tape != nullptr, window, source.learned, source.weight};
  share.request.sequences.count = 0;
  int sequence = -1;
  for (size_t t = window.tile(window.first); t < window.tile(window.last); ++t) {
    for (const RolloutPiece& piece : tiles[t].pieces) {
      if (std::exchange(sequence, piece.sequence) != piece.sequence) {
        append_sequence(all, piece.sequence, share);
        const uint32_t from = all.first_samples == nullptr ? 0 : all.first_samples[piece.sequence];
        share.first_samples.push_back(from + static_cast<uint32_t>(piece.first) * all.sample_stride);
      }
      share.counts.back() += piece.count;
      for (int64_t row = piece.result; row < piece.result + piece.count; ++row) {
        append_row(share.orders, all.forced, static_cast<size_t>(row),
                   static_cast<size_t>(all.sequences.steps()));
        append_row(share.factors, source.factors, static_cast<size_t>(row), 1);
      }
    }
  }
  return share;
}

// The first segment of a rank's share; rank 0, which begins their sum, has one at least.
size_t share_begin(int rank, int ranks, size_t segments) {
  const auto all = static_cast<size_t>(ranks);
  return (static_cast<size_t>(rank) * segments + all - 1) / all;
}

// Null of no device.
GradientSum* sum_of(Backend* device) {
  GradientSum* const sum = device == nullptr ? nullptr : device->gradient_sum();
  if (sum == nullptr && device != nullptr)
    throw std::invalid_argument("the backend " + device->info().name + " cannot add gradients of ranks");
  return sum;
}

// One rank's backend and what it does of every call.
class ClusterMember {
 public:
  ClusterMember(Communicator& ranks, std::unique_ptr<Backend> device, int threads)
      : ranks_(ranks),
        device_sum_(sum_of(device.get())),
        backend_(device == nullptr ? make_cpu_backend(threads, &share_) : std::move(device)) {
    share_.add_segments = [&ranks](std::span<const float* const> addends, std::span<float> sum) {
      sum_in_rank_order(ranks, addends, sum);
    };
  }

  Backend& backend() const { return *backend_; }
  const std::vector<GradientNorms>& norms() const { return norms_; }  // of the last update

  // Makes this rank's part. Returns what rank 0 must know of it; empty: nothing.
  std::string answer(std::string_view bytes) {
    MessageReader message(bytes);
    MessageWriter answer;
    const Call call = message.next<Call>();
    if (call == Call::kConfigure) {
      const int sets = message.next<int>();
      backend_->configure(take_config(message), sets);
    } else if (call == Call::kLoadParameters) {
      const int set = message.next<int>();
      backend_->load_parameters(set, message.next<std::vector<float>>());
    } else if (call == Call::kLoadOptimiser) {
      const int set = message.next<int>();
      OptimiserState state;
      message.get(state.first_moment).get(state.second_moment).get(state.actor_steps).get(state.critic_steps);
      backend_->load_optimiser(set, state);
    } else if (call == Call::kUpdate) {
      const int first_set = message.next<int>(), count = message.next<int>();
      if (device_sum_ != nullptr) device_sum_->sum_gradients(ranks_, first_set, count);
      norms_ = backend_->update(first_set, count, message.next<UpdateRequest>());
    } else if (call != Call::kLeave) {
      make_share(call, take_share(message), answer);
    }
    return answer.bytes();
  }

 private:
  void make_share(Call call, Share&& share, MessageWriter& answer) {
    RolloutRequest& request = share.request;
    request.tape = share.has_tape ? &tape_ : nullptr;
    share_.window = share.window;
    if (call == Call::kGradient) {
      backend_->gradient({request.sequences, request.counts, request.forced, share.factors.data(),
                          request.policy, request.tape, StopToken(), share.learned});
    } else if (call == Call::kCriticGradient) {
      std::vector<float> values(share.factors.size());
      backend_->critic_gradient(request.sequences, share.factors, share.weight, values);
      answer.put(values);
    } else {
      RolloutResult made;
      share_.statistics.clear();
      backend_->rollout(request, made);
      answer.put(made.orders).put(made.costs).put(made.log_probs);
      // Those whose sum in order is that of one process.
      answer.put(share_.statistics.empty() ? std::vector{made.statistics} : share_.statistics);
    }
  }

  Communicator& ranks_;
  RankShare share_;                // of a CPU, whose segments are added as they are made
  GradientSum* const device_sum_;  // null: a CPU
  const std::unique_ptr<Backend> backend_;
  Tape tape_;
  std::vector<GradientNorms> norms_;
};

class ClusterBackend final : public Backend {
 public:
  ClusterBackend(Communicator& ranks, std::unique_ptr<Backend> device, int threads)
      : ranks_(ranks), own_(ranks, std::move(device), threads) {}
  // After a call that failed the others wait within it: the run is over for them.
  ~ClusterBackend() override {
    try {
      if (!is_calling_) tell(MessageWriter().put(Call::kLeave));
    } catch (const ClusterError&) {
    }
    if (is_calling_) ranks_.mark_broken();
  }

  DeviceInfo info() const override {
    DeviceInfo info = own_.backend().info();
    info.detail += ", " + std::to_string(ranks_.size()) + " ranks";
    return info;
  }

  void configure(const ModelConfig& config, int sets) override {
    filled_ = nullptr;
    MessageWriter message;
    message.put(Call::kConfigure).put(sets);
    put(message, config);
    tell(message);
  }
  void load_parameters(int set, std::span<const float> parameters) override {
    tell(MessageWriter().put(Call::kLoadParameters).put(set).put_all(parameters));
  }
  void load_optimiser(int set, const OptimiserState& state) override {
    MessageWriter message;
    message.put(Call::kLoadOptimiser).put(set).put(state.first_moment).put(state.second_moment);
    tell(message.put(state.actor_steps).put(state.critic_steps));
  }

  void read_parameters(int set, std::span<float> parameters) const override {
    own_.backend().read_parameters(set, parameters);
  }
  OptimiserState read_optimiser(int set) const override { return own_.backend().read_optimiser(set); }
  void read_gradient(int set, std::span<float> gradient) const override {
    own_.backend().read_gradient(set, gradient);
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    clear_rollouts(count_rollouts(request), request.sequences.steps(), result);
    if (request.stop.stops()) {
      count_finished(request, result);
    } else {
      join(share_out(Call::kRollout, {request}), result);
      filled_ = request.tape;
    }
    if (request.best_only) choose_best(request, result);
  }

  void gradient(const GradientRequest& request) override {
    request.stop.check();
    RolloutRequest rollouts = forced_rollouts(request);
    if (request.tape != nullptr && request.tape == std::exchange(filled_, nullptr))
      rollouts.tape = request.tape;
    share_out(Call::kGradient, {rollouts, request.weights, request.learned});
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    stop.check();
    RolloutRequest rollouts;
    rollouts.sequences = sequences;
    const Source source{rollouts, targets.data(), Learned::kAll, weight};
    auto to = values.begin();
    for (const std::string& answer : share_out(Call::kCriticGradient, source)) {
      const auto some = MessageReader(answer).next<std::vector<float>>();
      to = std::copy(some.begin(), some.end(), to);
    }
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    filled_ = nullptr;
    tell(MessageWriter().put(Call::kUpdate).put(first_set).put(count).put(request));
    return own_.norms();
  }

 private:
  // A call of all ranks. Returns their answers in order, if it has any.
  template <typename MessageOf>
  std::vector<std::string> call(const MessageOf& message_of) {
    is_calling_ = true;
    for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, message_of(rank));
    std::vector<std::string> answers{own_.answer(message_of(0))};
    for (int rank = 1; rank < ranks_.size() && !answers[0].empty(); ++rank)
      answers.push_back(ranks_.receive(rank).bytes);
    is_calling_ = false;
    return answers;
  }

  void tell(const MessageWriter& message) {
    call([&](int) -> const std::string& { return message.bytes(); });
  }

  std::vector<std::string> share_out(Call call, const Source& source) {
    const std::vector<RolloutTile> tiles = gradient_tiles(source.rollouts.sequences, source.rollouts.counts);
    const auto begin = [&](int rank) { return share_begin(rank, ranks_.size(), segments_of(tiles.size())); };
    return this->call([&](int rank) {
      MessageWriter message;
      message.put(call);
      for_each_part(share_of(source, tiles, {begin(rank), begin(rank + 1), tiles.size()}),
                    [&](const auto& part) { message.put(part); });
      return message.bytes();
    });
  }

  static void join(const std::vector<std::string>& answers, RolloutResult& result) {
    auto order = result.orders.begin();
    auto cost = result.costs.begin(), log_prob = result.log_probs.begin();
    for (const std::string& answer : answers) {
      MessageReader message(answer);
      const auto take = [&](auto& to) {
        const auto some = message.next<std::vector<std::decay_t<decltype(*to)>>>();
        to = std::copy(some.begin(), some.end(), to);
      };
      take(order), take(cost), take(log_prob);
      for (const auto& some : message.next<std::vector<PolicyStatistics>>()) result.statistics += some;
    }
  }

  Communicator& ranks_;
  ClusterMember own_;
  const Tape* filled_ = nullptr;  // by the last rollouts, on every rank's own tape
  bool is_calling_ = false;       // all ranks are in a call; an exception leaves it so
};

// Every field of a configuration, in one order for both ways.
template <typename Config, typename Field>
void for_each_field(Config& config, const Field& field) {
  field(config.problem), field(config.n), field(config.capacity), field(config.hidden), field(config.encoder);
  field(config.layers), field(config.heads), field(config.feed_forward), field(config.has_prior);
  field(config.glimpses), field(config.clip), field(config.centre_logits), field(config.has_critic);
  field(config.reread);
  field(config.learning_rate), field(config.training_tours), field(config.seed), field(config.version);
}

}  // namespace

void put(MessageWriter& message, const ModelConfig& config) {
  for_each_field(config, [&](const auto& value) { message.put(value); });
}

ModelConfig take_config(MessageReader& message) {
  ModelConfig config;
  for_each_field(config, [&](auto& value) { message.get(value); });
  return config;
}

std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device,
                                              int threads) {
  return std::make_unique<ClusterBackend>(ranks, std::move(device), threads);
}

void serve_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device, int threads) {
  ClusterMember member(ranks, std::move(device), threads);
  try {
    for (;;) {
      const std::string call = ranks.receive(0).bytes;
      if (MessageReader(call).next<Call>() == Call::kLeave) return;
      const std::string answer = member.answer(call);
      if (!answer.empty()) ranks.send(0, answer);
    }
  } catch (...) {
    ranks.mark_broken();
    throw;
  }
}

}  // namespace pointsman
