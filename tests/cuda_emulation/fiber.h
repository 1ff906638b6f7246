// SPDX-License-Identifier: Apache-2.0
// Stackful fibers that the sanitizers understand. The emulation's sources are compiled without a sanitizer
// and call into one if the program has it: a fiber switch from instrumented code would confuse
// ThreadSanitizer's call stacks.
#pragma once

#include <cstddef>

namespace pointsman::emulation {

// A context that can be switched to: a fiber, or the host's thread while fibers run.
class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;

  // Makes it a fiber whose first switch enters entry(), which must not return.
  void create(void* stack_bottom, size_t stack_bytes, void (*entry)());
  // Forgets what it was doing; the next switch enters entry() again. Called by the host's context only.
  void restart();
  // Makes it stand for the thread that calls.
  void adopt_host();

  static void switch_to(Fiber& from, Fiber& to);

  // First thing in entry().
  static void entered();

 private:
  void prepare_stack();

  void* stack_pointer_ = nullptr;
  void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void (*entry_)() = nullptr;
  void* thread_sanitizer_ = nullptr;
  void* fake_stack_ = nullptr;
};

bool has_address_sanitizer();
bool has_thread_sanitizer();

// What the calling context did so far happens before what follows an acquire() of the same object.
void happens_before_release(void* object);
void happens_before_acquire(void* object);

}  // namespace pointsman::emulation
