#define _GNU_SOURCE
#include "forwarding/entries.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "forwarding/raw.h"

#if defined(__x86_64__)

enum { page_bytes = 4096 };

bool redirect(void* function, void (*replacement)(void)) {
  // endbr64, for processors that check where indirect calls go; jmp *0(%rip); the address.
  unsigned char jump[redirect_bytes] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
  memcpy(jump + 10, &replacement, sizeof replacement);
  const uintptr_t first = (uintptr_t)function & ~(uintptr_t)(page_bytes - 1);
  const uintptr_t last = ((uintptr_t)function + sizeof jump - 1) & ~(uintptr_t)(page_bytes - 1);
  const size_t bytes = last - first + page_bytes;
  if (mprotect((void*)first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  memcpy(function, jump, sizeof jump);
  return mprotect((void*)first, bytes, PROT_READ | PROT_EXEC) == 0;
}

#else

bool redirect(void* function, void (*replacement)(void)) {
  (void)function;
  (void)replacement;
  return false;
}

#endif

bool has_one_thread(void) {
  const int fd = (int)RAW4(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  char entries[1024];
  int threads = 0;
  long length;
  while ((length = RAW3(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
    // struct linux_dirent64: inode (8 bytes), offset (8), length of the entry (2), type (1), name.
    for (long at = 0; at < length;) {
      uint16_t bytes;
      memcpy(&bytes, entries + at + 16, sizeof bytes);
      if (entries[at + 19] != '.') ++threads;
      at += bytes;
    }
  }
  RAW1(SYS_close, fd);
  return threads == 1;
}
