// SPDX-License-Identifier: Apache-2.0
// A pool of threads for independent items. Which thread takes which item changes from run to run; results
// must not depend on it: every item writes only what is its own, and sums are made afterwards in item order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pointsman::cpu {

class WorkerThreads {
 public:
  // threads >= 1, the calling one included. Throws std::system_error when the system gives no more of them.
  explicit WorkerThreads(int threads);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(item, worker) for every item in [0, items), worker in [0, count()). Returns when all are done;
  // the first exception thrown by an item is thrown again here and the items not yet begun are dropped.
  void for_each(int64_t items, const std::function<void(int64_t item, int worker)>& work);

 private:
  void stop();
  void run(int worker);
  void take_items(int worker);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int64_t, int)>* work_ = nullptr;
  std::atomic<int64_t> next_{0};
  int64_t items_ = 0;
  uint64_t round_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
};

}  // namespace pointsman::cpu
