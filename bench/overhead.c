// overhead allreduce | write PATH PROBE | pwrite PATH: compares calls through libhocket with the same calls without
// it, in one run.
//
// "Without" is the function of the MPI library or of libc itself, called past libhocket. The two alternate, so other
// load of the machine affects both. Rank 0 prints one line for each pair, in ns:
//   allreduce   WITH WITHOUT            a call, mean of a block of calls
//   write       WITH WITHOUT ADDED BASE a call of 1 MiB. ADDED and BASE are the parts of both calls outside of
//                                       the function that follows libhocket (overhead_probe.c). They show what the
//                                       wrapper adds, apart from the much noisier time of the write itself.
//   pwrite      WITH WITHOUT            a call of 4 KiB, mean of a block of calls; each rank has its own file
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Discarded pairs, counted pairs, calls in a block, pairs of collective writes, and sizes of the writes in bytes.
enum { warm_up = 50, pairs = 3000, block = 50, write_pairs = 1500, write_bytes = 1 << 20, pwrite_bytes = 4096 };

typedef int allreduce_function(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef ssize_t pwrite_function(int, const void*, size_t, off_t);
typedef int write_function(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*);

static int rank;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char* what, const char* path) {
  fprintf(stderr, "overhead: cannot %s %s\n", what, path);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

// Returns a symbol of the loaded library with this file name, or of the MPI library if the name is NULL. The two
// names are those of MPICH and Open MPI.
static void* symbol_of(const char* library, const char* symbol) {
  const char* names[] = {library ? library : "libmpi.so.12", library ? library : "libmpi.so.40"};
  void* found = NULL;
  for (int i = 0; i < 2 && !found; ++i) {
    void* handle = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (handle) found = dlsym(handle, symbol);
  }
  if (!found) {
    fprintf(stderr, "overhead: no %s in %s; start it by bench/overhead.py\n", symbol, library ? library : "libmpi");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return found;
}

// Returns the mean duration of a call in a block, in ns.
static double time_allreduce(allreduce_function* allreduce) {
  long long one = 1, sum;
  const double start = now_ns();
  for (int i = 0; i < block; ++i) allreduce(&one, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  return (now_ns() - start) / block;
}

static void bench_allreduce(void) {
  allreduce_function* without = (allreduce_function*)symbol_of(NULL, "PMPI_Allreduce");
  for (int i = -warm_up; i < pairs; ++i) {
    const int first = i & 1;  // each of the two comes first in every second pair
    double ns[2];
    ns[first] = time_allreduce(first ? without : &MPI_Allreduce);
    ns[!first] = time_allreduce(first ? &MPI_Allreduce : without);
    if (i >= 0 && rank == 0) printf("%.1f %.1f\n", ns[0], ns[1]);
  }
}

// Measures collective writes; `probe` is the path of the library that measures the inner call.
static void bench_write(const char* path, const char* probe) {
  write_function* without = (write_function*)symbol_of(probe, "MPI_File_write_at_all");
  const double* inner_ns = symbol_of(probe, "probe_inner_ns");
  write_function* functions[2] = {&MPI_File_write_at_all, without};
  char* data = malloc(write_bytes);
  memset(data, rank, write_bytes);
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS)
    fail("open", path);
  for (int i = -warm_up; i < write_pairs; ++i) {
    double ns[2], added[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = turn ^ (i & 1);
      MPI_Status status;
      const double start = now_ns();
      functions[which](file, (MPI_Offset)rank * write_bytes, data, write_bytes, MPI_BYTE, &status);
      ns[which] = now_ns() - start;
      added[which] = ns[which] - *inner_ns;
    }
    if (i >= 0 && rank == 0) printf("%.1f %.1f %.1f %.1f\n", ns[0], ns[1], added[0], added[1]);
  }
  MPI_File_close(&file);
  free(data);
}

// Returns the mean duration of a pwrite in a block, in ns. Rewriting the same place keeps the file's growth out.
static double time_pwrite(pwrite_function* function, int file, const void* data, const char* path) {
  const double start = now_ns();
  for (int i = 0; i < block; ++i)
    if (function(file, data, pwrite_bytes, 0) != pwrite_bytes) fail("write to", path);
  return (now_ns() - start) / block;
}

static void bench_pwrite(const char* path) {
  pwrite_function* without = (pwrite_function*)symbol_of("libc.so.6", "pwrite");
  char own[1024];
  snprintf(own, sizeof own, "%s.%d", path, rank);
  const int file = open(own, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  char* data = calloc(1, pwrite_bytes);
  if (file < 0 || unlink(own) != 0) fail("open", own);
  for (int i = -warm_up; i < pairs; ++i) {
    const int first = i & 1;
    double ns[2];
    ns[first] = time_pwrite(first ? without : &pwrite, file, data, own);
    ns[!first] = time_pwrite(first ? &pwrite : without, file, data, own);
    if (i >= 0 && rank == 0) printf("%.1f %.1f\n", ns[0], ns[1]);
  }
  close(file);
  free(data);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // The two functions of a pair would be the same without libhocket.
  if (!dlsym(RTLD_DEFAULT, "hocket_bus_open")) {
    fprintf(stderr, "overhead: libhocket is not loaded; start it by bench/overhead.py\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (argc == 2 && !strcmp(argv[1], "allreduce")) {
    bench_allreduce();
  } else if (argc == 4 && !strcmp(argv[1], "write")) {
    bench_write(argv[2], argv[3]);
  } else if (argc == 3 && !strcmp(argv[1], "pwrite")) {
    bench_pwrite(argv[2]);
  } else {
    fprintf(stderr, "usage: overhead allreduce | write PATH PROBE | pwrite PATH\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return 0;
}
