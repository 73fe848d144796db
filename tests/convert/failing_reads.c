// SPDX-License-Identifier: BSL-1.0
//
// LD_PRELOAD: lets one reading call on a certain file fail. FAILING_FILE: its path; FAILING_CALL: the number of the call, from 1
// (0: none); FAILING_HOW: EIO, "short" (the file seems to end there), "truncate" (it is truncated to half by another, just
// before), or "crash". FAILING_COUNT: a file to which the number of calls is written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int calls;

static int is_it(int fd) {
  const char* name = getenv("FAILING_FILE");
  struct stat a, b;
  return name && fstat(fd, &a) == 0 && stat(name, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

// 0: go on; else what the call returns, and one more.
static ssize_t fails(int fd) {
  if (!is_it(fd)) return 0;
  const int n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  const char *at = getenv("FAILING_CALL"), *how = getenv("FAILING_HOW"), *count = getenv("FAILING_COUNT");
  if (count) {
    FILE* f = fopen(count, "w");
    if (f) {
      fprintf(f, "%d", n);
      fclose(f);
    }
  }
  if (!at || atoi(at) != n || !how) return 0;
  if (strcmp(how, "truncate") == 0) {
    struct stat s;
    const int other = open(getenv("FAILING_FILE"), O_WRONLY);
    if (other < 0 || fstat(other, &s) != 0 || ftruncate(other, s.st_size / 2) != 0) abort();
    close(other);
    return 0;
  }
  if (strcmp(how, "crash") == 0) raise(SIGSEGV);
  if (strcmp(how, "short") == 0) return 1;
  errno = EIO;
  return -1;
}

#define NEXT(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t pread(int fd, void* to, size_t size, off_t at) {
  const ssize_t r = fails(fd);
  return r < 0 ? r : r > 0 ? 0 : NEXT("pread", ssize_t(*)(int, void*, size_t, off_t))(fd, to, size, at);
}
// FAILING_HOW "open": whoever opens it gets EIO, whatever the number of the call.
static int cannot_open(const char* name) {
  const char *file = getenv("FAILING_FILE"), *how = getenv("FAILING_HOW");
  if (!file || !how || strcmp(how, "open") != 0 || strcmp(name, file) != 0) return 0;
  errno = EIO;
  return 1;
}
int open(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  return cannot_open(name) ? -1 : NEXT("open", int (*)(const char*, int, ...))(name, flags, mode);
}
int open64(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  return cannot_open(name) ? -1 : NEXT("open64", int (*)(const char*, int, ...))(name, flags, mode);
}
ssize_t pread64(int fd, void* to, size_t size, off64_t at) { return pread(fd, to, size, at); }
ssize_t read(int fd, void* to, size_t size) {
  const ssize_t r = fails(fd);
  return r < 0 ? r : r > 0 ? 0 : NEXT("read", ssize_t(*)(int, void*, size_t))(fd, to, size);
}
ssize_t copy_file_range(int from, off_t* at, int to, off_t* there, size_t size, unsigned flags) {
  const ssize_t r = fails(from);
  return r < 0 ? r
         : r > 0
             ? 0
             : NEXT("copy_file_range", ssize_t(*)(int, off_t*, int, off_t*, size_t, unsigned))(from, at, to, there, size, flags);
}
