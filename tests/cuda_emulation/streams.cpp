// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs. Work on a stream is kept back until something waits for it, so that what is
// read or written too early shows (docs/emulation.md).
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/emulation.h"

struct CUevent_st {
  uint64_t recorded = 0, happened = 0;  // how often it was recorded, and the last record that was reached
  std::chrono::steady_clock::time_point time;
};

namespace pointsman::emulation {
namespace {

// A piece of work. Of a record `event` is the event and `record` its number.
struct Operation {
  std::function<void()> run;
  const void* kind = nullptr;
  const CUevent_st* event = nullptr;
  uint64_t record = 0;
};

thread_local bool is_host_call = false;  // does this thread run a call of the host from a stream?

}  // namespace
}  // namespace pointsman::emulation

struct CUgraph_st {
  std::vector<pointsman::emulation::Operation> nodes;
};
struct CUgraphExec_st : CUgraph_st {};

struct CUstream_st {
  int device = 0;
  std::deque<pointsman::emulation::Operation> pending;
  cudaGraph_t captured = nullptr;  // what it is given goes there
  std::thread::id captured_by;
};

namespace pointsman::emulation {
namespace {

struct Queues {
  std::recursive_mutex mutex;  // held while work runs: it is done by one host thread at a time
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;  // executable ones, too
  std::minstd_rand random{static_cast<unsigned>(current_schedule().seed + 1)};
};

Queues& queues() {
  static Queues* const instance = new Queues;  // never destroyed, as the device
  return *instance;
}

void run_one(CUstream_st& stream) {
  const Operation operation = std::move(stream.pending.front());
  stream.pending.pop_front();  // first: it may throw
  operation.run();
}

void run_all(CUstream_st& stream) {
  while (!stream.pending.empty()) run_one(stream);
}

// Runs what stands before the record of an event, and the record.
void reach(const CUevent_st& event, uint64_t record) {
  for (const cudaStream_t stream : queues().streams) {
    const auto is_record = [&](const Operation& operation) {
      return operation.event == &event && operation.record == record;
    };
    while (event.happened < record &&
           std::any_of(stream->pending.begin(), stream->pending.end(), is_record)) {
      run_one(*stream);
    }
  }
}

// What a device does on its own after it got work. Forward: nothing before somebody waits for it. Reverse:
// all at once. Greedy: now and then something of some stream.
void progress(CUstream_st& stream) {
  const Schedule::Kind kind = current_schedule().kind;
  if (kind == Schedule::kReverse) run_all(stream);
  if (kind != Schedule::kGreedy) return;
  Queues& q = queues();
  for (const cudaStream_t other : q.streams) {
    while (!other->pending.empty() && q.random() % 4 == 0) run_one(*other);
  }
}

// One of the streams that have work, of which there are some.
CUstream_st& next_of_all() {
  std::vector<cudaStream_t> busy;
  for (const cudaStream_t stream : queues().streams) {
    if (!stream->pending.empty()) busy.push_back(stream);
  }
  if (current_schedule().kind == Schedule::kGreedy) return *busy[queues().random() % busy.size()];
  return **std::min_element(busy.begin(), busy.end(), [](cudaStream_t a, cudaStream_t b) {
    return a->pending.size() < b->pending.size();
  });
}

void push(CUstream_st& stream, Operation operation) {
  if (stream.captured != nullptr) return stream.captured->nodes.push_back(std::move(operation));
  stream.pending.push_back(std::move(operation));
  progress(stream);
}

cudaError_t refuse(const std::string& what) {
  complain(what + ": not a live handle");
  return cudaErrorInvalidResourceHandle;
}

// Work that fails where nobody can be told.
void run_to_the_end(CUstream_st& stream) {
  try {
    run_all(stream);
  } catch (const Error& error) {
    complain(error.what());
  }
}

}  // namespace

bool is_stream(cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  return stream == nullptr || queues().streams.count(stream) > 0;
}

int device_of(cudaStream_t stream) { return stream->device; }

void forbid_in_capture(const char* what, cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (is_host_call) complain(std::string(what) + ": in a call of the host from a stream");
  for (const cudaStream_t other : queues().streams) {
    const bool is_captured = other->captured != nullptr && other->captured_by == std::this_thread::get_id();
    if (is_captured && (stream == nullptr || stream == other))
      complain(std::string(what) + ": while a stream is captured");
  }
}

void count_work(cudaStream_t stream, Call call) {
  const std::lock_guard lock(queues().mutex);
  if (stream == nullptr || stream->captured == nullptr) return count_call(call);
  if (call == Call::kLaunch) count_call(Call::kNode);
}

void enqueue(cudaStream_t stream, std::function<void()> work, const void* kind) {
  const std::lock_guard lock(queues().mutex);
  if (is_host_call) complain("work for a stream: in a call of the host from a stream");
  if (stream != nullptr) return push(*stream, {std::move(work), kind});
  finish_all_streams();  // the default stream waits for all others
  work();
}

void finish_stream(cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (stream == nullptr) return finish_all_streams();
  run_all(*stream);
}

void finish_all_streams() {
  const std::lock_guard lock(queues().mutex);
  for (const cudaStream_t stream : queues().streams) run_to_the_end(*stream);
}

}  // namespace pointsman::emulation

using pointsman::emulation::is_stream;
using pointsman::emulation::queues;
using pointsman::emulation::refuse;

cudaError_t cudaDeviceSynchronize() {
  pointsman::emulation::forbid_in_capture("cudaDeviceSynchronize");
  pointsman::emulation::count_call(pointsman::emulation::Call::kWait);
  pointsman::emulation::finish_all_streams();
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const std::lock_guard lock(queues().mutex);
  *stream = *queues().streams.insert(new CUstream_st).first;
  return cudaGetDevice(&(*stream)->device);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (queues().streams.count(stream) == 0) return refuse("cudaStreamDestroy");
  pointsman::emulation::run_to_the_end(*stream);
  queues().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!is_stream(stream)) return refuse("cudaStreamSynchronize");
  pointsman::emulation::forbid_in_capture("cudaStreamSynchronize", stream);
  pointsman::emulation::count_call(pointsman::emulation::Call::kWait);
  pointsman::emulation::finish_stream(stream);
  return cudaSuccess;
}
// Each question finds one stream a piece of work further: the one with the least work, or greedy any.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (!is_stream(stream)) return refuse("cudaStreamQuery");
  pointsman::emulation::forbid_in_capture("cudaStreamQuery", stream);
  if (stream == nullptr || stream->pending.empty()) return cudaSuccess;
  pointsman::emulation::run_one(pointsman::emulation::next_of_all());
  return cudaErrorNotReady;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const std::lock_guard lock(queues().mutex);
  *event = *queues().events.insert(new CUevent_st).first;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(queues().mutex);
  if (queues().events.erase(event) == 0) return refuse("cudaEventDestroy");
  pointsman::emulation::reach(*event, event->recorded);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (queues().events.count(event) == 0 || !is_stream(stream)) return refuse("cudaEventRecord");
  pointsman::emulation::forbid_in_capture("cudaEventRecord, which is not emulated", stream);
  const uint64_t record = ++event->recorded;
  const auto happen = [event, record] {
    event->happened = record;
    event->time = std::chrono::steady_clock::now();
  };
  if (stream == nullptr) {
    pointsman::emulation::enqueue(stream, happen);
  } else {
    pointsman::emulation::push(*stream, {happen, nullptr, event, record});
  }
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(queues().mutex);
  if (queues().events.count(event) == 0) return refuse("cudaEventSynchronize");
  pointsman::emulation::count_call(pointsman::emulation::Call::kWait);
  pointsman::emulation::reach(*event, event->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->happened == 0 || end->happened == 0) {
    pointsman::emulation::complain("cudaEventElapsedTime: an event that was not recorded, or not waited for");
    return cudaErrorInvalidResourceHandle;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(queues().mutex);
  if (queues().events.count(event) == 0 || !is_stream(stream)) return refuse("cudaStreamWaitEvent");
  pointsman::emulation::forbid_in_capture("cudaStreamWaitEvent, which is not emulated", stream);
  pointsman::emulation::enqueue(
      stream, [event, record = event->recorded] { pointsman::emulation::reach(*event, record); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(queues().mutex);
  if (stream == nullptr || !is_stream(stream) || stream->captured != nullptr)
    return refuse("cudaStreamBeginCapture");
  if (mode != cudaStreamCaptureModeThreadLocal) pointsman::emulation::complain("a mode that is not emulated");
  stream->captured = *queues().graphs.insert(new CUgraph_st).first;
  stream->captured_by = std::this_thread::get_id();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(queues().mutex);
  if (stream == nullptr || !is_stream(stream) || stream->captured == nullptr ||
      stream->captured_by != std::this_thread::get_id())
    return refuse("cudaStreamEndCapture");
  *graph = std::exchange(stream->captured, nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard lock(queues().mutex);
  if (queues().graphs.count(graph) == 0) return refuse("cudaGraphInstantiate");
  pointsman::emulation::count_call(pointsman::emulation::Call::kInstantiation);
  *executable = new CUgraphExec_st{*graph};
  queues().graphs.insert(*executable);
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  const std::lock_guard lock(queues().mutex);
  if (queues().graphs.count(executable) == 0 || queues().graphs.count(graph) == 0)
    return refuse("cudaGraphExecUpdate");
  const auto same_kind = [](const pointsman::emulation::Operation& a,
                            const pointsman::emulation::Operation& b) { return a.kind == b.kind; };
  if (!std::equal(graph->nodes.begin(), graph->nodes.end(), executable->nodes.begin(),
                  executable->nodes.end(), same_kind))
    return cudaErrorGraphExecUpdateFailure;
  executable->nodes = graph->nodes;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(queues().mutex);
  if (queues().graphs.count(executable) == 0 || stream == nullptr || !is_stream(stream))
    return refuse("cudaGraphLaunch");
  pointsman::emulation::forbid_in_capture("cudaGraphLaunch, which is not emulated", stream);
  pointsman::emulation::count_call(pointsman::emulation::Call::kGraph);
  for (const pointsman::emulation::Operation& node : executable->nodes)
    pointsman::emulation::push(*stream, node);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(queues().mutex);
  if (queues().graphs.erase(graph) == 0) return refuse("cudaGraphDestroy");
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(queues().mutex);
  if (queues().graphs.erase(executable) == 0) return refuse("cudaGraphExecDestroy");
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* argument) {
  if (!is_stream(stream)) return refuse("cudaLaunchHostFunc");
  pointsman::emulation::enqueue(
      stream,
      [=] {
        pointsman::emulation::is_host_call = true;
        call(argument);
        pointsman::emulation::is_host_call = false;
      },
      reinterpret_cast<const void*>(call));
  return cudaSuccess;
}
