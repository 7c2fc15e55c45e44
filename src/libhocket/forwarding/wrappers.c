// Wraps the functions of libc that move data of files, and those after which a descriptor refers to another file.
//
// Where libc's code may be changed, its own functions lead here as well (entries.h), so that C's streams are forwarded.
// A wrapper then calls the next library, as if nothing were forwarded, and the call comes back at the end of the chain:
// other preloaded tools see it. Functions that libc does not call by itself are forwarded here.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "forwarding/channels.h"
#include "forwarding/collect.h"
#include "forwarding/collect_wrappers.h"
#include "forwarding/entries.h"
#include "forwarding/files.h"
#include "forwarding/forward.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"
#include "forwarding/static_programs.h"
#include "forwarding/wrap.h"

static bool is_redirected;  // libc's functions lead here

// ---- calls that end in the kernel ----------------------------------------------------------------------------------

// Makes a call in which this thread may be cancelled, as libc does.
static ssize_t call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  if (__libc_single_threaded) return result_of(raw_call(number, a, b, c, d, e, f));
  int type;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  const long result = raw_call(number, a, b, c, d, e, f);
  pthread_setcanceltype(type, &type);
  return result_of(result);
}

#define KERNEL(number, a, b, c, d, e, f) \
  call_kernel((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// Defines the function `end_NAME`, where libc's own function leads: it forwards the call or gives it to the kernel.
#define END(name, writes, parameters, list, at, flags, kernel)   \
  static ssize_t end_##name parameters {                         \
    struct forward_data data = {writes, fd, list, at, flags, 0}; \
    ssize_t result;                                              \
    if (forward_access(&data, &result)) return result;           \
    return forward_direct(&data, kernel);                        \
  }

#define FALLTHROUGH __attribute__((fallthrough))
#define ONE(data, bytes) (&(const struct iovec){(void*)(data), bytes}), 1
#define ALL(parts, count) parts, count
#define OFFSET(at) ((at) < 0 ? -2 : (at)) /* the kernel refuses negative offsets */

END(read, false, (int fd, void* data_at, size_t bytes), ONE(data_at, bytes), -1, 0,
    KERNEL(SYS_read, fd, data_at, bytes, 0, 0, 0))
END(write, true, (int fd, const void* data_at, size_t bytes), ONE(data_at, bytes), -1, 0,
    KERNEL(SYS_write, fd, data_at, bytes, 0, 0, 0))
END(pread64, false, (int fd, void* data_at, size_t bytes, off64_t at), ONE(data_at, bytes), OFFSET(at), 0,
    KERNEL(SYS_pread64, fd, data_at, bytes, at, 0, 0))
END(pwrite64, true, (int fd, const void* data_at, size_t bytes, off64_t at), ONE(data_at, bytes), OFFSET(at), 0,
    KERNEL(SYS_pwrite64, fd, data_at, bytes, at, 0, 0))
END(readv, false, (int fd, const struct iovec* parts, int count), ALL(parts, count), -1, 0,
    KERNEL(SYS_readv, fd, parts, count, 0, 0, 0))
END(writev, true, (int fd, const struct iovec* parts, int count), ALL(parts, count), -1, 0,
    KERNEL(SYS_writev, fd, parts, count, 0, 0, 0))
END(preadv64, false, (int fd, const struct iovec* parts, int count, off64_t at), ALL(parts, count), OFFSET(at), 0,
    KERNEL(SYS_preadv, fd, parts, count, at, 0, 0))
END(pwritev64, true, (int fd, const struct iovec* parts, int count, off64_t at), ALL(parts, count), OFFSET(at), 0,
    KERNEL(SYS_pwritev, fd, parts, count, at, 0, 0))
END(preadv64v2, false, (int fd, const struct iovec* parts, int count, off64_t at, int flags), ALL(parts, count), at,
    flags, KERNEL(SYS_preadv2, fd, parts, count, at, 0, flags))
END(pwritev64v2, true, (int fd, const struct iovec* parts, int count, off64_t at, int flags), ALL(parts, count), at,
    flags, KERNEL(SYS_pwritev2, fd, parts, count, at, 0, flags))

// ---- wrappers of them ----------------------------------------------------------------------------------------------

// Wraps a function whose libc function is END. `end` has the same arguments.
#define WRAP(name, end, parameters, arguments)       \
  KNOWN(name, #name)                                 \
  EXPORT ssize_t name parameters {                   \
    if (forward_is_on && !is_redirected) return end; \
    NEXT(ssize_t, name, #name, parameters);          \
    return next arguments;                           \
  }

WRAP(read, end_read(fd, data, bytes), (int fd, void* data, size_t bytes), (fd, data, bytes))
WRAP(write, end_write(fd, data, bytes), (int fd, const void* data, size_t bytes), (fd, data, bytes))
WRAP(pread, end_pread64(fd, data, bytes, at), (int fd, void* data, size_t bytes, off_t at), (fd, data, bytes, at))
WRAP(pread64, end_pread64(fd, data, bytes, at), (int fd, void* data, size_t bytes, off64_t at), (fd, data, bytes, at))
WRAP(pwrite, end_pwrite64(fd, data, bytes, at), (int fd, const void* data, size_t bytes, off_t at),
     (fd, data, bytes, at))
WRAP(pwrite64, end_pwrite64(fd, data, bytes, at), (int fd, const void* data, size_t bytes, off64_t at),
     (fd, data, bytes, at))
WRAP(readv, end_readv(fd, parts, count), (int fd, const struct iovec* parts, int count), (fd, parts, count))
WRAP(writev, end_writev(fd, parts, count), (int fd, const struct iovec* parts, int count), (fd, parts, count))
WRAP(preadv, end_preadv64(fd, parts, count, at), (int fd, const struct iovec* parts, int count, off_t at),
     (fd, parts, count, at))
WRAP(preadv64, end_preadv64(fd, parts, count, at), (int fd, const struct iovec* parts, int count, off64_t at),
     (fd, parts, count, at))
WRAP(pwritev, end_pwritev64(fd, parts, count, at), (int fd, const struct iovec* parts, int count, off_t at),
     (fd, parts, count, at))
WRAP(pwritev64, end_pwritev64(fd, parts, count, at), (int fd, const struct iovec* parts, int count, off64_t at),
     (fd, parts, count, at))
WRAP(preadv2, end_preadv64v2(fd, parts, count, at, flags),
     (int fd, const struct iovec* parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
WRAP(preadv64v2, end_preadv64v2(fd, parts, count, at, flags),
     (int fd, const struct iovec* parts, int count, off64_t at, int flags), (fd, parts, count, at, flags))
WRAP(pwritev2, end_pwritev64v2(fd, parts, count, at, flags),
     (int fd, const struct iovec* parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
WRAP(pwritev64v2, end_pwritev64v2(fd, parts, count, at, flags),
     (int fd, const struct iovec* parts, int count, off64_t at, int flags), (fd, parts, count, at, flags))

// The checked forms that _FORTIFY_SOURCE uses; `room` is the buffer's size as the compiler knows it. libc ends the
// program if a call is larger.
#define CHECKED(name, end, parameters, arguments)   \
  KNOWN(name, #name)                                \
  EXPORT ssize_t name parameters {                  \
    if (forward_is_on && bytes <= room) return end; \
    NEXT(ssize_t, name, #name, parameters);         \
    return next arguments;                          \
  }
ssize_t __read_chk(int fd, void* data, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void* data, size_t bytes, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void* data, size_t bytes, off64_t at, size_t room);
CHECKED(__read_chk, end_read(fd, data, bytes), (int fd, void* data, size_t bytes, size_t room), (fd, data, bytes, room))
CHECKED(__pread_chk, end_pread64(fd, data, bytes, at), (int fd, void* data, size_t bytes, off_t at, size_t room),
        (fd, data, bytes, at, room))
CHECKED(__pread64_chk, end_pread64(fd, data, bytes, at), (int fd, void* data, size_t bytes, off64_t at, size_t room),
        (fd, data, bytes, at, room))

#define COPY(name, is_sendfile, parameters, arguments, from_at, at, flags)                                  \
  KNOWN(name, #name)                                                                                        \
  EXPORT ssize_t name parameters {                                                                          \
    ssize_t result;                                                                                         \
    if (forward_copying(is_sendfile, from, (off64_t*)(from_at), fd, (off64_t*)(at), bytes, flags, &result)) \
      return result;                                                                                        \
    NEXT(ssize_t, name, #name, parameters);                                                                 \
    return next arguments;                                                                                  \
  }
COPY(copy_file_range, false, (int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags),
     (from, from_at, fd, at, bytes, flags), from_at, at, flags)
COPY(sendfile, true, (int fd, int from, off_t* from_at, size_t bytes), (fd, from, from_at, bytes), from_at, NULL, 0)
COPY(sendfile64, true, (int fd, int from, off64_t* from_at, size_t bytes), (fd, from, from_at, bytes), from_at, NULL, 0)

// ---- descriptors ---------------------------------------------------------------------------------------------------

static int descriptor_of(FILE* stream) {
  const int before = errno;
  const int fd = stream ? fileno(stream) : -1;
  errno = before;
  return fd;
}

static int descriptor_of_directory(DIR* directory) {
  const int before = errno;
  const int fd = directory ? dirfd(directory) : -1;
  errno = before;
  return fd;
}

// Forgets what descriptors are that will refer to something else. Returns the number of errno of a collected write of
// the first one that has failed; 0: none has.
static int forget(unsigned from, unsigned to) {
  if (collect_is_on) collect_end(from, to);
  file_forget(from, to);
  return collect_is_on ? collect_take_error((int)from) : 0;
}

// A file that is emptied at its opening may be one of which something is collected.
static void before_open(bool empties) {
  if (collect_is_on && empties) collect_store_all();
}
static bool does_empty(const char* mode) { return mode && mode[0] == 'w'; }

static int descriptor_to_reopen(FILE* stream, const char* mode) {
  before_open(does_empty(mode));
  return descriptor_of(stream);
}

// Wraps a function after which descriptors are closed or refer to other files. What it writes by itself is not
// collected. `failure` is its result if a collected write has failed.
#define FORGETTING(result_type, name, parameters, arguments, first, last, failure) \
  KNOWN(name, #name)                                                               \
  EXPORT result_type name parameters {                                             \
    NEXT(result_type, name, #name, parameters);                                    \
    const unsigned from = (unsigned)(first), to = (unsigned)(last);                \
    const bool avoided = collect_avoids;                                           \
    const int error = forget(from, to);                                            \
    collect_avoids = true;                                                         \
    result_type result = next arguments;                                           \
    collect_avoids = avoided;                                                      \
    file_forget(from, to); /* another thread may have looked it up */              \
    if (error == 0) return result;                                                 \
    errno = error;                                                                 \
    return failure;                                                                \
  }

FORGETTING(int, close, (int fd), (fd), fd, fd, -1)
FORGETTING(int, close_range, (unsigned first_fd, unsigned last_fd, int flags), (first_fd, last_fd, flags), first_fd,
           last_fd, result)
FORGETTING(int, fclose, (FILE * stream), (stream), descriptor_of(stream), from, EOF)
FORGETTING(int, pclose, (FILE * stream), (stream), descriptor_of(stream), from, result)
FORGETTING(int, closedir, (DIR * directory), (directory), descriptor_of_directory(directory), from, result)
FORGETTING(FILE*, freopen, (const char* path, const char* mode, FILE* stream), (path, mode, stream),
           descriptor_to_reopen(stream, mode), from, result)
FORGETTING(FILE*, freopen64, (const char* path, const char* mode, FILE* stream), (path, mode, stream),
           descriptor_to_reopen(stream, mode), from, result)
FORGETTING(int, fcloseall, (void), (), 0, UINT_MAX, result)

// Our descriptors are the program's if it has no others left. True if there are some now, and it can try again.
static bool has_room(int result) {
  if (result >= 0 || errno != EMFILE || !forward_is_on) return false;
  collect_end_all();
  return channels_release();
}

// Wraps a function that makes another descriptor of an open file description.
static int duplicated(int old, int fd) {
  if (fd >= 0 && fd != old) file_duplicated(old, fd);
  return fd;
}
#define DUPLICATING(name, parameters, arguments) \
  KNOWN(name, #name)                             \
  EXPORT int name parameters {                   \
    NEXT(int, name, #name, parameters);          \
    collect_end_all();                           \
    int fd = next arguments;                     \
    if (has_room(fd)) fd = next arguments;       \
    return duplicated(old, fd);                  \
  }
DUPLICATING(dup, (int old), (old))
DUPLICATING(dup2, (int old, int new), (old, new))
DUPLICATING(dup3, (int old, int new, int flags), (old, new, flags))

#define CONTROLLING(name)                                                                        \
  KNOWN(name, #name)                                                                             \
  EXPORT int name(int fd, int command, ...) {                                                    \
    NEXT(int, name, #name, (int, int, ...));                                                     \
    va_list rest;                                                                                \
    va_start(rest, command);                                                                     \
    void* const argument = va_arg(rest, void*); /* or a number, which is handed on as it came */ \
    va_end(rest);                                                                                \
    if (command != F_GETFD && command != F_SETFD && command != F_GETFL) collect_end_all();       \
    int result = next(fd, command, argument);                                                    \
    const bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;                    \
    if (duplicates && has_room(result)) result = next(fd, command, argument);                    \
    return duplicates ? duplicated(fd, result) : result;                                         \
  }
CONTROLLING(fcntl)
CONTROLLING(fcntl64)

KNOWN(closefrom, "closefrom")
EXPORT void closefrom(int first) {
  NEXT(void, closefrom, "closefrom", (int));
  forget((unsigned)first, UINT_MAX);
  next(first);
  file_forget((unsigned)first, UINT_MAX);
}

// Wraps a function that returns a new descriptor, of an open file description that this process alone has.
static int opened(int fd) {
  if (fd < 0) return fd;
  file_opened(fd);
  if (collect_is_on) collect_opened(fd);
  return fd;
}

#define OPENING(name, parameters, arguments)                          \
  KNOWN(name, #name)                                                  \
  EXPORT int name parameters {                                        \
    NEXT(int, name, #name, parameters);                               \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list rest;                                                   \
      va_start(rest, flags);                                          \
      mode = va_arg(rest, mode_t);                                    \
      va_end(rest);                                                   \
    }                                                                 \
    before_open((flags & O_TRUNC) != 0);                              \
    int fd = next arguments;                                          \
    if (has_room(fd)) fd = next arguments;                            \
    return opened(fd);                                                \
  }
OPENING(open, (const char* path, int flags, ...), (path, flags, mode))
OPENING(open64, (const char* path, int flags, ...), (path, flags, mode))
OPENING(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode))
OPENING(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode))

#define OPENED(name, parameters, arguments, empties) \
  KNOWN(name, #name)                                 \
  EXPORT int name parameters {                       \
    NEXT(int, name, #name, parameters);              \
    before_open(empties);                            \
    return opened(next arguments);                   \
  }
OPENED(creat, (const char* path, mode_t mode), (path, mode), true)
OPENED(creat64, (const char* path, mode_t mode), (path, mode), true)
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int at, const char* path, int flags);
int __openat64_2(int at, const char* path, int flags);
OPENED(__open_2, (const char* path, int flags), (path, flags), (flags & O_TRUNC) != 0)
OPENED(__open64_2, (const char* path, int flags), (path, flags), (flags & O_TRUNC) != 0)
OPENED(__openat_2, (int at, const char* path, int flags), (at, path, flags), (flags & O_TRUNC) != 0)
OPENED(__openat64_2, (int at, const char* path, int flags), (at, path, flags), (flags & O_TRUNC) != 0)
OPENED(mkstemp, (char* path), (path), false)
OPENED(mkstemp64, (char* path), (path), false)
OPENED(mkostemp, (char* path, int flags), (path, flags), false)
OPENED(mkostemp64, (char* path, int flags), (path, flags), false)

#define STREAMING(name, parameters, arguments, empties)   \
  KNOWN(name, #name)                                      \
  EXPORT FILE* name parameters {                          \
    NEXT(FILE*, name, #name, parameters);                 \
    before_open(empties);                                 \
    FILE* stream = next arguments;                        \
    if (!stream && has_room(-1)) stream = next arguments; \
    opened(descriptor_of(stream));                        \
    return stream;                                        \
  }
STREAMING(fopen, (const char* restrict path, const char* restrict mode), (path, mode), does_empty(mode))
STREAMING(fopen64, (const char* restrict path, const char* restrict mode), (path, mode), does_empty(mode))
STREAMING(tmpfile, (void), (), false)
STREAMING(tmpfile64, (void), (), false)

// Wraps a function that makes descriptors of no file, so that their first data calls need not look at them.
#define NO_FILE(name, parameters, arguments, first, second) \
  KNOWN(name, #name)                                        \
  EXPORT int name parameters {                              \
    NEXT(int, name, #name, parameters);                     \
    const int result = next arguments;                      \
    if (result < 0) return result;                          \
    file_is_none(first);                                    \
    file_is_none(second);                                   \
    return result;                                          \
  }
NO_FILE(pipe, (int ends[2]), (ends), ends[0], ends[1])
NO_FILE(pipe2, (int ends[2], int flags), (ends, flags), ends[0], ends[1])
NO_FILE(socketpair, (int family, int type, int protocol, int ends[2]), (family, type, protocol, ends), ends[0], ends[1])
NO_FILE(socket, (int family, int type, int protocol), (family, type, protocol), result, -1)
NO_FILE(accept, (int fd, __SOCKADDR_ARG peer, socklen_t* restrict length), (fd, peer, length), result, -1)
NO_FILE(accept4, (int fd, __SOCKADDR_ARG peer, socklen_t* restrict length, int flags), (fd, peer, length, flags),
        result, -1)

// Others may have the open file descriptions of this process from now on, and see what it has written.
static void share_all(void) {
  files_shared();
  collect_end_all();
}

// Children get the descriptors that are not closed at exec.
#define SHARING(result_type, name, parameters, arguments) \
  KNOWN(name, #name)                                      \
  EXPORT result_type name parameters {                    \
    NEXT(result_type, name, #name, parameters);           \
    share_all();                                          \
    return next arguments;                                \
  }
SHARING(int, posix_spawn,
        (pid_t* restrict process, const char* restrict path, const posix_spawn_file_actions_t* actions,
         const posix_spawnattr_t* restrict attributes, char* const arguments[restrict],
         char* const environment[restrict]),
        (process, path, actions, attributes, arguments, environment))
SHARING(int, posix_spawnp,
        (pid_t* restrict process, const char* restrict path, const posix_spawn_file_actions_t* actions,
         const posix_spawnattr_t* restrict attributes, char* const arguments[restrict],
         char* const environment[restrict]),
        (process, path, actions, attributes, arguments, environment))
pid_t _Fork(void);  // libc's fork without the functions of pthread_atfork
SHARING(pid_t, _Fork, (void), ())
SHARING(int, system, (const char* command), (command))
SHARING(FILE*, popen, (const char* command, const char* mode), (command, mode))

KNOWN(sendmsg, "sendmsg")
EXPORT ssize_t sendmsg(int socket, const struct msghdr* message, int flags) {
  NEXT(ssize_t, sendmsg, "sendmsg", (int, const struct msghdr*, int));
  if (message && message->msg_controllen > 0) share_all();
  return next(socket, message, flags);
}

// libc's execve leads here, by which all of its functions execute programs: also those that search PATH or make a
// child. This may be a child of vfork.
static int end_execve(const char* path, char* const arguments[], char* const environment[]) {
  collect_end_all();
  const bool is_counted = static_count(AT_FDCWD, path);
  const long result = RAW3(SYS_execve, path, arguments, environment);
  if (is_counted) page_uncount_static();
  return (int)result_of(result);
}

// Mappings are not forwarded. They are counted, because nobody sees what the program loads and stores there.
#define MAPPING(name, offset)                                                                   \
  KNOWN(name, #name)                                                                            \
  EXPORT void* name(void* where, size_t bytes, int protection, int flags, int fd, offset at) {  \
    void* (*next)(void*, size_t, int, int, int, offset) =                                       \
        __extension__(void* (*)(void*, size_t, int, int, int, offset))                          \
            atomic_load_explicit(&known_##name, memory_order_acquire);                          \
    if (!next) return (void*)result_of(RAW(SYS_mmap, where, bytes, protection, flags, fd, at)); \
    const bool is_file = forward_is_on && fd >= 0 && file_look(fd) != file_direct;              \
    if (is_file) page_count(forward_mapped, 1);                                                 \
    void* const result = next(where, bytes, protection, flags, fd, at);                         \
    if (is_file && result != MAP_FAILED) collect_mapped(fd, result, bytes);                     \
    return result;                                                                              \
  }
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

KNOWN(munmap, "munmap")
EXPORT int munmap(void* where, size_t bytes) {
  int (*next)(void*, size_t) =
      __extension__(int (*)(void*, size_t)) atomic_load_explicit(&known_munmap, memory_order_acquire);
  const int result = next ? next(where, bytes) : (int)result_of(RAW2(SYS_munmap, where, bytes));
  if (result == 0) collect_unmapped(where, bytes);
  return result;
}

// A program that limits its system calls may be ended for one that it does not make itself, so it goes on directly.
static void give_way(void) {
  if (!forward_is_on) return;
  page_count(forward_sandboxed, 1);
  collect_is_on = false;
  collect_end_all();
  forward_is_on = false;
}

KNOWN(prctl, "prctl")
EXPORT int prctl(int option, ...) {
  NEXT(int, prctl, "prctl", (int, ...));
  va_list rest;
  va_start(rest, option);
  unsigned long a[4];
  for (int i = 0; i < 4; ++i) a[i] = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_SECCOMP) give_way();
  return next(option, a[0], a[1], a[2], a[3]);
}

// ---- calls by number -----------------------------------------------------------------------------------------------

// Programs and libraries that make system calls by their numbers. What is no call on files goes to the kernel.
EXPORT long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(rest, long);
  va_end(rest);
  ssize_t result;
  if (forward_is_on) switch (number) {
      case SYS_read: return end_read((int)a[0], (void*)a[1], (size_t)a[2]);
      case SYS_write: return end_write((int)a[0], (void*)a[1], (size_t)a[2]);
      case SYS_pread64: return end_pread64((int)a[0], (void*)a[1], (size_t)a[2], a[3]);
      case SYS_pwrite64: return end_pwrite64((int)a[0], (void*)a[1], (size_t)a[2], a[3]);
      case SYS_readv: return end_readv((int)a[0], (void*)a[1], (int)a[2]);
      case SYS_writev: return end_writev((int)a[0], (void*)a[1], (int)a[2]);
      case SYS_preadv: return end_preadv64((int)a[0], (void*)a[1], (int)a[2], a[3]);
      case SYS_pwritev: return end_pwritev64((int)a[0], (void*)a[1], (int)a[2], a[3]);
      case SYS_preadv2: return end_preadv64v2((int)a[0], (void*)a[1], (int)a[2], a[3], (int)a[5]);
      case SYS_pwritev2: return end_pwritev64v2((int)a[0], (void*)a[1], (int)a[2], a[3], (int)a[5]);
      case SYS_copy_file_range:
        if (forward_copying(false, (int)a[0], (void*)a[1], (int)a[2], (void*)a[3], (size_t)a[4], (unsigned)a[5],
                            &result))
          return result;
        break;
      case SYS_sendfile:
        if (forward_copying(true, (int)a[1], (void*)a[2], (int)a[0], NULL, (size_t)a[3], 0, &result)) return result;
        break;
      case SYS_seccomp:
        if (a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER) give_way();
        break;
      case SYS_prctl:
        if (a[0] == PR_SET_SECCOMP) give_way();
        break;
      case SYS_execve: return end_execve((const char*)a[0], (char* const*)a[1], (char* const*)a[2]);
      case SYS_clone:
        share_all();
        if (a[0] & CLONE_VM) files_lent_beside();
        break;
#ifdef SYS_fork
      case SYS_fork:
#endif
        share_all();
        break;
      case SYS_clone3:
        share_all();
        files_lent_beside();  // it may have the memory
        break;
      case SYS_close: forget((unsigned)a[0], (unsigned)a[0]); break;
#ifdef SYS_dup2
      case SYS_dup2:
#endif
      case SYS_dup3: forget((unsigned)a[1], (unsigned)a[1]); FALLTHROUGH;
      case SYS_dup:
        collect_end_all();
        return duplicated((int)a[0], (int)result_of(raw_call(number, a[0], a[1], a[2], 0, 0, 0)));
      case SYS_close_range: forget((unsigned)a[0], (unsigned)a[1]); break;
      case SYS_futex:
      case SYS_gettid:
      case SYS_getrandom: break;
      default: collect_end_all(); break;  // it may concern the file in any way
    }
  return result_of(raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

// ---- the beginning -------------------------------------------------------------------------------------------------

typedef void some_function(void);
struct redirection {
  const char* name;
  some_function* end;
};
#define TO_END(name) \
  { #name, (some_function*)end_##name }
static const struct redirection redirections[] = {
    TO_END(read),     TO_END(write),     TO_END(pread64),    TO_END(pwrite64),    TO_END(readv),  TO_END(writev),
    TO_END(preadv64), TO_END(pwritev64), TO_END(preadv64v2), TO_END(pwritev64v2), TO_END(execve),
};

// Redirects libc's functions. All or none: `redirect` fails for the first one where it is forbidden.
static bool redirect_libc(void) {
  void* const libc = has_one_thread() ? dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!libc) return false;
  enum { count = sizeof redirections / sizeof *redirections };
  void* functions[count];
  for (int i = 0; i < count; ++i)
    if (!(functions[i] = dlsym(libc, redirections[i].name))) return false;
  for (int i = 0; i < count; ++i)
    if (!redirect(functions[i], redirections[i].end)) return i > 0;
  return true;
}

static void begin_child(void) {
  if (!forward_is_on) return;
  channels_forked();
  files_are_own();
  if (collect_is_on) collect_begin();
  files_shared();
}

// True in hocket's own daemon and servers. They carry out the calls, so they would wait for themselves.
static bool is_hocket(void) {
  return strcmp(program_invocation_short_name, "hocketd") == 0 ||
         strcmp(program_invocation_short_name, "hocket-server") == 0;
}

// The first constructor: those without a priority come after it.
__attribute__((constructor(101))) static void begin(void) {
  if (is_hocket() || !page_open() || !channels_prepare()) return;
  pthread_atfork(share_all, NULL, begin_child);
  is_redirected = redirect_libc();
  if (!is_redirected) page_count(forward_unpatched, 1);
  forward_is_on = true;
  if (is_redirected && page_collects() && collect_redirect(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)))
    collect_begin();
}
