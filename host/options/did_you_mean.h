// SPDX-License-Identifier: Apache-2.0
// The word that a mistyped one was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

// How many letters must be changed, left out, put in or exchanged with their neighbour to make one word of
// the other; each letter is touched once.
int edit_distance(std::string_view a, std::string_view b);

// Of the known words the nearest to `word`, whatever its case, if it is near enough to be meant: no more than
// a third of the letters differ, or `word` is its start. Of equally near ones the first; empty: none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// "; did you mean solve?" for the end of an error line, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace pointsman
