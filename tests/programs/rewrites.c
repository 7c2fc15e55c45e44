// rewrites FILE TIMES HINT=VALUE…: all ranks write the same interleaved blocks again and again, collectively. Rank 0
// compares the file at the end, and prints "right".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, BLOCKS = 64 };

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rewrites: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_file(const char* path, int ranks, int times) {
  FILE* file = fopen(path, "rb");
  char block[BLOCK];
  require(file != NULL, "the file cannot be opened");
  for (int at = 0; at < ranks * BLOCKS; ++at) {
    require(fread(block, 1, BLOCK, file) == BLOCK, "the file is too short");
    for (int i = 0; i < BLOCK; ++i) require(block[i] == (char)(at % ranks + times), "another byte in the file");
  }
  fclose(file);
  puts("right");
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc > 2, "give FILE TIMES [HINT=VALUE]...");
  const int times = atoi(argv[2]);
  MPI_Info hints;
  MPI_Info_create(&hints);
  for (int i = 3; i < argc; ++i) {
    char* const value = strchr(argv[i], '=');
    require(value != NULL, "a hint is KEY=VALUE");
    *value = '\0';
    MPI_Info_set(hints, argv[i], value + 1);
  }
  MPI_File file;
  MPI_Datatype blocks;
  MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &blocks);
  MPI_Type_commit(&blocks);
  require(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, hints, &file) == MPI_SUCCESS,
          "MPI_File_open failed");
  MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
  static char data[BLOCK * BLOCKS];
  for (int i = 1; i <= times; ++i) {
    memset(data, rank + i, sizeof data);
    require(MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
            "MPI_File_write_at_all failed");
  }
  MPI_File_close(&file);
  if (rank == 0) check_file(argv[1], ranks, times);
  MPI_Type_free(&blocks);
  MPI_Info_free(&hints);
  MPI_Finalize();
  return 0;
}
