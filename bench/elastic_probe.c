// elastic_probe FILE OPERATIONS MIB: times collective writes, while elastic.py changes the I/O servers.
//
// In each operation every rank writes MIB to the same place, in blocks of 64 KiB that alternate between ranks. Rank 0
// prints a line for each operation: its start in seconds of CLOCK_MONOTONIC, and the seconds until all ranks had
// returned.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 64 << 10 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) {
    fprintf(stderr, "elastic_probe: give FILE OPERATIONS MIB\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int operations = atoi(argv[2]), bytes = atoi(argv[3]) << 20;
  char* data = malloc((size_t)bytes);
  memset(data, 'A' + rank, (size_t)bytes);
  MPI_Datatype block, tile;
  MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * ranks, &tile);
  MPI_Type_commit(&tile);
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
    fprintf(stderr, "elastic_probe: %s cannot be opened\n", argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_File_set_view(file, (MPI_Offset)BLOCK * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
  for (int i = 0; i < operations; ++i) {
    // The barriers make the time that of the slowest rank.
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    if (MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%.6f %.6f\n", start, now() - start);
  }
  MPI_File_close(&file);
  MPI_Type_free(&block);
  MPI_Type_free(&tile);
  free(data);
  MPI_Finalize();
  return 0;
}
