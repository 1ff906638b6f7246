// SPDX-License-Identifier: Apache-2.0
#include "host/command/line_queue.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace pointsman {

struct LineQueue::State {
  State(std::unique_ptr<InstanceInput> source, size_t lines_ahead)
      : input(std::move(source)), capacity(lines_ahead) {}

  void read();  // what the reader does

  std::unique_ptr<InstanceInput> input;
  const size_t capacity;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<InstanceLine> lines;
  std::exception_ptr error;
  bool ended = false, stopped = false;
  std::thread reader;
};

namespace {

// Wakes the reader from a blocking read(2), which then returns EINTR. The handler has nothing to do.
constexpr int kWakeSignal = SIGUSR1;
constexpr int kWakeTries = 20;
constexpr auto kWakeEvery = std::chrono::milliseconds(10);

void install_wake_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigemptyset(&action.sa_mask);
  sigaction(kWakeSignal, &action, nullptr);
}

}  // namespace

void LineQueue::State::read() {
  std::exception_ptr thrown;
  try {
    while (auto line = input->next_line()) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return stopped || lines.size() < capacity; });
      if (stopped) break;
      lines.push_back(std::move(*line));
      changed.notify_all();
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard<std::mutex> lock(mutex);
  error = thrown;
  ended = true;
  changed.notify_all();
}

LineQueue::LineQueue(std::unique_ptr<InstanceInput> input, size_t capacity)
    : state_(std::make_shared<State>(std::move(input), capacity)) {
  install_wake_handler();
  state_->reader = std::thread([state = state_] { state->read(); });
}

LineQueue::~LineQueue() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
  // The signal may arrive just before the read begins, so it is sent until the reader is seen to have ended.
  // A file stream (a FIFO by name) reads on after EINTR: such a reader is left behind, and the process ends
  // without it.
  for (int i = 0; i < kWakeTries && !state_->ended; ++i) {
    pthread_kill(state_->reader.native_handle(), kWakeSignal);
    state_->changed.wait_for(lock, kWakeEvery);
  }
  const bool ended = state_->ended;
  lock.unlock();
  if (ended) {
    state_->reader.join();
  } else {
    state_->reader.detach();
  }
}

std::vector<InstanceLine> LineQueue::take(size_t limit, const SearchControl& control) {
  State& state = *state_;
  std::unique_lock<std::mutex> lock(state.mutex);
  while (state.lines.empty() && !state.ended && control.check() == Status::kDone) {
    state.changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  std::vector<InstanceLine> taken;
  if (control.interrupted && control.interrupted()) return taken;
  while (!state.lines.empty() && taken.size() < limit) {
    taken.push_back(std::move(state.lines.front()));
    state.lines.pop_front();
  }
  state.changed.notify_all();
  if (taken.empty() && state.error) std::rethrow_exception(state.error);
  return taken;
}

}  // namespace pointsman
