#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int any_failed(MPI_Comm comm, const char* text) {
  int rank, ranks, lowest;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  // A rank without failure contributes a number above all ranks, so the minimum is the lowest rank that failed.
  int mine = text[0] ? rank : ranks;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, comm);
  if (lowest == rank && lowest < ranks) fprintf(stderr, "%s: %s\n", kProgram, text);
  return lowest < ranks;
}

void mpi_failure(char* text, int code, const char* what, const char* path) {
  char why[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, why, &length);
  // Messages are one line, and some MPI libraries put line ends into theirs.
  for (char* c = why; *c; c++)
    if (*c == '\n') *c = ' ';
  snprintf(text, TEXT, "cannot %s %s: %s", what, path, why);
}

uint64_t whole_number(char* bad, const char* name, const char* text, uint64_t low, uint64_t high) {
  char* end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  // strtoull accepts a sign and leading blanks, hence the check of the first character.
  if (errno || *end || text[0] < '0' || text[0] > '9' || value < low || value > high)
    snprintf(bad, TEXT, "--%s %s: give a whole number from %llu to %llu", name, text, (unsigned long long)low,
             (unsigned long long)high);
  return value;
}

double real_number(char* bad, const char* name, const char* text, double low, double high) {
  char* end;
  double value = strtod(text, &end);
  if (*end || end == text || !(value >= low && value <= high))
    snprintf(bad, TEXT, "--%s %s: give a number from %g to %g", name, text, low, high);
  return value;
}

double sleep_until(double start, double seconds) {
  double left = start + seconds - MPI_Wtime();
  if (left <= 0) return 0;
  struct timespec rest = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  // A signal may end the sleep early; `rest` then holds what is left.
  while (nanosleep(&rest, &rest) < 0 && errno == EINTR) continue;
  return left;
}

double wall_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
