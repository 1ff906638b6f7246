// SPDX-License-Identifier: Apache-2.0
// One grid: clusters of blocks one after another, mostly of one block, the threads of a cluster as fibers
// that change only where threads meet.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace pointsman::emulation {
namespace {

constexpr int kMaxThreads = 1280;
constexpr int kWarp = 32;
constexpr int kMaxWarps = kMaxThreads / kWarp;
constexpr int kMaxCopies = 256;  // of a thread at once
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kCacheLine = 64;
constexpr size_t kRedZone = 512;  // at both ends of shared memory, without AddressSanitizer

struct Site {
  const char* file = nullptr;
  int line = 0;
  bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
  std::string text() const {
    const char* slash = std::strrchr(file, '/');
    return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
  }
};

enum class State { kReady, kAtBlock, kAtWarp, kAtCluster, kEnded };

// Into shared memory, on its way.
struct Copy {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
  int group;
};

struct Thread {
  uint3 index;    // threadIdx
  int block = 0;  // of the cluster
  State state = State::kEnded;
  Site site;
  WarpOp warp_op = WarpOp::kSync;
  uint32_t mask = 0;
  uint64_t value = 0;
  int argument = 0;
  int width = kWarp;
  uint64_t result = 0;
  bool arrived = false;  // at the cluster's barrier, in cluster_phase, and has not waited there yet
  unsigned cluster_phase = 0;
  // Copies on their way, a ring of kMaxCopies that begins at first_copy: nothing in it is ever moved, which
  // ThreadSanitizer would see.
  std::vector<Copy> copies;
  int first_copy = 0, copy_count = 0;
  int copy_group = 0;  // that the next copy belongs to
};

const char* name_of(BlockOp op) {
  static const char* const kNames[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                       "__syncthreads_or"};
  return kNames[static_cast<int>(op)];
}

const char* name_of(WarpOp op) {
  static const char* const kNames[] = {"__syncwarp",
                                       "__shfl_sync",
                                       "__shfl_up_sync",
                                       "__shfl_down_sync",
                                       "__shfl_xor_sync",
                                       "__ballot_sync",
                                       "__any_sync",
                                       "__all_sync",
                                       "__reduce_add_sync",
                                       "__reduce_min_sync",
                                       "__reduce_max_sync",
                                       "__reduce_min_sync",
                                       "__reduce_max_sync",
                                       "__reduce_and_sync",
                                       "__reduce_or_sync",
                                       "__reduce_xor_sync",
                                       "mma",
                                       "mma",
                                       "cluster_arrive",
                                       "cluster_wait"};
  return kNames[static_cast<int>(op)];
}

// Dynamic shared memory of one block: exactly its bytes for AddressSanitizer, else between two red zones.
class SharedMemory {
 public:
  void allocate(size_t bytes) {
    bytes_ = bytes;
    zone_ = has_address_sanitizer() ? 0 : kRedZone;
    storage_ = static_cast<unsigned char*>(std::malloc(bytes_ + 2 * zone_ + (bytes_ == 0)));
  }
  void release() {
    std::free(storage_);
    storage_ = nullptr;
  }
  void poison() {
    fill_red_zone(storage_, zone_);
    fill_poison(storage_ + zone_, bytes_);
    fill_red_zone(storage_ + zone_ + bytes_, zone_);
  }
  bool intact() const {
    return red_zone_intact(storage_, zone_) && red_zone_intact(storage_ + zone_ + bytes_, zone_);
  }
  // The block has ended: nobody may write here any more, and who reads gets NaN.
  void end() { fill_red_zone(storage_ + zone_, bytes_); }
  bool intact_since_end() const { return red_zone_intact(storage_ + zone_, bytes_); }
  // The bytes before `pointer`; more than there are: it points elsewhere.
  size_t offset(const void* pointer) const {
    return static_cast<size_t>(static_cast<const unsigned char*>(pointer) - (storage_ + zone_));
  }
  size_t bytes() const { return bytes_; }
  void* data() const { return storage_ + zone_; }

 private:
  unsigned char* storage_ = nullptr;
  size_t bytes_ = 0, zone_ = 0;
};

// Small and the same everywhere.
struct Random {
  uint64_t state;
  uint32_t next() {  // splitmix64
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
  }
  int below(int bound) { return static_cast<int>((uint64_t{next()} * static_cast<uint32_t>(bound)) >> 32); }
};

Schedule schedule_from_environment() {
  const char* text = std::getenv("POINTSMAN_EMULATION_SCHEDULE");
  const std::string name = text ? text : "forward";
  if (name == "forward") return {Schedule::kForward, 0};
  if (name == "reverse") return {Schedule::kReverse, 0};
  if (name.rfind("greedy:", 0) == 0) return {Schedule::kGreedy, std::strtoull(name.c_str() + 7, nullptr, 10)};
  std::fprintf(stderr,
               "cuda emulation: POINTSMAN_EMULATION_SCHEDULE is none of forward, reverse, greedy:<seed>\n");
  std::abort();
}

// ThreadSanitizer must see neighbouring clusters as unordered, so they take turns with two sets of fibers and
// of shared memory; a set's next cluster comes after its last one.
constexpr int kSets = 2;
constexpr int kMaxCluster = 8;

// A block of the cluster. __syncthreads: which call, who came, what the predicates give. Two objects of
// happens-before: with one, who wakes late would inherit what happened after the next barrier already.
struct Block {
  bool begun = false;
  int ended = 0;
  BlockOp op = BlockOp::kSync;
  Site site;
  int first = 0, arrived = 0, predicates = 0;
  unsigned phase = 0;
  char objects[kSets][2];
};

struct Machine {
  std::mutex mutex;
  Schedule schedule = schedule_from_environment();
  Fiber host;
  Fiber fibers[kSets][kMaxThreads];
  int created[kSets] = {0, 0};

  // The grid.
  std::string kernel;
  void (*body)(void*) = nullptr;
  void* context = nullptr;
  SharedMemory shared[kSets][kMaxCluster];
  char set_started[kSets], set_ended[kSets];  // objects of happens-before

  // The cluster. Block b has the places b * stride .. b * stride + count - 1 of all that is kept by thread; a
  // place is called "thread" here, too.
  int set = 0;
  int cluster_blocks = 1;
  int count = 0, stride = 0;  // threads of a block, and the places they take: whole warps
  int places = 0, warps = 0;  // of the cluster
  int ended = 0;
  int current = 0;
  uint3 first_block;
  Block blocks[kMaxCluster];
  Thread threads[kMaxThreads];
  uint32_t ready[kMaxWarps], at_warp[kMaxWarps],
      ended_lanes[kMaxWarps];  // the states again, as masks of lanes
  std::string error;

  // The cluster's barrier.
  int cluster_arrived = 0, cluster_first = 0;
  Site cluster_site;
  unsigned cluster_phase = 0;
  char cluster_objects[kSets][2];

  // __syncwarp, by warp and lowest lane of the mask.
  unsigned warp_phase[kMaxThreads];
  char warp_objects[kSets][kMaxThreads][2];

  // Greedy.
  Random random{0};
  int warp_order[kMaxWarps];  // highest priority first
  int lane_shift = 0;
};

Machine* const the_machine = new Machine;  // never destroyed: a kernel may run at the end of the program
Machine& machine() { return *the_machine; }

// ------------------------------------------------------------------------------ diagnostics

std::string thread_text(int thread) {
  const Machine& m = machine();
  const Thread& t = m.threads[thread];
  std::string text = "block " + std::to_string(m.first_block.x + static_cast<unsigned>(t.block));
  if (gridDim.y * gridDim.z > 1) text += "," + std::to_string(blockIdx.y) + "," + std::to_string(blockIdx.z);
  text += " thread " + std::to_string(t.index.x);
  if (blockDim.y * blockDim.z > 1) text += "," + std::to_string(t.index.y) + "," + std::to_string(t.index.z);
  return "[" + text + "]";
}

std::string hexadecimal(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08X", mask);
  return text;
}

// Notes what the current thread, or another, did wrong; then it must stop(). In two steps, as nothing on the
// stack that is left behind is ever destroyed.
void fault(const std::string& what, int thread) {
  machine().error = machine().kernel + ": " + what + " " + thread_text(thread);
}
void fault(const std::string& what) { fault(what, machine().current); }

// Ends the launch: the host's context throws.
[[noreturn]] void stop() {
  Machine& m = machine();
  Fiber::switch_to(m.fibers[m.set][m.current], m.host);
  std::abort();  // never continued
}

std::string deadlock_text() {
  const Machine& m = machine();
  std::map<std::tuple<std::string, uint32_t>, std::pair<int, int>>
      groups;  // where, mask -> threads, the first
  for (int i = 0; i < m.places; ++i) {
    const Thread& t = m.threads[i];
    if (t.state == State::kEnded) continue;
    const std::string name = t.state == State::kAtBlock     ? name_of(m.blocks[t.block].op)
                             : t.state == State::kAtCluster ? name_of(WarpOp::kClusterWait)
                                                            : name_of(t.warp_op);
    const uint32_t mask = t.state == State::kAtWarp ? t.mask : 0;
    ++groups.try_emplace({name + " at " + t.site.text(), mask}, 0, i).first->second.first;
  }
  std::string text = m.kernel + ": deadlock:";
  for (const auto& [key, group] : groups) {
    text += " " + std::to_string(group.first) + " threads wait in " + std::get<0>(key);
    if (std::get<1>(key) != 0) text += " mask " + hexadecimal(std::get<1>(key));
    text += " " + thread_text(group.second) + ";";
  }
  return text + " " + std::to_string(m.ended) + " threads have ended";
}

// ------------------------------------------------------------------------------ who runs next

void set_ready(int thread) {
  Machine& m = machine();
  m.threads[thread].state = State::kReady;
  m.ready[thread / kWarp] |= 1u << (thread % kWarp);
}

// First ready thread from `from` on, cyclic; -1: none.
int next_forward(int from) {
  const Machine& m = machine();
  int warp = from / kWarp;
  uint32_t bits = m.ready[warp] & (~0u << (from % kWarp));
  for (int i = 0; i <= m.warps; ++i) {
    if (bits != 0) return warp * kWarp + __builtin_ctz(bits);
    warp = warp + 1 == m.warps ? 0 : warp + 1;
    bits = m.ready[warp];
  }
  return -1;
}

int next_reverse(int from) {
  const Machine& m = machine();
  int warp = from / kWarp;
  uint32_t bits = m.ready[warp] & (~0u >> (kWarp - 1 - from % kWarp));
  for (int i = 0; i <= m.warps; ++i) {
    if (bits != 0) return warp * kWarp + kWarp - 1 - __builtin_clz(bits);
    warp = warp == 0 ? m.warps - 1 : warp - 1;
    bits = m.ready[warp];
  }
  return -1;
}

int next_greedy() {
  Machine& m = machine();
  if (m.random.below(256) == 0) {  // now and then the leader falls behind all others
    const int leader = m.warp_order[0];
    for (int i = 1; i < m.warps; ++i) m.warp_order[i - 1] = m.warp_order[i];
    m.warp_order[m.warps - 1] = leader;
  }
  for (int i = 0; i < m.warps; ++i) {
    const int warp = m.warp_order[i];
    const uint32_t bits = m.ready[warp];
    if (bits == 0) continue;
    const uint32_t above = bits & (~0u << m.lane_shift);
    return warp * kWarp + __builtin_ctz(above != 0 ? above : bits);
  }
  return -1;
}

int next_thread() {
  const Machine& m = machine();
  switch (m.schedule.kind) {
    case Schedule::kForward:
      return next_forward(m.current + 1 == m.places ? 0 : m.current + 1);
    case Schedule::kReverse:
      return next_reverse(m.current == 0 ? m.places - 1 : m.current - 1);
    case Schedule::kGreedy:
      return next_greedy();
  }
  return -1;
}

void make_current(int thread) {
  Machine& m = machine();
  m.current = thread;
  m.ready[thread / kWarp] &= ~(1u << (thread % kWarp));
  const Thread& t = m.threads[thread];
  blockIdx = {m.first_block.x + static_cast<unsigned>(t.block), m.first_block.y, m.first_block.z};
  threadIdx = t.index;
}

// Leaves the current thread, which waits or has ended, for one that can go on, or for the host if there is
// none.
void leave_current() {
  Machine& m = machine();
  const int from = m.current;
  const int to = next_thread();
  if (to == from) {
    make_current(to);
    return;
  }
  Fiber& target = to < 0 ? m.host : m.fibers[m.set][to];
  if (to >= 0) make_current(to);
  Fiber::switch_to(m.fibers[m.set][from], target);
}

// The current thread returned from the kernel; false: while others wait for it.
bool end_thread() {
  Machine& m = machine();
  m.threads[m.current].state = State::kEnded;
  m.ended_lanes[m.current / kWarp] |= 1u << (m.current % kWarp);
  ++m.ended;
  const int number = cluster_rank();
  Block& block = m.blocks[number];
  if (++block.ended == m.count && m.cluster_blocks > 1) m.shared[m.set][number].end();
  if (block.arrived != 0) {
    fault("a thread ends while " + thread_text(block.first) + " waits in " + name_of(block.op) + " at " +
          block.site.text());
  } else if (m.cluster_arrived != 0) {
    fault("a thread ends while " + thread_text(m.cluster_first) + " is at the cluster's barrier at " +
          m.cluster_site.text());
  } else {
    return true;
  }
  return false;
}

// What others of the cluster wrote to the block's memory before it began is lost.
void begin_block() {
  Machine& m = machine();
  const int number = cluster_rank();
  if (!std::exchange(m.blocks[number].begun, true) && m.cluster_blocks > 1) m.shared[m.set][number].poison();
}

void fiber_entry() {
  Fiber::entered();
  for (;;) {  // one CUDA thread a turn
    Machine& m = machine();
    happens_before_acquire(&m.set_started[m.set]);
    begin_block();
    m.body(m.context);
    if (!end_thread()) stop();
    happens_before_release(&m.set_ended[m.set]);
    leave_current();
  }
}

// ------------------------------------------------------------------------------ blocks and grids

void create_fibers(int set, int count) {
  Machine& m = machine();
  const size_t guard = 4096;
  for (int& i = m.created[set]; i < count; ++i) {
    // Stacks that all begin at the same place of a page would share a few sets of the cache.
    const size_t bytes = kStackBytes - static_cast<size_t>(i) * kCacheLine % guard;
    void* memory = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0)
      throw Error("no memory for a fiber's stack");
    m.fibers[set][i].create(static_cast<char*>(memory) + guard, bytes, fiber_entry);
  }
}

void start_cluster(Extent position, uint64_t first_number) {
  Machine& m = machine();
  m.first_block = {position.x, position.y, position.z};
  m.ended = 0;
  m.cluster_arrived = 0;
  for (int block = 0; block < m.cluster_blocks; ++block) {
    m.blocks[block].begun = false;
    m.blocks[block].ended = m.blocks[block].arrived = 0;
  }
  for (int warp = 0; warp < m.warps; ++warp) m.ready[warp] = m.at_warp[warp] = m.ended_lanes[warp] = 0;
  for (int i = 0; i < m.places; ++i) {
    m.warp_phase[i] = 0;
    m.threads[i].arrived = false;
    m.threads[i].first_copy = m.threads[i].copy_count = m.threads[i].copy_group = 0;
    m.threads[i].state = State::kEnded;
    if (i % m.stride < m.count) set_ready(i);
  }
  if (m.schedule.kind == Schedule::kGreedy) {
    m.random.state = m.schedule.seed * 0x9E3779B97F4A7C15ull + first_number;
    for (int i = 0; i < m.warps; ++i) {
      const int j = m.random.below(i + 1);
      m.warp_order[i] = m.warp_order[j];
      m.warp_order[j] = i;
    }
    m.lane_shift = m.random.below(kWarp);
  }
  m.current = m.schedule.kind == Schedule::kForward ? m.places - 1 : 0;  // its neighbour is the first
}

void abandon_fibers() {
  Machine& m = machine();
  for (int i = 0; i < m.places; ++i) m.fibers[m.set][i].restart();
}

// What the blocks of a cluster that has ended did to shared memory, if they should not have.
std::string shared_memory_fault(Extent position) {
  const Machine& m = machine();
  for (int block = 0; block < m.cluster_blocks; ++block) {
    const SharedMemory& shared = m.shared[m.set][block];
    const std::string where = " [block " + std::to_string(position.x + static_cast<unsigned>(block)) + "]";
    if (!shared.intact()) return m.kernel + ": the block wrote outside its shared memory" + where;
    if (m.cluster_blocks > 1 && !shared.intact_since_end())
      return m.kernel + ": another block wrote to its shared memory after it had ended" + where;
  }
  return "";
}

// Runs one cluster; returns what went wrong.
std::string run_cluster(Extent position, uint64_t first_number) {
  Machine& m = machine();
  happens_before_acquire(&m.set_ended[m.set]);
  for (int block = 0; block < m.cluster_blocks; ++block) m.shared[m.set][block].poison();
  happens_before_release(&m.set_started[m.set]);
  start_cluster(position, first_number);
  const int first = next_thread();
  make_current(first);
  m.error.clear();
  Fiber::switch_to(m.host, m.fibers[m.set][first]);
  if (m.error.empty() && m.ended < m.count * m.cluster_blocks) m.error = deadlock_text();
  if (!m.error.empty()) {
    abandon_fibers();
  } else {
    m.error = shared_memory_fault(position);
  }
  return m.error;
}

Extent block_position(uint64_t number, Extent grid) {
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
          static_cast<unsigned>(number / grid.x / grid.y)};
}

std::string run_clusters(Extent grid, int sets) {
  Machine& m = machine();
  const auto size = static_cast<uint64_t>(m.cluster_blocks);
  const uint64_t clusters = uint64_t{grid.x} * grid.y * grid.z / size;  // grid.x is a multiple of the size
  Random random{m.schedule.seed};
  const uint64_t start = m.schedule.kind == Schedule::kGreedy ? random.next() % clusters : 0;
  for (uint64_t i = 0; i < clusters; ++i) {
    const uint64_t number =
        size * (m.schedule.kind == Schedule::kReverse ? clusters - 1 - i : (start + i) % clusters);
    m.set = static_cast<int>(i % static_cast<uint64_t>(sets));
    std::string error = run_cluster(block_position(number, grid), number);
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace

void set_schedule(Schedule schedule) { machine().schedule = schedule; }
Schedule current_schedule() { return machine().schedule; }

void* dynamic_shared_memory() {
  Machine& m = machine();
  return m.shared[m.set][cluster_rank()].data();
}

void run_grid(const void* kernel, Extent grid, Extent block, int cluster, size_t shared_bytes,
              void (*body)(void*), void* context) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  m.kernel = kernel_name(kernel);
  record_launch(m.kernel, block.x * block.y * block.z, shared_bytes);
  m.count = static_cast<int>(block.x * block.y * block.z);
  m.cluster_blocks = cluster;
  m.stride = (m.count + kWarp - 1) / kWarp * kWarp;
  m.places = cluster * m.stride;
  if (m.places > kMaxThreads) throw Error(m.kernel + ": a cluster of more threads than are emulated");
  m.warps = m.places / kWarp;
  for (int i = 0; i < m.places; ++i) {
    const auto linear = static_cast<unsigned>(i % m.stride);
    m.threads[i].block = i / m.stride;
    m.threads[i].index = {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
  }
  m.body = body;
  m.context = context;
  gridDim = {grid.x, grid.y, grid.z};
  blockDim = {block.x, block.y, block.z};
  const int sets = has_thread_sanitizer() ? kSets : 1;
  m.host.adopt_host();
  for (int set = 0; set < sets; ++set) {
    create_fibers(set, m.places);
    for (int i = 0; i < cluster; ++i) m.shared[set][i].allocate(shared_bytes);
    happens_before_release(&m.set_started[set]);
  }
  std::string error = run_clusters(grid, sets);
  for (int set = 0; set < sets; ++set) {
    happens_before_acquire(&m.set_ended[set]);
    for (int i = 0; i < cluster; ++i) m.shared[set][i].release();
  }
  if (!error.empty()) throw Error(error);
  check_red_zones(m.kernel);
}

// ------------------------------------------------------------------------------ threads that meet

namespace {

// The first to come says what the barrier is; false: the current thread is at another.
bool arrive_at_block(Block& block, BlockOp op, Site site) {
  if (block.ended > 0) {
    fault(std::string(name_of(op)) + " at " + site.text() + " after a thread of the block has ended");
    return false;
  }
  if (block.arrived == 0) {
    block.op = op;
    block.site = site;
    block.first = machine().current;
    block.predicates = 0;
  } else if (block.op != op || !(block.site == site)) {
    fault("threads meet at different " + std::string(name_of(op)) + ": " + block.site.text() + " " +
          thread_text(block.first) + " and " + site.text());
    return false;
  }
  return true;
}

void finish_block_op(Block& block) {
  Machine& m = machine();
  const bool answers[] = {false, false, block.predicates == m.count, block.predicates > 0};
  const int result = block.op == BlockOp::kCount ? block.predicates : answers[static_cast<int>(block.op)];
  block.arrived = 0;
  ++block.phase;
  const int first = static_cast<int>(&block - m.blocks) * m.stride;
  for (int i = first; i < first + m.count; ++i) {
    m.threads[i].result = static_cast<uint64_t>(result);
    set_ready(i);
  }
}

}  // namespace

int meet_block(BlockOp op, bool predicate, const char* file, int line) {
  Machine& m = machine();
  Thread& self = m.threads[m.current];
  Block& block = m.blocks[self.block];
  self.site = {file, line};
  if (!arrive_at_block(block, op, self.site)) stop();
  const unsigned phase = block.phase % 2;
  block.predicates += predicate;
  self.state = State::kAtBlock;
  happens_before_release(&block.objects[m.set][phase]);
  if (++block.arrived == m.count) finish_block_op(block);
  leave_current();
  happens_before_acquire(&block.objects[m.set][phase]);
  return static_cast<int>(self.result);
}

// ------------------------------------------------------------------------------ copies

void copy_later(void* to, const void* from, size_t bytes, const char* file, int line) {
  constexpr uint32_t kFill[] = {kPoison, kPoison, kPoison, kPoison};
  Machine& m = machine();
  Thread& self = m.threads[m.current];
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes != 0 ||
      bytes > sizeof kFill) {
    fault("copy to shared memory at " + Site{file, line}.text() + " is not of up to 16 aligned bytes");
    stop();
  }
  // It may come at any time from here on: nobody may read what was there.
  std::memcpy(to, kFill, bytes);
  if (self.copies.empty()) self.copies.resize(kMaxCopies);
  if (self.copy_count == kMaxCopies) {
    fault("too many copies to shared memory on their way at " + Site{file, line}.text());
    stop();
  }
  self.copies[(self.first_copy + self.copy_count++) % kMaxCopies] = {to, from, bytes, self.copy_group};
}

void end_copy_group() { ++machine().threads[machine().current].copy_group; }

void finish_copies(int pending) {
  Thread& self = machine().threads[machine().current];
  const int last = self.copy_group - pending - 1;
  for (; self.copy_count > 0; --self.copy_count) {
    const Copy& copy = self.copies[self.first_copy];
    if (copy.group > last) return;
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, copy.bytes);
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
    self.first_copy = (self.first_copy + 1) % kMaxCopies;
  }
}

// ------------------------------------------------------------------------------ blocks of a cluster

int cluster_rank() { return machine().threads[machine().current].block; }

namespace {

// The barrier's halves are `.aligned`: all lanes of a warp execute the same one.
uint32_t lanes_of_warp() {
  const Machine& m = machine();
  return ~0u >> (kWarp - std::min(kWarp, m.count - m.current / kWarp * kWarp % m.stride));
}

}  // namespace

void arrive_at_cluster(const char* file, int line) {
  Machine& m = machine();
  Thread& self = m.threads[m.current];
  const Site site{file, line};
  meet_warp(WarpOp::kClusterArrive, lanes_of_warp(), 0, 0, kWarp, file, line);
  const char* wrong = self.arrived ? " twice, without a wait between" : " after a thread of it has ended";
  if (self.arrived || m.ended > 0) {
    fault(name_of(WarpOp::kClusterArrive) + (" at " + site.text()) + wrong);
    stop();
  }
  if (m.cluster_arrived == 0) {
    m.cluster_first = m.current;
    m.cluster_site = site;
  }
  self.arrived = true;
  self.cluster_phase = m.cluster_phase;
  happens_before_release(&m.cluster_objects[m.set][m.cluster_phase % 2]);
  if (++m.cluster_arrived < m.count * m.cluster_blocks) return;
  m.cluster_arrived = 0;
  ++m.cluster_phase;
  for (int i = 0; i < m.places; ++i) {
    if (m.threads[i].state == State::kAtCluster) set_ready(i);
  }
}

void wait_for_cluster(const char* file, int line) {
  Machine& m = machine();
  Thread& self = m.threads[m.current];
  meet_warp(WarpOp::kClusterWait, lanes_of_warp(), 0, 0, kWarp, file, line);
  if (!self.arrived) {
    fault(name_of(WarpOp::kClusterWait) + (" at " + self.site.text()) + " by a thread that has not arrived");
    stop();
  }
  if (self.cluster_phase == m.cluster_phase) {  // some have not arrived yet
    self.state = State::kAtCluster;
    leave_current();
  }
  self.arrived = false;
  happens_before_acquire(&m.cluster_objects[m.set][self.cluster_phase % 2]);
}

void* in_block_of_cluster(const void* own, int rank, const char* file, int line) {
  Machine& m = machine();
  const size_t offset = m.shared[m.set][cluster_rank()].offset(own);
  const bool has_block = rank >= 0 && rank < m.cluster_blocks;
  if (has_block && offset <= m.shared[m.set][rank].bytes()) {
    return static_cast<unsigned char*>(m.shared[m.set][rank].data()) + offset;
  }
  fault("in_block_of_cluster at " + Site{file, line}.text() + ": " +
        (has_block
             ? "not the block's shared memory"
             : "block " + std::to_string(rank) + " of a cluster of " + std::to_string(m.cluster_blocks)));
  stop();
}

namespace {

// Source lane of a shuffle; the lane itself where the hardware returns its own value.
int shuffle_source(WarpOp op, int lane, int argument, int width) {
  const int segment = lane & ~(width - 1), last = segment + width - 1;
  switch (op) {
    case WarpOp::kShuffleUp:
      return lane - argument < segment ? lane : lane - argument;
    case WarpOp::kShuffleDown:
      return lane + argument > last ? lane : lane + argument;
    case WarpOp::kShuffleXor:
      return (lane ^ argument) > last ? lane : lane ^ argument;
    default:
      return segment | (argument & (width - 1));
  }
}

uint64_t reduced(WarpOp op, uint64_t a, uint64_t b) {
  const auto first = static_cast<uint32_t>(a), second = static_cast<uint32_t>(b);
  const auto signed_first = static_cast<int32_t>(first), signed_second = static_cast<int32_t>(second);
  switch (op) {
    case WarpOp::kReduceAdd:
      return first + second;
    case WarpOp::kReduceMinSigned:
      return static_cast<uint32_t>(std::min(signed_first, signed_second));
    case WarpOp::kReduceMaxSigned:
      return static_cast<uint32_t>(std::max(signed_first, signed_second));
    case WarpOp::kReduceMinUnsigned:
      return std::min(first, second);
    case WarpOp::kReduceMaxUnsigned:
      return std::max(first, second);
    case WarpOp::kReduceAnd:
      return first & second;
    case WarpOp::kReduceOr:
      return first | second;
    default:
      return first ^ second;
  }
}

// d += a b of a warp, fragments as in PTX's mma.m16n8k8 .tf32 and .m16n8k16 .bf16: group = lane / 4, member =
// lane % 4; a[i] = A[group + 8 (i % 2)][k of i / 2], b[i] = B[k of i][group], d[i] = D[group + 8 (i / 2)][2
// member + i % 2]; k of i is member + 4 i, or with bf16 the pair 2 member + 8 i, 2 member + 8 i + 1.
template <bool kPairs>
void multiply_fragments(Thread* lanes) {
  // Half of a row's eight columns: one instruction for four sums.
  using Four = float __attribute__((vector_size(16)));
  float a[16][16];
  Four b[16][2], d[16][2];
  constexpr int kKept = kPairs ? 2 : 1;
  const auto number = [](uint32_t bits, int half) {  // the unit reads 19 bits of a tf32 number
    return std::bit_cast<float>(kPairs ? (half == 0 ? bits << 16 : bits & 0xFFFF0000u) : bits & 0xFFFFE000u);
  };
  const auto fragments = [lanes](int lane) -> MmaFragments& {
    return *reinterpret_cast<MmaFragments*>(lanes[lane].value);
  };
  const auto four_of = [&d](int lane, int i) -> Four& { return d[lane / 4 + 8 * (i / 2)][lane % 4 / 2]; };
  const auto place_of = [](int lane, int i) { return 2 * (lane % 2) + i % 2; };
  for (int lane = 0; lane < kWarp; ++lane) {
    const MmaFragments& f = fragments(lane);
    const int group = lane / 4, member = lane % 4;
    for (int half = 0; half < kKept; ++half) {
      const auto k = [&](int i) { return kKept * (member + 4 * i) + half; };
      for (int i = 0; i < 4; ++i) a[group + 8 * (i % 2)][k(i / 2)] = number(f.a[i], half);
      for (int i = 0; i < 2; ++i) b[k(i)][group / 4][group % 4] = number(f.b[i], half);
    }
    for (int i = 0; i < 4; ++i) four_of(lane, i)[place_of(lane, i)] = f.d[i];
  }
  for (int row = 0; row < 16; ++row) {
    Four low = d[row][0], high = d[row][1];
    for (int k = 0; k < 8 * kKept; ++k) {
      low += a[row][k] * b[k][0];
      high += a[row][k] * b[k][1];
    }
    d[row][0] = low, d[row][1] = high;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) fragments(lane).d[i] = four_of(lane, i)[place_of(lane, i)];
  }
}

// false: a lane reads from one that is not in the mask.
bool shuffle_lanes(Thread* lanes, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Thread& thread = lanes[lane];
    const int source = shuffle_source(thread.warp_op, lane, thread.argument, thread.width);
    if (((mask >> source) & 1) == 0) {
      fault(std::string(name_of(thread.warp_op)) + " at " + thread.site.text() + " reads lane " +
                std::to_string(source) + ", which is not in the mask " + hexadecimal(mask),
            static_cast<int>(&thread - machine().threads));
      return false;
    }
    thread.result = lanes[source].value;
  }
  return true;
}

// All lanes of the mask are there: works out every lane's result.
bool finish_warp_op(Thread* lanes, uint32_t mask) {
  const WarpOp op = lanes[__builtin_ctz(mask)].warp_op;
  if (op == WarpOp::kSync || op == WarpOp::kClusterArrive || op == WarpOp::kClusterWait) return true;
  if (op >= WarpOp::kShuffle && op <= WarpOp::kShuffleXor) return shuffle_lanes(lanes, mask);
  if (op == WarpOp::kMmaTf32 || op == WarpOp::kMmaBf16) {
    op == WarpOp::kMmaBf16 ? multiply_fragments<true>(lanes) : multiply_fragments<false>(lanes);
    return true;
  }
  uint32_t votes = 0;
  uint64_t total = lanes[__builtin_ctz(mask)].value;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    votes |= static_cast<uint32_t>(lanes[lane].value != 0) << lane;
    if (rest != mask) total = reduced(op, total, lanes[lane].value);
  }
  const uint64_t result = op == WarpOp::kBallot ? votes
                          : op == WarpOp::kAny  ? votes != 0
                          : op == WarpOp::kAll  ? votes == mask
                                                : total;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) lanes[__builtin_ctz(rest)].result = result;
  return true;
}

// What is wrong with a lane's arrival, by itself and next to those that wait; empty: nothing. One of the
// others is enough: each of them was compared when it came.
std::string mask_fault(int warp, int lane) {
  const Machine& m = machine();
  const Thread* const lanes = m.threads + warp * kWarp;
  const Thread& self = lanes[lane];
  const int lanes_there = std::min(kWarp, m.count - warp * kWarp % m.stride);
  if (((self.mask >> lane) & 1) == 0) return "does not name the calling lane " + std::to_string(lane);
  if ((self.mask & ~(~0u >> (kWarp - lanes_there))) != 0) return "names lanes that the block does not have";
  if (const uint32_t ended = self.mask & m.ended_lanes[warp]; ended != 0) {
    return "names lane " + std::to_string(__builtin_ctz(ended)) + ", which has ended";
  }
  const uint32_t waiting = self.mask & m.at_warp[warp];
  if (waiting == 0) return "";
  const Thread& other = lanes[__builtin_ctz(waiting)];
  if (other.warp_op == self.warp_op && other.mask == self.mask && other.site == self.site) return "";
  return "meets lane " + std::to_string(__builtin_ctz(waiting)) + " in " + name_of(other.warp_op) + " at " +
         other.site.text() + " with mask " + hexadecimal(other.mask);
}

bool arrive_at_warp(int warp, int lane) {
  const std::string wrong = mask_fault(warp, lane);
  if (wrong.empty()) return true;
  const Thread& self = machine().threads[warp * kWarp + lane];
  fault(std::string(name_of(self.warp_op)) + " at " + self.site.text() + ": mask " + hexadecimal(self.mask) +
        " " + wrong);
  return false;
}

}  // namespace

uint64_t meet_warp(WarpOp op, uint32_t mask, uint64_t value, int argument, int width, const char* file,
                   int line) {
  Machine& m = machine();
  const int warp = m.current / kWarp, lane = m.current % kWarp;
  Thread* const lanes = m.threads + warp * kWarp;
  Thread& self = lanes[lane];
  self.site = {file, line};
  self.warp_op = op;
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.width = width;
  self.state = State::kAtWarp;
  if (!arrive_at_warp(warp, lane)) stop();
  m.at_warp[warp] |= 1u << lane;
  // Only __syncwarp orders memory; the other operations exchange registers.
  const int leader = warp * kWarp + __builtin_ctz(mask);
  void* const object = &m.warp_objects[m.set][leader][m.warp_phase[leader] % 2];
  if (op == WarpOp::kSync) happens_before_release(object);
  if ((m.at_warp[warp] & mask) == mask) {
    if (!finish_warp_op(lanes, mask)) stop();
    ++m.warp_phase[leader];
    m.at_warp[warp] &= ~mask;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) set_ready(warp * kWarp + __builtin_ctz(rest));
  }
  leave_current();
  if (op == WarpOp::kSync) happens_before_acquire(object);
  return self.result;
}

}  // namespace pointsman::emulation
