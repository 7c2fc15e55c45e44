// A library that is loaded behind libhocket. It measures each MPI_File_write_at_all that libhocket passes on to the
// MPI library. overhead.c reads the result, so that the noisy time of the write can be subtracted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

__attribute__((visibility("default"))) double probe_inner_ns;  // duration of the last call, in ns

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((visibility("default"))) int MPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void* data,
                                                                 int count, MPI_Datatype type, MPI_Status* status) {
  static __typeof__(&MPI_File_write_at_all) next;
  if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "MPI_File_write_at_all");
  const double start = now_ns();
  const int rc = next(file, offset, data, count, type, status);
  probe_inner_ns = now_ns() - start;
  return rc;
}
