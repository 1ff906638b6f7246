// SPDX-License-Identifier: Apache-2.0
// The tables of formats. A format is one function that parses a file, one that writes it, and one row that
// gives its name, suffixes and first bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/problem.h"
#include "host/formats/json_document.h"
#include "host/formats/read_files.h"
#include "host/formats/text_scan.h"
#include "host/formats/write_solutions.h"

namespace pointsman {

class NpyArray;

// Of a file whose points are named so, where nothing says how to measure them.
inline constexpr const char* kDegreesWarning =
    "latitudes and longitudes are measured as coordinates of a plane; --metric haversine_km (or "
    "haversine, in metres) measures great circles, --metric euclidean says that the plane is meant";

// Between the coordinates and the tour of a line "x y .. output tour" (Joshi et al. 2019).
inline constexpr std::string_view kOutputWord = " output ";

// Cities or items of one instance: 2n must fit an int.
inline constexpr int64_t kLargestSize = int64_t{1} << 29;

template <typename Kind, typename Parse, typename Write>
struct FileFormat {
  Kind kind;
  std::string_view name;                     // on the command line
  std::array<std::string_view, 3> suffixes;  // the usual one first; all from some on may be empty
  std::string_view magic;                    // the first bytes of every such file; may be empty
  Parse* parse;                              // reads a whole file; throws InputError
  Write* write;                 // may be null; throws OutputRefused for what the format cannot hold
  std::string_view title = {};  // in messages
};

using ParseInstances = InstanceFile(InputFile& file, const ReadOptions& options);
using WriteInstances = std::string(const InstanceBatch& instances);
using InstanceFormat = FileFormat<InputFormat, ParseInstances, WriteInstances>;
ParseInstances parse_tsplib, parse_npy, parse_npz, parse_json, parse_ndjson, parse_knapsack_text, parse_csv,
    parse_timed_text, parse_graph_text, parse_matrix, parse_tour_lines;
WriteInstances write_tsplib, write_npy, write_npz, write_json, write_ndjson, write_knapsack_text,
    write_graph_text;

// Whether a text of which this is the first line that is not blank is one for parse_timed_text().
bool begins_timed_text(std::string_view line);
// The same for parse_graph_text().
bool begins_graph_text(std::string_view line);
// A graph without edges. A few bytes can tell of many nodes, so beyond the limit on packed input it throws
// InputTooLarge; `bytes` is what the file's graphs before take, to which this one's are added.
DistanceMatrix claimed_graph(int n, uint64_t& bytes, const std::string& file);

// The name of a layout on the command line; "auto" is the first.
struct LayoutName {
  KnapsackLayout layout;
  const char* name;
};
std::span<const LayoutName> knapsack_layouts();

// The result of a run. gaps: [instances], or empty without a reference.
struct Answer {
  const InstanceBatch& instances;
  const SolutionBatch& solutions;
  const std::vector<double>& gaps;
  const SolveSummary& summary;

  double gap(size_t i) const { return gaps.empty() ? kNoNumber : gaps[i]; }
};

// Parses one solution for each instance and sets only `order` and `objective`: the objective that the file
// claims, or NaN. The caller must validate the order.
using ParseAnswers = SolutionBatch(InputFile& file, const InstanceBatch& instances);
using WriteAnswers = std::string(const Answer& answer);
using AnswerFormat = FileFormat<OutputFormat, ParseAnswers, WriteAnswers>;
ParseAnswers parse_tour, parse_routes, parse_npy_answers, parse_npz_answers, parse_json_answers;
WriteAnswers write_tour, write_routes, write_npy_answers, write_npz_answers, write_json_answers,
    write_ndjson_answers, write_text_answers;

std::span<const InstanceFormat> instance_formats();
std::span<const AnswerFormat> answer_formats();

// The first row for which `is` returns true; null if there is none.
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
  return find_format(formats, [&](const Format& format) {
    return !suffix.empty() && std::ranges::find(format.suffixes, suffix) != format.suffixes.end();
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

// The suffixes of the formats with these names.
template <typename Format>
std::vector<std::string> suffixes_of(std::span<const Format> formats, const std::vector<std::string>& names) {
  std::vector<std::string> suffixes;
  for (const Format& format : formats) {
    if (std::ranges::find(names, format.name) == names.end()) continue;
    for (const std::string_view suffix : format.suffixes) {
      if (!suffix.empty()) suffixes.emplace_back(suffix);
    }
  }
  return suffixes;
}

// A text file, line by line. Errors and warnings name the file and the line last read.
class TextReader : public LineScanner {
 public:
  // `file` must outlive the reader. before: how many lines of it come before the text.
  TextReader(std::string_view text, const std::string& file, int64_t before = 0)
      : LineScanner(text, before), file_(file), watch_(file) {}

  // The next line that is not blank; false at the end. Throws InputStopped when the run is over.
  bool next_row(std::string_view& line) {
    watch_.after(1);
    return next_filled(line);
  }
  [[noreturn]] void fail(const std::string& message) const { throw InputError(file_, number(), message); }
  std::string warning(const std::string& message) const {
    return file_ + ":" + std::to_string(number()) + ": " + message;
  }
  // The instances of a whole file, with a warning if the file may have been cut short.
  InstanceFile finish(InstanceBatch instances) const {
    if (last_line_whole()) return {std::move(instances), {}};
    return {std::move(instances), {warning("the last line has no newline; was the file cut short?")}};
  }

 private:
  const std::string& file_;
  LoadingWatch watch_;
};

// The problem of a file that gives only the items' numbers: the one in `options` if its items have these
// fields, else the first problem whose items have them.
ProblemKind problem_with(ItemFields fields, const ReadOptions& options);

// An instance that is named after the file, of the problem above.
Instance unnamed_instance(const std::string& file, ItemFields fields, const ReadOptions& options);

// As parse_json(), for a text that comes in pieces; an empty piece is the end.
InstanceFile read_json(const std::function<std::string()>& next_piece, const std::string& file,
                       const ReadOptions& options);
// Parses one line of NDJSON; `line` is its number in the file. `warning` is what to tell of it; empty:
// nothing.
Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line,
                             const ReadOptions& options, std::string& warning);
// Whether a file of our own solutions is NDJSON: by its suffix, else by its first line.
bool is_ndjson(std::string_view bytes, const std::string& file);

// The names of an instance where they can stand as ids in a text of words; null: they cannot, or it has none.
const std::vector<std::string>* names_as_ids(const Instance& instance);

// Builds a matrix of distances from numbers in file order: row by row, whole or one triangle.
class MatrixBuilder {
 public:
  // most_numbers: an upper bound from the file's size, whatever n the file claims.
  MatrixBuilder(int n, size_t most_numbers);

  int n() const { return matrix_.n; }

  static constexpr double kNoWay = std::numeric_limits<double>::infinity();

  // Adds the number of row i, column j, counted from 0, or kNoWay or NaN, a missing one; the diagonal is
  // ignored. False if the number is invalid: refusal() returns why ("expected .., found ..").
  bool add(int i, int j, double value);
  static std::string refusal(double value);

  // Call it after all numbers, or all of one triangle, were added.
  std::shared_ptr<const DistanceMatrix> finish();

 private:
  DistanceMatrix matrix_;
  std::vector<double> below_;  // the strict lower triangle row by row
};

// Gives an instance its matrix. One that is not symmetric makes a TSP an ATSP; but of sides that differ by
// rounding, at most kSameDistance of the longer, it takes the means and says so in `note`.
inline constexpr double kSameDistance = 1e-9;
void set_matrix(Instance& instance, std::shared_ptr<const DistanceMatrix> matrix, std::string& note);
// What is said of one that had to be symmetric, rows counted from `first`; `takes` names what takes it.
std::string asymmetry_text(const DistanceMatrix& matrix, int first, const std::string& takes);

// Arrays, from files or from memory. These functions throw InputError.
// points: (B, n, 2) or (n, 2), the two numbers of each item.
InstanceBatch instances_of_points(const NpyArray& points, const ReadOptions& options);
// matrices: (B, n, n) or (n, n). Of an ATSP where one of them is not symmetric, or `problem` says so.
// `note` as set_matrix().
InstanceBatch instances_of_matrices(const NpyArray& matrices, std::optional<ProblemKind> problem,
                                    std::string& note);
// weights, values: (B, n) or (n,). Call set_capacities() afterwards.
InstanceBatch instances_of_items(const NpyArray& weights, const NpyArray& values,
                                 const ReadOptions& options = {});
// capacity: a number or (B,).
void set_capacities(const NpyArray& capacity, InstanceBatch& instances);
// rows: (B, n) or (n,), tours or selections. `name` is used in messages.
SolutionBatch solutions_of_rows(const NpyArray& rows, const InstanceBatch& instances,
                                const std::string& name);

// TSPLIB's name of a metric; EUCLIDEAN, GEOM, HAVERSINE and HAVERSINE_KM are ours.
const char* metric_name(Metric metric);
std::optional<Metric> find_metric(std::string_view name);
// Those of coordinates, and as a message lists them.
std::vector<std::string_view> coordinate_metrics();
std::string metric_names();
// What a message expects of a place that a metric on the sphere cannot measure.
std::string degrees_expected(Metric metric);

// "2 solutions", for two instances.
std::string solutions_wanted(const InstanceBatch& instances);
// Throws InputError unless the file has one solution for each instance.
void check_count(size_t found, const InstanceBatch& instances, const std::string& file);

// Whether all instances have one problem and one size.
bool is_uniform(const InstanceBatch& instances);

}  // namespace pointsman
