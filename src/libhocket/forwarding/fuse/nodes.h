// The files that the kernel knows of, by device and inode, and descriptors by which they are reached.
//
// A node keeps a descriptor without rights (O_PATH), or shares that of an open file. If there are too many of the
// former, some are closed. They are opened again by name, and only if the name still has the same file.
//
// Thread-safe. Functions that fail set errno.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct node;

// A descriptor that stays open as long as it has users.
struct shared_fd {
  int fd;
  _Atomic int users;
};

// Takes over a descriptor, with one user. Returns NULL if it is none, or if memory is lacking; it is closed then.
struct shared_fd* shared_fd_of(int fd);
struct shared_fd* shared_fd_use(struct shared_fd* shared);
void shared_fd_leave(struct shared_fd* shared);

// Makes the first node, for the directory. At most `most_kept` descriptors without rights are kept. Returns false if
// memory is lacking.
bool nodes_begin(int directory, int most_kept);
struct node* nodes_root(void);

// Returns a node that the kernel learns of by an answer, which counts as one look-up. `fd` is taken over; it is of the
// file. Returns NULL if it fails.
struct node* node_found(struct node* parent, const char* name, int fd, struct stat* about);
// Notes that the kernel has forgotten that many look-ups.
void node_forgotten(struct node* node, uint64_t lookups);
// Notes the new name of the file that has it now.
void node_renamed(struct node* parent, const char* name);

// Returns a descriptor of the file, which the caller leaves; NULL if the file is not to be found.
struct shared_fd* node_reach(struct node* node);
// Notes that the file was opened, or that this descriptor will be closed. In between it is the node's own.
void node_opened(struct node* node, struct shared_fd* opened);
void node_closing(struct node* node, struct shared_fd* opened);

// Opens a file anew by any descriptor of it, with the rights of the caller. Returns the descriptor, or -1.
int reopen(int fd, int flags);
// Puts the path by which /proc has a descriptor of this process.
enum { fd_path_bytes = 32 };
void fd_path(int fd, char path[fd_path_bytes]);
