#include "solver.h"

#include <math.h>

#include "exact_sum.h"

// Returns the inner product over all rows as a sum of doubles. Like other solvers, it relies on MPI_Allreduce giving
// every process the same bits, so that all stop in the same iteration.
static double plain_dot(const double* a, const double* b, int64_t count, MPI_Comm comm) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  return sum;
}

// Returns the inner product over all rows, the same in every process. Collective.
static double dot(const struct cg* cg, const double* a, const double* b, MPI_Comm comm) {
  const int64_t count = cg->matrix.count;
  if (cg->plain_sums) return plain_dot(a, b, count, comm);
  struct exact_sum sum = {0};
  for (int64_t i = 0; i < count; i++) exact_add(&sum, a[i] * b[i]);
  return exact_total(&sum, comm);
}

double cg_norm(const struct cg* cg, const double* part, MPI_Comm comm) { return sqrt(dot(cg, part, part, comm)); }

// Computes this process's rows of A times `whole`.
static void multiply(const struct matrix* m, const double* whole, double* product) {
  for (int64_t i = 0; i < m->count; i++) {
    double sum = 0;
    for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++) sum += m->values[k] * whole[m->columns[k]];
    product[i] = sum;
  }
}

// Gathers a distributed vector in every process, in s->whole.
static void gather(const struct cg* cg, struct cg_scratch* s, const double* part) {
  MPI_Allgatherv(part, (int)cg->matrix.count, MPI_DOUBLE, s->whole, s->counts, s->firsts, MPI_DOUBLE, s->comm);
}

void cg_start(struct cg* cg, struct cg_scratch* s) {
  const int64_t rows = cg->matrix.count;
  for (int64_t i = 0; i < cg->matrix.n; i++) s->whole[i] = 1;
  multiply(&cg->matrix, s->whole, cg->b);
  for (int64_t i = 0; i < rows; i++) cg->x[i] = 0;
  for (int64_t i = 0; i < rows; i++) cg->r[i] = cg->p[i] = cg->b[i];
  cg->scalars[CG_RHO] = dot(cg, cg->r, cg->r, s->comm);
  cg->scalars[CG_B_NORM] = sqrt(cg->scalars[CG_RHO]);
  double nonzeros = (double)cg->matrix.starts[rows];
  MPI_Allreduce(MPI_IN_PLACE, &nonzeros, 1, MPI_DOUBLE, MPI_SUM, s->comm);
  // An iteration needs 2 operations for each nonzero, and 10 for each row: two inner products and three vector
  // updates.
  cg->scalars[CG_FLOP] = 2 * nonzeros + 10.0 * (double)cg->matrix.n;
}

int cg_iterate(struct cg* cg, struct cg_scratch* s) {
  const int64_t rows = cg->matrix.count;
  double *rho = &cg->scalars[CG_RHO], *curvature = &cg->scalars[CG_CURVATURE];
  gather(cg, s, cg->p);
  multiply(&cg->matrix, s->whole, s->q);
  *curvature = dot(cg, cg->p, s->q, s->comm);
  if (!(*curvature > 0)) return 0;  // also false for NaN
  const double alpha = *rho / *curvature;
  for (int64_t i = 0; i < rows; i++) {
    cg->x[i] += alpha * cg->p[i];
    cg->r[i] -= alpha * s->q[i];
  }
  const double before = *rho;
  *rho = dot(cg, cg->r, cg->r, s->comm);
  for (int64_t i = 0; i < rows; i++) cg->p[i] = cg->r[i] + *rho / before * cg->p[i];
  return 1;
}

void cg_check(const struct cg* cg, struct cg_scratch* s, double* residual, double* error) {
  const int64_t rows = cg->matrix.count;
  double mine = 0;
  gather(cg, s, cg->x);
  multiply(&cg->matrix, s->whole, s->q);
  for (int64_t i = 0; i < rows; i++) {
    s->q[i] = cg->b[i] - s->q[i];
    mine = fmax(mine, fabs(cg->x[i] - 1));
  }
  *residual = cg_norm(cg, s->q, s->comm);
  MPI_Allreduce(&mine, error, 1, MPI_DOUBLE, MPI_MAX, s->comm);
}
