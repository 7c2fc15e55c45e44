// log_probe FILE SECONDS EVERY_S BYTES: an MPI program that appends to a log all the time (`./dev bench regret`).
//
// Every rank computes by sleeping, and appends a line of BYTES to FILE every EVERY_S seconds. It writes as many lines
// as fit into SECONDS, so slower appends make the program longer.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void compute(double seconds) {
  struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&rest, &rest) < 0 && errno == EINTR) continue;
}

// Appends one line of exactly `bytes` bytes. Returns 0 on failure. O_APPEND keeps lines of several ranks apart.
static int append(int log, char* line, size_t bytes, int rank, long number) {
  memset(line, '.', bytes);
  snprintf(line, bytes, "rank %d, line %ld", rank, number);
  line[bytes - 1] = '\n';
  return write(log, line, bytes) == (ssize_t)bytes;
}

int main(int argc, char** argv) {
  int rank, failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 5) {
    if (rank == 0) fputs("usage: log_probe FILE SECONDS EVERY_S BYTES\n", stderr);
    MPI_Finalize();
    return 2;
  }
  const double every_s = atof(argv[3]);
  const long lines = (long)(atof(argv[2]) / every_s);
  const size_t bytes = (size_t)atol(argv[4]);
  char* line = malloc(bytes);
  const int log = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
  // A line shorter than 64 bytes might not hold its number.
  failed = !line || bytes < 64 || log < 0;
  for (long i = 0; i < lines && !failed; i++) {
    compute(every_s);
    failed = !append(log, line, bytes, rank, i);
  }
  if (failed) fprintf(stderr, "log_probe: rank %d cannot append to %s: %s\n", rank, argv[1], strerror(errno));
  if (log >= 0) close(log);
  free(line);
  // All ranks return the same exit code.
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
