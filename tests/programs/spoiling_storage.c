// Preloaded: storage that spoils one byte of each checkpoint, the one at offset 5000, while it says that all is well.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*pwrite_function)(int, const void*, size_t, off_t);

static int is_checkpoint(int fd) {
  char link[64], path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/checkpoint-") != NULL;
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  pwrite_function next;
  *(void**)&next = dlsym(RTLD_NEXT, "pwrite");
  ssize_t done = next(fd, data, bytes, at);
  if (at <= 5000 && 5000 < at + done && is_checkpoint(fd)) next(fd, "?", 1, 5000);
  return done;
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }
