// elastic_probe FILE OPERATIONS KIB BUFFER_KIB: times collective writes, while elastic.py changes the I/O servers.
//
// Every rank writes KIB to the same place in each operation, in blocks that alternate between ranks. The hint
// hocket_buffer_size is BUFFER_KIB, and a block is BUFFER_KIB divided by the number of ranks, so that each request to a
// server has one block. Rank 0 prints a line for each operation: its start in seconds of CLOCK_MONOTONIC, and the
// seconds until all ranks had returned.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
  if (argc != 5) {
    fprintf(stderr, "elastic_probe: give FILE OPERATIONS KIB BUFFER_KIB\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int operations = atoi(argv[2]), bytes = atoi(argv[3]) << 10;
  char* data = malloc((size_t)bytes);
  memset(data, 'A' + rank, (size_t)bytes);
  const int buffer_bytes = atoi(argv[4]) << 10, block_bytes = buffer_bytes / ranks;
  MPI_Datatype block, tile;
  MPI_Type_contiguous(block_bytes, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)block_bytes * ranks, &tile);
  MPI_Type_commit(&tile);
  MPI_File file;
  MPI_Info hints;
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%d", buffer_bytes);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "hocket_buffer_size", buffer);
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file) != MPI_SUCCESS) {
    fprintf(stderr, "elastic_probe: %s cannot be opened\n", argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_File_set_view(file, (MPI_Offset)block_bytes * rank, MPI_BYTE, tile, "native", hints);
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
  MPI_Info_free(&hints);
  MPI_Type_free(&block);
  MPI_Type_free(&tile);
  free(data);
  MPI_Finalize();
  return 0;
}
