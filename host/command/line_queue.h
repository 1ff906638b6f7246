// SPDX-License-Identifier: Apache-2.0
// An NDJSON stream read by a thread of its own, so that a search never waits for lines that have not come yet
// and a producer that pauses still gets its answers at once.
#pragma once

#include <memory>
#include <vector>

#include "engine/search/search.h"
#include "host/files/read_instances.h"

namespace pointsman {

class LineQueue {
 public:
  // capacity: lines read ahead.
  LineQueue(std::unique_ptr<InstanceInput> input, size_t capacity);
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Waits for a line, then takes all that have come, at most `limit`. Empty at the end of the stream and when
  // `control` says stop. Rethrows what the reader threw.
  std::vector<InstanceLine> take(size_t limit, const SearchControl& control);

 private:
  struct State;
  std::shared_ptr<State>
      state_;  // the reader's too: it may have to be left behind in a read that never returns
};

}  // namespace pointsman
