#define _GNU_SOURCE
#include "forwarding/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "forwarding/page.h"
#include "forwarding/raw.h"

// For each descriptor its hint, and if this process has opened it, has no other one of its description, and has
// written.
enum { hint_mask = 3, opened_here = 4, is_single = 8, has_written = 16 };
static _Atomic uint8_t hints[file_most_descriptors];
static _Atomic int largest_seen = -1;
// The only other descriptor of the same description, plus one; 0: there is none, or nobody knows.
static _Atomic uint32_t partners[file_most_descriptors];

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

static bool is_regular(int fd) {
  struct stat about;
  return raw_fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

static enum file_hint look(int fd) {
  const int before = errno;
  const bool forwarded = is_regular(fd) && is_below_prefix(fd);
  errno = before;
  uint8_t old = atomic_load_explicit(&hints[fd], memory_order_relaxed);
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

void file_opened(int fd) {
  if ((unsigned)fd < file_most_descriptors) part((unsigned)fd);
  set(fd, file_unknown | opened_here | is_single);
}

void file_duplicated(int old, int fd) {
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

void files_shared(void) {
  const int largest = atomic_load(&largest_seen);
  for (int fd = 0; fd <= largest; ++fd) {
    uint8_t old = atomic_load_explicit(&hints[fd], memory_order_relaxed);
    uint8_t now;
    do {
      now = old & hint_mask;
      if (now == file_own) now = file_forwarded;
    } while (!atomic_compare_exchange_weak(&hints[fd], &old, now));
  }
}
