// SPDX-License-Identifier: Apache-2.0
// Independent host work on a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace pointsman {

// Calls work(0) .. work(count - 1), each once, on at most `threads` threads, this one included. The first
// exception stops what has not begun and is thrown again here.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& work);

}  // namespace pointsman
