// SPDX-License-Identifier: Apache-2.0
// A training on the emulated devices of several ranks: through NCCL, of which there is a stand-in, and
// through the hosts' memory. ctest runs it with POINTSMAN_NCCL=off, too.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/backends.h"
#include "engine/backend/ranks/cluster_backend.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"
#include "tests/catch.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/engine/cluster/thread_ranks.h"
#include "tests/engine/random_batch.h"
#include "tests/temporary_folder.h"

namespace pointsman {
namespace {

// What the backends find: the stand-in, where nothing else is said.
const std::string kNccl = [] {
  setenv("POINTSMAN_NCCL", POINTSMAN_FAKE_NCCL, 0);
  return std::getenv("POINTSMAN_NCCL");
}();

bool has_nccl() { return kNccl != "off"; }

// A function of the stand-in's; without it 0.
template <typename... Arguments>
int ask_nccl(const char* name, Arguments... arguments) {
  if (!has_nccl()) return 0;
  void* const library = dlopen(kNccl.c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name))(arguments...);
}

// Ranks share a device where there are more of them.
int device_of(const Communicator& ranks, int devices) { return ranks.rank() % devices; }

TEST_CASE("ranks: gradients of several devices are added in rank order, by NCCL or by the hosts") {
  constexpr int kRanks = 3, kEach = 4;
  const RandomBatch batch(ProblemKind::kTsp, 7, kRanks * kEach, 46);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const size_t size = ParameterLayout(config).size;
  for (const int devices : {kRanks, 1}) {
    INFO(devices << " devices");
    emulation::set_device_count(devices);
    const int before = ask_nccl("fake_nccl_gathers");
    std::vector<std::vector<float>> own(kRanks, std::vector<float>(size)), sums = own;
    ThreadRanks::run(kRanks, [&](Communicator& ranks) {
      const auto rank = static_cast<size_t>(ranks.rank());
      const auto cuda = make_cuda_backend(device_of(ranks, devices));
      cuda->configure(config, 1);
      cuda->load_parameters(0, scaled_parameters(config, 3.0f));
      RolloutRequest rollouts;
      rollouts.sequences = batch.batch(kEach * ranks.rank(), kEach);
      const std::vector<float> weights(kEach, 1.0f + static_cast<float>(rank));
      cuda->gradient(gradient_of(rollouts, roll_out(*cuda, rollouts), weights));
      cuda->read_gradient(0, own[rank]);
      cuda->gradient_sum()->sum_gradients(ranks, 0, 1);
      cuda->read_gradient(0, sums[rank]);
    });
    std::vector<float> expected = own[0];
    for (size_t rank = 1; rank < kRanks; ++rank) {
      for (size_t i = 0; i < size; ++i) expected[i] += own[rank][i];
    }
    for (const std::vector<float>& sum : sums) CHECK((sum == expected));
    CHECK((expected != own[0]));
    CHECK(ask_nccl("fake_nccl_gathers") - before == (has_nccl() && devices > 1 ? kRanks : 0));
    CHECK(ask_nccl("fake_nccl_members") == 0);
  }
}

TrainOptions options_of(Baseline baseline, Encoder encoder) {
  TrainOptions options;
  options.model = config_for(ProblemKind::kTsp, 6);
  if (encoder == Encoder::kAttention) options.model = with_attention(options.model, 1);
  options.model.has_critic = baseline == Baseline::kCritic;
  options.baseline = baseline;
  options.batch = 40;  // three tiles
  options.rollouts = baseline == Baseline::kShared ? 2 : 1;
  options.steps = 2;
  options.validation_every = 1;
  options.validation_instances = 5;
  return options;
}

struct Learnt {
  std::string model;
  double grad_norm = 0.0, train_cost = 0.0;  // of the first step
};

Learnt train_with(Backend& backend, TrainOptions options, const std::filesystem::path& folder) {
  options.output = folder / "model.safetensors";
  Learnt learnt;
  const auto progress = [&](const TrainProgress& line) {
    if (line.step != 1) return;
    learnt.grad_norm = line.grad_norm;
    learnt.train_cost = line.train_cost;
  };
  train(backend, {options, initial_parameters(options.model, options.seed), {}, {}, progress});
  learnt.model = read_model(options.output).sha256;
  return learnt;
}

Learnt train_on(int size, int devices, const TrainOptions& options, const std::filesystem::path& folder) {
  Learnt learnt;
  ThreadRanks::run(size, [&](Communicator& ranks) {
    auto cuda = make_cuda_backend(device_of(ranks, devices));
    if (ranks.rank() > 0) return serve_cluster_backend(ranks, std::move(cuda));
    learnt = train_with(*make_cluster_backend(ranks, std::move(cuda)), options, folder);
  });
  return learnt;
}

// The first step's parameters are those of one device, so its costs have the same bits, and the sum of its
// gradient differs by the order of additions.
TEST_CASE("ranks: a training on several devices learns what one device does") {
  const auto [baseline, encoder] = GENERATE(table<Baseline, Encoder>(
      {{Baseline::kShared, Encoder::kAttention}, {Baseline::kCritic, Encoder::kLstm}}));
  const TrainOptions options = options_of(baseline, encoder);
  const TemporaryFolder folder;
  emulation::set_device_count(3);
  const Learnt one = train_with(*make_cuda_backend(0), options, folder.path());
  CHECK(train_on(1, 1, options, folder.path()).model == one.model);
  const Learnt several = train_on(3, 3, options, folder.path());
  CHECK(several.train_cost == one.train_cost);
  CHECK(std::abs(several.grad_norm / one.grad_norm - 1.0) <= 1e-5);
  CHECK(several.model != one.model);
  CHECK(train_on(3, 1, options, folder.path()).model == several.model);
}

// Work of ranks that have a device each; what rank 0 throws.
std::string failure_of(int size, const std::function<void(Communicator&, std::unique_ptr<Backend>)>& work) {
  try {
    ThreadRanks::run(size,
                     [&](Communicator& ranks) { work(ranks, make_cuda_backend(device_of(ranks, size))); });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("ranks: a failure between two steps leaves nobody waiting, and one within a step ends all ranks") {
  TrainOptions options = options_of(Baseline::kShared, Encoder::kLstm);
  const TemporaryFolder folder;
  options.output = folder.path() / "model.safetensors";
  emulation::set_device_count(2);
  const auto train_until = [&](const std::function<void(const TrainProgress&)>& progress) {
    return failure_of(2, [&](Communicator& ranks, std::unique_ptr<Backend> cuda) {
      if (ranks.rank() > 0) return serve_cluster_backend(ranks, std::move(cuda));
      const auto all = make_cluster_backend(ranks, std::move(cuda));
      train(*all, {options, initial_parameters(options.model, options.seed), {}, {}, progress});
    });
  };
  CHECK(train_until([](const TrainProgress&) { throw std::runtime_error("a full disk"); }) == "a full disk");
  CHECK(ask_nccl("fake_nccl_members") == 0);
  if (!has_nccl()) return;
  ask_nccl("fake_nccl_fail_from", 1);
  const std::string failure = train_until({});
  ask_nccl("fake_nccl_fail_from", -1);
  CHECK(failure.starts_with("ncclAllGather: the stand-in refuses it (POINTSMAN_NCCL=off"));
  CHECK(ask_nccl("fake_nccl_members") == 2);  // they end with the process
}

}  // namespace
}  // namespace pointsman
