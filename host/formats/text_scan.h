// SPDX-License-Identifier: Apache-2.0
// The small tools that the text readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pointsman {

// Numbers beyond this are refused: the square of a coordinate must stay a finite double.
inline constexpr double kLargestNumber = 1e100;

// Walks over the lines of a text; CR before LF is taken off.
class LineScanner {
 public:
  explicit LineScanner(std::string_view text) : text_(text) {}

  bool next(std::string_view& line);
  bool next_filled(std::string_view& line);   // passes over blank lines
  int64_t number() const { return number_; }  // 1-based, of the line last given
  // False when the last line given had no newline: the file may have been cut short.
  bool last_line_whole() const { return last_line_whole_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int64_t number_ = 0;
  bool last_line_whole_ = true;
};

std::string_view trim(std::string_view text);

// Fills `words` from the start of the line and returns how many were found; never more than words.size().
size_t split_words(std::string_view line, std::span<std::string_view> words);

// The whole word is a finite decimal number ("7", "-1.5", "+3e2").
bool parse_number(std::string_view word, double& value);
bool parse_integer(std::string_view word, int64_t& value);
// What is wrong with an integer, written without point and exponent, that no double holds; `value` is the
// double next to it. Empty: nothing.
std::string lost_digits(std::string_view word, double value);

// As printf writes it.
std::string printed(const char* format, ...) __attribute__((format(printf, 1, 2)));

// What `text` makes of each element, with `between` between them, but `last` before the last.
template <typename List, typename Text = std::identity>
std::string joined(const List& list, std::string_view between, Text text = {}, std::string_view last = {}) {
  std::string out;
  for (const auto& element : list) {
    if (!out.empty()) out += &element == &list.back() && !last.empty() ? last : between;
    out += std::invoke(text, element);
  }
  return out;
}

// Quoted for a message: cut to 40 bytes, everything that is not printable ASCII escaped.
std::string shown(std::string_view text);

// Bytes of the UTF-8 character that a text begins with, which is not empty; 0 when it is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

// Without ".gz" at the end, whose readers see what it unpacks to.
std::string unpacked_name(const std::string& path);
// The file's name without folders and suffix.
std::string file_stem(const std::string& path);
// The suffix in lower case, with its dot; empty when there is none.
std::string file_suffix(const std::string& path);

}  // namespace pointsman
