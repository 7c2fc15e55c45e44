// io_routines PATH: calls every data-access routine of MPI-IO once, and MPI_File_sync, with known sizes in each rank.
// Then rank 0 prints "calls C read R written W" of one rank. The tests compare this with the counts of libhocket.
//
// Each call moves a different number of bytes, so that the sums show a missed call and one that is counted twice.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096

static MPI_File file;
static char buffer[BLOCK];
static long long calls, moved_read, moved_written;
static int next_size = 8;

static void check(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

// Sizes are 16, 24, 32, … bytes, in elements of 8 bytes.
static int size_for_next(void) { return next_size += 8; }

static void count(long long* sum, int bytes) {
  calls += 1;
  *sum += bytes;
}

// Alternates calls with a status and calls without one.
static MPI_Status status;
static MPI_Status* some_status(void) { return calls % 2 ? &status : MPI_STATUS_IGNORE; }

#define ELEMENTS(bytes) (bytes) / 8, MPI_DOUBLE
#define BLOCKING(sum, routine, ...)                                                     \
  do {                                                                                  \
    const int bytes = size_for_next();                                                  \
    check(routine(file, __VA_ARGS__ buffer, ELEMENTS(bytes), some_status()), #routine); \
    count(&sum, bytes);                                                                 \
  } while (0)
#define NONBLOCKING(sum, routine, ...)                                             \
  do {                                                                             \
    const int bytes = size_for_next();                                             \
    MPI_Request request;                                                           \
    check(routine(file, __VA_ARGS__ buffer, ELEMENTS(bytes), &request), #routine); \
    check(MPI_Wait(&request, some_status()), "MPI_Wait");                          \
    count(&sum, bytes);                                                            \
  } while (0)
#define SPLIT(sum, begin, end, ...)                                  \
  do {                                                               \
    const int bytes = size_for_next();                               \
    check(begin(file, __VA_ARGS__ buffer, ELEMENTS(bytes)), #begin); \
    check(end(file, buffer, some_status()), #end);                   \
    count(&sum, bytes);                                              \
  } while (0)
#define AT 0,
#define HERE

#ifdef MPICH
#define LARGE(...) __VA_ARGS__
#else
#define LARGE(...)
#endif

static void write_all_ways(void) {
  BLOCKING(moved_written, MPI_File_write_at, AT);
  BLOCKING(moved_written, MPI_File_write_at_all, AT);
  NONBLOCKING(moved_written, MPI_File_iwrite_at, AT);
  NONBLOCKING(moved_written, MPI_File_iwrite_at_all, AT);
  SPLIT(moved_written, MPI_File_write_at_all_begin, MPI_File_write_at_all_end, AT);
  BLOCKING(moved_written, MPI_File_write, HERE);
  BLOCKING(moved_written, MPI_File_write_all, HERE);
  NONBLOCKING(moved_written, MPI_File_iwrite, HERE);
  NONBLOCKING(moved_written, MPI_File_iwrite_all, HERE);
  SPLIT(moved_written, MPI_File_write_all_begin, MPI_File_write_all_end, HERE);
  BLOCKING(moved_written, MPI_File_write_shared, HERE);
  NONBLOCKING(moved_written, MPI_File_iwrite_shared, HERE);
  BLOCKING(moved_written, MPI_File_write_ordered, HERE);
  SPLIT(moved_written, MPI_File_write_ordered_begin, MPI_File_write_ordered_end, HERE);
  LARGE(BLOCKING(moved_written, MPI_File_write_at_c, AT); BLOCKING(moved_written, MPI_File_write_at_all_c, AT);
        NONBLOCKING(moved_written, MPI_File_iwrite_at_c, AT); NONBLOCKING(moved_written, MPI_File_iwrite_at_all_c, AT);
        SPLIT(moved_written, MPI_File_write_at_all_begin_c, MPI_File_write_at_all_end, AT);
        BLOCKING(moved_written, MPI_File_write_c, HERE); BLOCKING(moved_written, MPI_File_write_all_c, HERE);
        NONBLOCKING(moved_written, MPI_File_iwrite_c, HERE); NONBLOCKING(moved_written, MPI_File_iwrite_all_c, HERE);
        SPLIT(moved_written, MPI_File_write_all_begin_c, MPI_File_write_all_end, HERE);
        BLOCKING(moved_written, MPI_File_write_shared_c, HERE);
        NONBLOCKING(moved_written, MPI_File_iwrite_shared_c, HERE);
        BLOCKING(moved_written, MPI_File_write_ordered_c, HERE);
        SPLIT(moved_written, MPI_File_write_ordered_begin_c, MPI_File_write_ordered_end, HERE);)
}

static void read_all_ways(void) {
  BLOCKING(moved_read, MPI_File_read_at, AT);
  BLOCKING(moved_read, MPI_File_read_at_all, AT);
  NONBLOCKING(moved_read, MPI_File_iread_at, AT);
  NONBLOCKING(moved_read, MPI_File_iread_at_all, AT);
  SPLIT(moved_read, MPI_File_read_at_all_begin, MPI_File_read_at_all_end, AT);
  BLOCKING(moved_read, MPI_File_read, HERE);
  BLOCKING(moved_read, MPI_File_read_all, HERE);
  NONBLOCKING(moved_read, MPI_File_iread, HERE);
  NONBLOCKING(moved_read, MPI_File_iread_all, HERE);
  SPLIT(moved_read, MPI_File_read_all_begin, MPI_File_read_all_end, HERE);
  BLOCKING(moved_read, MPI_File_read_shared, HERE);
  NONBLOCKING(moved_read, MPI_File_iread_shared, HERE);
  BLOCKING(moved_read, MPI_File_read_ordered, HERE);
  SPLIT(moved_read, MPI_File_read_ordered_begin, MPI_File_read_ordered_end, HERE);
  LARGE(BLOCKING(moved_read, MPI_File_read_at_c, AT); BLOCKING(moved_read, MPI_File_read_at_all_c, AT);
        NONBLOCKING(moved_read, MPI_File_iread_at_c, AT); NONBLOCKING(moved_read, MPI_File_iread_at_all_c, AT);
        SPLIT(moved_read, MPI_File_read_at_all_begin_c, MPI_File_read_at_all_end, AT);
        BLOCKING(moved_read, MPI_File_read_c, HERE); BLOCKING(moved_read, MPI_File_read_all_c, HERE);
        NONBLOCKING(moved_read, MPI_File_iread_c, HERE); NONBLOCKING(moved_read, MPI_File_iread_all_c, HERE);
        SPLIT(moved_read, MPI_File_read_all_begin_c, MPI_File_read_all_end, HERE);
        BLOCKING(moved_read, MPI_File_read_shared_c, HERE); NONBLOCKING(moved_read, MPI_File_iread_shared_c, HERE);
        BLOCKING(moved_read, MPI_File_read_ordered_c, HERE);
        SPLIT(moved_read, MPI_File_read_ordered_begin_c, MPI_File_read_ordered_end, HERE);)
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  // The file is so long that no read below reaches its end.
  check(MPI_File_set_size(file, (MPI_Offset)64 * BLOCK * size), "MPI_File_set_size");
  write_all_ways();
  check(MPI_File_sync(file), "MPI_File_sync");
  calls += 1;
  check(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
  check(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "MPI_File_seek_shared");
  read_all_ways();
  check(MPI_File_close(&file), "MPI_File_close");
  if (rank == 0) printf("calls %lld read %lld written %lld\n", calls, moved_read, moved_written);
  MPI_Finalize();
  return 0;
}
