// Collective accesses of a file whose storage fails (faulty_storage.c, or a full file system). It shows the result in
// all ranks, and the content of the file afterwards.
//
//   faulty_access FILE write|read interleaved|holes|separate [blocks of a rank [HINT=VALUE]...]
//
// Blocks have 4 KiB. "interleaved" puts the blocks of all ranks side by side, "holes" adds a hole after each such
// group, and "separate" gives each rank one contiguous run. The program prints the error class that all ranks got.
// After a write without an error it prints "right" if the file has every byte. After an error it repeats the access
// ("again:" and the result).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

static int rank, ranks, blocks = 512;
static int tile;  // number of blocks in a group with one block of each rank; 0: separate runs

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char content(int of, size_t byte) { return (unsigned char)(of * 31 + (int)(byte / 7 % 251) + 1); }

static void set_view(MPI_File file) {
  MPI_Datatype block, filetype;
  MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * (tile ? tile : 1), &filetype);
  MPI_Type_commit(&filetype);
  const MPI_Offset first = (MPI_Offset)BLOCK * rank * (tile ? 1 : blocks);
  require(MPI_File_set_view(file, first, MPI_BYTE, filetype, "native", MPI_INFO_NULL) == MPI_SUCCESS,
          "MPI_File_set_view");
  MPI_Type_free(&block);
  MPI_Type_free(&filetype);
}

static const char* name_of(int class) {
  if (class == MPI_SUCCESS) return "MPI_SUCCESS";
  if (class == MPI_ERR_IO) return "MPI_ERR_IO";
  if (class == MPI_ERR_NO_SPACE) return "MPI_ERR_NO_SPACE";
  if (class == MPI_ERR_QUOTA) return "MPI_ERR_QUOTA";
  if (class == MPI_ERR_ACCESS) return "MPI_ERR_ACCESS";
  if (class == MPI_ERR_READ_ONLY) return "MPI_ERR_READ_ONLY";
  return "another";
}

// Returns the error class that all ranks got.
static int agreed(int code) {
  int class = MPI_SUCCESS, least = 0, most = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (least != most) fprintf(stderr, "rank %d got %s\n", rank, name_of(class));
  require(least == most, "ranks got different errors");
  return class;
}

static int access_once(MPI_File file, int writes, unsigned char* data, size_t bytes) {
  MPI_Status status;
  for (size_t i = 0; i < bytes; ++i) data[i] = writes ? content(rank, i) : 0;
  const int code = writes ? MPI_File_write_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status)
                          : MPI_File_read_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status);
  const int class = agreed(code);
  if (class != MPI_SUCCESS) return class;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  require(count == (int)bytes, "the status has another count");
  for (size_t i = 0; i < bytes; ++i) require(data[i] == content(rank, i), "another byte in memory");
  return class;
}

// Rank 0 reads the file without MPI-IO.
static void check_file(const char* path) {
  FILE* file = fopen(path, "rb");
  unsigned char block[BLOCK];
  require(file != NULL, "the file cannot be opened");
  const long all = tile ? (long)tile * (blocks - 1) + ranks : (long)ranks * blocks;
  for (long at = 0; at < all; ++at) {
    const int of = (int)(tile ? at % tile : at / blocks);
    const long which = tile ? at / tile : at % blocks;
    require(fread(block, 1, BLOCK, file) == BLOCK, "the file is too short");
    for (int i = 0; i < BLOCK; ++i)
      require(block[i] == (of < ranks ? content(of, (size_t)which * BLOCK + (size_t)i) : 0),
              "another byte in the file");
  }
  fclose(file);
  printf("right\n");
}

static MPI_Info hints_of(int count, char** texts) {
  MPI_Info hints;
  MPI_Info_create(&hints);
  for (int i = 0; i < count; ++i) {
    char* const value = strchr(texts[i], '=');
    require(value != NULL, "a hint is KEY=VALUE");
    *value = '\0';
    MPI_Info_set(hints, texts[i], value + 1);
  }
  return hints;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc > 3, "give FILE write|read interleaved|separate [blocks]");
  const int writes = !strcmp(argv[2], "write");
  tile = !strcmp(argv[3], "interleaved") ? ranks : !strcmp(argv[3], "holes") ? ranks + 1 : 0;
  if (argc > 4) blocks = atoi(argv[4]);
  const size_t bytes = (size_t)BLOCK * (size_t)blocks;
  unsigned char* data = malloc(bytes);
  require(data != NULL, "no memory");
  MPI_File file;
  MPI_Info hints = hints_of(argc > 5 ? argc - 5 : 0, argv + 5);
  require(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file) == MPI_SUCCESS,
          "MPI_File_open");
  MPI_Info_free(&hints);
  set_view(file);
  if (!writes) require(access_once(file, 1, data, bytes) == MPI_SUCCESS, "the write before the read");
  const int class = access_once(file, writes, data, bytes);
  if (rank == 0) printf("%s\n", name_of(class));
  if (class == MPI_SUCCESS && writes && rank == 0) check_file(argv[1]);
  if (class != MPI_SUCCESS) {
    const int again = access_once(file, writes, data, bytes);
    if (rank == 0) printf("again: %s\n", name_of(again));
    if (again == MPI_SUCCESS && rank == 0) check_file(argv[1]);
  }
  MPI_File_close(&file);
  free(data);
  MPI_Finalize();
  return 0;
}
