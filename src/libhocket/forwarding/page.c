#define _GNU_SOURCE
#include "forwarding/page.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "forwarding/raw.h"

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

uint32_t page_epoch(void) { return atomic_load_explicit(&page->epoch, memory_order_acquire); }

uint32_t page_servers(void) {
  const uint32_t servers = atomic_load_explicit(&page->servers, memory_order_relaxed);
  return servers < forward_most_servers ? servers : forward_most_servers;
}

// The writer makes the epoch odd, changes the servers, and makes it even again. A reader that was disturbed reads
// again; a writer that died in between leaves the reader without a server, after a bounded number of attempts.
uint32_t page_server(uint32_t process, uint32_t choice, char path[forward_path_bytes]) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t epoch = page_epoch();
    const uint32_t servers = page_servers();
    if ((epoch & 1) == 0 && servers == 0) return 0;
    if ((epoch & 1) == 0) {
      const uint32_t group = page->group > 0 ? page->group : 1;
      memcpy(path, page->sockets[(process / group + choice) % servers], forward_path_bytes);
      atomic_thread_fence(memory_order_acquire);
      if (page_epoch() == epoch) return path[forward_path_bytes - 1] = '\0', epoch;
    }
    RAW1(SYS_sched_yield, 0);
  }
  return 0;
}

uint32_t page_new_process(void) { return atomic_fetch_add_explicit(&page->processes, 1, memory_order_relaxed); }
const char* page_application(void) { return page->application; }
bool page_is_direct(void) { return atomic_load_explicit(&page->direct, memory_order_relaxed) != 0; }
// The second half is for a caller that has found no server, while the application was given none.
bool page_fails_without_servers(void) { return (page->choices & forward_fails) != 0 && !page_is_direct(); }
bool page_collects(void) { return (page->choices & forward_collects) != 0; }

void page_count(enum forward_count what, uint64_t by) {
  if (page) atomic_fetch_add_explicit(&page->counts[what], by, memory_order_relaxed);
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
