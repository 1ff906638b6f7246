// SPDX-License-Identifier: Apache-2.0
// The seam between the engine and several processes ("ranks") that work on one run: bytes from rank to rank,
// and sums in rank order. Two implementations: one process alone, and MPI, a module that is loaded at run
// time where an MPI launcher started the process. The program itself links no MPI.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace pointsman {

// MPI is asked for and cannot be had, or another rank cannot be reached (exit code 4).
class ClusterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory of rank 0 that every rank reads and writes without rank 0's doing (one-sided communication). One
// thread at a time, as its Communicator.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;  // called by all ranks

  // From lock() to unlock() no other rank is between its own; only there may it get and put. offset: in
  // bytes.
  virtual void lock() = 0;
  virtual void unlock() noexcept = 0;  // its failure shows at the next call
  virtual void get(size_t offset, std::span<char> to) = 0;
  virtual void put(size_t offset, std::span<const char> from) = 0;
};

// One thread at a time, share_signal() aside. Calls that wait for messages take the processor for a short
// while and then sleep between two looks. Every call throws ClusterError where the transport fails.
class Communicator {
 public:
  struct Received {
    int from = 0;
    std::string bytes;
  };
  static constexpr int kAnyRank = -1;

  virtual ~Communicator() = default;

  int rank() const { return rank_; }  // 0 .. size() - 1
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // of the ranks on this machine, 0 ..
  int local_size() const { return local_size_; }  // how many they are

  // An exception left a call that other ranks are within: only abort() ends them.
  bool is_broken() const { return is_broken_; }
  void mark_broken() { is_broken_ = true; }

  // Messages from one rank to another arrive in the order in which they were sent. send() returns when
  // `bytes` may be changed, which may be as late as when they are received. Less than 2 GiB a message.
  virtual void send(int to, std::span<const char> bytes) = 0;
  // Waits for the next message, from one rank or from any.
  virtual Received receive(int from) = 0;
  // Whether a message is there: receive(kAnyRank) would not wait.
  virtual bool has_message() = 0;
  // The next message of a rank, which must have as many bytes.
  virtual void receive_into(int from, std::span<char> bytes) = 0;
  // What `root` has, on every rank. Called by all ranks, with as many bytes.
  virtual void broadcast(int root, std::span<char> bytes) = 0;

  // `bytes` zeros. Called by all ranks; must be gone before finish().
  virtual std::unique_ptr<SharedMemory> share_memory(size_t bytes) = 0;

  // A signal that one rank had, as a number above 0, is told to all the others: `own` is this rank's, 0 for
  // none. Returns one that another rank had, 0 while none did. Called again and again, by any thread.
  virtual int share_signal(int own) = 0;

  // Ends every rank's process, this one's with `code`.
  [[noreturn]] virtual void abort(int code) = 0;
  // Before a normal end of the process, after the last message. Waits for the other ranks.
  virtual void finish() = 0;

 protected:
  Communicator(int rank, int size, int local_rank, int local_size)
      : rank_(rank), size_(size), local_rank_(local_rank), local_size_(local_size) {}

 private:
  int rank_, size_, local_rank_, local_size_;
  bool is_broken_ = false;
};

// This process alone: rank 0 of 1. It has nobody to send to; messages throw std::logic_error.
Communicator& one_process();

// The ranks that this process was started as one of: MPI's where its launcher left OMPI_COMM_WORLD_SIZE,
// PMI_SIZE or PMIX_RANK in the environment, else null, and nothing was allocated: one process. A launcher of
// one rank, and POINTSMAN_MPI=off in the environment (for a program that an MPI rank starts as a child), mean
// one process too. Called once, early in main(). Throws ClusterError where there is a launcher and no module.
std::unique_ptr<Communicator> join_ranks();

// Whether an MPI launcher of any number of ranks started this process. It may have made a terminal of a
// standard output that is none.
bool is_launched();

// Where the MPI module is: the environment's POINTSMAN_MPI_MODULE, or lib/pointsman/libpointsman_mpi.so of an
// install prefix (models/tools/install_prefixes.h); empty when there is none.
std::string find_mpi_module();

// Sums of all ranks in one order, whatever the number of ranks: the addends of rank 0 in their order, then
// those of rank 1, .. One after the other to a running sum: ((a0 + a1) + a2) + .. addends: [count][size]
// floats each, count >= 1 on rank 0; no rank's are changed. sum: [size] out, on every rank. Called by all
// ranks; N - 1 hops of slices that follow each other, then a broadcast.
void sum_in_rank_order(Communicator& ranks, std::span<const float* const> addends, std::span<float> sum);

}  // namespace pointsman
