// SPDX-License-Identifier: Apache-2.0
#include "models/tools/json_text.h"

#include <nlohmann/json.hpp>

namespace pointsman {

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JsonText json_object(std::initializer_list<std::pair<std::string_view, JsonText>> members) {
  JsonText object;
  for (const auto& [key, value] : members) {
    if (value.text.empty()) continue;
    object.text += object.text.empty() ? "{" : ",";
    object.text += quoted_json(key) + ":" + value.text;
  }
  object.text += object.text.empty() ? "{}" : "}";
  return object;
}

}  // namespace pointsman
