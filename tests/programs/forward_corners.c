// forward_corners CORNER PATH: one corner of POSIX file calls, for programs under `hocket forward`. It exits with 0 if
// all is as the kernel would have it, else it prints what is not.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static const char* path;
static char block[1 << 16];

static int make(int flags) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
  CHECK(fd >= 0);
  return fd;
}

// Errors are those of the kernel.
static void with_errors(void) {
  const int fd = make(0);
  CHECK(write(fd, block, 10) == 10);
  const int reader = open(path, O_RDONLY), writer = open(path, O_WRONLY), name = open(path, O_PATH);
  errno = 0;
  CHECK(write(reader, block, 1) == -1 && errno == EBADF);
  CHECK(read(writer, block, 1) == -1 && errno == EBADF);
  CHECK(read(name, block, 1) == -1 && errno == EBADF);
  CHECK(pread(fd, block, 1, -5) == -1 && errno == EINVAL);
  CHECK(pwrite(fd, block, 1, -1) == -1 && errno == EINVAL);
  CHECK(write(fd, NULL, 1) == -1 && errno == EFAULT);
  CHECK(read(fd, (void*)8, 1) == 0 || errno == EFAULT);
  CHECK(pwrite(fd, block, 10, INT64_MAX - 3) == -1 && (errno == EFBIG || errno == EINVAL));
  CHECK(readv(fd, (struct iovec[]){{block, SIZE_MAX / 2}, {block, SIZE_MAX / 2}}, 2) == -1);
  CHECK(writev(fd, NULL, -1) == -1 && errno == EINVAL);
  CHECK(read(9999, block, 1) == -1 && errno == EBADF);
  CHECK(write(fd, block, 0) == 0);
  errno = 77;
  CHECK(pread(fd, block, 10, 0) == 10 && errno == 77);
}

// What stdio, descriptors' duplicates, and O_APPEND do with one file.
static void with_offsets(void) {
  const int fd = make(0), other = dup(fd), moved = fcntl(fd, F_DUPFD, 100);
  CHECK(write(fd, "one", 3) == 3 && write(other, "two", 3) == 3 && write(moved, "six", 3) == 3);
  CHECK(lseek(fd, 0, SEEK_CUR) == 9);
  CHECK(lseek(other, 3, SEEK_SET) == 3 && read(fd, block, 3) == 3 && memcmp(block, "two", 3) == 0);
  CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && lseek(fd, 0, SEEK_SET) == 0);
  CHECK(write(fd, "end", 3) == 3 && lseek(fd, 0, SEEK_CUR) == 12);
  CHECK(dup2(open("/dev/null", O_WRONLY), moved) == moved && write(moved, "gone", 4) == 4);
  CHECK(lseek(fd, 0, SEEK_END) == 12);
  FILE* stream = fdopen(other, "r+");
  CHECK(stream && fseek(stream, 0, SEEK_SET) == 0 && fputs("TEXT", stream) >= 0 && fclose(stream) == 0);
  CHECK(pread(fd, block, 4, 0) == 4);
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_size == 16);  // the description still appends
  CHECK(pread(fd, block, 4, 12) == 4 && memcmp(block, "TEXT", 4) == 0);
}

// A file is forwarded whatever becomes of its name, and its rights are those of when it was opened.
static void without_name(void) {
  const int fd = make(0);
  char other[600];
  snprintf(other, sizeof other, "%s-moved", path);
  CHECK(rename(path, other) == 0 && write(fd, "a", 1) == 1);
  CHECK(unlink(other) == 0 && write(fd, "b", 1) == 1);
  CHECK(fchmod(fd, 0) == 0 && pwrite(fd, "c", 1, 2) == 1);
  CHECK(pread(fd, block, 10, 0) == 3 && memcmp(block, "abc", 3) == 0);
  const int nameless = open(".", O_TMPFILE | O_RDWR, 0600);
  if (nameless >= 0) CHECK(write(nameless, "x", 1) == 1 && pread(nameless, block, 1, 0) == 1);
}

// Locks, and execution of a file that was just written: no server keeps a descriptor.
static void with_locks(void) {
  const int fd = make(0);
  CHECK(write(fd, "#!/bin/sh\nexit 7\n", 17) == 17);
  CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
  CHECK(write(fd, "#", 1) == 1);
  const int second = open(path, O_RDWR);
  CHECK(flock(second, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
  close(fd);
  CHECK(flock(second, LOCK_EX | LOCK_NB) == 0);
  CHECK(fchmod(second, 0700) == 0);
  close(second);
  const int status = system(path);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

// A process may close all descriptors, and use their numbers for its own files and pipes.
static void closing_all(void) {
  int fd = make(0);
  CHECK(write(fd, "a", 1) == 1);
  for (int i = 3; i < 1100; ++i) close(i);
  fd = open(path, O_RDWR);
  CHECK(fd == 3 && pwrite(fd, "b", 1, 1) == 1);
  CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0);
  int ends[2];
  CHECK(pipe(ends) == 0 && write(ends[1], "pipe", 4) == 4 && read(ends[0], block, 9) == 4);
  fd = open(path, O_RDWR);
  CHECK(pread(fd, block, 9, 0) == 2 && memcmp(block, "ab", 2) == 0);
  for (int i = 10; i < 1000; ++i) CHECK(dup2(ends[1], i) == i);  // as if each number were in use
  CHECK(pwrite(fd, "c", 1, 2) == 1 && pread(fd, block, 9, 0) == 3);
}

// Children by fork write with their parent's offset; so do children of vfork, and programs that they become.
static void with_children(void) {
  const int fd = make(0);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = i % 2 ? fork() : vfork();
    if (child == 0) _exit(write(fd, "child ", 6) == 6 ? 0 : 3);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(write(fd, "parent ", 7) == 7);
  }
  char command[700];
  snprintf(command, sizeof command, "printf program >&%d", fd);
  CHECK(system(command) == 0 && lseek(fd, 0, SEEK_CUR) == 20 * 13 + 7);
  CHECK(pread(fd, block, 6, 0) == 6 && memcmp(block, "child ", 6) == 0);
}

static int handled_fd;
static volatile int handled;
static void handler(int number) {
  (void)number;
  if (write(handled_fd, "h", 1) == 1) ++handled;
}

// A handler may write while the program writes: nothing stays locked.
static void with_handlers(void) {
  handled_fd = make(O_APPEND);
  struct sigaction action = {.sa_handler = handler};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 700}, {0, 700}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 3000; ++i) CHECK(write(handled_fd, "main", 4) == 4);
  often = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  struct stat about;
  CHECK(fstat(handled_fd, &about) == 0 && about.st_size == 3000 * 4 + handled);
  CHECK(handled > 0);
}

static void* writes_for_ever(void* unused) {
  (void)unused;
  const int fd = open(path, O_WRONLY | O_APPEND);
  while (write(fd, block, 100) == 100) {
  }
  return NULL;
}

// A thread that is cancelled while it writes leaves nothing behind that hinders others.
static void with_cancelling(void) {
  make(0);
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, writes_for_ever, NULL) == 0);
    usleep(500);
    void* result;
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  }
  const int fd = open(path, O_RDWR);
  CHECK(pwrite(fd, "x", 1, 0) == 1);
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_size % 100 == 0);
  // A thread that waits for a pipe is cancelled there, as without hocket.
  int ends[2];
  CHECK(pipe(ends) == 0);
}

static int waited_end;
static void* waits(void* unused) {
  (void)unused;
  char byte;
  return read(waited_end, &byte, 1) < 0 ? NULL : NULL;
}
static void cancelled_in_pipe(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  waited_end = ends[0];
  pthread_t thread;
  void* result;
  CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
  usleep(20000);
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static volatile sig_atomic_t signals_of_limit;
static void counts_signal(int number) {
  (void)number;
  ++signals_of_limit;
}

// A limit of the file size gives the program its signal, once for each call that could write nothing.
static void with_limit(void) {
  signal(SIGXFSZ, counts_signal);
  const struct rlimit limit = {100, 100};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const int fd = make(0);
  CHECK(write(fd, block, 200) == 100 && signals_of_limit == 0);
  CHECK(write(fd, block, 1) == -1 && errno == EFBIG && signals_of_limit == 1);
  CHECK(pwrite(fd, block, 1, 5000) == -1 && errno == EFBIG && signals_of_limit == 2);
  CHECK(pwritev(fd, (struct iovec[]){{block, 1}, {block, 1}}, 2, 100) == -1 && signals_of_limit == 3);
  off64_t from = 0, to = 100;
  CHECK(copy_file_range(fd, &from, fd, &to, 10, 0) == -1 && errno == EFBIG && signals_of_limit == 4);
  CHECK(pwrite(fd, block, 50, 0) == 50 && pread(fd, block, 200, 0) == 100 && signals_of_limit == 4);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    _exit(write(fd, block, 1) == -1 ? 3 : 4);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(write(fd, block, 1) == -1 && errno == EFBIG && signals_of_limit == 4);
}

static void* appends(void* number) {
  const int fd = open(path, O_WRONLY | O_APPEND);
  char line[32];
  for (int i = 0; i < 300; ++i) {
    const int length = snprintf(line, sizeof line, "%02d %04d\n", (int)(intptr_t)number, i);
    if (write(fd, line, (size_t)length) != length) return "an append is cut";
  }
  close(fd);
  return NULL;
}

// Appends of many threads and processes are each whole, and each thread's are in order.
static void with_threads(void) {
  make(0);
  enum { threads = 8 };
  pthread_t all[threads];
  const pid_t child = fork();
  for (intptr_t i = 0; i < threads; ++i)
    CHECK(pthread_create(&all[i], NULL, appends, (void*)(child == 0 ? i + threads : i)) == 0);
  void* problem;
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(all[i], &problem) == 0 && problem == NULL);
  if (child == 0) exit(0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  FILE* const lines = fopen(path, "r");
  int next[2 * threads] = {0}, thread, number, count = 0;
  while (fscanf(lines, "%d %d", &thread, &number) == 2) {
    CHECK(thread >= 0 && thread < 2 * threads && number == next[thread]++);
    ++count;
  }
  CHECK(count == 2 * threads * 300);
}

// A program forks while its threads write, and its children write, too.
static void forking_meanwhile(void) {
  make(0);
  enum { threads = 4, children = 60 };
  pthread_t all[threads];
  for (intptr_t i = 0; i < threads; ++i) CHECK(pthread_create(&all[i], NULL, appends, (void*)i) == 0);
  const int fd = open(path, O_WRONLY | O_APPEND);
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(write(fd, "99 0000\n", 8) == 8 ? 0 : 3);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  void* problem;
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(all[i], &problem) == 0 && problem == NULL);
  FILE* const lines = fopen(path, "r");
  int next[100] = {0}, thread, number, count = 0;
  while (fscanf(lines, "%d %d", &thread, &number) == 2) {
    CHECK(thread == 99 || (thread >= 0 && thread < threads && number == next[thread]++));
    ++count;
  }
  CHECK(count == threads * 300 + children);
}

// Many open files, of which each is written and read.
static void with_many(void) {
  struct rlimit limit;
  enum { files = 10000 };
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > files + 100);
  static int fds[files];
  char name[600];
  for (int i = 0; i < files; ++i) {
    snprintf(name, sizeof name, "%s-%d", path, i);
    fds[i] = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(fds[i] >= 0 && write(fds[i], &i, sizeof i) == sizeof i);
  }
  for (int i = 0; i < files; ++i) {
    int seen = -1;
    CHECK(pread(fds[i], &seen, sizeof seen, 0) == sizeof seen && seen == i);
    snprintf(name, sizeof name, "%s-%d", path, i);
    CHECK(unlink(name) == 0);
  }
}

// Direct I/O: the server's memory is aligned.
static void with_direct(void) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
  if (fd < 0 && errno == EINVAL) return;  // the file system has none
  CHECK(fd >= 0);
  char* const memory = aligned_alloc(4096, 1 << 20);
  memset(memory, 'd', 1 << 20);
  CHECK(pwrite(fd, memory, 1 << 20, 0) == 1 << 20);
  memset(memory, 0, 1 << 20);
  CHECK(pread(fd, memory, 1 << 20, 0) == 1 << 20 && memory[0] == 'd' && memory[(1 << 20) - 1] == 'd');
}

// Calls larger than a connection's memory go directly, and are whole.
static void with_large(void) {
  const int fd = make(0);
  const size_t bytes = 65u << 20;
  char* const memory = malloc(bytes);
  memset(memory, 'l', bytes);
  CHECK(write(fd, memory, bytes) == (ssize_t)bytes && write(fd, memory, bytes / 2) == (ssize_t)(bytes / 2));
  memset(memory, 0, bytes);
  CHECK(pread(fd, memory, bytes - (1 << 20), 1 << 20) == (ssize_t)(bytes - (1 << 20)));
  CHECK(memory[0] == 'l' && memory[bytes - (1 << 20) - 1] == 'l');
}

static sigjmp_buf before_write;
static volatile sig_atomic_t is_writing;
static void jumps(int number) {
  (void)number;
  if (is_writing) siglongjmp(before_write, 1);
}

// A handler that leaves a write by a jump finds it done or not begun, and the thread can be cancelled as before.
static void with_jumps(void) {
  const int fd = make(0);
  struct sigaction action = {.sa_handler = jumps};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (volatile int i = 0; i < 3000; ++i) {
    if (sigsetjmp(before_write, 1) == 0) {
      is_writing = 1;
      CHECK(write(fd, block, 4096) == 4096);
    }
    is_writing = 0;
    struct stat about;
    CHECK(fstat(fd, &about) == 0 && about.st_size == lseek(fd, 0, SEEK_CUR) && about.st_size % 4096 == 0);
  }
  often = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  int state;
  CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0 && state == PTHREAD_CANCEL_ENABLE);
}

// A program that permits itself only read, write, and exit can still use them.
static void with_few_calls(void) {
  const int fd = make(0);
  CHECK(write(fd, "a", 1) == 1);
  const pid_t child = fork();
  if (child == 0) {
    const bool limited = write(fd, "b", 1) == 1 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
    syscall(SYS_exit, limited && write(fd, "c", 1) == 1 ? 0 : 3);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(pread(fd, block, 9, 0) == 3 && memcmp(block, "abc", 3) == 0);
}

// A read into memory of which only the first part is there reads that part, and no more.
static void with_part_of_memory(void) {
  const int fd = make(0);
  char* const memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(munmap(memory + 4096, 4096) == 0);
  CHECK(write(fd, block, 8192) == 8192 && lseek(fd, 0, SEEK_SET) == 0);
  CHECK(read(fd, memory, 8192) == 4096 && lseek(fd, 0, SEEK_CUR) == 4096);
  CHECK(pread(fd, memory, 8192, 0) == 4096);
  CHECK(read(fd, memory + 4096, 1) == -1 && errno == EFAULT && lseek(fd, 0, SEEK_CUR) == 4096);
}

// The same for a call that is large, with memory that is not there, or that may not be accessed in this way.
static void with_part_of_large_memory(void) {
  enum { bytes = 1 << 20, half = bytes / 2 };
  const int fd = make(0);
  char* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 'm', bytes);
  CHECK(write(fd, memory, bytes) == bytes);
  CHECK(mprotect(memory + half, half, PROT_READ) == 0);
  for (int i = 0; i < 3; ++i) {  // only for reading, for nothing, not there
    if (i == 1) CHECK(mprotect(memory + half, half, PROT_NONE) == 0);
    if (i == 2) CHECK(munmap(memory + half, half) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, memory, bytes) == half && lseek(fd, 0, SEEK_CUR) == half);
    CHECK(pread(fd, memory, bytes, 0) == half && memory[half - 1] == 'm');
    CHECK(pread(fd, memory + half, half, 0) == -1 && errno == EFAULT);
    CHECK(readv(fd, (struct iovec[]){{memory + half, half / 2}, {memory, half / 2}}, 2) == -1 && errno == EFAULT);
    if (i == 0) continue;
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && write(fd, memory, bytes) == half && lseek(fd, 0, SEEK_CUR) == half);
    CHECK(pwrite(fd, memory + half, half, 0) == -1 && errno == EFAULT);
  }
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_size == bytes);
}

// A program can use each descriptor that its limit allows.
static void with_few_descriptors(void) {
  const struct rlimit limit = {20, 20};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int fd = make(0);
  for (int next = fd + 1; next < 20; ++next) {
    CHECK(write(fd, "a", 1) == 1);
    const int one = next % 2 ? open(path, O_RDWR) : dup(fd);
    CHECK(one >= 0 && pwrite(one, "b", 1, 0) == 1);
  }
  CHECK(write(fd, "a", 1) == 1);
  CHECK(open(path, O_RDWR) == -1 && errno == EMFILE);
}

static volatile int written_on_stack;
static void writes_on_stack(int number) {
  (void)number;
  written_on_stack = (int)write(handled_fd, "h", 1);
}

// A handler has a small stack of its own.
static void on_small_stack(void) {
  enum { guard = 16384 };
  static char memory[guard + 8192];
  memset(memory, 'g', sizeof memory);
  const stack_t stack = {.ss_sp = memory + guard, .ss_size = sizeof memory - guard};
  CHECK(sigaltstack(&stack, NULL) == 0);
  struct sigaction action = {.sa_handler = writes_on_stack, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  handled_fd = make(0);
  raise(SIGUSR1);
  CHECK(written_on_stack == 1);
  for (int i = 0; i < guard; ++i) CHECK(memory[i] == 'g');
}

// A program that gives up its rights writes without them: the file loses its setuid bit.
static void without_rights(void) {
  const int fd = make(0);
  CHECK(write(fd, "a", 1) == 1 && fchmod(fd, 04755) == 0);
  if (geteuid() != 0) return;
  CHECK(seteuid(65534) == 0 && write(fd, "b", 1) == 1);
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_mode == (S_IFREG | 0755));
}

// What is stored to a mapping, and what calls read and write, is one file.
static void with_mappings(void) {
  const int fd = make(0);
  CHECK(ftruncate(fd, 8192) == 0 && write(fd, "file", 4) == 4);
  char* const memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED && memcmp(memory, "file", 4) == 0);
  memcpy(memory + 4096, "map", 3);
  CHECK(pread(fd, block, 3, 4096) == 3 && memcmp(block, "map", 3) == 0);
  CHECK(pwrite(fd, "call", 4, 100) == 4 && memcmp(memory + 100, "call", 4) == 0);
  CHECK(msync(memory, 8192, MS_SYNC) == 0 && munmap(memory, 8192) == 0);
  const int appending = open(path, O_RDWR | O_APPEND);
  char* const other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, appending, 0);
  CHECK(other != MAP_FAILED);
  memcpy(other + 50, "here", 4);
  CHECK(msync(other, 4096, MS_SYNC) == 0 && munmap(other, 4096) == 0);
  CHECK(pread(fd, block, 4, 50) == 4 && memcmp(block, "here", 4) == 0 && lseek(fd, 0, SEEK_END) == 8192);
  const char* const own = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(own != MAP_FAILED && memcmp(own, "file", 4) == 0);
}

// Names, attributes, holes, and directories.
static void with_names(void) {
  char other[600], third[600];
  struct stat about, second;
  snprintf(other, sizeof other, "%s-other", path);
  snprintf(third, sizeof third, "%s-third", path);
  const int fd = make(0);
  CHECK(link(path, other) == 0 && stat(other, &about) == 0 && about.st_nlink == 2 && fstat(fd, &second) == 0);
  CHECK(about.st_ino == second.st_ino && about.st_dev == second.st_dev);
  CHECK(write(fd, "text", 4) == 4 && stat(other, &about) == 0 && about.st_size == 4);
  CHECK(link(path, other) == -1 && errno == EEXIST);
  CHECK(rename(other, third) == 0 && stat(other, &about) == -1 && errno == ENOENT);
  CHECK(symlink("target", other) == 0 && readlink(other, block, sizeof block) == 6 && memcmp(block, "target", 6) == 0);
  CHECK(lstat(other, &about) == 0 && S_ISLNK(about.st_mode) && unlink(other) == 0);
  CHECK(syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, third, 1) == -1 && errno == EEXIST);
  const int exclusive = open(other, O_RDWR | O_CREAT | O_EXCL, 0640);
  CHECK(exclusive >= 0 && open(other, O_RDWR | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
  CHECK(pwrite(exclusive, "new", 3, 1 << 20) == 3 && lseek(exclusive, 0, SEEK_DATA) > 0);
  CHECK(syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, third, 2) == 0 && stat(third, &about) == 0);
  CHECK(about.st_size == (1 << 20) + 3 && (about.st_mode & 0777) == 0640);
  CHECK(truncate(third, 5) == 0 && fstat(exclusive, &about) == 0 && about.st_size == 5);
  CHECK(ftruncate(exclusive, 9) == 0 && chmod(third, 0600) == 0 && fstat(exclusive, &about) == 0);
  CHECK(about.st_size == 9 && (about.st_mode & 0777) == 0600);
  const struct timespec times[2] = {{1000, 5}, {2000, 7}};
  CHECK(utimensat(AT_FDCWD, third, times, 0) == 0 && stat(third, &about) == 0);
  CHECK(about.st_atim.tv_sec == 1000 && about.st_mtim.tv_sec == 2000 && about.st_mtim.tv_nsec == 7);
  CHECK(posix_fallocate(exclusive, 0, 4096) == 0 && fstat(exclusive, &about) == 0 && about.st_size == 4096);
  CHECK(open(third, O_WRONLY | O_TRUNC) >= 0 && fstat(exclusive, &about) == 0 && about.st_size == 0);
  CHECK(unlink(third) == 0 && fstat(exclusive, &about) == 0 && about.st_nlink == 0 && fchmod(exclusive, 0400) == 0);
  const bool has_attributes = setxattr(path, "user.hocket", "value", 5, 0) == 0;
  CHECK(has_attributes || errno == EOPNOTSUPP);
  CHECK(!has_attributes || (getxattr(path, "user.hocket", block, 9) == 5 && removexattr(path, "user.hocket") == 0 &&
                            getxattr(path, "user.hocket", block, 9) == -1 && errno == ENODATA));
  struct statvfs system;
  CHECK(statvfs(path, &system) == 0 && system.f_bsize > 0 && system.f_blocks > 0);
  CHECK(mkdir(third, 0750) == 0 && chdir(third) == 0);
  for (int i = 0; i < 500; ++i) {
    snprintf(block, sizeof block, "entry-%d-of-a-directory", i);
    CHECK(mkdir(block, 0700) == 0);
  }
  DIR* const directory = opendir(".");
  int seen = 0;
  while (readdir(directory)) ++seen;
  CHECK(seen == 502 && closedir(directory) == 0);
  CHECK(rmdir("..") == -1 && errno == ENOTEMPTY && rmdir("entry-7-of-a-directory") == 0);
  CHECK(mkfifo("fifo", 0600) == 0 && open("fifo", O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
}

// Two processes wait for each other's locks; the lock of one that has been killed is free.
static void with_record_locks(void) {
  const int fd = make(0);
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int ends[2];
  CHECK(fcntl(fd, F_SETLK, &whole) == 0 && pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    struct flock seen = whole;
    CHECK(fcntl(fd, F_GETLK, &seen) == 0 && seen.l_type == F_WRLCK && seen.l_pid == getppid());
    CHECK(fcntl(fd, F_SETLK, &whole) == -1 && (errno == EAGAIN || errno == EACCES));
    CHECK(write(ends[1], "", 1) == 1);
    CHECK(fcntl(fd, F_SETLKW, &whole) == 0 && write(fd, "child", 5) == 5);
    pause();
  }
  CHECK(read(ends[0], block, 1) == 1 && usleep(50000) == 0 && lseek(fd, 0, SEEK_END) == 0);
  const struct flock none = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(fd, F_SETLK, &none) == 0);
  while (lseek(fd, 0, SEEK_END) != 5) usleep(1000);
  CHECK(fcntl(fd, F_SETLK, &whole) == -1);
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  // The child may have been killed before it counted its write.
  CHECK(fcntl(fd, F_SETLKW, &whole) == 0 && pwrite(fd, "parent", 6, 5) == 6);
  // Closing any descriptor of a file gives up the locks of the process, but not those of a description.
  const struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  CHECK(close(open(path, O_RDWR)) == 0 && fcntl(fd, F_OFD_SETLK, &first) == 0);
  CHECK(close(open(path, O_RDWR)) == 0);
  const int other = open(path, O_RDWR);
  CHECK(fcntl(other, F_OFD_SETLK, &first) == -1 && errno == EAGAIN && close(fd) == 0);
  CHECK(fcntl(other, F_OFD_SETLKW, &first) == 0);
}

// ---- calls that the server makes before it is killed (test_forward.py): each is made once
// ------------------------------

static bool is_result(ssize_t result, ssize_t wanted) { return result == wanted || (result == -1 && errno == EIO); }

static void appending_at_offset(void) {
  const int fd = make(O_APPEND);
  CHECK(is_result(pwrite(fd, "once", 4, 0), 4));
  CHECK(lseek(fd, 0, SEEK_END) == 4);
}

static void appending_by_flag(void) {
  const int fd = make(0);
  CHECK(is_result(pwritev2(fd, &(struct iovec){"once", 4}, 1, 0, RWF_APPEND), 4));
  CHECK(lseek(fd, 0, SEEK_END) == 4);
}

static void appending_before_offset(void) {
  const int fd = make(O_APPEND);
  CHECK(lseek(fd, 4, SEEK_SET) == 4);
  CHECK(is_result(write(fd, "once", 4), 4));
  CHECK(lseek(fd, 0, SEEK_END) == 4);
}

static void copying_from_offset(void) {
  const int from = make(0), fd = open(".", O_TMPFILE | O_RDWR, 0600);
  CHECK(ftruncate(from, 8) == 0 && fd >= 0);
  loff_t at = 0;
  const ssize_t result = copy_file_range(from, NULL, fd, &at, 4, 0);
  CHECK(is_result(result, 4) && lseek(from, 0, SEEK_CUR) == 4);
}

static void* writes_slowly(void* fd) {
  CHECK(is_result(pwrite((int)(intptr_t)fd, "slow", 4, 0), 4));
  return NULL;
}

// A program that uses our descriptors for something else, while a call takes longer than any server may be silent.
static void closing_meanwhile(void) {
  const int fd = make(0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, writes_slowly, (void*)(intptr_t)fd) == 0);
  sleep(2);
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (int i = ends[1] + 1; i < 1024; ++i) CHECK(dup2(ends[0], i) == i || errno == EBADF);
  CHECK(pthread_join(thread, NULL) == 0);
}

static const struct {
  const char* name;
  void (*run)(void);
} corners[] = {
    {"errors", with_errors},
    {"offsets", with_offsets},
    {"no-name", without_name},
    {"locks", with_locks},
    {"close-all", closing_all},
    {"children", with_children},
    {"handlers", with_handlers},
    {"cancel", with_cancelling},
    {"cancel-pipe", cancelled_in_pipe},
    {"limit", with_limit},
    {"threads", with_threads},
    {"fork", forking_meanwhile},
    {"many", with_many},
    {"direct", with_direct},
    {"large", with_large},
    {"jump", with_jumps},
    {"seccomp", with_few_calls},
    {"part", with_part_of_memory},
    {"part-large", with_part_of_large_memory},
    {"limited", with_few_descriptors},
    {"rights", without_rights},
    {"stack", on_small_stack},
    {"mapped", with_mappings},
    {"names", with_names},
    {"record-locks", with_record_locks},
    {"append-at", appending_at_offset},
    {"append-flag", appending_by_flag},
    {"append-before", appending_before_offset},
    {"copy-from", copying_from_offset},
    {"close-slow", closing_meanwhile},
};

int main(int count, char** words) {
  if (count != 3) return 2;
  path = words[2];
  for (size_t i = 0; i < sizeof corners / sizeof *corners; ++i) {
    if (strcmp(corners[i].name, words[1]) != 0) continue;
    corners[i].run();
    return 0;
  }
  return 2;
}
