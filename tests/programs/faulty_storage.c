// Preloaded: storage that fails at one rank, or moves less than requested.
//
//   HOCKET_FAULT="rank=1 call=write after=2 times=1 errno=28"   after two accesses the next one fails with ENOSPC
//   HOCKET_FAULT="rank=0 call=read short=1000"                  each access moves 1000 bytes at most
//
// It counts pread and pwrite with their other forms, for files whose path contains "faulty". `call` is read or write.
// `times` is the number of failures (default 1; 0: always). A process reports its first fault on stderr, so that a test
// sees it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
  int active, writes;
  long after, times, error, most;
} fault;
static atomic_long accesses;

static long number(const char* text, const char* key, long otherwise) {
  const char* found = strstr(text, key);
  return found ? strtol(found + strlen(key), NULL, 10) : otherwise;
}

__attribute__((constructor)) static void read_fault(void) {
  const char* text = getenv("HOCKET_FAULT");
  const char* rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  if (!text || !rank || atol(rank) != number(text, "rank=", -1)) return;
  fault.writes = strstr(text, "call=write") != NULL;
  fault.after = number(text, "after=", 0);
  fault.times = number(text, "times=", 1);
  fault.error = number(text, "errno=", 0);
  fault.most = number(text, "short=", 0);
  fault.active = 1;
}

static int concerns(int fd, int writes) {
  char link[64], path[PATH_MAX] = "";
  if (!fault.active || fault.writes != writes) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "faulty") != NULL;
}

// Returns the number of bytes that the access may move, or -1 if it fails, with errno set.
static ssize_t allowed(int fd, int writes, size_t bytes) {
  if (!concerns(fd, writes)) return (ssize_t)bytes;
  const long access = atomic_fetch_add(&accesses, 1) - fault.after;
  if (access < 0 || (fault.error && fault.times && access >= fault.times)) return (ssize_t)bytes;
  if (access == 0 && write(2, "faulty_storage: strikes\n", 24) < 0) _exit(3);
  if (fault.error) {
    errno = (int)fault.error;
    return -1;
  }
  return bytes > (size_t)fault.most ? (ssize_t)fault.most : (ssize_t)bytes;
}

#define NEXT(type, name) (*(type*)(void*[]){dlsym(RTLD_NEXT, name)})

typedef ssize_t pread_function(int, void*, size_t, off_t);
typedef ssize_t pwrite_function(int, const void*, size_t, off_t);
typedef ssize_t vector_function(int, const struct iovec*, int, off_t);

ssize_t pread(int fd, void* data, size_t bytes, off_t at) {
  const ssize_t most = allowed(fd, 0, bytes);
  return most < 0 ? -1 : NEXT(pread_function*, "pread")(fd, data, (size_t)most, at);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  const ssize_t most = allowed(fd, 1, bytes);
  return most < 0 ? -1 : NEXT(pwrite_function*, "pwrite")(fd, data, (size_t)most, at);
}

static ssize_t move_pieces(int fd, const struct iovec* pieces, int count, off_t at, int writes) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  const ssize_t most = allowed(fd, writes, bytes);
  if (most < 0) return -1;
  if ((size_t)most == bytes) return NEXT(vector_function*, writes ? "pwritev" : "preadv")(fd, pieces, count, at);
  const size_t first = pieces[0].iov_len < (size_t)most ? pieces[0].iov_len : (size_t)most;
  return writes ? NEXT(pwrite_function*, "pwrite")(fd, pieces[0].iov_base, first, at)
                : NEXT(pread_function*, "pread")(fd, pieces[0].iov_base, first, at);
}

ssize_t preadv(int fd, const struct iovec* pieces, int count, off_t at) {
  return move_pieces(fd, pieces, count, at, 0);
}
ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t at) {
  return move_pieces(fd, pieces, count, at, 1);
}
ssize_t pread64(int fd, void* data, size_t bytes, off64_t at) { return pread(fd, data, bytes, at); }
ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }
ssize_t preadv64(int fd, const struct iovec* pieces, int count, off64_t at) { return preadv(fd, pieces, count, at); }
ssize_t pwritev64(int fd, const struct iovec* pieces, int count, off64_t at) { return pwritev(fd, pieces, count, at); }
