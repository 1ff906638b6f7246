// SPDX-License-Identifier: Apache-2.0
// What is special about the CUDA backend: calls cut to the device's memory, many parameter sets in one
// product, and the CPU's answers. What every Backend promises is tested by tests/engine/test_backend*.cpp,
// which are built for it too.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/backend/backends.h"
#include "engine/backend/cuda/chunk.h"
#include "engine/backend/requests.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

constexpr ProblemKind kProblems[] = {ProblemKind::kTsp, ProblemKind::kKnapsack};

std::unique_ptr<Backend> with(std::unique_ptr<Backend> backend, const ModelConfig& config, int sets = 1) {
  backend->configure(config, sets);
  for (int set = 0; set < sets; ++set)
    backend->load_parameters(set, scaled_parameters(config, 3.0f, 1 + set));
  return backend;
}

// Both sides of every call; a difference throws.
std::unique_ptr<Backend> cpu_against_cuda(const ModelConfig& config, int sets = 1, int64_t limit = 0) {
  return with(make_check_backend(make_cpu_backend(1), make_cuda_backend(0, limit)), config, sets);
}

std::vector<float> some_weights(size_t count) {
  std::vector<float> weights(count);
  for (size_t r = 0; r < count; ++r) weights[r] = 0.25f * static_cast<float>(static_cast<int>(r % 5) - 2);
  return weights;
}

RolloutRequest sampling(const RandomBatch& batch) {
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kSample;
  request.instance_keys = batch.keys.data();
  return request;
}

std::vector<float> gradient_of_set(const Backend& backend, const ModelConfig& config, int set = 0) {
  std::vector<float> gradient(ParameterLayout(config).size);
  backend.read_gradient(set, gradient);
  return gradient;
}

void expect_the_cpus_answers(ProblemKind problem, int n) {
  INFO(name_of(problem) << ", n = " << n);
  const RandomBatch batch(problem, n, 5, 21);
  const ModelConfig config = config_for(problem, n, n == 2 ? 2 : 1);
  const auto cpu = with(make_cpu_backend(1), config), cuda = with(make_cuda_backend(0), config);
  const std::vector<int32_t> counts{3, 1, 1, 0, 6};
  RolloutRequest request = sampling(batch);
  request.counts = counts.data();
  const RolloutResult expected = roll_out(*cpu, request), found = roll_out(*cuda, request);
  CHECK(found.orders == expected.orders);
  CHECK(same_answers(found, expected));
  CHECK(found.statistics.steps == expected.statistics.steps);
  CHECK(found.statistics.entropy == 0.0);
  Tape tapes[2];
  request.tape = &tapes[0];
  const double entropy = roll_out(*cpu, request).statistics.entropy;
  request.tape = &tapes[1];
  CHECK(roll_out(*cuda, request).statistics.entropy == Approx(entropy).epsilon(1e-5));
  request.tape = nullptr;
  request.decode = Decode::kGreedy;
  CHECK(same_answers(roll_out(*cuda, request), roll_out(*cpu, request)));
}

TEST_CASE("cuda: the same orders, log p and costs as on the CPU, to the last bit") {
  for (ProblemKind problem : kProblems) {
    for (int n : {1, 2, 9}) expect_the_cpus_answers(problem, n);
  }
}

TEST_CASE("cuda: the CPU's answers of three items", "[race]") {
  for (ProblemKind problem : kProblems) expect_the_cpus_answers(problem, 3);
}

// Heads as many as there may be, layers whose width is no multiple of a tile's.
std::vector<ModelConfig> attention_configs(ProblemKind problem, int n) {
  std::vector<ModelConfig> configs;
  for (int heads : {1, 2, 4, 8}) {
    configs.push_back(with_attention(config_for(problem, n, heads % 3), 1 + heads % 3, heads));
    configs.back().feed_forward = heads == 8 ? 512 : 16 * heads;
    configs.back().has_prior = heads != 2;
  }
  configs.push_back(config_for(problem, n));  // an LSTM with a prior
  configs.back().has_prior = true;
  return configs;
}

TEST_CASE("cuda: an attention encoder and priors roll out as on the CPU, to the last bit") {
  const std::vector<int32_t> counts{3, 1, 0, 6};
  for (ProblemKind problem : kProblems) {
    for (int n : {1, 2, 3, 21}) {
      const RandomBatch batch(problem, n, 4, 21);
      for (const ModelConfig& config : attention_configs(problem, n)) {
        const auto cpu = with(make_cpu_backend(1), config), cuda = with(make_cuda_backend(0), config);
        RolloutRequest request = sampling(batch);
        request.counts = counts.data();
        request.policy.temperature = 1.5f;
        INFO(name_of(problem) << ", n = " << n << ", " << config.heads << " heads");
        CHECK(same_answers(roll_out(*cuda, request), roll_out(*cpu, request)));
        request.decode = Decode::kGreedy;
        CHECK(same_answers(roll_out(*cuda, request), roll_out(*cpu, request)));
      }
    }
  }
}

// Problems that are not plain: the general decode kernel. Another precision than fp32 leaves them as they
// are.
void expect_the_cpus_answers(const ModelConfig& config, double capacity, int64_t limit = 0,
                             Precision precision = Precision::kFp32) {
  INFO("n = " << config.n << ", capacity " << capacity << ", " << name_of(config.encoder));
  const RandomBatch batch(config.problem, config.n, 4, 21, capacity);
  const auto cpu = with(make_cpu_backend(1), config),
             cuda = with(make_cuda_backend(0, limit, precision), config);
  const std::vector<int32_t> counts{3, 1, 0, 6};
  RolloutRequest request = sampling(batch);
  request.counts = counts.data();
  request.policy.temperature = 1.5f;
  const RolloutResult sampled = roll_out(*cuda, request);
  CHECK(same_answers(sampled, roll_out(*cpu, request)));
  request.decode = Decode::kForced;
  request.forced = sampled.orders.data();
  CHECK(same_answers(roll_out(*cuda, request), sampled));
  request.decode = Decode::kSample;
  request.best_only = true;
  const RolloutResult best = roll_out(*cuda, request), expected = roll_out(*cpu, request);
  CHECK(same_answers(best, expected));
  CHECK(best.winners == expected.winners);
  request.decode = Decode::kGreedy;
  request.best_only = false;
  CHECK(same_answers(roll_out(*cuda, request), roll_out(*cpu, request)));
}

TEST_CASE("cuda: routes are the CPU's, to the last bit") {
  for (int n : {1, 2, 3, 21, 33}) {
    for (const double capacity : {9.0, 1000.0}) {
      const ModelConfig plain = config_for(ProblemKind::kCvrp, n, n == 21 ? 2 : 1);
      expect_the_cpus_answers(plain, capacity);
      expect_the_cpus_answers(with_attention(plain), capacity);
    }
  }
  ModelConfig config = config_for(ProblemKind::kCvrp, 21);
  config.has_prior = true;
  expect_the_cpus_answers(config, 16.0, 0, Precision::kBf16);
  expect_the_cpus_answers(config, 16.0, 250'000);  // a sequence takes about 70 kB
}

TEST_CASE("cuda: tours with time windows are the CPU's, to the last bit") {
  for (int n : {1, 2, 3, 21, 33}) {
    ModelConfig config = config_for(ProblemKind::kTsptw, n);
    expect_the_cpus_answers(config, 0.0);
    config.has_prior = true;
    expect_the_cpus_answers(config, 0.0);
    expect_the_cpus_answers(with_attention(config), 0.0);
  }
}

TEST_CASE("cuda: colourings are the CPU's, to the last bit") {
  for (int n : {1, 2, 3, 21, 33}) {
    ModelConfig config = config_for(ProblemKind::kColouring, n);
    expect_the_cpus_answers(config, 0.0);
    config.has_prior = true;
    expect_the_cpus_answers(config, 0.0);
    expect_the_cpus_answers(with_attention(config), 0.0);
  }
}

TEST_CASE("cuda: asymmetric tours are the CPU's, to the last bit") {
  for (int n : {1, 2, 3, 21, 33}) {
    ModelConfig config = config_for(ProblemKind::kAtsp, n);
    expect_the_cpus_answers(config, 0.0);
    config.has_prior = true;
    expect_the_cpus_answers(config, 0.0);
    expect_the_cpus_answers(with_attention(config), 0.0);
  }
}

TEST_CASE("cuda: the CPU's routes of two customers", "[race]") {
  expect_the_cpus_answers(config_for(ProblemKind::kCvrp, 3), 9.0);
  expect_the_cpus_answers(with_attention(config_for(ProblemKind::kCvrp, 3), 1), 9.0);
}

TEST_CASE("cuda: routes have no gradients, which is said") {
  const RandomBatch batch(ProblemKind::kCvrp, 4, 2, 3);
  const ModelConfig config = config_for(ProblemKind::kCvrp, 4);
  const auto cuda = with(make_cuda_backend(0), config);
  RolloutRequest request = sampling(batch);
  RolloutResult result = roll_out(*cuda, request);
  const std::vector<float> weights = some_weights(2), targets(2, 1.0f);
  std::vector<float> values(2);
  CHECK_THROWS_AS(cuda->gradient(gradient_of(request, result, weights)), DeviceError);
  CHECK_THROWS_AS(cuda->critic_gradient(batch.batch(), targets, 1.0f, values), DeviceError);
  Tape tape;
  request.tape = &tape;
  CHECK_THROWS_AS(roll_out(*cuda, request), DeviceError);
  LearnRequest learn;
  learn.rollouts = request;
  CHECK_THROWS_AS(cuda->learn(learn, result), DeviceError);
}

TEST_CASE("cuda: an attention encoder of seventy items, of several parameter sets, in chunks") {
  const RandomBatch batch(ProblemKind::kTsp, 70, 3, 27);
  const ModelConfig config = with_attention(config_for(ProblemKind::kTsp, 70), 2, 8);
  const std::vector<int32_t> sets{0, 0, 2};
  RolloutRequest request = sampling(batch);
  request.sequences.parameter_sets = sets.data();
  const RolloutResult expected = roll_out(*with(make_cpu_backend(1), config, 3), request);
  for (int64_t limit : {int64_t{0}, int64_t{900'000}})  // a sequence takes about 370 kB
    CHECK(same_answers(roll_out(*with(make_cuda_backend(0, limit), config, 3), request), expected));
}

TEST_CASE("cuda: gradients of an attention encoder and of priors against the CPU, on a tape and without") {
  const std::vector<int32_t> counts{3, 1, 0, 4}, sets{0, 0, 1, 1};
  for (ProblemKind problem : kProblems) {
    bool taped = problem == ProblemKind::kTsp;  // in turns; with the other problem the other way round
    const RandomBatch batch(problem, 19, 4, 28);
    for (const ModelConfig& config : attention_configs(problem, 19)) {
      const auto both = cpu_against_cuda(config, 2);
      RolloutRequest request = sampling(batch);
      request.sequences.parameter_sets = sets.data();
      request.counts = counts.data();
      request.policy.temperature = 1.5f;
      Tape tape;
      if (taped) request.tape = &tape;
      const RolloutResult result = roll_out(*both, request);
      const std::vector<float> weights = some_weights(result.costs.size());
      GradientRequest gradient = gradient_of(request, result, weights);
      gradient.tape = request.tape;
      both->gradient(gradient);
      CHECK(both->update(0, 2, {}).at(1).actor > 0.0);
      roll_out(*both, request);
      taped = !taped;
    }
  }
}

TEST_CASE("cuda: a training step of an attention encoder against the CPU", "[race]") {
  const RandomBatch batch(ProblemKind::kKnapsack, 5, 2, 29);
  const ModelConfig config = with_attention(config_for(ProblemKind::kKnapsack, 5), 1);
  const auto both = cpu_against_cuda(config);
  const std::vector<int32_t> counts{2, 1};
  RolloutRequest request = sampling(batch);
  Tape tape;
  request.counts = counts.data();
  request.tape = &tape;
  const RolloutResult result = roll_out(*both, request);
  const std::vector<float> weights = some_weights(result.costs.size());
  GradientRequest gradient = gradient_of(request, result, weights);
  gradient.tape = &tape;
  both->gradient(gradient);
  CHECK(both->update(0, 1, {}).at(0).actor > 0.0);
}

TEST_CASE("cuda: training steps of actor and critic against the CPU", "[race]") {
  const RandomBatch batch(ProblemKind::kTsp, 5, 6, 22);
  const ModelConfig config = config_for(ProblemKind::kTsp, 5);
  const auto both = cpu_against_cuda(config);
  RolloutRequest request = sampling(batch);
  Tape tape;
  request.tape = &tape;
  std::vector<float> values(batch.count);
  const std::vector<float> weights = some_weights(batch.count), targets(batch.count, 2.0f);
  for (int step = 0; step < 2; ++step) {
    request.seed = step;
    const RolloutResult result = roll_out(*both, request);
    both->critic_gradient(batch.batch(), targets, 0.1f, values);
    GradientRequest gradient = gradient_of(request, result, weights);
    gradient.tape = &tape;
    both->gradient(gradient);
    UpdateRequest update;
    update.critic = true;
    const GradientNorms norms = both->update(0, 1, update).at(0);
    CHECK(norms.actor > 0.0);
    CHECK(norms.critic > 0.0);
  }
}

// Active search over several instances: as many rows for each set is one strided batched product, else set by
// set.
TEST_CASE("cuda: many parameter sets, with even and uneven shares, against the CPU") {
  const ModelConfig config = config_for(ProblemKind::kTsp, 6, 2);
  for (const std::vector<int32_t>& sets :
       {std::vector<int32_t>{0, 0, 1, 1, 2, 2}, std::vector<int32_t>{0, 0, 0, 2, 2, 3}}) {
    const RandomBatch batch(ProblemKind::kTsp, 6, 6, 23);
    const auto both = cpu_against_cuda(config, 4);
    RolloutRequest request = sampling(batch);
    request.sequences.parameter_sets = sets.data();
    const std::vector<int32_t> counts{2, 1, 1, 2, 3, 0};
    if (sets[5] == 3) request.counts = counts.data();
    const RolloutResult result = roll_out(*both, request);
    const std::vector<float> weights = some_weights(result.costs.size()), targets(6, 1.0f);
    std::vector<float> values(6);
    both->gradient(gradient_of(request, result, weights));
    both->critic_gradient(request.sequences, targets, 0.5f, values);
    UpdateRequest update;
    update.critic = true;
    CHECK(both->update(0, 4, update).size() == 4);
    roll_out(*both, request);
  }
}

TEST_CASE("cuda: a call larger than the device's memory is cut, and gives the same answers") {
  for (ProblemKind problem : kProblems) {
    const RandomBatch batch(problem, 7, 6, 24);
    const ModelConfig config = config_for(problem, 7);
    // A rollout of seven items with its gradient takes about 200 kB; three times that cuts sequences and
    // rollouts.
    constexpr int64_t kLimit = 600'000;
    const auto whole = with(make_cuda_backend(0), config), cut = with(make_cuda_backend(0, kLimit), config);
    const std::vector<int32_t> counts{1, 9, 1, 1, 0, 4};
    RolloutRequest request = sampling(batch);
    request.counts = counts.data();
    const RolloutResult result = roll_out(*whole, request);
    CHECK(same_answers(roll_out(*cut, request), result));
    const std::vector<float> weights = some_weights(result.costs.size()), targets(6, 1.0f);
    std::vector<float> values(6), cut_values(6);
    for (Backend* backend : {whole.get(), cut.get()})
      backend->gradient(gradient_of(request, result, weights));
    whole->critic_gradient(batch.batch(), targets, 0.5f, values);
    cut->critic_gradient(batch.batch(), targets, 0.5f, cut_values);
    CHECK(same_bytes(values, cut_values));
    const std::vector<float> expected = gradient_of_set(*whole, config),
                             found = gradient_of_set(*cut, config);
    for (const Tensor& tensor : ParameterLayout(config).tensors) {
      double largest = 0.0, worst = 0.0;
      for (size_t k = tensor.offset; k < tensor.offset + tensor.size; ++k) {
        largest = std::max(largest, std::abs(double{expected[k]}));
        worst = worse(worst, std::abs(double{expected[k]} - double{found[k]}));
      }
      INFO(tensor.name);
      CHECK(worst <= 1e-5 * largest);  // some 20 sums each in another order
    }
  }
}

// Rows of each tile and its sequence, of sequences with so many rollouts in these parameter sets.
std::vector<std::pair<int, int>> tiles_of(const std::vector<int32_t>& counts,
                                          const std::vector<int32_t>& sets,
                                          const cuda::DecodeTiling& tiling) {
  SequenceBatch batch;
  batch.count = static_cast<int>(counts.size());
  batch.parameter_sets = sets.data();
  const cuda::CudaChunk chunk = cuda::whole_batch(batch, counts.data());
  std::vector<std::pair<int, int>> found;
  int64_t result = 0;
  for (const cuda::DecodeTile& tile : cuda::cut_into_tiles(batch, chunk, {tiling, 132, 0})) {
    CHECK(tile.set == sets[tile.sequence]);
    if (tile.rows > 0) CHECK(tile.result == result);
    result += tile.rows;
    found.emplace_back(tile.rows, tile.sequence);
  }
  CHECK(result == chunk.rows);
  const cuda::DecodeLoad load = cuda::decode_load(batch, chunk);
  CHECK(load.rollouts == chunk.rows);
  const int64_t most = (load.rollouts + load.parts * (tiling.rows - 1)) / tiling.rows;
  CHECK(static_cast<int64_t>(found.size()) <= most + (tiling.in_clusters ? 3 * load.sets : 0));
  return found;
}

TEST_CASE("cuda: tiles of several parameter sets, alone and in clusters") {
  using Tiles = std::vector<std::pair<int, int>>;
  const std::vector<int32_t> counts{1, 1, 1, 0, 1, 5, 1, 0}, sets{0, 0, 1, 1, 1, 1, 2, 3};
  CHECK(tiles_of(counts, sets, {2, false}) == Tiles{{2, 0}, {1, 2}, {1, 4}, {2, 5}, {2, 5}, {1, 5}, {1, 6}});
  CHECK(tiles_of(counts, sets, {2, true}) == Tiles{{2, 0},
                                                   {0, 0},
                                                   {0, 0},
                                                   {0, 0},
                                                   {1, 2},
                                                   {1, 4},
                                                   {2, 5},
                                                   {2, 5},
                                                   {1, 5},
                                                   {0, 5},
                                                   {0, 5},
                                                   {0, 5},
                                                   {1, 6},
                                                   {0, 6},
                                                   {0, 6},
                                                   {0, 6}});
  CHECK(tiles_of({1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {4, true}) == Tiles{{4, 0}, {1, 4}, {0, 4}, {0, 4}});
}

TEST_CASE("cuda: the best rollouts of a call that is cut") {
  constexpr int64_t kLimit = 26'000;  // about 50 rollouts of one sequence of seven items
  const std::vector<int32_t> counts{1, 70, 1, 0, 70};
  for (ProblemKind problem : kProblems) {
    const bool tsp = problem == ProblemKind::kTsp;
    RandomBatch batch(problem, 7, 5, tsp ? 53 : 51);
    // Of the second sequence every rollout costs the same, so the first chunk has its best; that of the last
    // sequence is in a later one.
    std::fill_n(batch.features.begin() + 7 * 2, 7 * 2, 0.25f);
    if (!tsp) std::fill_n(batch.weights.begin() + 7, 7, 0.25);
    const ModelConfig config = config_for(problem, 7);
    RolloutRequest request = sampling(batch);
    request.counts = counts.data();
    request.best_only = true;
    const RolloutResult expected = roll_out(*with(make_cpu_backend(1), config), request);
    CHECK(expected.winners == std::vector<int32_t>{0, 0, 0, -1, tsp ? 61 : 67});
    for (int64_t limit : {int64_t{0}, kLimit}) {
      const RolloutResult found = roll_out(*with(make_cuda_backend(0, limit), config), request);
      INFO("limit " << limit);
      CHECK(found.winners == expected.winners);
      CHECK(same_answers(found, expected));
      CHECK(found.statistics.steps == expected.statistics.steps);
    }
  }
}

TEST_CASE("cuda: tours without a network, also of a call that is cut, are the CPU's") {
  const RandomBatch batch(ProblemKind::kTsp, 25, 7, 41);
  TwoOptRequest request;
  request.sequences = batch.batch();
  request.instance_keys = batch.keys.data();
  request.kicks = 5;
  TwoOptResult expected, found;
  make_cpu_backend(2)->two_opt_device()->two_opt(request, expected);
  for (const int64_t limit : {0, 5'000}) {  // the latter for a few tours
    make_cuda_backend(0, limit)->two_opt_device()->two_opt(request, found);
    CHECK(found.orders == expected.orders);
    CHECK(found.kicks == expected.kicks);
  }
}

TEST_CASE("cuda: a tape's activations are lost where another call needs their memory, with no other answer") {
  const RandomBatch batch(ProblemKind::kTsp, 7, 4, 25);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const std::vector<float> weights = some_weights(4), targets(4, 1.0f);
  std::vector<std::vector<float>> gradients;
  for (int64_t limit : {0, 1'000'000, 600'000}) {
    const auto backend = with(make_cuda_backend(0, limit), config);
    RolloutRequest request = sampling(batch);
    Tape tape;
    request.tape = &tape;
    const RolloutResult result = roll_out(*backend, request);
    std::vector<float> values(4);
    backend->critic_gradient(batch.batch(), targets, 0.5f, values);
    GradientRequest gradient = gradient_of(request, result, weights);
    gradient.tape = &tape;
    backend->gradient(gradient);
    gradients.push_back(gradient_of_set(*backend, config));
  }
  for (size_t k = 0; k < gradients[0].size(); ++k) {
    REQUIRE(gradients[1][k] == Approx(gradients[0][k]).epsilon(1e-3).margin(1e-6));
    REQUIRE(gradients[2][k] == Approx(gradients[0][k]).epsilon(1e-3).margin(1e-6));
  }
}

// Does the emulation keep all work back until somebody waits? Elsewhere work may be done before a stop comes.
bool is_lazy_device() {
  const char* const schedule = std::getenv("POINTSMAN_EMULATION_SCHEDULE");
  return schedule != nullptr && std::string(schedule) == "forward";
}

// A stop at the `last`-th question leaves what was finished as it is, and of the rest nothing.
RolloutResult expect_stop(Backend& backend, RolloutRequest request, const RolloutResult& whole, int last) {
  int questions = 0;
  request.stop = StopToken([&] { return ++questions >= last; });
  const RolloutResult found = roll_out(backend, request);
  const int n = request.sequences.n;
  size_t at = 0;
  for (int s = 0; s < request.sequences.count; ++s) {
    const int count = request.best_only ? 1 : rollouts_of(request.counts, s);
    int made = 0;
    for (int j = 0; j < count; ++j, ++at) {
      const auto order = found.orders.begin() + at * n;
      if (std::isnan(found.costs[at])) {
        CHECK(std::isnan(found.log_probs[at]));
        CHECK(std::count(order, order + n, -1) == n);
        continue;
      }
      ++made;
      if (request.best_only) continue;
      CHECK(found.costs[at] == whole.costs[at]);
      CHECK(std::equal(order, order + n, whole.orders.begin() + at * n));
    }
    if (found.finished.empty()) continue;
    INFO("sequence " << s << ", stop at question " << last << ", last cost " << found.costs[at - 1]
                     << ", as it is without a stop " << whole.costs[at - 1]);
    if (request.best_only) CHECK((found.winners[s] >= 0) == (found.finished[s] > 0));
    CHECK(made == (request.best_only ? found.finished[s] > 0 : found.finished[s]));
  }
  if (found.finished.empty()) CHECK(same_answers(found, whole));
  return found;
}

TEST_CASE("cuda: a stop ends a chunk that is under way") {
  const std::vector<int32_t> counts{9, 1, 12, 3};
  for (ProblemKind problem : kProblems) {
    const RandomBatch batch(problem, 7, 4, 31);
    const ModelConfig config = config_for(problem, 7);
    const auto backend = with(make_cuda_backend(0), config);
    RolloutRequest request = sampling(batch);
    request.counts = counts.data();
    for (const bool best : {false, true}) {
      request.best_only = best;
      const RolloutResult whole = roll_out(*backend, request);
      for (int last : {1, 2, 3, 4, 6, 9}) {
        const RolloutResult found = expect_stop(*backend, request, whole, last);
        // The first question comes before the call's only chunk, the others while it is under way.
        if (last == 1 || (last == 2 && is_lazy_device())) {
          CHECK(found.finished == std::vector<int32_t>(4, 0));
          CHECK(found.statistics.steps == 0);
        }
        CHECK(same_answers(roll_out(*backend, request), whole));  // the signal does not reach the next call
      }
    }
  }
}

TEST_CASE("cuda: a stop leaves a tape empty") {
  const RandomBatch batch(ProblemKind::kTsp, 7, 4, 32);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const auto backend = with(make_cuda_backend(0), config), plain = with(make_cuda_backend(0), config);
  RolloutRequest request = sampling(batch);
  const RolloutResult whole = roll_out(*plain, request);
  Tape tape;
  request.tape = &tape;
  expect_stop(*backend, request, whole, 1);
  const std::vector<float> weights = some_weights(4);
  GradientRequest gradient = gradient_of(request, whole, weights);
  plain->gradient(gradient);
  gradient.tape = &tape;
  backend->gradient(gradient);
  CHECK(gradient_of_set(*backend, config) == gradient_of_set(*plain, config));
}

TEST_CASE("cuda: what can never fit says what it needs and what there is") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 2, 26);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const auto backend = with(make_cuda_backend(0, 20'000), config);
  RolloutRequest request;
  request.sequences = batch.batch();
  RolloutResult result;
  std::string message;
  try {
    backend->rollout(request, result);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("needs") != std::string::npos);
  CHECK(message.find("MiB") != std::string::npos);
}

TEST_CASE("cuda: perturbed logits are the CPU's") {
  const RandomBatch batch(ProblemKind::kTsp, 5, 1, 1);
  RolloutRequest request;
  request.sequences = batch.batch();
  request.policy.noise = 1.0f;
  RolloutResult result;
  std::string message;
  try {
    make_cuda_backend(0)->rollout(request, result);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  CHECK(message.find("noise") != std::string::npos);
}

TEST_CASE("cuda: an index without a device is refused, one with a device describes it") {
  CHECK_THROWS_AS(make_cuda_backend(97), DeviceError);
  const auto backend = make_cuda_backend(0);
  const DeviceInfo info = backend->info();
  CHECK(info.name == "cuda");
  CHECK(info.detail.find("sm_") != std::string::npos);
}

}  // namespace
}  // namespace pointsman
