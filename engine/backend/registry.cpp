// SPDX-License-Identifier: Apache-2.0
// Names of devices and how to get them. An explicit device never silently becomes another.
#include <stdexcept>

#include "engine/backend/backend.h"
#include "engine/backend/cpu_backend.h"

namespace pointsman {

namespace {

bool names_cuda(const std::string& device) {
  if (device == "cuda") return true;
  if (device.rfind("cuda:", 0) != 0 || device.size() == 5) return false;
  return device.find_first_not_of("0123456789", 5) == std::string::npos;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendOptions& options, std::string* note) {
  if (note != nullptr) note->clear();
  if (names_cuda(options.device)) {
    throw DeviceError("device " + options.device +
                      ": this build has no CUDA module (use --device cpu or auto)");
  }
  if (options.device != "auto" && options.device != "cpu") {
    throw std::invalid_argument("device: expected auto, cpu, cuda or cuda:INDEX, found \"" + options.device +
                                "\"");
  }
  return make_cpu_backend(options.threads);
}

}  // namespace pointsman
