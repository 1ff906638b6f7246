// SPDX-License-Identifier: Apache-2.0
// What the layouts of KnapSack text share. All functions throw InputError.
#pragma once

#include <string>
#include <string_view>

#include "host/formats/formats.h"

namespace pointsman {

// A word as a number from 0 to 1e100. `what` is its name in messages: "a weight".
double knapsack_number(std::string_view word, const std::string& what, const TextReader& lines);
// Checks the number of items that a file claims.
void check_item_count(double n, const TextReader& lines);

// Pisinger's blocks, one for each instance: a name, "n 3", "c 10", "z 9", "time 0.00", n lines
// "index,profit,weight,taken" and "-----".
bool is_pisinger(std::string_view text);
InstanceFile parse_pisinger(std::string_view text, const std::string& file, const ReadOptions& options);

// One instance a line: "id n capacity", then n times "weight profit".
InstanceFile parse_knapsack_rows(std::string_view text, const std::string& file, const ReadOptions& options);

}  // namespace pointsman
