/* The same as jacobi.c, with a number of processes that grows and shrinks. */
#define _DEFAULT_SOURCE
#include <hocket/malleable.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 200 };

/* Ends the program if a call has failed. */
static int check(int status) {
  if (status >= 0) return status;
  fprintf(stderr, "jacobi: %s\n", hocket_error_text(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
  return status;
}

/* The block of each process, as HOCKET_MALLEABLE_BLOCK distributes rows. */
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
  hocket_malleable* job;
  double *a, *x;
  int64_t first, count, it;
  MPI_Datatype row;
  MPI_Init(&argc, &argv);
  const int iterations = argc > 1 ? atoi(argv[1]) : 40;
  MPI_Type_contiguous(N, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  check(hocket_malleable_create(&job));
  check(hocket_malleable_array(job, "a", row, N, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_CONSTANT, &a));
  check(hocket_malleable_array(job, "x", MPI_DOUBLE, N, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_VARIABLE, &x));
  check(hocket_malleable_range(job, "a", -1, &first, &count));
  if (!hocket_malleable_joined(job)) fill(a, (int)first, (int)count);
  check(hocket_malleable_begin(job, 0));
  while (check(hocket_malleable_next(job, iterations, &it)) > 0) {
    iterate(hocket_malleable_comm(job), a, x, (int)it + 1); /* a, x and the communicator may be new each time */
  }
  hocket_malleable_free(&job);
  MPI_Type_free(&row);
  MPI_Finalize();
  return 0;
}
