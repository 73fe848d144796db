// SPDX-License-Identifier: BSL-1.0
//
// LD_PRELOAD: lets one call that writes fail. FAIL_UNDER: text in the path of the files that count; FAIL_NTH: number of the call,
// from 1 (0: none); FAIL_ERRNO: what it fails with; FAIL_LOG: a file to which a letter is appended for each call, so that its
// size is their number.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls;

static int counts(const char* path) {
  const char *under = getenv("FAIL_UNDER"), *nth = getenv("FAIL_NTH"), *with = getenv("FAIL_ERRNO"), *log = getenv("FAIL_LOG");
  if (!under || !path || !strstr(path, under)) return 0;
  const int n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (log) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (syscall(SYS_write, fd, "x", 1) != 1) abort();
    syscall(SYS_close, fd);
  }
  if (!nth || atoi(nth) != n) return 0;
  errno = with ? atoi(with) : EIO;
  return 1;
}

// The path of a name in an open folder, or of an open file.
static const char* path_of(int fd, const char* name, char* room, size_t size) {
  if (name && (name[0] == '/' || fd == AT_FDCWD)) return name;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, room, size - 300);
  if (n < 0) return NULL;
  room[n] = '\0';
  if (name && strlen(name) < 256) strcat(strcat(room, "/"), name);
  return room;
}

static int fails(int fd, const char* name) {
  char room[4400];
  const int before = errno;
  const int bad = counts(path_of(fd, name, room, sizeof room));
  if (!bad) errno = before;
  return bad;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

#define MODE(flags, mode)        \
  mode_t mode = 0;               \
  if (flags & O_CREAT) {         \
    va_list list;                \
    va_start(list, flags);       \
    mode = va_arg(list, mode_t); \
    va_end(list);                \
  }
int open(const char* path, int flags, ...) {
  MODE(flags, mode)
  return writes(flags) && fails(AT_FDCWD, path) ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE(flags, mode)
  return writes(flags) && fails(AT_FDCWD, path) ? -1 : NEXT(open)(path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  MODE(flags, mode)
  return writes(flags) && fails(at, path) ? -1 : NEXT(openat)(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  MODE(flags, mode)
  return writes(flags) && fails(at, path) ? -1 : NEXT(openat)(at, path, flags, mode);
}
ssize_t write(int fd, const void* from, size_t size) { return fails(fd, NULL) ? -1 : NEXT(write)(fd, from, size); }
ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  return fails(fd, NULL) ? -1 : NEXT(pwrite)(fd, from, size, at);
}
ssize_t pwrite64(int fd, const void* from, size_t size, off64_t at) {
  return fails(fd, NULL) ? -1 : NEXT(pwrite)(fd, from, size, at);
}
ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* there, size_t size, unsigned flags) {
  return fails(to, NULL) ? -1 : NEXT(copy_file_range)(from, at, to, there, size, flags);
}
int ftruncate(int fd, off_t size) { return fails(fd, NULL) ? -1 : NEXT(ftruncate)(fd, size); }
int fsync(int fd) { return fails(fd, NULL) ? -1 : NEXT(fsync)(fd); }
int close(int fd) {  // it is closed all the same
  const int bad = fails(fd, NULL), error = errno;
  const int r = NEXT(close)(fd);
  if (bad) errno = error;
  return bad ? -1 : r;
}
int mkdir(const char* path, mode_t mode) { return fails(AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode); }
int mkdirat(int at, const char* path, mode_t mode) { return fails(at, path) ? -1 : NEXT(mkdirat)(at, path, mode); }
int rename(const char* from, const char* to) { return fails(AT_FDCWD, to) ? -1 : NEXT(rename)(from, to); }
int renameat(int at, const char* from, int there, const char* to) {
  return fails(there, to) ? -1 : NEXT(renameat)(at, from, there, to);
}
int renameat2(int at, const char* from, int there, const char* to, unsigned flags) {
  return fails(there, to) ? -1 : NEXT(renameat2)(at, from, there, to, flags);
}
int linkat(int at, const char* from, int there, const char* to, int flags) {
  return fails(there, to) ? -1 : NEXT(linkat)(at, from, there, to, flags);
}
