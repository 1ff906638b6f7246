// SPDX-License-Identifier: Apache-2.0
// Communication between the processes ("ranks") of a run: bytes from rank to rank, and sums in rank order.
// Two implementations: a single process, and MPI, a module that is loaded if an MPI launcher started the
// process. The program itself links no MPI.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace pointsman {

// MPI is requested but not available, or another rank cannot be reached (exit code 4).
class ClusterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory of rank 0 that every rank can read and write (one-sided communication). One thread at a time.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;  // called by all ranks

  // A mutex of all ranks, held for get() and put(). offset: in bytes.
  virtual void lock() = 0;
  virtual void unlock() noexcept = 0;  // its failure shows at the next call
  virtual void get(size_t offset, std::span<char> to) = 0;
  virtual void put(size_t offset, std::span<const char> from) = 0;
};

// One thread at a time, except share_signal(). Calls that wait for messages spin for a short while, then
// sleep between two looks. Every call throws ClusterError if the transport fails.
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

  // An exception left a call that other ranks are waiting in: only abort() ends them.
  bool is_broken() const { return is_broken_; }
  void mark_broken() { is_broken_ = true; }

  // Messages from one rank to another arrive in the order sent. send() returns when `bytes` may be changed,
  // perhaps only after they were received. Less than 2 GiB a message.
  virtual void send(int to, std::span<const char> bytes) = 0;
  // Waits for the next message, from one rank or from any.
  virtual Received receive(int from) = 0;
  // The next message of a rank, which must have as many bytes.
  virtual void receive_into(int from, std::span<char> bytes) = 0;
  // What `root` has, on every rank. Called by all ranks, with as many bytes.
  virtual void broadcast(int root, std::span<char> bytes) = 0;

  // `bytes` zeros. Called by all ranks; must be gone before finish().
  virtual std::unique_ptr<SharedMemory> share_memory(size_t bytes) = 0;

  // Sends this rank's signal `own` (0: none) to all others. Returns a signal of another rank, or 0. Called
  // again and again, by any thread.
  virtual int share_signal(int own) = 0;

  // Ends every rank's process, this one's with `code`.
  [[noreturn]] virtual void abort(int code) = 0;
  // Before a normal end of the process, after the last message. Waits for the other ranks.
  virtual void finish() = 0;

 protected:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;

 private:
  bool is_broken_ = false;
};

// A single process: rank 0 of 1. Messages throw std::logic_error.
Communicator& one_process();

// MPI's ranks if its launcher left OMPI_COMM_WORLD_SIZE, PMI_SIZE or PMIX_RANK in the environment. Null,
// without any allocation, for a single process: no launcher, a launcher of one rank, or POINTSMAN_MPI=off
// (for a program that an MPI rank starts as a child). Called once, early in main(). Throws ClusterError if
// the module is missing.
std::unique_ptr<Communicator> join_ranks();

// Whether an MPI launcher of any number of ranks started this process. Its standard output may falsely look
// like a terminal.
bool is_launched();

// Path of the MPI module: POINTSMAN_MPI_MODULE of the environment, or lib/pointsman/libpointsman_mpi.so of an
// install prefix (models/tools/install_prefixes.h); empty: there is none.
std::string find_mpi_module();

// What the MPI module exports under the name kMpiModuleEntry, as a function without parameters that returns a
// pointer to this. Both sides pass C++ objects, so they must come from one version of the program and
// compiler.
inline constexpr char kMpiModuleVersion[] = POINTSMAN_VERSION ", compiler " __VERSION__ ", interface 4";

struct MpiModule {
  const char* version;                      // kMpiModuleVersion of the module, read first
  std::unique_ptr<Communicator> (*join)();  // starts MPI; throws ClusterError
};
inline constexpr char kMpiModuleEntry[] = "pointsman_mpi_module";

// The sum over all ranks, in rank order: ((a0 + a1) + a2) + .., a rank's addends in their order. addends:
// [count][size], count >= 1 on rank 0. sum: [size] out, on every rank. Called by all ranks; a pipeline of
// slices from rank to rank, then a broadcast.
void sum_in_rank_order(Communicator& ranks, std::span<const float* const> addends, std::span<float> sum);

}  // namespace pointsman
