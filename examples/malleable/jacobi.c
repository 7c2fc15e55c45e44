/* Jacobi iteration for A x = (1, …, 1): each process holds a block of the rows of A and of x. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 200 };

/* The block of each process. */
static void share_out(MPI_Comm comm, int* rank, int* ranks, int counts[], int firsts[]) {
  MPI_Comm_rank(comm, rank);
  MPI_Comm_size(comm, ranks);
  for (int r = 0, first = 0; r < *ranks; first += counts[r++]) {
    counts[r] = N / *ranks + (r < N % *ranks);
    firsts[r] = first;
  }
}

static void fill(double* a, int first, int count) {
  for (int i = 0; i < count; i++)
    for (int j = 0; j < N; j++) a[i * N + j] = first + i == j ? 16 : 1.0 / (1 + abs(first + i - j));
}

static void iterate(MPI_Comm comm, const double* a, double* x, int iteration) {
  static double whole[N];
  static int counts[N], firsts[N];
  int rank, ranks;
  double mine = 0, residual;
  share_out(comm, &rank, &ranks, counts, firsts);
  MPI_Allgatherv(x, counts[rank], MPI_DOUBLE, whole, counts, firsts, MPI_DOUBLE, comm);
  for (int i = 0; i < counts[rank]; i++) {
    double r = 1;
    for (int j = 0; j < N; j++) r -= a[i * N + j] * whole[j];
    x[i] += r / a[i * N + firsts[rank] + i];
    mine = fmax(mine, fabs(r));
  }
  MPI_Allreduce(&mine, &residual, 1, MPI_DOUBLE, MPI_MAX, comm);
  usleep(50000); /* stands for more work */
  if (rank == 0 && iteration % 10 == 0) {
    printf("iteration %3d, %d processes: residual %.6e\n", iteration, ranks, residual);
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  int counts[N], firsts[N], rank, ranks;
  MPI_Init(&argc, &argv);
  const int iterations = argc > 1 ? atoi(argv[1]) : 40;
  share_out(MPI_COMM_WORLD, &rank, &ranks, counts, firsts);
  double* a = calloc((size_t)counts[rank] * N, sizeof *a);
  double* x = calloc((size_t)counts[rank], sizeof *x);
  fill(a, firsts[rank], counts[rank]);
  for (int it = 0; it < iterations; it++) {
    iterate(MPI_COMM_WORLD, a, x, it + 1);
  }
  free(a);
  free(x);
  MPI_Finalize();
  return 0;
}
