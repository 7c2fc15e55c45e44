// forward_probe write CLIENTS BLOCK BLOCKS DIRECT SYNC DIRECTORY: each of CLIENTS processes writes BLOCKS blocks of
// BLOCK bytes into a new file of its own, with O_DIRECT or a final fsync if these are 1. It prints the seconds from the
// common start to the last end.
//
// forward_probe strided CLIENTS BLOCK BLOCKS DIRECT SYNC DIRECTORY: the same into one file, in which the blocks of the
// clients take turns, by pwrite. SYNC opens it with O_DSYNC.
//
// forward_probe share CLIENTS BLOCK BEGIN END DIRECTORY: each of CLIENTS processes writes blocks into a file of its own
// until END, again and again into its first 4 MiB. It prints the bytes that were written between BEGIN and END, seconds
// of CLOCK_MONOTONIC.
//
// forward_probe null CALLS DIRECTORY: prints the nanoseconds of one write of a byte to /dev/null.
// forward_probe open CALLS DIRECTORY: prints the nanoseconds of opening and closing a file of the directory.
// forward_probe first CALLS FILE DIRECTORY: prints the nanoseconds of the first read of a byte after an open of FILE.
// forward_probe reopen CALLS FILE DIRECTORY: prints the nanoseconds of opening it, reading a byte, and closing it.
// CALLS is a multiple of 100, and neither uses the directory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void need(int condition, const char* what) {
  if (condition) return;
  perror(what);
  exit(1);
}

static void write_file(const char* path, size_t block, long blocks, int direct, int sync) {
  char* const data = aligned_alloc(4096, block < 4096 ? 4096 : block);
  memset(data, 7, block);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | (direct ? O_DIRECT : 0), 0600);
  need(fd >= 0, path);
  for (long i = 0; i < blocks; ++i) need(write(fd, data, block) == (ssize_t)block, "write");
  if (sync) need(fsync(fd) == 0, "fsync");
  need(close(fd) == 0, "close");
}

static void write_strided(const char* path, size_t block, long blocks, int direct, int sync, int client, int clients) {
  char* const data = aligned_alloc(4096, block < 4096 ? 4096 : block);
  memset(data, 'a' + client % 26, block);
  const int fd = open(path, O_WRONLY | O_CREAT | (direct ? O_DIRECT : 0) | (sync ? O_DSYNC : 0), 0600);
  need(fd >= 0, path);
  for (long i = 0; i < blocks; ++i)
    need(pwrite(fd, data, block, (off_t)block * (i * clients + client)) == (ssize_t)block, "pwrite");
  need(close(fd) == 0, "close");
}

static double write_all(int strided, int clients, size_t block, long blocks, int direct, int sync,
                        const char* directory) {
  int start[2];
  char path[4096];
  need(pipe(start) == 0, "pipe");
  for (int i = 0; i < clients; ++i) {
    snprintf(path, sizeof path, "%s/probe-%d", directory, strided ? 0 : i);
    if (!strided || i == 0) unlink(path);
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child > 0) continue;
    close(start[1]);
    char byte;
    need(read(start[0], &byte, 1) == 0, "start");
    if (strided)
      write_strided(path, block, blocks, direct, sync, i, clients);
    else
      write_file(path, block, blocks, direct, sync);
    _exit(0);
  }
  close(start[0]);
  const double began = now_s();
  close(start[1]);
  for (int i = 0; i < clients; ++i) {
    int status;
    need(wait(&status) > 0 && status == 0, "client");
  }
  return now_s() - began;
}

// Writes until `end_s`, and adds up what it wrote since `begin_s`.
static void write_share(const char* path, size_t block, double begin_s, double end_s, _Atomic long* bytes) {
  enum { used_bytes = 4 << 20 };
  char* const data = aligned_alloc(4096, block < 4096 ? 4096 : block);
  memset(data, 7, block);
  const int fd = open(path, O_WRONLY | O_CREAT, 0600);
  need(fd >= 0, path);
  for (size_t at = 0; now_s() < end_s; at = (at + block) % used_bytes) {
    need(pwrite(fd, data, block, (off_t)at) == (ssize_t)block, "pwrite");
    const double now = now_s();
    if (now >= begin_s && now < end_s) *bytes += (long)block;
  }
}

static long share_bytes(int clients, size_t block, double begin_s, double end_s, const char* directory) {
  _Atomic long* const bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  need(bytes != MAP_FAILED, "mmap");
  for (int i = 0; i < clients; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/share-%d-%d", directory, (int)getpid(), i);
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child > 0) continue;
    write_share(path, block, begin_s, end_s, bytes);
    unlink(path);
    _exit(0);
  }
  for (int i = 0; i < clients; ++i) {
    int status;
    need(wait(&status) > 0 && status == 0, "client");
  }
  return *bytes;
}

static double null_ns(long calls) {
  const int fd = open("/dev/null", O_WRONLY);
  const double began = now_s();
  for (long i = 0; i < calls; ++i) need(write(fd, "", 1) == 1, "write");
  return (now_s() - began) / (double)calls * 1e9;
}

static double open_ns(long calls, const char* directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/probe-open", directory);
  const double began = now_s();
  for (long i = 0; i < calls; ++i) {
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    need(fd >= 0 && close(fd) == 0, path);
  }
  return (now_s() - began) / (double)calls * 1e9;
}

enum { at_a_time = 100 };

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

// Measures calls on descriptors of a file, `at_a_time` in a row: all three calls, or only the read. Returns the median
// in nanoseconds for one, because other programs may interrupt some of them.
static double reopen_ns(long calls, const char* path, int is_read_alone) {
  const long samples = calls / at_a_time;
  double* const took_s = calloc((size_t)samples, sizeof *took_s);
  int opened[at_a_time];
  char byte;
  for (long sample = 0; sample < samples; ++sample) {
    double began = now_s();
    for (int i = 0; i < at_a_time; ++i) need((opened[i] = open(path, O_RDONLY)) >= 0, path);
    if (is_read_alone) began = now_s();
    for (int i = 0; i < at_a_time; ++i) need(read(opened[i], &byte, 1) == 1, "read");
    if (is_read_alone) took_s[sample] = now_s() - began;
    for (int i = 0; i < at_a_time; ++i) need(close(opened[i]) == 0, "close");
    if (!is_read_alone) took_s[sample] = now_s() - began;
  }
  qsort(took_s, (size_t)samples, sizeof *took_s, compare);
  return took_s[samples / 2] / at_a_time * 1e9;
}

int main(int count, char** words) {
  const int strided = count == 8 && strcmp(words[1], "strided") == 0;
  if (strided || (count == 8 && strcmp(words[1], "write") == 0))
    printf("%.9f\n", write_all(strided, atoi(words[2]), strtoul(words[3], NULL, 10), atol(words[4]), atoi(words[5]),
                               atoi(words[6]), words[7]));
  else if (count == 7 && strcmp(words[1], "share") == 0)
    printf("%ld\n", share_bytes(atoi(words[2]), strtoul(words[3], NULL, 10), atof(words[4]), atof(words[5]), words[6]));
  else if (count == 4 && strcmp(words[1], "null") == 0)
    printf("%.3f\n", null_ns(atol(words[2])));
  else if (count == 4 && strcmp(words[1], "open") == 0)
    printf("%.3f\n", open_ns(atol(words[2]), words[3]));
  else if (count == 5 && strcmp(words[1], "first") == 0)
    printf("%.3f\n", reopen_ns(atol(words[2]), words[3], 1));
  else if (count == 5 && strcmp(words[1], "reopen") == 0)
    printf("%.3f\n", reopen_ns(atol(words[2]), words[3], 0));
  else
    return 2;
  return 0;
}
