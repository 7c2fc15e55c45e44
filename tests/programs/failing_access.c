// Collective accesses of which one rank's part fails: that rank may write no file beyond 1 MiB.
//
//   failing_access FILE RANK   prints the error class that all ranks got; then writes again without the limit, and
//   looks
//
// Blocks of 4 KiB of all ranks side by side, 4 MiB of each.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BLOCK = 4096, BLOCKS = 1024 };

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void limit(rlim_t bytes) {
  struct rlimit limits;
  getrlimit(RLIMIT_FSIZE, &limits);
  limits.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limits);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int fails = argc > 2 && atoi(argv[2]) == rank;
  signal(SIGXFSZ, SIG_IGN);
  MPI_File file;
  require(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS,
          "MPI_File_open failed");
  MPI_Datatype block, tile;
  MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * ranks, &tile);
  MPI_Type_commit(&tile);
  MPI_File_set_view(file, (MPI_Offset)BLOCK * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
  char* data = malloc((size_t)BLOCK * BLOCKS);
  memset(data, 'a' + rank, (size_t)BLOCK * BLOCKS);
  MPI_Status status;
  if (fails) limit(1 << 20);
  const int rc = MPI_File_write_at_all(file, 0, data, BLOCK * BLOCKS, MPI_BYTE, &status);
  if (fails) limit(RLIM_INFINITY);
  int class = MPI_SUCCESS, least = 0, most = 0;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  require(least == most, "ranks got different errors");
  if (rank == 0) printf("%s\n", class == MPI_ERR_IO ? "MPI_ERR_IO" : class == MPI_SUCCESS ? "MPI_SUCCESS" : "another");
  require(MPI_File_write_at_all(file, 0, data, BLOCK * BLOCKS, MPI_BYTE, &status) == MPI_SUCCESS, "the second write");
  memset(data, 0, (size_t)BLOCK * BLOCKS);
  require(MPI_File_read_at_all(file, 0, data, BLOCK * BLOCKS, MPI_BYTE, &status) == MPI_SUCCESS, "the read");
  for (int i = 0; i < BLOCK * BLOCKS; ++i) require(data[i] == 'a' + rank, "another byte was read");
  MPI_File_close(&file);
  MPI_Type_free(&block);
  MPI_Type_free(&tile);
  free(data);
  MPI_Finalize();
  return 0;
}
