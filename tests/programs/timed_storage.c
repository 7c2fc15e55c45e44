// Preloaded: storage that takes $STORAGE_MS longer for each access, and logs the time of each action. With
// $STORAGE_SLOW_RANK it is slow for that rank only, with $STORAGE_SLOW (write or read) for such accesses only. While
// the file $STORAGE_LIMIT exists, a process makes no more slow accesses than the number in it.
//
// For files whose path contains "timed", each process appends lines to $STORAGE_LOG.PID, with CLOCK_MONOTONIC times in
// ns:
//
//   begun BEGIN END OFFSET 0               a slow access, or one held by the limit, before it is made
//   write|read BEGIN END OFFSET BYTES      a finished access
//   locked BEGIN END                       from before the request for a lock of the open file until its release
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NEXT(type, name) (*(type*)(void*[]){dlsym(RTLD_NEXT, name)})

typedef ssize_t pread_function(int, void*, size_t, off_t);
typedef ssize_t pwrite_function(int, const void*, size_t, off_t);
typedef int fcntl_function(int, int, ...);

static _Thread_local int64_t locked_since; /* 0: not locked */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int concerns(int fd) {
  char link[64], path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return getenv("STORAGE_LOG") && readlink(link, path, sizeof path - 1) > 0 && strstr(path, "timed");
}

static void note(const char* what, int64_t begin, int64_t offset, int64_t bytes) {
  char path[PATH_MAX], line[160];
  snprintf(path, sizeof path, "%s.%d", getenv("STORAGE_LOG"), (int)getpid());
  const int length = snprintf(line, sizeof line, "%s %lld %lld %lld %lld\n", what, (long long)begin, (long long)now(),
                              (long long)offset, (long long)bytes);
  const int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0 || write(log, line, (size_t)length) != length) _exit(3);
  close(log);
}

static int is_slow(const char* what) {
  const char *kind = getenv("STORAGE_SLOW"), *slow = getenv("STORAGE_SLOW_RANK");
  const char* rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  return (!kind || !strcmp(kind, what)) && (!slow || (rank && atoi(slow) == atoi(rank)));
}

static int limit(void) {
  const char* path = getenv("STORAGE_LIMIT");
  FILE* const file = path ? fopen(path, "r") : NULL;
  int most = INT_MAX;
  if (!file) return most;
  if (fscanf(file, "%d", &most) != 1) _exit(3);
  fclose(file);
  return most;
}

static int64_t begin_access(const char* what, int64_t offset) {
  static int begun;
  const int64_t begin = now();
  if (!is_slow(what)) return begin;
  const char* ms = getenv("STORAGE_MS");
  const int number = __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
  note("begun", begin, offset, 0);
  while (limit() < number) usleep(1000);
  if (ms) usleep((useconds_t)(atof(ms) * 1000));
  return begin;
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  pwrite_function* const next = NEXT(pwrite_function*, "pwrite");
  if (!concerns(fd)) return next(fd, data, bytes, at);
  const int64_t begin = begin_access("write", at);
  const ssize_t done = next(fd, data, bytes, at);
  note("write", begin, at, done);
  return done;
}

ssize_t pread(int fd, void* data, size_t bytes, off_t at) {
  pread_function* const next = NEXT(pread_function*, "pread");
  if (!concerns(fd)) return next(fd, data, bytes, at);
  const int64_t begin = begin_access("read", at);
  const ssize_t done = next(fd, data, bytes, at);
  note("read", begin, at, done);
  return done;
}

int fcntl(int fd, int command, ...) {
  va_list all;
  va_start(all, command);
  void* const argument = va_arg(all, void*);
  va_end(all);
  fcntl_function* const next = NEXT(fcntl_function*, "fcntl");
  const int is_lock = command == F_OFD_SETLKW && concerns(fd);
  if (is_lock && ((struct flock*)argument)->l_type != F_UNLCK && !locked_since) locked_since = now();
  const int rc = next(fd, command, argument);
  if (is_lock && ((struct flock*)argument)->l_type == F_UNLCK) {
    note("locked", locked_since, 0, 0);
    locked_since = 0;
  }
  return rc;
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }
ssize_t pread64(int fd, void* data, size_t bytes, off64_t at) { return pread(fd, data, bytes, at); }
int fcntl64(int, int, ...) __attribute__((alias("fcntl")));
