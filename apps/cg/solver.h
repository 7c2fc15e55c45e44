// The conjugate gradient method on distributed rows (Proteo, section 5.1). An iteration is an Allgatherv of the
// direction p, a product with the matrix, and two Allreduce.
//
// Sums over all rows are exact (exact_sum.h), unless they are plain. So the numbers are the same, bit for bit, for any
// number of processes and any resizes. Exact sums cost a multiple of plain ones, which a program without that promise
// would use.
#pragma once

#include "matrix.h"

// Indices of the scalars, which have the same value in every process.
enum { CG_RHO, CG_B_NORM, CG_CURVATURE, CG_FLOP, CG_STARTED_S, CG_ITERATES_S, CG_PADDED_S, CG_SCALARS };

// The state between two iterations: the parts of b, x, r and p that belong to the rows, and the scalars.
struct cg {
  struct matrix matrix;
  int plain_sums;  // sums are sums of doubles; the same in each process
  double *b, *x, *r, *p;
  // CG_SCALARS values: r·r, the norm of b, p·Ap of the last iteration, floating-point operations of an iteration,
  // wall clock at the start and in the first iteration in seconds, and the time slept in iterations in seconds.
  double* scalars;
};

// Memory that depends on the communicator and the rows. It is allocated again after each resize.
struct cg_scratch {
  MPI_Comm comm;
  int *counts, *firsts;  // rows of each rank, and its first row
  double *whole, *q;     // a vector of all rows, and A p of this process's rows
};

// Sets x = 0 and b = A (1, …, 1). Collective.
void cg_start(struct cg* cg, struct cg_scratch* scratch);

// Does one iteration. Returns 1, or 0 if p·Ap is not above 0: then the matrix is not positive definite, and x stays.
// Collective.
int cg_iterate(struct cg* cg, struct cg_scratch* scratch);

// Computes the 2-norm of b - A x, and the largest |x_i - 1|. Collective.
void cg_check(const struct cg* cg, struct cg_scratch* scratch, double* residual, double* error);

// Returns the 2-norm of a vector that is distributed like the rows. Collective.
double cg_norm(const struct cg* cg, const double* part, MPI_Comm comm);
