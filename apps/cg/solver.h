// The conjugate gradient method on rows shared out over processes (Proteo, section 5.1): an iteration is an Allgatherv
// of the direction p, a product of the matrix with it, and two Allreduce.
//
// The sums over all rows are exact (exact_sum.h), so that the numbers are bit for bit the same for any number of
// processes and however often that changes.
#pragma once

#include "matrix.h"

// What all processes know alike.
enum { CG_RHO, CG_B_NORM, CG_CURVATURE, CG_FLOP, CG_STARTED_S, CG_PADDED_S, CG_SCALARS };

// The parts of b, x, r, p that go with the rows, and the scalars: all that an iteration needs of the one before.
struct cg {
  struct matrix matrix;
  double *b, *x, *r, *p;
  double* scalars;  // CG_SCALARS of them: r·r, the norm of b, p·Ap of the last iteration; floating-point operations of
                    // an iteration; wall clock at the start, and the time slept in iterations, in seconds
};

// What is made anew wherever the rows or the processes are new.
struct cg_scratch {
  MPI_Comm comm;
  int *counts, *firsts;  // rows of each rank
  double *whole, *q;     // a vector of all rows, and A p
};

// Starts from x = 0 with b = A (1, …, 1). Collective.
void cg_start(struct cg* cg, struct cg_scratch* scratch);

// One iteration. Returns 1, or 0 if p·Ap is not above 0: the matrix is not positive definite (x stays). Collective.
int cg_iterate(struct cg* cg, struct cg_scratch* scratch);

// The 2-norm of b - A x, and the largest |x_i - 1|. Collective.
void cg_check(const struct cg* cg, struct cg_scratch* scratch, double* residual, double* error);

// The 2-norm of a vector that goes with the rows. Collective.
double cg_norm(const double* part, int64_t count, MPI_Comm comm);
