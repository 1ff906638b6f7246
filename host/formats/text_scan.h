// SPDX-License-Identifier: Apache-2.0
// Helpers for parsing and printing text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pointsman {

// The largest number accepted in a file: the square of a coordinate must be a finite double.
inline constexpr double kLargestNumber = 1e100;

// Iterates over the lines of a text, without LF and CR LF.
class LineScanner {
 public:
  // before: how many lines of the file come before the text.
  explicit LineScanner(std::string_view text, int64_t before = 0) : text_(text), number_(before) {}

  bool next(std::string_view& line);
  bool next_filled(std::string_view& line);   // skips blank lines
  int64_t number() const { return number_; }  // of the last line returned, from 1
  std::string_view rest() const { return text_; }
  // False if the last line returned had no newline: the file may have been cut short.
  bool last_line_whole() const { return last_line_whole_; }

 private:
  std::string_view text_;  // what is left
  int64_t number_;
  bool last_line_whole_ = true;
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }  // of ASCII

std::string_view trim(std::string_view text);
std::string lower_case(std::string_view text);  // of ASCII letters
std::string upper_case(std::string_view text);

// Splits the first word off a line; empty if there is none.
std::string_view take_word(std::string_view& line);
// Splits off the first words.size() words and returns how many there are.
size_t split_words(std::string_view line, std::span<std::string_view> words);

// Parses a whole word as a finite decimal number ("7", "-1.5", "+3e2"); false if it is none.
bool parse_number(std::string_view word, double& value);
bool parse_integer(std::string_view word, int64_t& value);
// An error message if `word` is an integer, without point and exponent, that a double cannot hold; else
// empty. `value` is the word as a double.
std::string lost_digits(std::string_view word, double value);

// Formats as printf.
std::string printed(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Joins text(element) of all elements with `between`, or with `last` before the last one.
template <typename List, typename Text = std::identity>
std::string joined(const List& list, std::string_view between, Text text = {}, std::string_view last = {}) {
  std::string out;
  for (const auto& element : list) {
    if (!out.empty()) out += &element == &list.back() && !last.empty() ? last : between;
    out += std::invoke(text, element);
  }
  return out;
}

// Quotes text for a message: at most 40 bytes, with everything but printable ASCII escaped.
std::string shown(std::string_view text);

// Copies foreign text (file names, ids, metadata) so that a line of a log, a table or a TSPLIB file can hold
// it: valid UTF-8 that cannot start a line, move a terminal's cursor or change the text direction. Line feed,
// carriage return and tab become "\n", "\r" and "\t". Every byte of other control characters (U+0000..1F,
// U+007F..9F), of characters that set direction or separate lines (U+061C, U+200E, U+200F, U+2028..202E,
// U+2066..2069) and of invalid UTF-8 becomes "\x1b".
std::string printable(std::string_view text);

bool is_utf8(std::string_view text);

// The path without ".gz" at its end.
std::string unpacked_name(const std::string& path);
// The file's name without folders and suffixes.
std::string file_stem(const std::string& path);
// The suffix in lower case, with its dot; empty when there is none.
std::string file_suffix(const std::string& path);

}  // namespace pointsman
