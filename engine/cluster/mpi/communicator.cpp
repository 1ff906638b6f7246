// SPDX-License-Identifier: Apache-2.0
// The MPI module: Communicator over MPI_COMM_WORLD.
#include "engine/cluster/communicator.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace pointsman {
namespace {

constexpr int kTag = 0, kSignalTag = 1;
// A wait first gives its processor away between two looks, then sleeps: in a chain of sums the other rank is
// nearly there, and for a piece of work it may take seconds that another thread can use. To look every .1 ms
// would take much of them from that thread, so the sleeps grow with what was waited.
constexpr auto kYielding = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds kShortestSleep = std::chrono::microseconds(100),
                                   kLongestSleep = std::chrono::milliseconds(5);
constexpr int kSleepsInAWait = 64;

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw ClusterError(std::string(call) + ": " + text);
}

// Held during each call of MPI, which serves one thread at a time. Waits for other ranks are many short
// calls, but for those of shared memory.
std::mutex mutex;

// f(arguments...) while no other thread calls MPI.
template <typename Function, typename... Arguments>
void call(const char* name, Function* f, Arguments... arguments) {
  const std::lock_guard lock(mutex);
  check(f(arguments...), name);
}

// Calls look() until it is true.
template <typename Look>
void wait_until(const Look& look) {
  const auto begin = std::chrono::steady_clock::now();
  while (!look()) {
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
    if (waited < kYielding) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::clamp(waited / kSleepsInAWait, kShortestSleep, kLongestSleep));
    }
  }
}

// The same of what only begins then, and its end.
template <typename Function, typename... Arguments>
void finish_call(const char* name, Function* f, Arguments... arguments) {
  MPI_Request request;
  call(name, f, arguments..., &request);
  wait_until([&] {
    int done = 0;
    call(name, MPI_Test, &request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

int count_of(size_t bytes) {
  if (bytes > INT_MAX) throw ClusterError("a message of " + std::to_string(bytes) + " bytes is too long");
  return static_cast<int>(bytes);
}

// A window of rank 0; the other ranks' parts of it are empty. Locks are MPI's passive target: rank 0 may be
// computing meanwhile.
class MpiSharedMemory final : public SharedMemory {
 public:
  MpiSharedMemory(int rank, size_t bytes) {
    const auto own = static_cast<MPI_Aint>(rank == kOwner ? bytes : 0);
    void* memory = nullptr;
    call("MPI_Win_allocate", MPI_Win_allocate, own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window_);
    call("MPI_Win_set_errhandler", MPI_Win_set_errhandler, window_, MPI_ERRORS_RETURN);
    if (own == 0) return;
    lock();
    std::memset(memory, 0, bytes);
    unlock();
  }
  ~MpiSharedMemory() override {
    try {
      // The others may take long, and MPI_Win_free() would spin.
      finish_call("MPI_Ibarrier", MPI_Ibarrier, MPI_COMM_WORLD);
      call("MPI_Win_free", MPI_Win_free, &window_);
    } catch (const ClusterError&) {  // finish() comes next and says so
    }
  }

  void lock() override { call("MPI_Win_lock", MPI_Win_lock, MPI_LOCK_EXCLUSIVE, kOwner, 0, window_); }
  void unlock() noexcept override {
    const std::lock_guard guard(mutex);
    MPI_Win_unlock(kOwner, window_);
  }
  void get(size_t offset, std::span<char> to) override { copy("MPI_Get", MPI_Get, offset, to); }
  void put(size_t offset, std::span<const char> from) override { copy("MPI_Put", MPI_Put, offset, from); }

 private:
  template <typename Function, typename Bytes>
  void copy(const char* name, Function* f, size_t offset, Bytes bytes) {
    const int count = count_of(bytes.size());
    const auto at = static_cast<MPI_Aint>(offset);
    call(name, f, bytes.data(), count, MPI_BYTE, kOwner, at, count, MPI_BYTE, window_);
    call("MPI_Win_flush", MPI_Win_flush, kOwner, window_);
  }

  static constexpr int kOwner = 0;
  MPI_Win window_ = MPI_WIN_NULL;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local_rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(machine, &local_size_), "MPI_Comm_size");
    check(MPI_Comm_free(&machine), "MPI_Comm_free");
  }

  void send(int to, std::span<const char> bytes) override {
    const int count = count_of(bytes.size());
    finish_call("MPI_Isend", MPI_Isend, bytes.data(), count, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
  }

  Received receive(int from) override {
    MPI_Status status;
    const int source = from == kAnyRank ? MPI_ANY_SOURCE : from;
    wait_until([&] {
      int there = 0;
      call("MPI_Iprobe", MPI_Iprobe, source, kTag, MPI_COMM_WORLD, &there, &status);
      return there != 0;
    });
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    Received received{status.MPI_SOURCE, std::string(static_cast<size_t>(size), '\0')};
    receive_into(received.from, received.bytes);
    return received;
  }

  void receive_into(int from, std::span<char> bytes) override {
    const int count = count_of(bytes.size());
    finish_call("MPI_Irecv", MPI_Irecv, bytes.data(), count, MPI_BYTE, from, kTag, MPI_COMM_WORLD);
  }

  void broadcast(int root, std::span<char> bytes) override {
    const int count = count_of(bytes.size());
    finish_call("MPI_Ibcast", MPI_Ibcast, bytes.data(), count, MPI_BYTE, root, MPI_COMM_WORLD);
  }

  std::unique_ptr<SharedMemory> share_memory(size_t bytes) override {
    auto memory = std::make_unique<MpiSharedMemory>(rank(), bytes);
    char nothing = 0;
    broadcast(0, {&nothing, 1});  // it is zero from here on
    return memory;
  }

  // A number is sent at once, whether or not it will be received.
  int share_signal(int own) override {
    const std::lock_guard lock(mutex);
    int there = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kSignalTag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
    if (there != 0)
      check(MPI_Recv(&told_, 1, MPI_INT, MPI_ANY_SOURCE, kSignalTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
    if (own == 0 || has_told_) return told_;
    has_told_ = true;
    sent_ = own;
    for (int rank = 0; rank < size(); ++rank) {
      MPI_Request request;
      if (rank == this->rank()) continue;
      check(MPI_Isend(&sent_, 1, MPI_INT, rank, kSignalTag, MPI_COMM_WORLD, &request), "MPI_Isend");
      check(MPI_Request_free(&request), "MPI_Request_free");
    }
    return told_;
  }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

  void finish() override { check(MPI_Finalize(), "MPI_Finalize"); }

 private:
  int told_ = 0, sent_ = 0;  // by another rank, to the others
  bool has_told_ = false;
};

std::unique_ptr<Communicator> join() {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 4
  // Open MPI 4 takes `rdma` for windows between machines that have plain TCP only, where it makes none
  // (open-mpi/ompi issue 9871). Without it there are `ucx` for fast networks and `pt2pt`. What mpirun or the
  // environment says stays.
  setenv("OMPI_MCA_osc", "^rdma", 0);
#endif
  // Serialized: rank 0 hands out work from a thread of its own, and no other thread calls MPI meanwhile.
  int threads = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "MPI_Init_thread");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (threads < MPI_THREAD_SERIALIZED) throw ClusterError("this MPI serves one thread only");
  return std::make_unique<MpiCommunicator>();
}

constexpr MpiModule kModule = {kMpiModuleVersion, join};

}  // namespace

}  // namespace pointsman

extern "C" __attribute__((visibility("default"))) const pointsman::MpiModule* pointsman_mpi_module() {
  return &pointsman::kModule;
}
