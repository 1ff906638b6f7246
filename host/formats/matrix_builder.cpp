// SPDX-License-Identifier: Apache-2.0
#include "host/formats/matrix_builder.h"

#include <algorithm>
#include <utility>

#include "host/formats/text_scan.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

bool is_distance(double value) { return value >= 0.0 && value <= kLargestNumber; }

}  // namespace

MatrixBuilder::MatrixBuilder(int n, size_t most_numbers) {
  matrix_.n = n;
  matrix_.above.reserve(std::min(static_cast<size_t>(n) * static_cast<size_t>(n - 1) / 2, most_numbers));
}

bool MatrixBuilder::add(int i, int j, double value) {
  if (i == j) return true;
  if (!is_distance(value)) return false;
  if (i < j) {
    matrix_.above.push_back(value);
    return true;
  }
  // Of a whole matrix the rows before i are there, and with them (j, i).
  if (!matrix_.above.empty()) return matrix_.at(j, i) == value;
  below_.push_back(value);
  return true;
}

std::string MatrixBuilder::refusal(int i, int j, double value) const {
  const std::string found = ", found " + number_text(value);
  if (!is_distance(value)) return "expected a number from 0 to 1e100" + found;
  return "expected " + number_text(matrix_.at(j, i)) + " as on the other side of the diagonal" + found +
         "; asymmetric instances are not solved";
}

std::shared_ptr<const DistanceMatrix> MatrixBuilder::finish() {
  auto next = below_.begin();
  if (next != below_.end()) matrix_.above.resize(below_.size());
  for (int i = 1; next != below_.end(); ++i) {
    for (int j = 0; j < i; ++j) matrix_.above[matrix_.place(j, i)] = *next++;
  }
  return std::make_shared<const DistanceMatrix>(std::move(matrix_));
}

}  // namespace pointsman
