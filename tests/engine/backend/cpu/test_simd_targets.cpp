// SPDX-License-Identifier: Apache-2.0
// POINTSMAN_SIMD: this program runs itself with each instruction set forced and compares what they answered.
#include <hwy/targets.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

constexpr int kInstances = 200, kSamples = 4;

// What one instruction set answered.
struct Answers {
  std::string detail;          // of the device, or "KIND: message" of the error that make_backend threw
  std::vector<int32_t> tours;  // greedy and sampled
  std::vector<double> log_probs, forced_log_probs;  // of the tours; of given tours, the same on all targets
  std::vector<float> gradient;                      // actor and critic
};

template <typename T>
void write_vector(std::ofstream& file, const std::vector<T>& values) {
  const uint64_t size = values.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(size * sizeof(T)));
}

template <typename T>
void read_vector(std::ifstream& file, std::vector<T>& values) {
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  values.resize(size);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size * sizeof(T)));
}

void add_answers(ProblemKind problem, int glimpses, float scale, Answers& answers) {
  const RandomBatch batch(problem, 20, kInstances, 1);
  const ModelConfig config = config_for(problem, 20, glimpses);
  auto backend = cpu_with(config, scaled_parameters(config, scale), 2);
  const auto add = [&](const RolloutResult& result) {
    answers.tours.insert(answers.tours.end(), result.orders.begin(), result.orders.end());
    answers.log_probs.insert(answers.log_probs.end(), result.log_probs.begin(), result.log_probs.end());
  };
  RolloutRequest request;
  request.sequences = batch.batch();
  add(roll_out(*backend, request));
  const std::vector<int32_t> counts(kInstances, kSamples);
  add(sample(*backend, batch, counts));

  std::vector<int32_t> given;
  for (int s = 0; s < kInstances; ++s) {
    for (int i = 0; i < 20; ++i)
      given.push_back(problem == ProblemKind::kTsp ? (i * 7 + s) % 20 : i == 0 ? s % 20 : -1);
  }
  request.decode = Decode::kForced;
  request.forced = given.data();
  const RolloutResult scored = roll_out(*backend, request);
  answers.forced_log_probs.insert(answers.forced_log_probs.end(), scored.log_probs.begin(),
                                  scored.log_probs.end());

  const std::vector<float> weights(kInstances, 0.01f), targets(kInstances, 3.0f);
  std::vector<float> values(kInstances), gradient(ParameterLayout(config).size);
  GradientRequest gradient_request;
  gradient_request.sequences = batch.batch(0, 40);
  gradient_request.orders = given.data();
  gradient_request.weights = weights.data();
  backend->gradient(gradient_request);
  backend->critic_gradient(batch.batch(0, 40), targets, 0.01f, values);
  backend->read_gradient(0, gradient);
  answers.gradient.insert(answers.gradient.end(), gradient.begin(), gradient.end());
}

Answers all_answers() {
  Answers answers;
  try {
    answers.detail = make_backend({"cpu", 1})->info().detail;
  } catch (const std::invalid_argument& error) {
    answers.detail = std::string("invalid_argument: ") + error.what();
    return answers;
  } catch (const std::runtime_error& error) {
    answers.detail = std::string("runtime_error: ") + error.what();
    return answers;
  }
  if (std::getenv("POINTSMAN_TEST_NAME_ONLY") != nullptr) return answers;
  add_answers(ProblemKind::kTsp, 1, 1.0f, answers);
  add_answers(ProblemKind::kTsp, 2, 4.0f, answers);
  add_answers(ProblemKind::kKnapsack, 0, 4.0f, answers);
  return answers;
}

// Hidden: only run by run_child below.
TEST_CASE("child of the SIMD tests", "[.][simd-child]") {
  const char* path = std::getenv("POINTSMAN_TEST_ANSWERS");
  if (path == nullptr) return;
  if (std::getenv("POINTSMAN_TEST_ONLY_SSE4") != nullptr) hwy::SetSupportedTargetsForTest(HWY_SSE4);
  const Answers answers = all_answers();
  std::ofstream file(path, std::ios::binary);
  file << answers.detail << '\n';
  write_vector(file, answers.tours);
  write_vector(file, answers.log_probs);
  write_vector(file, answers.forced_log_probs);
  write_vector(file, answers.gradient);
  REQUIRE(file.good());
}

// This program once more, with POINTSMAN_SIMD=simd and the extra environment.
Answers run_child(const std::string& simd, const std::string& environment = "") {
  const auto path = std::filesystem::temp_directory_path() / ("pointsman_simd_" + std::to_string(getpid()));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "POINTSMAN_SIMD='" + simd + "' POINTSMAN_TEST_ANSWERS='" + path.string() +
                              "' " + environment + " '" + program + "' '[simd-child]' > /dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  Answers answers;
  std::ifstream file(path, std::ios::binary);
  std::getline(file, answers.detail);
  read_vector(file, answers.tours);
  read_vector(file, answers.log_probs);
  read_vector(file, answers.forced_log_probs);
  read_vector(file, answers.gradient);
  REQUIRE(file.good());
  std::filesystem::remove(path);
  return answers;
}

// Only what the child's device calls itself, or the error that it threw.
std::string name_of_child(const std::string& simd, const std::string& environment = "") {
  return run_child(simd, environment + " POINTSMAN_TEST_NAME_ONLY=1").detail;
}

const Answers& avx2_answers() {
  static const Answers answers = run_child("avx2");
  return answers;
}

bool processor_has(int64_t target) { return (hwy::SupportedTargets() & target) != 0; }

bool skipped(int64_t target, const char* name) {
  if (processor_has(target)) return false;
  WARN("skipped: this processor has no " << name);
  return true;
}

TEST_CASE("AVX2 and AVX-512 give the same bytes: tours, log p, gradients") {
  if (skipped(HWY_AVX2, "AVX2") || skipped(HWY_AVX3, "AVX-512")) return;
  const Answers avx512 = run_child("avx512"), &avx2 = avx2_answers();
  CHECK(avx512.detail == "AVX-512, 1 thread");
  CHECK(avx2.detail == "AVX2, 1 thread");
  CHECK(avx512.tours.size() == 3u * kInstances * (1 + kSamples) * 20);
  CHECK(avx512.tours == avx2.tours);
  CHECK(same_bytes(avx512.log_probs, avx2.log_probs));
  CHECK(same_bytes(avx512.forced_log_probs, avx2.forced_log_probs));
  CHECK(same_bytes(avx512.gradient, avx2.gradient));
}

TEST_CASE("SSE4 has no fma: its answers are close, and how close is told") {
  if (skipped(HWY_AVX2, "AVX2")) return;
  const Answers &fma = avx2_answers(), sse4 = run_child("sse4");
  CHECK(sse4.detail == "SSE4, 1 thread");
  REQUIRE(fma.tours.size() == sse4.tours.size());
  const size_t rollouts = fma.log_probs.size();
  int other_tours = 0;
  double log_p = 0.0, gradient = 0.0, most = 0.0;
  for (size_t r = 0; r < rollouts; ++r) {
    other_tours += !std::equal(fma.tours.begin() + r * 20, fma.tours.begin() + (r + 1) * 20,
                               sse4.tours.begin() + r * 20);
  }
  for (size_t r = 0; r < fma.forced_log_probs.size(); ++r) {
    log_p = std::max(log_p, std::abs(sse4.forced_log_probs[r] / fma.forced_log_probs[r] - 1.0));
  }
  for (size_t k = 0; k < fma.gradient.size(); ++k) {
    most = std::max(most, std::abs(double{fma.gradient[k]}));
    gradient = std::max(gradient, std::abs(double{fma.gradient[k]} - double{sse4.gradient[k]}));
  }
  WARN("SSE4 against AVX2: " << other_tours << " of " << rollouts
                             << " tours differ; log p of given tours by at most " << log_p
                             << " relative; gradients by at most " << gradient / most << " of the largest");
  CHECK(log_p > 0.0);  // otherwise it was not SSE4 that ran
  // Both are single precision, each within 1e-5 of double in log p; a gradient's largest element hardly
  // cancels. A tour differs where a draw falls between two prefix sums that round differently.
  CHECK(log_p <= 2e-5);
  CHECK(gradient <= 1e-5 * most);
  CHECK(other_tours <= static_cast<int>(rollouts) / 100);
}

TEST_CASE("an unset or empty POINTSMAN_SIMD takes the best there is") {
  const std::string expected = processor_has(HWY_AVX3)   ? "AVX-512"
                               : processor_has(HWY_AVX2) ? "AVX2"
                                                         : "SSE4";
  CHECK(name_of_child("") == expected + ", 1 thread");
}

TEST_CASE("a word that names no instruction set is refused with what was expected") {
  for (const char* word : {"AVX2", "neon", "avx", "avx512 "}) {
    const Answers answers = run_child(word);
    CHECK(answers.detail == "invalid_argument: POINTSMAN_SIMD: expected avx512, avx2 or sse4, found \"" +
                                std::string(word) + "\"");
    CHECK(answers.tours.empty());
  }
}

TEST_CASE("an instruction set that the processor lacks is refused, never replaced") {
  // Highway is told that there is only SSE4.
  const std::string only_sse4 = "POINTSMAN_TEST_ONLY_SSE4=1";
  CHECK(name_of_child("avx512", only_sse4) ==
        "runtime_error: POINTSMAN_SIMD=avx512: this processor has no AVX-512, best is SSE4");
  CHECK(name_of_child("avx2", only_sse4) ==
        "runtime_error: POINTSMAN_SIMD=avx2: this processor has no AVX2, best is SSE4");
  CHECK(name_of_child("sse4", only_sse4) == "SSE4, 1 thread");
}

}  // namespace
}  // namespace pointsman
