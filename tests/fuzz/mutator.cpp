// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace pointsman {
namespace {

constexpr size_t kLongest = 8192;  // bytes of what comes out of a change, model files aside

constexpr std::array<uint64_t, 16> kNumbers = {
    0,     1,          2,          3,          127,
    128,   255,        256,        32767,      65535,
    65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFFull,
    ~0ull};
constexpr std::array<std::string_view, 30> kWords = {
    "0",          "-1",         "1",     "2",      "1e100",   "-1e100",
    "1e101",      "1e308",      "1e999", "1e-400", "-0",      "0.5",
    "2147483647", "2147483648", "nan",   "inf",    "null",    "true",
    "[",          "]",          "{",     "}",      "\"",      ",",
    ":",          "\n",         "\r\n",  " ",      "\\u0000", "18446744073709551616"};

bool is_of_number(char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e'; }

}  // namespace

size_t Mutator::below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

std::string Mutator::mutate(std::string_view input, std::string_view other) {
  std::string out(input);
  for (size_t changes = 1 + below(4); changes > 0; --changes) change(out, other);
  if (out.size() > std::max(kLongest, input.size())) out.resize(kLongest);
  return out;
}

void Mutator::change(std::string& input, std::string_view other) {
  const size_t at = below(input.size() + 1), length = 1 + below(std::min<size_t>(input.size() - at, 64));
  const size_t from = below(other.size());
  switch (below(9)) {
    case 0:
      input.resize(at);
      break;
    case 1:
      input.erase(at, length);
      break;
    case 2:
      input.insert(below(input.size() + 1), input.substr(at, length));
      break;
    case 3:
      input.replace(at, std::string::npos, other.substr(from));
      break;
    case 4:
      input.replace(at, length, other.substr(from, length));
      break;
    case 5:
    case 6:
      change_text(input, at);
      break;
    default:
      change_bytes(input, at);
  }
}

// A bit, a byte, or an integer of 1 to 8 bytes.
void Mutator::change_bytes(std::string& input, size_t at) {
  if (at == input.size()) return;
  const size_t kind = below(3);
  if (kind == 0) {
    input[at] = static_cast<char>(input[at] ^ 1 << below(8));
  } else if (kind == 1) {
    input[at] = static_cast<char>(below(256));
  } else {
    const uint64_t number = kNumbers[below(kNumbers.size())];
    std::memcpy(&input[at], &number, std::min<size_t>(size_t{1} << below(4), input.size() - at));
  }
}

// A word comes in, or in place of the next number.
void Mutator::change_text(std::string& input, size_t at) {
  const std::string_view word = kWords[below(kWords.size())];
  const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
  if (below(3) == 0) {
    input.insert(at, word);
    return;
  }
  const auto first = std::find_if(begin, input.end(), is_of_number);
  const auto last = std::find_if_not(first, input.end(), is_of_number);
  input.replace(first, last, word.begin(), word.end());
}

}  // namespace pointsman
