/* puts_in_turn FILE MS: each rank puts 4 MiB into its part of the file, sleeps for MS ms, stores them, gets them, and
 * says what went wrong, if anything. */
#define _DEFAULT_SOURCE
#include <hocket/file.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4 << 20 };
static char put[BYTES], got[BYTES];

static void check(int status) {
  if (status < 0) fprintf(stderr, "puts_in_turn: %s\n", hocket_error_text(status));
}

int main(int argc, char** argv) {
  int rank;
  int64_t bytes = 0;
  hocket_file* file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(put, 'a' + rank, BYTES);
  check(hocket_file_open(argv[1], HOCKET_FILE_READ | HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &file));
  check(hocket_file_put(file, (int64_t)rank * BYTES, put, BYTES));
  usleep((useconds_t)(atoi(argv[2]) * 1000));
  check(hocket_file_flush(file));
  check(hocket_file_get(file, (int64_t)rank * BYTES, got, BYTES, &bytes));
  check(hocket_file_close(file));
  if (bytes != BYTES || memcmp(put, got, BYTES) != 0) fprintf(stderr, "puts_in_turn: rank %d got other bytes\n", rank);
  MPI_Finalize();
  return 0;
}
