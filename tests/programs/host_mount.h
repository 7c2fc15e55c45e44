// The parts of host_mount: host_mount.c has files and names, host_locks.c the locks.
#pragma once

#define FUSE_USE_VERSION 312
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

// Bytes of a write that is not in the store yet.
struct piece {
  struct piece* next;
  off_t at;
  size_t bytes;
  char data[];
};

struct node {
  struct node* next;
  ino_t inode;
  uint64_t lookups;
  unsigned opens;
  int path_fd;        // O_PATH
  int data_fd;        // -1 while the file is not open
  bool is_known;      // `known` counts
  struct stat known;  // as the last open found it
  struct piece* first;
  struct piece** last;
  size_t late_bytes;
  off_t late_end;
  struct timespec late_time;
};

// An open file of this host.
struct handle {
  bool writes;
  int lock_fd;  // for flock; -1: not used yet
};

static inline struct handle* handle_of(const struct fuse_file_info* info) {
  return (struct handle*)(uintptr_t)info->fh;
}

extern struct fuse_session* session;
extern bool is_stale;

struct node* node_of(fuse_ino_t number);
int reopened(const struct node* node, int flags);
// Writes to the store what waits. What cannot be written is dropped, as by a kernel.
bool publish(struct node* node);
// True if the file may have changed since the last call for it.
bool has_changed(struct node* node);

void lock_operations(struct fuse_lowlevel_ops* operations);
// Frees the locks of a process that has closed the file.
void leave_locks(struct node* node, uint64_t number);
bool has_waiting_locks(void);
// Gives locks to those who wait, if they are free now.
void try_locks_again(void);
