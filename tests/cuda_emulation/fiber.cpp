// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulation/fiber.h"

#include <cstdint>
#include <cstring>

#if !defined(__x86_64__) || defined(POINTSMAN_EMULATION_UCONTEXT)
#include <ucontext.h>
#endif

extern "C" {
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
void __tsan_acquire(void* object) __attribute__((weak));
void __tsan_release(void* object) __attribute__((weak));
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old, size_t* size_old)
    __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile* address, size_t size) __attribute__((weak));
}

namespace pointsman::emulation {
namespace {

constexpr unsigned kNoSync = 1;  // a switch orders nothing: only barriers do

// The contexts of the switch under way, for the code that continues on the other stack.
Fiber* switching_from = nullptr;
Fiber* switching_to = nullptr;

}  // namespace

// ------------------------------------------------------------------------------ the switch itself

#if defined(__x86_64__) && !defined(POINTSMAN_EMULATION_UCONTEXT)

extern "C" void pointsman_emulation_switch(void** save_stack_pointer, void* load_stack_pointer);
asm(R"(
.text
.type pointsman_emulation_switch, @function
pointsman_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size pointsman_emulation_switch, . - pointsman_emulation_switch
)");

void Fiber::prepare_stack() {
  // Six registers, the address that `ret` takes, and a null return address for whoever walks the stack.
  constexpr size_t kWords = 8;
  auto* top = reinterpret_cast<uintptr_t*>(static_cast<char*>(stack_bottom_) + stack_bytes_);
  uintptr_t* frame = top - kWords;
  std::memset(frame, 0, kWords * sizeof(uintptr_t));
  frame[6] = reinterpret_cast<uintptr_t>(entry_);
  stack_pointer_ = frame;
}

#define POINTSMAN_SWITCH(from, to) pointsman_emulation_switch(&(from).stack_pointer_, (to).stack_pointer_)

#else  // any other processor: slow, as each switch is a system call

void Fiber::prepare_stack() {
  if (stack_pointer_ == nullptr) stack_pointer_ = new ucontext_t;
  auto* context = static_cast<ucontext_t*>(stack_pointer_);
  getcontext(context);
  context->uc_stack.ss_sp = stack_bottom_;
  context->uc_stack.ss_size = stack_bytes_;
  context->uc_link = nullptr;
  makecontext(context, entry_, 0);
}

#define POINTSMAN_SWITCH(from, to) \
  swapcontext(static_cast<ucontext_t*>((from).stack_pointer_), static_cast<ucontext_t*>((to).stack_pointer_))

#endif

// ------------------------------------------------------------------------------ fibers

bool has_address_sanitizer() { return __asan_unpoison_memory_region != nullptr; }
bool has_thread_sanitizer() { return __tsan_create_fiber != nullptr; }

void happens_before_release(void* object) {
  if (__tsan_release) __tsan_release(object);
}
void happens_before_acquire(void* object) {
  if (__tsan_acquire) __tsan_acquire(object);
}

void Fiber::create(void* stack_bottom, size_t stack_bytes, void (*entry)()) {
  stack_bottom_ = stack_bottom;
  stack_bytes_ = stack_bytes;
  entry_ = entry;
  if (has_thread_sanitizer()) thread_sanitizer_ = __tsan_create_fiber(0);
  prepare_stack();
}

void Fiber::restart() {
  if (has_address_sanitizer()) __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
  if (has_thread_sanitizer()) {
    // What it did on its stack comes before what its successor does there.
    void* host = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread_sanitizer_, kNoSync);
    __tsan_switch_to_fiber(host, 0);
    __tsan_destroy_fiber(thread_sanitizer_);
    thread_sanitizer_ = __tsan_create_fiber(0);
  }
  fake_stack_ = nullptr;
  prepare_stack();
}

void Fiber::adopt_host() {
  if (has_thread_sanitizer()) thread_sanitizer_ = __tsan_get_current_fiber();
#if !defined(__x86_64__) || defined(POINTSMAN_EMULATION_UCONTEXT)
  if (stack_pointer_ == nullptr) stack_pointer_ = new ucontext_t;
#endif
}

void Fiber::entered() {
  if (!__sanitizer_finish_switch_fiber) return;
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(switching_to->fake_stack_, &bottom, &bytes);
  if (switching_from->entry_ == nullptr) {  // the host: only now is its stack known
    switching_from->stack_bottom_ = const_cast<void*>(bottom);
    switching_from->stack_bytes_ = bytes;
  }
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  switching_from = &from;
  switching_to = &to;
  if (__sanitizer_start_switch_fiber) {
    __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_bottom_, to.stack_bytes_);
  }
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(to.thread_sanitizer_, kNoSync);
  POINTSMAN_SWITCH(from, to);
  entered();
}

}  // namespace pointsman::emulation
