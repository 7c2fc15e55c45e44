// resize_probe ITERATIONS ITERATION_MS ELEMENTS: a malleable program that reports the duration of its resizes.
//
// An iteration sleeps (the cores are for the processes that start) and reduces one number. Rank 0 prints a line for
// each control point that resized, and for each that took longer than a millisecond:
//   point ITERATION go-on|resized PROCESSES SECONDS       PROCESSES: afterwards; SECONDS: in hocket_malleable_next
// After a resize the seconds include a barrier of all processes that are there then. A last line "end CHECKSUM" gives
// the number of wrong elements: 0 if the array arrived. PROBE_START_S is the time by which processes that join start
// later.
#define _GNU_SOURCE
#include <hocket/malleable.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double told_from_s = 1e-3;  // shortest duration that is printed, in seconds

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_s(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

// Delays a process that joins, as a slow launcher or file system would.
static void start_slowly(void) {
  const char* seconds = getenv("PROBE_START_S");
  if (seconds) sleep_s(atof(seconds));
}

// Ends all processes if `code` is an error of libhocket.
static void fail(int code, const char* what) {
  if (code >= 0) return;
  fprintf(stderr, "resize_probe: %s: %s\n", what, hocket_error_text(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Returns how many elements of all processes differ from the start. Collective.
static long long wrong(hocket_malleable* job, const double* x) {
  int64_t first, count;
  fail(hocket_malleable_range(job, "x", -1, &first, &count), "the range of x");
  long long here = 0, all = 0;
  for (int64_t i = 0; i < count; ++i) here += x[i] != (double)(first + i);
  MPI_Allreduce(&here, &all, 1, MPI_LONG_LONG, MPI_SUM, hocket_malleable_comm(job));
  return all;
}

static int rank_in(MPI_Comm all) {
  int rank;
  MPI_Comm_rank(all, &rank);
  return rank;
}

// Passes a control point, measures it, and returns its state. The first call of a process is not measured: it has no
// control point, but joins the barrier of the others.
static int timed_next(hocket_malleable* job, int64_t iterations) {
  static int entered;
  int64_t iteration;
  const double start = now_s();
  const int state = hocket_malleable_next(job, iterations, &iteration);
  fail(state, "hocket_malleable_next");
  if (state == 0) return state;
  const MPI_Comm all = hocket_malleable_comm(job);
  if (state == HOCKET_MALLEABLE_RESIZED) MPI_Barrier(all);
  const double took_s = now_s() - start;
  if (entered++ && rank_in(all) == 0 && (state == HOCKET_MALLEABLE_RESIZED || took_s > told_from_s)) {
    int size;
    MPI_Comm_size(all, &size);
    printf("point %lld %s %d %.6f\n", (long long)iteration, state == HOCKET_MALLEABLE_RESIZED ? "resized" : "go-on",
           size, took_s);
    fflush(stdout);
  }
  return state;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: resize_probe ITERATIONS ITERATION_MS ELEMENTS\n");
    return 2;
  }
  if (getenv("HOCKET_JOIN")) start_slowly();
  MPI_Init(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) start_slowly();
  const int64_t iterations = atoll(argv[1]), elements = atoll(argv[3]);
  const double iteration_s = atof(argv[2]) / 1e3;

  hocket_malleable* job;
  double* x;
  fail(hocket_malleable_create(&job), "hocket_malleable_create");
  fail(hocket_malleable_array(job, "x", MPI_DOUBLE, elements, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_VARIABLE, &x),
       "the array x");
  if (!hocket_malleable_joined(job)) {
    int64_t first, count;
    fail(hocket_malleable_range(job, "x", -1, &first, &count), "the range of x");
    for (int64_t i = 0; i < count; ++i) x[i] = (double)(first + i);
  }
  fail(hocket_malleable_begin(job, 0), "hocket_malleable_begin");
  while (timed_next(job, iterations)) {
    sleep_s(iteration_s);
    long long one = 1, processes;
    MPI_Allreduce(&one, &processes, 1, MPI_LONG_LONG, MPI_SUM, hocket_malleable_comm(job));
  }
  if (!hocket_malleable_left(job)) {
    const long long lost = wrong(job, x);
    if (rank_in(hocket_malleable_comm(job)) == 0) printf("end %lld\n", lost);
  }
  hocket_malleable_free(&job);
  MPI_Finalize();
  return 0;
}
