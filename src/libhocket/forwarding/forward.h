// Forwards one call of the program, or says that the program must make it itself.
//
// Safe in signal handlers and in children of vfork. errno is changed only by a call that was forwarded and failed.
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

// True if this process forwards anything. Set before `main`.
extern bool forward_is_on;

// True if this process limits the size of files that it writes.
bool forward_is_limited(void);

struct forward_data {
  bool writes;
  int fd;
  const struct iovec* parts;
  int count;
  off64_t offset;    // -1: that of the open file description
  int flags;         // of preadv2, pwritev2
  int64_t began_ns;  // set if the program makes the call itself, and it is to be counted; else 0
};

// Forwards a read or write. Returns false if nothing was done. Else `result` is that of the call.
bool forward_access(struct forward_data* data, ssize_t* result);

// Has other nodes sync what they have written of the file (-1: of all files). Returns the number of errno, and keeps
// errno itself; 0: it is done, or there is nothing to do. The caller's own sync comes after it.
int forward_sync_elsewhere(int fd);

// Counts a call that the program has made itself, because the run has no servers. Returns its result.
ssize_t forward_direct(const struct forward_data* data, ssize_t result);

// Forwards copy_file_range, or sendfile if `is_sendfile`. An offset of NULL stands for that of the description; others
// are moved.
bool forward_copying(bool is_sendfile, int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags,
                     ssize_t* result);
