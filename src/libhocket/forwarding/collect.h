// Collects small writes, which are sent later (close-to-open consistency; docs/design/collected-writes.md).
//
// The writes of a descriptor are collected if this process alone has its open file description, and no other descriptor
// of it. They lie in memory that the server has, with the descriptor, so that they survive this process. The offset of
// the description moves with each write as always. All that the process does with the file afterwards stores them
// first.
//
// The functions allocate nothing, keep errno, and may be called in handlers and children of vfork: all signals wait
// while a lock is held, so that no handler meets one of its own thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "forwarding/forward.h"

// True if this process collects anything. Set before `main`.
extern bool collect_is_on;

// Begins to collect, if the kernel tells what memory can be read. Called once, before `main`, and in a child that
// libc has forked. Children that were made otherwise collect nothing.
void collect_begin(void);

// False in a child that collects nothing, because of how it was made.
bool collect_is_mine(void);

// Collects the write. Returns false if it does not. What is collected of the file is then stored.
bool collect_write(const struct forward_data* data, int64_t bytes, ssize_t* result);
// True while the thread collects no further writes, because they are to be stored at once.
extern _Thread_local bool collect_avoids;

// Stores what is collected of the file that the descriptor refers to.
void collect_store_file(int fd);
// The same for a file by its numbers. Returns false if nothing was to be stored.
bool collect_store_inode(dev_t device, ino_t inode);
void collect_store_all(void);
// Stores what is collected by the descriptors from `first` to `last`, and lets no server keep a descriptor of them.
void collect_end(unsigned first, unsigned last);
void collect_end_all(void);

// Notes a mapping of the file, of which nothing is collected as long as it is there, or its end.
void collect_mapped(int fd, const void* where, size_t bytes);
void collect_unmapped(const void* where, size_t bytes);

// Returns the number of errno of a collected write that has failed, once; 0: none has.
int collect_take_error(int fd);
// Forgets such an error, because the descriptor is a new one.
void collect_opened(int fd);
