// hocket-replay: makes the accesses of one pattern and prints their bytes and makespan as JSON (what FORGE does;
// GekkoFWD, section 2). It knows nothing of hocket, so that the same program is measured with and without I/O servers.
//
//   hocket-replay PROCESSES LAYOUT REQUEST TOTAL SECONDS OPERATION DIRECT DIRECTORY
//
// LAYOUT: own (a file for each process), contiguous (one file, a part for each process), strided (one file, in which
// the requests of all processes alternate). REQUEST and TOTAL are bytes; TOTAL is of all processes. After SECONDS, if
// that is not 0, the processes stop. OPERATION: write or read; what is read is written before the measured time.
// DIRECT: 1 for O_DIRECT. The files are below DIRECTORY, and are removed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum layout { own, contiguous, strided };

struct pattern {
  int processes;
  enum layout layout;
  size_t request;
  int64_t requests;  // of each process
  double seconds;    // 0: without limit
  bool reads;
  bool direct;
  const char* directory;
};

// What all processes share.
struct common {
  pthread_barrier_t ready;
  double began_s;
  double ended_s[];  // of each process; behind them the bytes that each has moved
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void need(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "hocket-replay: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void path_of(const struct pattern* pattern, int process, char* path, size_t room) {
  snprintf(path, room, "%s/replay-%d", pattern->directory, pattern->layout == own ? process : 0);
}

static off_t offset_of(const struct pattern* pattern, int process, int64_t i) {
  const int64_t bytes = (int64_t)pattern->request;
  if (pattern->layout == own) return i * bytes;
  if (pattern->layout == contiguous) return (process * pattern->requests + i) * bytes;
  return (i * pattern->processes + process) * bytes;
}

// Makes the process's requests, and returns the bytes that it has moved.
static int64_t access_all(const struct pattern* pattern, int process, bool reads, double deadline_s, char* data) {
  char path[4096];
  path_of(pattern, process, path, sizeof path);
  const int fd = open(path, O_RDWR | O_CREAT | (pattern->direct ? O_DIRECT : 0), 0600);
  need(fd >= 0, path);
  int64_t moved = 0;
  for (int64_t i = 0; i < pattern->requests && (deadline_s == 0 || now_s() < deadline_s); ++i) {
    const off_t at = offset_of(pattern, process, i);
    const ssize_t bytes = reads ? pread(fd, data, pattern->request, at) : pwrite(fd, data, pattern->request, at);
    need(bytes == (ssize_t)pattern->request, reads ? "read" : "write");
    moved += bytes;
  }
  need(close(fd) == 0, "close");
  return moved;
}

static void replay(const struct pattern* pattern, int process, struct common* common) {
  const size_t page = 4096, room = (pattern->request + page - 1) / page * page;
  char* const data = aligned_alloc(page, room);
  need(data != NULL, "memory");
  memset(data, 'a' + process % 26, room);
  if (pattern->reads) access_all(pattern, process, false, 0, data);
  pthread_barrier_wait(&common->ready);
  if (process == 0) common->began_s = now_s();
  pthread_barrier_wait(&common->ready);
  const double deadline_s = pattern->seconds > 0 ? common->began_s + pattern->seconds : 0;
  const int64_t moved = access_all(pattern, process, pattern->reads, deadline_s, data);
  common->ended_s[process] = now_s();
  common->ended_s[pattern->processes + process] = (double)moved;
}

static void run(const struct pattern* pattern) {
  const size_t bytes = sizeof(struct common) + 2 * (size_t)pattern->processes * sizeof(double);
  struct common* const common = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  need(common != MAP_FAILED, "memory");
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&common->ready, &shared, (unsigned)pattern->processes);
  pid_t* const children = calloc((size_t)pattern->processes, sizeof *children);
  need(children != NULL, "memory");
  for (int process = 0; process < pattern->processes; ++process) {
    children[process] = fork();
    need(children[process] >= 0, "fork");
    if (children[process] > 0) continue;
    replay(pattern, process, common);
    _exit(0);
  }
  bool well = true;
  for (int process = 0; process < pattern->processes; ++process) {
    int status = 0;
    need(wait(&status) > 0, "wait");
    well = well && status == 0;
    if (!well) break;  // the others wait for it at the barrier
  }
  double ended_s = 0, moved = 0;
  for (int process = 0; process < pattern->processes; ++process) {
    char path[4096];
    path_of(pattern, process, path, sizeof path);
    unlink(path);
    if (common->ended_s[process] > ended_s) ended_s = common->ended_s[process];
    moved += common->ended_s[pattern->processes + process];
  }
  if (!well) {
    for (int process = 0; process < pattern->processes; ++process) kill(children[process], SIGTERM);
    exit(1);
  }
  printf("{\"bytes\": %.0f, \"seconds\": %.9f}\n", moved, ended_s - common->began_s);
}

int main(int count, char** words) {
  if (count != 9) {
    fprintf(stderr, "usage: hocket-replay PROCESSES LAYOUT REQUEST TOTAL SECONDS OPERATION DIRECT DIRECTORY\n");
    return 2;
  }
  struct pattern pattern = {
      .processes = atoi(words[1]),
      .layout = strcmp(words[2], "own") == 0       ? own
                : strcmp(words[2], "strided") == 0 ? strided
                                                   : contiguous,
      .request = strtoull(words[3], NULL, 10),
      .seconds = strtod(words[5], NULL),
      .reads = strcmp(words[6], "read") == 0,
      .direct = atoi(words[7]) != 0,
      .directory = words[8],
  };
  if (pattern.processes < 1 || pattern.request < 1) return 2;
  const int64_t each = (int64_t)pattern.request * pattern.processes;
  pattern.requests = (strtoll(words[4], NULL, 10) + each - 1) / each;
  run(&pattern);
  return 0;
}
