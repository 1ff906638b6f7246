// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, so that what several ranks do is tested without MPI.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/cluster/communicator.h"

namespace pointsman {

class ThreadRanks {
 public:
  // Calls work(communicator) on `size` threads at once; what one of them throws is thrown again, rank 0's
  // first. The others must end by themselves.
  static void run(int size, const std::function<void(Communicator&)>& work) {
    Post post;
    std::vector<std::exception_ptr> thrown(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          Member member(post, rank, size);
          work(member);
        } catch (...) {
          thrown[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : thrown) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  struct Post {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<int, std::deque<Communicator::Received>> boxes;  // by receiver
  };

  // Memory and its lock, which all members of it hold.
  struct Shared {
    explicit Shared(size_t size) : bytes(size, '\0') {}
    std::mutex mutex;
    std::vector<char> bytes;
  };

  class Memory final : public SharedMemory {
   public:
    explicit Memory(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    void lock() override { shared_->mutex.lock(); }
    void unlock() noexcept override { shared_->mutex.unlock(); }
    void get(size_t offset, std::span<char> to) override {
      std::memcpy(to.data(), part(offset, to.size()), to.size());
    }
    void put(size_t offset, std::span<const char> from) override {
      std::memcpy(part(offset, from.size()), from.data(), from.size());
    }

   private:
    char* part(size_t offset, size_t size) {
      if (offset + size > shared_->bytes.size()) throw std::out_of_range("shared memory is smaller");
      return shared_->bytes.data() + offset;
    }

    std::shared_ptr<Shared> shared_;
  };

  class Member final : public Communicator {
   public:
    Member(Post& post, int rank, int size) : post_(post) {
      rank_ = local_rank_ = rank;
      size_ = local_size_ = size;
    }

    void send(int to, std::span<const char> bytes) override {
      const std::lock_guard lock(post_.mutex);
      post_.boxes[to].push_back({rank(), std::string(bytes.begin(), bytes.end())});
      post_.arrived.notify_all();
    }
    Received receive(int from) override {
      std::unique_lock lock(post_.mutex);
      std::deque<Received>& box = post_.boxes[rank()];
      for (;;) {
        for (auto at = box.begin(); at != box.end(); ++at) {
          if (from != kAnyRank && at->from != from) continue;
          Received found = std::move(*at);
          box.erase(at);
          return found;
        }
        post_.arrived.wait(lock);
      }
    }
    void receive_into(int from, std::span<char> bytes) override {
      const Received received = receive(from);
      if (received.bytes.size() != bytes.size()) throw std::logic_error("a message of another length");
      std::memcpy(bytes.data(), received.bytes.data(), bytes.size());
    }
    void broadcast(int root, std::span<char> bytes) override {
      if (rank() != root) return receive_into(root, bytes);
      for (int to = 0; to < size(); ++to) {
        if (to != root) send(to, bytes);
      }
    }
    std::unique_ptr<SharedMemory> share_memory(size_t bytes) override {
      std::shared_ptr<Shared> shared;
      auto* at = &shared;
      if (rank() == 0) shared = std::make_shared<Shared>(bytes);
      broadcast(0, {reinterpret_cast<char*>(&at), sizeof at});
      if (rank() > 0) {
        shared = *at;
        send(0, {"", 1});
      } else {  // *at stays until all have copied it
        for (int other = 1; other < size(); ++other) receive(other);
      }
      return std::make_unique<Memory>(std::move(shared));
    }
    int share_signal(int) override { return 0; }
    [[noreturn]] void abort(int code) override { throw std::runtime_error("abort " + std::to_string(code)); }
    void finish() override {}

   private:
    Post& post_;
  };
};

}  // namespace pointsman
