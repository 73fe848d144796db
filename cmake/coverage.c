/* SPDX-License-Identifier: BSL-1.0
 * In the preset `coverage` alone: processes that end by _exit() or of a signal they raise write their counts of lines first. The
 * linker puts these in place of the calls in our programs (--wrap, cmake/coverage.cmake). */
#include <signal.h>
#include <unistd.h>

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
int __real_raise(int signal_number);
int __wrap_raise(int signal_number);

void __wrap__exit(int status) {
  __gcov_dump();
  __real__exit(status);
}

int __wrap_raise(int signal_number) {
  __gcov_dump();
  return __real_raise(signal_number);
}
