// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pointsman {

// Text that others wrote (names of files, ids, metadata), as a line of a log, a table or a TSPLIB file may
// hold it: UTF-8 in which nothing begins a line, moves a terminal's cursor or turns the direction of what
// follows. Line feed, carriage return and tab become "\n", "\r" and "\t"; every byte of another control
// character (U+0000..1F, U+007F..9F), of a character that sets direction or separates lines (U+061C, U+200E,
// U+200F, U+2028..202E, U+2066..2069), or of no UTF-8 becomes "\x1b".
std::string printable(std::string_view text);

}  // namespace pointsman
