#define _GNU_SOURCE
#include "forwarding/static_programs.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "forwarding/forward.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"

enum {
  head_bytes = 256,    // of a script, of which the kernel takes no more
  most_scripts = 5,    // that the kernel follows: the interpreter of a script may be a script
  most_headers = 256,  // of an ELF file
};

// The dynamic loader has no loader itself, but loads the program that it is given, with its libraries.
static bool is_loader(const char* name) { return strncmp(name, "ld-", 3) == 0 || strncmp(name, "ld.so", 5) == 0; }

// Opens the file for reading, if it is a regular one: to open a device may change it. Returns -1 if that fails.
static int open_regular(int at, const char* path) {
  struct stat about;
  if (RAW4(SYS_newfstatat, at, path, &about, 0) != 0 || !S_ISREG(about.st_mode)) return -1;
  return (int)RAW4(SYS_openat, at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
}

// True if the kernel loads the file without the dynamic loader. False if that cannot be read.
static bool is_static(int fd, const char* head, long bytes) {
  Elf64_Ehdr header;
  if (bytes < (long)sizeof header) return false;
  memcpy(&header, head, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header.e_phnum == 0 || header.e_phnum > most_headers) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr one;
    const uint64_t at = header.e_phoff + (uint64_t)i * header.e_phentsize;
    if (RAW4(SYS_pread64, fd, &one, sizeof one, at) != (long)sizeof one || one.p_type == PT_INTERP) return false;
  }
  return true;
}

// Returns the interpreter of a script, whose first bytes are `head`; NULL: it is no script.
static const char* interpreter_of(char* head, long bytes) {
  if (bytes < 2 || head[0] != '#' || head[1] != '!') return NULL;
  head[bytes] = '\0';
  char* const begin = head + 2 + strspn(head + 2, " \t");
  begin[strcspn(begin, " \t\n")] = '\0';
  return *begin ? begin : NULL;
}

static void copy_file_name(char name[forward_name_bytes], const char* path) {
  const char* const slash = strrchr(path, '/');
  strncpy(name, slash ? slash + 1 : path, forward_name_bytes - 1);
  name[forward_name_bytes - 1] = '\0';
}

bool static_count(int at, const char* path) {
  struct stat about;
  // The kernel refuses a path that cannot be read.
  if (!forward_is_on || RAW4(SYS_newfstatat, at, path, &about, AT_EMPTY_PATH) != 0) return false;
  char head[head_bytes + 1], name[forward_name_bytes];
  for (int i = 0; path && i < most_scripts; ++i) {
    copy_file_name(name, path);
    const bool is_open = *path == '\0';
    const int fd = is_open ? at : open_regular(at, path);
    if (fd < 0) return false;
    const long bytes = RAW4(SYS_pread64, fd, head, head_bytes, 0);
    const bool found = is_static(fd, head, bytes);
    if (!is_open) RAW1(SYS_close, fd);
    if (found && !is_loader(name)) return page_count_static(name), true;
    path = interpreter_of(head, bytes);
    at = AT_FDCWD;
  }
  return false;
}
