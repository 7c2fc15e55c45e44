// overhead_calls DIRECTORY: measures the duration of single calls. overhead.py starts the program with libhocket and
// without it, in turn.
//
// Rank 0 prints a line "CALL NS" for each call: the median over blocks of the block's mean. Other load of the machine
// moves this value least. Each rank has its own files in DIRECTORY.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Blocks, calls in a block, places in a file that the calls rotate over, and sizes of the writes.
enum { blocks = 200, calls = 50, slots = 16, large_bytes = 64 << 10, small_bytes = 4 << 10 };

static int rank;
static char* data;
static MPI_File file;
static FILE* stream;
static int descriptor;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Ends all ranks if the condition does not hold.
static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void allreduce(int slot) {
  long long one = slot, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void write_at(int slot) {
  require(MPI_File_write_at(file, (MPI_Offset)slot * large_bytes, data, large_bytes, MPI_BYTE, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS,
          "MPI_File_write_at");
}

static void posix_write(int slot) {
  require(pwrite(descriptor, data, small_bytes, (off_t)slot * small_bytes) == small_bytes, "pwrite");
}

static void stream_write(int slot) {
  // The stream starts again at its first place, as the other calls do.
  if (slot == 0) rewind(stream);
  require(fwrite(data, small_bytes, 1, stream) == 1, "fwrite");
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Measures a call and prints its line. Some blocks run before, so that files have their space and caches are warm.
static void measure(const char* name, void call(int)) {
  double mean[blocks];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = -blocks / 10; i < blocks; ++i) {
    const double start = now_ns();
    for (int j = 0; j < calls; ++j) call(j % slots);
    if (i >= 0) mean[i] = (now_ns() - start) / calls;
  }
  // The median discards blocks that another program interrupted.
  qsort(mean, blocks, sizeof *mean, ascending);
  if (rank == 0) printf("%s %.1f\n", name, mean[blocks / 2]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2) {
    fprintf(stderr, "usage: overhead_calls DIRECTORY\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char name[3][1024];
  for (int i = 0; i < 3; ++i) snprintf(name[i], sizeof name[i], "%s/%d.%d", argv[1], rank, i);
  // The duration of a copy depends on where in its page a buffer begins, so this place is the same in every run.
  require(posix_memalign((void**)&data, 4096, large_bytes) == 0, "posix_memalign");
  memset(data, 'A' + rank, large_bytes);
  require(MPI_File_open(MPI_COMM_SELF, name[0], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS,
          "MPI_File_open");
  descriptor = open(name[1], O_CREAT | O_WRONLY, 0600);
  require(descriptor >= 0, name[1]);
  stream = fopen(name[2], "w");
  require(stream != NULL, name[2]);

  measure("allreduce-8B", allreduce);
  measure("write_at-64KiB", write_at);
  measure("pwrite-4KiB", posix_write);
  measure("fwrite-4KiB", stream_write);

  fclose(stream);
  close(descriptor);
  MPI_File_close(&file);
  for (int i = 0; i < 3; ++i) unlink(name[i]);
  MPI_Finalize();
  return 0;
}
