// Solves a sparse system A x = b by the conjugate gradient method (Proteo, section 5.1), and grows and shrinks while it
// does so. b = A (1, …, 1), so that the solution is known. `cg --help` lists the options.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix_market.h"
#include "program.h"
#include "solver.h"

const char kProgram[] = "cg";

static const char kHelp[] =
    "cg: solve a sparse, symmetric, positive definite system with the conjugate gradient method\n"
    "  mpiexec -n RANKS cg --matrix FILE [options]\n"
    "  mpiexec -n RANKS cg --stencil N [options]\n"
    "\n"
    "  --matrix FILE           a sparse matrix in Matrix Market format, .mtx or .mtx.gz; of a general one the\n"
    "                          symmetric part (A + A^T) / 2 is taken; entries of a pattern are 1\n"
    "  --stencil N             the 27-point stencil on N x N x N points: diagonal 26, the others -1\n"
    "  --dominant              make the diagonal 1 + the sum of the row's other entries without their signs, so that\n"
    "                          any matrix is positive definite (for patterns)\n"
    "  --shift D               add D to the diagonal (0)\n"
    "  --iterations N          stop at this iteration (1000)\n"
    "  --tolerance T           stop when the residual is at most T times the norm of b (1e-10; 0: never)\n"
    "  --iteration-time S      make an iteration last S seconds at least by sleeping, to stand for more computing (0)\n"
    "  --print-every K         print the residual every K iterations (10)\n"
    "  --write-x FILE          write the solution, a number a line\n"
    "\n"
    "The last line on stdout is a summary in JSON. Exit code: 0; 1 if something failed; 2 for bad arguments or "
    "files.\n";

struct options {
  struct matrix_source source;
  const char* write_x;
  uint64_t iterations, print_every;
  double tolerance, iteration_time;
  int help;
};

// ---- options: parsed alike by every process, complained about by one -----------------------------------------------

static char bad[TEXT];  // what is wrong with the arguments; "": nothing

static const struct option kOptions[] = {{"matrix", required_argument, 0, 'm'},
                                         {"stencil", required_argument, 0, 's'},
                                         {"dominant", no_argument, 0, 'd'},
                                         {"shift", required_argument, 0, 'D'},
                                         {"iterations", required_argument, 0, 'i'},
                                         {"tolerance", required_argument, 0, 't'},
                                         {"iteration-time", required_argument, 0, 'T'},
                                         {"print-every", required_argument, 0, 'p'},
                                         {"write-x", required_argument, 0, 'x'},
                                         {"help", no_argument, 0, 'h'},
                                         {0, 0, 0, 0}};

static void set_option(struct options* o, int key, const char* name) {
  switch (key) {
    case 'm': o->source.path = optarg; break;
    case 's': o->source.points = (int64_t)whole_number(bad, name, optarg, 1, MATRIX_POINTS); break;
    case 'd': o->source.dominant = 1; break;
    case 'D': o->source.shift = real_number(bad, name, optarg, -1e300, 1e300); break;
    case 'i': o->iterations = whole_number(bad, name, optarg, 0, INT64_MAX); break;
    case 't': o->tolerance = real_number(bad, name, optarg, 0, 1); break;
    case 'T': o->iteration_time = real_number(bad, name, optarg, 0, 3600); break;
    case 'p': o->print_every = whole_number(bad, name, optarg, 1, INT64_MAX); break;
    case 'x': o->write_x = optarg; break;
    case 'h': o->help = 1; break;
    default: break;
  }
}

static void parse(struct options* o, int argc, char** argv) {
  *o = (struct options){.iterations = 1000, .tolerance = 1e-10, .print_every = 10};
  opterr = 0;
  int index = 0;
  for (int key; !bad[0] && (key = getopt_long(argc, argv, ":", kOptions, &index)) != -1;) {
    if (key == ':') snprintf(bad, sizeof bad, "%s needs a value (see --help)", argv[optind - 1]);
    if (key == '?') snprintf(bad, sizeof bad, "unknown option %s (see --help)", argv[optind - 1]);
    set_option(o, key, kOptions[index].name);
  }
  if (!bad[0] && optind < argc) snprintf(bad, sizeof bad, "unexpected argument %s (see --help)", argv[optind]);
  if (!bad[0] && !o->help && !o->source.path == !o->source.points)
    snprintf(bad, sizeof bad, "give either --matrix FILE or --stencil N (see --help)");
}

// ---- memory --------------------------------------------------------------------------------------------------------

static int reserve(struct matrix* m, int64_t nonzeros, void* context) {
  (void)context;
  m->columns = calloc((size_t)nonzeros + 1, sizeof *m->columns);
  m->values = calloc((size_t)nonzeros + 1, sizeof *m->values);
  return m->columns && m->values;
}

static int allocate(struct cg* cg) {
  static double scalars[CG_SCALARS];
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct matrix* m = &cg->matrix;
  const int64_t each = m->n / ranks, more = m->n % ranks;
  m->count = each + (rank < more);
  m->first = rank * each + (rank < more ? rank : more);
  m->starts = calloc((size_t)m->count + 1, sizeof *m->starts);
  double* vectors = calloc(4 * ((size_t)m->count + 1), sizeof *vectors);
  if (any_failed(MPI_COMM_WORLD, m->starts && vectors ? "" : "no memory for the vectors: use more processes"))
    return PROGRAM_FAILED;
  cg->b = vectors;
  cg->x = cg->b + m->count;
  cg->r = cg->x + m->count;
  cg->p = cg->r + m->count;
  cg->scalars = scalars;
  return PROGRAM_OK;
}

static void scratch_free(struct cg_scratch* s) {
  free(s->counts);
  free(s->firsts);
  free(s->whole);
  free(s->q);
  *s = (struct cg_scratch){0};
}

// Makes the scratch anew for the processes and rows of now.
static int scratch_make(struct cg_scratch* s, const struct cg* cg, MPI_Comm comm) {
  int ranks, count = (int)cg->matrix.count, first = (int)cg->matrix.first;
  MPI_Comm_size(comm, &ranks);
  scratch_free(s);
  s->comm = comm;
  s->counts = calloc((size_t)ranks, sizeof *s->counts);
  s->firsts = calloc((size_t)ranks, sizeof *s->firsts);
  s->whole = calloc((size_t)cg->matrix.n, sizeof *s->whole);
  s->q = calloc((size_t)count + 1, sizeof *s->q);
  if (any_failed(comm, s->counts && s->firsts && s->whole && s->q ? "" : "no memory for the vectors"))
    return PROGRAM_FAILED;
  MPI_Allgather(&count, 1, MPI_INT, s->counts, 1, MPI_INT, comm);
  MPI_Allgather(&first, 1, MPI_INT, s->firsts, 1, MPI_INT, comm);
  return PROGRAM_OK;
}

// ---- the run -------------------------------------------------------------------------------------------------------

static int converged(const struct cg* cg, const struct options* o) {
  return sqrt(cg->scalars[CG_RHO]) <= o->tolerance * cg->scalars[CG_B_NORM];
}

static int solve(struct cg* cg, struct cg_scratch* s, const struct options* o, uint64_t* iteration) {
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(s->comm, &rank);
  while (*iteration < o->iterations && !converged(cg, o)) {
    const double start = MPI_Wtime();
    if (!cg_iterate(cg, s)) {
      snprintf(text, sizeof text,
               "the matrix is not positive definite: p·Ap is %g in iteration %llu; try --dominant or --shift D",
               cg->scalars[CG_CURVATURE], (unsigned long long)*iteration + 1);
      break;
    }
    ++*iteration;
    cg->scalars[CG_PADDED_S] += sleep_until(start, o->iteration_time);
    if (rank == 0 && (*iteration % o->print_every == 0 || *iteration == o->iterations || converged(cg, o)))
      printf("iteration %llu residual %.9e\n", (unsigned long long)*iteration, sqrt(cg->scalars[CG_RHO]));
  }
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

static void summarise(const struct cg* cg, struct cg_scratch* s, const struct options* o, uint64_t iterations) {
  double residual, error, padded_s;
  int rank, ranks;
  MPI_Comm_rank(s->comm, &rank);
  MPI_Comm_size(s->comm, &ranks);
  cg_check(cg, s, &residual, &error);
  const double x_norm = cg_norm(cg->x, cg->matrix.count, s->comm);
  int64_t nonzeros = cg->matrix.starts[cg->matrix.count];
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &nonzeros, &nonzeros, 1, MPI_INT64_T, MPI_SUM, 0, s->comm);
  MPI_Reduce(&cg->scalars[CG_PADDED_S], &padded_s, 1, MPI_DOUBLE, MPI_MAX, 0, s->comm);
  if (rank != 0) return;
  printf("{\"cg\": 1, \"n\": %lld, \"nonzeros\": %lld, \"ranks\": %d, \"iterations\": %llu, \"residual\": %.17g, ",
         (long long)cg->matrix.n, (long long)nonzeros, ranks, (unsigned long long)iterations, residual);
  printf("\"b_norm\": %.17g, \"error\": %.17g, \"x_norm\": %.17g, ", cg->scalars[CG_B_NORM], error, x_norm);
  printf("\"seconds\": %.6f, \"iteration_time_s\": %g, \"padded_seconds\": %.6f}\n",
         wall_clock_s() - cg->scalars[CG_STARTED_S], o->iteration_time, padded_s);
}

// Rank 0 gets x and writes it.
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

static int run(const struct options* o) {
  struct cg cg = {0};
  struct cg_scratch s = {0};
  uint64_t iteration = 0;
  const double start = wall_clock_s();
  int failure = matrix_size(&o->source, &cg.matrix.n, MPI_COMM_WORLD);
  if (!failure) failure = allocate(&cg);
  if (!failure) failure = matrix_fill(&cg.matrix, &o->source, reserve, NULL, MPI_COMM_WORLD);
  if (!failure) failure = scratch_make(&s, &cg, MPI_COMM_WORLD);
  if (!failure) {
    cg_start(&cg, &s);
    cg.scalars[CG_STARTED_S] = start;
    failure = solve(&cg, &s, o, &iteration);
  }
  if (!failure && o->write_x) failure = write_x(&cg, &s, o->write_x);
  if (!failure) summarise(&cg, &s, o, iteration);
  scratch_free(&s);
  free(cg.matrix.starts);
  free(cg.matrix.columns);
  free(cg.matrix.values);
  free(cg.b);
  return failure;
}

int main(int argc, char** argv) {
  struct options options;
  int rank, provided, code = PROGRAM_OK;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  setvbuf(stdout, NULL, _IOLBF, 0);
  parse(&options, argc, argv);
  if (any_failed(MPI_COMM_WORLD, rank == 0 ? bad : ""))
    code = PROGRAM_BAD_INPUT;
  else if (!options.help)
    code = run(&options);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
