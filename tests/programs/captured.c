/* An application whose stages are known: 40 iterations of computing (rank 1 three times as much as rank 0), an
 * allreduce of 8 bytes, an allgatherv of 3000 bytes of which rank 1 has two thirds, and messages with the neighbours.
 * Each tenth iteration writes twice 64 KiB with all ranks together, and 4 times 1000 bytes to a file of its own.
 *
 *   captured DIRECTORY
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { iterations = 40, period = 10, least_ns = 1000000 };

static long cpu_ns(void) {
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void compute(long ns) {
  const long end = cpu_ns() + ns;
  while (cpu_ns() < end) continue;
}

static char shared_data[65536], own_data[1000], message[512];

static void exchange(int rank, int size) {
  MPI_Request requests[4];
  char received[2][sizeof message];
  int count = 0;
  for (int side = -1; side <= 1; side += 2) {
    const int peer = (rank + side + size) % size;
    MPI_Irecv(received[side > 0], sizeof message, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    MPI_Isend(message, sizeof message, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[count++]);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void write_out(MPI_File file, int own, int rank) {
  for (int i = 0; i < 2; i++)
    MPI_File_write_at_all(file, (MPI_Offset)rank * sizeof shared_data, shared_data, sizeof shared_data, MPI_CHAR,
                          MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; i++)
    if (write(own, own_data, sizeof own_data) != sizeof own_data) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char path[4096];
  snprintf(path, sizeof path, "%s/own-%d", argv[1], rank);
  const int own = open(path, O_WRONLY | O_CREAT, 0600);
  snprintf(path, sizeof path, "%s/shared", argv[1]);
  MPI_File file;
  if (own < 0 || MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file))
    MPI_Abort(MPI_COMM_WORLD, 1);
  int* counts = malloc(2 * (size_t)size * sizeof *counts);
  for (int i = 0; i < size; i++) {
    counts[i] = i == 1 ? 2000 : 1000 / (size > 1 ? size - 1 : 1);
    counts[size + i] = i == 0 ? 0 : counts[size + i - 1] + counts[i - 1];
  }
  char whole[8192];
  double sum = 1;
  for (int it = 1; it <= iterations; it++) {
    compute(rank == 1 ? 3 * least_ns : least_ns);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, whole, counts, counts + size, MPI_CHAR, MPI_COMM_WORLD);
    exchange(rank, size);
    if (it % period == 0) write_out(file, own, rank);
  }
  free(counts);
  MPI_File_close(&file);
  close(own);
  MPI_Finalize();
  return 0;
}
