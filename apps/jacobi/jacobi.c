// Solves a dense system A x = b by Jacobi iteration, with a checkpoint of the whole state every so many iterations.
//
// Each rank holds a block of rows; an iteration is a product with its rows, an Allgatherv of x and an Allreduce of the
// residual. The checkpoints are collective MPI-IO. `jacobi --help` lists the options.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state_file.h"

static const char kHelp[] =
    "jacobi: solve a dense, strictly diagonally dominant system with Jacobi iteration\n"
    "  mpiexec -n RANKS jacobi --system FILE [--generate N [--seed S]] [options]\n"
    "  mpiexec -n RANKS jacobi --restart FILE [options]\n"
    "\n"
    "  --system FILE           the system (format: state_file.h)\n"
    "  --generate N            make a system of N unknowns with solution x_i = (i + 1) / N, and write it to FILE "
    "first\n"
    "  --seed S                of the generated system (1)\n"
    "  --restart FILE          go on from a checkpoint, bit for bit as if it had not stopped\n"
    "  --iterations N          stop at this iteration (1000); 0: only read or generate the system\n"
    "  --tolerance T           stop when the residual is at most T times the norm of b (1e-10; 0: never)\n"
    "  --checkpoint-every K    write a checkpoint every K iterations (0: none) …\n"
    "  --checkpoint-dir D      … as D/checkpoint-ITERATION.jacobi\n"
    "  --chunk-bytes B         at most B bytes a rank in one collective call (1073741824)\n"
    "  --verify                read each checkpoint back and compare it byte for byte\n"
    "  --iteration-time S      make an iteration last S seconds at least by sleeping, to stand for more computing (0)\n"
    "  --print-every K         print the residual every K iterations (10)\n"
    "\n"
    "The last line on stdout is a summary in JSON. Exit code: 0; 1 if something failed; 2 for bad arguments or "
    "files.\n";

struct options {
  const char *system, *restart, *checkpoint_dir;
  uint64_t generate, seed, iterations, checkpoint_every, print_every, chunk_bytes;
  double tolerance, iteration_time;
  int verify, help;
};

struct sums {
  double checkpoint_s, padded_s;
  uint64_t checkpoints, verified;
};

// ---- options: parsed alike by every rank, complained about by rank 0 -----------------------------------------------

static char bad[1024];  // what is wrong with the arguments; "": nothing

static uint64_t whole(const char* name, const char* text, uint64_t low, uint64_t high) {
  char* end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno || *end || text[0] < '0' || text[0] > '9' || value < low || value > high)
    snprintf(bad, sizeof bad, "--%s %s: give a whole number from %llu to %llu", name, text, (unsigned long long)low,
             (unsigned long long)high);
  return value;
}

static double real(const char* name, const char* text, double high) {
  char* end;
  double value = strtod(text, &end);
  if (*end || end == text || !(value >= 0 && value <= high))
    snprintf(bad, sizeof bad, "--%s %s: give a number from 0 to %g", name, text, high);
  return value;
}

static const struct option kOptions[] = {{"system", required_argument, 0, 's'},
                                         {"generate", required_argument, 0, 'g'},
                                         {"seed", required_argument, 0, 'S'},
                                         {"restart", required_argument, 0, 'r'},
                                         {"iterations", required_argument, 0, 'i'},
                                         {"tolerance", required_argument, 0, 't'},
                                         {"checkpoint-every", required_argument, 0, 'k'},
                                         {"checkpoint-dir", required_argument, 0, 'd'},
                                         {"chunk-bytes", required_argument, 0, 'c'},
                                         {"verify", no_argument, 0, 'v'},
                                         {"iteration-time", required_argument, 0, 'T'},
                                         {"print-every", required_argument, 0, 'p'},
                                         {"help", no_argument, 0, 'h'},
                                         {0, 0, 0, 0}};

static void set_option(struct options* o, int key, const char* name) {
  switch (key) {
    case 's': o->system = optarg; break;
    case 'g': o->generate = whole(name, optarg, 1, STATE_N_MAX); break;
    case 'S': o->seed = whole(name, optarg, 0, UINT64_MAX); break;
    case 'r': o->restart = optarg; break;
    case 'i': o->iterations = whole(name, optarg, 0, UINT64_MAX - 1); break;
    case 't': o->tolerance = real(name, optarg, 1); break;
    case 'k': o->checkpoint_every = whole(name, optarg, 0, UINT64_MAX); break;
    case 'd': o->checkpoint_dir = optarg; break;
    case 'c': o->chunk_bytes = whole(name, optarg, 1, INT64_C(1) << 30); break;
    case 'v': o->verify = 1; break;
    case 'T': o->iteration_time = real(name, optarg, 3600); break;
    case 'p': o->print_every = whole(name, optarg, 1, UINT64_MAX); break;
    case 'h': o->help = 1; break;
    default: break;
  }
}

static void check_together(const struct options* o) {
  if (bad[0] || o->help) return;
  if (!o->system == !o->restart) snprintf(bad, sizeof bad, "give either --system FILE or --restart FILE (see --help)");
  if (o->generate && !o->system)
    snprintf(bad, sizeof bad, "--generate needs --system FILE, where the system is written");
  if (o->checkpoint_every && !o->checkpoint_dir)
    snprintf(bad, sizeof bad, "--checkpoint-every needs --checkpoint-dir DIRECTORY");
  if (o->checkpoint_dir && strlen(o->checkpoint_dir) > 900)
    snprintf(bad, sizeof bad, "--checkpoint-dir: the path is longer than 900 bytes");
}

static void parse(struct options* o, int argc, char** argv) {
  *o = (struct options){
      .seed = 1, .iterations = 1000, .tolerance = 1e-10, .print_every = 10, .chunk_bytes = UINT64_C(1) << 30};
  opterr = 0;
  int index = 0;
  for (int key; !bad[0] && (key = getopt_long(argc, argv, ":", kOptions, &index)) != -1;) {
    if (key == ':') snprintf(bad, sizeof bad, "%s needs a value (see --help)", argv[optind - 1]);
    if (key == '?') snprintf(bad, sizeof bad, "unknown option %s (see --help)", argv[optind - 1]);
    set_option(o, key, kOptions[index].name);
  }
  if (!bad[0] && optind < argc) snprintf(bad, sizeof bad, "unexpected argument %s (see --help)", argv[optind]);
  check_together(o);
}

// ---- one iteration -------------------------------------------------------------------------------------------------

// x_block = x + D^-1 (b - A x) for this rank's rows; returns its part of the squared norm of b - A x.
static double sweep(const struct state* s, const double* x, double* x_block) {
  double square = 0;
  for (uint64_t row = 0; row < s->rows; row++) {
    const double* a = record(s, row) + 2;
    uint64_t i = s->first_row + row;
    double r = a[-1];
    for (uint64_t j = 0; j < s->header.n; j++) r -= a[j] * x[j];
    x_block[row] = x[i] + r / a[i];
    square += r * r;
  }
  return square;
}

static double norm(double square) {
  double sum;
  MPI_Allreduce(&square, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(sum);
}

// The x of all ranks, from their blocks.
static void gather(const struct state* s, const double* x_block, double* x, const int* counts, const int* starts) {
  MPI_Allgatherv(x_block, (int)s->rows, MPI_DOUBLE, x, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
}

// Sleeps until `seconds` after `start`; returns how long.
static double pad(double start, double seconds) {
  double left = start + seconds - MPI_Wtime();
  if (left <= 0) return 0;
  struct timespec rest = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  while (nanosleep(&rest, &rest) < 0 && errno == EINTR) continue;
  return left;
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

static int checkpoint(const struct state* s, const struct options* o, struct sums* sums) {
  char path[1024];
  snprintf(path, sizeof path, "%s/checkpoint-%06llu.jacobi", o->checkpoint_dir,
           (unsigned long long)s->header.iteration);
  double start = MPI_Wtime();
  int failure = state_write(s, path, (int64_t)o->chunk_bytes);
  double seconds = MPI_Wtime() - start;
  if (!failure && o->verify) failure = state_verify(s, path);
  if (failure) return failure;
  sums->checkpoint_s += seconds;
  sums->checkpoints++;
  sums->verified += (uint64_t)o->verify;
  if (s->rank == 0)
    printf("checkpoint %llu file %s bytes %llu seconds %.6f%s\n", (unsigned long long)s->header.iteration, path,
           (unsigned long long)state_file_bytes(s->header.n), seconds, o->verify ? " verified" : "");
  return JACOBI_OK;
}

// ---- the run -------------------------------------------------------------------------------------------------------

struct work {
  double *x, *x_block;  // all of x, and the block of this rank
  int *counts, *starts;
  double b_norm;
};

static int prepare(struct work* w, const struct state* s) {
  w->x = calloc(s->header.n, sizeof *w->x);
  w->x_block = calloc(s->rows + 1, sizeof *w->x_block);
  w->counts = calloc((size_t)s->ranks, sizeof *w->counts);
  w->starts = calloc((size_t)s->ranks, sizeof *w->starts);
  if (any_failed(w->x && w->x_block && w->counts && w->starts ? "" : "no memory for x: use a smaller system"))
    return JACOBI_FAILED;
  for (int rank = 0; rank < s->ranks; rank++) {
    uint64_t first_row, rows;
    block_of(s->header.n, s->ranks, rank, &first_row, &rows);
    w->counts[rank] = (int)rows;
    w->starts[rank] = (int)first_row;
  }
  double square = 0;
  for (uint64_t row = 0; row < s->rows; row++) {
    w->x_block[row] = record(s, row)[0];
    square += record(s, row)[1] * record(s, row)[1];
  }
  w->b_norm = norm(square);
  gather(s, w->x_block, w->x, w->counts, w->starts);
  return JACOBI_OK;
}

static void iterate(struct state* s, struct work* w) {
  s->header.residual = norm(sweep(s, w->x, w->x_block));
  s->header.iteration++;
  for (uint64_t row = 0; row < s->rows; row++) record(s, row)[0] = w->x_block[row];
  gather(s, w->x_block, w->x, w->counts, w->starts);
}

static int solve(struct state* s, struct work* w, const struct options* o, struct sums* sums) {
  int failure = JACOBI_OK, converged = 0;
  while (!failure && !converged && s->header.iteration < o->iterations) {
    double start = MPI_Wtime();
    iterate(s, w);
    sums->padded_s += pad(start, o->iteration_time);
    uint64_t done = s->header.iteration;
    converged = s->header.residual <= o->tolerance * w->b_norm;
    if (s->rank == 0 && (done % o->print_every == 0 || done == o->iterations || converged))
      printf("iteration %llu residual %.9e\n", (unsigned long long)done, s->header.residual);
    if (o->checkpoint_every && done % o->checkpoint_every == 0) failure = checkpoint(s, o, sums);
  }
  return failure;
}

static void summarise(const struct state* s, const struct work* w, const struct options* o, const struct sums* sums,
                      double seconds) {
  double residual = norm(sweep(s, w->x, w->x_block));  // of the x that it ends with
  double padded_s;
  MPI_Reduce(&sums->padded_s, &padded_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (s->rank != 0) return;
  printf("{\"jacobi\": 1, \"n\": %llu, \"ranks\": %d, \"iterations\": %llu, \"residual\": %.17g, \"b_norm\": %.17g, ",
         (unsigned long long)s->header.n, s->ranks, (unsigned long long)s->header.iteration, residual, w->b_norm);
  printf("\"seconds\": %.6f, \"checkpoints\": %llu, \"checkpoint_seconds\": %.6f, \"checkpoint_bytes\": %llu, ",
         seconds, (unsigned long long)sums->checkpoints, sums->checkpoint_s,
         (unsigned long long)(sums->checkpoints * state_file_bytes(s->header.n)));
  printf("\"verified\": %llu, \"iteration_time_s\": %g, \"padded_seconds\": %.6f}\n",
         (unsigned long long)sums->verified, o->iteration_time, padded_s);
}

static int start_state(struct state* s, const struct options* o) {
  int failure;
  if (o->generate) {
    failure = state_generate(s, o->generate, o->seed);
    return failure ? failure : state_write(s, o->system, (int64_t)o->chunk_bytes);
  }
  failure = state_read(s, o->restart ? o->restart : o->system, (int64_t)o->chunk_bytes);
  char text[1024] = "";
  if (!failure && o->system && s->header.iteration > 0 && s->rank == 0)
    snprintf(text, sizeof text, "%.900s is a checkpoint of iteration %llu, not a system: use --restart", o->system,
             (unsigned long long)s->header.iteration);
  return !failure && any_failed(text) ? JACOBI_BAD_INPUT : failure;
}

static int run(const struct options* o) {
  struct state s = {0};
  struct work w = {0};
  struct sums sums = {0};
  double start = MPI_Wtime();
  int failure = start_state(&s, o);
  if (!failure) failure = prepare(&w, &s);
  if (!failure) failure = solve(&s, &w, o, &sums);
  if (!failure) summarise(&s, &w, o, &sums, MPI_Wtime() - start);
  free(w.x);
  free(w.x_block);
  free(w.counts);
  free(w.starts);
  state_free(&s);
  return failure;
}

int main(int argc, char** argv) {
  struct options options;
  int rank, code = JACOBI_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  setvbuf(stdout, NULL, _IOLBF, 0);
  parse(&options, argc, argv);
  if (any_failed(rank == 0 ? bad : ""))
    code = JACOBI_BAD_INPUT;
  else if (!options.help)
    code = run(&options);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
