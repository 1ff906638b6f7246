// SPDX-License-Identifier: Apache-2.0
// Items of unequal work, handed out in pieces to ranks as they become free.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace pointsman {

// Places of some items, those of most work first.
struct WorkPiece {
  std::vector<size_t> places;  // ascending
  double work = 0.0;           // theirs
  double work_left = 0.0;      // of these and all that nobody has yet
};

// Cuts items into pieces, the large items first: each piece is a share of the work that is left, so that the
// last ones are small and all ranks end together. Any thread may take.
class WorkPieces {
 public:
  // work: of each item. ranks: how many will take pieces.
  WorkPieces(std::vector<double> work, int ranks);

  // Empty: there are no more.
  WorkPiece take();
  // From now on take() is empty.
  void drop();

 private:
  const std::vector<double> work_;
  const int ranks_;
  std::mutex mutex_;
  std::vector<size_t> order_;  // places, those of most work first
  size_t next_ = 0;            // in it
  double all_work_ = 0.0, work_left_ = 0.0;
};

}  // namespace pointsman
