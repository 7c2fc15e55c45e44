// forward_probe write CLIENTS BLOCK BLOCKS DIRECT SYNC DIRECTORY: each of CLIENTS processes writes BLOCKS blocks of
// BLOCK bytes into a new file of its own, with O_DIRECT or a final fsync if these are 1. It prints the seconds from the
// common start to the last end.
//
// forward_probe null CALLS DIRECTORY: prints the nanoseconds of one write of a byte to /dev/null.
// forward_probe open CALLS DIRECTORY: prints the nanoseconds of opening and closing a file of the directory.
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

static double write_all(int clients, size_t block, long blocks, int direct, int sync, const char* directory) {
  int start[2];
  char path[4096];
  need(pipe(start) == 0, "pipe");
  for (int i = 0; i < clients; ++i) {
    snprintf(path, sizeof path, "%s/probe-%d", directory, i);
    unlink(path);
    const pid_t child = fork();
    need(child >= 0, "fork");
    if (child > 0) continue;
    close(start[1]);
    char byte;
    need(read(start[0], &byte, 1) == 0, "start");
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

int main(int count, char** words) {
  if (count == 8 && strcmp(words[1], "write") == 0)
    printf("%.9f\n", write_all(atoi(words[2]), strtoul(words[3], NULL, 10), atol(words[4]), atoi(words[5]),
                               atoi(words[6]), words[7]));
  else if (count == 4 && strcmp(words[1], "null") == 0)
    printf("%.3f\n", null_ns(atol(words[2])));
  else if (count == 4 && strcmp(words[1], "open") == 0)
    printf("%.3f\n", open_ns(atol(words[2]), words[3]));
  else
    return 2;
  return 0;
}
