// Wraps the functions of libc that must see what is collected, or after which another process may see the file.
//
// Four functions that libc also calls by itself are redirected in libc (entries.h): streams ask for sizes and seek.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include "forwarding/collect_wrappers.h"

#include <aio.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "forwarding/collect.h"
#include "forwarding/entries.h"
#include "forwarding/files.h"
#include "forwarding/forward.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"
#include "forwarding/static_programs.h"
#include "forwarding/wrap.h"

// Wraps a function before which `first` is done.
#define AFTER(first, result_type, name, parameters, arguments) \
  KNOWN(name, #name)                                           \
  EXPORT result_type name parameters {                         \
    NEXT(result_type, name, #name, parameters);                \
    first;                                                     \
    return next arguments;                                     \
  }

// ---- files by their names: which one is meant is known to the kernel only ------------------------------------------

#define BY_NAME(result_type, name, parameters, arguments) \
  AFTER(collect_store_all(), result_type, name, parameters, arguments)

BY_NAME(int, truncate, (const char* path, off_t size), (path, size))
BY_NAME(int, truncate64, (const char* path, off64_t size), (path, size))
BY_NAME(int, rename, (const char* from, const char* to), (from, to))
BY_NAME(int, renameat, (int from_at, const char* from, int at, const char* to), (from_at, from, at, to))
BY_NAME(int, renameat2, (int from_at, const char* from, int at, const char* to, unsigned flags),
        (from_at, from, at, to, flags))
BY_NAME(int, link, (const char* from, const char* to), (from, to))
BY_NAME(int, linkat, (int from_at, const char* from, int at, const char* to, int flags), (from_at, from, at, to, flags))
// A write that comes later would change the time, and take a setuid bit or capabilities away.
BY_NAME(int, chmod, (const char* path, mode_t mode), (path, mode))
BY_NAME(int, fchmodat, (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags))
BY_NAME(int, chown, (const char* path, uid_t user, gid_t group), (path, user, group))
BY_NAME(int, lchown, (const char* path, uid_t user, gid_t group), (path, user, group))
BY_NAME(int, fchownat, (int at, const char* path, uid_t user, gid_t group, int flags), (at, path, user, group, flags))
BY_NAME(int, utimensat, (int at, const char* path, const struct timespec times[2], int flags), (at, path, times, flags))
BY_NAME(int, utimes, (const char* path, const struct timeval times[2]), (path, times))
BY_NAME(int, lutimes, (const char* path, const struct timeval times[2]), (path, times))
BY_NAME(int, futimesat, (int at, const char* path, const struct timeval times[2]), (at, path, times))
BY_NAME(int, utime, (const char* path, const struct utimbuf* times), (path, times))
BY_NAME(int, setxattr, (const char* path, const char* name, const void* value, size_t bytes, int flags),
        (path, name, value, bytes, flags))
BY_NAME(int, lsetxattr, (const char* path, const char* name, const void* value, size_t bytes, int flags),
        (path, name, value, bytes, flags))
BY_NAME(ssize_t, splice, (int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags),
        (from, from_at, fd, at, bytes, flags))

// Syncs what is not synced through one descriptor of this process: other nodes sync before.
static bool is_synced_elsewhere(int fd) {
  const int error = forward_sync_elsewhere(fd);
  if (error != 0) errno = error;
  return error == 0;
}

KNOWN(sync, "sync")
EXPORT void sync(void) {
  NEXT(void, sync, "sync", (void));
  collect_store_all();
  forward_sync_elsewhere(-1);
  next();
}

// libc refuses other operations before it looks at the control block, which need not be there.
static bool is_sync_elsewhere(int operation) {
  return forward_is_on && page_is_relayed() && (operation == O_SYNC || operation == O_DSYNC);
}

#define SYNCING_MORE(name, parameters, syncs, fd, arguments)    \
  KNOWN(name, #name)                                            \
  EXPORT int name parameters {                                  \
    NEXT(int, name, #name, parameters);                         \
    collect_store_all();                                        \
    const bool is_synced = !(syncs) || is_synced_elsewhere(fd); \
    const int error = errno;                                    \
    const int result = next arguments;                          \
    if (is_synced || result != 0) return result;                \
    errno = error;                                              \
    return -1;                                                  \
  }
SYNCING_MORE(syncfs, (int fd), true, -1, (fd))
SYNCING_MORE(aio_fsync, (int operation, struct aiocb* control), is_sync_elsewhere(operation), control->aio_fildes,
             (operation, control))
SYNCING_MORE(aio_fsync64, (int operation, struct aiocb64* control), is_sync_elsewhere(operation), control->aio_fildes,
             (operation, control))
// The file of the mapping is not known.
KNOWN(msync, "msync")
EXPORT int msync(void* memory, size_t bytes, int flags) {
  NEXT(int, msync, "msync", (void*, size_t, int));
  const bool is_synced = !(flags & MS_SYNC) || is_synced_elsewhere(-1);
  const int error = errno;
  const int result = next(memory, bytes, flags);
  if (is_synced || result != 0) return result;
  errno = error;
  return -1;
}

// ---- files by a descriptor -----------------------------------------------------------------------------------------

#define BY_DESCRIPTOR(result_type, name, parameters, arguments) \
  AFTER(collect_store_file(fd), result_type, name, parameters, arguments)

BY_DESCRIPTOR(int, ftruncate, (int fd, off_t size), (fd, size))
BY_DESCRIPTOR(int, ftruncate64, (int fd, off64_t size), (fd, size))
BY_DESCRIPTOR(int, fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
BY_DESCRIPTOR(int, fallocate64, (int fd, int mode, off64_t at, off64_t bytes), (fd, mode, at, bytes))
BY_DESCRIPTOR(int, posix_fallocate, (int fd, off_t at, off_t bytes), (fd, at, bytes))
BY_DESCRIPTOR(int, posix_fallocate64, (int fd, off64_t at, off64_t bytes), (fd, at, bytes))
BY_DESCRIPTOR(int, posix_fadvise, (int fd, off_t at, off_t bytes, int advice), (fd, at, bytes, advice))
BY_DESCRIPTOR(int, posix_fadvise64, (int fd, off64_t at, off64_t bytes, int advice), (fd, at, bytes, advice))
BY_DESCRIPTOR(int, fchmod, (int fd, mode_t mode), (fd, mode))
BY_DESCRIPTOR(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group))
BY_DESCRIPTOR(int, futimens, (int fd, const struct timespec times[2]), (fd, times))
BY_DESCRIPTOR(int, futimes, (int fd, const struct timeval times[2]), (fd, times))
BY_DESCRIPTOR(int, fsetxattr, (int fd, const char* name, const void* value, size_t bytes, int flags),
              (fd, name, value, bytes, flags))
BY_DESCRIPTOR(int, sync_file_range, (int fd, off64_t at, off64_t bytes, unsigned flags), (fd, at, bytes, flags))

KNOWN(ioctl, "ioctl")
EXPORT int ioctl(int fd, unsigned long command, ...) {
  NEXT(int, ioctl, "ioctl", (int, unsigned long, ...));
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);  // or a number, which is handed on as it came
  va_end(rest);
  if (collect_is_on && file_look(fd) != file_direct) collect_store_all();  // it may name another file, too
  return next(fd, command, argument);
}

// Programs that were linked to an old libc (before 2.33) ask for sizes by these.
#define OLD_STAT(name, parameters, arguments)                                                                         \
  int name parameters;                                                                                                \
  KNOWN(name, #name)                                                                                                  \
  EXPORT int name parameters {                                                                                        \
    NEXT(int, name, #name, parameters);                                                                               \
    const int result = next arguments;                                                                                \
    if (result != 0 || !S_ISREG(about->st_mode) || !collect_store_inode(about->st_dev, about->st_ino)) return result; \
    return next arguments;                                                                                            \
  }
OLD_STAT(__xstat, (int version, const char* path, struct stat* about), (version, path, about))
OLD_STAT(__xstat64, (int version, const char* path, struct stat64* about), (version, path, about))
OLD_STAT(__lxstat, (int version, const char* path, struct stat* about), (version, path, about))
OLD_STAT(__lxstat64, (int version, const char* path, struct stat64* about), (version, path, about))
OLD_STAT(__fxstat, (int version, int fd, struct stat* about), (version, fd, about))
OLD_STAT(__fxstat64, (int version, int fd, struct stat64* about), (version, fd, about))
OLD_STAT(__fxstatat, (int version, int at, const char* path, struct stat* about, int flags),
         (version, at, path, about, flags))
OLD_STAT(__fxstatat64, (int version, int at, const char* path, struct stat64* about, int flags),
         (version, at, path, about, flags))

// A sync speaks for the writes that were collected.
#define SYNCING(name)                                                 \
  KNOWN(name, #name)                                                  \
  EXPORT int name(int fd) {                                           \
    NEXT(int, name, #name, (int));                                    \
    collect_store_file(fd);                                           \
    const int collected = collect_is_on ? collect_take_error(fd) : 0; \
    const int elsewhere = forward_sync_elsewhere(fd);                 \
    const int error = collected != 0 ? collected : elsewhere;         \
    const int result = next(fd);                                      \
    if (error == 0 || result != 0) return result;                     \
    errno = error;                                                    \
    return -1;                                                        \
  }
SYNCING(fsync)
SYNCING(fdatasync)

// ---- locks, limits, other programs: nothing is collected then ------------------------------------------------------

#define WITH_NOTHING(result_type, name, parameters, arguments) \
  AFTER(collect_end_all(), result_type, name, parameters, arguments)

WITH_NOTHING(int, flock, (int fd, int operation), (fd, operation))
WITH_NOTHING(int, lockf, (int fd, int command, off_t bytes), (fd, command, bytes))
WITH_NOTHING(int, lockf64, (int fd, int command, off64_t bytes), (fd, command, bytes))
// The server acts for the user that a process had when a collection began.
WITH_NOTHING(int, setuid, (uid_t user), (user))
WITH_NOTHING(int, seteuid, (uid_t user), (user))
WITH_NOTHING(int, setreuid, (uid_t user, uid_t effective), (user, effective))
WITH_NOTHING(int, setresuid, (uid_t user, uid_t effective, uid_t saved), (user, effective, saved))
WITH_NOTHING(int, setfsuid, (uid_t user), (user))
WITH_NOTHING(int, setrlimit, (__rlimit_resource_t resource, const struct rlimit* limit), (resource, limit))
WITH_NOTHING(int, setrlimit64, (__rlimit_resource_t resource, const struct rlimit64* limit), (resource, limit))
WITH_NOTHING(int, prlimit,
             (pid_t process, enum __rlimit_resource resource, const struct rlimit* new, struct rlimit* old),
             (process, resource, new, old))
WITH_NOTHING(int, prlimit64,
             (pid_t process, enum __rlimit_resource resource, const struct rlimit64* new, struct rlimit64* old),
             (process, resource, new, old))

// Wraps a function by which the process becomes another program. It returns only if that fails. libc's execve leads to
// wrappers.c.
#define EXECUTING(name, at, path, parameters, arguments) \
  KNOWN(name, #name)                                     \
  EXPORT int name parameters {                           \
    NEXT(int, name, #name, parameters);                  \
    collect_end_all();                                   \
    const bool is_counted = static_count(at, path);      \
    const int result = next arguments;                   \
    if (is_counted) page_uncount_static();               \
    return result;                                       \
  }
EXECUTING(fexecve, fd, "", (int fd, char* const arguments[], char* const environment[]), (fd, arguments, environment))
EXECUTING(execveat, at, path, (int at, const char* path, char* const arguments[], char* const environment[], int flags),
          (at, path, arguments, environment, flags))

KNOWN(clone, "clone")
EXPORT int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) {
  NEXT(int, clone, "clone", (int (*)(void*), void*, int, void*, ...));
  va_list rest;
  va_start(rest, argument);
  void* a[3];
  for (int i = 0; i < 3; ++i) a[i] = va_arg(rest, void*);
  va_end(rest);
  if (forward_is_on && !(flags & CLONE_FILES)) {
    files_shared();
    collect_end_all();
    if (flags & CLONE_VFORK)
      files_lent();
    else if (flags & CLONE_VM)
      files_lent_beside();
  }
  return next(function, stack, flags, argument, a[0], a[1], a[2]);
}

// ---- libc's own calls ----------------------------------------------------------------------------------------------

// What is collected belongs to the size and times that the call is to tell.
static int end_fstatat64(int at, const char* path, struct stat64* about, int flags) {
  long result = RAW4(SYS_newfstatat, at, path, about, flags);
  if (result == 0 && S_ISREG(about->st_mode) && collect_store_inode(about->st_dev, about->st_ino))
    result = RAW4(SYS_newfstatat, at, path, about, flags);
  return (int)result_of(result);
}

static int end_statx(int at, const char* path, int flags, unsigned mask, struct statx* about) {
  collect_store_all();
  return (int)result_of(RAW(SYS_statx, at, path, flags, mask, about, 0));
}

static off64_t end_lseek64(int fd, off64_t offset, int whence) {
  if (whence != SEEK_CUR || offset != 0) collect_store_file(fd);
  return result_of(RAW3(SYS_lseek, fd, offset, whence));
}

static void end__exit(int status) {
  collect_end_all();
  while (true) RAW1(SYS_exit_group, status);
}

typedef void some_function(void);
#define TO_END(name) \
  { #name, (some_function*)end_##name }
static const struct {
  const char* name;
  some_function* end;
} redirections[] = {TO_END(fstatat64), TO_END(statx), TO_END(lseek64), TO_END(_exit)};

bool collect_redirect(void* libc) {
  enum { count = sizeof redirections / sizeof *redirections };
  void* functions[count];
  for (int i = 0; i < count; ++i) {
    Dl_info where;
    const ElfW(Sym)* symbol = NULL;
    functions[i] = dlsym(libc, redirections[i].name);
    if (!functions[i] || dladdr1(functions[i], &where, (void**)&symbol, RTLD_DL_SYMENT) == 0 || !symbol ||
        symbol->st_size < redirect_bytes)
      return false;
  }
  for (int i = 0; i < count; ++i)
    if (!redirect(functions[i], redirections[i].end)) return false;
  return true;
}

// ---- vfork ---------------------------------------------------------------------------------------------------------

// The child runs on the parent's stack, so no function may stand between the program and libc's vfork: this one jumps
// there, with the stack as it came.
KNOWN(vfork, "vfork")
__attribute__((used, visibility("hidden"))) void* forward_before_vfork(void) {
  if (forward_is_on) {
    files_shared();
    collect_end_all();
    files_lent();
  }
  return look_up(&known_vfork, "vfork");
}
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl vfork\n"
    ".type vfork, @function\n"
    "vfork:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call forward_before_vfork\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  jmp *%rax\n"
    "  .cfi_endproc\n"
    ".size vfork, .-vfork\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl vfork\n"
    ".type vfork, %function\n"
    "vfork:\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, -16]!\n"
    "  .cfi_adjust_cfa_offset 16\n"
    "  bl forward_before_vfork\n"
    "  ldp x29, x30, [sp], 16\n"
    "  .cfi_adjust_cfa_offset -16\n"
    "  br x0\n"
    "  .cfi_endproc\n"
    ".size vfork, .-vfork\n");
#endif
