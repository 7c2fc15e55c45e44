// Checks what the MPI standard says about collective accesses that are refused, or that overlap.
//
//   access_rules FILE read-only   writes to a file that is open for reading and prints the error class that all ranks
//                                 get; then all ranks read the file
//   access_rules FILE atomic      in atomic mode all ranks repeatedly write the same blocks, each with its own byte:
//                                 each time the file must have the bytes of one rank; prints "one"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1000, PIECES = 500, GAP = 24, ROUNDS = 10 };

static int rank, ranks;
static char data[PIECE * PIECES];

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File open_file(const char* path, int mode) {
  MPI_File file;
  MPI_Datatype piece, tile;
  require(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS, "MPI_File_open");
  MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, PIECE + GAP, &tile);
  MPI_Type_commit(&tile);
  require(MPI_File_set_view(file, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS, "MPI_File_set_view");
  MPI_Type_free(&piece);
  MPI_Type_free(&tile);
  return file;
}

static void write_first(const char* path) {
  MPI_File file = open_file(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  memset(data, 'a', sizeof data);
  const int own = rank == 0 ? (int)sizeof data : 0;
  require(MPI_File_write_at_all(file, 0, data, own, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the first write");
  MPI_File_close(&file);
}

static void read_only(const char* path) {
  write_first(path);
  MPI_File file = open_file(path, MPI_MODE_RDONLY);
  int class = MPI_SUCCESS, least = 0, most = 0;
  const int code = MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  require(least == most, "ranks got different errors");
  memset(data, 0, sizeof data);
  require(MPI_File_read_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "the read");
  for (size_t i = 0; i < sizeof data; ++i) require(data[i] == 'a', "another byte was read");
  MPI_File_close(&file);
  if (rank == 0)
    printf("%s\n", class == MPI_ERR_READ_ONLY || class == MPI_ERR_ACCESS ? "refused"
                   : class == MPI_SUCCESS                                ? "MPI_SUCCESS"
                                                                         : "another");
}

static void atomic(const char* path) {
  MPI_File file = open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  require(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS, "MPI_File_set_atomicity");
  for (int round = 0; round < ROUNDS; ++round) {
    memset(data, 'a' + rank, sizeof data);
    const int code = MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    require(code == MPI_SUCCESS, "an atomic write");
    MPI_Barrier(MPI_COMM_WORLD);
    const int read = MPI_File_read_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    require(read == MPI_SUCCESS && data[0] >= 'a' && data[0] < 'a' + ranks, "an atomic read");
    for (size_t i = 0; i < sizeof data; ++i) require(data[i] == data[0], "bytes of two ranks are mixed");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&file);
  if (rank == 0) printf("one\n");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc > 2, "give FILE read-only|atomic");
  if (strcmp(argv[2], "read-only") == 0)
    read_only(argv[1]);
  else
    atomic(argv[1]);
  MPI_Finalize();
  return 0;
}
