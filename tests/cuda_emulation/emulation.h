// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels from their own source on a host: one fiber for every CUDA thread, block after block
// (docs/emulation.md). The tests read the first part; the second is what shadow/ is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

struct CUstream_st;

namespace pointsman::emulation {

// What a kernel did wrong, with file, line, block and thread. Thrown from the launch on the default stream,
// or from what waits for it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Which of the threads that could go on does so. Greedy: warps have random priorities, a warp runs until it
// is stuck, and now and then falls behind all others; seeds differ. The environment variable
// POINTSMAN_EMULATION_SCHEDULE (forward, reverse, greedy:<seed>) sets the first one. Blocks run in the order
// of the schedule, too.
struct Schedule {
  enum Kind { kForward, kReverse, kGreedy };
  Kind kind = kForward;
  uint64_t seed = 0;
};
void set_schedule(Schedule schedule);
Schedule current_schedule();

// How many devices there are; at first 1. They share the memory.
void set_device_count(int count);

// The device's memory; at first POINTSMAN_EMULATION_MEMORY bytes, or 1 GiB.
void set_device_memory(size_t total_bytes);
size_t allocated_bytes();

// Demangled names of all kernels launched so far. The file POINTSMAN_EMULATION_RECORD gets a line for each
// way in which one was launched: name, threads a block, bytes of dynamic shared memory, the device's
// architecture, with tabs between.
std::vector<std::string> launched_kernels();

// What the host asked of the device so far: kernels and cuBLAS products launched; copies and fills enqueued;
// how often it waited for the device, in a call for that or in one that waits by the way: cudaFree,
// cudaMemcpy, a copy of memory that is not page-locked; graphs launched, whose kernels and products count as
// nodes; and graphs instantiated.
struct Calls {
  int64_t launches = 0, copies = 0, waits = 0, graphs = 0, nodes = 0, instantiations = 0;

  Calls operator-(const Calls& earlier) const {
    return {launches - earlier.launches, copies - earlier.copies, waits - earlier.waits,
            graphs - earlier.graphs,     nodes - earlier.nodes,   instantiations - earlier.instantiations};
  }
};
Calls calls();

// Complaints about calls of the runtime (double free, copy past an allocation): counted here and written to
// stderr.
int complaints();

// ------------------------------------------------------------------------------ for shadow/ only

enum class BlockOp { kSync, kCount, kAnd, kOr };
enum class WarpOp {
  kSync,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kReduceAdd,
  kReduceMinSigned,
  kReduceMaxSigned,
  kReduceMinUnsigned,
  kReduceMaxUnsigned,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  kMmaTf32,
  kMmaBf16,
  kClusterArrive,
  kClusterWait,
};

// All threads of the block meet; returns the result of the predicates.
int meet_block(BlockOp op, bool predicate, const char* file, int line);

// The lanes of `mask` meet; returns the lane's result. argument: source lane, delta or lane mask of a
// shuffle.
uint64_t meet_warp(WarpOp op, uint32_t mask, uint64_t value, int argument, int width, const char* file,
                   int line);

// What a lane hands to meet_warp (as an address) for d += a b with m16n8k8 (tf32) or m16n8k16 (bf16)
// tiles; fragments as in PTX.
struct MmaFragments {
  float d[4];
  uint32_t a[4];
  uint32_t b[2];
};

void* dynamic_shared_memory();

// Copies of the calling thread, made when it waits for their group and not before; until then there is the
// fill value where they go. from null: zeros. finish_copies: makes those of all groups but the newest
// `pending`.
void copy_later(void* to, const void* from, size_t bytes, const char* file, int line);
void end_copy_group();
void finish_copies(int pending);

// Blocks of a cluster. A thread arrives, and then waits until all threads of the cluster have arrived.
int cluster_rank();
void arrive_at_cluster(const char* file, int line);
void wait_for_cluster(const char* file, int line);
// What lies in block `rank`'s shared memory where `own` lies in the calling thread's.
void* in_block_of_cluster(const void* own, int rank, const char* file, int line);

// Work on streams (streams.cpp). It is done later, in the stream's order; that of the default stream (null)
// at once, after all that is pending. finish_stream: now.
bool is_stream(CUstream_st* stream);
int device_of(CUstream_st* stream);  // not the default stream's
// kind: two graphs whose work is of the same kinds may take each other's place; a kernel's is its address.
void enqueue(CUstream_st* stream, std::function<void()> work, const void* kind = nullptr);
void finish_stream(CUstream_st* stream);
void finish_all_streams();
// Complains of a call that a captured stream, or a call of the host from a stream, forbids. stream: that it
// is for; null: any that this thread captures.
void forbid_in_capture(const char* what, CUstream_st* stream = nullptr);

struct Extent {
  unsigned x, y, z;
};
// body(context) is one thread of the kernel whose address is `kernel`; `cluster` neighbouring blocks run
// together.
void run_grid(const void* kernel, Extent grid, Extent block, int cluster, size_t shared_bytes,
              void (*body)(void*), void* context);

// What new memory holds, word after word: no number as float or as double; as an integer too large for an
// index, and neither 0 nor -1, which kernels use themselves.
inline constexpr uint32_t kPoison = 0x7FFDCDCDu;
void fill_poison(unsigned char* data, size_t bytes);

// What lies before and behind an array without AddressSanitizer: NaNs that differ from word to word, so that
// copying one red zone to another shows, too.
void fill_red_zone(unsigned char* zone, size_t bytes);
bool red_zone_intact(const unsigned char* zone, size_t bytes);

// Throws Error when a red zone of device memory was written.
void check_red_zones(const std::string& kernel);
// Is [pointer, pointer + bytes) inside one allocation of device memory?
bool is_device_range(const void* pointer, size_t bytes);
void complain(const std::string& what);
enum class Call { kLaunch, kCopy, kWait, kGraph, kNode, kInstantiation };
void count_call(Call call);
// The same of work for a stream, which may be captured.
void count_work(CUstream_st* stream, Call call);
std::string kernel_name(const void* kernel);
void record_launch(const std::string& name, unsigned threads, size_t shared_bytes);
const char* architecture();  // of the emulated device: sm_80 or sm_90

}  // namespace pointsman::emulation
