// SPDX-License-Identifier: Apache-2.0
// decode() makes the CPU's rollouts bit for bit: orders, costs, log p, and the activations recorded for a
// gradient.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/backend/cpu/rollout.h"
#include "kernels/common/knapsack.h"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/tile_multiply.cuh"
#include "tests/catch.h"
#include "tests/kernels/cuda/encoded_batch.h"

namespace pointsman::cuda {
namespace {

struct Case {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 0;
  std::vector<int32_t> counts;  // rollouts of each sequence
  std::vector<int> set_of;      // parameter set of each sequence; empty: all 0
  int glimpses = 1;
  bool centre = true;
  Decode decode = Decode::kSample;
  float scale = 4.0f;  // of the parameters
  float temperature = 1.0f;
  bool stop_at_first_misfit = false;
  bool masks = true;
  double capacity = 0.0;                   // 0: n / 6
  int tile_rows = 8;                       // of a block
  std::vector<int> cluster_rows{1, 2, 4};  // of a block in clusters, where the device has them, too
  bool across_sequences = false;           // a tile's rows are of consecutive sequences; counts all 1
  std::vector<int32_t> forced;
  void (*change)(const ParameterLayout&, std::vector<float>&) = nullptr;  // of the parameters

  bool is_plain() const { return pointsman::is_plain(problem); }
  int steps() const { return max_steps(problem, n); }  // of an order
};

struct Fixture {
  Case c;
  ModelConfig config;
  std::vector<std::vector<float>> parameters;
  RandomBatch batch;
  std::vector<uint32_t> first_samples;
  int64_t rollouts = 0;

  explicit Fixture(Case c_)
      : c(std::move(c_)),
        config(config_for(c.problem, c.n, c.glimpses, c.centre)),
        batch(c.problem, c.n, static_cast<int>(c.counts.size()), 5, c.capacity) {
    if (c.set_of.empty()) c.set_of.assign(batch.count, 0);
    for (int set = 0; set <= c.set_of.back(); ++set) {
      parameters.push_back(scaled_parameters(config, c.scale, set + 1));
      if (c.change != nullptr) c.change(ParameterLayout(config), parameters.back());
    }
    for (int s = 0; s < batch.count; ++s) {
      rollouts += c.counts[s];
      first_samples.push_back(10 * s);
    }
  }

  RolloutRequest request() const {
    RolloutRequest r;
    r.sequences = batch.batch();
    r.sequences.parameter_sets = c.set_of.data();
    r.decode = c.decode;
    r.counts = c.counts.data();
    r.instance_keys = batch.keys.data();
    r.first_samples = first_samples.data();
    r.sample_stride = 3;
    r.policy.temperature = c.temperature;
    r.policy.stop_at_first_misfit = c.stop_at_first_misfit;
    r.policy.masks = c.masks;
    r.forced = c.forced.empty() ? nullptr : c.forced.data();
    return r;
  }

  RolloutResult on_cpu() const {
    auto backend = make_backend({"cpu", 1});
    backend->configure(config, static_cast<int>(parameters.size()));
    for (size_t set = 0; set < parameters.size(); ++set) {
      backend->load_parameters(static_cast<int>(set), parameters[set]);
    }
    RolloutResult result = roll_out(*backend, request());
    Tape tape;
    RolloutRequest taped = request();
    taped.tape = &tape;
    result.statistics.entropy = roll_out(*backend, taped).statistics.entropy;
    return result;
  }

  std::vector<DecodeTile> tiles(const DecodeTiling& tiling, int most_samples) const {
    std::vector<DecodeTile> result;
    int64_t at = 0;
    const auto fill_cluster = [&] {
      while (tiling.in_clusters && result.size() % kClusterBlocks != 0) {
        result.push_back(result.back());
        result.back().rows = 0;
      }
    };
    for (int s = 0; s < batch.count; ++s) {
      if (s > 0 && c.set_of[s] != c.set_of[s - 1]) fill_cluster();
      if (c.across_sequences) {
        if (result.empty() || result.back().rows == tiling.rows || result.back().set != c.set_of[s]) {
          result.push_back({c.set_of[s], s, 1, 0, 0, s});
        }
        ++result.back().rows;
        continue;
      }
      for (int first = 0; first < c.counts[s]; first += most_samples, at += result.back().rows) {
        result.push_back({c.set_of[s], s, 0, first, std::min(most_samples, c.counts[s] - first), at});
      }
    }
    fill_cluster();
    return result;
  }
};

struct DeviceDecode {
  RolloutResult result;
  std::vector<float> h, c, cells, queries;
  std::vector<int32_t> row_steps;
  int tile_count = 0;
};

// The decoder's matrices of every set as the kernel reads them.
struct DeviceDecoder {
  DeviceArray<float> recurrent, fold, bias, start_bias, query, flat;

  explicit DeviceDecoder(const HostModel& model)
      : recurrent(model.stacked([&](const CpuParameters& p) {
          std::vector<float> out;
          transpose_into(p.flat, model.layout.decoder.weight_hh, kGates, 0, kGates, out);
          return out;
        })),
        fold(model.stacked([](const CpuParameters& p) { return p.decoder.fold; })),
        bias(model.stacked([](const CpuParameters& p) { return p.decoder.bias; })),
        start_bias(model.stacked([](const CpuParameters& p) { return p.decoder_start_bias; })),
        query(model.stacked([&](const CpuParameters& p) {
          std::vector<float> out;
          transpose_into(p.flat, model.layout.query, kHidden, 0, kHidden, out);
          return out;
        })),
        flat(model.stacked([](const CpuParameters& p) { return p.flat; })) {}

  void fill(const HostModel& model, float temperature, DecodeArgs& args) const {
    const int64_t size = static_cast<int64_t>(model.layout.size);
    args.recurrent = {recurrent.data(), kHidden * kGates};
    args.fold = {fold.data(), model.layout.decoder.inputs() * kGates};
    args.bias = {bias.data(), kGates};
    args.start_bias = {start_bias.data(), kGates};
    args.query = {query.data(), kHidden * kHidden};
    args.attention = {{flat.data() + model.layout.glimpse.v, size},
                      {flat.data() + model.layout.pointer.v, size},
                      model.config.glimpses,
                      model.config.centre_logits,
                      static_cast<float>(model.config.clip) / temperature};
    args.projections = model.projections();
  }
};

// When the host asks for the end of a launch: never, at its start, or, from 0 on, when the launch has written
// the cost of the rollout of that number.
constexpr int kNever = -2, kStart = -1;

// tree_samples: how many samples of a sequence may share prefixes; 0: none do.
DeviceDecode on_device(const Fixture& f, const DecodeTiling& tiling, bool record, int stop_at = kNever,
                       int tree_samples = 0) {
  const HostModel model(f.config, f.parameters);
  const HostEncoding encoding(model, f.batch, f.c.set_of);
  const DeviceDecoder decoder(model);
  const int n = f.c.n;
  record = record && f.c.is_plain();
  const size_t rollouts = f.rollouts;
  const std::vector<DecodeTile> host_tiles = f.tiles(tiling, std::max(tiling.rows, tree_samples));
  const auto blocks = std::min<size_t>(host_tiles.size(), decode_blocks(tiling.rows));

  const DeviceArray<float> references(encoding.references), bounds(encoding.bounds), h(encoding.h),
      c(encoding.c_last);
  const DeviceArray<float> features(f.batch.features);
  const DeviceArray<double> weights(f.batch.weights), capacities(f.batch.capacities);
  const DeviceArray<uint64_t> keys(f.batch.keys);
  const DeviceArray<uint32_t> first_samples(f.first_samples);
  const DeviceArray<int32_t> forced(f.c.forced);
  const DeviceArray<DecodeTile> tiles(host_tiles);
  DeviceArray<int32_t> orders(rollouts * f.c.steps()), row_steps(record ? rollouts : 0);
  DeviceArray<double> costs(rollouts), log_probs(rollouts);
  const DeviceArray<int32_t> stop(std::vector<int32_t>{1});
  if (stop_at >= 0) costs.upload(std::vector<double>(rollouts, 0.0));
  DeviceArray<PolicyStatistics> statistics(host_tiles.size());
  const size_t states = record ? rollouts * (n + 1) * kHidden : 0, steps = record ? rollouts * n : 0;
  DeviceArray<float> all_h(states), all_c(states), cells(steps * kLstmCell), queries(steps * kHidden);

  DecodeArgs args{};
  args.problem = f.c.problem;
  args.mode = f.c.decode;
  decoder.fill(model, f.c.temperature, args);
  args.references = references.data();
  args.bounds = bounds.data();
  args.start_h = h.data() + n * kHidden;
  args.start_stride = (n + 1) * kHidden;
  args.start_c = c.data();
  args.features = features.data();
  args.rules = {weights.data(), capacities.data(), f.c.stop_at_first_misfit, false, f.c.masks, kLatePenalty};
  args.instance_keys = keys.data();
  args.first_samples = first_samples.data();
  args.sample_stride = 3;
  args.seed = f.request().seed;
  args.forced = forced.data();
  args.want_entropy = f.c.decode == Decode::kSample;  // as the CPU on a tape
  args.tiles = tiles.data();
  args.tile_count = static_cast<int>(host_tiles.size());
  args.tiling = tiling;
  DeviceArray<std::byte> tree(blocks * decode_tree_bytes(n, tree_samples));
  args.tree = tree_samples > 0 ? tree.data() : nullptr;
  args.tree_samples = tree_samples;
  args.n = n;
  args.results = {orders.data(), costs.data(), log_probs.data(), statistics.data()};
  args.record = {all_h.data(), all_c.data(), cells.data(), queries.data(), row_steps.data()};
  if (stop_at == kStart) args.stop = stop.data();
  if (stop_at >= 0) args.stop = reinterpret_cast<const int32_t*>(costs.data() + stop_at) + 1;
  decode(args, nullptr);

  DeviceDecode d{{orders.download(), costs.download(), log_probs.download(), {}, {}},
                 all_h.download(),
                 all_c.download(),
                 cells.download(),
                 queries.download(),
                 row_steps.download(),
                 args.tile_count};
  for (const PolicyStatistics& s : statistics.download()) {
    d.result.statistics += s;
  }
  return d;
}

// Statistics are sums of the same numbers in another order.
void check_statistics(const PolicyStatistics& device, const PolicyStatistics& cpu, int n) {
  const double slack = static_cast<double>(cpu.steps + 1) * n * std::numeric_limits<double>::epsilon();
  CHECK(device.steps == cpu.steps);
  CHECK(std::fabs(device.entropy - cpu.entropy) <= slack * 8.0);
  CHECK(std::fabs(device.mean_logit - cpu.mean_logit) <= slack * (1.0 + std::fabs(cpu.mean_logit)) * 8.0);
  CHECK(std::fabs(device.saturated - cpu.saturated) <= slack);
  CHECK((device.direct_rows > 0) == (cpu.direct_rows > 0));
}

void check_rollouts(const RolloutResult& device, const RolloutResult& cpu, int n) {
  CHECK(device.orders == cpu.orders);
  CHECK(same_bytes(device.log_probs, cpu.log_probs));
  CHECK(same_bytes(device.costs, cpu.costs));
  check_statistics(device.statistics, cpu.statistics, n);
}

// In clusters; none where the device has none.
std::vector<DecodeTiling> cluster_tilings(const Case& c) {
  std::vector<DecodeTiling> tilings;
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return tilings;
  for (const int rows : c.cluster_rows) {
    if (c.is_plain()) tilings.push_back({rows, true});
  }
  return tilings;
}

// A block has so many rows, by their own threads and by more of them.
std::vector<DecodeTiling> block_tilings(const Case& c) {
  std::vector<DecodeTiling> tilings{{c.tile_rows, false}};
  if (c.tile_rows <= 16 && c.is_plain()) tilings.push_back({c.tile_rows, false, true, true});
  return tilings;
}

RolloutResult expect_cpu_rollouts(const Case& c) {
  CAPTURE(c.n, c.glimpses, c.centre, c.scale, static_cast<int>(c.problem), static_cast<int>(c.decode));
  const Fixture fixture(c);
  const RolloutResult cpu = fixture.on_cpu();
  for (const DecodeTiling& tiling : cluster_tilings(c)) {
    INFO("clusters, rows of a block: " << tiling.rows);
    check_rollouts(on_device(fixture, tiling, false).result, cpu, c.n);
  }
  for (const DecodeTiling& tiling : block_tilings(c)) {
    for (const int tree_samples : {0, 64, kMostTreeSamples}) {
      if (tiling.together && tree_samples == kMostTreeSamples) break;
      CAPTURE(tiling.rows, tiling.together, tree_samples);
      const DeviceDecode device = on_device(fixture, tiling, false, kNever, tree_samples);
      check_rollouts(device.result, cpu, c.n);
      // The CPU evaluates each prefix of a sequence's samples once, and so does a tile that has them all.
      const int64_t evaluations = device.result.statistics.evaluations;
      CHECK(evaluations >= cpu.statistics.evaluations);
      const bool all_share =
          c.across_sequences || *std::max_element(c.counts.begin(), c.counts.end()) <= tree_samples;
      if (all_share && c.decode == Decode::kSample) CHECK(evaluations == cpu.statistics.evaluations);
      if (c.decode != Decode::kSample || !c.is_plain()) break;
    }
  }
  return cpu;
}

// Which rollouts a stopped launch finished: these as the CPU's, of the others nothing.
std::vector<bool> expect_some_rollouts(const Fixture& fixture, const DecodeTiling& tiling, int stop_at,
                                       int tree_samples) {
  const int steps = fixture.c.steps();
  const bool record = tree_samples == 0 && fixture.c.is_plain();
  const RolloutResult cpu = fixture.on_cpu();
  const DeviceDecode device = on_device(fixture, tiling, record, stop_at, tree_samples);
  std::vector<bool> finished;
  for (int64_t r = 0; r < fixture.rollouts; ++r) {
    finished.push_back(!std::isinf(device.result.costs[r]));
    const auto order = device.result.orders.begin() + r * steps;
    if (finished.back()) {
      CHECK(device.result.costs[r] == cpu.costs[r]);
      CHECK(device.result.log_probs[r] == cpu.log_probs[r]);
      CHECK(std::equal(order, order + steps, cpu.orders.begin() + r * steps));
    } else {
      CHECK(std::isnan(device.result.log_probs[r]));
      CHECK(std::count(order, order + steps, -1) == steps);
      if (record) CHECK(device.row_steps[r] == 0);
    }
  }
  return finished;
}

Case small_case(ProblemKind problem, int n) {
  Case c;
  c.problem = problem;
  c.n = n;
  c.counts = {3, 1};
  return c;
}

// What the CPU records of a rollout of one sequence.
struct HostActivations {
  TileActivations recorded;
  RolloutResult result;

  HostActivations(const Fixture& f, const HostModel& model, int sequence) {
    const CpuParameters& parameters = *model.sets[f.c.set_of[sequence]];
    RolloutRequest request = f.request();
    request.counts = nullptr;
    result.orders.assign(static_cast<size_t>(f.batch.count) * f.c.n, -1);
    result.costs.resize(f.batch.count);
    result.log_probs.resize(f.batch.count);
    const RolloutTile tile{{{sequence, 0, 1, sequence}}, 1};
    RolloutWorkspace workspace;
    roll_out_tile({parameters, request, tile, &recorded, result, nullptr}, workspace);
  }
};

bool same_floats(const float* a, const float* b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

bool all_zero(const std::vector<float>& x, size_t begin, size_t end) {
  return std::all_of(x.begin() + begin, x.begin() + end, [](float f) { return f == 0.0f; });
}

// Everything recorded of rollout s, and zeros behind it.
void check_activations(const Fixture& f, const HostModel& model, const DeviceDecode& d, int s) {
  CAPTURE(s);
  const size_t n = f.c.n;
  HostActivations cpu(f, model, s);
  // Steps that evaluated the network: those with a gradient, and perhaps one whose choice ended the packing.
  size_t made = d.row_steps[s];
  if (made < n && !all_zero(d.queries, (s * n + made) * kHidden, (s * n + made + 1) * kHidden)) ++made;
  CHECK(made <= static_cast<size_t>(d.row_steps[s]) + (f.c.stop_at_first_misfit ? 1 : 0));
  for (size_t t = 0; t <= made; ++t) {
    CHECK(same_floats(d.h.data() + (s * (n + 1) + t) * kHidden,
                      cpu.recorded.decoder.h_before(static_cast<int>(t)), kHidden));
    CHECK(same_floats(d.c.data() + (s * (n + 1) + t) * kHidden,
                      cpu.recorded.decoder.c_before(static_cast<int>(t)), kHidden));
  }
  for (size_t t = 0; t < made; ++t) {
    CHECK(same_floats(d.cells.data() + (s * n + t) * kLstmCell,
                      cpu.recorded.decoder.cell(static_cast<int>(t)), kLstmCell));
    CHECK(same_floats(d.queries.data() + (s * n + t) * kHidden, cpu.recorded.queries.data() + t * kHidden,
                      kHidden));
  }
  CHECK(all_zero(d.h, (s * (n + 1) + made + 1) * kHidden, (s + 1) * (n + 1) * kHidden));
  CHECK(all_zero(d.c, (s * (n + 1) + made + 1) * kHidden, (s + 1) * (n + 1) * kHidden));
  CHECK(all_zero(d.cells, (s * n + made) * kLstmCell, (s + 1) * n * kLstmCell));
  CHECK(all_zero(d.queries, (s * n + made) * kHidden, (s + 1) * n * kHidden));
}

// Choices that were made among two items or more and are in the order, by the rules' own list.
int weighed_choices(const Fixture& f, const RolloutResult& result, int s) {
  const std::vector<int> items = items_of(result, f.c.n, s);
  if (f.c.problem == ProblemKind::kTsp) return std::max(0, f.c.n - 1);
  KnapsackRules rules{f.batch.weights.data() + static_cast<size_t>(s) * f.c.n, f.batch.capacities[s],
                      f.c.stop_at_first_misfit};
  std::vector<int32_t> list(f.c.n);
  int count = initial_remaining(rules, list.data(), f.c.n), weighed = 0;
  for (const int item : items) {
    weighed += count > 1;
    rules.step(item);
    const int position = static_cast<int>(std::find(list.begin(), list.begin() + count, item) - list.begin());
    count = remove_and_filter(rules, list.data(), count, position);
  }
  return weighed;
}

// Not for the race check: the word that the later tiles ask is a cost that the first one writes.
TEST_CASE("cuda decode: a stop ends a launch between two steps, and finished rollouts stay") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack, ProblemKind::kCvrp}) {
    Case c = small_case(problem, 7);
    c.counts = {20, 3, 9};
    c.scale = 1.0f;  // more prefixes than rows: some wait when the stop comes
    for (const Decode decode : {Decode::kSample, Decode::kGreedy}) {
      c.decode = decode;
      const Fixture fixture(c);
      for (const int tree_samples : {0, 16}) {
        if (tree_samples > 0 && (decode != Decode::kSample || !c.is_plain())) continue;
        for (const DecodeTiling& blocks : block_tilings(c)) {
          const std::vector<bool> none = expect_some_rollouts(fixture, blocks, kStart, tree_samples);
          CHECK(std::count(none.begin(), none.end(), true) == 0);
          // Blocks run side by side on a GPU, so there the others may be done before they hear of it.
          for (int stopper = 0; stopper < (tree_samples > 0 ? 16 : 1); ++stopper) {
            const std::vector<bool> some = expect_some_rollouts(fixture, blocks, stopper, tree_samples);
            CHECK(some[stopper]);
          }
        }
      }
      for (const DecodeTiling& tiling : cluster_tilings(c)) {
        const std::vector<bool> none = expect_some_rollouts(fixture, tiling, kStart, 0);
        CHECK(std::count(none.begin(), none.end(), true) == 0);
        CHECK(expect_some_rollouts(fixture, tiling, 0, 0)[0]);
      }
    }
  }
}

}  // namespace

TEST_CASE("decode: every length") {
  for (const int n : {1, 2, 3, 16, 17, 31, 32, 33}) {
    expect_cpu_rollouts(small_case(ProblemKind::kTsp, n));
    expect_cpu_rollouts(small_case(ProblemKind::kKnapsack, n));
  }
}

// The least capacity that a customer may need, one for a few customers, and one for all.
TEST_CASE("decode_general: routes of every length and capacity") {
  for (const int n : {1, 2, 3, 16, 17, 32, 33}) {
    for (const double capacity : {9.0, 16.0, 1000.0}) {
      Case c = small_case(ProblemKind::kCvrp, n);
      c.capacity = capacity;
      expect_cpu_rollouts(c);
      c.decode = Decode::kGreedy;
      expect_cpu_rollouts(c);
    }
  }
}

TEST_CASE("decode_general: tours with time windows of every length, with masks and without") {
  for (const int n : {1, 2, 3, 16, 17, 33}) {
    for (const bool masks : {true, false}) {
      Case c = small_case(ProblemKind::kTsptw, n);
      c.masks = masks;
      expect_cpu_rollouts(c);
      c.decode = Decode::kGreedy;
      expect_cpu_rollouts(c);
    }
  }
}

TEST_CASE("decode_general: colourings of graphs of every size") {
  for (const int n : {1, 2, 3, 16, 17, 33}) {
    Case c = small_case(ProblemKind::kColouring, n);
    expect_cpu_rollouts(c);
    c.decode = Decode::kGreedy;
    expect_cpu_rollouts(c);
  }
}

TEST_CASE("decode_general: asymmetric tours of every length") {
  for (const int n : {1, 2, 3, 16, 17, 33}) {
    Case c = small_case(ProblemKind::kAtsp, n);
    expect_cpu_rollouts(c);
    c.decode = Decode::kGreedy;
    expect_cpu_rollouts(c);
  }
}

TEST_CASE("decode_general: glimpses, centring, wide references") {
  for (const int glimpses : {0, 1, 2}) {
    for (const float scale : {4.0f, 200.0f}) {
      Case c = small_case(ProblemKind::kCvrp, 11);
      c.glimpses = glimpses;
      c.centre = glimpses != 1;
      c.scale = scale;
      c.temperature = 0.7f;
      CHECK((expect_cpu_rollouts(c).statistics.direct_rows > 0) == (scale > 100.0f));
    }
  }
}

// Rows that end at different steps, tiles that are not full, several parameter sets.
TEST_CASE("decode_general: tiles of one sequence and of consecutive ones", "[race]") {
  Case c = small_case(ProblemKind::kCvrp, 4);
  c.scale = 1.0f;
  c.counts = {9, 3};
  c.set_of = {0, 1};
  expect_cpu_rollouts(c);
  c.counts.assign(11, 1);
  c.set_of = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
  c.across_sequences = true;
  expect_cpu_rollouts(c);
}

TEST_CASE("decode_general: fp32 alone, 8 rows a block, nothing shared") {
  const DecodeKind routes{ProblemKind::kCvrp, Precision::kFp32, 3};
  const DecodeTiling tiling = decode_tiling(20, {1, 1, 1}, routes, true);
  CHECK(tiling.rows == kTileRows);
  CHECK(!tiling.in_clusters);
  CHECK(decode_tiling(1000000, {1, 1, 1}, routes, true).rows == 0);
  Case c = small_case(ProblemKind::kCvrp, 3);
  CHECK_THROWS_AS(on_device(Fixture(c), {1, true}, false), std::invalid_argument);
  CHECK_THROWS_AS(on_device(Fixture(c), {kTileRows, false}, false, kNever, 16), std::invalid_argument);
}

TEST_CASE("decode: glimpses, centring, temperature, greedy") {
  for (const int glimpses : {0, 1, 2}) {
    for (const bool centre : {false, true}) {
      Case c = small_case(glimpses == 1 ? ProblemKind::kKnapsack : ProblemKind::kTsp, 11);
      c.glimpses = glimpses;
      c.centre = centre;
      c.temperature = centre ? 1.0f : 0.7f;
      expect_cpu_rollouts(c);
      c.decode = Decode::kGreedy;
      expect_cpu_rollouts(c);
    }
  }
}

TEST_CASE("decode: blocks of 32 rows and several tiles") {
  Case c = small_case(ProblemKind::kTsp, 9);
  c.tile_rows = 32;
  c.counts = {37, 8, 21};
  expect_cpu_rollouts(c);
  c.tile_rows = 8;
  c.set_of = {0, 1, 1};
  expect_cpu_rollouts(c);
}

// More samples than rows, policies from nearly uniform to nearly greedy, and instances whose packings end
// early.
TEST_CASE("decode: samples that share prefixes") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (const float scale : {1.0f, 12.0f}) {
      Case c = small_case(problem, 17);
      c.scale = scale;
      c.counts = {70, 1, 20};
      c.cluster_rows.clear();
      expect_cpu_rollouts(c);
      c.tile_rows = 32;
      c.stop_at_first_misfit = problem == ProblemKind::kKnapsack;
      expect_cpu_rollouts(c);
    }
  }
}

TEST_CASE("decode: branches of a block's tree", "[race]") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    Case c = small_case(problem, 6);
    c.counts = {30};
    c.cluster_rows.clear();
    expect_cpu_rollouts(c);
  }
}

TEST_CASE("decode: a hundred items") {
  Case c = small_case(ProblemKind::kTsp, 100);
  c.counts = {2};
  c.scale = 20.0f;
  CHECK(expect_cpu_rollouts(c).statistics.saturated > 50.0);  // several items a step
  c.problem = ProblemKind::kKnapsack;
  c.capacity = 25.0;
  c.decode = Decode::kGreedy;
  expect_cpu_rollouts(c);
}

// References that do not fit into shared memory: of one sequence, and of a block's two.
TEST_CASE("decode: a thousand items") {
  Case c = small_case(ProblemKind::kKnapsack, 1000);
  c.counts = {2};
  c.capacity = 1.0;
  expect_cpu_rollouts(c);
}
TEST_CASE("decode: two rows of different sequences of a hundred items") {
  Case c = small_case(ProblemKind::kKnapsack, 100);
  c.counts = {1, 1, 1};
  c.capacity = 1.0;
  c.across_sequences = true;
  c.cluster_rows = {2};
  expect_cpu_rollouts(c);
}

TEST_CASE("decode: rows of consecutive sequences", "[race]") {
  Case c = small_case(ProblemKind::kKnapsack, 7);
  c.counts.assign(11, 1);
  c.set_of = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
  c.across_sequences = true;
  c.cluster_rows = {2};
  expect_cpu_rollouts(c);
}

// Lists of several rounds of a half-warp, a whole tile and one of two rows.
TEST_CASE("decode: tiles of 32 rows", "[large]") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    Case c = small_case(problem, 35);
    c.counts = {34};
    c.tile_rows = 32;
    c.cluster_rows.clear();
    expect_cpu_rollouts(c);
  }
}

TEST_CASE("decode: packings that stop at the first misfit, and empty ones", "[race]") {
  Case c = small_case(ProblemKind::kKnapsack, 12);
  c.counts = {9, 4};
  c.cluster_rows = {4};
  c.stop_at_first_misfit = true;
  expect_cpu_rollouts(c);
  c.capacity = 1e-9;
  expect_cpu_rollouts(c);
  c.stop_at_first_misfit = false;
  const RolloutResult empty = expect_cpu_rollouts(c);
  CHECK(empty.orders == std::vector<int32_t>(13 * 12, -1));
}

TEST_CASE("decode: forced orders, whole, cut short and infeasible") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack, ProblemKind::kCvrp}) {
    Case c = small_case(problem, 10);
    c.counts = {6};
    const RolloutResult sampled = expect_cpu_rollouts(c);
    c.decode = Decode::kForced;
    c.forced = sampled.orders;
    CHECK(same_answers(expect_cpu_rollouts(c), sampled));
    c.forced[1 * c.steps() + 1] = c.forced[1 * c.steps()];  // twice the same item
    c.forced[2 * c.steps() + 1] = -1;                       // ends early
    c.forced[3 * c.steps()] = -1;                           // never begins
    const RolloutResult cut = expect_cpu_rollouts(c);
    CHECK(std::isnan(cut.log_probs[1]));
    CHECK(std::isnan(cut.costs[2]) == (problem != ProblemKind::kKnapsack));
    c.stop_at_first_misfit = true;
    expect_cpu_rollouts(c);
  }
}

// Where exp(2a) exp(2q) needs a cap, and beyond the limit of the factored tanh.
TEST_CASE("decode: wide references") {
  for (const float scale : {20.0f, 200.0f}) {
    for (const int glimpses : {0, 2}) {
      Case c = small_case(ProblemKind::kTsp, 13);
      c.glimpses = glimpses;
      c.scale = scale;
      const RolloutResult result = expect_cpu_rollouts(c);
      CHECK((result.statistics.direct_rows > 0) == (scale > 100.0f));
    }
  }
}

// With v = 0 all logits are equal; the list's order is not the items' after the first choice.
TEST_CASE("decode: equal logits go to the lowest item") {
  Case c = small_case(ProblemKind::kTsp, 20);
  c.counts = {1};
  c.decode = Decode::kGreedy;
  c.change = [](const ParameterLayout& layout, std::vector<float>& p) {
    std::fill_n(p.begin() + layout.pointer.v, kHidden, 0.0f);
  };
  const RolloutResult result = expect_cpu_rollouts(c);
  CHECK(std::is_sorted(result.orders.begin(), result.orders.end()));
}

// Quotients that are zero, or too small for the quick division; a temperature as low shows their last digits
// in log p.
TEST_CASE("decode: elements of v that are zero or tiny") {
  Case c = small_case(ProblemKind::kTsp, 33);
  c.scale = 4.0f;
  c.change = [](const ParameterLayout& layout, std::vector<float>& p) {
    std::fill_n(p.begin() + layout.pointer.v, kHidden / 2, 0.0f);
    std::fill_n(p.begin() + layout.glimpse.v, kHidden, -0.0f);
  };
  expect_cpu_rollouts(c);
  c.temperature = 1e-37f;
  c.change = [](const ParameterLayout& layout, std::vector<float>& p) {
    for (int d = 0; d < kHidden; ++d) p[layout.pointer.v + d] *= 3e-38f;
  };
  expect_cpu_rollouts(c);
}

TEST_CASE("decode: activations recorded for a gradient", "[race]") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (const bool stop : {false, true}) {
      Case c = small_case(problem, 6);
      c.counts.assign(9, 1);
      c.across_sequences = true;
      c.cluster_rows = {1};
      c.stop_at_first_misfit = stop;
      const Fixture fixture(c);
      const HostModel model(fixture.config, fixture.parameters);
      const RolloutResult cpu = fixture.on_cpu();
      std::vector<DecodeTiling> tilings = cluster_tilings(c);
      tilings.push_back({8, false});
      tilings.push_back({8, false, true, true});
      for (const DecodeTiling& tiling : tilings) {
        const DeviceDecode device = on_device(fixture, tiling, true);
        CHECK(same_answers(device.result, cpu));
        for (int s = 0; s < fixture.batch.count; ++s) {
          CHECK(device.row_steps[s] == weighed_choices(fixture, cpu, s));
          check_activations(fixture, model, device, s);
        }
      }
    }
  }
}

constexpr DecodeKind kTours{ProblemKind::kTsp, Precision::kFp32, 3};  // with one glimpse

TEST_CASE("decode: tiles for a number of rollouts") {
  const auto rows = [](int n, int64_t rollouts) {
    return decode_tiling(n, {rollouts, 1, 1}, kTours, false).rows;
  };
  CHECK(rows(20, 1000000) == 32);
  CHECK(rows(100, 32) == 8);
  CHECK(rows(1000, 32) == 8);
  CHECK(rows(1000, 1000000) >= 8);
  CHECK(rows(1000000, 1) == 0);
  CHECK(rows(1000000, 1000000) == 0);
  if (cluster_tilings({}).empty()) {
    CHECK(!decode_tiling(100, {1, 1, 1}, kTours, true).in_clusters);
    return;
  }
  const int blocks = clusters_at_once() * kClusterBlocks;
  for (const auto& [rollouts, in_block] : {std::pair(1, 1), std::pair(blocks, 1), std::pair(blocks + 1, 2),
                                           std::pair(2 * blocks, 2), std::pair(4 * blocks, 4)}) {
    const DecodeLoad load{rollouts, 1, 1};
    const DecodeTiling tiling = decode_tiling(100, load, kTours, true);
    CHECK(tiling.in_clusters);
    CHECK(tiling.rows == in_block);
    CHECK(!decode_tiling(100, load, kTours, false).in_clusters);
  }
  const auto in_clusters = [](DecodeLoad load) { return decode_tiling(100, load, kTours, true); };
  CHECK(!in_clusters({4 * blocks + 1, 1, 1}).in_clusters);
  // Parts and parameter sets leave tiles and clusters that are not full.
  CHECK(in_clusters({blocks, blocks / 2, 1}).rows == 1);
  CHECK(in_clusters({2 * blocks, 2, 1}).rows == 2);
  CHECK(in_clusters({2 * blocks + 1, 2, 1}).rows == 4);
  CHECK(in_clusters({blocks, 2, 2}).rows == 2);
  CHECK(!in_clusters({3 * blocks, 3 * blocks / 2, 1}).in_clusters);
  CHECK(!in_clusters({170, 170, 170}).in_clusters);
  // As many items as without clusters.
  int n = 1000;
  while (decode_tiling(n, {1, 1, 1}, kTours, false).rows > 0) n += 16;
  CHECK(decode_tiling(n, {1, 1, 1}, kTours, true).rows == 0);
}

// A multiprocessor has room for the references of one block at n = 100, and of two at n = 50.
TEST_CASE("decode: tiles that run at once") {
  if (cluster_tilings({}).empty()) return;  // of 132 multiprocessors with 227 KiB
  if (device_attribute(cudaDevAttrMultiProcessorCount) != 132) return;
  const auto tiling = [](int n, DecodeLoad load) { return decode_tiling(n, load, kTours, false); };
  const auto rows = [&](int n, DecodeLoad load) { return tiling(n, load).rows; };
  CHECK(rows(20, {1280, 1, 1}) == 16);
  CHECK(rows(100, {1056, 1, 1}) == 8);
  CHECK(rows(100, {1057, 1, 1}) == 16);
  CHECK(rows(100, {2112, 1, 1}) == 16);
  CHECK(rows(50, {2113, 1, 1}) == 24);
  CHECK(rows(100, {3000, 1, 1}) == 24);
  CHECK(rows(100, {4000, 1, 1}) == 32);
  CHECK(rows(100, {1280, 640, 1}) == 8);  // two samples each: no tile would be fuller
  CHECK(rows(20, {4096, 32, 32}) == 32);  // as long a step as four blocks of 8 rows
  CHECK(rows(20, {1024, 8, 8}) == 8);
  CHECK(tiling(20, {1024, 8, 8}).together);
  CHECK(tiling(100, {2112, 1, 1}).together);
  CHECK(!tiling(100, {2113, 1, 1}).together);
  CHECK(!decode_tiling(100, {1056, 1, 1}, {ProblemKind::kTsp, Precision::kTf32, 3}, false).together);
  CHECK(!tiling(100, {2400, 1, 1, true}).keeps_references);
}

}  // namespace pointsman::cuda
