// hocket-replay: makes the accesses of one pattern and prints their bytes and makespan as JSON (what FORGE does;
// GekkoFWD, section 2). It knows nothing of hocket, so that the same program is measured with and without I/O servers.
//
//   hocket-replay PROCESSES DIRECTORY PHASE…
//
// A phase is a list such as "layout=own,request=1048576,total=67108864,operation=write". Its keys:
//
//   layout         own (a file for each process), contiguous (one file, a part for each process), strided (one file, in
//                  which the requests of all processes alternate)
//   request, total bytes; `total` is of all processes in one round
//   operation      write or read; data that no earlier phase has written are written before the measured time
//   direct         O_DIRECT
//   seconds        the phase makes no request after that time
//   active         that many processes take part, the others wait
//   rounds         each continues behind the one before; with new_file, each writes a file of its own
//   pause          seconds for which all processes compute before each round; here they sleep
//   request_pause  seconds for which a process computes before each of its requests
//
// All processes begin a round together. The files are below DIRECTORY, and are removed.
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
enum { most_phases = 64 };

struct phase {
  int number;  // its place among the phases
  enum layout layout;
  size_t request;
  int64_t requests;  // of each process in each round
  int active;
  int rounds;
  double seconds;  // 0: without limit
  double pause_s, request_pause_s;
  bool reads, direct, new_file;
  bool prepared;  // what it reads is written before the measured time
};

struct replay {
  int processes;
  const char* directory;
  int count;
  struct phase phases[most_phases];
};

// What all processes share.
struct common {
  pthread_barrier_t together;
  double began_s;
  double ended_s[];  // of each process; behind them the bytes that each has moved
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Computes for some time, but not beyond a deadline; 0: there is none.
static void pause_for(double seconds, double deadline_s) {
  if (seconds <= 0) return;
  double until_s = now_s() + seconds;
  if (deadline_s > 0 && deadline_s < until_s) until_s = deadline_s;
  const struct timespec until = {(time_t)until_s, (long)((until_s - (double)(time_t)until_s) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

static void need(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "hocket-replay: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void path_of(const struct replay* replay, const struct phase* phase, int process, int round, char* path,
                    size_t room) {
  const int owner = phase->layout == own ? process : -1;
  if (phase->new_file)
    snprintf(path, room, "%s/replay-%d-%d-%d", replay->directory, phase->number, round, owner + 1);
  else if (owner >= 0)
    snprintf(path, room, "%s/replay-own-%d", replay->directory, owner);
  else
    snprintf(path, room, "%s/replay-shared", replay->directory);
}

static off_t offset_of(const struct phase* phase, int process, int round, int64_t i) {
  const int64_t bytes = (int64_t)phase->request, before = phase->new_file ? 0 : round;
  if (phase->layout == own) return (before * phase->requests + i) * bytes;
  const int64_t begin = before * phase->requests * phase->active;
  if (phase->layout == contiguous) return (begin + process * phase->requests + i) * bytes;
  return (begin + i * phase->active + process) * bytes;
}

// Makes the requests of one process in one round, and returns the bytes that it has moved.
static int64_t access_round(const struct replay* replay, const struct phase* phase, int process, int round, bool reads,
                            double deadline_s, char* data) {
  char path[4096];
  path_of(replay, phase, process, round, path, sizeof path);
  const int fd = open(path, O_RDWR | O_CREAT | (phase->direct ? O_DIRECT : 0), 0600);
  need(fd >= 0, path);
  int64_t moved = 0;
  for (int64_t i = 0; i < phase->requests && (deadline_s == 0 || now_s() < deadline_s); ++i) {
    pause_for(phase->request_pause_s, deadline_s);
    const off_t at = offset_of(phase, process, round, i);
    const ssize_t bytes = reads ? pread(fd, data, phase->request, at) : pwrite(fd, data, phase->request, at);
    need(bytes == (ssize_t)phase->request, reads ? "read" : "write");
    moved += bytes;
  }
  need(close(fd) == 0, "close");
  return moved;
}

// Writes what the process will read, without pauses.
static void prepare(const struct replay* replay, const struct phase* phase, int process, char* data) {
  if (!phase->prepared || process >= phase->active) return;
  struct phase writing = *phase;
  writing.request_pause_s = 0;
  for (int round = 0; round < phase->rounds; ++round) access_round(replay, &writing, process, round, false, 0, data);
}

static int64_t run_phase(const struct replay* replay, const struct phase* phase, int process, struct common* common,
                         char* data) {
  pthread_barrier_wait(&common->together);
  const double deadline_s = phase->seconds > 0 ? now_s() + phase->seconds : 0;
  int64_t moved = 0;
  for (int round = 0; round < phase->rounds; ++round) {
    pause_for(phase->pause_s, deadline_s);
    if (process < phase->active) moved += access_round(replay, phase, process, round, phase->reads, deadline_s, data);
    if (round + 1 < phase->rounds) pthread_barrier_wait(&common->together);
  }
  return moved;
}

static void run_process(const struct replay* replay, int process, struct common* common) {
  size_t room = 4096;
  for (int i = 0; i < replay->count; ++i)
    if (replay->phases[i].request > room) room = (replay->phases[i].request + 4095) / 4096 * 4096;
  char* const data = aligned_alloc(4096, room);
  need(data != NULL, "memory");
  memset(data, 'a' + process % 26, room);
  for (int i = 0; i < replay->count; ++i) prepare(replay, &replay->phases[i], process, data);
  pthread_barrier_wait(&common->together);
  if (process == 0) common->began_s = now_s();
  int64_t moved = 0;
  for (int i = 0; i < replay->count; ++i) moved += run_phase(replay, &replay->phases[i], process, common, data);
  common->ended_s[process] = now_s();
  common->ended_s[replay->processes + process] = (double)moved;
}

static struct common* make_common(int processes) {
  const size_t bytes = sizeof(struct common) + 2 * (size_t)processes * sizeof(double);
  struct common* const common = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  need(common != MAP_FAILED, "memory");
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&common->together, &shared, (unsigned)processes);
  return common;
}

static void remove_files(const struct replay* replay) {
  for (int i = 0; i < replay->count; ++i) {
    const struct phase* const phase = &replay->phases[i];
    const int files = phase->layout == own ? phase->active : 1, rounds = phase->new_file ? phase->rounds : 1;
    for (int file = 0; file < files * rounds; ++file) {
      char path[4096];
      path_of(replay, phase, file % files, file / files, path, sizeof path);
      unlink(path);
    }
  }
}

// Runs all processes. Returns false if one of them failed; then none is left.
static bool run_all(const struct replay* replay, struct common* common) {
  pid_t* const children = calloc((size_t)replay->processes, sizeof *children);
  need(children != NULL, "memory");
  for (int process = 0; process < replay->processes; ++process) {
    children[process] = fork();
    need(children[process] >= 0, "fork");
    if (children[process] > 0) continue;
    run_process(replay, process, common);
    _exit(0);
  }
  bool well = true;
  for (int left = replay->processes; left > 0; --left) {
    int status = 0;
    need(wait(&status) > 0, "wait");
    if (well && status != 0)  // the others would wait for it at the barrier
      for (int process = 0; process < replay->processes; ++process) kill(children[process], SIGKILL);
    well = well && status == 0;
  }
  free(children);
  return well;
}

static void print_result(const struct replay* replay, const struct common* common) {
  double ended_s = 0, moved = 0;
  for (int process = 0; process < replay->processes; ++process) {
    if (common->ended_s[process] > ended_s) ended_s = common->ended_s[process];
    moved += common->ended_s[replay->processes + process];
  }
  printf("{\"bytes\": %.0f, \"seconds\": %.9f}\n", moved, ended_s - common->began_s);
}

// Returns the bytes of each file that the phase reaches: of the shared file, or of each process's own.
static int64_t reach(const struct phase* phase) {
  const int64_t each = phase->requests * (int64_t)phase->request * phase->rounds;
  return phase->layout == own ? each : each * phase->active;
}

// Finds the phases that read more than earlier ones have written.
static void find_prepared(struct replay* replay) {
  for (int i = 0; i < replay->count; ++i) {
    struct phase* const phase = &replay->phases[i];
    phase->prepared = phase->reads;
    for (int j = 0; j < i && phase->prepared; ++j) {
      const struct phase* const earlier = &replay->phases[j];
      const bool same = (earlier->layout == own) == (phase->layout == own) && !earlier->new_file;
      const bool all = phase->layout != own || earlier->active >= phase->active;
      // A time limit may have ended the earlier phase before it had written all.
      if (same && all && reach(earlier) >= reach(phase) && (earlier->seconds <= 0 || earlier->prepared))
        phase->prepared = false;
    }
  }
}

// Reads one phase. Returns false if it cannot be read.
static bool read_phase(char* words, int processes, struct phase* phase) {
  enum { layout, request, total, operation, direct, seconds, active, rounds, pause, request_pause, new_file };
  static char* const keys[] = {"layout", "request", "total", "operation",     "direct",   "seconds",
                               "active", "rounds",  "pause", "request_pause", "new_file", NULL};
  int64_t bytes = 0;
  phase->active = processes;
  phase->rounds = 1;
  while (*words != '\0') {
    char* value = NULL;
    const int key = getsubopt(&words, keys, &value);
    if (key < 0 || value == NULL) return false;
    if (key == layout)
      phase->layout = strcmp(value, "own") == 0 ? own : strcmp(value, "strided") == 0 ? strided : contiguous;
    if (key == request) phase->request = strtoull(value, NULL, 10);
    if (key == total) bytes = strtoll(value, NULL, 10);
    if (key == operation) phase->reads = strcmp(value, "read") == 0;
    if (key == direct) phase->direct = atoi(value) != 0;
    if (key == seconds) phase->seconds = strtod(value, NULL);
    if (key == active) phase->active = atoi(value);
    if (key == rounds) phase->rounds = atoi(value);
    if (key == pause) phase->pause_s = strtod(value, NULL);
    if (key == request_pause) phase->request_pause_s = strtod(value, NULL);
    if (key == new_file) phase->new_file = atoi(value) != 0;
  }
  if (phase->request < 1 || phase->active < 1 || phase->active > processes || phase->rounds < 1) return false;
  const int64_t each = (int64_t)phase->request * phase->active;
  phase->requests = (bytes + each - 1) / each;
  return true;
}

int main(int count, char** words) {
  struct replay replay = {.processes = count > 1 ? atoi(words[1]) : 0, .count = count - 3};
  if (replay.processes < 1 || replay.count < 1 || replay.count > most_phases) {
    fprintf(stderr, "usage: hocket-replay PROCESSES DIRECTORY PHASE…\n");
    return 2;
  }
  replay.directory = words[2];
  for (int i = 0; i < replay.count; ++i) {
    replay.phases[i].number = i;
    if (read_phase(words[3 + i], replay.processes, &replay.phases[i])) continue;
    fprintf(stderr, "hocket-replay: phase %d cannot be read\n", i + 1);
    return 2;
  }
  find_prepared(&replay);
  struct common* const common = make_common(replay.processes);
  const bool well = run_all(&replay, common);
  remove_files(&replay);
  if (well) print_result(&replay, common);
  return well ? 0 : 1;
}
