#define _GNU_SOURCE
#include "forwarding/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "forwarding/channels.h"
#include "forwarding/files.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"

bool collect_is_on;
_Thread_local bool collect_avoids;

enum {
  most_collected = 16,                        // descriptors at a time
  most_mappings = 64,                         // with more, nothing is collected
  small_bytes = 64 << 10,                     // larger writes are sent at once
  begun_bytes = forward_collected_bytes / 4,  // as soon as so many more have come, the server begins to write
  wait_ms = 5000,                             // for a server that gives a descriptor back
};

// What is collected of one descriptor. The lock guards all but `fd_after`, which is changed under it.
struct collection {
  _Atomic uint32_t lock;  // 0: free, 1: held, 2: held, and awaited
  _Atomic int fd_after;   // the descriptor, plus one; 0: unused
  struct channel* channel;
  struct forward_collected* head;  // in the channel's memory
  dev_t device;
  ino_t inode;
  uint32_t epoch;
};
static struct collection all[most_collected];
static _Atomic int in_use;
static _Atomic uint32_t beginning;  // a lock: two threads could begin collections of one file at the same time
static pid_t process;               // whose they are
static _Atomic int* is_parent;      // in memory that is 0 in a child that was forked
static _Atomic uint8_t errors[file_most_descriptors];

// A mapping of a file. The table changes under its lock.
struct mapping {
  uintptr_t first, end;  // 0: unused
  dev_t device;
  ino_t inode;
};
static struct mapping mappings[most_mappings];
static _Atomic uint32_t mappings_lock;
static _Atomic int mapped;

// ---- sections that nothing disturbs --------------------------------------------------------------------------------

// True in children of vfork, too: they have the parent's memory and descriptors, and write as the parent would.
static bool has_same_memory(void) { return atomic_load_explicit(is_parent, memory_order_relaxed) != 0; }

// False in children of vfork, to which the parent's memory belongs, and in children that libc has not forked.
bool collect_is_mine(void) { return process == (pid_t)RAW1(SYS_getpid, 0); }

static void block_all(uint64_t* before) {
  const uint64_t blocked = ~UINT64_C(0);
  RAW4(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, before, sizeof blocked);
}
static void unblock(const uint64_t* before) { RAW4(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before); }

static void acquire(_Atomic uint32_t* lock) {
  uint32_t is_free = 0;
  if (atomic_compare_exchange_strong(lock, &is_free, 1)) return;
  while (atomic_exchange(lock, 2) != 0) RAW4(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, NULL);
}
static void release(_Atomic uint32_t* lock) {
  if (atomic_exchange(lock, 0) == 2) RAW4(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL);
}

// ---- one collection ------------------------------------------------------------------------------------------------

static uint64_t filled(const struct collection* one) { return __atomic_load_n(&one->head->filled, __ATOMIC_ACQUIRE); }
static uint64_t stored(const struct collection* one) { return __atomic_load_n(&one->head->stored, __ATOMIC_ACQUIRE); }

static void note_error(int fd, int error) {
  uint8_t none = 0;
  if ((unsigned)fd < file_most_descriptors) atomic_compare_exchange_strong(&errors[fd], &none, (uint8_t)error);
}

static int fd_of(const struct collection* one) { return atomic_load(&one->fd_after) - 1; }

// Ends the collection, and gives the channel back.
static void drop(struct collection* one) {
  atomic_store(&one->fd_after, 0);
  atomic_fetch_sub(&in_use, 1);
  channel_give_back(one->channel, forward_collected_bytes);
}

static void take_servers_error(struct collection* one) {
  const uint32_t error = __atomic_exchange_n(&one->head->error, 0, __ATOMIC_ACQ_REL);
  if (error != 0) note_error(fd_of(one), (int)error);
}

// Waits until a server that has written everything has closed its descriptor. Returns false if it does not.
static bool is_given_back(const struct collection* one) {
  for (int i = 0; i < wait_ms * 10; ++i) {
    if (stored(one) & forward_closed) return true;
    const struct timespec some = {0, 100000};
    if (i < 100)
      RAW1(SYS_sched_yield, 0);
    else
      RAW2(SYS_nanosleep, &some, NULL);
  }
  return false;
}

static bool is_same_file(const struct collection* one, int fd) {
  struct stat about;
  return raw_fstat(fd, &about) == 0 && about.st_ino == one->inode && about.st_dev == one->device;
}

static int lost(void) { return page_count(forward_lost, 1), EIO; }

// Writes what is left with the program's own descriptor. Returns the number of errno; 0: all is written.
static int write_directly(const struct collection* one, int64_t from, int64_t bytes) {
  const int fd = fd_of(one);
  if (!is_same_file(one, fd)) return lost();
  while (from < bytes) {
    const long some =
        RAW4(SYS_pwrite64, fd, channel_memory(one->channel) + from, bytes - from, one->head->offset + from);
    if (some == -EINTR) continue;
    if (some <= 0) return some < 0 ? (int)-some : EIO;
    from += some;
  }
  return 0;
}

// Forgets what a server had written that is no more. Others may have written there since.
static void leave_rest(struct collection* one) {
  char* const memory = channel_memory(one->channel);
  const uint64_t done = stored(one), rest = filled(one) - done;
  memmove(memory, memory + done, rest);
  *one->head = (struct forward_collected){.filled = rest, .offset = one->head->offset + (int64_t)done};
}

// Writes what such a server had left, through another one. Returns the number of errno; 0: all is written.
static int redo(struct collection* one) {
  leave_rest(one);
  const int64_t bytes = (int64_t)filled(one);
  const struct forward_request request = {forward_write, 0, one->head->offset, -1, bytes, 0, 0};
  const int fd = fd_of(one);
  page_count(forward_redone, 1);
  for (int i = 0; i <= forward_most_servers && is_same_file(one, fd); ++i) {
    enum forward_count why;
    struct forward_answer answer;
    if (!channel_connect(one->channel, &why)) {
      if (why == forward_no_server && page_fails_without_servers()) return EIO;
      break;
    }
    const enum channel_outcome outcome = channel_call(one->channel, &request, fd, -1, &answer);
    if (outcome == channel_unknown) return lost();
    if (outcome != channel_answered) continue;
    if (answer.own != 0) break;
    if (answer.result < 0) return answer.error;
    return write_directly(one, answer.result, bytes);
  }
  return write_directly(one, 0, bytes);
}

// Has the server write what is there, which may end the collection.
static enum channel_outcome ask(struct collection* one, bool is_last) {
  const struct forward_request request = {forward_store, is_last ? forward_last : 0, -1, -1, 0, 0, 0};
  struct forward_answer answer;
  const enum channel_outcome outcome = channel_call(one->channel, &request, -1, -1, &answer);
  return outcome == channel_answered && answer.own != 0 ? channel_ended : outcome;
}

// Has what is there written. With `is_last` the collection ends. Returns false if it has ended.
static bool store(struct collection* one, bool is_last) {
  const bool has_socket = channel_is_connected(one->channel);
  if (!(filled(one) & forward_closed) && has_socket) {
    const enum channel_outcome outcome = ask(one, is_last);
    if (outcome == channel_unknown) {  // the memory has been given up as well
      note_error(fd_of(one), lost());
      return drop(one), false;
    }
    if (outcome == channel_answered) {
      take_servers_error(one);
      if (is_last) drop(one);
      return !is_last;
    }
  }
  int error = 0;
  take_servers_error(one);
  // A server that ends in order, or finds the connection closed, writes everything. One that was killed does not.
  if ((filled(one) & forward_closed) || !has_socket) {
    if (!is_given_back(one) && !(filled(one) & forward_closed)) error = lost();
    take_servers_error(one);
  } else if (filled(one) != stored(one)) {
    error = redo(one);
  }
  if (error != 0) note_error(fd_of(one), error);
  return drop(one), false;
}

static bool has_pending(const struct collection* one) {
  return (filled(one) & ~forward_closed) != (stored(one) & ~forward_closed);
}

// Calls `store` for all collections that `is_meant` accepts. Returns true if anything was to be stored.
typedef bool choice(const struct collection* one, const void* what);

static bool store_chosen(choice* is_meant, const void* what, bool is_last) {
  if (atomic_load(&in_use) == 0 || !collect_is_mine()) return false;
  const int before = errno;
  uint64_t signals;
  block_all(&signals);
  bool any = false;
  const uint32_t servers = page_servers();
  const int64_t began_ns = page_now_ns();
  for (int i = 0; i < most_collected; ++i) {
    if (atomic_load(&all[i].fd_after) == 0) continue;
    acquire(&all[i].lock);
    if (atomic_load(&all[i].fd_after) != 0 && is_meant(&all[i], what)) {
      any = any || has_pending(&all[i]);
      if (is_last || has_pending(&all[i])) store(&all[i], is_last);
    }
    release(&all[i].lock);
  }
  if (any) page_was_busy(servers > 0 ? servers : 1, began_ns);
  unblock(&signals);
  errno = before;
  return any;
}

static bool is_any(const struct collection* one, const void* unused) { return (void)one, (void)unused, true; }
static bool is_file(const struct collection* one, const void* what) {
  const struct stat* const about = what;
  return one->inode == about->st_ino && one->device == about->st_dev;
}
static bool is_between(const struct collection* one, const void* what) {
  const unsigned* const range = what;
  return (unsigned)fd_of(one) >= range[0] && (unsigned)fd_of(one) <= range[1];
}

void collect_store_all(void) { store_chosen(is_any, NULL, false); }
void collect_end_all(void) { store_chosen(is_any, NULL, true); }

bool collect_store_inode(dev_t device, ino_t inode) {
  const struct stat about = {.st_dev = device, .st_ino = inode};
  return store_chosen(is_file, &about, false);
}

void collect_store_file(int fd) {
  struct stat about;
  if (atomic_load(&in_use) == 0 || file_look(fd) == file_direct || raw_fstat(fd, &about) != 0) return;
  store_chosen(is_file, &about, false);
}

static bool has_between(const unsigned range[2]) {
  for (int i = 0; i < most_collected; ++i)
    if (atomic_load(&all[i].fd_after) != 0 && is_between(&all[i], range)) return true;
  return false;
}

void collect_end(unsigned first, unsigned last) {
  const unsigned range[2] = {first, last};
  if (atomic_load(&in_use) > 0 && has_between(range)) store_chosen(is_between, range, true);
  for (unsigned fd = first; fd == first || (fd <= last && atomic_load(&in_use) > 0 && fd < file_most_descriptors); ++fd)
    file_not_written((int)fd);
}

// ---- mappings ------------------------------------------------------------------------------------------------------

static bool is_mapped(const struct stat* about) {
  if (atomic_load(&mapped) == 0) return false;
  bool found = false;
  acquire(&mappings_lock);
  for (int i = 0; i < most_mappings; ++i)
    found =
        found || (mappings[i].end != 0 && mappings[i].inode == about->st_ino && mappings[i].device == about->st_dev);
  release(&mappings_lock);
  return found;
}

void collect_mapped(int fd, const void* where, size_t bytes) {
  struct stat about;
  if (!collect_is_on || !collect_is_mine() || raw_fstat(fd, &about) != 0) return;
  uint64_t signals;
  block_all(&signals);
  acquire(&mappings_lock);
  int free_one = 0;
  while (free_one < most_mappings && mappings[free_one].end != 0) ++free_one;
  if (free_one < most_mappings) {
    mappings[free_one] = (struct mapping){(uintptr_t)where, (uintptr_t)where + bytes, about.st_dev, about.st_ino};
    atomic_fetch_add(&mapped, 1);
  } else {
    collect_is_on = false;
  }
  release(&mappings_lock);
  unblock(&signals);
  store_chosen(is_file, &about, true);
  if (!collect_is_on) collect_end_all();
}

void collect_unmapped(const void* where, size_t bytes) {
  if (atomic_load(&mapped) == 0 || !collect_is_mine()) return;
  uint64_t signals;
  block_all(&signals);
  acquire(&mappings_lock);
  for (int i = 0; i < most_mappings; ++i) {
    struct mapping* const one = &mappings[i];
    if (one->end == 0 || one->first < (uintptr_t)where || one->end > (uintptr_t)where + bytes + 4095) continue;
    one->end = 0;
    atomic_fetch_sub(&mapped, 1);
  }
  release(&mappings_lock);
  unblock(&signals);
}

// ---- collecting ----------------------------------------------------------------------------------------------------

// Returns the collection of the descriptor, locked; NULL if there is none.
static struct collection* locked_of(int fd) {
  if (atomic_load(&in_use) == 0) return NULL;
  for (int i = 0; i < most_collected; ++i) {
    if (fd_of(&all[i]) != fd) continue;
    acquire(&all[i].lock);
    if (fd_of(&all[i]) == fd) return &all[i];
    release(&all[i].lock);
  }
  return NULL;
}

// Returns an unused one, locked. One that the server has given back is unused. NULL if there is none.
static struct collection* locked_unused(void) {
  for (int i = 0; i < most_collected; ++i) {
    uint32_t is_free = 0;
    if (!atomic_compare_exchange_strong(&all[i].lock, &is_free, 1)) continue;
    if (atomic_load(&all[i].fd_after) != 0 && (filled(&all[i]) & forward_closed)) store(&all[i], true);
    if (atomic_load(&all[i].fd_after) == 0) return &all[i];
    release(&all[i].lock);
  }
  return NULL;
}

// True if the writes of the descriptor may be delayed at all.
static bool may_wait(int fd, struct stat* about) {
  const long flags = RAW2(SYS_fcntl, fd, F_GETFL);
  return flags >= 0 && (flags & (O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)) == 0 && !forward_is_limited() &&
         raw_fstat(fd, about) == 0 && !is_mapped(about);
}

// Has a server keep the descriptor. Returns false if none does.
static bool hold(struct collection* one, int fd) {
  enum forward_count why;
  one->channel = channel_take(&why);
  if (!one->channel) return false;
  one->head = (struct forward_collected*)(channel_memory(one->channel) + forward_collected_at);
  *one->head = (struct forward_collected){0};
  one->epoch = channel_epoch(one->channel);
  const struct forward_request request = {forward_hold, 0, -1, -1, 0, 0, 0};
  struct forward_answer answer;
  if (channel_call(one->channel, &request, fd, -1, &answer) == channel_answered && answer.own == 0) return true;
  channel_give_back(one->channel, 0);
  return false;
}

static struct collection* begin_alone(int fd) {
  struct stat about;
  file_not_written(fd);  // if it fails, one write is sent before the next attempt
  if (!may_wait(fd, &about)) return NULL;
  store_chosen(is_file, &about, true);  // one at a time for a file, so that overlapping writes stay in order
  struct collection* const one = locked_unused();
  if (!one) return NULL;
  if (!hold(one, fd)) return release(&one->lock), NULL;
  one->device = about.st_dev;
  one->inode = about.st_ino;
  atomic_fetch_add(&in_use, 1);
  atomic_store(&one->fd_after, fd + 1);
  file_wrote(fd);
  return one;
}

// Begins a collection for the descriptor, and returns it locked; NULL: its writes are to be sent.
static struct collection* begin(int fd) {
  acquire(&beginning);
  struct collection* const one = begin_alone(fd);
  release(&beginning);
  return one;
}

// True if the kernel can read these bytes: it reads some of each page, in a call that then fails for another reason.
static bool is_readable(const void* from, size_t bytes) {
  enum { page_bytes = 4096, no_change = 99 };
  const uintptr_t end = (uintptr_t)from + bytes;
  for (uintptr_t at = (uintptr_t)from & ~(uintptr_t)(page_bytes - 1); at < end; at += page_bytes)
    if (RAW4(SYS_rt_sigprocmask, no_change, at, NULL, sizeof(uint64_t)) != -EINVAL) return false;
  return true;
}

// Returns false if the program's memory is not there, so that the kernel gives the program its EFAULT.
static bool copy(char* memory, const struct iovec* parts, int count) {
  for (int i = 0; i < count; ++i) {
    if (!is_readable(parts[i].iov_base, parts[i].iov_len)) return false;
    memcpy(memory, parts[i].iov_base, parts[i].iov_len);
    memory += parts[i].iov_len;
  }
  return true;
}

// Lets the server write what is there while the program goes on.
static void begin_to_store(const struct collection* one) {
  const struct forward_request request = {forward_store, forward_unanswered, -1, -1, 0, 0, 0};
  channel_tell(one->channel, &request);
}

// Puts the bytes in. Returns false if the write is to be sent instead; the collection may have ended then.
static bool put(struct collection* one, const struct forward_data* data, int64_t bytes) {
  if (one->epoch != page_epoch() || !file_is_single(data->fd) || !is_same_file(one, data->fd))
    return store(one, true), false;
  uint64_t at = filled(one);
  if (!(at & forward_closed) && at + (uint64_t)bytes > forward_collected_bytes && store(one, false)) at = filled(one);
  if (atomic_load(&one->fd_after) == 0 || atomic_load(&errors[data->fd]) != 0) return false;
  if (__atomic_load_n(&one->head->error, __ATOMIC_ACQUIRE) != 0) return take_servers_error(one), false;
  if (at & forward_closed) return store(one, true), false;
  if (!copy(channel_memory(one->channel) + at, data->parts, data->count)) return false;
  const int64_t end = RAW3(SYS_lseek, data->fd, bytes, SEEK_CUR);
  if (end < 0) return false;
  if (at == 0) one->head->offset = end - bytes;
  if (one->head->offset + (int64_t)at + bytes == end &&
      __atomic_compare_exchange_n(&one->head->filled, &at, at + (uint64_t)bytes, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    if (at / begun_bytes != (at + (uint64_t)bytes) / begun_bytes) begin_to_store(one);
    return true;
  }
  // The offset was moved unnoticed, or the server has given the descriptor back just now.
  RAW3(SYS_lseek, data->fd, -bytes, SEEK_CUR);
  store(one, false);
  return false;
}

static bool is_small_write(const struct forward_data* data, int64_t bytes) {
  return data->writes && data->offset == -1 && data->flags == 0 && bytes <= small_bytes && !collect_avoids;
}

bool collect_write(const struct forward_data* data, int64_t bytes, ssize_t* result) {
  bool done = false;
  if (is_small_write(data, bytes) && file_is_single(data->fd) && has_same_memory()) {
    pthread_testcancel();
    const int before = errno;
    uint64_t signals;
    block_all(&signals);
    struct collection* one = locked_of(data->fd);
    if (!one && file_has_written(data->fd)) one = begin(data->fd);
    done = one && put(one, data, bytes);
    if (one) release(&one->lock);
    unblock(&signals);
    errno = before;
  }
  if (!done) {
    collect_store_file(data->fd);
    return false;
  }
  *result = bytes;
  page_count(forward_calls, 1);
  page_count(forward_bytes, (uint64_t)bytes);
  page_count(forward_collected_calls, 1);
  return true;
}

int collect_take_error(int fd) {
  if ((unsigned)fd >= file_most_descriptors || atomic_load_explicit(&errors[fd], memory_order_relaxed) == 0) return 0;
  return atomic_exchange(&errors[fd], 0);
}

void collect_opened(int fd) {
  if ((unsigned)fd >= file_most_descriptors) return;
  struct stat about;
  if (files_are_lent()) return;
  collect_end((unsigned)fd, (unsigned)fd);  // it was closed unnoticed
  if (atomic_load(&in_use) > 0 && !file_is_elsewhere(fd) && raw_fstat(fd, &about) == 0)
    store_chosen(is_file, &about, true);
  atomic_store_explicit(&errors[fd], 0, memory_order_relaxed);
}

void collect_begin(void) {
  for (int i = 0; i < most_collected; ++i) {
    atomic_store(&all[i].lock, 0);
    atomic_store(&all[i].fd_after, 0);
  }
  atomic_store(&in_use, 0);
  atomic_store(&beginning, 0);
  atomic_store(&mappings_lock, 0);
  process = (pid_t)RAW1(SYS_getpid, 0);
  if (!is_parent) {
    void* const memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, 4096, MADV_WIPEONFORK) != 0) return;
    is_parent = memory;
  }
  atomic_store(is_parent, 1);
  collect_is_on = is_readable(&process, sizeof process);
}
