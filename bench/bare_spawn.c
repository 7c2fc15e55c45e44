// bare_spawn one|all SOURCES TARGETS CYCLES: measures growing and shrinking with nothing but the MPI calls.
//
// The program grows from one process to SOURCES, and then CYCLES times to TARGETS and back. Rank 0 prints a line for
// each of these steps:
//   grow|shrink FROM TO SECONDS
//   one   Each new process has a world of its own: MPI_Comm_spawn of one and MPI_Intercomm_merge, one after the
//         other, by all processes that are there. Each process can leave alone later. hocket does so with
//         HOCKET_SPAWN_STRATEGY=plain.
//   all   One MPI_Comm_spawn of all new processes and one MPI_Intercomm_merge. They can only leave together.
// Rank 0 measures from the decision, which it broadcasts, to the end of a barrier of all processes that are there
// afterwards. Start the program with mpiexec -n 1.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The first argument, "one" or "all", and the path of this executable, which is spawned.
static const char* mode;
static char program[4096];

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int size_of(MPI_Comm all) {
  int size;
  MPI_Comm_size(all, &size);
  return size;
}

// Merges an intercommunicator, new processes last. Frees the intercommunicator.
static MPI_Comm merged(MPI_Comm between, int new_process) {
  MPI_Comm all;
  MPI_Intercomm_merge(between, new_process, &all);
  MPI_Comm_disconnect(&between);
  return all;
}

// Merges two groups that meet in `met`, where the leader of the other side has the rank `remote`.
static MPI_Comm bound(MPI_Comm own, MPI_Comm met, int remote, int new_process) {
  MPI_Comm between, all;
  MPI_Intercomm_create(own, 0, met, remote, 1, &between);
  MPI_Intercomm_merge(between, new_process, &all);
  MPI_Comm_free(&between);
  return all;
}

// Adds the new processes from number `next` on. Collective over `all`, which is replaced. `met` holds the
// communicators of the sources with each new process; new processes pass NULL.
static MPI_Comm with_rest(MPI_Comm all, int next, int count, MPI_Comm* met, int sources) {
  for (int i = next; i < count; ++i) {
    MPI_Comm before = all;
    all = bound(before, met ? met[i] : MPI_COMM_NULL, sources, 0);
    MPI_Comm_free(&before);
    if (met) MPI_Comm_free(&met[i]);
  }
  return all;
}

// Spawns `count` processes in one world and merges them with the sources.
static MPI_Comm spawned(MPI_Comm sources, int count) {
  char* arguments[] = {(char*)mode, "joins", NULL};
  MPI_Comm between;
  MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, sources, &between, MPI_ERRCODES_IGNORE);
  return merged(between, 0);
}

// The sources' side of growing. Collective over `sources`, which is freed unless it is MPI_COMM_WORLD.
static MPI_Comm grown(MPI_Comm sources, int targets) {
  const int size = size_of(sources), worlds = strcmp(mode, "one") ? 1 : targets - size;
  MPI_Comm* met = calloc((size_t)worlds, sizeof *met);
  for (int i = 0; i < worlds; ++i) met[i] = spawned(sources, (targets - size) / worlds);
  for (int i = 0; i < worlds; ++i) {
    // The briefing: this world's number, the number of worlds, and the number of sources.
    int brief[] = {i, worlds, size};
    MPI_Bcast(brief, 3, MPI_INT, 0, met[i]);
  }
  MPI_Comm all = with_rest(met[0], 1, worlds, met, size);
  free(met);
  if (sources != MPI_COMM_WORLD) MPI_Comm_free(&sources);
  return all;
}

// The side of a new process; returns the communicator of all.
static MPI_Comm joined(MPI_Comm parent) {
  MPI_Comm all = merged(parent, 1);
  int brief[3];
  MPI_Bcast(brief, 3, MPI_INT, 0, all);
  if (brief[0] > 0) {
    MPI_Comm met = all;
    all = bound(MPI_COMM_WORLD, met, 0, 1);
    MPI_Comm_free(&met);
  }
  return with_rest(all, brief[0] + 1, brief[1], NULL, brief[2]);
}

// Returns the communicator of those that stay, or MPI_COMM_NULL in those that leave. Collective over `all`.
static MPI_Comm shrunk(MPI_Comm all, int targets) {
  int rank;
  MPI_Comm_rank(all, &rank);
  MPI_Comm stay;
  MPI_Comm_split(all, rank < targets ? 0 : MPI_UNDEFINED, rank, &stay);
  MPI_Comm_free(&all);
  return stay;
}

// Follows the sizes that rank 0 broadcasts, until it sends 0. Only rank 0 has a `schedule`.
static void follow(MPI_Comm all, const int* schedule) {
  int rank;
  MPI_Comm_rank(all, &rank);
  for (int step = 0;; ++step) {
    const double start = now_s();
    int targets = schedule ? schedule[step] : 0;
    MPI_Bcast(&targets, 1, MPI_INT, 0, all);
    if (targets == 0) break;
    const int sources = size_of(all);
    all = targets > sources ? grown(all, targets) : targets < sources ? shrunk(all, targets) : all;
    if (all == MPI_COMM_NULL) return;
    MPI_Barrier(all);
    if (rank == 0 && targets != sources) {
      printf("%s %d %d %.6f\n", targets > sources ? "grow" : "shrink", sources, targets, now_s() - start);
    }
  }
  if (all != MPI_COMM_WORLD) MPI_Comm_free(&all);
}

// Checks the arguments and runs the schedule on the first process. Returns an exit code.
static int start(int argc, char** argv) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int sources = argc == 5 ? atoi(argv[2]) : 0, targets = argc == 5 ? atoi(argv[3]) : 0;
  const int cycles = argc == 5 ? atoi(argv[4]) : 0;
  if (size != 1 || sources < 1 || targets <= sources || cycles < 1 || (strcmp(mode, "one") && strcmp(mode, "all"))) {
    fprintf(stderr, "usage: mpiexec -n 1 bare_spawn one|all SOURCES TARGETS CYCLES\n");
    return 2;
  }
  int* schedule = calloc((size_t)cycles * 2 + 2, sizeof *schedule);
  schedule[0] = sources;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    schedule[1 + 2 * cycle] = targets;
    schedule[2 + 2 * cycle] = sources;
  }
  follow(MPI_COMM_WORLD, schedule);
  free(schedule);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  mode = argc > 1 ? argv[1] : "";
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  int code = 0;
  if (!realpath("/proc/self/exe", program)) {
    code = 2;
  } else if (parent != MPI_COMM_NULL) {
    MPI_Comm all = joined(parent);
    MPI_Barrier(all);
    follow(all, NULL);
  } else {
    code = start(argc, argv);
  }
  MPI_Finalize();
  return code;
}
