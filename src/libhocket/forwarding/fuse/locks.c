// Locks of the mount, which others on this node see.
//
// flock() belongs to an open file description, and each of a program's has one here. Locks by fcntl() belong to an
// owner, such as a process: each owner has a description of its own here for each file, whose locks (F_OFD_SETLK) stand
// for the owner's. A thread of its own tries the locks that programs wait for, so no other request waits with them.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "forwarding/fuse/handles.h"

struct owner {
  struct node* node;
  uint64_t number;
  const struct handle* last;  // through which a lock was set
  pid_t process;
  int fd;
  struct owner* next;
};

struct waiting {
  fuse_req_t request;
  struct shared_fd* file;  // of flock
  int operation;
  struct node* node;  // of the others
  uint64_t owner;
  struct flock lock;
  struct waiting* next;
};

enum { between_attempts_us = 2000, attempts_after_close = 10 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards the two lists
static pthread_cond_t has_waiting = PTHREAD_COND_INITIALIZER;
static struct owner* owners;
static struct waiting* all_waiting;

static struct owner* find(const struct node* node, uint64_t number) {
  struct owner* one = owners;
  while (one && (one->node != node || one->number != number)) one = one->next;
  return one;
}

// Returns the owner in a file, which is made if there is none.
static struct owner* owner_in(struct handle* handle, uint64_t number) {
  struct owner* const known = find(handle->node, number);
  if (known) return known;
  struct owner* const made = malloc(sizeof *made);
  if (!made) return NULL;
  int fd = reopen(handle->file->fd, O_RDWR);
  if (fd < 0) fd = reopen(handle->file->fd, fcntl(handle->file->fd, F_GETFL) & O_ACCMODE);
  if (fd < 0) return free(made), NULL;
  *made = (struct owner){handle->node, number, handle, 0, fd, owners};
  return owners = made;
}

// A kernel tells a FUSE file system below this mount of no lock that ends because its description is closed.
static void remove_owner(struct owner** at) {
  struct owner* const one = *at;
  struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  *at = one->next;
  fcntl(one->fd, F_OFD_SETLK, &all);
  close(one->fd);
  free(one);
}

void locks_release(struct node* node, uint64_t owner, const struct handle* handle) {
  pthread_mutex_lock(&mutex);
  for (struct owner** at = &owners; *at;) {
    const bool is_meant = handle ? (*at)->last == handle : (*at)->node == node && (*at)->number == owner;
    if (is_meant)
      remove_owner(at);
    else
      at = &(*at)->next;
  }
  pthread_mutex_unlock(&mutex);
}

static void wait_for(struct waiting wanted) {
  struct waiting* const added = malloc(sizeof *added);
  if (!added) {
    fuse_reply_err(wanted.request, ENOLCK);
    shared_fd_leave(wanted.file);
    return;
  }
  *added = wanted;
  added->next = all_waiting;
  all_waiting = added;
  pthread_cond_signal(&has_waiting);
}

// Returns 0, or the error of an attempt.
static int attempt(const struct waiting* wanted) {
  if (wanted->file) return flock(wanted->file->fd, wanted->operation | LOCK_NB) == 0 ? 0 : errno;
  const struct owner* const owner = find(wanted->node, wanted->owner);
  struct flock lock = wanted->lock;
  return !owner ? EINTR : fcntl(owner->fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

static void try_all(void) {
  for (struct waiting** at = &all_waiting; *at;) {
    struct waiting* const one = *at;
    const int error = fuse_req_interrupted(one->request) ? EINTR : attempt(one);
    if (error == EAGAIN || error == EACCES) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    fuse_reply_err(one->request, error);
    shared_fd_leave(one->file);
    free(one);
  }
}

static void* serve_waiting(void* unused) {
  pthread_mutex_lock(&mutex);
  while (true) {
    while (!all_waiting) pthread_cond_wait(&has_waiting, &mutex);
    try_all();
    pthread_mutex_unlock(&mutex);
    usleep(between_attempts_us);
    pthread_mutex_lock(&mutex);
  }
  return unused;
}

bool locks_begin(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, serve_waiting, NULL) == 0 && pthread_detach(thread) == 0;
}

static void get_lock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, struct flock* lock) {
  (void)number;
  pthread_mutex_lock(&mutex);
  const struct owner* const owner = owner_in(handle_of(info), info->lock_owner);
  lock->l_pid = 0;
  const int error = owner && fcntl(owner->fd, F_OFD_GETLK, lock) == 0 ? 0 : errno;
  // The kernel knows no process of such a lock. If one other owner has locks in the file, it is that one's.
  const struct owner* other = NULL;
  int others = 0;
  for (const struct owner* one = owners; !error && one; one = one->next)
    if (one->node == owner->node && one != owner && one->process != 0) other = one, ++others;
  if (!error && lock->l_type != F_UNLCK && lock->l_pid < 0) lock->l_pid = others == 1 ? other->process : 0;
  pthread_mutex_unlock(&mutex);
  if (error)
    fuse_reply_err(request, error);
  else
    fuse_reply_lock(request, lock);
}

static void set_lock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, struct flock* lock,
                     int waits) {
  struct handle* const handle = handle_of(info);
  struct waiting wanted = {.request = request, .node = node_of(number), .owner = info->lock_owner, .lock = *lock};
  pthread_mutex_lock(&mutex);
  struct owner* const owner = owner_in(handle, info->lock_owner);
  int error = ENOLCK;
  if (owner) {
    owner->last = handle;
    owner->process = lock->l_pid;
    wanted.lock.l_pid = 0;
    error = attempt(&wanted);
  }
  const bool must_wait = waits && (error == EAGAIN || error == EACCES);
  if (must_wait) wait_for(wanted);
  pthread_mutex_unlock(&mutex);
  if (!must_wait) fuse_reply_err(request, error);
}

// The kernel tells of a closed file after the program's close has returned, so its lock may be there for a moment.
static void lock_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info, int operation) {
  (void)number;
  struct waiting wanted = {.request = request, .file = handle_of(info)->file, .operation = operation & ~LOCK_NB};
  int error = attempt(&wanted);
  for (int i = 0; error == EWOULDBLOCK && (operation & LOCK_NB) && i < attempts_after_close; ++i) {
    usleep(between_attempts_us / 2);
    error = attempt(&wanted);
  }
  if (error != EWOULDBLOCK || (operation & LOCK_NB)) {
    fuse_reply_err(request, error);
    return;
  }
  shared_fd_use(wanted.file);
  pthread_mutex_lock(&mutex);
  wait_for(wanted);
  pthread_mutex_unlock(&mutex);
}

void lock_operations(struct fuse_lowlevel_ops* operations) {
  operations->getlk = get_lock;
  operations->setlk = set_lock;
  operations->flock = lock_file;
}
