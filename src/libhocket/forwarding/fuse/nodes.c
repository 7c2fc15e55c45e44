#define _GNU_SOURCE
#include "forwarding/fuse/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { buckets = 1 << 16 };

struct node {
  dev_t device;
  ino_t inode;
  uint64_t lookups;
  unsigned children;      // nodes whose parent this is
  unsigned opens;         // of this file
  struct shared_fd* own;  // NULL: to be opened again
  bool is_open;           // `own` is that of an open file
  struct node* parent;    // where it was last found
  char* name;
  struct node* next;           // of its bucket
  struct node *newer, *older;  // of those that keep a descriptor without rights
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct node* table[buckets];
static struct node root;
static struct node *newest, *oldest;  // of those that keep one
static int kept, most_kept;

// ---- descriptors ---------------------------------------------------------------------------------------------------

struct shared_fd* shared_fd_of(int fd) {
  if (fd < 0) return NULL;
  struct shared_fd* const shared = malloc(sizeof *shared);
  if (!shared) {
    close(fd);
    errno = ENOMEM;
    return NULL;
  }
  shared->fd = fd;
  atomic_init(&shared->users, 1);
  return shared;
}

struct shared_fd* shared_fd_use(struct shared_fd* shared) {
  if (shared) atomic_fetch_add(&shared->users, 1);
  return shared;
}

void shared_fd_leave(struct shared_fd* shared) {
  if (!shared || atomic_fetch_sub(&shared->users, 1) != 1) return;
  const int before = errno;
  close(shared->fd);
  free(shared);
  errno = before;
}

void fd_path(int fd, char path[fd_path_bytes]) { snprintf(path, fd_path_bytes, "/proc/self/fd/%d", fd); }

int reopen(int fd, int flags) {
  char path[fd_path_bytes];
  fd_path(fd, path);
  return open(path, flags | O_CLOEXEC);
}

// ---- descriptors that nodes keep, and unused nodes ------------------------------------------------------------------
// All of these are called with the mutex.

static void unlist(struct node* node) {
  *(node->newer ? &node->newer->older : &newest) = node->older;
  *(node->older ? &node->older->newer : &oldest) = node->newer;
  node->newer = node->older = NULL;
  --kept;
}

static void drop_own(struct node* node) {
  if (!node->own) return;
  if (!node->is_open && node != &root) unlist(node);
  shared_fd_leave(node->own);
  node->own = NULL;
  node->is_open = false;
}

static void keep(struct node* node, struct shared_fd* shared) {
  drop_own(node);
  node->own = shared;
  node->older = newest;
  *(newest ? &newest->newer : &oldest) = node;
  newest = node;
  for (++kept; kept > most_kept && oldest != node;) drop_own(oldest);
}

static struct node** bucket_of(dev_t device, ino_t inode) {
  return &table[(inode ^ inode >> 16 ^ device * 31) % buckets];
}

// Frees a node that nobody needs, and then its parents.
static void free_unused(struct node* node) {
  while (node != &root && node->lookups == 0 && node->children == 0 && node->opens == 0) {
    struct node** at = bucket_of(node->device, node->inode);
    while (*at != node) at = &(*at)->next;
    *at = node->next;
    drop_own(node);
    struct node* const parent = node->parent;
    free(node->name);
    free(node);
    --parent->children;
    node = parent;
  }
}

// Opens the file again by its name. It may have another one by now, and the name another file.
static bool find_again(struct node* node) {
  if (node->own) return true;
  if (!find_again(node->parent)) return false;
  const int fd = openat(node->parent->own->fd, node->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat about;
  if (fd >= 0 && (fstat(fd, &about) != 0 || about.st_ino != node->inode || about.st_dev != node->device)) {
    close(fd);
    errno = ESTALE;
    return false;
  }
  if (fd < 0 && errno == ENOENT) errno = ESTALE;
  struct shared_fd* const shared = shared_fd_of(fd);
  if (shared) keep(node, shared);
  return shared != NULL;
}

struct shared_fd* node_reach(struct node* node) {
  pthread_mutex_lock(&mutex);
  struct shared_fd* const found = find_again(node) ? shared_fd_use(node->own) : NULL;
  pthread_mutex_unlock(&mutex);
  return found;
}

void node_opened(struct node* node, struct shared_fd* opened) {
  pthread_mutex_lock(&mutex);
  ++node->opens;
  if (!node->is_open && node != &root) {
    drop_own(node);
    node->own = shared_fd_use(opened);
    node->is_open = true;
  }
  pthread_mutex_unlock(&mutex);
}

void node_closing(struct node* node, struct shared_fd* opened) {
  pthread_mutex_lock(&mutex);
  if (node->is_open && node->own == opened) {
    struct shared_fd* const path = shared_fd_of(reopen(opened->fd, O_PATH));
    drop_own(node);
    if (path) keep(node, path);
  }
  --node->opens;
  free_unused(node);
  pthread_mutex_unlock(&mutex);
}

// ---- the table -----------------------------------------------------------------------------------------------------

static struct node* find(dev_t device, ino_t inode) {
  if (root.device == device && root.inode == inode) return &root;
  struct node* node = *bucket_of(device, inode);
  while (node && (node->inode != inode || node->device != device)) node = node->next;
  return node;
}

// A directory is never put below itself, although it may seem to be there while others rename.
static bool is_above(const struct node* node, const struct node* other) {
  while (other != &root && other != node) other = other->parent;
  return other == node;
}

static bool set_name(struct node* node, struct node* parent, const char* name) {
  if (node == &root || is_above(node, parent)) return true;
  if (node->name && node->parent == parent && strcmp(node->name, name) == 0) return true;
  char* const copy = strdup(name);
  if (!copy) return false;
  struct node* const before = node->parent;
  ++parent->children;
  free(node->name);
  node->name = copy;
  node->parent = parent;
  if (before) {
    --before->children;
    free_unused(before);
  }
  return true;
}

static struct node* new_node(struct node* parent, const char* name, const struct stat* about) {
  struct node* const node = calloc(1, sizeof *node);
  if (!node || !set_name(node, parent, name)) {
    free(node);
    errno = ENOMEM;
    return NULL;
  }
  node->device = about->st_dev;
  node->inode = about->st_ino;
  struct node** const bucket = bucket_of(node->device, node->inode);
  node->next = *bucket;
  return *bucket = node;
}

struct node* node_found(struct node* parent, const char* name, int fd, struct stat* about) {
  struct shared_fd* const shared = shared_fd_of(fd);
  if (!shared) return NULL;
  struct node* node = NULL;
  pthread_mutex_lock(&mutex);
  if (fstat(fd, about) == 0) {
    node = find(about->st_dev, about->st_ino);
    if (!node)
      node = new_node(parent, name, about);
    else
      set_name(node, parent, name);
    if (node) ++node->lookups;
    if (node && !node->own) keep(node, shared_fd_use(shared));
  }
  pthread_mutex_unlock(&mutex);
  shared_fd_leave(shared);
  return node;
}

void node_forgotten(struct node* node, uint64_t lookups) {
  pthread_mutex_lock(&mutex);
  node->lookups -= lookups < node->lookups ? lookups : node->lookups;
  free_unused(node);
  pthread_mutex_unlock(&mutex);
}

void node_renamed(struct node* parent, const char* name) {
  pthread_mutex_lock(&mutex);
  struct stat about;
  if (find_again(parent) && fstatat(parent->own->fd, name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
    struct node* const node = find(about.st_dev, about.st_ino);
    if (node) set_name(node, parent, name);
  }
  pthread_mutex_unlock(&mutex);
}

bool nodes_begin(int directory, int most) {
  struct stat about;
  if (fstat(directory, &about) != 0) return false;
  most_kept = most;
  root = (struct node){.device = about.st_dev, .inode = about.st_ino, .lookups = 1};
  root.own = shared_fd_of(directory);
  return root.own != NULL;
}

struct node* nodes_root(void) {
  return &root;
}
