// SPDX-License-Identifier: Apache-2.0
// A pool of threads for independent items. Which thread takes which item changes from run to run; results
// must not depend on it: every item writes only what is its own, and sums are made afterwards in item order.
// Of no more items than threads each may wait until all the others have begun.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pointsman {

class WorkerThreads {
 public:
  // threads >= 1, the calling one included. Throws std::system_error when the system gives no more of them.
  explicit WorkerThreads(int threads) {
    try {
      for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { run(worker); });
    } catch (...) {
      stop();  // the system refuses another thread: those there are must end before their pool does
      throw;
    }
  }
  ~WorkerThreads() { stop(); }
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(item, worker) for every item in [0, items), worker in [0, count()). Returns when all are done;
  // the first exception thrown by an item is thrown again here and the items not yet begun are dropped.
  void for_each(int64_t items, const std::function<void(int64_t item, int worker)>& work) {
    {
      std::lock_guard lock(mutex_);
      work_ = &work;
      items_ = items;
      next_ = 0;
      error_ = nullptr;
      busy_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wake_.notify_all();
    take_items(0);
    wait_until(done_, [&] { return busy_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // To sleep and be woken takes as long as a short round: asked so often first, some 20 us.
  static constexpr int kAsks = 1000;
  template <typename Ready>
  void wait_until(std::condition_variable& sign, const Ready& ready) {
    for (int i = 0; i < kAsks && !ready(); ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
    if (ready()) return;
    std::unique_lock lock(mutex_);
    sign.wait(lock, ready);
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(int worker) {
    for (uint64_t seen = 0;;) {
      wait_until(wake_, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      ++seen;
      take_items(worker);
      if (--busy_ > 0) continue;
      std::lock_guard lock(mutex_);  // for_each is not between its question and its sleep
      done_.notify_one();
    }
  }

  void take_items(int worker) {
    try {
      for (int64_t item = next_++; item < items_; item = next_++) (*work_)(item, worker);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_ = items_;
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int64_t, int)>* work_ = nullptr;
  std::atomic<int64_t> next_{0};
  int64_t items_ = 0;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  std::exception_ptr error_;
};

// Calls work(item) for every item in [0, items): by `helpers`, or one after another where there are none.
template <typename Work>
void for_each_item(WorkerThreads* helpers, int64_t items, const Work& work) {
  if (helpers != nullptr) return helpers->for_each(items, [&](int64_t item, int) { work(item); });
  for (int64_t item = 0; item < items; ++item) work(item);
}

}  // namespace pointsman
