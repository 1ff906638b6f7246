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
  struct Head {
    ProblemKind problem{};
    int32_t n = 0, count = 0;
    Decode decode = Decode::kGreedy;
    uint32_t sample_stride = 1;
    uint64_t seed = 0;
    Policy policy;
    bool has_tape = false;
    Learned learned = Learned::kAll;
    float weight = 0.0f;  // of a critic's gradient
    TileWindow window;
  } head;
  std::vector<float> features;
  std::vector<double> weights, capacities;
  std::vector<int32_t> sets, counts;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> first_samples;
  std::vector<int32_t> orders;  // [rollouts][n] forced, or of a gradient
  std::vector<float> factors;   // [rollouts] weights of a gradient, a critic's targets

  SequenceBatch sequences() const {
    return {head.problem,
            head.n,
            head.count,
            features.data(),
            weights.empty() ? nullptr : weights.data(),
            capacities.empty() ? nullptr : capacities.data(),
            sets.data()};
  }
};

std::string packed(Call call, const Share& share) {
  MessageWriter message;
  message.put(call)
      .put(share.head)
      .put(share.features)
      .put(share.weights)
      .put(share.capacities)
      .put(share.sets);
  message.put(share.counts).put(share.keys).put(share.first_samples).put(share.orders).put(share.factors);
  return message.bytes();
}

Share unpacked(MessageReader& message) {
  Share share;
  message.get(share.head).get(share.features).get(share.weights).get(share.capacities).get(share.sets);
  message.get(share.counts).get(share.keys).get(share.first_samples).get(share.orders).get(share.factors);
  return share;
}

template <typename T>
void append_row(std::vector<T>& to, const T* from, size_t row, size_t width) {
  if (from != nullptr) to.insert(to.end(), from + row * width, from + (row + 1) * width);
}

// Arrays of a call that a share has rows of; null: the call has none.
struct Source {
  const SequenceBatch& batch;
  const uint64_t* keys = nullptr;
  const uint32_t* first_samples = nullptr;
  const int32_t* orders = nullptr;
  const float* factors = nullptr;
};

void append_sequence(const Source& source, int sequence, Share& share) {
  const SequenceBatch& batch = source.batch;
  const auto s = static_cast<size_t>(sequence), n = static_cast<size_t>(batch.n);
  append_row(share.features, batch.features, s, 2 * n);
  append_row(share.weights, batch.weights, s, n);
  append_row(share.capacities, batch.capacities, s, 1);
  append_row(share.keys, source.keys, s, 1);
  share.sets.push_back(batch.set_of(sequence));
  share.counts.push_back(0);
  ++share.head.count;
}

// `head` with the rollouts of tiles first .. last - 1. A sequence that is cut starts anew in each share.
Share share_of(const Source& source, const Share::Head& head, const std::vector<RolloutTile>& tiles,
               size_t first, size_t last) {
  Share share;
  share.head = head;
  share.head.problem = source.batch.problem;
  share.head.n = source.batch.n;
  share.head.window = {first, tiles.size()};
  int sequence = -1;
  for (size_t t = first; t < last; ++t) {
    for (const RolloutPiece& piece : tiles[t].pieces) {
      if (std::exchange(sequence, piece.sequence) != piece.sequence) {
        append_sequence(source, piece.sequence, share);
        const uint32_t from = source.first_samples == nullptr ? 0 : source.first_samples[piece.sequence];
        share.first_samples.push_back(from + static_cast<uint32_t>(piece.first) * head.sample_stride);
      }
      share.counts.back() += piece.count;
      for (int64_t row = piece.result; row < piece.result + piece.count; ++row) {
        append_row(share.orders, source.orders, static_cast<size_t>(row), static_cast<size_t>(share.head.n));
        append_row(share.factors, source.factors, static_cast<size_t>(row), 1);
      }
    }
  }
  return share;
}

// The first tile of a rank's share: whole segments, and at least one for rank 0, which begins their sum.
size_t share_begin(size_t rank, size_t ranks, size_t tiles) {
  const size_t segments = segments_of(tiles);
  return segment_begin((rank * segments + ranks - 1) / ranks, tiles);
}

// One rank's backend and what it computes of a call.
class ClusterMember final : public RankShare {
 public:
  ClusterMember(Communicator& ranks, int threads)
      : ranks_(ranks), backend_(make_cpu_backend(threads, this)), device_sum_(nullptr) {}
  ClusterMember(Communicator& ranks, std::unique_ptr<Backend> device)
      : ranks_(ranks), backend_(std::move(device)), device_sum_(backend_->gradient_sum()) {
    if (device_sum_ == nullptr)
      throw std::invalid_argument("the backend " + backend_->info().name + " cannot add gradients of ranks");
  }

  Backend& backend() { return *backend_; }

  struct Rollouts {
    RolloutResult result;
    std::vector<PolicyStatistics> statistics;  // whose sum in order is that of the result
  };

  Rollouts roll_out(const Share& share) {
    RolloutRequest request;
    request.sequences = share.sequences();
    request.decode = share.head.decode;
    request.counts = share.counts.data();
    request.instance_keys = share.keys.empty() ? nullptr : share.keys.data();
    request.first_samples = share.first_samples.data();
    request.sample_stride = share.head.sample_stride;
    request.seed = share.head.seed;
    request.policy = share.head.policy;
    request.forced = share.orders.empty() ? nullptr : share.orders.data();
    request.tape = share.head.has_tape ? &tape_ : nullptr;
    Rollouts made;
    backend_->rollout(request, made.result);
    made.statistics = device_sum_ == nullptr && share.head.has_tape ? std::exchange(statistics_, {})
                                                                    : std::vector{made.result.statistics};
    return made;
  }

  void gradient(const Share& share) {
    window_ = share.head.window;
    GradientRequest request;
    request.sequences = share.sequences();
    request.counts = share.counts.data();
    request.orders = share.orders.data();
    request.weights = share.factors.data();
    request.policy = share.head.policy;
    request.learned = share.head.learned;
    request.tape = share.head.has_tape ? &tape_ : nullptr;
    backend_->gradient(request);
  }

  std::vector<float> critic_gradient(const Share& share) {
    window_ = share.head.window;
    std::vector<float> values(share.factors.size());
    backend_->critic_gradient(share.sequences(), share.factors, share.head.weight, values);
    return values;
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) {
    if (device_sum_ != nullptr) device_sum_->sum_gradients(ranks_, first_set, count);
    return backend_->update(first_set, count, request);
  }

  TileWindow window() const override { return window_; }
  void add_segments(std::span<const float* const> addends, std::span<float> sum) override {
    sum_in_rank_order(ranks_, addends, sum);
  }
  void take_statistics(std::span<const PolicyStatistics> tiles) override {
    statistics_.assign(tiles.begin(), tiles.end());
  }

 private:
  Communicator& ranks_;
  const std::unique_ptr<Backend> backend_;
  GradientSum* const device_sum_;  // null: a CPU, whose segments are added as they are made
  TileWindow window_;
  Tape tape_;
  std::vector<PolicyStatistics> statistics_;
};

class ClusterBackend final : public Backend {
 public:
  // own: threads, or a device's backend.
  template <typename Own>
  ClusterBackend(Communicator& ranks, Own own) : ranks_(ranks), own_(ranks, std::move(own)) {}
  ClusterBackend(const ClusterBackend&) = delete;
  ClusterBackend& operator=(const ClusterBackend&) = delete;
  // After a call that failed the others wait within it: the run is over for them.
  ~ClusterBackend() override {
    try {
      if (!is_calling_) {
        tell(MessageWriter().put(Call::kLeave));
        return;
      }
    } catch (const ClusterError&) {
    }
    ranks_.mark_broken();
  }

  DeviceInfo info() const override {
    DeviceInfo info = own_.backend().info();
    info.detail += ", " + std::to_string(ranks_.size()) + " ranks";
    return info;
  }

  void configure(const ModelConfig& config, int sets) override {
    const Calling calling(*this);
    MessageWriter message;
    message.put(Call::kConfigure).put(sets);
    put(message, config);
    tell(message);
    own_.backend().configure(config, sets);
    filled_ = nullptr;
    calling.end();
  }

  void load_parameters(int set, std::span<const float> parameters) override {
    const Calling calling(*this);
    tell(MessageWriter().put(Call::kLoadParameters).put(set).put_all(parameters));
    own_.backend().load_parameters(set, parameters);
    calling.end();
  }

  void load_optimiser(int set, const OptimiserState& state) override {
    const Calling calling(*this);
    MessageWriter message;
    message.put(Call::kLoadOptimiser).put(set).put(state.first_moment).put(state.second_moment);
    tell(message.put(state.actor_steps).put(state.critic_steps));
    own_.backend().load_optimiser(set, state);
    calling.end();
  }

  void read_parameters(int set, std::span<float> parameters) const override {
    own_.backend().read_parameters(set, parameters);
  }
  OptimiserState read_optimiser(int set) const override { return own_.backend().read_optimiser(set); }
  void read_gradient(int set, std::span<float> gradient) const override {
    own_.backend().read_gradient(set, gradient);
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    clear_rollouts(count_rollouts(request), request.sequences.n, result);
    if (request.stop.stops()) {
      count_finished(request, result);
    } else {
      roll_out(request, result);
    }
    if (request.best_only) choose_best(request, result);
  }

  void gradient(const GradientRequest& request) override {
    request.stop.check();
    const Calling calling(*this);
    Share::Head head;
    head.policy = request.policy;
    head.learned = request.learned;
    head.has_tape = request.tape != nullptr && request.tape == std::exchange(filled_, nullptr);
    const Source source{request.sequences, nullptr, nullptr, request.orders, request.weights};
    own_.gradient(share_out(Call::kGradient, source, head, request.counts));
    calling.end();
  }

  void critic_values(const SequenceBatch& sequences, std::span<float> values) override {
    own_.backend().critic_values(sequences, values);
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    stop.check();
    const Calling calling(*this);
    Share::Head head;
    head.weight = weight;
    const Source source{sequences, nullptr, nullptr, nullptr, targets.data()};
    const std::vector<float> own =
        own_.critic_gradient(share_out(Call::kCriticGradient, source, head, nullptr));
    auto to = std::copy(own.begin(), own.end(), values.begin());
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      const Communicator::Received answer = ranks_.receive(rank);
      const auto others = MessageReader(answer.bytes).next<std::vector<float>>();
      to = std::copy(others.begin(), others.end(), to);
    }
    calling.end();
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    const Calling calling(*this);
    tell(MessageWriter().put(Call::kUpdate).put(first_set).put(count).put(request));
    filled_ = nullptr;
    std::vector<GradientNorms> norms = own_.update(first_set, count, request);
    calling.end();
    return norms;
  }

 private:
  // A call that all ranks are in, until end().
  class Calling {
   public:
    explicit Calling(ClusterBackend& backend) : backend_(backend) { backend_.is_calling_ = true; }
    void end() const { backend_.is_calling_ = false; }

   private:
    ClusterBackend& backend_;
  };

  void tell(const MessageWriter& message) {
    for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, message.bytes());
  }

  void roll_out(const RolloutRequest& request, RolloutResult& result) {
    const Calling calling(*this);
    Share::Head head;
    head.decode = request.decode;
    head.sample_stride = request.sample_stride;
    head.seed = request.seed;
    head.policy = request.policy;
    head.has_tape = request.tape != nullptr;
    const Source source{request.sequences, request.instance_keys, request.first_samples, request.forced};
    const Share share = share_out(Call::kRollout, source, head, request.counts);
    int64_t row = 0;
    join(own_.roll_out(share), request.sequences.n, row, result);
    for (int rank = 1; rank < ranks_.size(); ++rank)
      join(receive_rollouts(rank), request.sequences.n, row, result);
    filled_ = request.tape;
    calling.end();
  }

  // Sends the others their shares; returns this rank's.
  Share share_out(Call call, const Source& source, const Share::Head& head, const int32_t* counts) {
    const std::vector<RolloutTile> tiles = gradient_tiles(source.batch, counts);
    const auto ranks = static_cast<size_t>(ranks_.size());
    const auto share = [&](size_t rank) {
      return share_of(source, head, tiles, share_begin(rank, ranks, tiles.size()),
                      share_begin(rank + 1, ranks, tiles.size()));
    };
    for (size_t rank = 1; rank < ranks; ++rank)
      ranks_.send(static_cast<int>(rank), packed(call, share(rank)));
    return share(0);
  }

  ClusterMember::Rollouts receive_rollouts(int rank) {
    const Communicator::Received answer = ranks_.receive(rank);
    ClusterMember::Rollouts made;
    MessageReader message(answer.bytes);
    message.get(made.result.orders).get(made.result.costs).get(made.result.log_probs).get(made.statistics);
    return made;
  }

  // Puts a rank's rollouts behind those that are there, from `row` on.
  static void join(const ClusterMember::Rollouts& made, int n, int64_t& row, RolloutResult& result) {
    std::copy(made.result.orders.begin(), made.result.orders.end(), result.orders.begin() + row * n);
    std::copy(made.result.costs.begin(), made.result.costs.end(), result.costs.begin() + row);
    std::copy(made.result.log_probs.begin(), made.result.log_probs.end(), result.log_probs.begin() + row);
    for (const PolicyStatistics& statistics : made.statistics) result.statistics += statistics;
    row += static_cast<int64_t>(made.result.costs.size());
  }

  Communicator& ranks_;
  mutable ClusterMember own_;
  const Tape* filled_ = nullptr;  // by the last rollouts, on every rank's own tape
  bool is_calling_ = false;
};

// A call that rank 0 told this one of; false: it was the last.
bool serve(Communicator& ranks, ClusterMember& member, MessageReader& message) {
  Backend& backend = member.backend();
  const Call call = message.next<Call>();
  if (call == Call::kLeave) return false;
  if (call == Call::kConfigure) {
    const int sets = message.next<int>();
    backend.configure(take_config(message), sets);
  } else if (call == Call::kLoadParameters) {
    const int set = message.next<int>();
    backend.load_parameters(set, message.next<std::vector<float>>());
  } else if (call == Call::kLoadOptimiser) {
    const int set = message.next<int>();
    OptimiserState state;
    message.get(state.first_moment).get(state.second_moment).get(state.actor_steps).get(state.critic_steps);
    backend.load_optimiser(set, state);
  } else if (call == Call::kUpdate) {
    const int first_set = message.next<int>(), count = message.next<int>();
    member.update(first_set, count, message.next<UpdateRequest>());
  } else if (call == Call::kGradient) {
    member.gradient(unpacked(message));
  } else if (call == Call::kCriticGradient) {
    ranks.send(0, MessageWriter().put(member.critic_gradient(unpacked(message))).bytes());
  } else {
    const ClusterMember::Rollouts made = member.roll_out(unpacked(message));
    MessageWriter answer;
    answer.put(made.result.orders).put(made.result.costs).put(made.result.log_probs).put(made.statistics);
    ranks.send(0, answer.bytes());
  }
  return true;
}

void serve_calls(Communicator& ranks, ClusterMember&& member) {
  try {
    for (bool is_on = true; is_on;) {
      const Communicator::Received call = ranks.receive(0);
      MessageReader message(call.bytes);
      is_on = serve(ranks, member, message);
    }
  } catch (...) {
    ranks.mark_broken();
    throw;
  }
}

// Every field of a configuration, in one order for both ways.
template <typename Config, typename Field>
void for_each_field(Config& config, const Field& field) {
  field(config.problem), field(config.n), field(config.capacity), field(config.hidden), field(config.encoder);
  field(config.layers), field(config.heads), field(config.feed_forward), field(config.has_prior);
  field(config.glimpses), field(config.clip), field(config.centre_logits), field(config.has_critic);
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

std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, int threads) {
  return std::make_unique<ClusterBackend>(ranks, threads);
}

std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device) {
  return std::make_unique<ClusterBackend>(ranks, std::move(device));
}

void serve_cluster_backend(Communicator& ranks, int threads) {
  serve_calls(ranks, ClusterMember(ranks, threads));
}

void serve_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device) {
  serve_calls(ranks, ClusterMember(ranks, std::move(device)));
}

}  // namespace pointsman
