// Limits writes to a stated bandwidth, for demonstrations on machines whose storage is too fast or too noisy.
//
// The library is preloaded (LD_PRELOAD=liblimited_target.so). It wraps write, writev, pwrite, pwritev, pwritev2 and
// their 64-bit names, and what fwrite, fflush and fclose pass on to a file. Writes to files under $HOCKET_LIMIT_DIR
// take as long as on one device of $HOCKET_LIMIT_BYTES_PER_S that all processes share. The next library's function
// really writes the bytes, and the rest of the time is slept. fsync and reads are not limited. These writes are not
// limited either: other functions of stdio (fprintf with a full buffer), mmap, io_uring, copy_file_range, and
// asynchronous I/O.
//
// $HOCKET_LIMIT_PROCESS_BYTES_PER_S keeps one process alone from filling the device: its own writes take as long as at
// that rate, or longer where the device is the limit.
//
// A write is cut into grains. Each grain claims the next free time of the device from a clock, which is in a file of
// the limited directory that all processes map. A writer has one grain claimed at a time. So n writers alternate by
// grains, and each gets 1/n of the bandwidth. There is no lock: a writer that dies leaves at most one claimed grain
// behind.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#undef fwrite_unlocked

#define EXPORT __attribute__((visibility("default")))

// Size of a grain, and upper limit of the bandwidth.
static const size_t kGrainBytes = 256 * 1024;
static const int64_t kMaxPacedBytesPerS = INT64_C(1) << 40;
// A grain that is claimed a little late starts where the one before ended. So the time that a writer needs to wake up
// does not idle the device. An idle device thereby takes its first kSlackNs of work at once.
static const int64_t kSlackNs = 10 * 1000 * 1000;
// No queue is this long, at 4 grains a second with the least bandwidth. A clock further ahead is from before a
// restart of the machine.
static const int64_t kStaleNs = INT64_C(300) * 1000 * 1000 * 1000;
static const int64_t kMinBytesPerS = 1000 * 1000;

static char limited_dir[PATH_MAX];  // absolute path with a final slash; "": nothing is limited
static dev_t limited_device;
static int64_t bytes_per_s;
static int64_t process_bytes_per_s;      // 0: only the device limits a process
static _Atomic int64_t* device_free_ns;  // CLOCK_MONOTONIC when the device has done all claimed grains; shared memory
static _Atomic int64_t process_free_ns;  // the same of this process's own rate

// The functions of the next library, found by dlsym.
static ssize_t (*next_write)(int, const void*, size_t);
static ssize_t (*next_pwrite)(int, const void*, size_t, off_t);
static ssize_t (*next_writev)(int, const struct iovec*, int);
static ssize_t (*next_pwritev)(int, const struct iovec*, int, off_t);
static ssize_t (*next_pwritev2)(int, const struct iovec*, int, off_t, int);
static size_t (*next_fwrite)(const void*, size_t, size_t, FILE*);
static size_t (*next_fwrite_unlocked)(const void*, size_t, size_t, FILE*);
static int (*next_fflush)(FILE*);
static int (*next_fclose)(FILE*);

// ---- settings ------------------------------------------------------------------------------------------------------

// Ends the program before it starts. A measurement with a bad setting would silently be without the limit.
static void refuse(const char* what, const char* value, const char* advice) {
  fprintf(stderr, "limited_target: %s '%s': %s\n", what, value, advice);
  _exit(2);
}

// Reads a bandwidth from the environment.
static int64_t bandwidth_of(const char* name) {
  const char* rate = getenv(name);
  char* end = NULL;
  int64_t found = rate ? strtoll(rate, &end, 10) : 0;
  if (!rate || *end || found < kMinBytesPerS || found > kMaxPacedBytesPerS)
    refuse(name, rate ? rate : "", "give a whole number of bytes per second, 1000000 or more");
  return found;
}

// Reads the limits and the directory; every mistake is fatal.
static void read_settings(const char* dir) {
  struct stat status;
  bytes_per_s = bandwidth_of("HOCKET_LIMIT_BYTES_PER_S");
  if (getenv("HOCKET_LIMIT_PROCESS_BYTES_PER_S"))
    process_bytes_per_s = bandwidth_of("HOCKET_LIMIT_PROCESS_BYTES_PER_S");
  if (!realpath(dir, limited_dir) || stat(limited_dir, &status) < 0 || !S_ISDIR(status.st_mode))
    refuse("HOCKET_LIMIT_DIR", dir, "not a directory: make it first");
  if (strlen(limited_dir) + 32 > sizeof limited_dir) refuse("HOCKET_LIMIT_DIR", dir, "the path is too long");
  limited_device = status.st_dev;
}

// Maps the clock. A new file is zeros, which means an idle device.
static void map_clock(void) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/.device-clock", limited_dir);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) < 0) refuse("the clock file", path, strerror(errno));
  void* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) refuse("the clock file", path, strerror(errno));
  close(fd);
  device_free_ns = map;
}

// Finds the functions of the next library that the wrappers below call.
static void find_next(void) {
  *(void**)&next_fclose = dlsym(RTLD_NEXT, "fclose");
  *(void**)&next_fflush = dlsym(RTLD_NEXT, "fflush");
  *(void**)&next_fwrite_unlocked = dlsym(RTLD_NEXT, "fwrite_unlocked");
  *(void**)&next_fwrite = dlsym(RTLD_NEXT, "fwrite");
  *(void**)&next_pwritev2 = dlsym(RTLD_NEXT, "pwritev2");
  *(void**)&next_pwritev = dlsym(RTLD_NEXT, "pwritev");
  *(void**)&next_writev = dlsym(RTLD_NEXT, "writev");
  *(void**)&next_pwrite = dlsym(RTLD_NEXT, "pwrite");
  *(void**)&next_write = dlsym(RTLD_NEXT, "write");
}

// The library passes everything on if $HOCKET_LIMIT_DIR is not set.
__attribute__((constructor)) static void start(void) {
  const char* dir = getenv("HOCKET_LIMIT_DIR");
  find_next();
  if (!dir) return;
  read_settings(dir);
  map_clock();
  strcat(limited_dir, "/");
}

// ---- the device ----------------------------------------------------------------------------------------------------

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Claims `bytes` at a rate from a clock, and returns when they will have been written. Lock-free; safe between
// processes.
static int64_t claim_from(_Atomic int64_t* free_ns, int64_t rate, int64_t slack_ns, size_t bytes) {
  int64_t cost = (int64_t)((double)bytes * 1e9 / (double)rate);
  int64_t seen = atomic_load(free_ns), end;
  do {
    int64_t now = now_ns(), begin = seen;
    if (begin < now - slack_ns) begin = now - slack_ns;
    if (begin > now + kStaleNs) begin = now;
    end = begin + cost;
  } while (!atomic_compare_exchange_weak(free_ns, &seen, end));
  return end;
}

static int64_t claim(size_t bytes) { return claim_from(device_free_ns, bytes_per_s, kSlackNs, bytes); }

// Claims this process's own rate for a whole write, which ends no earlier. Later grains so make up for late wake-ups.
// There is no slack: it would be a gift to each write after a pause.
static int64_t claim_own(size_t bytes) {
  return process_bytes_per_s ? claim_from(&process_free_ns, process_bytes_per_s, 0, bytes) : 0;
}

static void sleep_until(int64_t ns) {
  if (ns == 0) return;  // nothing is limited
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

// Returns 1 for a regular file in the limited directory. The device number rejects most other files cheaply. Keeps
// errno.
static int is_limited(int fd) {
  char link[64], path[PATH_MAX];
  struct stat status;
  int was = errno, limited = 0;
  if (limited_dir[0] && device_free_ns && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_dev == limited_device) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    limited = length > 0 && strncmp(path, limited_dir, strlen(limited_dir)) == 0;
  }
  errno = was;
  return limited;
}

// Writes one grain at an offset, or at the file's pointer if `at` is -1. Sleeps until the device has written it.
static ssize_t write_grain(int fd, const char* data, size_t bytes, off_t at) {
  int64_t end = claim(bytes);
  ssize_t written = at < 0 ? next_write(fd, data, bytes) : next_pwrite(fd, data, bytes, at);
  int was = errno;
  if (written > 0) sleep_until(end);
  errno = was;
  return written;
}

// Follows the rules of write and pwrite: bytes before an error count, and the next call reports the error.
static ssize_t write_limited(int fd, const char* data, size_t bytes, off_t at) {
  int64_t own_end = claim_own(bytes);
  size_t done = 0;
  do {
    size_t grain = bytes - done < kGrainBytes ? bytes - done : kGrainBytes;
    ssize_t written = write_grain(fd, data + done, grain, at < 0 ? -1 : at + (off_t)done);
    if (written < 0) return done ? (ssize_t)done : -1;
    done += (size_t)written;
    if ((size_t)written < grain) break;
  } while (done < bytes);
  sleep_until(own_end);
  return (ssize_t)done;
}

// Writes the pieces one after the other. Unlike writev, other writers may come between two of them.
static ssize_t writev_limited(int fd, const struct iovec* pieces, int count, off_t at) {
  size_t done = 0;
  for (int i = 0; i < count; i++) {
    if (pieces[i].iov_len == 0) continue;
    ssize_t written = write_limited(fd, pieces[i].iov_base, pieces[i].iov_len, at < 0 ? -1 : at + (off_t)done);
    if (written < 0) return done ? (ssize_t)done : -1;
    done += (size_t)written;
    if ((size_t)written < pieces[i].iov_len) break;
  }
  return (ssize_t)done;
}

// Sleeps for the time of bytes that stdio has already passed on to the file.
static void pay_for(int fd, size_t bytes) {
  int was = errno;
  if (bytes && is_limited(fd)) {
    int64_t own_end = claim_own(bytes);
    for (size_t done = 0; done < bytes; done += kGrainBytes)
      sleep_until(claim(bytes - done < kGrainBytes ? bytes - done : kGrainBytes));
    sleep_until(own_end);
  }
  errno = was;
}

// Accounts for a stream that held `before` bytes in its buffer and received `more`; the difference went to the file.
static void pay_for_stream(FILE* stream, size_t before, size_t more) {
  size_t held = __fpending(stream);
  if (before + more > held) pay_for(fileno(stream), before + more - held);
}

// ---- wrapped functions ---------------------------------------------------------------------------------------------

// Programs may write before this library's constructor has run, hence the test for the next function.
EXPORT ssize_t write(int fd, const void* data, size_t bytes) {
  if (!next_write) find_next();
  return is_limited(fd) ? write_limited(fd, data, bytes, -1) : next_write(fd, data, bytes);
}

EXPORT ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  if (!next_pwrite) find_next();
  return at >= 0 && is_limited(fd) ? write_limited(fd, data, bytes, at) : next_pwrite(fd, data, bytes, at);
}

EXPORT ssize_t writev(int fd, const struct iovec* pieces, int count) {
  if (!next_writev) find_next();
  return is_limited(fd) ? writev_limited(fd, pieces, count, -1) : next_writev(fd, pieces, count);
}

EXPORT ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t at) {
  if (!next_pwritev) find_next();
  return at >= 0 && is_limited(fd) ? writev_limited(fd, pieces, count, at) : next_pwritev(fd, pieces, count, at);
}

// The flags ask for speed or safety and do not change the bytes, so a limited write drops them. RWF_APPEND is the
// exception: such a write keeps its flags and is not limited.
EXPORT ssize_t pwritev2(int fd, const struct iovec* pieces, int count, off_t at, int flags) {
  if (!next_pwritev2) find_next();
  return !(flags & RWF_APPEND) && at >= -1 && is_limited(fd) ? writev_limited(fd, pieces, count, at)
                                                             : next_pwritev2(fd, pieces, count, at, flags);
}

// The 64-bit names are the same functions, because off_t has 64 bits here.
_Static_assert(sizeof(off_t) == 8, "built with 64-bit file offsets");
EXPORT ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }
EXPORT ssize_t pwritev64(int fd, const struct iovec* pieces, int count, off64_t at) {
  return pwritev(fd, pieces, count, at);
}
EXPORT ssize_t pwritev64v2(int fd, const struct iovec* pieces, int count, off64_t at, int flags) {
  return pwritev2(fd, pieces, count, at, flags);
}

EXPORT size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  if (!next_fwrite) find_next();
  size_t before = __fpending(stream), written = next_fwrite(data, size, count, stream);
  pay_for_stream(stream, before, written * size);
  return written;
}

EXPORT size_t fwrite_unlocked(const void* data, size_t size, size_t count, FILE* stream) {
  if (!next_fwrite_unlocked) find_next();
  size_t before = __fpending(stream), written = next_fwrite_unlocked(data, size, count, stream);
  pay_for_stream(stream, before, written * size);
  return written;
}

EXPORT int fflush(FILE* stream) {
  if (!next_fflush) find_next();
  size_t before = stream ? __fpending(stream) : 0;
  int failed = next_fflush(stream);
  if (stream && !failed) pay_for_stream(stream, before, 0);
  return failed;
}

// Flushes first, since the stream has no descriptor to ask about after fclose.
EXPORT int fclose(FILE* stream) {
  if (!next_fclose) find_next();
  if (__fwriting(stream)) fflush(stream);
  return next_fclose(stream);
}
