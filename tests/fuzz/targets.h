// SPDX-License-Identifier: Apache-2.0
// The readers of the program as targets for a fuzzer: whatever the bytes, a reader gives what its header
// promises or throws its own kind of error. Anything else is a finding.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

struct FuzzTarget {
  std::string name;
  // Whether the reader took the bytes. Throws what a reader must not throw, and std::logic_error where what
  // it gave breaks a promise.
  bool (*accepts)(std::string_view bytes);
  size_t memory = size_t{1} << 20;  // bytes that it may hold, beside kMemoryPerByte of the input
  // Inputs beside those of tests/fuzz/corpus/<name>, which the program itself makes; null: none.
  std::vector<std::string> (*seeds)() = nullptr;
};

inline constexpr size_t kMemoryPerByte = 256;

const std::vector<FuzzTarget>& fuzz_targets();
const FuzzTarget* find_fuzz_target(const std::string& name);  // null: there is none of that name

}  // namespace pointsman
