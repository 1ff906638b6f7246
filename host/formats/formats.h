// SPDX-License-Identifier: Apache-2.0
// The tables of formats: one row tells a format by its name, suffix or first bytes, reads it and writes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/problem.h"
#include "host/formats/json_document.h"
#include "host/formats/read_instances.h"
#include "host/formats/text_scan.h"
#include "host/formats/write_solutions.h"

namespace pointsman {

// Cities or items of one instance: 2n must stay an int.
inline constexpr int64_t kLargestSize = int64_t{1} << 29;

template <typename Kind, typename Parse, typename Write>
struct FileFormat {
  Kind kind;
  std::string_view name;                     // on the command line
  std::array<std::string_view, 2> suffixes;  // the usual one first; the second or both may be empty
  std::string_view magic;                    // the first bytes; empty: they tell nothing
  Parse* parse;                              // of a whole file, whose name messages use; throws InputError
  Write* write;                 // throws OutputRefused for what the format cannot hold; may be null
  std::string_view title = {};  // in messages
};

using ParseInstances = InstanceFile(std::string_view bytes, const std::string& file,
                                    const ReadOptions& options);
using WriteInstances = std::string(const InstanceBatch& instances);
using InstanceFormat = FileFormat<InputFormat, ParseInstances, WriteInstances>;
ParseInstances parse_tsplib, parse_npy, parse_npz, parse_json, parse_ndjson, parse_knapsack_text, parse_csv,
    parse_matrix;
WriteInstances write_tsplib, write_npy, write_npz, write_json, write_ndjson, write_knapsack_text;

// What a run gives. gaps: [instances], or empty when there is no reference.
struct Answer {
  const InstanceBatch& instances;
  const SolutionBatch& solutions;
  const std::vector<double>& gaps;
  const SolveSummary& summary;

  double gap(size_t i) const { return gaps.empty() ? kNoNumber : gaps[i]; }
};

// One solution for each instance. Only `order` and `objective` are set; the objective is what the file
// claims, NaN when it claims none. Whether an order is an answer is left to validate_solution.
using ParseAnswers = SolutionBatch(std::string_view bytes, const std::string& file,
                                   const InstanceBatch& instances);
using WriteAnswers = std::string(const Answer& answer);
using AnswerFormat = FileFormat<OutputFormat, ParseAnswers, WriteAnswers>;
ParseAnswers parse_tour, parse_npy_answers, parse_npz_answers, parse_json_answers;
WriteAnswers write_tour, write_npy_answers, write_npz_answers, write_json_answers, write_ndjson_answers,
    write_text_answers;

std::span<const InstanceFormat> instance_formats();
std::span<const AnswerFormat> answer_formats();

// The first row that `is` holds of; null when there is none.
template <typename Format, typename Is>
const Format* find_format(std::span<const Format> formats, Is is) {
  const auto found = std::find_if(formats.begin(), formats.end(), is);
  return found == formats.end() ? nullptr : &*found;
}

template <typename Format>
const Format* format_named(std::span<const Format> formats, std::string_view name) {
  return find_format(formats, [&](const Format& format) { return format.name == name; });
}

template <typename Format, typename Kind>
const Format& format_of_kind(std::span<const Format> formats, Kind kind) {
  return *find_format(formats, [&](const Format& format) { return format.kind == kind; });
}

template <typename Format>
const Format* format_by_suffix(std::span<const Format> formats, const std::string& path) {
  const std::string suffix = file_suffix(path);
  if (suffix.empty()) return nullptr;
  return find_format(formats, [&](const Format& format) {
    return suffix == format.suffixes[0] || suffix == format.suffixes[1];
  });
}

template <typename Format>
const Format* format_by_magic(std::span<const Format> formats, std::string_view bytes) {
  return find_format(formats, [&](const Format& format) {
    return !format.magic.empty() && bytes.starts_with(format.magic);
  });
}

// text(row) of every row.
template <typename Format, typename Text>
std::vector<std::string> of_formats(std::span<const Format> formats, Text text) {
  std::vector<std::string> texts;
  for (const Format& format : formats) texts.emplace_back(std::invoke(text, format));
  return texts;
}

// Of the formats of these names; of a name that the table does not have ".NAME".
template <typename Format>
std::vector<std::string> suffixes_of(std::span<const Format> formats, const std::vector<std::string>& names) {
  std::vector<std::string> suffixes;
  for (const std::string& name : names) {
    const Format* const format = format_named(formats, name);
    if (!format) suffixes.push_back("." + name);
    for (const std::string_view suffix : format ? format->suffixes : decltype(format->suffixes){}) {
      if (!suffix.empty()) suffixes.emplace_back(suffix);
    }
  }
  return suffixes;
}

// Of a file that tells no more of its problem than what an item's numbers are: the problem asked for where
// its items have these fields, else the first that has such items.
ProblemKind problem_with(ItemFields fields, const ReadOptions& options);
// By the key "problem" of an object.
ProblemKind read_problem(const JsonValue& object);

// As parse_json(), of a text that comes in pieces, the last of them empty.
InstanceFile read_json(const std::function<std::string()>& next_piece, const std::string& file);
// One line of NDJSON, at `line` of the file.
Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line);
// Whether the program's own answers are one JSON object a line, by the suffix, else by the first line.
bool is_ndjson(std::string_view bytes, const std::string& file);

// As TSPLIB says it; "EUCLIDEAN" for the unrounded metric, which TSPLIB does not have.
const char* metric_name(Metric metric);
std::optional<Metric> find_metric(std::string_view name);

// A whole file, "-" for standard input. Throws InputError when it cannot be opened and std::system_error when
// the disk refuses.
std::string read_file(const std::string& path);

// "2 solutions", as many as there are instances.
std::string solutions_wanted(const InstanceBatch& instances);
// Throws InputError unless a file has as many solutions.
void check_count(size_t found, const InstanceBatch& instances, const std::string& file);

// One problem and one size.
bool is_uniform(const InstanceBatch& instances);
// Throws OutputRefused unless the instances fit an array.
void check_uniform(const InstanceBatch& instances);
// Throws OutputRefused for an instance that has a matrix of distances instead.
void check_coordinates(const InstanceBatch& instances);

}  // namespace pointsman
