// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

// The known word that a mistyped one most likely means, ignoring case: at most a third of the letters differ,
// or `word` is its start. The first of several; empty if there is none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// "; did you mean solve?" for the end of an error message, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace pointsman
