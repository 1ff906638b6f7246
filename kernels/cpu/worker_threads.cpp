// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/worker_threads.h"

namespace pointsman::cpu {

WorkerThreads::WorkerThreads(int threads) {
  try {
    for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { run(worker); });
  } catch (...) {
    stop();  // the system refuses another thread: those there are must end before their pool does
    throw;
  }
}

WorkerThreads::~WorkerThreads() { stop(); }

void WorkerThreads::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerThreads::take_items(int worker) {
  try {
    for (int64_t item = next_++; item < items_; item = next_++) (*work_)(item, worker);
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    next_ = items_;
  }
}

void WorkerThreads::run(int worker) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    take_items(worker);
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void WorkerThreads::for_each(int64_t items, const std::function<void(int64_t, int)>& work) {
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
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace pointsman::cpu
