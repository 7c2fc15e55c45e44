// Reads and writes of the mount: through I/O servers (forward.h), or else directly.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "forwarding/files.h"
#include "forwarding/forward.h"
#include "forwarding/fuse/handles.h"

// What fcntl changes of an open file.
enum { changing_flags = O_APPEND | O_DIRECT | O_NOATIME };

bool is_uncached;

// Returns memory that is aligned for direct I/O. Each thread has its own until it ends.
static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;
struct buffer {
  char* memory;
  size_t bytes;
};
static void free_buffer(void* value) {
  free(((struct buffer*)value)->memory);
  free(value);
}
static void make_buffer_key(void) { pthread_key_create(&buffer_key, free_buffer); }

static char* buffer_of(size_t bytes) {
  enum { page = 4096 };
  pthread_once(&buffer_once, make_buffer_key);
  struct buffer* buffer = pthread_getspecific(buffer_key);
  if (!buffer) {
    buffer = calloc(1, sizeof *buffer);
    if (!buffer || pthread_setspecific(buffer_key, buffer) != 0) return free(buffer), NULL;
  }
  if (buffer->bytes < bytes) {
    free(buffer->memory);
    buffer->bytes = (bytes + page - 1) / page * page;
    buffer->memory = aligned_alloc(page, buffer->bytes);
    if (!buffer->memory) buffer->bytes = 0;
  }
  return buffer->memory;
}

bool handle_begin(struct node* node, int fd, struct fuse_file_info* info) {
  struct handle* const handle = malloc(sizeof *handle);
  struct shared_fd* const file = shared_fd_of(fd);
  if (!handle || !file) {
    free(handle);
    shared_fd_leave(file);
    errno = ENOMEM;
    return false;
  }
  handle->node = node;
  handle->file = file;
  atomic_init(&handle->flags, info->flags & changing_flags);
  file_opened(fd);
  node_opened(node, file);
  info->fh = (uintptr_t)handle;
  info->direct_io = is_uncached || (info->flags & O_DIRECT) != 0;
  return true;
}

void handle_end(struct handle* handle) {
  const int fd = handle->file->fd;
  file_forget((unsigned)fd, (unsigned)fd);
  node_closing(handle->node, handle->file);
  shared_fd_leave(handle->file);
  free(handle);
}

// A program may have changed these flags since it opened the file.
static void follow_flags(struct handle* handle, int flags) {
  const int now = flags & changing_flags;
  if (atomic_load(&handle->flags) == now) return;
  if (fcntl(handle->file->fd, F_SETFL, now) == 0) atomic_store(&handle->flags, now);
}

static ssize_t access_at(fuse_req_t request, bool writes, int fd, char* memory, size_t bytes, off_t at) {
  const struct iovec part = {memory, bytes};
  struct forward_data data = {writes, fd, &part, 1, at, 0, 0};
  ssize_t result;
  if (!is_other(request) && forward_access(&data, &result)) return result;
  return forward_direct(&data, writes ? pwrite(fd, memory, bytes, at) : pread(fd, memory, bytes, at));
}

static void read_data(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t at, struct fuse_file_info* info) {
  (void)number;
  char* const memory = buffer_of(bytes);
  if (!memory) {
    fuse_reply_err(request, ENOMEM);
    return;
  }
  follow_flags(handle_of(info), info->flags);
  const ssize_t result = access_at(request, false, handle_of(info)->file->fd, memory, bytes, at);
  if (result < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_buf(request, memory, (size_t)result);
}

// Pages that a program has stored to in its mapping. They lie where they lie, also if the file is open for appending.
static ssize_t write_pages(fuse_req_t request, struct handle* handle, const char* data, size_t bytes, off_t at) {
  const int flags = atomic_load(&handle->flags);
  if ((flags & (O_APPEND | O_DIRECT)) == 0)
    return access_at(request, true, handle->file->fd, (char*)(uintptr_t)data, bytes, at);
  const int plain = reopen(handle->file->fd, O_WRONLY);
  if (plain < 0) return -1;
  const ssize_t result = pwrite(plain, data, bytes, at);
  const int error = errno;
  close(plain);
  errno = error;
  return result;
}

static ssize_t write_bytes(fuse_req_t request, struct fuse_file_info* info, const char* data, size_t bytes, off_t at) {
  struct handle* const handle = handle_of(info);
  if (info->writepage) return write_pages(request, handle, data, bytes, at);
  follow_flags(handle, info->flags);
  char* memory = (char*)(uintptr_t)data;
  if (info->flags & O_DIRECT) {
    memory = buffer_of(bytes);
    if (!memory) return errno = ENOMEM, -1;
    memcpy(memory, data, bytes);
  }
  // Another user's write takes away the bits of setuid, but not for root.
  if (!act_for(request)) return -1;
  return access_at(request, true, handle->file->fd, memory, bytes, at);
}

static void write_data(fuse_req_t request, fuse_ino_t number, const char* data, size_t bytes, off_t at,
                       struct fuse_file_info* info) {
  (void)number;
  const ssize_t result = write_bytes(request, info, data, bytes, at);
  if (result < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_write(request, (size_t)result);
}

static void copy_range(fuse_req_t request, fuse_ino_t from_number, off_t from_at, struct fuse_file_info* from,
                       fuse_ino_t number, off_t at, struct fuse_file_info* to, size_t bytes, int flags) {
  (void)from_number, (void)number;
  const int from_fd = handle_of(from)->file->fd, fd = handle_of(to)->file->fd;
  off64_t from_position = from_at, position = at;
  ssize_t result;
  if (is_other(request) ||
      !forward_copying(false, from_fd, &from_position, fd, &position, bytes, (unsigned)flags, &result))
    result = copy_file_range(from_fd, &from_position, fd, &position, bytes, (unsigned)flags);
  if (result < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_write(request, (size_t)result);
}

static void open_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  struct shared_fd* const file = node_reach(node_of(number));
  const int fd = file && act_for(request) ? reopen(file->fd, info->flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL)) : -1;
  shared_fd_leave(file);
  if (fd < 0 || !handle_begin(node_of(number), fd, info))
    fuse_reply_err(request, errno);
  else if (fuse_reply_open(request, info) == -ENOENT)
    handle_end(handle_of(info));  // the program has been interrupted
}

static void close_file(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  locks_release(node_of(number), 0, handle_of(info));
  handle_end(handle_of(info));
  fuse_reply_err(request, 0);
}

// Each close of a descriptor by a program. Some file systems tell errors of earlier writes here.
static void flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info* info) {
  const int copy = fcntl(handle_of(info)->file->fd, F_DUPFD_CLOEXEC, 0);
  const int error = copy < 0 || close(copy) == 0 ? 0 : errno;
  locks_release(node_of(number), info->lock_owner, NULL);  // who gets one then sees what was written
  fuse_reply_err(request, error);
}

static void sync_file(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info* info) {
  (void)number;
  const int fd = handle_of(info)->file->fd;
  fuse_reply_err(request, (only_data ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno);
}

static void allocate(fuse_req_t request, fuse_ino_t number, int mode, off_t at, off_t bytes,
                     struct fuse_file_info* info) {
  (void)number;
  fuse_reply_err(request, fallocate(handle_of(info)->file->fd, mode, at, bytes) == 0 ? 0 : errno);
}

static void seek(fuse_req_t request, fuse_ino_t number, off_t at, int whence, struct fuse_file_info* info) {
  (void)number;
  const off_t found = lseek(handle_of(info)->file->fd, at, whence);
  if (found < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_lseek(request, found);
}

void data_operations(struct fuse_lowlevel_ops* operations) {
  operations->open = open_file;
  operations->release = close_file;
  operations->flush = flush;
  operations->fsync = sync_file;
  operations->read = read_data;
  operations->write = write_data;
  operations->copy_file_range = copy_range;
  operations->fallocate = allocate;
  operations->lseek = seek;
}
