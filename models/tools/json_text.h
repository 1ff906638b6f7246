// SPDX-License-Identifier: Apache-2.0
// Writes JSON: shortest decimals, objects on one line.
#pragma once

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pointsman {

// The shortest decimal that parses to the same number.
template <typename Number>
std::string number_text(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Each as number_text(), a comma between two.
inline std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + number_text(value);
  return text;
}

// A JSON string; invalid UTF-8 becomes the replacement character.
std::string quoted_json(std::string_view text);

// A JSON value. Numbers that are not finite become null.
struct JsonText {
  std::string text;  // empty: no value

  JsonText() = default;
  template <typename Value>
  JsonText(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      text = value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<Value>) {
      text = std::isfinite(static_cast<double>(value)) ? number_text(value) : "null";
    } else {
      text = quoted_json(value);
    }
  }
};

// Leaves out members without a value.
JsonText json_object(std::initializer_list<std::pair<std::string_view, JsonText>> members);

// The array of element(0) .. element(size - 1).
template <typename Element>
JsonText json_array(size_t size, Element element) {
  JsonText array;
  array.text = "[";
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) array.text += ',';
    array.text += JsonText(element(i)).text;
  }
  array.text += ']';
  return array;
}

}  // namespace pointsman
