// bare_resize merge|baseline SOURCES TARGETS BYTES: measures one resize with nothing but the MPI calls.
//
// It starts with mpiexec -n SOURCES. An array of BYTES is shared out in blocks, first over SOURCES and then over
// TARGETS processes, by one blocking MPI_Alltoallv.
//   merge     The sources stay: one MPI_Comm_spawn of those that are missing, MPI_Intercomm_merge, and the Alltoallv
//             over all. To shrink needs no spawn.
//   baseline  All targets are new: one MPI_Comm_spawn of TARGETS, and the Alltoallv over the intercommunicator.
// The first source prints "SPAWN_S DATA_S": seconds from before the spawn until the processes are connected, and from
// then until all have their data. Each target checks every element. Exit code: 0, or 1 if an element is wrong.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The sizes, as all processes know them. An element is a double.
struct resize {
  int baseline, sources, targets;
  int64_t elements;
};

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Returns the first element of a block; there is none above `ranks`.
static int64_t first_of(const struct resize* r, int ranks, int rank) {
  return r->elements * lesser(rank, ranks) / ranks;
}

// Sets how many elements the block of `rank` of `ranks` has in common with each block of `others`, and where in it they
// begin. A negative rank has no block.
static void overlaps(const struct resize* r, int rank, int ranks, int others, int peers, int* counts, int* places) {
  for (int peer = 0; peer < peers; peer++) {
    counts[peer] = places[peer] = 0;
    if (rank < 0) continue;
    const int64_t begin = first_of(r, ranks, rank), end = first_of(r, ranks, rank + 1);
    const int64_t low = greater(begin, first_of(r, others, peer)), high = lesser(end, first_of(r, others, peer + 1));
    if (low >= high) continue;
    counts[peer] = (int)(high - low);
    places[peer] = (int)(low - begin);
  }
}

static double* allocated(int64_t elements) {
  double* memory = malloc((size_t)(elements + 1) * sizeof *memory);
  if (!memory) {
    fprintf(stderr, "bare_resize: no memory for %lld elements\n", (long long)elements);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

// Moves the data. `source` and `target` are the ranks before and after; -1: this process is none. Collective over
// `comm`, in which each process exchanges with `peers` others.
static void move(const struct resize* r, MPI_Comm comm, int peers, int source, int target, const double* from,
                 double* to) {
  int* counts = calloc((size_t)peers * 4, sizeof *counts);
  int *places = counts + peers, *received = counts + 2 * peers, *put = counts + 3 * peers;
  overlaps(r, source, r->sources, r->targets, peers, counts, places);
  overlaps(r, target, r->targets, r->sources, peers, received, put);
  MPI_Alltoallv(from, counts, places, MPI_DOUBLE, to, received, put, MPI_DOUBLE, comm);
  MPI_Barrier(comm);
  free(counts);
}

// Ends the use of what data moved over. Processes that merged have disconnected before; Open MPI waits for ever if they
// do so twice.
static void leave(const struct resize* r, MPI_Comm comm) {
  if (r->baseline)
    MPI_Comm_disconnect(&comm);
  else
    MPI_Comm_free(&comm);
}

static void check(const struct resize* r, int target, const double* to) {
  const int64_t first = first_of(r, r->targets, target), count = first_of(r, r->targets, target + 1) - first;
  for (int64_t i = 0; i < count; i++) {
    if (to[i] == (double)(first + i)) continue;
    fprintf(stderr, "bare_resize: element %lld is %g\n", (long long)(first + i), to[i]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// Spawns what is missing and returns the communicator over which data move: an intercommunicator with `baseline`.
static MPI_Comm connected(const struct resize* r, char** argv) {
  static char program[4096];
  const int count = r->baseline ? r->targets : r->targets - r->sources;
  MPI_Comm between, all;
  if (count <= 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    return all;
  }
  if (!realpath("/proc/self/exe", program)) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_spawn(program, argv + 1, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
  if (r->baseline) return between;
  MPI_Intercomm_merge(between, 0, &all);
  MPI_Comm_disconnect(&between);
  return all;
}

// The side of a process that is there before.
static void resize(const struct resize* r, char** argv) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int target = !r->baseline && rank < r->targets ? rank : -1;
  const int64_t first = first_of(r, r->sources, rank), count = first_of(r, r->sources, rank + 1) - first;
  double* from = allocated(count);
  for (int64_t i = 0; i < count; i++) from[i] = (double)(first + i);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Comm comm = connected(r, argv);
  const double met = MPI_Wtime();
  double* to = target < 0 ? NULL : allocated(first_of(r, r->targets, target + 1) - first_of(r, r->targets, target));
  move(r, comm, r->baseline ? r->targets : (int)greater(r->sources, r->targets), rank, target, from, to);
  if (rank == 0) printf("%.6f %.6f\n", met - start, MPI_Wtime() - met);
  if (target >= 0) check(r, target, to);
  free(from);
  free(to);
  leave(r, comm);
}

// The side of a new process.
static void join(const struct resize* r, MPI_Comm parent) {
  MPI_Comm comm = parent;
  int target;
  if (!r->baseline) {
    MPI_Intercomm_merge(parent, 1, &comm);
    MPI_Comm_disconnect(&parent);
  }
  MPI_Comm_rank(comm, &target);
  double* to = allocated(first_of(r, r->targets, target + 1) - first_of(r, r->targets, target));
  move(r, comm, r->baseline ? r->sources : r->targets, -1, target, NULL, to);
  check(r, target, to);
  free(to);
  leave(r, comm);
}

int main(int argc, char** argv) {
  int size;
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct resize r = {0};
  if (argc == 5) {
    r = (struct resize){strcmp(argv[1], "baseline") == 0, atoi(argv[2]), atoi(argv[3]), atoll(argv[4]) / 8};
    if (!r.baseline && strcmp(argv[1], "merge") != 0) r.sources = 0;
  }
  const int valid = r.sources > 0 && r.targets > 0 && r.elements > 0 && (parent != MPI_COMM_NULL || size == r.sources);
  if (!valid)
    fprintf(stderr, "usage: mpiexec -n SOURCES bare_resize merge|baseline SOURCES TARGETS BYTES\n");
  else if (parent != MPI_COMM_NULL)
    join(&r, parent);
  else
    resize(&r, argv);
  MPI_Finalize();
  return valid ? 0 : 2;
}
