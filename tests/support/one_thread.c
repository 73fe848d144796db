/* SPDX-License-Identifier: BSL-1.0 */
/* Ends a process in which two threads are in libhdf5 at the same time: loaded before libhdf5 (LD_PRELOAD), it stands between the
 * program and each function that functions.inc names, as FUNCTION(H5Fopen). A libhdf5 without support for threads has to be
 * called so, and one that has it does not show where it is not. Each 16th call takes ONE_THREAD_DELAY microseconds longer, so
 * that two are likely to meet. All arguments are passed on as integers: functions with floating-point arguments, or any number of
 * them, must not be named. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic long owner; /* the thread that is in libhdf5, or 0 */
static __thread long depth, self;
static __thread unsigned calls;
static useconds_t delay;

__attribute__((constructor)) static void start(void) {
  const char* microseconds = getenv("ONE_THREAD_DELAY");
  void* frame;
  if (microseconds) delay = (useconds_t)atoi(microseconds);
  backtrace(&frame, 1); /* loads what it needs */
}

static void enter(const char* function) {
  long none = 0;
  if (depth++) return; /* libhdf5, or what it calls back */
  self = syscall(SYS_gettid);
  if (!atomic_compare_exchange_strong(&owner, &none, self)) {
    void* frames[64];
    fprintf(stderr, "two threads in libhdf5: %s\n", function);
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    _exit(99);
  }
  if (delay && ++calls % 16 == 0) usleep(delay);
}

static void leave(void) {
  if (--depth == 0) atomic_store(&owner, 0);
}

#define FUNCTION(name)                                                                        \
  long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) { \
    static long (*next)(long, long, long, long, long, long, long, long, long, long);          \
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name);                                      \
    enter(#name);                                                                             \
    const long result = next(a, b, c, d, e, f, g, h, i, j);                                   \
    leave();                                                                                  \
    return result;                                                                            \
  }
#include "functions.inc"
