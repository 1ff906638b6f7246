// SPDX-License-Identifier: Apache-2.0
#include "host/run/work_pieces.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pointsman {

namespace {

// A piece is a third of a rank's part of the work that is left: three ranks that began last wait for none
// that is at a large piece. The least is a 64th of a rank's part of all: below it calls become too small.
constexpr double kOfLeft = 3.0, kOfAll = 64.0;
constexpr size_t kMostItems = 16384;

}  // namespace

WorkPieces::WorkPieces(std::vector<double> work, int ranks)
    : work_(std::move(work)), ranks_(ranks), order_(work_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return work_[a] > work_[b]; });
  all_work_ = work_left_ = std::accumulate(work_.begin(), work_.end(), 0.0);
}

WorkPiece WorkPieces::take() {
  const std::lock_guard lock(mutex_);
  WorkPiece piece;
  piece.work_left = work_left_;
  const double wanted = std::max(work_left_ / (kOfLeft * ranks_), all_work_ / (kOfAll * ranks_));
  while (next_ < order_.size() && piece.work < wanted && piece.places.size() < kMostItems) {
    piece.places.push_back(order_[next_]);
    piece.work += work_[order_[next_++]];
  }
  std::sort(piece.places.begin(), piece.places.end());
  work_left_ -= piece.work;
  return piece;
}

void WorkPieces::drop() {
  const std::lock_guard lock(mutex_);
  next_ = order_.size();
}

}  // namespace pointsman
