// SPDX-License-Identifier: Apache-2.0
// The same targets driven by Clang's libFuzzer; POINTSMAN_FUZZ_TARGET names one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

const pointsman::FuzzTarget* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("POINTSMAN_FUZZ_TARGET");
  target = name == nullptr ? nullptr : pointsman::find_fuzz_target(name);
  if (target != nullptr) return 0;
  std::fprintf(stderr, "POINTSMAN_FUZZ_TARGET: expected one of");
  for (const auto& each : pointsman::fuzz_targets()) std::fprintf(stderr, " %s", each.name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->accepts({reinterpret_cast<const char*>(data), size});
  return 0;
}
