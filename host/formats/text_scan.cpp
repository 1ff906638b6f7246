// SPDX-License-Identifier: Apache-2.0
#include "host/formats/text_scan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>

namespace pointsman {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' || c == '\n'; }

// character: one of UTF-8, whose strings compare like their code points.
bool is_printable(std::string_view character) {
  struct Range {
    std::string_view first, last;
  };
  static constexpr Range kRefused[] = {
      {"\x7F", "\x7F"},                  // delete
      {"\xC2\x80", "\xC2\x9F"},          // C1
      {"\xD8\x9C", "\xD8\x9C"},          // Arabic letter mark
      {"\xE2\x80\x8E", "\xE2\x80\x8F"},  // marks of direction
      {"\xE2\x80\xA8", "\xE2\x80\xAE"},  // separators of lines and paragraphs, embeddings, overrides
      {"\xE2\x81\xA6", "\xE2\x81\xA9"},  // isolates
  };
  if (static_cast<unsigned char>(character.front()) < 0x20) return false;
  return std::none_of(std::begin(kRefused), std::end(kRefused), [&](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

std::string escaped(char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  return printed("\\x%02x", static_cast<unsigned char>(byte));
}

// The length in bytes of the character at the start of a non-empty text; 0 if it is invalid. Unicode 15,
// table 3-7.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(0), next = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
  }
  // An overlong form, half of a surrogate pair, or beyond U+10FFFF.
  const bool outside = (lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
                       (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F);
  return outside ? 0 : length;
}

}  // namespace

bool LineScanner::next(std::string_view& line) {
  if (text_.empty()) return false;
  const size_t end = std::min(text_.find('\n'), text_.size());
  line = text_.substr(0, end);
  last_line_whole_ = end < text_.size();
  text_.remove_prefix(end + last_line_whole_);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

bool LineScanner::next_filled(std::string_view& line) {
  while (next(line)) {
    if (!trim(line).empty()) return true;
  }
  return false;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string_view take_word(std::string_view& line) {
  const auto start = std::find_if_not(line.begin(), line.end(), is_space);
  const auto end = std::find_if(start, line.end(), is_space);
  line = {end, line.end()};
  return {start, end};
}

size_t split_words(std::string_view line, std::span<std::string_view> words) {
  size_t count = 0;
  while (count < words.size() && !(words[count] = take_word(line)).empty()) ++count;
  return count;
}

// Digits with at most one point and no exponent, few enough that their integer and the power of ten below it
// are doubles: then the quotient is the nearest double (Clinger 1990). False for all other words.
static bool parse_short_decimal(std::string_view word, double& value) {
  static constexpr double kPowers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool is_negative = word.starts_with('-');
  word.remove_prefix(is_negative);
  if (word.empty() || word.size() > 16) return false;
  uint64_t digits = 0;
  size_t behind_point = 0, points = 0;
  for (const char c : word) {
    if (c == '.') {
      if (++points > 1) return false;
      continue;
    }
    if (!is_digit(c)) return false;
    digits = 10 * digits + static_cast<uint64_t>(c - '0');
    behind_point += points;
  }
  if (word.size() - points == 0 || word.size() - points > 15) return false;
  value = static_cast<double>(digits) / kPowers[behind_point];
  if (is_negative) value = -value;
  return true;
}

bool parse_number(std::string_view word, double& value) {
  if (parse_short_decimal(word, value)) return true;
  if (!word.empty() && word.front() == '+') {
    word.remove_prefix(1);
    if (!word.empty() && word.front() == '-') return false;
  }
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && std::isfinite(value);
}

bool parse_integer(std::string_view word, int64_t& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

std::string lost_digits(std::string_view word, double value) {
  constexpr double kExactIntegers = 0x1p53;  // every one below it is a double
  if (std::fabs(value) < kExactIntegers) return {};
  std::string_view digits = word;
  digits.remove_prefix(std::min(digits.find_first_not_of("+0"), digits.size()));
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
  if (printed("%.0f", value) == digits) return {};
  return "expected an integer that a double holds exactly, found " + std::string(word);
}

std::string printed(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char* text = nullptr;
  const int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  return {text, static_cast<size_t>(length)};
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7F) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    } else {
      out += c == '\t' ? "\\t" : printed("\\x%02x", static_cast<unsigned char>(c));
    }
  }
  return out + (text.size() > kLongest ? "..\"" : "\"");
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length > 0 && is_printable(character)) {
      out += character;
    } else {
      for (const char c : character) out += escaped(c);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string unpacked_name(const std::string& path) {
  return file_suffix(path) == ".gz" ? path.substr(0, path.size() - 3) : path;
}

std::string file_stem(const std::string& path) {
  return std::filesystem::path(unpacked_name(path)).stem().string();
}

std::string file_suffix(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string());
}

}  // namespace pointsman
