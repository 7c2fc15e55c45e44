// Solves a sparse system A x = b by the conjugate gradient method (Proteo, section 5.1), and grows and shrinks
// meanwhile. The right side is b = A (1, …, 1), so the solution is known. `cg --help` lists the options.
#include <errno.h>
#include <hocket/malleable.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "program.h"
#include "solver.h"

const char kProgram[] = "cg";

// The state of a process, new or old. `job` owns the registered arrays of `cg`.
struct run {
  const struct options* options;
  hocket_malleable* job;
  struct cg cg;
  struct cg_scratch scratch;
  uint64_t iteration;  // completed iterations
};

// ---- memory --------------------------------------------------------------------------------------------------------

// Makes room for this process's part of the matrix (matrix_reserve of matrix.h).
static int reserve(struct matrix* m, int64_t nonzeros, void* job) {
  (void)m;  // libhocket sets its pointers, which are registered
  return hocket_malleable_csr_reserve(job, "A", nonzeros) == HOCKET_OK;
}

// Registers the matrix and the vectors that are distributed like its rows. Every process registers the same arrays. A
// and b are constant, so an asynchronous resize can move them while the sources compute.
static int register_arrays(hocket_malleable* job, struct cg* cg, const struct options* o) {
  struct matrix* m = &cg->matrix;
  int like_rows;
  int status = hocket_malleable_csr(job, "A", m->n, o->by_nonzeros ? HOCKET_MALLEABLE_NONZEROS : HOCKET_MALLEABLE_BLOCK,
                                    HOCKET_MALLEABLE_CONSTANT, &m->starts, MPI_INT32_T, &m->columns, MPI_DOUBLE,
                                    &m->values, &like_rows);
  if (!status)
    status = hocket_malleable_array(job, "b", MPI_DOUBLE, m->n, like_rows, HOCKET_MALLEABLE_CONSTANT, &cg->b);
  if (!status)
    status = hocket_malleable_array(job, "x", MPI_DOUBLE, m->n, like_rows, HOCKET_MALLEABLE_VARIABLE, &cg->x);
  if (!status)
    status = hocket_malleable_array(job, "r", MPI_DOUBLE, m->n, like_rows, HOCKET_MALLEABLE_VARIABLE, &cg->r);
  if (!status)
    status = hocket_malleable_array(job, "p", MPI_DOUBLE, m->n, like_rows, HOCKET_MALLEABLE_VARIABLE, &cg->p);
  if (!status)
    status = hocket_malleable_array(job, "scalars", MPI_DOUBLE, CG_SCALARS, HOCKET_MALLEABLE_REPLICATED,
                                    HOCKET_MALLEABLE_VARIABLE, &cg->scalars);
  return status;
}

static void scratch_free(struct cg_scratch* s) {
  free(s->counts);
  free(s->firsts);
  free(s->whole);
  free(s->q);
  *s = (struct cg_scratch){0};
}

// Reads the present communicator and distribution of rows, and allocates the scratch memory for them. Collective over
// the present processes.
static int settle(struct run* run) {
  struct cg_scratch* s = &run->scratch;
  struct matrix* m = &run->cg.matrix;
  int ranks;
  scratch_free(s);
  s->comm = hocket_malleable_comm(run->job);
  MPI_Comm_size(s->comm, &ranks);
  hocket_malleable_range(run->job, "A", -1, &m->first, &m->count);
  s->counts = calloc((size_t)ranks, sizeof *s->counts);
  s->firsts = calloc((size_t)ranks, sizeof *s->firsts);
  s->whole = calloc((size_t)m->n, sizeof *s->whole);
  s->q = calloc((size_t)m->count + 1, sizeof *s->q);
  if (any_failed(s->comm, s->counts && s->firsts && s->whole && s->q ? "" : "no memory for the vectors"))
    return PROGRAM_FAILED;
  for (int rank = 0; rank < ranks; rank++) {
    int64_t first, count;
    hocket_malleable_range(run->job, "A", rank, &first, &count);
    s->firsts[rank] = (int)first;
    s->counts[rank] = (int)count;
  }
  return PROGRAM_OK;
}

// ---- the run -------------------------------------------------------------------------------------------------------

// Sets up the job. The first processes read or generate the system, and processes that join later receive it from
// them.
static int start(struct run* run) {
  const double started_s = wall_clock_s();
  const struct options* o = run->options;
  struct cg* cg = &run->cg;
  char text[TEXT] = "";
  int failure = matrix_size(&o->source, &cg->matrix.n, MPI_COMM_WORLD);
  if (failure) return failure;
  malleable_failure(text, register_arrays(run->job, cg, o), "register the arrays");
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  if (!hocket_malleable_joined(run->job)) {
    failure = settle(run);
    if (!failure) failure = matrix_fill(&cg->matrix, &o->source, reserve, run->job, MPI_COMM_WORLD);
    if (failure) return failure;
    cg_start(cg, &run->scratch);
    cg->scalars[CG_STARTED_S] = started_s;
    hocket_malleable_declare_flop(run->job, cg->scalars[CG_FLOP]);
  }
  // Processes that joined receive their data here.
  // It fails in all first processes or in none.
  malleable_failure(text, hocket_malleable_begin(run->job, 0), "begin");
  return text[0] && any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// The recurrence gives the residual's square in CG_RHO, so the test costs no further sum.
static int converged(const struct run* run) {
  const double* scalars = run->cg.scalars;
  return sqrt(scalars[CG_RHO]) <= run->options->tolerance * scalars[CG_B_NORM];
}

static int finished(const struct run* run) { return run->iteration >= run->options->iterations || converged(run); }

// Does one iteration. Sleeps up to --iteration-time, and prints the residual now and then.
static int iterate(struct run* run) {
  const struct options* o = run->options;
  struct cg* cg = &run->cg;
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(run->scratch.comm, &rank);
  const double begin = MPI_Wtime();
  if (run->iteration == 0) cg->scalars[CG_ITERATES_S] = wall_clock_s();
  if (!cg_iterate(cg, &run->scratch)) {
    snprintf(text, sizeof text,
             "the matrix is not positive definite: p·Ap is %g in iteration %llu; try --dominant or --shift D",
             cg->scalars[CG_CURVATURE], (unsigned long long)run->iteration + 1);
    any_failed(run->scratch.comm, text);
    return PROGRAM_FAILED;
  }
  run->iteration++;
  cg->scalars[CG_PADDED_S] += sleep_until(begin, o->iteration_time);
  if (rank == 0 && (run->iteration % o->print_every == 0 || finished(run)))
    printf("iteration %llu residual %.9e\n", (unsigned long long)run->iteration, sqrt(cg->scalars[CG_RHO]));
  return PROGRAM_OK;
}

// Prints the summary with the true residual, computed from x instead of by the recurrence.
static void summarise(struct run* run) {
  const struct cg* cg = &run->cg;
  struct cg_scratch* s = &run->scratch;
  double residual, error, padded_s;
  int rank, ranks;
  MPI_Comm_rank(s->comm, &rank);
  MPI_Comm_size(s->comm, &ranks);
  cg_check(cg, s, &residual, &error);
  const double x_norm = cg_norm(cg, cg->x, s->comm);
  int64_t nonzeros = cg->matrix.starts[cg->matrix.count];
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &nonzeros, &nonzeros, 1, MPI_INT64_T, MPI_SUM, 0, s->comm);
  MPI_Reduce(&cg->scalars[CG_PADDED_S], &padded_s, 1, MPI_DOUBLE, MPI_MAX, 0, s->comm);
  if (rank != 0) return;
  printf("{\"cg\": 1, \"n\": %lld, \"nonzeros\": %lld, \"ranks\": %d, \"iterations\": %llu, \"residual\": %.17g, ",
         (long long)cg->matrix.n, (long long)nonzeros, ranks, (unsigned long long)run->iteration, residual);
  printf("\"b_norm\": %.17g, \"error\": %.17g, \"x_norm\": %.17g, ", cg->scalars[CG_B_NORM], error, x_norm);
  const double now_s = wall_clock_s();
  printf("\"sums\": \"%s\", \"seconds\": %.6f, \"iterating_seconds\": %.6f, ", cg->plain_sums ? "plain" : "exact",
         now_s - cg->scalars[CG_STARTED_S], run->iteration > 0 ? now_s - cg->scalars[CG_ITERATES_S] : 0);
  printf("\"iteration_time_s\": %g, \"padded_seconds\": %.6f}\n", run->options->iteration_time, padded_s);
}

// Writes x to a file; rank 0 gathers it.
static int write_x(const struct cg* cg, struct cg_scratch* s, const char* path) {
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(s->comm, &rank);
  MPI_Gatherv(cg->x, (int)cg->matrix.count, MPI_DOUBLE, s->whole, s->counts, s->firsts, MPI_DOUBLE, 0, s->comm);
  if (rank == 0) {
    FILE* file = fopen(path, "w");
    for (int64_t i = 0; file && i < cg->matrix.n; i++) fprintf(file, "%.17g\n", s->whole[i]);
    const int failed = !file || ferror(file);
    if ((file && fclose(file) != 0) || failed)
      snprintf(text, sizeof text, "cannot write %.3000s: %s", path, strerror(errno));
  }
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// Iterates until convergence, the last iteration, or until this process is no longer needed.
static int solve(struct run* run) {
  const int64_t last = (int64_t)run->options->iterations;
  int failure = start(run), now = 0;
  int64_t iteration = 0;
  while (!failure && (now = hocket_malleable_next(run->job, last, &iteration)) > 0) {
    run->iteration = (uint64_t)iteration;
    if (now == HOCKET_MALLEABLE_RESIZED) failure = settle(run);
    if (failure || converged(run)) break;
    // A process that joined knows the number only now.
    if (now == HOCKET_MALLEABLE_RESIZED) hocket_malleable_declare_flop(run->job, run->cg.scalars[CG_FLOP]);
    failure = iterate(run);
    if (converged(run)) break;
  }
  if (failure || hocket_malleable_left(run->job)) return failure;
  // This is still to be done if there were no iterations, or if a resize that was pending at their end made all new.
  if (now == 0) {
    run->iteration = (uint64_t)iteration;
    failure = settle(run);
  }
  if (failure) return failure;
  if (run->options->write_x) failure = write_x(&run->cg, &run->scratch, run->options->write_x);
  if (!failure) summarise(run);
  return failure;
}

static int run_job(const struct options* o) {
  struct run run = {.options = o, .cg.plain_sums = o->plain_sums};
  char text[TEXT] = "";
  malleable_failure(text, hocket_malleable_create(&run.job), "start as a malleable program");
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  const int failure = solve(&run);
  scratch_free(&run.scratch);
  hocket_malleable_free(&run.job);
  return failure;
}

int main(int argc, char** argv) {
  struct options options;
  char bad[TEXT] = "";
  int rank, provided, code = PROGRAM_OK;
  // Some methods of resizing use threads.
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  setvbuf(stdout, NULL, _IOLBF, 0);
  options_parse(&options, argc, argv, bad);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!options.help)
    code = run_job(&options);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
