// SPDX-License-Identifier: Apache-2.0
#include "host/formats/formats.h"

#include <cmath>
#include <unordered_set>

#include "engine/problem/graph.h"
#include "host/formats/npy_array.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {

std::span<const InstanceFormat> instance_formats() {
  using enum InputFormat;
  static constexpr InstanceFormat formats[] = {
      {kTsplib, "tsplib", {".tsp", ".vrp", ".atsp"}, "", parse_tsplib, write_tsplib, "TSPLIB"},
      {kNpy, "npy", {".npy"}, kNpyMagic, parse_npy, write_npy, ".npy"},
      {kNpz, "npz", {".npz"}, kZipMagic, parse_npz, write_npz, ".npz"},
      {kJson, "json", {".json"}, "", parse_json, write_json, "JSON"},
      {kNdjson, "ndjson", {".ndjson", ".jsonl"}, "", parse_ndjson, write_ndjson, "NDJSON"},
      {kKnapsackText, "kp", {".kp", ".txt"}, "", parse_knapsack_text, write_knapsack_text, "KnapSack text"},
      {kTimedText, "tsptw", {".tw"}, "", parse_timed_text, nullptr, "TSPTW text"},
      {kGraphText, "col", {".col"}, "", parse_graph_text, write_graph_text, "DIMACS graph"},
      {kCsv, "csv", {".csv"}, "", parse_csv, nullptr, "CSV"},
      {kMatrix, "matrix", {}, "", parse_matrix, nullptr, ".npy of a matrix"},
      {kTourLines, "lines", {}, "", parse_tour_lines, nullptr, "lines \"x y .. output tour\""}};
  return formats;
}

std::span<const AnswerFormat> answer_formats() {
  using enum OutputFormat;
  static constexpr AnswerFormat formats[] = {
      {kJson, "json", {".json"}, "", parse_json_answers, write_json_answers},
      {kNdjson, "ndjson", {".ndjson", ".jsonl"}, "", parse_json_answers, write_ndjson_answers},
      {kTour, "tour", {".tour"}, "", parse_tour, write_tour},
      {kRoutes, "sol", {".sol"}, "", parse_routes, write_routes},
      {kNpy, "npy", {".npy"}, kNpyMagic, parse_npy_answers, write_npy_answers},
      {kNpz, "npz", {".npz"}, kZipMagic, parse_npz_answers, write_npz_answers},
      {kText, "text", {".txt", ".text"}, "", nullptr, write_text_answers}};
  return formats;
}

ProblemKind problem_with(ItemFields fields, const ReadOptions& options) {
  if (options.problem && problem_of(*options.problem).fields == fields) return *options.problem;
  std::optional<ProblemKind> first;
  for_each_problem([&](ProblemKind kind) {
    if (!first && problem_of(kind).fields == fields) first = kind;
  });
  return first.value();
}

Instance unnamed_instance(const std::string& file, ItemFields fields, const ReadOptions& options) {
  Instance instance;
  instance.id = file_stem(file);
  instance.problem = problem_with(fields, options);
  return instance;
}

std::string solutions_wanted(const InstanceBatch& instances) {
  return std::to_string(instances.size()) + (instances.size() == 1 ? " solution" : " solutions");
}

void check_count(size_t found, const InstanceBatch& instances, const std::string& file) {
  if (found == instances.size()) return;
  throw InputError(
      file, 0,
      "expected " + solutions_wanted(instances) + ", one for each instance, found " + std::to_string(found));
}

bool is_uniform(const InstanceBatch& instances) {
  return std::all_of(instances.begin(), instances.end(), [&](const Instance& instance) {
    return instance.n() == instances[0].n() && instance.problem == instances[0].problem;
  });
}

static bool are_unique(const std::vector<std::string>& names) {
  return std::unordered_set<std::string_view>(names.begin(), names.end()).size() == names.size();
}

const std::vector<std::string>* names_as_ids(const Instance& instance) {
  const auto is_word = [](const std::string& name) {
    return !name.empty() && name != "-1" && upper_case(name) != "EOF" &&
           name.find_first_of(" \t,;:\"") == std::string::npos;
  };
  const bool can =
      instance.names && std::ranges::all_of(*instance.names, is_word) && are_unique(*instance.names);
  return can ? instance.names.get() : nullptr;
}

static bool is_distance(double value) { return value >= 0.0 && value <= kLargestNumber; }

MatrixBuilder::MatrixBuilder(int n, size_t most_numbers) {
  matrix_.n = n;
  matrix_.above.reserve(std::min(static_cast<size_t>(n) * static_cast<size_t>(n - 1) / 2, most_numbers));
}

bool MatrixBuilder::add(int i, int j, double value) {
  if (i == j) return true;
  if (std::isnan(value)) value = kNoWay;
  if (!is_distance(value) && value != kNoWay) return false;
  (i < j ? matrix_.above : below_).push_back(value);
  return true;
}

// With the means of both ways where they differ by rounding; null where one differs by more.
static std::shared_ptr<const DistanceMatrix> evened(const DistanceMatrix& matrix) {
  DistanceMatrix even{matrix.n, matrix.above};
  for (size_t i = 0; i < even.above.size(); ++i) {
    const double to = matrix.above[i], back = matrix.back[i];
    if (to == back) continue;
    const bool is_same =
        std::isfinite(to + back) && std::fabs(to - back) <= kSameDistance * std::max(to, back);
    if (!is_same) return nullptr;
    even.above[i] = to + (back - to) / 2.0;
  }
  return std::make_shared<const DistanceMatrix>(std::move(even));
}

// Two nodes are joined by a number other than 0, from either to the other; a missing one does not join them.
static std::shared_ptr<const DistanceMatrix> adjacency_of(const DistanceMatrix& matrix) {
  DistanceMatrix graph = empty_graph(matrix.n);
  const auto joins = [](double number) { return number != 0.0 && std::isfinite(number); };
  for (size_t i = 0; i < graph.above.size(); ++i) {
    const bool is_edge = joins(matrix.above[i]) || (!matrix.is_symmetric() && joins(matrix.back[i]));
    graph.above[i] = is_edge ? 1.0 : 0.0;
  }
  return std::make_shared<const DistanceMatrix>(std::move(graph));
}

void set_matrix(Instance& instance, std::shared_ptr<const DistanceMatrix> matrix, std::string& note) {
  instance.metric = Metric::kExplicit;
  if (is_graph(instance.problem)) matrix = adjacency_of(*matrix);
  if (!matrix->is_symmetric() && instance.problem != ProblemKind::kAtsp) {
    if (std::shared_ptr<const DistanceMatrix> even = evened(*matrix)) {
      matrix = std::move(even);
      note =
          "the two sides of the matrix differ by rounding, at most 1e-9 of a distance; their means are taken";
    }
  }
  if (!matrix->is_symmetric() && instance.problem == ProblemKind::kTsp) instance.problem = ProblemKind::kAtsp;
  instance.matrix = std::move(matrix);
}

std::string asymmetry_text(const DistanceMatrix& matrix, int first, const std::string& takes) {
  int row = 1, column = 0;
  while (matrix.at(row, column) == matrix.at(column, row)) {
    if (++column < row) continue;
    ++row;
    column = 0;
  }
  return "row " + std::to_string(row + first) + ", column " + std::to_string(column + first) + ": expected " +
         number_text(matrix.at(column, row)) + " as on the other side of the diagonal, found " +
         number_text(matrix.at(row, column)) + "; " + takes + " takes both";
}

std::string MatrixBuilder::refusal(double value) {
  return "expected a number from 0 to 1e100, found " + number_text(value);
}

std::shared_ptr<const DistanceMatrix> MatrixBuilder::finish() {
  std::vector<double> back(below_.size());
  auto next = below_.begin();
  for (int i = 1; next != below_.end(); ++i) {
    for (int j = 0; j < i; ++j) back[matrix_.place(j, i)] = *next++;
  }
  if (matrix_.above.empty()) {
    matrix_.above = std::move(back);
  } else if (back != matrix_.above) {
    matrix_.back = std::move(back);  // none where only the upper triangle was given
  }
  return std::make_shared<const DistanceMatrix>(std::move(matrix_));
}

}  // namespace pointsman
