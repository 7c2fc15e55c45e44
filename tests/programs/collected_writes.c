// collected_writes CASE PATH: what a program sees of its own writes while they are collected (`hocket forward
// --consistency close-to-open`). It exits with 0 if all is as the kernel would have it, else it prints what is not.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char* path;
static char other_path[600], seen[1 << 16];

static int make_at(const char* where, int flags) {
  const int fd = open(where, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0600);
  CHECK(fd >= 0);
  return fd;
}
static int make(int flags) { return make_at(path, flags); }

// Writes "0001\n", "0002\n", … of these numbers. All but the first two are collected.
static void put(int fd, int first, int last) {
  char line[16];
  for (int i = first; i <= last; ++i) {
    snprintf(line, sizeof line, "%04d\n", i);
    CHECK(write(fd, line, 5) == 5);
  }
}

// True if the text consists of these lines.
static bool has_lines(const char* text, long bytes, int first, int last) {
  char line[16];
  if (bytes != 5L * (last - first + 1)) return false;
  for (int i = first; i <= last; ++i) {
    snprintf(line, sizeof line, "%04d\n", i);
    if (memcmp(text + 5 * (i - first), line, 5) != 0) return false;
  }
  return true;
}

// Reads the file as another process would, without libc.
static long read_raw(const char* where) {
  char command[700];
  snprintf(command, sizeof command, "%s", where);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, command, O_RDONLY | O_CLOEXEC);
  const long bytes = fd < 0 ? -1 : pread(fd, seen, sizeof seen, 0);
  if (fd >= 0) close(fd);
  return bytes;
}

// Programs that were linked to an old libc use these.
int __fxstat(int version, int fd, struct stat* about);
int __xstat(int version, const char* path, struct stat* about);

static void sizes(void) {
  const int fd = make(0);
  struct stat about;
  struct statx more;
  put(fd, 1, 10);
  CHECK(fstat(fd, &about) == 0 && about.st_size == 50);
  put(fd, 11, 20);
  CHECK(stat(path, &about) == 0 && about.st_size == 100);
  put(fd, 21, 30);
  CHECK(lstat(path, &about) == 0 && about.st_size == 150);
  put(fd, 31, 40);
  CHECK(fstatat(AT_FDCWD, path, &about, 0) == 0 && about.st_size == 200);
  put(fd, 41, 50);
  CHECK(statx(AT_FDCWD, path, 0, STATX_SIZE, &more) == 0 && more.stx_size == 250);
  put(fd, 51, 60);
  CHECK(lseek(fd, 0, SEEK_CUR) == 300 && lseek(fd, 0, SEEK_END) == 300);
  put(fd, 61, 70);
  CHECK(lseek(fd, 0, SEEK_HOLE) == 350);
  CHECK(lseek(fd, 0, SEEK_END) == 350);
  put(fd, 71, 80);
  CHECK(syscall(SYS_fstat, fd, &about) == 0 && about.st_size == 400);
#if defined(__x86_64__) && defined(__GLIBC__)
  put(fd, 81, 90);
  CHECK(__fxstat(1, fd, &about) == 0 && about.st_size == 450);
  put(fd, 91, 100);
  CHECK(__xstat(1, path, &about) == 0 && about.st_size == 500);
#endif
}

static void accesses(void) {
  const int fd = make(0);
  put(fd, 1, 10);
  CHECK(pread(fd, seen, sizeof seen, 0) == 50 && has_lines(seen, 50, 1, 10));
  put(fd, 11, 20);
  CHECK(pwrite(fd, "over\n", 5, 95) == 5);
  CHECK(pread(fd, seen, 5, 95) == 5 && memcmp(seen, "over\n", 5) == 0);
  put(fd, 21, 30);
  const int second = open(path, O_RDWR | O_CLOEXEC);
  CHECK(read(second, seen, sizeof seen) == 150);
  put(fd, 31, 40);
  CHECK(pread(second, seen, 5, 195) == 5 && memcmp(seen, "0040\n", 5) == 0);
  put(fd, 41, 50);
  CHECK(lseek(second, 0, SEEK_SET) == 0);
  put(second, 91, 130);  // overlaps what the first one has written, later
  put(fd, 51, 60);
  CHECK(pread(fd, seen, sizeof seen, 0) == 300 && has_lines(seen, 200, 91, 130) && has_lines(seen + 200, 100, 41, 60));
  CHECK(lseek(fd, 100, SEEK_SET) == 100);
  put(fd, 1, 10);
  CHECK(pread(fd, seen, 50, 100) == 50 && has_lines(seen, 50, 1, 10));
  put(fd, 11, 20);
  CHECK(ftruncate(fd, 125) == 0 && pread(fd, seen, sizeof seen, 0) == 125);
  CHECK(lseek(fd, 125, SEEK_SET) == 125);
  put(fd, 1, 10);
  CHECK(truncate(path, 10) == 0 && read_raw(path) == 10);
  CHECK(lseek(fd, 10, SEEK_SET) == 10);
  put(fd, 1, 10);
  close(open(path, O_RDWR | O_TRUNC));
  CHECK(lseek(fd, 0, SEEK_END) == 0);
  put(fd, 1, 10);
  const int copy = make_at(other_path, 0);
  loff_t from = 0;
  CHECK(copy_file_range(fd, &from, copy, NULL, 100, 0) == 50);
  put(fd, 11, 20);
  off_t at = 50;
  CHECK(sendfile(copy, fd, &at, 100) == 50);
  CHECK(pread(copy, seen, 200, 0) == 100 && has_lines(seen, 100, 1, 20));
  CHECK(write(fd, NULL, 5) == -1 && errno == EFAULT);
  CHECK(pread(fd, seen, 200, 0) == 100 && has_lines(seen, 100, 1, 20));
}

static void mappings(void) {
  const int fd = make(0);
  put(fd, 1, 10);
  char* const memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED && has_lines(memory, 50, 1, 10));
  put(fd, 11, 20);
  CHECK(has_lines(memory, 100, 1, 20));
  const int second = open(path, O_RDWR);
  CHECK(lseek(second, 100, SEEK_SET) == 100);
  put(second, 21, 30);
  CHECK(has_lines(memory, 150, 1, 30));
  CHECK(munmap(memory, 4096) == 0);
  put(second, 31, 40);
  CHECK(read_raw(path) == 200 && has_lines(seen, 200, 1, 40));
}

// What is set of a file after a write stays so.
static void attributes(void) {
  const int fd = make(0);
  const struct timespec times[2] = {{1000, 0}, {2000, 0}};
  const struct timeval old_times[2] = {{1000, 0}, {3000, 0}};
  struct stat about;
  put(fd, 1, 10);
  CHECK(futimens(fd, times) == 0 && close(fd) == 0);
  CHECK(stat(path, &about) == 0 && about.st_mtime == 2000 && about.st_size == 50);
  const int again = make(0);
  put(again, 1, 10);
  CHECK(utimes(path, old_times) == 0 && close(again) == 0);
  CHECK(stat(path, &about) == 0 && about.st_mtime == 3000);
  const int third = make(0);
  put(third, 1, 10);
  CHECK(fchmod(third, 04700) == 0 && close(third) == 0);
  CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 04700);
  const int moved = make_at(other_path, 0);
  put(moved, 1, 10);
  CHECK(rename(other_path, path) == 0 && read_raw(path) == 50);
}

static void streams(void) {
  FILE* const stream = fopen(path, "w+");
  CHECK(stream);
  setvbuf(stream, NULL, _IOFBF, 16);
  for (int i = 1; i <= 10; ++i) fprintf(stream, "%04d\n", i);
  CHECK(fseek(stream, 0, SEEK_END) == 0 && ftell(stream) == 50);
  for (int i = 11; i <= 20; ++i) fprintf(stream, "%04d\n", i);
  rewind(stream);
  CHECK(fread(seen, 1, 200, stream) == 100 && has_lines(seen, 100, 1, 20));
  CHECK(fseek(stream, 0, SEEK_END) == 0);
  for (int i = 21; i <= 30; ++i) fprintf(stream, "%04d\n", i);
  CHECK(fclose(stream) == 0 && read_raw(path) == 150 && has_lines(seen, 150, 1, 30));

  // A file that a stream empties keeps nothing of what was collected before.
  const int fd = make(0);
  put(fd, 1, 20);
  FILE* const other = fopen("/dev/null", "r");
  CHECK(other && freopen(path, "w", other) == other);
  CHECK(close(fd) == 0 && read_raw(path) == 0);
  CHECK(fputs("0001\n", other) >= 0 && fclose(other) == 0 && read_raw(path) == 5);
}

extern char** environ;

// Others see what was written before they were made.
static void children(void) {
  int fd = make(0), status, at = 0;
  for (int i = 0; i < 40; ++i) {
    put(fd, at + 1, at + 5), at += 5;
    const pid_t child = i % 2 ? fork() : vfork();
    if (child == 0) _exit(read_raw(path) == 5L * at ? 0 : 3);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    if (i % 10 == 9) {
      close(fd);
      fd = open(path, O_RDWR | O_CLOEXEC);
      CHECK(lseek(fd, 0, SEEK_END) == 5L * at);
    }
  }
  char command[1500];
  put(fd, at + 1, at + 5), at += 5;
  snprintf(command, sizeof command, "test $(wc -c < %s) = %d", path, 5 * at);
  CHECK(system(command) == 0);
  close(fd);
  fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(lseek(fd, 0, SEEK_END) == 5L * at);
  put(fd, at + 1, at + 5), at += 5;
  snprintf(command, sizeof command, "test $(wc -c < %s) = %d", path, 5 * at);
  char* const words[] = {"sh", "-c", command, NULL};
  pid_t child;
  CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(read_raw(path) == 5L * at && has_lines(seen, 5L * at, 1, at));
}

// What a child has collected is in the file when it has ended, however it ends or becomes another program.
static void ends(void) {
  for (int way = 0; way < 6; ++way) {
    unlink(path);
    const pid_t child = fork();
    if (child == 0) {
      const int fd = make(0);
      put(fd, 1, 20);
      char command[700];
      snprintf(command, sizeof command, "test $(wc -c < %s) = 100", path);
      switch (way) {
        case 0: exit(0);
        case 1: _exit(0);
        case 2: quick_exit(0);
        case 3: syscall(SYS_exit_group, 0);
        case 4: execl("/bin/sh", "sh", "-c", command, NULL);
        default: pthread_exit(NULL);
      }
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(read_raw(path) == 100 && has_lines(seen, 100, 1, 20));
  }
  // A script can be executed at once.
  const int fd = make(0);
  CHECK(write(fd, "#!/bin/sh\n", 10) == 10 && write(fd, "exit ", 5) == 5 && write(fd, "7\n", 2) == 2);
  CHECK(fchmod(fd, 0700) == 0 && close(fd) == 0);
  int status = system(path);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

// Calls that nobody sees: their effects are in the order of the program.
static void unseen(void) {
#if defined(__x86_64__)
#define UNSEEN(result, number, a, b, c) \
  __asm__ volatile("syscall" : "=a"(result) : "a"((long)(number)), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory")
  int fd = make(0);
  long result;
  put(fd, 1, 10);
  UNSEEN(result, SYS_write, (long)fd, "0011\n", 5L);
  CHECK(result == 5);
  put(fd, 12, 20);
  UNSEEN(result, SYS_lseek, (long)fd, 200L, 0L);
  CHECK(result == 200);
  put(fd, 41, 50);
  UNSEEN(result, SYS_close, (long)fd, 0L, 0L);
  const int again = make_at(other_path, 0);
  CHECK(again == fd);
  put(again, 1, 10);
  CHECK(close(again) == 0);
  CHECK(read_raw(other_path) == 50 && has_lines(seen, 50, 1, 10));
  CHECK(read_raw(path) == 250 && has_lines(seen, 100, 1, 20) && has_lines(seen + 200, 50, 41, 50));
  // Another file gets the number unnoticed, and has the same offset.
  fd = make(0);
  put(fd, 1, 10);
  long raw;
  UNSEEN(raw, SYS_open, other_path, (long)O_RDWR, 0L);
  CHECK(raw >= 0);
  UNSEEN(result, SYS_lseek, raw, 50L, 0L);
  UNSEEN(result, SYS_dup2, raw, (long)fd, 0L);
  CHECK(result == fd);
  put(fd, 11, 20);
  CHECK(close(fd) == 0);
  CHECK(read_raw(path) == 50 && has_lines(seen, 50, 1, 10));
  CHECK(read_raw(other_path) == 100 && has_lines(seen, 100, 1, 20));
#endif
}

static int handled_fd;
static volatile int handled;
static void handler(int number) {
  (void)number;
  if (write(handled_fd, "hand", 4) == 4) ++handled;
}

static void often(long us) {
  const struct itimerval timer = {{0, us}, {0, us}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

// Counts the blocks of four letters.
static void count_blocks(const char* one, long ones, const char* other, long others) {
  static char all[1 << 22];
  const int fd = open(path, O_RDONLY);
  const long bytes = pread(fd, all, sizeof all, 0);
  long first = 0, second = 0;
  for (long i = 0; i + 4 <= bytes; i += 4) {
    if (memcmp(all + i, one, 4) == 0) ++first;
    if (memcmp(all + i, other, 4) == 0) ++second;
  }
  CHECK(bytes == 4 * (ones + others));
  CHECK(first == ones);
  CHECK(second == others);
}

// A handler writes to the same descriptor while the program does.
static void handlers(void) {
  enum { most = 200000 };
  handled_fd = make(0);
  const struct sigaction action = {.sa_handler = handler};
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGSEGV, &action, NULL);
  often(300);
  for (int i = 0; i < most; ++i) CHECK(write(handled_fd, "main", 4) == 4);
  raise(SIGSEGV);
  often(0);
  CHECK(handled > 1);
  CHECK(close(handled_fd) == 0);
  count_blocks("main", most, "hand", handled);
}

static sigjmp_buf before_write;
static volatile sig_atomic_t is_writing;
static void jumps(int number) {
  (void)number;
  if (is_writing) siglongjmp(before_write, 1);
}

// A handler that leaves a write by a jump leaves nothing locked.
static void jumping(void) {
  const int fd = make(0);
  const struct sigaction action = {.sa_handler = jumps};
  sigaction(SIGALRM, &action, NULL);
  often(200);
  for (volatile int i = 0; i < 100000; ++i) {
    if (sigsetjmp(before_write, 1) == 0) {
      is_writing = 1;
      CHECK(write(fd, "main", 4) == 4);
    }
    is_writing = 0;
  }
  often(0);
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_size == lseek(fd, 0, SEEK_CUR) && about.st_size % 4 == 0);
  CHECK(about.st_size > 4 * 1000);
}

static void* writes(void* text) {
  for (int i = 0; i < 100000; ++i)
    if (write(handled_fd, text, 4) != 4) return text;
  return NULL;
}

// Threads that write with one offset: nothing is lost, and each write is whole.
static void threads(void) {
  pthread_t one, two;
  void* problem;
  handled_fd = make(0);
  CHECK(pthread_create(&one, NULL, writes, "mine") == 0 && pthread_create(&two, NULL, writes, "your") == 0);
  struct stat about = {0};
  while (about.st_size < 200000) {  // while others look at the file
    CHECK(fstat(handled_fd, &about) == 0 && about.st_size % 4 == 0);
    usleep(500);
  }
  for (int i = 0; i < 5; ++i) {  // and processes come and go
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(waitpid(child, NULL, 0) == child);
    usleep(500);
  }
  CHECK(pthread_join(one, &problem) == 0 && !problem && pthread_join(two, &problem) == 0 && !problem);
  CHECK(close(handled_fd) == 0);
  count_blocks("mine", 100000, "your", 100000);
}

static pthread_barrier_t turn;
static int both[2];

// A thread writes by its own descriptor of the file, in turns with the other thread.
static void* writes_in_turns(void* number) {
  const int own = (int)(long)number;
  char data[100];
  memset(data, own ? 'y' : 'x', sizeof data);
  for (int i = 0; i < 2; ++i) CHECK(write(both[own], data, sizeof data) == sizeof data);
  pthread_barrier_wait(&turn);
  for (int i = 0; i < 2; ++i) {
    if (i == own) CHECK(write(both[own], data, sizeof data) == sizeof data);
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

// Two threads begin to write to one file at the same time. Of the bytes that both write, the later ones stay.
static void two_descriptors(void) {
  pthread_barrier_init(&turn, NULL, 2);
  for (int round = 0; round < 1500; ++round) {
    both[0] = make(0);
    both[1] = open(path, O_WRONLY);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, writes_in_turns, (void*)1) == 0);
    writes_in_turns((void*)0);
    CHECK(pthread_join(other, NULL) == 0 && close(both[1]) == 0 && close(both[0]) == 0);
    char last[300];
    const int fd = open(path, O_RDONLY);
    CHECK(read(fd, last, sizeof last) == sizeof last && last[250] == 'y');
    close(fd);
  }
}

static void* writes_for_ever(void* unused) {
  (void)unused;
  while (write(handled_fd, "main", 4) == 4) {
  }
  return NULL;
}

static void cancelled(void) {
  handled_fd = make(0);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    void* result;
    CHECK(pthread_create(&thread, NULL, writes_for_ever, NULL) == 0);
    usleep(500);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  }
  struct stat about;
  CHECK(fstat(handled_fd, &about) == 0 && about.st_size % 4 == 0);
  CHECK(about.st_size == lseek(handled_fd, 0, SEEK_CUR));
}

// Locks and other descriptors of a description.
static void shared(void) {
  int fd = make(0);
  put(fd, 1, 10);
  CHECK(flock(fd, LOCK_EX) == 0);
  put(fd, 11, 20);
  CHECK(flock(fd, LOCK_UN) == 0 && read_raw(path) == 100);
  struct flock lock = {.l_type = F_WRLCK};
  put(fd, 21, 30);
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  put(fd, 31, 40);
  lock.l_type = F_UNLCK;
  CHECK(fcntl(fd, F_SETLK, &lock) == 0 && read_raw(path) == 200);
  put(fd, 41, 50);
  const int two = dup(fd);
  CHECK(write(two, "0051\n", 5) == 5);
  put(fd, 52, 60);
  CHECK(read_raw(path) == 300 && has_lines(seen, 300, 1, 60));
  close(two);
  close(fd);
  fd = open(path, O_RDWR);
  CHECK(lseek(fd, 300, SEEK_SET) == 300);
  put(fd, 61, 70);
  CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && lseek(fd, 0, SEEK_SET) == 0);
  put(fd, 71, 80);
  CHECK(read_raw(path) == 400 && has_lines(seen, 400, 1, 80));
}

// More files than descriptors can be collected of, in turn.
static void many(void) {
  enum { files = 40 };
  int fds[files];
  char name[600];
  for (int i = 0; i < files; ++i) {
    snprintf(name, sizeof name, "%s-%d", path, i);
    fds[i] = make_at(name, 0);
  }
  for (int line = 1; line <= 50; ++line)
    for (int i = 0; i < files; ++i) put(fds[i], line, line);
  for (int i = 0; i < files; ++i) {
    CHECK(close(fds[i]) == 0);
    snprintf(name, sizeof name, "%s-%d", path, i);
    CHECK(read_raw(name) == 250 && has_lines(seen, 250, 1, 50) && unlink(name) == 0);
  }
}

// More than is collected at a time, in pieces of many sizes.
static void large(void) {
  static char all[5 << 20], back[5 << 20];
  for (size_t i = 0; i < sizeof all; ++i) all[i] = (char)(i * 2654435761u >> 13);
  const int fd = make(0);
  size_t at = 0;
  for (size_t some = 1; at < sizeof all; some = some * 7 % 70001 + 1) {
    if (some > sizeof all - at) some = sizeof all - at;
    CHECK(write(fd, all + at, some) == (ssize_t)some);
    at += some;
  }
  CHECK(pread(fd, back, sizeof back, 0) == sizeof back && memcmp(all, back, sizeof all) == 0);
}

// ---- together with test_close_to_open.py ---------------------------------------------------------------------------

// Writes 100 lines, and waits to be killed or told to go on.
static void waiting(void) {
  const int fd = make(0);
  put(fd, 1, 100);
  puts("ready");
  fflush(stdout);
  while (getchar() != '\n') {
  }
  put(fd, 101, 200);
  CHECK(close(fd) == 0);
}

// A collected write that fails is told once: by the next write, by sync, or by close.
static void failing(void) {
  int fd = make(0);
  put(fd, 1, 2);
  CHECK(write(fd, "a", 1) == 1);
  CHECK(fsync(fd) == -1 && errno == ENOSPC);
  CHECK(fsync(fd) == 0);
  CHECK(write(fd, "b", 1) == 1 && write(fd, "b", 1) == 1 && write(fd, "b", 1) == 1);
  struct stat about;
  CHECK(fstat(fd, &about) == 0);
  CHECK(write(fd, "c", 1) == -1 && errno == ENOSPC);
  CHECK(write(fd, "d", 1) == 1 && write(fd, "d", 1) == 1 && write(fd, "d", 1) == 1);
  CHECK(close(fd) == -1 && errno == ENOSPC);
  CHECK(close(fd) == -1 && errno == EBADF);  // it was closed nevertheless
  FILE* const stream = fopen(path, "w");
  setvbuf(stream, NULL, _IONBF, 0);
  for (int i = 0; i < 5; ++i) CHECK(fputc('e', stream) == 'e');
  CHECK(fclose(stream) == EOF && errno == ENOSPC);
  fd = make(0);
  CHECK(close(fd) == 0);
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"sizes", sizes},       {"accesses", accesses},
    {"mappings", mappings}, {"attributes", attributes},
    {"streams", streams},   {"children", children},
    {"ends", ends},         {"unseen", unseen},
    {"handlers", handlers}, {"jumping", jumping},
    {"threads", threads},   {"cancelled", cancelled},
    {"shared", shared},     {"many", many},
    {"large", large},       {"waiting", waiting},
    {"failing", failing},   {"two-descriptors", two_descriptors},
};

int main(int count, char** words) {
  if (count != 3) return 2;
  path = words[2];
  snprintf(other_path, sizeof other_path, "%s-other", path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(cases[i].name, words[1]) != 0) continue;
    cases[i].run();
    return 0;
  }
  return 2;
}
