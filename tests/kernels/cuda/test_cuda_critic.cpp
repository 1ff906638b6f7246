// SPDX-License-Identifier: Apache-2.0
// The critic after its encoder: the CPU backend's values to the bit, its gradients, and those of the network
// in double.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

constexpr int kSteps = 3;
constexpr int64_t kSquare = int64_t{kHidden} * kHidden;

using reference::Vector;

// Parameters of some sets, one after the other, and the sequences that read them, `counts` of each.
struct Problem {
  ModelConfig config;
  ParameterLayout layout;
  RandomBatch batch;
  std::vector<float> parameters;
  std::vector<SetRange> ranges;
  std::vector<float> targets;
  float weight = 0.3f;

  Problem(int n, const std::vector<int>& counts, float scale)
      : config(config_for(ProblemKind::kTsp, n)), layout(config), batch(ProblemKind::kTsp, n, 0, 1) {
    int rows = 0;
    for (size_t set = 0; set < counts.size(); ++set) {
      const std::vector<float> of_set = scaled_parameters(config, scale, set + 1);
      parameters.insert(parameters.end(), of_set.begin(), of_set.end());
      if (counts[set] > 0) ranges.push_back({static_cast<int32_t>(set), rows, counts[set]});
      rows += counts[set];
    }
    batch = RandomBatch(ProblemKind::kTsp, n, rows, n + 10);
    targets = random_floats(rows, 3, 2.0f);
  }

  int sets() const { return static_cast<int>(parameters.size() / layout.size); }
  std::vector<float> of_set(int set) const {
    return {parameters.begin() + set * layout.size, parameters.begin() + (set + 1) * layout.size};
  }
  // In every set.
  void scale_tensor(size_t offset, size_t size, float factor) {
    for (int set = 0; set < sets(); ++set) {
      for (size_t k = 0; k < size; ++k) parameters[set * layout.size + offset + k] *= factor;
    }
  }
};

// Everything of one call. The encoder is the engine's own, so that its bits are the CPU's.
struct Device {
  const Problem& p;
  const int n, rows, sets, range_count;
  DeviceArray<float> parameters{p.parameters}, features{p.batch.features}, targets{p.targets};
  DeviceArray<SetRange> ranges{p.ranges};
  DeviceArray<float> recurrent = of_sets(kGates * kHidden), fold = of_sets(2 * kGates),
                     bias = of_sets(kGates);
  DeviceArray<float> reference_t = of_sets(kSquare), query_t = of_sets(kSquare), fc1_t = of_sets(kSquare);
  DeviceArray<float> h = of_rows((n + 1) * kHidden), c = of_rows((n + 1) * kHidden),
                     cells = of_rows(n * kLstmCell);
  DeviceArray<float> states = of_rows((kSteps + 1) * kHidden), queries = of_rows(kSteps * kHidden);
  DeviceArray<float> references = of_rows(n * kHidden), bounds = of_rows(2), hidden = of_rows(kHidden);
  DeviceArray<float> values = of_rows(1);
  DeviceArray<float> dvalues = of_rows(1), dfc2 = of_rows(kHidden), dhidden = of_rows(kHidden);
  DeviceArray<float> dqueries = of_rows(kSteps * kHidden), dv = of_rows(kHidden);
  DeviceArray<float> dreferences = of_rows((n + 1) * kHidden), dh = of_rows((n + 1) * kHidden);
  DeviceArray<float> dgates = of_rows((n + 1) * kGates);
  CriticArgs args{};

  explicit Device(const Problem& problem)
      : p(problem),
        n(problem.batch.n),
        rows(problem.batch.count),
        sets(problem.sets()),
        range_count(static_cast<int>(problem.ranges.size())) {
    encode();
    forward();
  }

  DeviceArray<float> of_sets(int64_t size) const { return DeviceArray<float>(sets * size); }
  DeviceArray<float> of_rows(int64_t size) const { return DeviceArray<float>(rows * size); }
  SetArray tensor(size_t offset) const {
    return {parameters.data() + offset, static_cast<int64_t>(p.layout.size)};
  }

  void encode() {
    const auto& critic = p.layout.critic;
    prepare_lstm(tensor(0), critic.encoder,
                 {{recurrent.data(), kGates * kHidden}, {fold.data(), 2 * kGates}, {bias.data(), kGates}, {}},
                 sets, nullptr);
    lstm_forward({{recurrent.data(), kGates * kHidden},
                  {fold.data(), 2 * kGates},
                  {bias.data(), kGates},
                  features.data(),
                  h.data(),
                  nullptr,
                  c.data(),
                  cells.data(),
                  {ranges.data(), range_count, rows},
                  n},
                 nullptr);
  }

  void forward() {
    const auto& critic = p.layout.critic;
    const auto transpose = [&](size_t offset, DeviceArray<float>& to) {
      prepare_square(tensor(0), static_cast<int64_t>(offset), {to.data(), kSquare}, 0, kHidden, sets,
                     nullptr);
    };
    transpose(critic.process.w_ref, reference_t);
    transpose(critic.process.w_q, query_t);
    transpose(critic.fc1_weight, fc1_t);
    args = {{reference_t.data(), kSquare},
            {query_t.data(), kSquare},
            tensor(critic.process.v),
            {fc1_t.data(), kSquare},
            tensor(critic.fc1_bias),
            tensor(critic.fc2_weight),
            tensor(critic.fc2_bias),
            h.data(),
            states.data(),
            queries.data(),
            references.data(),
            bounds.data(),
            hidden.data(),
            values.data(),
            {ranges.data(), range_count, rows},
            n};
    critic_forward(args, nullptr);
  }

  void gradient() {
    const auto& critic = p.layout.critic;
    critic_gradient({args, tensor(critic.process.w_q), tensor(critic.fc1_weight), targets.data(), p.weight,
                     dvalues.data(), dfc2.data(), dhidden.data(), dqueries.data(), dv.data(),
                     dreferences.data(), dh.data()},
                    nullptr);
  }

  // W_ref's share added to dh, then back through the encoder.
  void encoder_gradient() {
    std::vector<float> dh_all = dh.download();
    const std::vector<float> d = dreferences.download();
    for (const SetRange& range : p.ranges) {
      const float* w_ref = p.parameters.data() + range.set * p.layout.size + p.layout.critic.process.w_ref;
      const size_t first = static_cast<size_t>(range.first_row) * (n + 1), end = first + range.rows * (n + 1);
      for (size_t row = first; row < end; ++row) {
        for (int k = 0; k < kHidden; ++k) {
          double sum = 0.0;
          for (int j = 0; j < kHidden; ++j) sum += double{w_ref[j * kHidden + k]} * d[row * kHidden + j];
          dh_all[row * kHidden + k] += static_cast<float>(sum);
        }
      }
    }
    const DeviceArray<float> dh_device(dh_all);
    LstmBackwardArgs back{};
    back.weight_hh = tensor(p.layout.critic.encoder.weight_hh);
    back.cells = cells.data();
    back.c = c.data();
    back.dh = dh_device.data();
    back.dgates = dgates.data();
    back.ranges = {ranges.data(), range_count, rows};
    back.steps = n;
    lstm_backward(back, nullptr);
    dgates.download();  // dh_device lives until then
  }
};

// ---------------------------------------------------------------------------- forward

// The CPU's values of each set's sequences, one set after the other; with `gradient` also its gradient.
std::vector<float> cpu_values(const Problem& p, std::vector<std::vector<float>>* gradients = nullptr) {
  std::vector<float> values(p.batch.count);
  for (const SetRange& range : p.ranges) {
    const auto backend = make_backend({"cpu", 1});
    backend->configure(p.config, 1);
    backend->load_parameters(0, p.of_set(range.set));
    const SequenceBatch batch = p.batch.batch(range.first_row, range.rows);
    const std::span<float> out(values.data() + range.first_row, range.rows);
    const std::span<const float> targets(p.targets.data() + range.first_row, range.rows);
    backend->critic_gradient(batch, targets, p.weight, out);
    if (gradients == nullptr) continue;
    gradients->emplace_back(p.layout.size);
    backend->read_gradient(0, gradients->back());
  }
  return values;
}

void check_values(const Problem& p) {
  const Device device(p);
  const std::vector<float> found = device.values.download(), expected = cpu_values(p);
  if (cpu_has_fma()) CHECK(same_bits(found, expected));
  for (const SetRange& range : p.ranges) {
    const reference::Network network(p.config, p.of_set(range.set));
    const double exact = reference::critic_value(network, p.batch.sequence(range.first_row));
    CHECK(found[range.first_row] == Approx(exact).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("critic_forward: the CPU's values to the bit, of every size and several sets") {
  for (int n : {1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 100}) {
    INFO("n = " << n);
    check_values(Problem(n, {2}, 4.0f));
  }
  check_values(Problem(6, {1, 3, 0, 2}, 1.0f));
}

// Of the two: whether references, or only the queries, are beyond what is kept as a factor.
Problem beyond_the_factors(bool references, int n) {
  Problem p(n, {2}, 4.0f);
  const auto& process = p.layout.critic.process;
  p.scale_tensor(references ? process.w_ref : process.w_q, kSquare, 40.0f);
  return p;
}

TEST_CASE("critic_forward: references or queries beyond the factored tanh") {
  for (bool references : {true, false}) {
    const Problem p = beyond_the_factors(references, 13);
    const Device device(p);
    const std::vector<float> bounds = device.bounds.download(), queries = device.queries.download();
    const bool some_query =
        std::any_of(queries.begin(), queries.end(), [](float q) { return std::abs(q) > 20.0f; });
    CHECK((bounds[1] > kFactoredLimit) == references);
    CHECK(some_query == !references);
    check_values(p);
  }
}

// ---------------------------------------------------------------------------- gradient

using Tensor = std::vector<double>;

// sum += y x^T
void add_outer(const float* y, int rows, const float* x, Tensor& sum) {
  sum.resize(static_cast<size_t>(rows) * kHidden);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < kHidden; ++k) sum[i * kHidden + k] += double{y[i]} * x[k];
  }
}

void add(const float* x, int size, Tensor& sum) {
  sum.resize(size);
  for (int k = 0; k < size; ++k) sum[k] += x[k];
}

struct NamedTensor {
  const char* name;
  Tensor sum;
};

// The tensors' gradients that follow from what the kernel gives for each sequence of a range.
std::vector<NamedTensor> tensors_of(const Device& device, const SetRange& range) {
  const int n = device.n;
  const std::vector<float> h = device.h.download(), states = device.states.download(),
                           dvalues = device.dvalues.download(), dfc2 = device.dfc2.download(),
                           dhidden = device.dhidden.download(), dqueries = device.dqueries.download(),
                           dv = device.dv.download(), dreferences = device.dreferences.download(),
                           dgates = device.dgates.download();
  Tensor fc2_bias, fc2_weight, fc1_bias, fc1_weight, w_q, v, w_ref, bias, weight_hh;
  for (size_t s = range.first_row; s < static_cast<size_t>(range.first_row + range.rows); ++s) {
    const float* state = states.data() + s * (kSteps + 1) * kHidden;
    add(&dvalues[s], 1, fc2_bias);
    add(&dfc2[s * kHidden], kHidden, fc2_weight);
    add(&dhidden[s * kHidden], kHidden, fc1_bias);
    add_outer(&dhidden[s * kHidden], kHidden, state + kSteps * kHidden, fc1_weight);
    for (int step = 0; step < kSteps; ++step) {
      add_outer(&dqueries[(s * kSteps + step) * kHidden], kHidden, state + step * kHidden, w_q);
    }
    add(&dv[s * kHidden], kHidden, v);
    for (size_t slot = s * (n + 1); slot < (s + 1) * (n + 1); ++slot) {
      add_outer(&dreferences[slot * kHidden], kHidden, &h[slot * kHidden], w_ref);
      add(&dgates[slot * kGates], kGates, bias);
      add_outer(&dgates[slot * kGates], kGates, &h[slot * kHidden], weight_hh);
    }
  }
  return {{"critic.head.fc2.bias", fc2_bias},
          {"critic.head.fc2.weight", fc2_weight},
          {"critic.head.fc1.bias", fc1_bias},
          {"critic.head.fc1.weight", fc1_weight},
          {"critic.process.w_q", w_q},
          {"critic.process.v", v},
          {"critic.process.w_ref", w_ref},
          {"critic.encoder.bias", bias},
          {"critic.encoder.weight_hh", weight_hh}};
}

// Largest difference over the largest magnitude expected; NaN where one is NaN.
template <typename Number>
double relative_difference(const Tensor& found, const Number* expected) {
  double worst = 0.0, most = 0.0;
  for (size_t k = 0; k < found.size(); ++k) {
    const double exact = expected[k], off = std::abs(found[k] - exact);
    if (std::isnan(off)) return off;
    worst = worse(worst, off);
    most = std::max(most, std::abs(exact));
  }
  return worst == 0.0 ? 0.0 : worst / most;
}

// Within the rounding of sums of the CPU's gradients, and within the engine's bar of the double ones.
void check_gradients(const Problem& p) {
  Device device(p);
  device.gradient();
  device.encoder_gradient();
  std::vector<std::vector<float>> cpu_gradients;
  cpu_values(p, &cpu_gradients);
  for (size_t r = 0; r < p.ranges.size(); ++r) {
    const SetRange& range = p.ranges[r];
    const reference::Network network(p.config, p.of_set(range.set));
    Vector exact(p.layout.size, 0.0);
    for (int row = range.first_row; row < range.first_row + range.rows; ++row) {
      reference::add_critic_gradient(network, p.batch.sequence(row), p.targets[row], p.weight, exact);
    }
    for (const NamedTensor& tensor : tensors_of(device, range)) {
      INFO(tensor.name);
      const size_t offset = network.offset(tensor.name);
      CHECK(relative_difference(tensor.sum, cpu_gradients[r].data() + offset) <= 5e-5);
      CHECK(relative_difference(tensor.sum, exact.data() + offset) <= 1e-4);
    }
  }
}

TEST_CASE("critic_gradient: every tensor, of every size and several sets") {
  for (int n : {1, 2, 3, 7, 8, 16, 17, 31, 33, 100}) {
    INFO("n = " << n);
    check_gradients(Problem(n, {n == 100 ? 1 : 2}, 4.0f));
  }
  check_gradients(Problem(6, {1, 3, 0, 2}, 4.0f));
}

TEST_CASE("critic_gradient: references or queries beyond the factored tanh") {
  for (bool references : {true, false}) check_gradients(beyond_the_factors(references, 13));
}

TEST_CASE("critic_gradient: lists of several rounds of a half-warp", "[large]") {
  check_gradients(Problem(35, {2, 1}, 4.0f));
}

TEST_CASE("critic_gradient: slot 0 is zero, and the bits are the same again", "[race]") {
  const Problem p(5, {1, 1}, 4.0f);
  Device device(p), again(p);
  device.gradient();
  again.gradient();
  const std::vector<float> dreferences = device.dreferences.download(), dh = device.dh.download();
  CHECK(same_bits(dreferences, again.dreferences.download()));
  CHECK(same_bits(dh, again.dh.download()));
  CHECK(same_bits(device.dqueries.download(), again.dqueries.download()));
  CHECK(same_bits(device.dv.download(), again.dv.download()));
  for (int s = 0; s < 2; ++s) {
    for (int k = 0; k < kHidden; ++k) {
      CHECK(dreferences[s * 6 * kHidden + k] == 0.0f);
      CHECK(dh[s * 6 * kHidden + k] == 0.0f);
    }
  }
}

}  // namespace
}  // namespace pointsman::cuda
