// Preloaded: files whose path contains $LAYOUT_UNDER, else "lustre", are on Lustre, in stripes of $LAYOUT_STRIPE bytes
// (1 MiB) on the OSTs $LAYOUT_OST, "3,11". Each question for the layout adds a line to $LAYOUT_LOG: the rank.
//
// It answers statfs, getxattr, and their forms for descriptors as Lustre's client does, but only to libhocket and
// hocket-server: MPI would use its driver for Lustre. Reads and writes go where the file really is.
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
typedef int fstatfs_function(int, struct statfs*);
typedef ssize_t getxattr_function(const char*, const char*, void*, size_t);
typedef ssize_t fgetxattr_function(int, const char*, void*, size_t);

#define NEXT(type, name) (*(type*)(void*[]){dlsym(RTLD_NEXT, name)})

enum {
  stripe_bytes_at = 24,
  stripe_count_at = 28,
  header_bytes = 32,
  object_bytes = 24,
  index_at = 20,
  most_stripes = 64
};
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
  return dladdr(caller, &about) && (strstr(about.dli_fname, "libhocket-") || strstr(about.dli_fname, "hocket-server"));
}

static int is_there(const char* path) {
  const char* under = getenv("LAYOUT_UNDER");
  return strstr(path, under ? under : "lustre") != NULL;
}

static int is_open_there(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_there(path);
}

int statfs(const char* path, struct statfs* system) {
  const int rc = NEXT(statfs_function*, "statfs")(path, system);
  if (rc == 0 && is_there(path) && is_hocket(__builtin_return_address(0))) system->f_type = magic_of_file_system;
  return rc;
}

int fstatfs(int file, struct statfs* system) {
  const int rc = NEXT(fstatfs_function*, "fstatfs")(file, system);
  if (rc == 0 && is_open_there(file) && is_hocket(__builtin_return_address(0))) system->f_type = magic_of_file_system;
  return rc;
}

static ssize_t layout(char* value, size_t size) {
  note_question();
  uint32_t osts[most_stripes];
  uint16_t stripes = 0;
  for (const char* at = getenv("LAYOUT_OST"); at && *at && stripes < most_stripes;
       at += strcspn(at, ","), at += *at == ',')
    osts[stripes++] = (uint32_t)atoi(at);
  const size_t bytes = header_bytes + stripes * (size_t)object_bytes;
  if (size < bytes) {
    errno = ERANGE;
    return -1;
  }
  const uint32_t pattern = 1,
                 stripe_bytes = getenv("LAYOUT_STRIPE") ? (uint32_t)atoi(getenv("LAYOUT_STRIPE")) : 1 << 20;
  memset(value, 0, bytes);
  memcpy(value, &magic_of_layout, sizeof magic_of_layout);
  memcpy(value + sizeof magic_of_layout, &pattern, sizeof pattern);
  memcpy(value + stripe_bytes_at, &stripe_bytes, sizeof stripe_bytes);
  memcpy(value + stripe_count_at, &stripes, sizeof stripes);
  for (size_t i = 0; i < stripes; ++i)
    memcpy(value + header_bytes + i * object_bytes + index_at, &osts[i], sizeof osts[i]);
  return (ssize_t)bytes;
}

ssize_t getxattr(const char* path, const char* name, void* value, size_t size) {
  if (!is_there(path) || strcmp(name, "lustre.lov") != 0)
    return NEXT(getxattr_function*, "getxattr")(path, name, value, size);
  return layout(value, size);
}

ssize_t fgetxattr(int file, const char* name, void* value, size_t size) {
  if (strcmp(name, "lustre.lov") != 0 || !is_open_there(file))
    return NEXT(fgetxattr_function*, "fgetxattr")(file, name, value, size);
  return layout(value, size);
}
