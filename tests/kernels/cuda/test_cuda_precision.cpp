// SPDX-License-Identifier: Apache-2.0
// Rollouts and gradients on tensor cores: how far the products may be from double, log p beside the double
// reference, and the same answers from run to run.
#include <algorithm>
#include <cmath>
#include <random>

#include "engine/backend/backends.h"
#include "engine/backend/network.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"
#include "tests/kernels/cuda/device_test.h"
#include "tests/kernels/cuda/precision_bounds.h"

namespace pointsman {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Cell {
  double h, c;
};

// Two steps of an LSTM without inputs: the first has no product, the second one.
struct TwoSteps {
  std::vector<float> weights, bias, inputs, none;
  int rows;

  explicit TwoSteps(int rows_) : rows(rows_) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int i = 0; i < kGates * kHidden; ++i) weights.push_back(0.2f * normal(random));
    for (int i = 0; i < kGates; ++i) bias.push_back(normal(random));
    for (int i = 0; i < 2 * kGates; ++i) none.push_back(normal(random));
    for (int i = 0; i < rows * 4; ++i) inputs.push_back(normal(random));
  }

  std::vector<float> on_device(Precision precision) const {
    const cuda::DeviceArray<float> device_weights(weights), device_bias(bias), fold(none), x(inputs);
    cuda::DeviceArray<cuda::SetRange> ranges(std::vector<cuda::SetRange>{{0, 0, rows}});
    cuda::DeviceArray<float> h(static_cast<size_t>(rows) * 3 * kHidden),
        c(static_cast<size_t>(rows) * kHidden);
    cuda::LstmForwardArgs args{};
    args.fold = {fold.data(), 0};
    args.bias = {device_bias.data(), 0};
    args.inputs = x.data();
    args.h = h.data();
    args.c_last = c.data();
    args.ranges = {ranges.data(), 1, rows};
    args.steps = 2;
    args.precision = precision;
    args.weight_hh = {device_weights.data(), 0};
    cuda::lstm_forward(args, nullptr);
    return h.download();
  }

  double input_part(int row, int step, int gate) const {
    const float* x = inputs.data() + (row * 2 + step) * 2;
    return bias[gate] + static_cast<double>(none[gate]) * x[0] +
           static_cast<double>(none[kGates + gate]) * x[1];
  }

  static Cell cell(const double (&gates)[4], double c) {
    const double next = sigmoid(gates[1]) * c + sigmoid(gates[0]) * std::tanh(gates[2]);
    return {sigmoid(gates[3]) * std::tanh(next), next};
  }

  // The largest distance of a second state from double, as a share of what may be.
  double worst(Precision precision, double* distance) const {
    const std::vector<float> h = on_device(precision);
    const double relative = factor_error(precision) + sum_error(precision, kHidden);
    double worst = 0.0;
    *distance = 0.0;
    for (int row = 0; row < rows; ++row) {
      const float* first = h.data() + (row * 3 + 1) * kHidden;
      for (int unit = 0; unit < kHidden; ++unit) {
        double before[4], gates[4], size = 0.0, error = 0.0;
        for (int g = 0; g < 4; ++g) before[g] = gates[g] = input_part(row, 0, g * kHidden + unit);
        const Cell start = cell(before, 0.0);
        for (int g = 0; g < 4; ++g) {
          gates[g] = input_part(row, 1, g * kHidden + unit);
          size = std::fabs(gates[g]);
          double products = 0.0;
          for (int k = 0; k < kHidden; ++k) {
            const double product =
                static_cast<double>(weights[(g * kHidden + unit) * kHidden + k]) * first[k];
            gates[g] += product;
            products += std::fabs(product);
          }
          error = std::max(error, relative * products + 8 * 0x1p-24 * (size + products + 4.0));
        }
        const Cell exact = cell(gates, start.c);
        // Slopes: sigmoid 1/4, tanh 1. 16 units for the cell itself.
        const double c = std::fabs(start.c);
        const double slack = error * (0.25 + 0.25 * c + 0.25 + 1.0) + 16 * 0x1p-24 * (1.0 + c);
        const double off = std::fabs(h[(row * 3 + 2) * kHidden + unit] - exact.h);
        worst = std::max(worst, std::isfinite(off) ? off / slack : 1e30);
        *distance = std::max(*distance, off);
      }
    }
    return worst;
  }
};

std::unique_ptr<Backend> cuda_with(Precision precision, const ModelConfig& config,
                                   const std::vector<float>& parameters) {
  auto backend = make_cuda_backend(0, 0, precision);
  backend->configure(config, 1);
  backend->load_parameters(0, parameters);
  return backend;
}

// The largest root mean square, over orders, of the change of log p in double when every recurrent, query
// and attention encoder's weight is off by factor_error, exp(2a) and the weights of the values by
// reference_error, in signs drawn at random.
double sensitivity(const ModelConfig& config, const std::vector<float>& parameters, const RandomBatch& batch,
                   const RolloutResult& result, Precision precision) {
  const ParameterLayout layout(config);
  const reference::Network exact(config, parameters);
  double most = 0.0;
  std::vector<double> squares(batch.count);
  constexpr int kDraws = 4;
  std::mt19937 random(11);
  for (int draw = 0; draw < kDraws; ++draw) {
    reference::Vector changed(parameters.begin(), parameters.end());
    const auto change = [&](size_t offset, int count, double relative) {
      for (size_t i = offset; i < offset + count; ++i)
        changed[i] *= 1.0 + (random() % 2 ? relative : -relative);
    };
    if (config.encoder == Encoder::kLstm) {
      change(layout.encoder.weight_hh, kGates * kHidden, factor_error(precision));
    } else {
      EncoderProducts<int>(config, layout).for_each([&](const auto& linear) {
        change(linear.weight, linear.columns * linear.depth, factor_error(precision));
      });
    }
    change(layout.decoder.weight_hh, kGates * kHidden, factor_error(precision));
    change(layout.glimpse.w_q, kHidden * kHidden, factor_error(precision));
    change(layout.pointer.w_q, kHidden * kHidden, reference_error(precision));
    const reference::Network other(config, changed);
    reference::Options options;
    options.reference_error = reference_error(precision) / 2;  // of a, where exp(2a) is off by twice that
    options.reference_seed = draw;
    for (int s = 0; s < batch.count; ++s) {
      const std::vector<int> order = items_of(result, batch.n, s);
      squares[s] += std::pow(reference::forced(other, batch.sequence(s), order, options).log_prob -
                                 reference::forced(exact, batch.sequence(s), order).log_prob,
                             2) /
                    kDraws;
    }
  }
  for (double square : squares) most = std::max(most, std::sqrt(square));
  return most;
}

TEST_CASE("precision: products within what their factors lose") {
  // Tiles of 8 rows, the last of one; tiles of 32, the last of two.
  for (const int rows : {9, 2050}) {
    const TwoSteps steps(rows);
    double distance[4] = {};
    for (const Precision precision : kPrecisions) {
      INFO(name_of(precision) << ", " << rows << " rows");
      const double worst = steps.worst(precision, &distance[static_cast<int>(precision)]);
      CHECK(worst <= 1.0);
      CHECK(distance[static_cast<int>(precision)] > 0.0);
    }
    CHECK(distance[static_cast<int>(Precision::kTf32x3)] * 64 < distance[static_cast<int>(Precision::kTf32)]);
    CHECK(distance[static_cast<int>(Precision::kTf32)] * 2 < distance[static_cast<int>(Precision::kBf16)]);
  }
}

TEST_CASE("precision: log p beside double, the same from run to run") {
  const auto check = [](ProblemKind problem, bool attention) {
    const int n = problem == ProblemKind::kTsp ? 9 : 14;
    const RandomBatch batch(problem, n, 9, 31);
    const ModelConfig lstm = config_for(problem, n), config = attention ? with_attention(lstm) : lstm;
    const std::vector<float> parameters = scaled_parameters(config, attention ? 1.5f : 3.0f);
    const reference::Network network(config, parameters);
    for (const Precision precision : kPrecisions) {
      INFO(name_of(precision) << (attention ? ", attention encoder and prior" : ""));
      const auto backend = cuda_with(precision, config, parameters);
      CHECK(backend->info().detail.find(name_of(precision)) != std::string::npos);
      const RolloutResult result = sample(*backend, batch, std::vector<int32_t>(batch.count, 1));
      CHECK(same_answers(sample(*backend, batch, std::vector<int32_t>(batch.count, 1)), result));
      // The weights are off by up to half of factor_error once, the states again each step: as much again, if
      // not correlated; so are the factors of the self-attention. Five deviations, and what single precision
      // does.
      const double bound = 5.0 * sensitivity(config, parameters, batch, result, precision) + 2e-5;
      RolloutRequest request;
      request.sequences = batch.batch();
      request.decode = Decode::kForced;
      request.forced = result.orders.data();
      const RolloutResult forced = roll_out(*backend, request);
      CHECK(same_answers(forced, result));
      for (int s = 0; s < batch.count; ++s) {
        const double exact = reference::forced(network, batch.sequence(s), items_of(result, n, s)).log_prob;
        CHECK(std::fabs(result.log_probs[s] - exact) <= bound);
      }
      const std::unique_ptr<Backend> cpu = cpu_with(config, parameters);
      CHECK(!same_bytes(roll_out(*cpu, request).log_probs, result.log_probs));
    }
  };
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (const bool attention : {false, true}) check(problem, attention);
  }
}

// Blocks of 24 and of 32 rows, the last ones of fewer; other tiles give other rows to a thread, but the same
// sums.
TEST_CASE("precision: blocks of every size agree") {
  cudaDeviceProp properties{};
  cuda::require_success(cudaGetDeviceProperties(&properties, 0));
  struct Case {
    int n;
    double capacity;
    Precision precision;
  };
  for (const Case& c : {Case{4, 1.0, Precision::kTf32x3}, Case{600, 0.01, Precision::kBf16}}) {
    INFO(name_of(c.precision) << ", n = " << c.n);
    const RandomBatch batch(ProblemKind::kKnapsack, c.n, 1, 33, c.capacity);
    const ModelConfig config = config_for(ProblemKind::kKnapsack, c.n);
    const auto backend = cuda_with(c.precision, config, scaled_parameters(config, 2.0f));
    const int rows = cuda::decode_tiling(c.n, {1000000, 1, 1}, {config.problem, c.precision, 3}, false).rows;
    if (c.n == 600 && properties.multiProcessorCount == 132) CHECK(rows == 24);
    const RolloutResult few = sample(*backend, batch, {13});
    const RolloutResult all = sample(*backend, batch, {rows * properties.multiProcessorCount + 1});
    CHECK(items_of(few, c.n, 0).size() > 1);
    CHECK(std::equal(few.orders.begin(), few.orders.end(), all.orders.begin()));
    CHECK(std::equal(few.log_probs.begin(), few.log_probs.end(), all.log_probs.begin()));
  }
}

// One sample of a sequence reads packed references in device memory, several of them the same numbers as
// floats in shared memory.
TEST_CASE("precision: packed references give the scores of unpacked ones") {
  const RandomBatch batch(ProblemKind::kTsp, 12, 9, 37);
  const ModelConfig config = config_for(ProblemKind::kTsp, 12);
  const auto backend = cuda_with(Precision::kBf16, config, scaled_parameters(config, 3.0f));
  const RolloutResult each = sample(*backend, batch, std::vector<int32_t>(batch.count, 1));
  const RolloutResult more = sample(*backend, batch, std::vector<int32_t>(batch.count, 2));
  for (int s = 0; s < batch.count; ++s) {
    CHECK(items_of(each, batch.n, s) == items_of(more, batch.n, 2 * s));
    CHECK(each.log_probs[s] == more.log_probs[2 * s]);
  }
}

TEST_CASE("precision: a small call", "[race]") {
  const RandomBatch batch(ProblemKind::kTsp, 5, 9, 35);
  const ModelConfig config = config_for(ProblemKind::kTsp, 5);
  for (const Precision precision : kPrecisions) {
    const auto backend = cuda_with(precision, config, scaled_parameters(config, 3.0f));
    const RolloutResult result = sample(*backend, batch, std::vector<int32_t>(batch.count, 1));
    for (int s = 0; s < batch.count; ++s) CHECK(result.log_probs[s] < 0.0);
  }
}

// Relative distance of two gradients' tensors first .. last - 1.
double distance_of(const std::vector<float>& x, const std::vector<float>& y, size_t first, size_t last) {
  double off = 0.0, size = 0.0;
  for (size_t i = first; i < last; ++i) {
    off += std::pow(double{x[i]} - double{y[i]}, 2);
    size += std::pow(double{y[i]}, 2);
  }
  return std::sqrt(off / size);
}

TEST_CASE("precision: the gradient through an attention encoder loses what its factors lose") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 16, 34);
  const ModelConfig config = with_attention(config_for(ProblemKind::kTsp, 9));
  const ParameterLayout layout(config);
  const std::vector<float> parameters = scaled_parameters(config, 1.0f);
  const std::vector<int32_t> counts(batch.count, 1);
  const RolloutResult sampled = sample(*cpu_with(config, parameters), batch, counts);
  std::vector<float> weights;
  for (int s = 0; s < batch.count; ++s) weights.push_back(s % 2 == 0 ? 0.1f : -0.07f);
  GradientRequest request;
  request.sequences = batch.batch();
  request.counts = counts.data();
  request.orders = sampled.orders.data();
  request.weights = weights.data();
  const auto gradient = [&](Backend& backend) {
    backend.gradient(request);
    std::vector<float> values(parameters.size());
    backend.read_gradient(0, values);
    return values;
  };
  const std::vector<float> exact = gradient(*cpu_with(config, parameters));
  const size_t first = layout.embedding, last = layout.start.c_bias + kHidden;  // the encoder's
  double distance[4] = {};
  for (const Precision precision : kPrecisions) {
    INFO(name_of(precision));
    const std::vector<float> found = gradient(*cuda_with(precision, config, parameters));
    distance[static_cast<int>(precision)] = distance_of(found, exact, first, last);
    // An estimate: each of a layer's six products is off by factor_error, forward and back. As large a share
    // of the ReLUs' inputs may change sign, and what they pass on with them: in the L2 norm the root of the
    // share.
    const double forward = 6 * config.layers * factor_error(precision);
    CHECK(distance[static_cast<int>(precision)] <= 2 * forward + std::sqrt(forward));
  }
  CHECK(distance[static_cast<int>(Precision::kTf32x3)] * 16 < distance[static_cast<int>(Precision::kTf32)]);
  CHECK(distance[static_cast<int>(Precision::kTf32)] * 2 < distance[static_cast<int>(Precision::kBf16)]);
}

TEST_CASE("precision: with an LSTM what a gradient follows is made in single precision") {
  const RandomBatch batch(ProblemKind::kTsp, 7, 5, 34);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const std::vector<float> parameters = scaled_parameters(config, 3.0f);
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kSample;
  request.instance_keys = batch.keys.data();
  Tape tape;
  request.tape = &tape;
  const auto cpu = cpu_with(config, parameters), cuda = cuda_with(Precision::kBf16, config, parameters);
  CHECK(same_answers(roll_out(*cuda, request), roll_out(*cpu, request)));
}

}  // namespace
}  // namespace pointsman
