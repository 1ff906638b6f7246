// SPDX-License-Identifier: Apache-2.0
// Changes to an input that break readers: for a fuzzer without a compiler's help.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace pointsman {

class Mutator {
 public:
  // The same seed, the same changes.
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to four changes of `input`; some take bytes of `other`.
  std::string mutate(std::string_view input, std::string_view other);
  size_t below(size_t bound);  // uniform in [0, bound); 0 for 0

 private:
  void change(std::string& input, std::string_view other);
  void change_bytes(std::string& input, size_t at);
  void change_text(std::string& input, size_t at);

  std::mt19937_64 random_;
};

}  // namespace pointsman
