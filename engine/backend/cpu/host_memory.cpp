// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/host_memory.h"

#include <cstdint>
#include <fstream>

#include "engine/backend/backend.h"

namespace pointsman {
namespace {

std::string gibibytes(size_t bytes) {
  const size_t tenths = bytes / ((size_t{1} << 30) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (size_t kibibytes; file >> name >> kibibytes; file.ignore(80, '\n')) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return SIZE_MAX;
}

void require_memory(const std::string& what, size_t bytes) {
  const size_t available = available_memory();
  if (bytes <= available) return;
  throw DeviceError(what + " needs " + gibibytes(bytes) + " of memory, and there are " +
                    gibibytes(available));
}

}  // namespace pointsman
