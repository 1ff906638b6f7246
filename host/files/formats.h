// SPDX-License-Identifier: Apache-2.0
// The readers behind read_instances.h, one per format. Each takes the whole file and throws InputError;
// `file` is the name used in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/instance.h"
#include "host/files/json_document.h"
#include "host/files/read_instances.h"

namespace pointsman {

// Numbers beyond this are refused: the square of a coordinate must stay a finite double.
inline constexpr double kLargestNumber = 1e100;
// Cities or items of one instance: 2n must stay an int.
inline constexpr int64_t kLargestSize = int64_t{1} << 29;

InstanceFile parse_tsplib(std::string_view bytes, const std::string& file);
InstanceFile parse_npy_instances(std::string_view bytes, const std::string& file, const ReadOptions& options);
InstanceFile parse_npz_instances(std::string_view bytes, const std::string& file, const ReadOptions& options);
InstanceFile parse_json_instances(std::string_view bytes, const std::string& file);
InstanceFile parse_ndjson_instances(std::string_view bytes, const std::string& file);
InstanceFile parse_knapsack_text(std::string_view bytes, const std::string& file);

// One line of NDJSON, at `line` of the file.
Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line);

// A TSPLIB tour file: cities counted from 0 (the file counts from 1). Whether it is a tour is not checked.
std::vector<int32_t> parse_tsplib_tour(std::string_view bytes, const std::string& file);

// Whether the program's own answers are one JSON object a line, by the suffix, else by the first line.
bool is_ndjson(std::string_view bytes, const std::string& file);

// "EUC_2D", "CEIL_2D", "GEO" or "ATT"; "EUCLIDEAN" for the unrounded metric, which TSPLIB does not have.
const char* metric_name(Metric metric);

// By a suffix such as ".tsp"; nothing for any that no reader has.
std::optional<InputFormat> format_of_suffix(const std::string& suffix);

// Reads what is left of a stream. Throws std::system_error when the disk refuses.
std::string read_rest(std::istream& stream, const std::string& file);
// A whole file, "-" for standard input. Throws InputError when it cannot be opened.
std::string read_file(const std::string& path);

}  // namespace pointsman
