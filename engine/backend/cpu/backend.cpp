// SPDX-License-Identifier: Apache-2.0
// The CPU backend: cuts every call into tiles, hands them to the worker threads, and joins what they return
// in tile order. Tiles of a gradient, and of a rollout onto a tape, are cut the same for any number of
// threads; those of other rollouts are not, and workers share them by branches of their trees. That changes
// no answer, only the last bits of the means in PolicyStatistics.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "engine/backend/backends.h"
#include "engine/backend/cpu/gradient.h"
#include "engine/backend/cpu/rollout.h"
#include "engine/backend/cpu/stretches.h"
#include "engine/backend/requests.h"
#include "kernels/common/two_opt.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {
namespace {

constexpr int64_t kMaxTileRollouts = 1024;  // of several sequences
constexpr size_t kTileBytes = 900'000;      // references of a tile's sequences: about what that cache holds
constexpr size_t kTapeBytes = size_t{2} << 30;     // of a tape; activations beyond are computed again
constexpr size_t kSmallBytes = size_t{256} << 20;  // so much memory there is

struct CpuTape final : Tape::Storage {
  std::vector<TileActivations> tiles;  // never fewer, for the next rollout
  size_t count = 0;  // tiles of the last rollout that are on the tape: the first ones, as memory allows
};

TileActivations* tile_of(CpuTape* tape, size_t t) {
  return tape != nullptr && t < tape->count ? &tape->tiles[t] : nullptr;
}

// The sums of some tiles.
struct Segment {
  AlignedFloats sums;
  bool is_zero = false;  // all of them: nothing was added since they were read
};

std::string gibibytes(size_t bytes) {
  const size_t tenths = bytes / ((size_t{1} << 30) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

// Bytes that this machine can still give; SIZE_MAX if unknown.
size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (size_t kibibytes; file >> name >> kibibytes; file.ignore(80, '\n')) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return SIZE_MAX;
}

constexpr int kCitiesPerStop = 64;  // whose neighbours are found between two questions

// One tour of a request, by one thread. Returns TwoOptResult::kicks of it. order: [n] out.
int search_tour(const float* xy, int n, uint64_t key, const TwoOptRequest& request, int32_t* order) {
  const auto stops = [&] { return request.stop.stops(); };
  std::vector<uint16_t> neighbours(static_cast<size_t>(n) * kTourNeighbours);
  for (int city = 0; city < n; ++city) {
    if (city % kCitiesPerStop == 0 && stops()) return kNotBegun;
    nearest_cities(xy, n, city, &neighbours[city * kTourNeighbours]);
  }
  std::vector<uint32_t> storage(TourMemory::words(n));
  const TourMemory memory(storage.data(), n);
  TwoOpt<LoneThread> search({}, {xy, neighbours.data(), n}, memory);
  const int kicks = search.search(request.kicks, request.seed, key, stops);
  if (kicks != kNotBegun) std::copy_n(memory.best, n, order);
  return kicks;
}

class CpuBackend final : public Backend, TwoOptDevice {
 public:
  CpuBackend(int threads, RankShare* share) : workers_(threads), share_(share) {
    rollout_workspaces_.resize(workers_.count());
    gradient_workspaces_.resize(workers_.count());
  }

  DeviceInfo info() const override {
    const int threads = workers_.count();
    return {"cpu",
            std::string(cpu::instruction_set()) + ", " + std::to_string(threads) +
                (threads == 1 ? " thread" : " threads"),
            threads};
  }

  void configure(const ModelConfig& config, int sets) override {
    tape_head_.forget();
    sets_.clear();
    config_ = config;
    layout_.emplace(config_);
    for (int i = 0; i < sets; ++i) sets_.push_back(std::make_unique<CpuParameters>(config_, *layout_));
  }

  void load_parameters(int set, std::span<const float> parameters) override {
    tape_head_.forget();
    CpuParameters& p = *sets_.at(set);
    if (parameters.size() != layout_->size)
      throw std::invalid_argument("load_parameters: wrong number of parameters");
    p.load(parameters);
  }

  void read_parameters(int set, std::span<float> parameters) const override {
    std::copy(sets_.at(set)->flat.begin(), sets_.at(set)->flat.end(), parameters.begin());
  }

  void load_optimiser(int set, const OptimiserState& state) override {
    CpuParameters& p = *sets_.at(set);
    if (state.first_moment.size() != layout_->size || state.second_moment.size() != layout_->size) {
      throw std::invalid_argument("load_optimiser: wrong number of moments");
    }
    p.learn();
    p.first_moment = state.first_moment;
    p.second_moment = state.second_moment;
    p.actor_steps = state.actor_steps;
    p.critic_steps = state.critic_steps;
  }

  OptimiserState read_optimiser(int set) const override {
    const CpuParameters& p = *sets_.at(set);
    if (!p.learns()) return {std::vector<float>(layout_->size), std::vector<float>(layout_->size), 0, 0};
    return {p.first_moment, p.second_moment, p.actor_steps, p.critic_steps};
  }

  void read_gradient(int set, std::span<float> gradient) const override {
    const CpuParameters& p = *sets_.at(set);
    if (p.learns()) {
      std::copy(p.gradient.begin(), p.gradient.end(), gradient.begin());
    } else {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
    }
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    if (config_.reread > 0 && request.sequences.problem == config_.problem) {
      const RolloutCall stretches = [this](const auto& some, RolloutResult& found) { rollout(some, found); };
      return roll_out_stretches(request, config_, stretches, result);
    }
    const SequenceBatch& batch = request.sequences;
    const int64_t rollouts = count_rollouts(request);
    clear_rollouts(rollouts, batch.steps(), result);
    const auto tiles = request.tape != nullptr ? gradient_tiles(batch, request.counts)
                                               : cut_for_rollout(batch, request.counts, rollouts);
    CpuTape* const tape = open_tape(request, tiles.size());
    std::vector<PolicyStatistics> statistics(tiles.size());
    BranchQueue branches(workers_.count());
    // Every worker takes tiles while there are any, and then branches of others' tiles.
    std::atomic<size_t> next = 0;
    workers_.for_each(workers_.count(), [&](int64_t, int worker) {
      RolloutWorkspace& workspace = rollout_workspaces_[worker];
      for (size_t t = next++; t < tiles.size() && !branches.has_failed(); t = next++) {
        branches.attempt([&] {
          request.stop.check();
          statistics[t] = roll_out_tile({parameters_of(batch, tiles[t]), request, tiles[t], tile_of(tape, t),
                                         result, tape == nullptr ? &branches : nullptr},
                                        workspace);
        });
      }
      if (tape == nullptr) branches.wait_for_all(workspace);
    });
    branches.rethrow();
    const bool stopped = branches.was_stopped();
    if (tape != nullptr && !stopped) tape_head_.fill(request, result);
    if (tape != nullptr && share_ != nullptr) share_->statistics = statistics;
    for (const PolicyStatistics& s : statistics) result.statistics += s;
    result.statistics += branches.statistics();
    const bool has_costs = cost_rollouts(request, result);
    if (stopped || !has_costs) count_finished(request, result);
    if (request.best_only) choose_best(request, result);
  }

  TwoOptDevice* two_opt_device() override { return this; }
  void two_opt(const TwoOptRequest& request, TwoOptResult& result) override {
    begin_tours(request, result);
    const SequenceBatch& batch = request.sequences;
    workers_.for_each(batch.count, [&](int64_t i, int) {
      const auto s = static_cast<int>(i);
      result.kicks[s] = search_tour(batch.features_of(s), batch.n, request.instance_keys[s], request,
                                    &result.orders[i * batch.n]);
    });
  }

  void gradient(const GradientRequest& request) override {
    CpuTape* const tape = tape_head_.use(request) ? &request.tape->storage<CpuTape>() : nullptr;
    const auto tiles = gradient_tiles(request.sequences, request.counts);
    require_tile_memory(tiles.size(), request.sequences.n);
    const auto folded = [&](Placement& placement) {
      return FoldedActor(placement, *layout_, projections_of(config_.glimpses).count);
    };
    const RolloutRequest forced = forced_rollouts(request);  // of tiles that are on no tape
    RolloutResult unread;
    if (tape == nullptr || tape->count < tiles.size())
      clear_rollouts(count_rollouts(forced), request.sequences.steps(), unread);
    sum_tiles(request.sequences, tiles, folded, [&](size_t t, int worker, const FoldedActor& sums) {
      const CpuParameters& parameters = parameters_of(request.sequences, tiles[t]);
      GradientWorkspace& workspace = gradient_workspaces_[worker];
      TileActivations* activations = tile_of(tape, t);
      if (activations == nullptr) {
        activations = &workspace.activations;
        roll_out_tile({parameters, forced, tiles[t], activations, unread, nullptr},
                      rollout_workspaces_[worker]);
      }
      gradient_tile(parameters, request, tiles[t], *activations, workspace, sums);
    });
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    const auto tiles = gradient_tiles(sequences);
    const CriticRequest request{sequences, targets.data(), weight, values.data(), stop};
    const auto folded = [this](Placement& placement) { return FoldedCritic(placement, *layout_); };
    sum_tiles(sequences, tiles, folded, [&](size_t t, int worker, const FoldedCritic& sums) {
      critic_tile(parameters_of(sequences, tiles[t]), request, tiles[t], gradient_workspaces_[worker], sums);
    });
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    tape_head_.forget();
    std::vector<GradientNorms> norms(count);
    WorkerThreads* const helpers = count == 1 ? &workers_ : nullptr;
    for_each_item(count == 1 ? nullptr : &workers_, count, [&](int64_t i) {
      CpuParameters& p = *sets_.at(first_set + i);
      p.learn();
      norms[i] = adam_step(*layout_,
                           {p.flat.data(), p.first_moment.data(), p.second_moment.data(), p.gradient.data()},
                           p.actor_steps, p.critic_steps, request, helpers);
      p.prepare(helpers);
    });
    return norms;
  }

 private:
  const CpuParameters& parameters_of(const SequenceBatch& batch, const RolloutTile& tile) const {
    return *sets_.at(set_of(batch, tile));
  }

  static int set_of(const SequenceBatch& batch, const RolloutTile& tile) {
    return batch.set_of(tile.pieces.front().sequence);
  }

  std::vector<RolloutTile> cut_for_rollout(const SequenceBatch& batch, const int32_t* counts,
                                           int64_t rollouts) const {
    const int projections = projections_of(config_.glimpses).count;
    const size_t sequence_bytes = sizeof(float) * static_cast<size_t>(batch.n) * projections * kHidden;
    // Whole register tiles of 8 rows, where those sequences take no memory to speak of.
    const int fewest = std::clamp<int>(static_cast<int>(kSmallBytes / sequence_bytes), 1, 8);
    const int max_sequences =
        std::clamp<int>(static_cast<int>(kTileBytes / sequence_bytes) / 8 * 8, fewest, 24);
    const int64_t share = (rollouts + workers_.count() - 1) / workers_.count();
    // The rollouts of a sequence stay in one piece, where they share all their prefixes.
    const int64_t max_piece = std::max<int64_t>(rollouts, 1);
    return cut_into_tiles(batch, counts, max_sequences, std::clamp<int64_t>(share, 1, kMaxTileRollouts),
                          max_piece);
  }

  // The request's tape, emptied, with room for as many of its tiles as memory allows; null: not wanted.
  CpuTape* open_tape(const RolloutRequest& request, size_t tiles) {
    if (request.tape == nullptr) return nullptr;
    tape_head_.forget();
    require_tile_memory(tiles, request.sequences.n);
    const size_t tile_bytes = tape_tile_bytes(request.sequences.n);
    CpuTape& tape = request.tape->storage<CpuTape>();
    tape.count = std::min(tiles, tape_room(tiles * tile_bytes) / tile_bytes);
    if (tape.tiles.size() < tape.count) tape.tiles.resize(tape.count);
    return &tape;
  }

  // Each worker holds the activations of a tile, from then on. Throws DeviceError if there is not so much
  // memory: a system that overcommits would kill the program later.
  void require_tile_memory(size_t tiles, int n) {
    const size_t bytes = std::min<size_t>(tiles, workers_.count()) * tape_tile_bytes(n);
    if (bytes <= granted_bytes_) return;
    const size_t available = available_memory();
    if (bytes > available) {
      throw DeviceError("a gradient at n = " + std::to_string(n) + " needs " + gibibytes(bytes) +
                        " of memory, and there are " + gibibytes(available));
    }
    granted_bytes_ = bytes;
  }

  // How much of it a tape of so many bytes may have.
  static size_t tape_room(size_t bytes) {
    return bytes <= kSmallBytes ? bytes : std::min(kTapeBytes, available_memory() / 4);
  }

  size_t tape_tile_bytes(int n) const {
    const int encoder = config_.encoder == Encoder::kLstm
                            ? kLstmCell + 2 * kHidden
                            : config_.layers * (6 * kHidden + config_.feed_forward) + 2 * kHidden;
    const int items = encoder + (projections_of(config_.glimpses).count + 1) * kHidden;
    const int steps = kLstmCell + 2 * kHidden + cpu::attention_activations(n, config_.glimpses);
    const size_t floats = static_cast<size_t>(n) * static_cast<size_t>(items) +
                          static_cast<size_t>(max_steps(config_.problem, n)) * static_cast<size_t>(steps);
    return sizeof(float) * kGradientRows * floats;
  }

  // Each set's tiles are cut into kSegments segments. A segment's tiles add to one buffer in order, and the
  // segments are added in order and unfolded. folded(placement) makes the sums' arrays; work(tile, worker,
  // sums) adds to them.
  template <typename Folded, typename Work>
  void sum_tiles(const SequenceBatch& batch, const std::vector<RolloutTile>& tiles, const Folded& folded,
                 const Work& work) {
    if (share_ != nullptr) sets_.at(0)->learn();
    for (const RolloutTile& tile : tiles) sets_.at(set_of(batch, tile))->learn();
    Placement counted;
    folded(counted);
    const size_t size = counted.bytes() / sizeof(float);
    const auto folded_in = [&](AlignedFloats& buffer) {
      Placement placement(buffer.data());
      return folded(placement);
    };
    const auto sum = [&](size_t first_tile, const SegmentWindow& window) {
      sum_segments(window, size, [&](size_t t, int worker, AlignedFloats& buffer) {
        work(first_tile + t, worker, folded_in(buffer));
      });
    };
    if (share_ != nullptr) {
      const SegmentWindow& window = share_->window;
      sum(0, window);
      std::vector<const float*> addends;
      for (size_t i = 0; i < window.last - window.first; ++i) addends.push_back(segments_[i].sums.data());
      share_sum_.resize(size);
      share_->add_segments(addends, share_sum_);
      unfold(folded_in(share_sum_), *sets_.at(0));
      return;
    }
    for (size_t first = 0, last = 0; first < tiles.size(); first = last) {
      const int set = set_of(batch, tiles[first]);
      while (last < tiles.size() && set_of(batch, tiles[last]) == set) ++last;
      const size_t segments = segments_of(last - first);
      sum(first, {0, segments, last - first});
      add_segments(segments, size);
      unfold(folded_in(segments_[0].sums), *sets_.at(set));
    }
  }

  // The window's segments into segments_[0], .. sum(tile, worker, buffer): its tiles are 0, ..
  template <typename Sum>
  void sum_segments(const SegmentWindow& window, size_t size, const Sum& sum) {
    const size_t segments = window.last - window.first;
    if (segments_.size() < segments) segments_.resize(segments);
    workers_.for_each(static_cast<int64_t>(segments), [&](int64_t i, int worker) {
      Segment& segment = segments_[i];
      if (!std::exchange(segment.is_zero, false) || segment.sums.size() != size)
        segment.sums.assign(size, 0.0f);
      const size_t s = window.first + static_cast<size_t>(i), own = window.tile(window.first);
      for (size_t t = window.tile(s); t < window.tile(s + 1); ++t) sum(t - own, worker, segment.sums);
    });
  }

  // Into the first. The others are zeroed where they were read, while the caches hold them.
  void add_segments(size_t segments, size_t size) {
    constexpr size_t kSlice = 4096;
    float* const all = segments_[0].sums.data();
    workers_.for_each(static_cast<int64_t>((size + kSlice - 1) / kSlice), [&](int64_t slice, int) {
      const size_t begin = slice * kSlice, end = std::min(size, begin + kSlice);
      for (size_t s = 1; s < segments; ++s) {
        float* const addend = segments_[s].sums.data();
        for (size_t i = begin; i < end; ++i) all[i] += addend[i];
        std::fill(addend + begin, addend + end, 0.0f);
      }
    });
    for (size_t s = 1; s < segments; ++s) segments_[s].is_zero = true;
  }

  WorkerThreads workers_;
  ModelConfig config_;
  std::optional<ParameterLayout> layout_;
  std::vector<std::unique_ptr<CpuParameters>> sets_;
  std::vector<RolloutWorkspace> rollout_workspaces_;
  std::vector<GradientWorkspace> gradient_workspaces_;
  size_t granted_bytes_ = kSmallBytes;  // that the gradient workspaces may grow to without a question
  TapeHead tape_head_;
  std::vector<Segment> segments_;  // of a set
  RankShare* const share_;         // null: this backend computes all of each call
  AlignedFloats share_sum_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads, RankShare* share) {
  try {
    cpu::instruction_set();
  } catch (const std::runtime_error& error) {
    throw DeviceError(error.what());  // POINTSMAN_SIMD asks for what this processor lacks
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::make_unique<CpuBackend>(threads > 0 ? threads : cores, share);
}

}  // namespace pointsman
