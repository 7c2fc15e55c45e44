#define _GNU_SOURCE
#include "forwarding/page.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "forwarding/raw.h"

// tests/forward/test_page.py has the same numbers of the Python side.
_Static_assert(offsetof(struct forward_page, first_static) == 20248, "forward_page.py");
_Static_assert(offsetof(struct forward_page, device) == 20312, "forward_page.py");
_Static_assert(sizeof(struct forward_page) == 20328, "forward_page.py");

static struct forward_page* page;  // set before `main`, never changed
static size_t prefix_length;
static int (*libc_clock)(clockid_t, struct timespec*);  // NULL: the kernel is asked

// libc's own function, because tools that are preloaded replace it (faketime), and the time would not be the real one.
static void find_clock(void) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = libc ? dlsym(libc, "clock_gettime") : NULL;
  libc_clock = __extension__(int (*)(clockid_t, struct timespec*)) found;
}

// The page must belong to this user or root, because it names the sockets to which data are sent.
static bool is_usable(int fd) {
  struct stat about;
  if (raw_fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < (off_t)sizeof(struct forward_page))
    return false;
  return (about.st_uid == (uid_t)RAW1(SYS_geteuid, 0) || about.st_uid == 0) &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool page_open(void) {
  const char* path = getenv("HOCKET_FORWARD");
  if (!path || !*path) return false;
  const int fd = (int)RAW4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
  if (fd < 0) return false;
  struct forward_page* mapped = MAP_FAILED;
  if (is_usable(fd)) mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  RAW1(SYS_close, fd);
  if (mapped == MAP_FAILED) return false;
  const size_t length = strnlen(mapped->prefix, sizeof mapped->prefix);
  if (memcmp(mapped->magic, FORWARD_MAGIC, sizeof mapped->magic) != 0 || mapped->version != forward_version ||
      length == sizeof mapped->prefix || mapped->prefix[0] != '/') {
    munmap(mapped, sizeof *mapped);
    return false;
  }
  prefix_length = length;
  page = mapped;
  find_clock();
  return true;
}

const char* page_prefix(size_t* length) {
  *length = prefix_length;
  return page ? page->prefix : NULL;
}

bool page_is_of(dev_t device) { return page->device == 0 || page->device == device; }

uint32_t page_epoch(void) { return atomic_load_explicit(&page->epoch, memory_order_acquire); }

static const struct forward_servers* servers_of(uint32_t epoch) { return &page->servers[epoch % 2]; }

static uint32_t count_of(const struct forward_servers* servers) {
  const uint32_t count = atomic_load_explicit(&servers->count, memory_order_relaxed);
  return count < forward_most_servers ? count : forward_most_servers;
}

static bool is_direct(const struct forward_servers* servers) {
  return atomic_load_explicit(&servers->direct, memory_order_relaxed) != 0;
}

uint32_t page_servers(void) { return count_of(servers_of(page_epoch())); }
bool page_is_direct(void) { return is_direct(servers_of(page_epoch())); }

// A reader never waits for the writer, which may have been stopped anywhere: the writer fills the servers of the next
// epoch, then changes the epoch. Only a reader that was so slow that there is another epoch by now reads again.
bool page_server(uint32_t process, uint32_t choice, char path[forward_path_bytes], uint32_t* epoch,
                 enum forward_count* why) {
  uint32_t count;
  do {
    *epoch = page_epoch();
    const struct forward_servers* const servers = servers_of(*epoch);
    const uint32_t group = page->group > 0 ? page->group : 1;
    count = count_of(servers);
    *why = is_direct(servers) ? forward_unserved : forward_no_server;
    if (count > 0) memcpy(path, servers->sockets[(process / group + choice) % count], forward_path_bytes);
    atomic_thread_fence(memory_order_acquire);
  } while (page_epoch() != *epoch);
  path[forward_path_bytes - 1] = '\0';
  return count > 0;
}

uint32_t page_new_process(void) { return atomic_fetch_add_explicit(&page->processes, 1, memory_order_relaxed); }
const char* page_application(void) { return page->application; }
bool page_fails_without_servers(void) { return (page->choices & forward_fails) != 0; }
bool page_is_relayed(void) { return (page->choices & forward_relayed) != 0; }
bool page_has_relayed_writes(void) { return atomic_load_explicit(&page->relayed_writes, memory_order_acquire) != 0; }

void page_wrote_by_relay(void) {
  if (!page_has_relayed_writes()) atomic_store_explicit(&page->relayed_writes, 1, memory_order_release);
}

bool page_collects(void) { return (page->choices & forward_collects) != 0; }

void page_count(enum forward_count what, uint64_t by) {
  if (page) atomic_fetch_add_explicit(&page->counts[what], by, memory_order_relaxed);
}

void page_count_static(const char name[forward_name_bytes]) {
  if (!page || atomic_fetch_add(&page->counts[forward_static_programs], 1) != 0) return;
  memcpy(page->first_static, name, sizeof page->first_static);
}

void page_uncount_static(void) {
  if (page) atomic_fetch_sub(&page->counts[forward_static_programs], 1);
}

int64_t page_now_ns(void) {
  struct timespec now = {0, 0};
  if (!libc_clock || libc_clock(CLOCK_MONOTONIC, &now) != 0) RAW2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Calls of several processes overlap: each adds the time since the end of the last one that ended before, or since its
// own begin. So a process that is killed within a call leaves nothing wrong behind. Time is missed where a call ended
// within a longer one of another process, and nobody else was in a call before it.
void page_was_busy(uint32_t servers, int64_t began_ns) {
  struct forward_seen* const seen = &page->seen[servers < forward_most_servers ? servers : forward_most_servers];
  const int64_t ended_ns = page_now_ns();
  int64_t until_ns = atomic_load_explicit(&page->busy_until_ns, memory_order_relaxed);
  while (until_ns < ended_ns && !atomic_compare_exchange_weak_explicit(&page->busy_until_ns, &until_ns, ended_ns,
                                                                       memory_order_relaxed, memory_order_relaxed)) {
  }
  if (until_ns >= ended_ns) return;
  const int64_t busy_ns = ended_ns - (began_ns > until_ns ? began_ns : until_ns);
  atomic_fetch_add_explicit(&seen->busy_ns, (uint64_t)busy_ns, memory_order_relaxed);
}

void page_saw(uint32_t servers, bool writes, uint64_t bytes, int64_t began_ns) {
  struct forward_seen* const seen = &page->seen[servers < forward_most_servers ? servers : forward_most_servers];
  page_was_busy(servers, began_ns);
  atomic_fetch_add_explicit(writes ? &seen->written_bytes : &seen->read_bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&seen->calls, 1, memory_order_relaxed);
}
