// Wraps functions of libc. First come those that read and write files by descriptor, under each name by which compiled
// programs reach them (with 64-bit offsets; with the checks of _FORTIFY_SOURCE). Then come the streams that move
// blocks, and the functions after which a descriptor refers to another file. Last come those that are wrapped only for
// the sake of I/O servers, which may hold data of the file: they depend on its length or its bytes.
//
// libhocket does not count mapped files, msync, io_uring, aio, splice, sync and its like for whole file systems, text
// that goes through C's streams, or data that these still hold when they are flushed. It does not see loads and stores
// in mapped files, io_uring, single characters of C's streams, statically linked programs, and system calls without
// libc.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept/posix.h"

#undef fread_unlocked
#undef fwrite_unlocked
#undef fgets_unlocked
#undef fputs_unlocked

#define EXPORT __attribute__((visibility("default")))

static void cancelled(void* nothing) {
  (void)nothing;
  posix_end(0);
}

// The constructors look up all functions, because the loader may be busy when a signal handler calls the first one.
// Constructors of other libraries, and programs that call a function which this libc lacks, look up at the call.
#define KNOWN(name, symbol)           \
  static _Atomic(void*) known_##name; \
  __attribute__((constructor)) static void find_##name(void) { known_##name = dlsym(RTLD_NEXT, symbol); }

static void* look_up(_Atomic(void*)* known, const char* name) {
  void* found = atomic_load_explicit(known, memory_order_acquire);
  if (!found) {
    found = posix_next(name);
    atomic_store_explicit(known, found, memory_order_release);
  }
  return found;
}

// Declares `next`, the libc function `symbol`, which is KNOWN by that name.
#define NEXT(result_type, name, symbol, parameters) \
  result_type(*next) parameters = __extension__(result_type(*) parameters) look_up(&known_##name, symbol)

// Defines a wrapper of the function `symbol`. `begin` is true if the call is watched; `moved` is its result in bytes.
#define WRAP(linkage, name, symbol, result_type, parameters, arguments, begin, moved) \
  KNOWN(name, symbol)                                                                 \
  linkage result_type name parameters {                                               \
    NEXT(result_type, name, symbol, parameters);                                      \
    if (!(begin)) return next arguments;                                              \
    result_type result;                                                               \
    pthread_cleanup_push(cancelled, NULL);                                            \
    result = next arguments;                                                          \
    pthread_cleanup_pop(0);                                                           \
    posix_end(moved);                                                                 \
    return result;                                                                    \
  }

#define ONE(bytes) &(struct iovec){NULL, bytes}, 1
// The last argument of both is the offset: POSIX_AT_POSITION, or the parameter `at`, which has the same value for it.
#define BLOCK(writes, name, parameters, arguments, offset) \
  WRAP(EXPORT, name, #name, ssize_t, parameters, arguments, posix_begin(writes, #name, fd, ONE(bytes), offset), result)
#define PARTS(writes, name, parameters, arguments, offset)                                                        \
  WRAP(EXPORT, name, #name, ssize_t, parameters, arguments, posix_begin(writes, #name, fd, parts, count, offset), \
       result)

BLOCK(false, read, (int fd, void* data, size_t bytes), (fd, data, bytes), POSIX_AT_POSITION)
BLOCK(true, write, (int fd, const void* data, size_t bytes), (fd, data, bytes), POSIX_AT_POSITION)
BLOCK(false, pread, (int fd, void* data, size_t bytes, off_t at), (fd, data, bytes, at), at)
BLOCK(false, pread64, (int fd, void* data, size_t bytes, off64_t at), (fd, data, bytes, at), at)
BLOCK(true, pwrite, (int fd, const void* data, size_t bytes, off_t at), (fd, data, bytes, at), at)
BLOCK(true, pwrite64, (int fd, const void* data, size_t bytes, off64_t at), (fd, data, bytes, at), at)
PARTS(false, readv, (int fd, const struct iovec* parts, int count), (fd, parts, count), POSIX_AT_POSITION)
PARTS(true, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count), POSIX_AT_POSITION)
PARTS(false, preadv, (int fd, const struct iovec* parts, int count, off_t at), (fd, parts, count, at), at)
PARTS(false, preadv64, (int fd, const struct iovec* parts, int count, off64_t at), (fd, parts, count, at), at)
PARTS(true, pwritev, (int fd, const struct iovec* parts, int count, off_t at), (fd, parts, count, at), at)
PARTS(true, pwritev64, (int fd, const struct iovec* parts, int count, off64_t at), (fd, parts, count, at), at)
PARTS(false, preadv2, (int fd, const struct iovec* parts, int count, off_t at, int flags),
      (fd, parts, count, at, flags), at)
PARTS(false, preadv64v2, (int fd, const struct iovec* parts, int count, off64_t at, int flags),
      (fd, parts, count, at, flags), at)
PARTS(true, pwritev2, (int fd, const struct iovec* parts, int count, off_t at, int flags),
      (fd, parts, count, at, flags), at)
PARTS(true, pwritev64v2, (int fd, const struct iovec* parts, int count, off64_t at, int flags),
      (fd, parts, count, at, flags), at)

// The checked forms that _FORTIFY_SOURCE uses; `room` is the buffer's size as the compiler knows it.
ssize_t __read_chk(int fd, void* data, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void* data, size_t bytes, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void* data, size_t bytes, off64_t at, size_t room);
BLOCK(false, __read_chk, (int fd, void* data, size_t bytes, size_t room), (fd, data, bytes, room), POSIX_AT_POSITION)
BLOCK(false, __pread_chk, (int fd, void* data, size_t bytes, off_t at, size_t room), (fd, data, bytes, at, room), at)
BLOCK(false, __pread64_chk, (int fd, void* data, size_t bytes, off64_t at, size_t room), (fd, data, bytes, at, room),
      at)

// Copies from file to file count as writes to the second file.
#define COPY(name, parameters, arguments, offset)           \
  WRAP(EXPORT, name, #name, ssize_t, parameters, arguments, \
       (posix_show(from), posix_begin(true, #name, fd, ONE(bytes), offset)), result)
COPY(copy_file_range, (int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags),
     (from, from_at, fd, at, bytes, flags), at ? POSIX_ANYWHERE : POSIX_AT_POSITION)
COPY(sendfile, (int fd, int from, off_t* at, size_t bytes), (fd, from, at, bytes), POSIX_AT_POSITION)
COPY(sendfile64, (int fd, int from, off64_t* at, size_t bytes), (fd, from, at, bytes), POSIX_AT_POSITION)

#define SYNC(name) WRAP(EXPORT, name, #name, int, (int fd), (fd), posix_begin_sync(#name, fd), 0)

SYNC(fsync)
SYNC(fdatasync)

// C's streams are wrapped at their calls, because libc's own reads and writes for them cannot be seen. A call is
// watched, and counts for the thread's small calls before it, once they move so many bytes together.
enum { worth_looking_bytes = 1 << 16 };
static _Thread_local size_t passed[2];  // bytes of small calls that are not counted yet: read, written

static int descriptor_of(FILE* stream) {
  const int before = errno;
  const int fd = fileno(stream);
  errno = before;  // fileno sets errno for a stream without a descriptor
  return fd;
}

static bool is_small(bool writes, FILE* stream, size_t bytes) {
  return passed[writes] + bytes < worth_looking_bytes && !posix_any_held() && posix_watched() &&
         descriptor_of(stream) > STDERR_FILENO;
}

// Flushes of streams happen inside libc, so data that a stream is to write or has read count as accessed now.
static void show_stream(FILE* stream) {
  if (stream && posix_any_held()) posix_show(descriptor_of(stream));
}

static bool begin_stream(bool writes, const char* routine, FILE* stream, size_t bytes) {
  if (!posix_watched()) return show_stream(stream), false;
  const int fd = descriptor_of(stream);
  if (fd <= STDERR_FILENO) return false;
  const bool begun = posix_begin(writes, routine, fd, ONE(passed[writes] + bytes), POSIX_ANYWHERE);
  if (!begun) passed[writes] = 0;  // the stream is no regular file, and those of the small calls may be none either
  return begun;
}

static ssize_t moved_by_stream(bool writes, size_t bytes) {
  const size_t all = passed[writes] + bytes;
  passed[writes] = 0;
  return (ssize_t)all;
}

#define STREAM(writes, name, parameters, arguments)                                                                  \
  WRAP(static, large_##name, #name, size_t, parameters, arguments, begin_stream(writes, #name, stream, size* count), \
       moved_by_stream(writes, result* size))                                                                        \
  EXPORT size_t name parameters {                                                                                    \
    if (!is_small(writes, stream, size * count)) return large_##name arguments;                                      \
    NEXT(size_t, large_##name, #name, parameters);                                                                   \
    const size_t result = next arguments;                                                                            \
    passed[writes] += result * size;                                                                                 \
    return result;                                                                                                   \
  }

size_t __fread_chk(void* data, size_t room, size_t size, size_t count, FILE* stream);
size_t __fread_unlocked_chk(void* data, size_t room, size_t size, size_t count, FILE* stream);
STREAM(false, fread, (void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(false, fread_unlocked, (void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(false, __fread_chk, (void* data, size_t room, size_t size, size_t count, FILE* stream),
       (data, room, size, count, stream))
STREAM(false, __fread_unlocked_chk, (void* data, size_t room, size_t size, size_t count, FILE* stream),
       (data, room, size, count, stream))
STREAM(true, fwrite, (const void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))
STREAM(true, fwrite_unlocked, (const void* data, size_t size, size_t count, FILE* stream), (data, size, count, stream))

// Wraps a function after which descriptors are closed or refer to other files.
#define FORGETTING(result_type, name, parameters, arguments, first, last) \
  KNOWN(name, #name)                                                      \
  EXPORT result_type name parameters {                                    \
    NEXT(result_type, name, #name, parameters);                           \
    const unsigned from = (unsigned)(first), to = (unsigned)(last);       \
    posix_forget(from, to);                                               \
    result_type result = next arguments;                                  \
    posix_forget(from, to); /* another thread may have looked it up */    \
    return result;                                                        \
  }

FORGETTING(int, close, (int fd), (fd), fd, fd)
FORGETTING(int, dup2, (int old, int new), (old, new), new, new)
FORGETTING(int, dup3, (int old, int new, int flags), (old, new, flags), new, new)
FORGETTING(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags), first, last)
static int last_use_of(FILE* stream) {  // the stream is flushed
  show_stream(stream);
  return descriptor_of(stream);
}

FORGETTING(int, fclose, (FILE * stream), (stream), last_use_of(stream), descriptor_of(stream))
FORGETTING(FILE*, freopen, (const char* path, const char* mode, FILE* stream), (path, mode, stream),
           (posix_show_path(AT_FDCWD, path), last_use_of(stream)), descriptor_of(stream))
FORGETTING(FILE*, freopen64, (const char* path, const char* mode, FILE* stream), (path, mode, stream),
           (posix_show_path(AT_FDCWD, path), last_use_of(stream)), descriptor_of(stream))
FORGETTING(int, pclose, (FILE * stream), (stream), descriptor_of(stream), descriptor_of(stream))
FORGETTING(int, fcloseall, (void), (), 0, UINT_MAX)

// closefrom returns nothing, so FORGETTING does not fit it.
KNOWN(closefrom, "closefrom")
EXPORT void closefrom(int first) {
  NEXT(void, closefrom, "closefrom", (int));
  posix_forget((unsigned)first, UINT_MAX);
  next(first);
}

// Wraps a function that is not counted, but depends on what I/O servers hold of a file.
#define SHOWING(result_type, name, parameters, arguments, show) \
  KNOWN(name, #name)                                            \
  EXPORT result_type name parameters {                          \
    NEXT(result_type, name, #name, parameters);                 \
    show;                                                       \
    return next arguments;                                      \
  }
#define SHOWING_FD(result_type, name, parameters, arguments) \
  SHOWING(result_type, name, parameters, arguments, posix_show(fd))
#define SHOWING_PATH(result_type, name, parameters, arguments) \
  SHOWING(result_type, name, parameters, arguments, posix_show_path(AT_FDCWD, path))

SHOWING(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence), if (whence >= SEEK_END) posix_show(fd))
SHOWING(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence),
        if (whence >= SEEK_END) posix_show(fd))
SHOWING_FD(int, ftruncate, (int fd, off_t bytes), (fd, bytes))
SHOWING_FD(int, ftruncate64, (int fd, off64_t bytes), (fd, bytes))
SHOWING_FD(int, fstat, (int fd, struct stat* file), (fd, file))
SHOWING_FD(int, fstat64, (int fd, struct stat64* file), (fd, file))
SHOWING_PATH(int, truncate, (const char* path, off_t bytes), (path, bytes))
SHOWING_PATH(int, truncate64, (const char* path, off64_t bytes), (path, bytes))
SHOWING_PATH(int, stat, (const char* restrict path, struct stat* restrict file), (path, file))
SHOWING_PATH(int, stat64, (const char* restrict path, struct stat64* restrict file), (path, file))
SHOWING(int, fstatat, (int at, const char* restrict path, struct stat* restrict file, int flags),
        (at, path, file, flags), posix_show_path(at, path))
SHOWING(int, fstatat64, (int at, const char* restrict path, struct stat64* restrict file, int flags),
        (at, path, file, flags), posix_show_path(at, path))
SHOWING_PATH(int, lstat, (const char* restrict path, struct stat* restrict file), (path, file))
SHOWING_PATH(int, lstat64, (const char* restrict path, struct stat64* restrict file), (path, file))
SHOWING(int, statx, (int at, const char* restrict path, int flags, unsigned mask, struct statx* restrict file),
        (at, path, flags, mask, file), (*path || !(flags & AT_EMPTY_PATH)) ? posix_show_path(at, path) : posix_show(at))
SHOWING_PATH(FILE*, fopen, (const char* restrict path, const char* restrict mode), (path, mode))
SHOWING_PATH(FILE*, fopen64, (const char* restrict path, const char* restrict mode), (path, mode))

// Programs that were linked to a libc before 2.33 use these instead of stat and its like.
int __xstat(int version, const char* path, struct stat* file);
int __lxstat(int version, const char* path, struct stat* file);
int __fxstat(int version, int fd, struct stat* file);
int __xstat64(int version, const char* path, struct stat64* file);
int __lxstat64(int version, const char* path, struct stat64* file);
int __fxstat64(int version, int fd, struct stat64* file);
SHOWING_PATH(int, __xstat, (int version, const char* path, struct stat* file), (version, path, file))
SHOWING_PATH(int, __lxstat, (int version, const char* path, struct stat* file), (version, path, file))
SHOWING_FD(int, __fxstat, (int version, int fd, struct stat* file), (version, fd, file))
SHOWING_PATH(int, __xstat64, (int version, const char* path, struct stat64* file), (version, path, file))
SHOWING_PATH(int, __lxstat64, (int version, const char* path, struct stat64* file), (version, path, file))
SHOWING_FD(int, __fxstat64, (int version, int fd, struct stat64* file), (version, fd, file))

// Asynchronous accesses of libc are carried out by threads of its own, whose calls are not wrapped.
SHOWING(int, aio_read, (struct aiocb * access), (access), posix_show(access->aio_fildes))
SHOWING(int, aio_read64, (struct aiocb64 * access), (access), posix_show(access->aio_fildes))
SHOWING(int, aio_write, (struct aiocb * access), (access), posix_show(access->aio_fildes))
SHOWING(int, aio_write64, (struct aiocb64 * access), (access), posix_show(access->aio_fildes))
SHOWING(int, lio_listio, (int mode, struct aiocb* const list[restrict], int count, struct sigevent* restrict event),
        (mode, list, count, event), for (int i = 0; i < count; ++i) if (list[i]) posix_show(list[i]->aio_fildes))
SHOWING(int, lio_listio64, (int mode, struct aiocb64* const list[restrict], int count, struct sigevent* restrict event),
        (mode, list, count, event), for (int i = 0; i < count; ++i) if (list[i]) posix_show(list[i]->aio_fildes))
SHOWING(ssize_t, splice, (int fd, off64_t* at, int to, off64_t* to_at, size_t bytes, unsigned flags),
        (fd, at, to, to_at, bytes, flags), (posix_show(fd), posix_show(to)))

// Allocators may map memory before the constructors above have run, and dlsym may allocate.
#define MAPPING(name, offset)                                                                  \
  KNOWN(name, #name)                                                                           \
  EXPORT void* name(void* where, size_t bytes, int protection, int flags, int fd, offset at) { \
    void* (*next)(void*, size_t, int, int, int, offset) =                                      \
        __extension__(void* (*)(void*, size_t, int, int, int, offset))                         \
            atomic_load_explicit(&known_##name, memory_order_acquire);                         \
    if (!next) return (void*)syscall(SYS_mmap, where, bytes, protection, flags, fd, at);       \
    if (fd >= 0) posix_show(fd);                                                               \
    return next(where, bytes, protection, flags, fd, at);                                      \
  }
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

// Text that goes through C's streams. Calls that move one character are left out, because a check would slow them down.
#define SHOWING_STREAM(result_type, name, parameters, arguments) \
  SHOWING(result_type, name, parameters, arguments, show_stream(stream))
SHOWING_STREAM(char*, fgets, (char* restrict text, int room, FILE* restrict stream), (text, room, stream))
SHOWING_STREAM(char*, fgets_unlocked, (char* restrict text, int room, FILE* restrict stream), (text, room, stream))
SHOWING_STREAM(ssize_t, getline, (char** restrict line, size_t* restrict room, FILE* restrict stream),
               (line, room, stream))
SHOWING_STREAM(ssize_t, getdelim, (char** restrict line, size_t* restrict room, int end, FILE* restrict stream),
               (line, room, end, stream))
ssize_t __getdelim(char** line, size_t* room, int end, FILE* stream);
SHOWING_STREAM(ssize_t, __getdelim, (char** line, size_t* room, int end, FILE* stream), (line, room, end, stream))
SHOWING_STREAM(int, fputs, (const char* restrict text, FILE* restrict stream), (text, stream))
SHOWING_STREAM(int, fputs_unlocked, (const char* restrict text, FILE* restrict stream), (text, stream))
SHOWING_STREAM(int, vfprintf, (FILE* restrict stream, const char* restrict format, va_list values),
               (stream, format, values))
int __vfprintf_chk(FILE* stream, int checks, const char* format, va_list values);
SHOWING_STREAM(int, __vfprintf_chk, (FILE * stream, int checks, const char* format, va_list values),
               (stream, checks, format, values))
// C99 programs call fscanf and vfscanf by these names.
int __isoc99_vfscanf(FILE* stream, const char* format, va_list values);
SHOWING_STREAM(int, __isoc99_vfscanf, (FILE * stream, const char* format, va_list values), (stream, format, values))
SHOWING_STREAM(int, fflush, (FILE * stream), (stream))
SHOWING_STREAM(int, fseek, (FILE * stream, long offset, int whence), (stream, offset, whence))
SHOWING_STREAM(int, fseeko, (FILE * stream, off_t offset, int whence), (stream, offset, whence))
SHOWING_STREAM(int, fseeko64, (FILE * stream, off64_t offset, int whence), (stream, offset, whence))

// Functions with a variable number of arguments hand these on to their form with a list.
#define LISTED(name, parameters, with_list, last) \
  EXPORT int name parameters {                    \
    show_stream(stream);                          \
    va_list values;                               \
    va_start(values, last);                       \
    const int result = with_list;                 \
    va_end(values);                               \
    return result;                                \
  }
int __fprintf_chk(FILE* stream, int checks, const char* format, ...);
int __isoc99_fscanf(FILE* stream, const char* format, ...);
LISTED(fprintf, (FILE* restrict stream, const char* restrict format, ...), vfprintf(stream, format, values), format)
LISTED(__fprintf_chk, (FILE * stream, int checks, const char* format, ...),
       __vfprintf_chk(stream, checks, format, values), format)
LISTED(__isoc99_fscanf, (FILE * stream, const char* format, ...), __isoc99_vfscanf(stream, format, values), format)

// Wraps a function that may open a file with O_TRUNC. The mode comes last, if it is there at all.
#define OPENING(name, parameters, arguments, directory)               \
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
    if ((flags & O_TRUNC) != 0) posix_show_path(directory, path);     \
    return next arguments;                                            \
  }

OPENING(open, (const char* path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(open64, (const char* path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode), at)
OPENING(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode), at)
SHOWING_PATH(int, creat, (const char* path, mode_t mode), (path, mode))
SHOWING_PATH(int, creat64, (const char* path, mode_t mode), (path, mode))

// The checked forms that _FORTIFY_SOURCE uses for calls without a mode.
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
SHOWING(int, __open_2, (const char* path, int flags), (path, flags),
        if (flags & O_TRUNC) posix_show_path(AT_FDCWD, path))
SHOWING(int, __open64_2, (const char* path, int flags), (path, flags),
        if (flags & O_TRUNC) posix_show_path(AT_FDCWD, path))
