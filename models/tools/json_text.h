// SPDX-License-Identifier: Apache-2.0
// Numbers and JSON as the program's own files have them: shortest decimals, objects on one line.
#pragma once

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pointsman {

// The shortest decimal that reads back to the same number.
template <typename Number>
std::string number_text(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// In double quotes and escaped; bytes that are not UTF-8 become the replacement character.
std::string quoted_json(std::string_view text);

// A value as JSON says it; a number that is not finite is null.
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

// Members without a value are left out.
JsonText json_object(std::initializer_list<std::pair<std::string_view, JsonText>> members);

// Of element(0) .. element(size - 1).
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
