// Writes a file collectively, again and again, until a file END exists.
//
//   steady_writes FILE MEBIBYTES END
//
// Each rank writes that many MiB with each call, behind those of the ranks before it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void require(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) return 2;
  const int bytes = atoi(argv[2]) * MIB;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* const data = malloc((size_t)bytes);
  memset(data, 'a' + rank, (size_t)bytes);
  MPI_File file;
  require(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "open");
  int is_over = 0;
  while (!is_over) {
    MPI_Status status;
    require(MPI_File_write_at_all(file, (MPI_Offset)bytes * rank, data, bytes, MPI_BYTE, &status), "write_at_all");
    if (rank == 0) is_over = access(argv[3], F_OK) == 0;
    MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  require(MPI_File_close(&file), "close");
  free(data);
  MPI_Finalize();
  return 0;
}
