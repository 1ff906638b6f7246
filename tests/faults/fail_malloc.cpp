// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, refuses it memory: FAIL_MALLOC=K makes the K-th allocation since main() began
// fail, with FAIL_STICKY=1 all after it as well. FAIL_REPORT=FILE receives "hit" when one failed, and the
// number of allocations when the program ends. The clock stands still, so that equal runs write equal bytes.
// allocations.py uses it.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

using Main = int (*)(int, char**, char**);

std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
long failing = 0;  // 0: none
bool sticky = false;
const char* report_path = nullptr;
Main program_main = nullptr;
timespec start_time = {};

// The function that this library stands before: the C library's, or that of a checker preloaded after it.
template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Without memory, and so without stdio.
void report(const char* text) {
  if (report_path == nullptr) return;
  const int file = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
  const ssize_t written = write(file, text, strlen(text));
  (void)written;
  close(file);
}

bool is_refused() {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const long number = ++allocations;
  if (failing == 0 || number < failing || (number > failing && !sticky)) return false;
  if (number == failing) report("hit\n");
  errno = ENOMEM;
  return true;
}

int counted_main(int argc, char** argv, char** environment) {
  counting = true;
  return program_main(argc, argv, environment);
}

struct Setup {
  Setup() {
    const char* const number = getenv("FAIL_MALLOC");
    failing = number == nullptr ? 0 : atol(number);
    sticky = getenv("FAIL_STICKY") != nullptr;
    report_path = getenv("FAIL_REPORT");
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &start_time);
    unsetenv("LD_PRELOAD");  // what the program starts is not meant
  }
  ~Setup() {
    counting = false;
    char text[32];
    snprintf(text, sizeof text, "%ld\n", allocations.load());
    report(text);
  }
} setup;

}  // namespace

extern "C" {

void* malloc(size_t size) {
  static const auto real = next(malloc, "malloc");
  return is_refused() ? nullptr : real(size);
}

void* calloc(size_t count, size_t size) {
  static const auto real = next(calloc, "calloc");
  return is_refused() ? nullptr : real(count, size);
}

void* realloc(void* block, size_t size) {
  static const auto real = next(realloc, "realloc");
  return is_refused() ? nullptr : real(block, size);
}

void* memalign(size_t alignment, size_t size) {
  static const auto real = next(memalign, "memalign");
  return is_refused() ? nullptr : real(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int clock_gettime(clockid_t, timespec* time) noexcept {
  *time = start_time;
  return 0;
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const got = memalign(alignment, size);
  if (got == nullptr) return ENOMEM;
  *block = got;
  return 0;
}

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*loader)(),
                      void* stack) {
  program_main = main;
  return next(__libc_start_main, "__libc_start_main")(counted_main, argc, argv, init, fini, loader, stack);
}
}

// As the standard library's, on the malloc above: a checker's own would pass it by.
void* operator new(size_t size) {
  for (;;) {
    if (void* const block = malloc(size)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* block) noexcept { free(block); }
void operator delete[](void* block) noexcept { free(block); }
void operator delete(void* block, size_t) noexcept { free(block); }
void operator delete[](void* block, size_t) noexcept { free(block); }
