#define _POSIX_C_SOURCE 200809L
#include "own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

// Stores "cannot DO PATH: why" of errno in text.
static void complain(char* text, const char* what, const char* path) {
  snprintf(text, TEXT, "cannot %s %.4000s: %s", what, path, strerror(errno));
}

int open_own_file(const char* file, int rank, int writes, char* path, char* text) {
  snprintf(path, TEXT, "%.4000s.%d", file, rank);
  const int descriptor = open(path, writes ? O_CREAT | O_WRONLY : O_RDONLY, 0600);
  if (descriptor < 0) complain(text, "open", path);
  return descriptor;
}

void move_in_own_file(int descriptor, const char* path, char* data, uint64_t bytes, uint64_t at, int writes,
                      char* text) {
  // A call may move fewer bytes than requested, so the rest is moved by further calls.
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t moved = writes ? pwrite(descriptor, data + done, bytes - done, (off_t)(at + done))
                                 : pread(descriptor, data + done, bytes - done, (off_t)(at + done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) {
      complain(text, writes ? "write" : "read", path);
      return;
    }
    // A read of 0 bytes is the end of the file.
    if (moved == 0) {
      snprintf(text, TEXT, "%.4000s ends at byte %llu, before the end of the requested data", path,
               (unsigned long long)(at + done));
      return;
    }
    done += (uint64_t)moved;
  }
}

void sync_own_file(int descriptor, const char* path, char* text) {
  if (fsync(descriptor) < 0) complain(text, "sync", path);
}

void close_own_file(int descriptor, const char* path, char* text) {
  if (close(descriptor) < 0) complain(text, "close", path);
}
