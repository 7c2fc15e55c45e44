#define _GNU_SOURCE
#include "forwarding/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
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

// True if the kernel may refuse the memory because the file is open for direct I/O: then the storage needs aligned
// memory. A server's memory always is, so it could not tell. `memory` has the bits of all addresses, `lengths` those of
// all lengths.
static __attribute__((noinline)) bool is_refused_by_direct_io(int fd, uintptr_t memory, uintptr_t lengths) {
  if (!(RAW2(SYS_fcntl, fd, F_GETFL) & O_DIRECT)) return false;
#ifdef STATX_DIOALIGN
  struct statx about;
  if (RAW(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about, 0) == 0 && (about.stx_mask & STATX_DIOALIGN) &&
      about.stx_dio_mem_align > 0 && about.stx_dio_offset_align > 0)
    return memory % about.stx_dio_mem_align != 0 || lengths % about.stx_dio_offset_align != 0;
#endif
  return true;  // the file system does not say what it needs
}

// The length of a call in one part is also the length of the server's call, so its error is the server's.
static bool is_unaligned(const struct forward_data* data) {
  enum { enough = 4096 };  // for any storage
  uintptr_t memory = 0, lengths = 0;
  for (int i = 0; i < data->count; ++i) {
    if (data->parts[i].iov_len == 0) continue;
    memory |= (uintptr_t)data->parts[i].iov_base;
    if (data->count > 1) lengths |= data->parts[i].iov_len;
  }
  return (memory | lengths) % enough != 0 && is_refused_by_direct_io(data->fd, memory, lengths);
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
  // The kernel ends a call of a process that is killed after any page. A read may also have come to the end of the
  // file.
  const long number = request->call == forward_write ? SYS_write : request->call == forward_read ? SYS_read : -1;
  if (number >= 0 && moved < request->bytes) {
    const long rest = RAW3(number, fd, channel_memory(channel) + moved, request->bytes - moved);
    *result += rest > 0 ? rest : 0;
  }
  return attempt_done;
}

// Copies between the program's memory and the channel's. The kernel finds out if the program's is there: it copies as
// many bytes as are. Returns their number, or a negative number of errno.
static long copy_by_kernel(bool to_channel, const struct iovec* ours, int ours_count, const struct iovec* parts,
                           int count) {
  const long number = to_channel ? SYS_process_vm_readv : SYS_process_vm_writev;
  return RAW(number, RAW1(SYS_getpid, 0), ours, ours_count, parts, count, 0);
}

// Some systems forbid these calls, or have none.
static bool is_forbidden(long copied) { return copied == -EPERM || copied == -ENOSYS; }

// Copies the first and the last byte of each part by the kernel. Returns false if one of them is not there.
static bool copy_ends(bool to_channel, char* memory, const struct iovec* parts, int count, int64_t bytes) {
  enum { most = 32 };
  struct iovec ours[most], ends[most];
  int filled = 0;
  for (int i = 0; i < count && bytes > 0; ++i) {
    const size_t some = (int64_t)parts[i].iov_len < bytes ? parts[i].iov_len : (size_t)bytes;
    for (int end = 0; end < 2 && some > 0; ++end) {
      const size_t at = end == 0 ? 0 : some - 1;
      ours[filled] = (struct iovec){memory + at, 1};
      ends[filled++] = (struct iovec){(char*)parts[i].iov_base + at, 1};
    }
    memory += some;
    bytes -= (int64_t)some;
    if (filled < most && i + 1 < count && bytes > 0) continue;
    const long copied = copy_by_kernel(to_channel, ours, filled, ends, filled);
    if (copied != filled) return is_forbidden(copied);
    filled = 0;
  }
  return true;
}

enum { copied_by_kernel = 64 << 10 };  // calls of up to so many bytes; with more, memcpy is much faster

// Copies between the program's memory and the channel's. Returns false if the program's memory is not there, so that
// the kernel gives the program its EFAULT. Of calls that are large, only the ends of the parts are looked at.
static bool copy(bool to_channel, char* memory, const struct iovec* parts, int count, int64_t bytes) {
  if (bytes <= copied_by_kernel) {
    const struct iovec shared = {memory, (size_t)bytes};
    const long copied = copy_by_kernel(to_channel, &shared, 1, parts, count);
    if (copied == bytes) return true;
    if (!is_forbidden(copied)) return false;
  } else if (!copy_ends(to_channel, memory, parts, count, bytes)) {
    return false;
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
  // The channel forgets it when the server ends.
  const bool is_relayed_write = request->call == forward_write && channel_is_relayed(channel);
  switch (channel_call(channel, request, fd, from, &answer)) {
    case channel_not_sent: return attempt_again;
    case channel_unknown: return fail(result, EIO);
    case channel_ended:
      if (is_relayed_write) return fail(result, EIO);
      return settle(channel, request, hint, before, fd, result);
    case channel_answered: break;
  }
  if (answer.own) {
    if (answer.own == forward_always && from < 0) file_refused(fd);  // of two, it is not known which one
    return attempt_direct;
  }
  *result = answer.result;
  if (answer.result < 0) errno = answer.error;
  if (is_relayed_write && answer.result > 0) page_wrote_by_relay();
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

// Takes a channel. Without one, `attempt` says what becomes of the call, and `why` the reason.
static struct channel* take(ssize_t* result, enum attempt* attempt, enum forward_count* why) {
  struct channel* const channel = channel_take(why);
  *attempt = attempt_direct;
  if (channel) return channel;
  if (*why == forward_no_server && page_fails_without_servers()) {
    errno = EIO;
    *result = -1;
    *attempt = attempt_done;
  }
  return NULL;
}

// Makes a call in a thread that is not disturbed meanwhile. `attempt(channel, call, result)` makes it through one
// channel. Servers may end one after the other, so it is attempted as often as there may be servers. If there was no
// channel, `why` says why, and else is not changed.
typedef enum attempt try_call(struct channel* channel, void* call, ssize_t* result);

static bool make_through(try_call* attempt_call, void* call, int64_t bytes, ssize_t* result, enum forward_count* why) {
  if (!is_cancelled_here_only()) return *why = forward_unsafe, false;
  uint64_t signals;
  block_signals(&signals);
  int cancelling;  // forbidden only while signals wait: a handler that leaves by a jump would leave it so
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
  enum attempt attempt = attempt_again;
  for (int i = 0; i <= forward_most_servers && attempt == attempt_again; ++i) {
    enum forward_count missing;
    struct channel* const channel = take(result, &attempt, &missing);
    if (!channel) {
      *why = missing;
      break;
    }
    attempt = attempt_call(channel, call, result);
    channel_give_back(channel, bytes);
  }
  pthread_setcancelstate(cancelling, &cancelling);
  allow_signals(&signals);
  return attempt == attempt_done;
}

static bool make(try_call* attempt_call, void* call, int64_t bytes, ssize_t* result) {
  enum forward_count why = forward_counts;
  const bool is_made = make_through(attempt_call, call, bytes, result, &why);
  if (why != forward_counts) page_count(why, 1);
  return is_made;
}

struct access_call {
  const struct forward_data* data;
  enum file_hint hint;
  int64_t bytes;
};

static enum attempt try_access(struct channel* channel, void* call, ssize_t* result) {
  const struct access_call* const access = call;
  const struct forward_data* const data = access->data;
  const struct forward_request request = {data->writes ? forward_write : forward_read,
                                          data->flags,
                                          data->offset,
                                          -1,
                                          access->bytes,
                                          access->hint == file_own,
                                          0};
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
  if (is_unaligned(data)) return page_count(forward_unaligned, 1), false;
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
  struct copy_call call = {{is_sendfile ? forward_send : forward_copy, (int)flags, at ? *at : -1,
                            from_at ? *from_at : -1, (int64_t)bytes, 0, 0},
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

// ---- sync ----------------------------------------------------------------------------------------------------------

static _Atomic bool has_told_all;  // a sync of all files has failed, because there is no relay any more

// True the first time for a descriptor (-1: for all files): that is told once, as the kernel tells of a late write.
static bool is_to_be_told(int fd) { return fd < 0 ? !atomic_exchange(&has_told_all, true) : file_tell_loss(fd); }

struct sync_call {
  int fd;
  bool is_lost;  // the relay has ended, or hangs
};

static enum attempt try_sync(struct channel* channel, void* call, ssize_t* result) {
  struct sync_call* const sync = call;
  const struct forward_request request = {forward_sync, 0, -1, -1, 0, 0, 0};
  struct forward_answer answer;
  switch (channel_call(channel, &request, sync->fd, -1, &answer)) {
    case channel_not_sent: return attempt_again;
    case channel_unknown:
    case channel_ended: sync->is_lost = true; return fail(result, EIO);
    case channel_answered: break;
  }
  *result = answer.own ? 0 : answer.result;
  if (*result < 0) errno = answer.error;
  return attempt_done;
}

// Returns the number of errno. While all connections are in use, one is waited for.
static int sync_through(int fd) {
  enum { most_wait_ms = 10000, pause_ms = 5 };
  const int64_t until_ns = page_now_ns() + (int64_t)most_wait_ms * 1000000;
  struct sync_call call = {fd, false};
  while (true) {
    ssize_t result = 0;
    enum forward_count why = forward_counts;
    if (make_through(try_sync, &call, 0, &result, &why)) {
      if (call.is_lost) is_to_be_told(fd);
      return result < 0 ? errno : 0;
    }
    if (!page_has_relayed_writes()) return 0;
    // Nobody is left who knows where they are.
    if (why == forward_no_server || why == forward_unserved || why == forward_counts)
      return is_to_be_told(fd) ? EIO : 0;
    if (why != forward_no_slot || page_now_ns() >= until_ns) return EIO;
    const struct timespec pause = {0, pause_ms * 1000000};
    RAW2(SYS_nanosleep, &pause, NULL);
  }
}

int forward_sync_elsewhere(int fd) {
  if (!forward_is_on || !page_is_relayed() || (fd >= 0 && file_look(fd) == file_direct)) return 0;
  const int before = errno;
  const int error = sync_through(fd);
  errno = before;
  return error;
}
