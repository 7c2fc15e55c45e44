#define _GNU_SOURCE
#include "forwarding/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forwarding/channels.h"
#include "forwarding/collect.h"
#include "forwarding/files.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"

bool forward_is_on;

// What a call may have changed by itself, noted before it is sent.
struct before {
  off64_t offset;  // of the description
  off64_t size;    // of the file, if it is appended to; else -1
  unsigned begun;  // calls of this process that move an offset, this one included
  bool is_alone;   // no other such call was under way
};

// Calls of this process that move an offset: other threads and signal handlers make them, too.
static _Atomic unsigned moving_begun, moving_now;

// Returns the bytes of all parts, or -1 if the kernel would refuse them.
static int64_t bytes_of(const struct iovec* parts, int count) {
  if (count < 0 || count > IOV_MAX) return -1;
  int64_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > (size_t)SSIZE_MAX - (size_t)bytes) return -1;
    bytes += (int64_t)parts[i].iov_len;
  }
  return bytes;
}

// A program that limits the size of its files is to get its signal, which a server cannot give it.
bool forward_is_limited(void) {
  struct rlimit64 limit;
  return RAW4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && limit.rlim_cur != RLIM64_INFINITY;
}

// A place where the thread may be cancelled. Returns false if it may be cancelled at any place, where nothing could be
// given back.
static bool is_cancelled_here_only(void) {
  int type;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS) {
    pthread_setcanceltype(type, &type);
    return false;
  }
  pthread_testcancel();
  return true;
}

// Keeps signals from this thread during an exchange, as the kernel does while it accesses a regular file: a handler may
// leave by a jump, and the connection would never be given back. Some are let through: those that the thread causes by
// itself, and the one by which libc changes the user of all threads.
static void block_signals(uint64_t* before) {
  enum { for_libc = 33 };
  static const int let_through[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, for_libc};
  uint64_t blocked = ~UINT64_C(0);
  for (size_t i = 0; i < sizeof let_through / sizeof *let_through; ++i)
    blocked &= ~(UINT64_C(1) << (let_through[i] - 1));
  RAW4(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, before, sizeof blocked);
}

static void allow_signals(const uint64_t* before) {
  RAW4(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before);
}

// True if the call writes at the end of the file, wherever its offset is.
static bool appends(const struct forward_request* request, int fd) {
  enum { rwf_append = 0x10, rwf_noappend = 0x20 };  // of pwritev2; libc's headers may not have them yet
  if (request->call == forward_read || (request->flags & rwf_noappend)) return false;
  return (request->flags & rwf_append) || (RAW2(SYS_fcntl, fd, F_GETFL) & O_APPEND);
}

// True if the call moves no offset of a description.
static bool has_offsets(const struct forward_request* request) {
  const bool copies = request->call == forward_copy || request->call == forward_send;
  return request->offset >= 0 && (!copies || request->from_offset >= 0);
}

static void note(const struct forward_request* request, int fd, struct before* before) {
  before->is_alone = atomic_fetch_add(&moving_now, 1) == 0;
  before->begun = atomic_fetch_add(&moving_begun, 1) + 1;
  before->offset = RAW3(SYS_lseek, fd, 0, SEEK_CUR);
  before->size = -1;
  struct stat about;
  if (appends(request, fd) && raw_fstat(fd, &about) == 0) before->size = about.st_size;
}

// What became of an attempt to make a call.
enum attempt {
  attempt_done,    // the call was made, and `result` is its result
  attempt_again,   // it was not made, because the server has ended
  attempt_direct,  // it was not made, and no server should
};

static enum attempt fail(ssize_t* result, int error) {
  page_count(forward_lost, 1);
  errno = error;
  *result = -1;
  return attempt_done;
}

// The server has ended in the middle of a call. One with an offset of its own can be made again, unless it appends.
// Else the description's offset shows if the call was made, provided that nobody else moves it, and that it was not
// beyond the end of a file that is appended to.
static enum attempt settle(struct channel* channel, const struct forward_request* request, enum file_hint hint,
                           const struct before* before, int fd, ssize_t* result) {
  if (has_offsets(request)) {
    if (appends(request, fd)) return fail(result, EIO);
    return page_count(forward_redone, 1), attempt_again;
  }
  const bool is_alone = before->is_alone && before->begun == atomic_load(&moving_begun);
  const bool is_beyond_end = before->size >= 0 && before->offset > before->size;
  if (hint != file_own || !is_alone || is_beyond_end) return fail(result, EIO);
  const off64_t now = RAW3(SYS_lseek, fd, 0, SEEK_CUR);
  if (now == before->offset) return page_count(forward_redone, 1), attempt_again;
  const off64_t moved = now - (before->size >= 0 ? before->size : before->offset);
  if (now < 0 || moved < 0 || moved > request->bytes || (before->size >= 0 && moved != request->bytes))
    return fail(result, EIO);
  *result = moved;
  if (request->call == forward_write && moved < request->bytes) {  // the server was killed within the call
    const long rest = RAW3(SYS_write, fd, channel_memory(channel) + moved, request->bytes - moved);
    *result += rest > 0 ? rest : 0;
  }
  return attempt_done;
}

enum { checked_bytes = 64 << 10 };  // calls of up to so many bytes have their memory checked by the kernel

// Copies between the program's memory and the channel's. Returns false if the program's memory is not there, so that
// the kernel gives the program its EFAULT. Larger calls are copied without that check, which would slow them down.
static bool copy(bool to_channel, char* memory, const struct iovec* parts, int count, int64_t bytes) {
  if (bytes <= checked_bytes) {
    const struct iovec shared = {memory, (size_t)bytes};
    const long self = RAW1(SYS_getpid, 0);
    const long number = to_channel ? SYS_process_vm_readv : SYS_process_vm_writev;
    const long copied = RAW(number, self, &shared, 1, parts, count, 0);
    if (copied == bytes) return true;
    if (copied != -EPERM && copied != -ENOSYS) return false;
  }
  for (int i = 0; i < count && bytes > 0; ++i) {
    const size_t some = (int64_t)parts[i].iov_len < bytes ? parts[i].iov_len : (size_t)bytes;
    if (to_channel)
      memcpy(memory, parts[i].iov_base, some);
    else
      memcpy(parts[i].iov_base, memory, some);
    memory += some;
    bytes -= (int64_t)some;
  }
  return true;
}

// Makes one call through the channel.
static enum attempt send(struct channel* channel, const struct forward_request* request, enum file_hint hint,
                         const struct before* before, int fd, int from, ssize_t* result) {
  struct forward_answer answer;
  switch (channel_call(channel, request, fd, from, &answer)) {
    case channel_not_sent: return attempt_again;
    case channel_unknown: return fail(result, EIO);
    case channel_ended: return settle(channel, request, hint, before, fd, result);
    case channel_answered: break;
  }
  if (answer.own) {
    if (answer.own == forward_always && from < 0) file_refused(fd);  // of two, it is not known which one
    return attempt_direct;
  }
  *result = answer.result;
  if (answer.result < 0) errno = answer.error;
  page_count(forward_calls, 1);
  if (answer.result > 0) page_count(forward_bytes, (uint64_t)answer.result);
  return attempt_done;
}

static enum attempt exchange(struct channel* channel, const struct forward_request* request, enum file_hint hint,
                             int fd, int from, ssize_t* result) {
  struct before before = {0};
  if (has_offsets(request)) return send(channel, request, hint, &before, fd, from, result);
  note(request, fd, &before);
  const enum attempt attempt = send(channel, request, hint, &before, fd, from, result);
  atomic_fetch_sub(&moving_now, 1);
  return attempt;
}

// Takes a channel. Without one, `attempt` says what becomes of the call.
static struct channel* take(ssize_t* result, enum attempt* attempt) {
  enum forward_count why;
  struct channel* const channel = channel_take(&why);
  *attempt = attempt_direct;
  if (channel) return channel;
  if (why == forward_no_server && page_is_direct()) why = forward_unserved;  // since a moment ago
  page_count(why, 1);
  if (why == forward_no_server && page_fails_without_servers()) {
    errno = EIO;
    *result = -1;
    *attempt = attempt_done;
  }
  return NULL;
}

// Makes a call in a thread that is not disturbed meanwhile. `attempt(channel, call, result)` makes it through one
// channel. Servers may end one after the other, so it is attempted as often as there may be servers.
typedef enum attempt try_call(struct channel* channel, void* call, ssize_t* result);

static bool make(try_call* attempt_call, void* call, int64_t bytes, ssize_t* result) {
  if (!is_cancelled_here_only()) return page_count(forward_unsafe, 1), false;
  uint64_t signals;
  block_signals(&signals);
  int cancelling;  // forbidden only while signals wait: a handler that leaves by a jump would leave it so
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
  enum attempt attempt = attempt_again;
  for (int i = 0; i <= forward_most_servers && attempt == attempt_again; ++i) {
    struct channel* const channel = take(result, &attempt);
    if (!channel) break;
    attempt = attempt_call(channel, call, result);
    channel_give_back(channel, bytes);
  }
  pthread_setcancelstate(cancelling, &cancelling);
  allow_signals(&signals);
  return attempt == attempt_done;
}

struct access_call {
  const struct forward_data* data;
  enum file_hint hint;
  int64_t bytes;
};

static enum attempt try_access(struct channel* channel, void* call, ssize_t* result) {
  const struct access_call* const access = call;
  const struct forward_data* const data = access->data;
  const struct forward_request request = {data->writes ? forward_write : forward_read, data->flags, data->offset, -1,
                                          access->bytes};
  char* const memory = channel_memory(channel);
  if (data->writes && !copy(true, memory, data->parts, data->count, access->bytes)) return attempt_direct;
  const enum attempt attempt = exchange(channel, &request, access->hint, data->fd, -1, result);
  if (attempt != attempt_done || data->writes || *result <= 0) return attempt;
  if (copy(false, memory, data->parts, data->count, *result)) return attempt;
  // Part of the program's memory is not there: the kernel reads as much as fits.
  if (data->offset < 0) RAW3(SYS_lseek, data->fd, -*result, SEEK_CUR);
  return attempt_direct;
}

// Fails a call with the error of an earlier write that was collected.
static bool has_failed(int fd, ssize_t* result) {
  const int error = collect_take_error(fd);
  if (error == 0) return false;
  errno = error;
  *result = -1;
  return true;
}

// Counts a call that was forwarded, for the curve of the application. Returns true.
static bool count_forwarded(uint32_t servers, bool writes, ssize_t result, int64_t began_ns) {
  page_saw(servers > 0 ? servers : 1, writes, result > 0 ? (uint64_t)result : 0, began_ns);
  return true;
}

ssize_t forward_direct(const struct forward_data* data, ssize_t result) {
  if (data->began_ns != 0) page_saw(0, data->writes, result > 0 ? (uint64_t)result : 0, data->began_ns);
  return result;
}

bool forward_access(struct forward_data* data, ssize_t* result) {
  if (!forward_is_on) return false;
  const enum file_hint hint = file_look(data->fd);
  if (hint == file_direct) return false;
  const uint32_t servers = page_servers();
  const int64_t began_ns = page_now_ns();
  if (servers == 0) data->began_ns = began_ns;
  if (page_is_direct()) {
    // What was collected before the servers were taken away comes before this call.
    if (collect_is_on) collect_store_file(data->fd);
    if (collect_is_on && has_failed(data->fd, result)) return true;
    return page_count(forward_unserved, 1), false;
  }
  const int64_t bytes = bytes_of(data->parts, data->count);
  if (bytes <= 0 || data->offset < -1) return false;
  if (collect_is_on && (collect_write(data, bytes, result) || has_failed(data->fd, result)))
    return count_forwarded(servers, data->writes, *result, began_ns);
  if (bytes > forward_most_bytes) return page_count(forward_too_large, 1), false;
  if (data->writes && forward_is_limited()) return page_count(forward_limited, 1), false;
  struct access_call call = {data, hint, bytes};
  if (!make(try_access, &call, bytes, result)) return false;
  if (data->writes && data->offset == -1 && *result > 0) file_wrote(data->fd);
  return count_forwarded(servers, data->writes, *result, began_ns);
}

struct copy_call {
  struct forward_request request;
  int fd;
  int from;
};

// Two descriptions may have moved, so nobody can tell what a server did that has ended.
static enum attempt try_copy(struct channel* channel, void* call, ssize_t* result) {
  const struct copy_call* const copying = call;
  return exchange(channel, &copying->request, file_forwarded, copying->fd, copying->from, result);
}

bool forward_copying(bool is_sendfile, int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags,
                     ssize_t* result) {
  if (!forward_is_on || bytes == 0 || bytes > SSIZE_MAX) return false;
  if (file_look(fd) == file_direct && file_look(from) == file_direct) return false;
  collect_store_all();
  if (page_is_direct()) return page_count(forward_unserved, 1), false;
  if ((from_at && *from_at < 0) || (at && *at < 0)) return false;
  if (forward_is_limited()) return page_count(forward_limited, 1), false;
  struct copy_call call = {
      {is_sendfile ? forward_send : forward_copy, (int)flags, at ? *at : -1, from_at ? *from_at : -1, (int64_t)bytes},
      fd,
      from};
  const uint32_t servers = page_servers();
  const int64_t began_ns = page_now_ns();
  if (!make(try_copy, &call, 0, result)) return false;
  count_forwarded(servers, true, *result, began_ns);
  if (*result > 0 && from_at) *from_at += *result;
  if (*result > 0 && at) *at += *result;
  return true;
}
