// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace pointsman {

namespace {

constexpr const char* kDriver = "libcuda.so.1";

std::string last_error() {
  const char* error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

// Asked before the module: its libraries take a tenth of a second to load, which nobody without a driver
// should wait.
void require_driver() {
  void* const driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) throw DeviceError("no NVIDIA driver (" + last_error() + ")");
  dlclose(driver);
}

const BackendModule& open_module() {
  const std::string path = find_cuda_module();
  if (path.empty()) throw DeviceError("this build has no CUDA module (use --device cpu or auto)");
  if (!std::filesystem::exists(path)) throw DeviceError("no CUDA module at " + path);
  require_driver();
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

}  // namespace

std::string find_cuda_module() {
  const char* named = std::getenv("POINTSMAN_CUDA_MODULE");
  if (named != nullptr && *named != '\0') return named;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto path = program.parent_path().parent_path() / "lib/pointsman/libpointsman_cuda.so";
  return std::filesystem::exists(path, error) ? path.string() : std::string();
}

const BackendModule& load_module() {
  static const BackendModule& module = open_module();
  return module;
}

}  // namespace pointsman
