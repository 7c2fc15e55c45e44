// Preloaded: storage that silently changes one byte of each checkpoint, the one at offset 5000.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*pwrite_function)(int, const void*, size_t, off_t);
typedef ssize_t (*pwritev_function)(int, const struct iovec*, int, off_t);

static int is_checkpoint(int fd) {
  char link[64], path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/checkpoint-") != NULL;
}

static void spoil(int fd, off_t at, ssize_t done) {
  pwrite_function next;
  *(void**)&next = dlsym(RTLD_NEXT, "pwrite");
  if (at <= 5000 && 5000 < at + done && is_checkpoint(fd)) next(fd, "?", 1, 5000);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  pwrite_function next;
  *(void**)&next = dlsym(RTLD_NEXT, "pwrite");
  ssize_t done = next(fd, data, bytes, at);
  spoil(fd, at, done);
  return done;
}

ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t at) {
  pwritev_function next;
  *(void**)&next = dlsym(RTLD_NEXT, "pwritev");
  ssize_t done = next(fd, pieces, count, at);
  spoil(fd, at, done);
  return done;
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }
ssize_t pwritev64(int fd, const struct iovec* pieces, int count, off64_t at) { return pwritev(fd, pieces, count, at); }
