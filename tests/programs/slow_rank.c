// Preloaded after libhocket: a collective access ends $SLOW_S later in rank 1 than in the other ranks, as if rank 1
// were a busy aggregator. Rank 1 appends the CLOCK_MONOTONIC time in ns of each such end to $SLOW_LOG, one a line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NEXT(routine) ((__typeof__(&MPI_##routine))dlsym(RTLD_NEXT, "MPI_" #routine))

static int end_late(int rc) {
  int rank;
  struct timespec t;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 1) return rc;
  const double seconds = atof(getenv("SLOW_S"));
  t.tv_sec = (time_t)seconds;
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  nanosleep(&t, NULL);
  clock_gettime(CLOCK_MONOTONIC, &t);
  FILE* log = fopen(getenv("SLOW_LOG"), "a");
  if (!log) MPI_Abort(MPI_COMM_WORLD, 3);
  fprintf(log, "%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
  fclose(log);
  return rc;
}

int MPI_File_write_at_all(MPI_File file, MPI_Offset at, const void* from, int count, MPI_Datatype type, MPI_Status* s) {
  return end_late(NEXT(File_write_at_all)(file, at, from, count, type, s));
}

int MPI_File_write_at_all_end(MPI_File file, const void* from, MPI_Status* s) {
  return end_late(NEXT(File_write_at_all_end)(file, from, s));
}

int MPI_File_sync(MPI_File file) { return end_late(NEXT(File_sync)(file)); }
