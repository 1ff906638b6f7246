// SPDX-License-Identifier: Apache-2.0
// Names of devices and how to get them, the CUDA module among them. An explicit device never silently becomes
// another.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/backends.h"
#include "models/tools/install_prefixes.h"

namespace pointsman {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kAllCuda = "cuda:all";

std::string last_error() {
  const char* error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

const BackendModule& open_module() {
  const std::string path = find_cuda_module();
  if (path.empty()) throw DeviceError("this build has no CUDA module (use --device cpu or auto)");
  if (!std::filesystem::exists(path)) throw DeviceError("no CUDA module at " + path);
  // Before the module, whose libraries take a tenth of a second to load.
  if (!has_cuda_driver()) throw DeviceError("no NVIDIA driver (" + last_error() + ")");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: backends may outlive any owner
  if (library == nullptr) throw DeviceError("the CUDA module cannot be loaded: " + last_error());
  using Entry = const BackendModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kModuleEntry));
  if (entry == nullptr) throw DeviceError(path + " is no CUDA module of this program");
  const BackendModule& module = *entry();
  if (std::strcmp(module.version, kModuleVersion) != 0) {
    throw DeviceError("the CUDA module is of version " + std::string(module.version) + ", this program of " +
                      kModuleVersion);
  }
  return module;
}

// Loads it, once. Throws DeviceError that names the cause: no module, no driver, a library it needs, another
// version.
const BackendModule& load_module() {
  static const BackendModule& module = open_module();
  return module;
}

// The index that "cuda" or "cuda:INDEX" names; -1: neither.
int cuda_index(const std::string& device) {
  if (device == "cuda") return 0;
  const std::string prefix = "cuda:";
  if (!device.starts_with(prefix)) return -1;
  const std::string digits = device.substr(prefix.size());
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::stoi(digits);
}

std::unique_ptr<Backend> make_cuda(const BackendOptions& options, const std::string& device) {
  try {
    if (options.learned) require_cuda_gradient(*options.learned);
    return load_module().make(cuda_index(device), 0, options.precision);
  } catch (const DeviceError& error) {
    throw DeviceError("device " + device + ": " + error.what());
  }
}

// reason: why there is no CUDA device.
std::unique_ptr<Backend> make_cpu(const BackendOptions& options, const std::string& reason) {
  if (options.precision != Precision::kFp32) {
    throw DeviceError(std::string("precision ") + name_of(options.precision) +
                      " needs a CUDA device: " + reason);
  }
  return make_cpu_backend(options.threads);
}

std::unique_ptr<Backend> make_named(const BackendOptions& options, const std::string& device) {
  if (device == "cpu") return make_cpu(options, "device cpu was asked for");
  if (cuda_index(device) >= 0) return make_cuda(options, device);
  if (device == kAllCuda) {
    throw std::invalid_argument("device: expected one device, found \"" + options.device +
                                "\", which may be several");
  }
  throw std::invalid_argument(
      "device: expected auto, cpu, cuda, cuda:INDEX, cuda:all, check or check:DEVICE,DEVICE, found \"" +
      options.device + "\"");
}

std::unique_ptr<Backend> make_auto(const BackendOptions& options, std::string* note) {
  if (find_cuda_module().empty()) return make_cpu(options, "this build has no CUDA module");
  try {
    return make_cuda(options,
                     options.auto_index == 0 ? "cuda" : "cuda:" + std::to_string(options.auto_index));
  } catch (const DeviceError& error) {
    if (note != nullptr) *note = std::string("using the CPU; ") + error.what();
    return make_cpu(options, error.what());
  }
}

}  // namespace

bool has_cuda_driver() {
  void* const driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

std::string find_cuda_module() {
  const char* named = std::getenv("POINTSMAN_CUDA_MODULE");
  if (named != nullptr && *named != '\0') return named;
  std::error_code error;
  for (const std::filesystem::path& prefix : install_prefixes()) {
    const auto path = prefix / "lib/pointsman/libpointsman_cuda.so";
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return {};
}

std::unique_ptr<Backend> make_backend(const BackendOptions& options, std::string* note) {
  if (note != nullptr) note->clear();
  if (options.device == "auto") return make_auto(options, note);
  const std::string check = "check:";
  const std::string pair = options.device == "check" ? check + "cpu,cuda" : options.device;
  const size_t comma = pair.find(',');
  if (!pair.starts_with(check) || comma == std::string::npos) return make_named(options, options.device);
  return make_check_backend(make_named(options, pair.substr(check.size(), comma - check.size())),
                            make_named(options, pair.substr(comma + 1)));
}

std::vector<std::unique_ptr<Backend>> make_backends(const BackendOptions& options, std::string* note) {
  std::vector<std::unique_ptr<Backend>> backends;
  if (options.device != kAllCuda) {
    backends.push_back(make_backend(options, note));
    return backends;
  }
  if (note != nullptr) note->clear();
  const CudaStatus status = cuda_status();
  if (!status.reason.empty()) throw DeviceError("device " + options.device + ": " + status.reason);
  for (size_t i = 0; i < status.devices.size(); ++i)
    backends.push_back(make_cuda(options, "cuda:" + std::to_string(i)));
  return backends;
}

CudaStatus cuda_status() {
  CudaStatus status;
  try {
    load_module().describe(status);
  } catch (const DeviceError& error) {
    status.reason = error.what();
  }
  status.module = find_cuda_module();
  return status;
}

}  // namespace pointsman
