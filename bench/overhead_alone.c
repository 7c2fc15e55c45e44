// overhead_alone FILE STEPS: a program that computes, communicates and writes the same amount in every run, on 2
// ranks. A step takes some 25 ms of fixed work, so the cost of a tool shows in the program's time.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { work = 12000000, written_bytes = 256 << 10, every = 4 };

// Returns a value that the next step depends on, so that no compiler can leave a step out.
static double compute(double value) {
  for (int i = 0; i < work; ++i) value = value * 0.999999 + 1e-6;
  return value;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int steps = argc == 3 ? atoi(argv[2]) : 0;
  if (steps < 1) {
    fprintf(stderr, "usage: overhead_alone FILE STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* data = malloc(written_bytes);
  memset(data, 'A' + rank, written_bytes);
  double value = rank;
  for (int step = 0; step < steps; ++step) {
    double sum;
    value = compute(value);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    value += sum * 1e-9;
    // Every fourth step writes 256 KiB of each rank collectively.
    if (step % every != every - 1) continue;
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * written_bytes, data, written_bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
  if (rank == 0) printf("%g\n", value);
  free(data);
  MPI_Finalize();
  return 0;
}
