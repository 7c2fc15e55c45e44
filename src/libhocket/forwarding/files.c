#define _GNU_SOURCE
#include "forwarding/files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "forwarding/forward.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"

// For each descriptor its hint, and if this process has opened it, has no other one of its description, and has
// written. The last two are known before the hint is: it is a regular file of the prefix's file system, or its name
// begins with the prefix.
enum {
  hint_mask = 3,
  opened_here = 4,
  is_single = 8,
  has_written = 16,
  is_here = 32,
  is_below = 64,
  has_told_loss = 128,  // a sync has failed, because nobody knows where relayed writes are
};
static _Atomic uint8_t hints[file_most_descriptors];
static _Atomic int largest_seen = -1;
// The only other descriptor of the same description, plus one; 0: there is none, or nobody knows.
static _Atomic uint32_t partners[file_most_descriptors];
// A file was seen that is on the prefix's file system, but not below the prefix. From then on the name of a new
// descriptor is asked for instead of its device: that takes longer, but decides about such files as well.
static _Atomic bool has_neighbours;
static _Thread_local pid_t lender;  // the process that may have called vfork in this thread; 0: none has
static _Atomic pid_t owner;         // whose memory this is, once another process may run beside it in it; 0: none may

static char* put_number(char* end, unsigned number) {
  *--end = '\0';
  do *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

// True if the kernel's name of the file begins with the prefix. That name has no symbolic links and no "..". Of the
// name, `room` bytes are read.
static bool begins_with_prefix(int fd, char* path, size_t room) {
  static const char directory[] = "/proc/self/fd/";
  char link[sizeof directory + 12], number[12];
  memcpy(link, directory, sizeof directory);
  strcpy(link + sizeof directory - 1, put_number(number + sizeof number, (unsigned)fd));
  const long length = RAW4(SYS_readlinkat, AT_FDCWD, link, path, room);
  size_t prefix_length;
  const char* prefix = page_prefix(&prefix_length);
  if (length <= (long)prefix_length || memcmp(path, prefix, prefix_length) != 0) return false;
  return path[prefix_length] == '/' || prefix_length == 1;
}

static __attribute__((noinline)) bool is_below_long_prefix(int fd) {
  char path[PATH_MAX];
  return begins_with_prefix(fd, path, sizeof path);
}

// A handler on a stack of its own has little room, so no more of the name is read than is compared.
static bool is_below_prefix(int fd) {
  char path[256];
  size_t prefix_length;
  page_prefix(&prefix_length);
  return prefix_length + 2 > sizeof path ? is_below_long_prefix(fd) : begins_with_prefix(fd, path, sizeof path);
}

static bool is_regular_here(int fd) {
  struct stat about;
  return raw_fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && page_is_of(about.st_dev);
}

// Returns what one system call tells of a descriptor.
static uint8_t look_once(int fd) {
  if (atomic_load_explicit(&has_neighbours, memory_order_relaxed)) return is_below_prefix(fd) ? is_below : file_direct;
  return is_regular_here(fd) ? is_here : file_direct;
}

static enum file_hint look(int fd) {
  uint8_t old = atomic_load_explicit(&hints[fd], memory_order_relaxed);
  const bool here = (old & is_here) || is_regular_here(fd);
  const bool forwarded = here && ((old & is_below) || is_below_prefix(fd));
  if (here && !forwarded) atomic_store_explicit(&has_neighbours, true, memory_order_relaxed);
  if (files_are_lent()) return forwarded ? file_forwarded : file_direct;
  uint8_t found;
  do {
    found = file_direct;
    if (forwarded) found = (old & opened_here) ? file_own : file_forwarded;
  } while (!atomic_compare_exchange_weak(&hints[fd], &old, found | (old & ~hint_mask)));
  int largest = atomic_load(&largest_seen);
  while (fd > largest && !atomic_compare_exchange_weak(&largest_seen, &largest, fd)) {
  }
  return found;
}

enum file_hint file_look(int fd) {
  if ((unsigned)fd >= file_most_descriptors) return file_direct;
  const enum file_hint known = atomic_load_explicit(&hints[fd], memory_order_relaxed) & hint_mask;
  return known != file_unknown ? known : look(fd);
}

bool file_is_elsewhere(int fd) {
  if ((unsigned)fd >= file_most_descriptors) return true;
  return (atomic_load_explicit(&hints[fd], memory_order_relaxed) & hint_mask) == file_direct;
}

// A descriptor that still looks as if it were to be forwarded would be refused at each call.
void file_refused(int fd) {
  file_forget((unsigned)fd, (unsigned)fd);
  if (file_look(fd) != file_direct) atomic_store_explicit(&hints[fd], file_direct, memory_order_relaxed);
}

// Returns the partner, plus one, of which it is none any more; 0: it had none.
static uint32_t unpair(unsigned fd) {
  const uint32_t other = atomic_exchange(&partners[fd], 0);
  uint32_t same = fd + 1;
  return other != 0 && atomic_compare_exchange_strong(&partners[other - 1], &same, 0) ? other : 0;
}

// The description has no descriptor `fd` any more. If there was one other, that one is single again.
static void part(unsigned fd) {
  const uint32_t other = unpair(fd);
  if (other != 0 && (atomic_load(&hints[other - 1]) & opened_here)) atomic_fetch_or(&hints[other - 1], is_single);
}

void file_forget(unsigned first, unsigned last) {
  const unsigned end = (unsigned)(atomic_load_explicit(&largest_seen, memory_order_relaxed) + 1);
  for (unsigned fd = first; fd <= last && fd < end; ++fd) {
    atomic_store_explicit(&hints[fd], file_unknown, memory_order_relaxed);
    if (atomic_load_explicit(&partners[fd], memory_order_relaxed) != 0) part(fd);
  }
}

static void set(int fd, uint8_t hint) {
  if ((unsigned)fd >= file_most_descriptors) return;
  atomic_store_explicit(&hints[fd], hint, memory_order_relaxed);
  int largest = atomic_load(&largest_seen);
  while (fd > largest && !atomic_compare_exchange_weak(&largest_seen, &largest, fd)) {
  }
}

// Notes a new descriptor. In a child of vfork the table is the parent's.
static void begin(int fd, uint8_t hint) {
  if ((unsigned)fd >= file_most_descriptors) return;
  if (files_are_lent()) {
    file_forget((unsigned)fd, (unsigned)fd);
    return;
  }
  part((unsigned)fd);
  set(fd, hint);
}

void file_opened(int fd) {
  const uint8_t hint = forward_is_on ? look_once(fd) : file_unknown;
  begin(fd, (uint8_t)(hint | opened_here | is_single));
}

void file_is_none(int fd) { begin(fd, file_direct); }

void file_duplicated(int old, int fd) {
  if (files_are_lent()) {
    file_forget((unsigned)fd, (unsigned)fd);
    return;
  }
  if ((unsigned)fd < file_most_descriptors) part((unsigned)fd);
  if ((unsigned)old >= file_most_descriptors) {
    set(fd, file_unknown);
    return;
  }
  const uint8_t not_copied = is_single | has_written;
  const uint8_t before = atomic_fetch_and(&hints[old], (uint8_t)~not_copied);
  set(fd, before & (uint8_t)~not_copied);
  unpair((unsigned)old);  // of three descriptors, nobody knows which is the last
  if (!(before & is_single) || (unsigned)fd >= file_most_descriptors) return;
  atomic_store(&partners[old], (uint32_t)fd + 1);
  atomic_store(&partners[fd], (uint32_t)old + 1);
}

bool file_is_single(int fd) {
  if ((unsigned)fd >= file_most_descriptors) return false;
  const uint8_t hint = atomic_load(&hints[fd]);
  return (hint & hint_mask) == file_own && (hint & is_single);
}

void file_wrote(int fd) {
  if ((unsigned)fd < file_most_descriptors) atomic_fetch_or(&hints[fd], has_written);
}

void file_not_written(int fd) {
  if ((unsigned)fd < file_most_descriptors) atomic_fetch_and(&hints[fd], (uint8_t)~has_written);
}

bool file_has_written(int fd) {
  return (unsigned)fd < file_most_descriptors && (atomic_load(&hints[fd]) & has_written);
}

bool file_tell_loss(int fd) {
  if ((unsigned)fd >= file_most_descriptors) return true;
  return !(atomic_fetch_or(&hints[fd], has_told_loss) & has_told_loss);
}

void files_shared(void) {
  const int largest = atomic_load(&largest_seen);
  for (int fd = 0; fd <= largest; ++fd) {
    uint8_t old = atomic_load_explicit(&hints[fd], memory_order_relaxed);
    uint8_t now;
    do {
      now = old & (hint_mask | is_here | is_below | has_told_loss);
      if ((now & hint_mask) == file_own) now = (uint8_t)((now & ~hint_mask) | file_forwarded);
    } while (!atomic_compare_exchange_weak(&hints[fd], &old, now));
  }
}

static pid_t own_number(void) { return (pid_t)RAW1(SYS_getpid, 0); }

// A child of vfork that calls vfork itself remains one.
void files_lent(void) {
  if (!files_are_lent()) lender = own_number();
}

void files_lent_beside(void) {
  pid_t nobody = 0;
  atomic_compare_exchange_strong(&owner, &nobody, own_number());
}

void files_are_own(void) {
  lender = 0;
  atomic_store(&owner, 0);
}

// The thread of the parent that has called vfork stands still until its child has executed a program or ended, so it is
// the parent that finds its own number here.
bool files_are_lent(void) {
  const pid_t whose = atomic_load_explicit(&owner, memory_order_relaxed);
  if (whose == 0 && lender == 0) return false;
  const pid_t own = own_number();
  if (whose != 0 && whose != own) return true;
  if (lender != 0 && lender != own) return true;
  lender = 0;
  return false;
}
