// An open file of the mount: one open file description of a program, for which this process has another one.
#pragma once

#include "forwarding/fuse/caller.h"
#include "forwarding/fuse/nodes.h"

struct handle {
  struct node* node;
  struct shared_fd* file;
  _Atomic int flags;  // of open, as far as fcntl changes them
};

static inline struct handle* handle_of(const struct fuse_file_info* info) {
  return (struct handle*)(uintptr_t)info->fh;  // NOLINT(performance-no-int-to-ptr)
}

static inline struct node* node_of(fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? nodes_root() : (struct node*)number;  // NOLINT(performance-no-int-to-ptr)
}

// True if the kernel maps files that it does not cache otherwise (since Linux 6.6). Then each read and write comes
// here, and sees what others have written. Else the kernel keeps pages until the file's time of change is another one.
extern bool is_uncached;

// The operations on data and locks. The others are in operations.c.
void data_operations(struct fuse_lowlevel_ops* operations);
void lock_operations(struct fuse_lowlevel_ops* operations);
// Takes over a descriptor of an open file, and tells the kernel its handle. Returns false if memory is lacking.
bool handle_begin(struct node* node, int fd, struct fuse_file_info* info);
void handle_end(struct handle* handle);
// Releases the locks of an owner in a file (`handle` NULL), or those that were set through the handle.
void locks_release(struct node* node, uint64_t owner, const struct handle* handle);
// Begins the thread that waits for locks. Returns false if it cannot.
bool locks_begin(void);
