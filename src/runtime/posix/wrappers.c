// The functions of libc that libhocket wraps: those that read and write files by descriptor, under each name by which
// programs reach them (with 64-bit offsets; with the checks of _FORTIFY_SOURCE), and the streams that move blocks.
//
// Not seen: stores into mapped files, io_uring, aio, text that goes through C's streams, statically linked programs.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/posix/access.h"

#undef fread_unlocked
#undef fwrite_unlocked

#define EXPORT __attribute__((visibility("default")))

static void cancelled(void* nothing) {
  (void)nothing;
  posix_end(0);
}

static void* look_up(_Atomic(void*)* known, const char* name) {
  void* found = atomic_load_explicit(known, memory_order_acquire);
  if (!found) {
    found = posix_next(name);
    atomic_store_explicit(known, found, memory_order_release);
  }
  return found;
}

#define NEXT(result_type, name, parameters) \
  static _Atomic(void*) known;              \
  result_type(*next) parameters = __extension__(result_type(*) parameters) look_up(&known, #name)

// A wrapper: `begin` says whether its call is watched, `moved` in how many bytes its result is.
#define WRAP(result_type, name, parameters, arguments, begin, moved) \
  EXPORT result_type name parameters {                               \
    NEXT(result_type, name, parameters);                             \
    if (!(begin)) return next arguments;                             \
    result_type result;                                              \
    pthread_cleanup_push(cancelled, NULL);                           \
    result = next arguments;                                         \
    pthread_cleanup_pop(0);                                          \
    posix_end(moved);                                                \
    return result;                                                   \
  }

#define ONE(bytes) &(struct iovec){NULL, bytes}, 1
#define BLOCK(writes, name, parameters, arguments) \
  WRAP(ssize_t, name, parameters, arguments, posix_begin(writes, #name, fd, ONE(bytes)), result)
#define PARTS(writes, name, parameters, arguments) \
  WRAP(ssize_t, name, parameters, arguments, posix_begin(writes, #name, fd, parts, count), result)

BLOCK(false, read, (int fd, void* data, size_t bytes), (fd, data, bytes))
BLOCK(true, write, (int fd, const void* data, size_t bytes), (fd, data, bytes))
BLOCK(false, pread, (int fd, void* data, size_t bytes, off_t at), (fd, data, bytes, at))
BLOCK(false, pread64, (int fd, void* data, size_t bytes, off64_t at), (fd, data, bytes, at))
BLOCK(true, pwrite, (int fd, const void* data, size_t bytes, off_t at), (fd, data, bytes, at))
BLOCK(true, pwrite64, (int fd, const void* data, size_t bytes, off64_t at), (fd, data, bytes, at))
PARTS(false, readv, (int fd, const struct iovec* parts, int count), (fd, parts, count))
PARTS(true, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count))
PARTS(false, preadv, (int fd, const struct iovec* parts, int count, off_t at), (fd, parts, count, at))
PARTS(false, preadv64, (int fd, const struct iovec* parts, int count, off64_t at), (fd, parts, count, at))
PARTS(true, pwritev, (int fd, const struct iovec* parts, int count, off_t at), (fd, parts, count, at))
PARTS(true, pwritev64, (int fd, const struct iovec* parts, int count, off64_t at), (fd, parts, count, at))
PARTS(false, preadv2, (int fd, const struct iovec* parts, int count, off_t at, int flags),
      (fd, parts, count, at, flags))
PARTS(false, preadv64v2, (int fd, const struct iovec* parts, int count, off64_t at, int flags),
      (fd, parts, count, at, flags))
PARTS(true, pwritev2, (int fd, const struct iovec* parts, int count, off_t at, int flags),
      (fd, parts, count, at, flags))
PARTS(true, pwritev64v2, (int fd, const struct iovec* parts, int count, off64_t at, int flags),
      (fd, parts, count, at, flags))

// _FORTIFY_SOURCE; `room` is how large the compiler knows the buffer to be.
ssize_t __read_chk(int fd, void* data, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void* data, size_t bytes, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void* data, size_t bytes, off64_t at, size_t room);
size_t __fread_chk(void* data, size_t room, size_t size, size_t count, FILE* stream);
BLOCK(false, __read_chk, (int fd, void* data, size_t bytes, size_t room), (fd, data, bytes, room))
BLOCK(false, __pread_chk, (int fd, void* data, size_t bytes, off_t at, size_t room), (fd, data, bytes, at, room))
BLOCK(false, __pread64_chk, (int fd, void* data, size_t bytes, off64_t at, size_t room), (fd, data, bytes, at, room))

// From file to file: a write of the second.
BLOCK(true, copy_file_range, (int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags),
      (from, from_at, fd, at, bytes, flags))
BLOCK(true, sendfile, (int fd, int from, off_t* at, size_t bytes), (fd, from, at, bytes))
BLOCK(true, sendfile64, (int fd, int from, off64_t* at, size_t bytes), (fd, from, at, bytes))

WRAP(int, fsync, (int fd), (fd), posix_begin_sync("fsync", fd), 0)
WRAP(int, fdatasync, (int fd), (fd), posix_begin_sync("fdatasync", fd), 0)

// C's streams, whose own reads and writes nobody sees: the calls that move much, and those small ones together that
// move as much as this. What the small ones before have asked for counts as moved by the call that is looked at.
enum { worth_looking_bytes = 1 << 16 };
static _Thread_local size_t passed;

static bool begin_stream(bool writes, const char* routine, FILE* stream, size_t bytes) {
  if (!posix_watched()) return false;
  if (passed + bytes < worth_looking_bytes) {
    passed += bytes;
    return false;
  }
  return posix_begin(writes, routine, fileno(stream), ONE(passed + bytes));
}

static ssize_t take_passed(void) {
  const size_t bytes = passed;
  passed = 0;
  return (ssize_t)bytes;
}

#define STREAM(writes, name, parameters, arguments)                                           \
  WRAP(size_t, name, parameters, arguments, begin_stream(writes, #name, stream, size* count), \
       take_passed() + (ssize_t)(result * size))

STREAM(false, fread, (void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(false, fread_unlocked, (void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(false, __fread_chk, (void* data, size_t room, size_t size, size_t count, FILE* stream),
       (data, room, size, count, stream))
STREAM(true, fwrite, (const void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(true, fwrite_unlocked, (const void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))

// What makes a descriptor another file's, or nobody's.
#define FORGETTING(result_type, name, parameters, arguments, first, last) \
  EXPORT result_type name parameters {                                    \
    NEXT(result_type, name, parameters);                                  \
    posix_forget((unsigned)(first), (unsigned)(last));                    \
    return next arguments;                                                \
  }

FORGETTING(int, close, (int fd), (fd), fd, fd)
FORGETTING(int, dup2, (int from, int to), (from, to), to, to)
FORGETTING(int, dup3, (int from, int to, int flags), (from, to, flags), to, to)
FORGETTING(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags), first, last)
FORGETTING(int, fclose, (FILE * stream), (stream), fileno(stream), fileno(stream))
FORGETTING(FILE*, freopen, (const char* path, const char* mode, FILE* stream), (path, mode, stream), fileno(stream),
           fileno(stream))
FORGETTING(FILE*, freopen64, (const char* path, const char* mode, FILE* stream), (path, mode, stream), fileno(stream),
           fileno(stream))
FORGETTING(int, pclose, (FILE * stream), (stream), fileno(stream), fileno(stream))
