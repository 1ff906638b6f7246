// SPDX-License-Identifier: Apache-2.0
// The gradients of all steps of all rows at once, against the CPU's step by step and against the network in
// double.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/knapsack.h"
#include "kernels/common/tsp.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

// ---------------------------------------------------------------------------- what goes in

struct Shape {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 1, glimpses = 1;
  bool centre = true, stop_at_first_misfit = false;
  std::vector<int> rows = {1};      // of each sequence
  std::vector<int> set_ends = {1};  // sequences below set_ends[s] read set s at most
  float references = 1.0f, query = 1.0f;
};

// Random inputs; everything in natural order and in the clear.
struct Inputs {
  Shape shape;
  Projections projections;
  int sequences, row_count;
  std::vector<float> projected;             // [sequences][count][n][H]
  std::vector<float> queries;               // [rows][n][H]
  std::vector<float> weights;               // [rows]
  std::vector<float> glimpse_v, pointer_v;  // [sets][H]
  std::vector<double> item_weights, capacities;
  std::vector<int32_t> orders, row_steps, first_row{0}, sequence_of;

  // batch: the KnapSack's instances; null: random ones.
  explicit Inputs(const Shape& s, uint32_t seed = 1, const RandomBatch* batch = nullptr)
      : shape(s),
        projections(projections_of(s.glimpses)),
        sequences(static_cast<int>(s.rows.size())),
        row_count(std::accumulate(s.rows.begin(), s.rows.end(), 0)) {
    const size_t slice = static_cast<size_t>(s.n) * kHidden;
    projected = random_floats(sequences * projections.count * slice, seed, s.references);
    // A glimpse's readout is the next query: its values have to lie in the queries' range.
    for (int i = 0; i < sequences * projections.count; ++i) {
      if (i % projections.count < 2) continue;
      for (size_t k = i * slice; k < (i + 1) * slice; ++k) projected[k] *= s.query / s.references;
    }
    queries = random_floats(row_count * slice, seed + 1, s.query);
    weights = random_floats(row_count, seed + 2, 0.5f);
    glimpse_v = random_floats(s.set_ends.size() * kHidden, seed + 3, 0.2f);
    pointer_v = random_floats(s.set_ends.size() * kHidden, seed + 4, 0.2f);
    std::mt19937 random(seed + 5);
    if (batch != nullptr) {
      item_weights = batch->weights;
      capacities = batch->capacities;
    } else if (s.problem == ProblemKind::kKnapsack) {
      for (int i = 0; i < sequences * s.n; ++i) item_weights.push_back(random() * 0x1p-32);
      capacities.assign(sequences, std::max(1.0, s.n / 6.0));
    }
    orders.assign(static_cast<size_t>(row_count) * s.n, -1);
    for (int sequence = 0; sequence < sequences; ++sequence) {
      for (int r = 0; r < s.rows[sequence]; ++r) choose(sequence, random);
      first_row.push_back(static_cast<int32_t>(sequence_of.size()));
    }
  }

  int set_of(int sequence) const {
    int set = 0;
    while (sequence >= shape.set_ends[set]) ++set;
    return set;
  }

  // Rows of each set; sets without rows have no range.
  std::vector<SetRange> ranges() const {
    std::vector<SetRange> result;
    for (int row = 0; row < row_count; ++row) {
      const int set = set_of(sequence_of[row]);
      if (result.empty() || result.back().set != set) result.push_back({set, row, 0});
      ++result.back().rows;
    }
    return result;
  }

  template <typename Visit>  // visit(list, count, step, position)
  void replay(int row, const Visit& visit) const {
    with_rules(shape.problem, [&]<typename Rules>() {
      replay_under(Rules::make(rule_inputs(sequence_of[row])), row, visit);
    });
  }

 private:
  RuleInputs rule_inputs(int sequence) const {
    if (capacities.empty()) return {};
    return {item_weights.data() + sequence * shape.n, capacities[sequence], shape.stop_at_first_misfit};
  }

  void choose(int sequence, std::mt19937& random) {
    const int row = static_cast<int>(sequence_of.size());
    sequence_of.push_back(sequence);
    with_rules(shape.problem,
               [&]<typename Rules>() { choose_under(Rules::make(rule_inputs(sequence)), row, random); });
  }

  template <typename Rules>
  void choose_under(Rules rules, int row, std::mt19937& random) {
    std::vector<int32_t> list(shape.n);
    int count = initial_remaining(rules, list.data(), shape.n), steps = 0;
    row_steps.push_back(0);
    while (count > 0) {
      const int position = static_cast<int>(random() % count), item = list[position];
      if (rules.ends(item)) break;
      orders[static_cast<size_t>(row) * shape.n + steps++] = item;
      row_steps.back() += count > 1;
      rules.step(item);
      count = remove_and_filter(rules, list.data(), count, position);
    }
  }

  template <typename Rules, typename Visit>
  void replay_under(Rules rules, int row, const Visit& visit) const {
    std::vector<int32_t> list(shape.n);
    int count = initial_remaining(rules, list.data(), shape.n);
    for (int step = 0; step < row_steps[row]; ++step) {
      const int32_t item = orders[static_cast<size_t>(row) * shape.n + step];
      const int position =
          static_cast<int>(std::find(list.begin(), list.begin() + count, item) - list.begin());
      REQUIRE(position < count);
      visit(list.data(), count, step, position);
      rules.step(item);
      count = remove_and_filter(rules, list.data(), count, position);
    }
  }
};

// exp(2a) where the sequence allows it, and its bounds.
struct PreparedReferences {
  std::vector<float> values, bounds;

  explicit PreparedReferences(const Inputs& in) : values(in.projected), bounds(2 * in.sequences, 0.0f) {
    const size_t slice = static_cast<size_t>(in.shape.n) * kHidden;
    const int size = static_cast<int>(slice);
    for (int s = 0; s < in.sequences; ++s) {
      float* of_sequence = values.data() + s * in.projections.count * slice;
      if (in.projections.glimpse >= 0) bounds[2 * s] = cpu::exp_references(of_sequence, size);
      bounds[2 * s + 1] = cpu::exp_references(of_sequence + in.projections.pointer * slice, size);
    }
  }

  std::vector<float> in_device_order() const {
    std::vector<float> result(values.size());
    for (size_t row = 0; row < values.size(); row += kHidden) {
      for (int d = 0; d < kHidden; ++d) result[row + reference_index(d)] = values[row + d];
    }
    return result;
  }
};

// ---------------------------------------------------------------------------- what comes out

struct Gradients {
  std::vector<float> dqueries, dreferences, dv;
};

Gradients on_device(const Inputs& in) {
  const Shape& s = in.shape;
  const PreparedReferences prepared(in);
  const DeviceArray<float> references(prepared.in_device_order()), bounds(prepared.bounds),
      queries(in.queries);
  const DeviceArray<float> weights(in.weights), glimpse_v(in.glimpse_v), pointer_v(in.pointer_v);
  const DeviceArray<int32_t> orders(in.orders), row_steps(in.row_steps), first_row(in.first_row),
      sequence_of(in.sequence_of);
  const DeviceArray<double> item_weights(in.item_weights), capacities(in.capacities);
  const std::vector<SetRange> ranges = in.ranges();
  DeviceArray<SetRange> device_ranges(ranges);
  const size_t states = s.n + 1;
  DeviceArray<unsigned char> scratch(pointer_gradient_scratch(in.row_count, in.sequences, s.n, s.glimpses));
  DeviceArray<float> dqueries(in.row_count * states * kHidden);
  DeviceArray<float> dreferences(in.sequences * states * in.projections.count * kHidden);
  DeviceArray<float> dv(static_cast<size_t>(in.sequences) * 2 * kHidden);
  PointerGradientArgs args{};
  args.problem = s.problem;
  args.attention = {{glimpse_v.data(), kHidden}, {pointer_v.data(), kHidden}, s.glimpses, s.centre, 10.0f};
  args.projections = in.projections;
  args.references = references.data();
  args.bounds = bounds.data();
  args.queries = queries.data();
  args.orders = orders.data();
  args.row_steps = row_steps.data();
  args.weights = weights.data();
  args.rules = {item_weights.data(), capacities.data(), s.stop_at_first_misfit};
  args.first_row = first_row.data();
  args.sequence_of = sequence_of.data();
  args.ranges = {device_ranges.data(), static_cast<int>(ranges.size()), in.row_count};
  args.sequences = in.sequences;
  args.n = s.n;
  args.scratch = scratch.data();
  args.dqueries = dqueries.data();
  args.dreferences = dreferences.data();
  args.dv = dv.data();
  pointer_gradient(args, nullptr);
  return {dqueries.download(), dreferences.download(), dv.download()};
}

// The CPU's sums of one sequence.
struct CpuSums {
  std::vector<float> projected, v;

  CpuSums(const Inputs& in)
      : projected(in.projections.count * static_cast<size_t>(in.shape.n) * kHidden), v(2 * kHidden) {}
};

Gradients on_cpu(const Inputs& in) {
  const Shape& s = in.shape;
  const PreparedReferences prepared(in);
  const size_t slice = static_cast<size_t>(s.n) * kHidden, states = s.n + 1,
               width = in.projections.count * kHidden;
  Gradients out{std::vector<float>(in.row_count * states * kHidden),
                std::vector<float>(in.sequences * states * width),
                std::vector<float>(in.sequences * 2 * kHidden)};
  std::vector<float> scratch(cpu::gradient_scratch(s.n)), logits(cpu::padded(s.n));
  std::vector<float> activations(cpu::attention_activations(s.n, s.glimpses));
  cpu::StepStatistics statistics;
  for (int q = 0; q < in.sequences; ++q) {
    const float* of_sequence = prepared.values.data() + q * in.projections.count * slice;
    const auto at = [&](auto* base, int i) { return i < 0 ? nullptr : base + i * slice; };
    const cpu::References references{at(of_sequence, in.projections.glimpse),
                                     at(of_sequence, in.projections.pointer),
                                     at(of_sequence, in.projections.values),
                                     at(of_sequence, in.projections.requeries),
                                     prepared.bounds[2 * q],
                                     prepared.bounds[2 * q + 1]};
    const float* glimpse_v = in.glimpse_v.data() + in.set_of(q) * kHidden;
    const float* pointer_v = in.pointer_v.data() + in.set_of(q) * kHidden;
    const cpu::AttentionWeights weights{glimpse_v, pointer_v, s.glimpses, s.centre, 10.0f};
    CpuSums sums(in);
    float* d = sums.projected.data();
    cpu::ReferenceGradients gradients{at(d, in.projections.glimpse),   at(d, in.projections.pointer),
                                      at(d, in.projections.values),    at(d, in.projections.requeries),
                                      out.dv.data() + 2 * q * kHidden, out.dv.data() + (2 * q + 1) * kHidden};
    for (int row = in.first_row[q]; row < in.first_row[q + 1]; ++row) {
      in.replay(row, [&](const int32_t* list, int count, int step, int position) {
        const float* query = in.queries.data() + row * slice + step * kHidden;
        cpu::pointer_logits({&references, &weights, query, list, count, nullptr, logits.data(),
                             activations.data(), &statistics});
        cpu::pointer_gradient({&references, &weights, query, list, count, nullptr, activations.data(),
                               position, in.weights[row], &gradients,
                               out.dqueries.data() + (row * states + step + 1) * kHidden, nullptr,
                               scratch.data()});
      });
    }
    for (int i = 0; i < s.n; ++i) {
      for (int k = 0; k < in.projections.count; ++k) {
        const float* v = k == in.projections.glimpse   ? glimpse_v
                         : k == in.projections.pointer ? pointer_v
                                                       : nullptr;
        float* to = out.dreferences.data() + (q * states + i + 1) * width + k * kHidden;
        for (int e = 0; e < kHidden; ++e)
          to[e] = (v == nullptr ? 1.0f : v[e]) * d[k * slice + i * kHidden + e];
      }
    }
  }
  return out;
}

double largest(const std::vector<float>& x) {
  double most = 0.0;
  for (float y : x) {
    if (std::isnan(y)) return y;
    most = std::max(most, std::abs(double{y}));
  }
  return most;
}

// Largest difference over the largest magnitude expected; NaN where one is NaN, 0 where both are all zero.
double relative_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0.0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const double off = std::abs(double{found[k]} - double{expected[k]});
    if (std::isnan(off)) return off;
    worst = worse(worst, off);
  }
  return worst == 0.0 ? 0.0 : worst / largest(expected);
}

// The part of every `period` floats that lies in [first, first + size).
std::vector<float> part(const std::vector<float>& x, size_t period, size_t first, size_t size) {
  std::vector<float> result;
  for (size_t k = 0; k < x.size(); k += period) {
    result.insert(result.end(), x.begin() + k + first, x.begin() + k + first + size);
  }
  return result;
}

// Of the largest element. CPU and device write the forward alike and differ by the rounding of sums over
// items and of reciprocals: some 1e-6 here. Of the network in double the states, projected and queries are
// rounded too: 1e-5.
constexpr double kCpuBar = 1e-5, kDoubleBar = 1e-4;

void check_close(const Inputs& in, const Gradients& found, const Gradients& expected) {
  CHECK(relative_difference(found.dqueries, expected.dqueries) <= kCpuBar);
  const size_t width = in.projections.count * kHidden;
  for (int slice = 0; slice < in.projections.count; ++slice) {
    INFO("projection " << slice);
    const auto of_slice = [&](const Gradients& g) {
      return part(g.dreferences, width, slice * kHidden, kHidden);
    };
    CHECK(relative_difference(of_slice(found), of_slice(expected)) <= kCpuBar);
  }
  for (size_t kind : {0, 1}) {
    INFO((kind == 0 ? "glimpse v" : "pointer v"));
    const auto of_kind = [&](const Gradients& g) { return part(g.dv, 2 * kHidden, kind * kHidden, kHidden); };
    CHECK(relative_difference(of_kind(found), of_kind(expected)) <= kCpuBar);
  }
}

std::string describe(const Shape& s) {
  return std::string(s.problem == ProblemKind::kTsp ? "TSP" : "KnapSack") + ", n = " + std::to_string(s.n) +
         ", " + std::to_string(s.glimpses) + " glimpses" + (s.centre ? ", centred" : "") +
         (s.stop_at_first_misfit ? ", stops at the first misfit" : "");
}

void check_shape(const Shape& shape) {
  INFO(describe(shape));
  const Inputs in(shape, 7 * shape.n + 1);
  check_close(in, on_device(in), on_cpu(in));
}

TEST_CASE("pointer_gradient: TSP of every size, glimpses, centring") {
  for (int n : {1, 2, 3, 16, 17, 31, 33}) {
    for (int glimpses : {0, 1, 2}) {
      for (bool centre : {true, false}) {
        check_shape({ProblemKind::kTsp, n, glimpses, centre, false, {1, 2}, {2}});
      }
    }
  }
  check_shape({ProblemKind::kTsp, 100, 1, true, false, {1}, {1}});
  check_shape({ProblemKind::kTsp, 9, 4, true, false, {2}, {1}});
}

TEST_CASE("pointer_gradient: KnapSack, masked and to the first misfit") {
  for (int n : {1, 2, 3, 16, 17, 33, 100}) {
    for (int glimpses : {0, 1, 2}) {
      for (bool stop : {false, true}) {
        check_shape({ProblemKind::kKnapsack, n, glimpses, n % 2 == 0, stop, {2, 1}, {2}});
      }
    }
  }
}

TEST_CASE("pointer_gradient: many rows a sequence, none of one, several parameter sets") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    check_shape({problem, 11, 1, true, false, {3, 0, 5, 1, 0, 2}, {1, 3, 6}});
    check_shape({problem, 6, 2, true, false, {0, 1, 1, 0}, {1, 2, 3, 4}});
  }
}

TEST_CASE("pointer_gradient: references and queries beyond the factored tanh") {
  const auto shape = [](float references, float query) {
    Shape s{ProblemKind::kTsp, 17, 1, true, false, {1, 2}, {2}};
    s.references = references;
    s.query = query;
    return s;
  };
  for (const auto& [references, query] :
       {std::pair{15.0f, 3.0f}, {30.0f, 1.0f}, {3.0f, 30.0f}, {30.0f, 30.0f}}) {
    INFO("references " << references << ", queries " << query);
    check_shape(shape(references, query));
  }
}

TEST_CASE("pointer_gradient: rows without a step to choose in have no gradient") {
  Inputs in({ProblemKind::kKnapsack, 13, 1, true, false, {3, 2}, {2}});
  for (int row : {1, 3, 4}) {  // all of the second sequence
    in.row_steps[row] = 0;
    std::fill_n(in.orders.begin() + row * 13, 13, -1);
  }
  const Gradients found = on_device(in);
  check_close(in, found, on_cpu(in));
  for (int row : {1, 3, 4}) {
    for (int k = 0; k < 14 * kHidden; ++k) CHECK(found.dqueries[row * 14 * kHidden + k] == 0.0f);
  }
  CHECK(largest(std::vector<float>(found.dv.begin() + 2 * kHidden, found.dv.end())) == 0.0);
}

TEST_CASE("pointer_gradient: lists of a thousand items, of orders whose rest is not read") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    Inputs in({problem, 1000, 1, true, false, {1}, {1}});
    in.row_steps[0] = 2;
    std::fill(in.orders.begin() + 2, in.orders.end(), in.orders[0]);
    check_close(in, on_device(in), on_cpu(in));
  }
}

TEST_CASE("pointer_gradient: lists of several rounds of a half-warp", "[large]") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    const Inputs in({problem, 35, 1, true, false, {5, 2}, {1, 2}});
    check_close(in, on_device(in), on_cpu(in));
  }
}

TEST_CASE("pointer_gradient: slot 0 is zero, and the bits are the same again", "[race]") {
  const Inputs in({ProblemKind::kTsp, 5, 2, true, false, {2, 1}, {1, 2}});
  const Gradients found = on_device(in), again = on_device(in);
  CHECK(same_bytes(found.dqueries, again.dqueries));
  CHECK(same_bytes(found.dreferences, again.dreferences));
  CHECK(same_bytes(found.dv, again.dv));
  const size_t width = in.projections.count * kHidden;
  CHECK(largest(part(found.dqueries, 6 * kHidden, 0, kHidden)) == 0.0);
  CHECK(largest(part(found.dreferences, 6 * width, 0, width)) == 0.0);
}

// ---------------------------------------------------------------------------- against the network in double

using reference::Vector;

Vector times(const double* matrix, const Vector& x) {
  Vector y(kHidden, 0.0);
  for (int i = 0; i < kHidden; ++i) {
    for (size_t k = 0; k < x.size(); ++k) y[i] += matrix[i * x.size() + k] * x[k];
  }
  return y;
}

// The decoder's hidden states along an order.
std::vector<Vector> decoder_states(const reference::Network& network, const reference::Sequence& sequence,
                                   const reference::Encoding& encoding, const int32_t* order, int steps) {
  const double* start = network.tensor("actor.decoder.start");
  Vector input(start, start + kHidden), hidden = encoding.steps.back().hidden,
                                        cell = encoding.steps.back().cell;
  std::vector<Vector> states;
  for (int step = 0; step < steps; ++step) {
    const reference::LstmStep next = reference::lstm_step(
        network.tensor("actor.decoder.weight_ih"), network.tensor("actor.decoder.weight_hh"),
        network.tensor("actor.decoder.bias"), input, hidden, cell);
    hidden = next.hidden, cell = next.cell;
    states.push_back(hidden);
    const double* x = sequence.features.data() + 2 * order[step];
    input = times(network.tensor("actor.embedding.weight"), {x[0], x[1]});
  }
  return states;
}

// sum += y x^T
void add_outer(const float* y, const Vector& x, std::vector<float>& sum) {
  for (int i = 0; i < kHidden; ++i) {
    for (int k = 0; k < kHidden; ++k) sum[i * kHidden + k] += y[i] * static_cast<float>(x[k]);
  }
}

void store(const double* x, float* to) {
  for (int d = 0; d < kHidden; ++d) to[d] = static_cast<float>(x[d]);
}

// Puts one network and its states in the place of the random numbers; checks its tensors' gradients.
void check_network(ProblemKind problem, int n, int glimpses, bool centre, float scale, double bar) {
  const RandomBatch batch(problem, n, 1, 5);
  const ModelConfig config = config_for(problem, n, glimpses, centre);
  const reference::Network network(config, scaled_parameters(config, scale));
  const reference::Sequence sequence = batch.sequence(0);
  const reference::Encoding encoding = reference::encode(network, "actor", sequence);
  Inputs in({problem, n, glimpses, centre, false, {3}, {1}}, 1, &batch);
  const char* matrices[] = {"actor.glimpse.w_ref", "actor.pointer.w_ref", "actor.pointer.w_q",
                            "actor.glimpse.w_q"};
  const int first_matrix = glimpses == 0 ? 1 : 0;
  for (int slice = 0; slice < in.projections.count; ++slice) {
    for (int i = 0; i < n; ++i) {
      store(times(network.tensor(matrices[first_matrix + slice]), encoding.references[i]).data(),
            in.projected.data() + (slice * n + i) * kHidden);
    }
  }
  const char* query_matrix = glimpses == 0 ? "actor.pointer.w_q" : "actor.glimpse.w_q";
  std::vector<std::vector<Vector>> states;
  Vector expected(network.parameters.size(), 0.0);
  for (int row = 0; row < in.row_count; ++row) {
    const int32_t* order = in.orders.data() + row * n;
    states.push_back(decoder_states(network, sequence, encoding, order, in.row_steps[row]));
    for (int step = 0; step < in.row_steps[row]; ++step) {
      store(times(network.tensor(query_matrix), states[row][step]).data(),
            in.queries.data() + (row * n + step) * kHidden);
    }
    const std::vector<int> items(order, order + n);
    reference::add_log_prob_gradient(network, sequence, items, in.weights[row], {}, expected);
  }
  if (glimpses > 0) store(network.tensor("actor.glimpse.v"), in.glimpse_v.data());
  store(network.tensor("actor.pointer.v"), in.pointer_v.data());

  const Gradients found = on_device(in);
  std::vector<std::vector<float>> sums(in.projections.count, std::vector<float>(kHidden * kHidden));
  std::vector<float> query_sum(kHidden * kHidden);
  for (int slice = 0; slice < in.projections.count; ++slice) {
    for (int i = 0; i < n; ++i) {
      add_outer(found.dreferences.data() + ((i + 1) * in.projections.count + slice) * kHidden,
                encoding.references[i], sums[slice]);
    }
  }
  for (int row = 0; row < in.row_count; ++row) {
    for (int step = 0; step < in.row_steps[row]; ++step) {
      add_outer(found.dqueries.data() + (row * (n + 1) + step + 1) * kHidden, states[row][step], query_sum);
    }
  }
  const auto check_tensor = [&](const char* name, const std::vector<float>& sum) {
    INFO(name);
    const double* exact = expected.data() + network.offset(name);
    CHECK(relative_difference(sum, std::vector<float>(exact, exact + sum.size())) <= bar);
  };
  const auto v_of = [&](int kind) {
    return std::vector<float>(found.dv.begin() + kind * kHidden, found.dv.begin() + (kind + 1) * kHidden);
  };
  check_tensor("actor.pointer.v", v_of(1));
  check_tensor("actor.pointer.w_ref", sums[in.projections.pointer]);
  if (glimpses == 0) {
    check_tensor("actor.pointer.w_q", query_sum);
    return;
  }
  check_tensor("actor.glimpse.v", v_of(0));
  check_tensor("actor.glimpse.w_ref", sums[in.projections.glimpse]);
  check_tensor("actor.pointer.w_q", sums[in.projections.values]);
  if (glimpses > 1) {
    for (size_t k = 0; k < query_sum.size(); ++k) query_sum[k] += sums[in.projections.requeries][k];
  }
  check_tensor("actor.glimpse.w_q", query_sum);
}

TEST_CASE("pointer_gradient: the attention's tensors of a network in double") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (int glimpses : {0, 1, 2}) {
      for (bool centre : {true, false}) {
        INFO((problem == ProblemKind::kTsp ? "TSP, " : "KnapSack, ")
             << glimpses << " glimpses" << (centre ? ", centred" : ""));
        check_network(problem, 9, glimpses, centre, 4.0f, kDoubleBar);
      }
    }
  }
}

// All rows of references are nearly alike, and every gradient is what is left after du cancels over them: the
// CPU's are within 4e-4, sums of p or du that miss their total by a rounding are not within the bar.
TEST_CASE("pointer_gradient: the tensors of a fresh network") {
  for (int glimpses : {0, 1, 2}) check_network(ProblemKind::kTsp, 20, glimpses, true, 1.0f, 5e-4);
}

}  // namespace
}  // namespace pointsman::cuda
