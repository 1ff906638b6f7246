// SPDX-License-Identifier: Apache-2.0
// Names of devices, and what is said of one that cannot be had.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/backend/backends.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

// The environment's POINTSMAN_CUDA_MODULE for as long as it lives.
class ModuleVariable {
 public:
  explicit ModuleVariable(const std::string& path) { setenv(kName, path.c_str(), 1); }
  ~ModuleVariable() { unsetenv(kName); }
  ModuleVariable(const ModuleVariable&) = delete;
  ModuleVariable& operator=(const ModuleVariable&) = delete;

 private:
  static constexpr const char* kName = "POINTSMAN_CUDA_MODULE";
};

std::string refusal(const std::string& device, Precision precision = Precision::kFp32) {
  try {
    make_backend({device, 1, precision});
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("make_backend: names, and what cannot be had") {
  CHECK(make_backend({"cpu", 0})->info().threads >= 1);
  const DeviceInfo info = make_backend({"cpu", 2})->info();
  CHECK(info.name == "cpu");
  CHECK(info.threads == 2);
  CHECK(info.detail.find("2 threads") != std::string::npos);
  for (const char* name : {"", "CPU", "cuda:", "cuda:x", "cuda:1000", "gpu", "cuda0", "check:", "check:cpu",
                           "check:cpu,gpu", "cuda:al", "cuda:all", "check:cpu,cuda:all"}) {
    INFO(name);
    CHECK_THROWS_AS(make_backend({name, 1}), std::invalid_argument);
  }
}

TEST_CASE("make_backends: one of any name, or all of CUDA") {
  const auto cpu = make_backends({"cpu", 2});
  REQUIRE(cpu.size() == 1);
  CHECK(cpu[0]->info().threads == 2);
  CHECK_THROWS_AS(make_backends({"cuda:al", 1}), std::invalid_argument);
  const CudaStatus status = cuda_status();
  if (status.reason.empty()) {
    CHECK(make_backends({"cuda:all", 1}).size() == status.devices.size());
    return;
  }
  std::string found;
  try {
    make_backends({"cuda:all", 1});
  } catch (const DeviceError& error) {
    found = error.what();
  }
  CHECK(found == "device cuda:all: " + status.reason);
}

TEST_CASE("check:cpu,cpu compares the CPU with itself") {
  const DeviceInfo info = make_backend({"check:cpu,cpu", 1})->info();
  CHECK(info.name == "check");
  CHECK(info.detail.find(" against cpu") != std::string::npos);
}

TEST_CASE("auto takes the best device there is, and speaks only of a module that it cannot use") {
  std::string note = "old";
  const DeviceInfo info = make_backend({"auto", 2}, &note)->info();
  if (cuda_status().reason.empty()) {
    CHECK(info.name == "cuda");
    CHECK(note.empty());
    return;
  }
  CHECK(info.name == "cpu");
  CHECK(note.empty() == find_cuda_module().empty());
  CHECK(note.find('\n') == std::string::npos);
}

// registry_cuda_emulated runs it where there is CUDA.
TEST_CASE("auto takes the CPU for a problem without gradients on CUDA") {
  std::string note;
  const auto taken = [&](const std::string& device, ProblemKind problem) {
    BackendOptions options{device, 1};
    options.learned = problem;
    return make_backend(options, &note)->info().name;
  };
  CHECK(taken("auto", ProblemKind::kCvrp) == "cpu");
  if (!cuda_status().reason.empty()) return;
  CHECK(note == "using the CPU; device cuda: CUDA computes no gradients for cvrp; the CPU does");
  CHECK(taken("auto", ProblemKind::kTsp) == "cuda");
  CHECK(note.empty());
  CHECK_THROWS_AS(taken("cuda", ProblemKind::kCvrp), DeviceError);
}

TEST_CASE("cuda without a module, or with a file that is none, names the cause") {
  const std::string missing = "/nonexistent/libpointsman_cuda.so";
  const ModuleVariable variable(missing);
  CHECK(find_cuda_module() == missing);
  for (const char* device : {"cuda", "cuda:3", "check"}) {
    INFO(device);
    CHECK(refusal(device).find("no CUDA module at " + missing) != std::string::npos);
  }
  CHECK(refusal("cuda:3").rfind("device cuda:3: ", 0) == 0);
  std::string note;
  CHECK(make_backend({"auto", 1}, &note)->info().name == "cpu");
  CHECK(note.find(missing) != std::string::npos);
  const CudaStatus status = cuda_status();
  CHECK(status.module == missing);
  CHECK(status.reason.find("no CUDA module") != std::string::npos);
  CHECK(status.devices.empty());
}

TEST_CASE("a precision without a CUDA device names the cause") {
  const ModuleVariable variable("/nonexistent/libpointsman_cuda.so");
  for (const char* device : {"cpu", "auto", "check:cpu,cpu"}) {
    INFO(device);
    CHECK(refusal(device, Precision::kTf32x3).rfind("precision tf32x3 needs a CUDA device: ", 0) == 0);
  }
}

TEST_CASE("a file that is no module is refused, on a machine without a driver for that") {
  const std::string path = "not_a_module.so";
  std::ofstream(path) << "text";
  const ModuleVariable variable(path);
  const std::string found = refusal("cuda");
  std::remove(path.c_str());
  INFO(found);
  CHECK((found.find("no NVIDIA driver") != std::string::npos ||
         found.find("cannot be loaded") != std::string::npos));
}

}  // namespace
}  // namespace pointsman
