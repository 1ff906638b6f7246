// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/cluster/communicator.h"

namespace pointsman {

void sum_in_rank_order(Communicator& ranks, std::span<const float* const> addends, std::span<float> sum) {
  // So that a rank adds one slice while the next is under way.
  constexpr size_t kSlice = 65536;
  const int last = ranks.size() - 1;
  if (ranks.rank() == 0 && addends.empty()) throw std::logic_error("sum_in_rank_order: rank 0 adds nothing");
  for (size_t begin = 0; begin < sum.size(); begin += kSlice) {
    const std::span<float> slice = sum.subspan(begin, std::min(kSlice, sum.size() - begin));
    const std::span<char> bytes(reinterpret_cast<char*>(slice.data()), slice.size_bytes());
    const bool begins = ranks.rank() == 0;
    if (begins) {
      std::copy_n(addends[0] + begin, slice.size(), slice.begin());
    } else {
      ranks.receive_into(ranks.rank() - 1, bytes);
    }
    for (const float* const addend : addends.subspan(begins ? 1 : 0)) {
      for (size_t i = 0; i < slice.size(); ++i) slice[i] += addend[begin + i];
    }
    if (ranks.rank() < last) ranks.send(ranks.rank() + 1, bytes);
  }
  if (last > 0) ranks.broadcast(last, {reinterpret_cast<char*>(sum.data()), sum.size_bytes()});
}

}  // namespace pointsman
