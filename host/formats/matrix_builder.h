// SPDX-License-Identifier: Apache-2.0
// A symmetric matrix of distances from numbers as a file has them: row by row, whole or one triangle.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

class MatrixBuilder {
 public:
  // most_numbers: as many as the file can have at most, whatever n it claims.
  MatrixBuilder(int n, size_t most_numbers);

  // The number of row i and column j, counted from 0. The diagonal is passed over. False when the number is
  // refused: refusal() tells why.
  bool add(int i, int j, double value);
  std::string refusal(int i, int j, double value) const;  // "expected .., found .."

  // Of all numbers, or of all of one triangle.
  std::shared_ptr<const DistanceMatrix> finish();

 private:
  DistanceMatrix matrix_;
  std::vector<double> below_;  // the strict lower triangle row by row, where the upper one is not given
};

}  // namespace pointsman
