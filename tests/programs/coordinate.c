// coordinate ACTION…: executes its arguments in order, in all ranks, with the calls of hocket/io.h.
//
//   prepare=KEY=VALUE,…   complete
//   inform inform=self wait release
//   check            rank 0 prints "check N"
//   until=N          rank 0 calls hocket_io_check until it returns N, for 20 s at most, and prints "became N"; then all
//                    ranks continue
//   stopping=PATH    writes blocks of 64 KiB, each rank one, with hocket_io_wait before each write, until the file PATH
//                    exists
//   open=PATH write=BYTES alone=BYTES close   as in script.c
//   time=N           rank 0 prints the mean time in ns of N calls of hocket_io_check
//   pause=SECONDS mark=PATH await=PATH        as in script.c
//   RANK:ACTION      only this rank executes the action
//
// Rank 0 prints "NAME: CODE" if a call returns another code than HOCKET_OK.
#include <fcntl.h>
#include <hocket/io.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static MPI_File file;
static MPI_Offset written;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_for(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void expect(const char* name, int code) {
  if (code != HOCKET_OK && rank == 0) printf("%s: %d\n", name, code);
  fflush(stdout);
}

static void prepare(char* pairs) {
  MPI_Info info;
  MPI_Info_create(&info);
  for (char* pair = strtok(pairs, ","); pair; pair = strtok(NULL, ",")) {
    char* value = strchr(pair, '=');
    *value++ = '\0';
    MPI_Info_set(info, pair, value);
  }
  expect("prepare", hocket_io_prepare(info));
  MPI_Info_free(&info);
}

static void until(int wanted) {
  int authorized = -1;
  const double end = now() + 20;
  while (rank == 0 && authorized != wanted && now() < end) {
    hocket_io_check(&authorized);
    sleep_for(0.0005);
  }
  if (rank == 0) printf(authorized == wanted ? "became %d\n" : "did not become %d\n", wanted);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_block(int bytes, int collective) {
  char* block = malloc((size_t)bytes);
  memset(block, 'A' + rank, (size_t)bytes);
  const MPI_Offset at = written + (MPI_Offset)rank * bytes;
  int rc = collective ? MPI_File_write_at_all(file, at, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                      : MPI_File_write_at(file, at, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rc != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  written += (MPI_Offset)size * bytes;
  free(block);
}

static void write_until(const char* path) {
  int there = 0;
  while (!there) {
    expect("wait", hocket_io_wait());
    write_block(65536, 1);
    if (rank == 0) there = access(path, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    sleep_for(0.002);
  }
}

static void measure(long calls) {
  int authorized;
  const double start = now();
  for (long i = 0; i < calls; ++i) hocket_io_check(&authorized);
  if (rank == 0) printf("%.1f ns\n", (now() - start) / (double)calls * 1e9);
}

static void mark(const char* path) {
  if (rank != 0) return;
  const int fd = open(path, O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
}

static void await_file(const char* path) {
  while (rank == 0 && access(path, F_OK) != 0) sleep_for(0.002);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void call(const char* action, char* value) {
  if (!strcmp(action, "prepare")) prepare(value);
  if (!strcmp(action, "complete")) expect(action, hocket_io_complete());
  if (!strcmp(action, "inform")) expect(action, hocket_io_inform(value ? MPI_COMM_SELF : MPI_COMM_WORLD));
  if (!strcmp(action, "wait")) expect(action, hocket_io_wait());
  if (!strcmp(action, "release")) expect(action, hocket_io_release());
  if (!strcmp(action, "check")) {
    int authorized = -1;
    expect(action, hocket_io_check(&authorized));
    if (rank == 0) printf("check %d\n", authorized);
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  const int early = argc > 1 && !strcmp(argv[1], "early") ? hocket_io_inform(MPI_COMM_WORLD) : HOCKET_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  expect("early", early);
  for (int i = 1; i < argc; ++i) {
    char* action = argv[i];
    char* alone = strchr(action, ':');
    if (alone && alone - action == 1) {
      if (atoi(action) != rank) continue;
      action = alone + 1;
    }
    char* value = strchr(action, '=');
    if (value) *value++ = '\0';
    call(action, value);
    if (!strcmp(action, "until")) until(atoi(value));
    if (!strcmp(action, "stopping")) write_until(value);
    if (!strcmp(action, "open") &&
        MPI_File_open(MPI_COMM_WORLD, value, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
      return 3;
    if (!strcmp(action, "write") || !strcmp(action, "alone")) write_block(atoi(value), *action == 'w');
    if (!strcmp(action, "close")) MPI_File_close(&file);
    if (!strcmp(action, "time")) measure(atol(value));
    if (!strcmp(action, "pause")) sleep_for(atof(value));
    if (!strcmp(action, "mark")) mark(value);
    if (!strcmp(action, "await")) await_file(value);
  }
  MPI_Finalize();
  return 0;
}
