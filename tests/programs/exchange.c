/* Writes or reads versions of a data set that is exchanged by name; each word says of which version and where it is.
 *
 *   exchange write|read NAME VERSIONS WORDS [OPTION VALUE]...
 *     --hint KEY=VALUE   given to MPI_File_open
 *     --hint0 KEY=VALUE  by rank 0 alone
 *     --but-first 1      of the world's ranks, rank 0 takes no part
 *     --first N          the first version is to be N (1)
 *     --hold FILE        after the first access of each version, while the file is there
 *
 * WORDS: 64-bit words of a version. Writing ranks have rows of 100 in turn, in two collective accesses; reading ones a
 * part each. Rank 0 says "opened", then "held", then "version N", a line each; where MPI_File_open, a collective write
 * or MPI_File_close fails, all ranks go on and rank 0 says its error class. */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW = 100 };

static MPI_Comm comm;
static int rank, ranks;
static const char* hold;

static void say(const char* what, long number) {
  if (rank != 0) return;
  printf(number < 0 ? "%s\n" : "%s %ld\n", what, number);
  fflush(stdout);
}

static const char* name_of(int code) {
  int class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &class);
  switch (class) {
    case MPI_ERR_NO_SUCH_FILE: return "MPI_ERR_NO_SUCH_FILE";
    case MPI_ERR_NO_SPACE: return "MPI_ERR_NO_SPACE";
    case MPI_ERR_BAD_FILE: return "MPI_ERR_BAD_FILE";
    case MPI_ERR_AMODE: return "MPI_ERR_AMODE";
    case MPI_ERR_READ_ONLY: return "MPI_ERR_READ_ONLY";
    case MPI_ERR_ACCESS: return "MPI_ERR_ACCESS";
    case MPI_ERR_UNSUPPORTED_OPERATION: return "MPI_ERR_UNSUPPORTED_OPERATION";
    case MPI_ERR_IO: return "MPI_ERR_IO";
    default: return "another error";
  }
}

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, name_of(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t word_of(int64_t version, int64_t at) { return version * INT64_C(1000000007) + at; }

static void held(void) {
  MPI_Barrier(comm);
  if (hold == NULL) return;
  say("held", -1);
  while (access(hold, F_OK) == 0) usleep(2000);
}

/* Rows of all ranks in turn. The second half of the words goes first. */
static void write_version(MPI_File file, int64_t version, int64_t words) {
  MPI_Datatype row;
  MPI_Type_vector(1, ROW, ROW, MPI_INT64_T, &row);
  MPI_Datatype filetype;
  MPI_Type_create_resized(row, 0, (MPI_Aint)ranks * ROW * 8, &filetype);
  MPI_Type_commit(&filetype);
  check(MPI_File_set_view(file, (MPI_Offset)rank * ROW * 8, MPI_INT64_T, filetype, "native", MPI_INFO_NULL), "view");
  const int64_t rows = words / ROW / ranks, half = rows / 2, behind = (rows - half) * ROW;
  int64_t* data = malloc((size_t)(rows * ROW) * sizeof *data);
  for (int64_t i = 0; i < rows * ROW; ++i) data[i] = word_of(version, (i / ROW * ranks + rank) * ROW + i % ROW);
  int code = MPI_File_write_at_all(file, half * ROW, data + half * ROW, (int)behind, MPI_INT64_T, MPI_STATUS_IGNORE);
  held();
  if (code != MPI_SUCCESS) say(name_of(code), -1);
  code = MPI_File_write_all(file, data, (int)(half * ROW), MPI_INT64_T, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) say(name_of(code), -1);
  const int again = MPI_File_write_at_all(file, 0, data, ROW, MPI_INT64_T, MPI_STATUS_IGNORE); /* the same words */
  if (again != MPI_SUCCESS) say(name_of(again), -1);
  check(MPI_File_sync(file), "sync");
  free(data);
  MPI_Type_free(&row);
  MPI_Type_free(&filetype);
}

static int64_t read_version(MPI_File file, int64_t words) {
  MPI_Offset bytes = 0, end = 0;
  check(MPI_File_get_size(file, &bytes), "size");
  if (bytes != words * 8) {
    fprintf(stderr, "rank %d: %lld bytes\n", rank, (long long)bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int64_t first = words * rank / ranks, count = words * (rank + 1) / ranks - first;
  int64_t* data = malloc((size_t)(count + 1) * sizeof *data);
  check(MPI_File_set_view(file, first * 8, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL), "view");
  MPI_Status status;
  int got = -1;
  check(MPI_File_read_all(file, data, (int)count, MPI_INT64_T, &status), "read");
  MPI_Get_count(&status, MPI_INT64_T, &got);
  const int64_t version = (data[0] - first) / INT64_C(1000000007);
  int right = got == count;
  for (int64_t i = 0; i < count; ++i) right &= data[i] == word_of(version, first + i);
  held();
  /* By one rank alone: the last word, and what is behind the end. The view begins with the second word. */
  check(MPI_File_set_view(file, 8, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL), "view");
  if (rank == ranks - 1) {
    check(MPI_File_seek(file, -1, MPI_SEEK_END), "seek");
    check(MPI_File_get_position(file, &end), "position");
    check(MPI_File_read(file, data, 2, MPI_INT64_T, &status), "read alone");
    MPI_Get_count(&status, MPI_INT64_T, &got);
    right &= end == words - 2 && got == 1 && data[0] == word_of(version, words - 1);
  }
  if (!right) {
    fprintf(stderr, "rank %d: wrong words in version %lld, %d of %lld\n", rank, (long long)version, got,
            (long long)count);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  free(data);
  return version;
}

/* Of a file that is open: what there is not for data sets must say so, and what it was not opened for. */
static void try_what_is_not(MPI_File file, int writes) {
  char byte = 0;
  MPI_Request request;
  MPI_Status status;
  printf("%s\n", name_of(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, &status)));
  printf("%s\n", name_of(MPI_File_iread_at(file, 0, &byte, 1, MPI_BYTE, &request)));
  printf("%s\n", name_of(MPI_File_write_all_begin(file, &byte, 1, MPI_BYTE)));
  printf("%s\n", name_of(MPI_File_set_size(file, 100)));
  printf("%s\n", name_of(writes ? MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, &status)
                                : MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, &status)));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int world_rank = rank;
  const int parts = strcmp(argv[argc - 2], "--but-first") == 0;
  MPI_Comm_split(MPI_COMM_WORLD, parts && rank == 0, rank, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int writes = strcmp(argv[1], "write") == 0, rules = strcmp(argv[1], "rules") == 0;
  const int64_t versions = atoll(argv[3]), words = atoll(argv[4]);
  int64_t first = 1;
  MPI_Info info;
  MPI_Info_create(&info);
  for (int i = 5; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--first") == 0) first = atoll(argv[i + 1]);
    if (strcmp(argv[i], "--hold") == 0) hold = argv[i + 1];
    char* value = strchr(argv[i + 1], '=');
    if (strcmp(argv[i], "--hint") != 0 && !(strcmp(argv[i], "--hint0") == 0 && rank == 0)) continue;
    *value = '\0';
    MPI_Info_set(info, argv[i + 1], value + 1);
  }
  for (int64_t version = first; version < first + versions && !(parts && world_rank == 0); ++version) {
    MPI_File file;
    const int mode = writes || rules ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    int code = MPI_File_open(comm, argv[2], mode, info, &file);
    if (code != MPI_SUCCESS) {
      say(name_of(code), -1);
      continue;
    }
    say("opened", -1);
    int64_t found = version;
    if (rules)
      try_what_is_not(file, 1);
    else if (writes)
      write_version(file, version, words);
    else
      found = read_version(file, words);
    code = MPI_File_close(&file);
    if (code == MPI_SUCCESS)
      say("version", (long)found);
    else
      say(name_of(code), -1);
  }
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
