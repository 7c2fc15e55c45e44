// Locks of a host's mount (host_mount.c): those of the store, so hosts exclude each other.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "host_mount.h"

// A process that has locks of a file by fcntl. It has an open file description of the store for them.
struct owner {
  struct owner* next;
  struct node* node;
  uint64_t number;
  int fd;
};
static struct owner* owners;

// A request that waits for a lock.
struct waiting {
  struct waiting* next;
  fuse_req_t request;
  struct node* node;
  int fd;
  struct flock wanted;
  int operation;  // of flock; -1: it is fcntl's
};
static struct waiting* all_waiting;

static struct owner* owner_of(struct node* node, uint64_t number) {
  for (struct owner* owner = owners; owner; owner = owner->next)
    if (owner->node == node && owner->number == number) return owner;
  struct owner* const owner = malloc(sizeof *owner);
  if (!owner) return NULL;
  *owner = (struct owner){owners, node, number, reopened(node, O_RDWR)};
  return owners = owner;
}

void leave_locks(struct node* node, uint64_t number) {
  for (struct owner** at = &owners; *at; at = &(*at)->next) {
    struct owner* const owner = *at;
    if (owner->node != node || owner->number != number) continue;
    *at = owner->next;
    close(owner->fd);
    free(owner);
    return;
  }
}

// The kernel may wait for an answer to another request before it drops the pages, so the thread that answers does not
// wait for that.
struct granted {
  fuse_req_t request;
  struct node* node;
};
static void* drop_pages(void* words) {
  struct granted* const granted = words;
  fuse_lowlevel_notify_inval_inode(session, (fuse_ino_t)granted->node, 0, 0);
  fuse_reply_err(granted->request, 0);
  free(granted);
  return NULL;
}

static void grant(fuse_req_t request, struct node* node) {
  struct granted* const granted = malloc(sizeof *granted);
  pthread_t thread;
  if (!granted || is_stale || !has_changed(node)) {
    free(granted);
    fuse_reply_err(request, 0);
    return;
  }
  *granted = (struct granted){request, node};
  if (pthread_create(&thread, NULL, drop_pages, granted) != 0) abort();
  pthread_detach(thread);
}

static bool is_locked(const struct waiting* one) {
  struct flock wanted = one->wanted;
  return (one->operation < 0 ? fcntl(one->fd, F_OFD_SETLK, &wanted) : flock(one->fd, one->operation | LOCK_NB)) == 0;
}

static void lock(const struct waiting* one, bool releases, bool waits) {
  if (releases) publish(one->node);
  if (is_locked(one)) {
    if (releases)
      fuse_reply_err(one->request, 0);
    else
      grant(one->request, one->node);
  } else if (waits && (errno == EAGAIN || errno == EACCES)) {
    struct waiting* const copy = malloc(sizeof *copy);
    *copy = *one;
    copy->next = all_waiting;
    all_waiting = copy;
  } else {
    fuse_reply_err(one->request, errno);
  }
}

bool has_waiting_locks(void) { return all_waiting != NULL; }

void try_locks_again(void) {
  for (struct waiting** at = &all_waiting; *at;) {
    struct waiting* const one = *at;
    const bool is_interrupted = fuse_req_interrupted(one->request);
    if (!is_interrupted && !is_locked(one)) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    if (is_interrupted)
      fuse_reply_err(one->request, EINTR);
    else
      grant(one->request, one->node);
    free(one);
  }
}

static void get_lock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, struct flock* wanted) {
  struct owner* const owner = owner_of(node_of(number), info->lock_owner);
  wanted->l_pid = 0;
  if (owner && fcntl(owner->fd, F_OFD_GETLK, wanted) == 0)
    fuse_reply_lock(request, wanted);
  else
    fuse_reply_err(request, errno);
}

static void set_lock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, struct flock* wanted,
                     int waits) {
  struct node* const node = node_of(number);
  struct owner* const owner = owner_of(node, info->lock_owner);
  if (!owner) {
    fuse_reply_err(request, ENOMEM);
    return;
  }
  struct waiting one = {NULL, request, node, owner->fd, *wanted, -1};
  one.wanted.l_pid = 0;
  lock(&one, wanted->l_type == F_UNLCK, waits != 0);
}

static void set_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, int operation) {
  struct node* const node = node_of(number);
  struct handle* const handle = handle_of(info);
  if (handle->lock_fd < 0) handle->lock_fd = reopened(node, O_RDWR);
  const struct waiting one = {NULL, request, node, handle->lock_fd, {0}, operation & ~LOCK_NB};
  lock(&one, (operation & LOCK_UN) != 0, (operation & LOCK_NB) == 0);
}

void lock_operations(struct fuse_lowlevel_ops* operations) {
  operations->getlk = get_lock;
  operations->setlk = set_lock;
  operations->flock = set_flock;
}
