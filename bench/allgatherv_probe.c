/* Gathers equal parts of BYTES in every rank, COUNT times, and prints the seconds of all of them: the application whose
 * emulation `./dev bench emulator` compares (Proteo, Tables 1 and 2).
 *
 *   allgatherv_probe BYTES COUNT
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long bytes = atol(argv[1]), count = atol(argv[2]);
  int* counts = malloc(2 * (size_t)size * sizeof *counts);
  char* whole = malloc((size_t)bytes);
  char* own = malloc((size_t)(bytes / size + 1));
  if (!counts || !whole || !own) MPI_Abort(MPI_COMM_WORLD, 1);
  int* firsts = counts + size;
  for (int i = 0; i < size; i++) {
    counts[i] = (int)(bytes / size + (i < bytes % size));
    firsts[i] = i ? firsts[i - 1] + counts[i - 1] : 0;
  }
  memset(own, rank, (size_t)counts[rank]);
  memset(whole, 0, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long i = 0; i < count; i++)
    MPI_Allgatherv(own, counts[rank], MPI_CHAR, whole, counts, firsts, MPI_CHAR, MPI_COMM_WORLD);
  if (rank == 0) printf("%.6f\n", MPI_Wtime() - start);
  free(own);
  free(whole);
  free(counts);
  MPI_Finalize();
  return 0;
}
