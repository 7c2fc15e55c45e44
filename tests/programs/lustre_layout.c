// Preloaded: files whose path contains "lustre" are on Lustre, in one stripe on the OST $LAYOUT_OST. Each question for
// the layout adds a line, the rank, to $LAYOUT_LOG.
//
// It answers statfs and getxattr as Lustre's client does, but only to libhocket: MPI would use its driver for Lustre.
// Reads and writes go where the file really is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

typedef int statfs_function(const char*, struct statfs*);
typedef ssize_t getxattr_function(const char*, const char*, void*, size_t);

#define NEXT(type, name) (*(type*)(void*[]){dlsym(RTLD_NEXT, name)})

enum { stripe_count_at = 28, index_at = 32 + 20, layout_bytes = 32 + 24 };
static const uint32_t magic_of_file_system = 0x0bd00bd0, magic_of_layout = 0x0bd10bd0;

static void note_question(void) {
  const char* rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  char line[32];
  const int length = snprintf(line, sizeof line, "%s\n", rank ? rank : "?");
  const int log = open(getenv("LAYOUT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0 || write(log, line, (size_t)length) != length) _exit(3);
  close(log);
}

static int is_hocket(void* caller) {
  Dl_info about;
  return dladdr(caller, &about) && strstr(about.dli_fname, "libhocket-");
}

int statfs(const char* path, struct statfs* system) {
  const int rc = NEXT(statfs_function*, "statfs")(path, system);
  if (rc == 0 && strstr(path, "lustre") && is_hocket(__builtin_return_address(0)))
    system->f_type = magic_of_file_system;
  return rc;
}

ssize_t getxattr(const char* path, const char* name, void* value, size_t size) {
  if (!strstr(path, "lustre") || strcmp(name, "lustre.lov") != 0)
    return NEXT(getxattr_function*, "getxattr")(path, name, value, size);
  note_question();
  if (size < layout_bytes) {
    errno = ERANGE;
    return -1;
  }
  const uint32_t pattern = 1, ost = (uint32_t)atoi(getenv("LAYOUT_OST"));
  const uint16_t stripes = 1;
  memset(value, 0, layout_bytes);
  memcpy(value, &magic_of_layout, sizeof magic_of_layout);
  memcpy((char*)value + sizeof magic_of_layout, &pattern, sizeof pattern);
  memcpy((char*)value + stripe_count_at, &stripes, sizeof stripes);
  memcpy((char*)value + index_at, &ost, sizeof ost);
  return layout_bytes;
}
