// Solves a dense system A x = b by Jacobi iteration, with regular checkpoints of the whole state.
//
// Each rank holds a block of rows, by its speed. An iteration is a product with these rows, an Allgatherv of x, and an
// Allreduce of the residual. Checkpoints use collective MPI-IO. The program is malleable: the number of ranks can
// change between two iterations. `jacobi --help` lists the options.
#define _GNU_SOURCE
#include <getopt.h>
#include <hocket/malleable.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curve.h"
#include "exact_sum.h"
#include "program.h"
#include "state_file.h"

const char kProgram[] = "jacobi";

static const char kHelp[] =
    "jacobi: solve a dense, strictly diagonally dominant system with Jacobi iteration\n"
    "  mpiexec -n RANKS jacobi --system FILE [--generate N [--seed S]] [options]\n"
    "  mpiexec -n RANKS jacobi --restart FILE [options]\n"
    "\n"
    "  --system FILE           the system (format: state_file.h)\n"
    "  --generate N            make a system of N unknowns with solution x_i = (i + 1) / N, and write it to FILE "
    "first\n"
    "  --seed S                seed of the generated system (1)\n"
    "  --restart FILE          continue from a checkpoint, bit for bit as if it had not stopped\n"
    "  --iterations N          stop at this iteration (1000); 0: only read or generate the system\n"
    "  --tolerance T           stop when the residual is at most T times the norm of b (1e-10; 0: never)\n"
    "  --checkpoint-every K    write a checkpoint every K iterations (0: none) …\n"
    "  --checkpoint-dir D      … as D/checkpoint-ITERATION.jacobi\n"
    "  --chunk-bytes B         at most B bytes a rank in one collective call (1073741824)\n"
    "  --verify                read each checkpoint back and compare it byte for byte\n"
    "  --iteration-time S      make an iteration last at least S seconds by sleeping, in place of more computing (0)\n"
    "  --emulate CURVE         the same by number of processes: \"1:0.4,2:0.21,4:0.12\" means 0.4 s for an iteration\n"
    "                          of one process; linear in the logarithms between points, constant above the last one,\n"
    "                          as for evenly divided work below the first. Processes sleep for the rest of the time,\n"
    "                          so few cores carry many of them; the computing, the I/O and the resizes are real\n"
    "  --jitter J              with --emulate: each iteration's time is up to J times longer or shorter (0), evenly …\n"
    "  --jitter-seed S         … drawn from S and the iteration's number (1)\n"
    "  --slow-rank R:FACTOR    rank R computes its rows FACTOR times (whole, 1 to 1000) in each iteration, as if its "
    "core\n"
    "                          were that much slower; the results are the same\n"
    "  --print-every K         print the residual every K iterations (10)\n"
    "\n"
    "It is malleable: hocket resize, HOCKET_RESIZE and the like change the number of processes (docs/malleable.md).\n"
    "The last line on stdout is a summary in JSON. Exit code: 0; 1 if something failed; 2 for bad arguments or "
    "files.\n";

// The values of the options. Strings point into argv.
struct options {
  const char *system, *restart, *checkpoint_dir;
  uint64_t generate, seed, iterations, checkpoint_every, print_every, chunk_bytes;
  uint64_t jitter_seed;
  uint64_t slow_rank, slow_factor;  // factor 1: no rank is slow
  double tolerance, iteration_time, jitter;
  struct curve emulate;
  int verify, help;
};

// ---- options: every rank parses them, one reports errors --------------------------------------------------------

static char bad[TEXT];  // error message about the arguments; "": none

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
                                         {"emulate", required_argument, 0, 'e'},
                                         {"jitter", required_argument, 0, 'j'},
                                         {"jitter-seed", required_argument, 0, 'J'},
                                         {"slow-rank", required_argument, 0, 'w'},
                                         {"print-every", required_argument, 0, 'p'},
                                         {"help", no_argument, 0, 'h'},
                                         {0, 0, 0, 0}};

// Reads the value "RANK:FACTOR".
static void set_slow_rank(struct options* o, const char* name, const char* text) {
  char rank[32];
  const char* colon = strchr(text, ':');
  if (!colon || (size_t)(colon - text) >= sizeof rank) {
    snprintf(bad, sizeof bad, "--%s %.100s is not of the form RANK:FACTOR (see --help)", name, text);
    return;
  }
  snprintf(rank, sizeof rank, "%.*s", (int)(colon - text), text);
  o->slow_rank = whole_number(bad, name, rank, 0, INT_MAX);
  if (!bad[0]) o->slow_factor = whole_number(bad, name, colon + 1, 1, 1000);
}

static void set_option(struct options* o, int key, const char* name) {
  switch (key) {
    case 's': o->system = optarg; break;
    case 'g': o->generate = whole_number(bad, name, optarg, 1, STATE_N_MAX); break;
    case 'S': o->seed = whole_number(bad, name, optarg, 0, UINT64_MAX); break;
    case 'r': o->restart = optarg; break;
    case 'i': o->iterations = whole_number(bad, name, optarg, 0, INT64_MAX); break;
    case 't': o->tolerance = real_number(bad, name, optarg, 0, 1); break;
    case 'k': o->checkpoint_every = whole_number(bad, name, optarg, 0, UINT64_MAX); break;
    case 'd': o->checkpoint_dir = optarg; break;
    case 'c': o->chunk_bytes = whole_number(bad, name, optarg, 1, INT64_C(1) << 30); break;
    case 'v': o->verify = 1; break;
    case 'T': o->iteration_time = real_number(bad, name, optarg, 0, 3600); break;
    case 'e': curve_parse(&o->emulate, bad, name, optarg); break;
    case 'j': o->jitter = real_number(bad, name, optarg, 0, 1); break;
    case 'J': o->jitter_seed = whole_number(bad, name, optarg, 0, UINT64_MAX); break;
    case 'w': set_slow_rank(o, name, optarg); break;
    case 'p': o->print_every = whole_number(bad, name, optarg, 1, UINT64_MAX); break;
    case 'h': o->help = 1; break;
    default: break;
  }
}

// Checks options that depend on each other.
static void check_together(const struct options* o) {
  if (bad[0] || o->help) return;
  if (!o->system == !o->restart) snprintf(bad, sizeof bad, "give either --system FILE or --restart FILE (see --help)");
  if (o->generate && !o->system)
    snprintf(bad, sizeof bad, "--generate needs --system FILE, where the system is written");
  if (o->checkpoint_every && !o->checkpoint_dir)
    snprintf(bad, sizeof bad, "--checkpoint-every needs --checkpoint-dir DIRECTORY");
  if (o->emulate.points && o->iteration_time > 0)
    snprintf(bad, sizeof bad, "give either --emulate CURVE or --iteration-time S");
  if (o->jitter > 0 && !o->emulate.points) snprintf(bad, sizeof bad, "--jitter needs --emulate CURVE");
  if (o->checkpoint_dir && strlen(o->checkpoint_dir) > 900)
    snprintf(bad, sizeof bad, "--checkpoint-dir: the path is longer than 900 bytes");
}

// Parses the options; every rank gets the same values.
static void parse(struct options* o, int argc, char** argv) {
  *o = (struct options){.seed = 1,
                        .jitter_seed = 1,
                        .slow_factor = 1,
                        .iterations = 1000,
                        .tolerance = 1e-10,
                        .print_every = 10,
                        .chunk_bytes = UINT64_C(1) << 30};
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

// ---- state that depends on the processes ---------------------------------------------------------------------------

// Values that are the same in all ranks and add up over the run. They survive resizes, as libhocket replicates them.
struct sums {
  double started_s, b_norm, checkpoint_s, padded_s;
  uint64_t checkpoints, verified;
};

// The state of a process, new or old. `job` owns the registered arrays.
struct run {
  const struct options* options;
  hocket_malleable* job;
  MPI_Datatype equation_type;
  struct state state;
  struct sums* sums;
  double* whole;         // x of all rows
  int *counts, *starts;  // rows of each rank, and its first row
  double iteration_s;    // minimum duration of an iteration with the present ranks
};

// Registers the arrays; every process registers the same ones. The equations are constant, so an asynchronous resize
// can move them while the sources compute. The rows are weighted: a slower rank gets fewer.
static int register_arrays(struct run* run, uint64_t n) {
  struct state* s = &run->state;
  hocket_malleable* job = run->job;
  const int64_t rows = (int64_t)n;
  MPI_Type_contiguous((int)n + 1, MPI_DOUBLE, &run->equation_type);
  MPI_Type_commit(&run->equation_type);
  int status = hocket_malleable_array(job, "equations", run->equation_type, rows, HOCKET_MALLEABLE_WEIGHTED,
                                      HOCKET_MALLEABLE_CONSTANT, &s->equations);
  if (!status)
    status =
        hocket_malleable_array(job, "x", MPI_DOUBLE, rows, HOCKET_MALLEABLE_WEIGHTED, HOCKET_MALLEABLE_VARIABLE, &s->x);
  if (!status)
    status = hocket_malleable_array(job, "header", MPI_BYTE, sizeof *s->header, HOCKET_MALLEABLE_REPLICATED,
                                    HOCKET_MALLEABLE_VARIABLE, &s->header);
  if (!status)
    status = hocket_malleable_array(job, "sums", MPI_BYTE, sizeof *run->sums, HOCKET_MALLEABLE_REPLICATED,
                                    HOCKET_MALLEABLE_VARIABLE, &run->sums);
  // An iteration is a product with the matrix, and for each row the new x and the square of the residual.
  if (!status) status = hocket_malleable_declare_flop(job, 2.0 * (double)n * (double)n + 4.0 * (double)n);
  return status;
}

// Frees what depends on the communicator.
static void forget_ranks(struct run* run) {
  free(run->whole);
  free(run->counts);
  free(run->starts);
  run->whole = NULL;
  run->counts = run->starts = NULL;
}

// Reads the present communicator and the rows of each rank, and allocates the memory for them. Collective over the
// present processes.
static int learn_ranks(struct run* run, uint64_t n) {
  struct state* s = &run->state;
  int ranks;
  forget_ranks(run);
  s->comm = hocket_malleable_comm(run->job);
  MPI_Comm_rank(s->comm, &s->rank);
  MPI_Comm_size(s->comm, &ranks);
  run->whole = calloc(n, sizeof *run->whole);
  run->counts = calloc((size_t)ranks, sizeof *run->counts);
  run->starts = calloc((size_t)ranks, sizeof *run->starts);
  if (any_failed(s->comm, run->whole && run->counts && run->starts ? "" : "no memory for x: use a smaller system"))
    return PROGRAM_FAILED;
  run->iteration_s =
      run->options->emulate.points ? curve_seconds(&run->options->emulate, ranks) : run->options->iteration_time;
  s->most_rows = 0;
  for (int rank = 0; rank < ranks; rank++) {
    int64_t first, count;
    hocket_malleable_range(run->job, "x", rank, &first, &count);
    run->starts[rank] = (int)first;
    run->counts[rank] = (int)count;
    if ((uint64_t)count > s->most_rows) s->most_rows = (uint64_t)count;
  }
  s->first_row = (uint64_t)run->starts[s->rank];
  s->rows = (uint64_t)run->counts[s->rank];
  return PROGRAM_OK;
}

// Gathers x of all ranks in run->whole.
static void gather(struct run* run) {
  const struct state* s = &run->state;
  MPI_Allgatherv(s->x, (int)s->rows, MPI_DOUBLE, run->whole, run->counts, run->starts, MPI_DOUBLE, s->comm);
}

// ---- one iteration -------------------------------------------------------------------------------------------------

// Returns row `row` of b - A x.
static double defect(const struct run* run, uint64_t row) {
  const double *b = equation(&run->state, row), *a = b + 1;
  double r = *b;
  for (uint64_t j = 0; j < run->state.header->n; j++) r -= a[j] * run->whole[j];
  return r;
}

// Returns the root of the sum over all ranks. It is the same, bit for bit, for any number of ranks.
static double norm(const struct run* run, const struct exact_sum* squares) {
  return sqrt(exact_total(squares, run->state.comm));
}

// Computes the rows of the rank of --slow-rank again and again, before the iteration that counts.
static void slow_down(const struct run* run) {
  const struct options* o = run->options;
  volatile double forgotten = 0;
  if ((uint64_t)run->state.rank != o->slow_rank) return;
  for (uint64_t again = 1; again < o->slow_factor; again++)
    for (uint64_t row = 0; row < run->state.rows; row++) forgotten = defect(run, row);
  (void)forgotten;
}

// Does x = x + D^-1 (b - A x) for this rank's rows, and gathers the result.
static void iterate(struct run* run) {
  struct state* s = &run->state;
  slow_down(run);
  struct exact_sum squares = {0};
  for (uint64_t row = 0; row < s->rows; row++) {
    const uint64_t i = s->first_row + row;
    const double r = defect(run, row);
    s->x[row] = run->whole[i] + r / equation(s, row)[1 + i];
    exact_add(&squares, r * r);
  }
  s->header->residual = norm(run, &squares);
  s->header->iteration++;
  gather(run);
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

// Writes a checkpoint. The time of --verify is not part of the checkpoint's time.
static int checkpoint(struct run* run) {
  const struct state* s = &run->state;
  const struct options* o = run->options;
  char path[1024];
  snprintf(path, sizeof path, "%s/checkpoint-%06llu.jacobi", o->checkpoint_dir,
           (unsigned long long)s->header->iteration);
  double start = MPI_Wtime();
  int failure = state_write(s, path, (int64_t)o->chunk_bytes);
  double seconds = MPI_Wtime() - start;
  if (!failure && o->verify) failure = state_verify(s, path);
  if (failure) return failure;
  run->sums->checkpoint_s += seconds;
  run->sums->checkpoints++;
  run->sums->verified += (uint64_t)o->verify;
  if (s->rank == 0)
    printf("checkpoint %llu file %s bytes %llu seconds %.6f%s\n", (unsigned long long)s->header->iteration, path,
           (unsigned long long)state_file_bytes(s->header->n), seconds, o->verify ? " verified" : "");
  return PROGRAM_OK;
}

// ---- the run -------------------------------------------------------------------------------------------------------

// Generates or reads the system. Only the first processes do this.
static int fill(struct run* run, const struct state_header* header) {
  struct state* s = &run->state;
  const struct options* o = run->options;
  int failure = learn_ranks(run, header->n);
  if (failure) return failure;
  *s->header = *header;
  if (o->generate) {
    state_generate(s, o->seed);
    failure = state_write(s, o->system, (int64_t)o->chunk_bytes);
  } else {
    failure = state_read(s, o->restart ? o->restart : o->system, (int64_t)o->chunk_bytes);
  }
  struct exact_sum squares = {0};
  for (uint64_t row = 0; !failure && row < s->rows; row++)
    exact_add(&squares, equation(s, row)[0] * equation(s, row)[0]);
  if (!failure) run->sums->b_norm = norm(run, &squares);
  return failure;
}

// Reads the header of the file, or makes one for a system to be generated.
static int read_header(struct state_header* header, const struct options* o) {
  char text[TEXT] = "";
  *header = state_new(o->generate);
  if (o->generate) return PROGRAM_OK;
  const int failure = state_read_header(header, o->restart ? o->restart : o->system, MPI_COMM_WORLD);
  if (!failure && o->system && header->iteration > 0)
    snprintf(text, sizeof text, "%.900s is a checkpoint of iteration %llu, not a system: use --restart", o->system,
             (unsigned long long)header->iteration);
  return !failure && any_failed(MPI_COMM_WORLD, text) ? PROGRAM_BAD_INPUT : failure;
}

// Sets up the job. Processes that join later receive the system from the first ones.
static int start(struct run* run) {
  struct state_header header;
  char text[TEXT] = "";
  const double started_s = wall_clock_s();
  int failure = read_header(&header, run->options);
  if (failure) return failure;
  malleable_failure(text, register_arrays(run, header.n), "register the arrays");
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  if (!hocket_malleable_joined(run->job)) {
    failure = fill(run, &header);
    if (failure) return failure;
    run->sums->started_s = started_s;
  }
  // It fails in all first processes or in none.
  malleable_failure(text, hocket_malleable_begin(run->job, (int64_t)header.iteration), "begin");
  return text[0] && any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// The residual is that of the x before the last iteration, so convergence is noticed one iteration late.
static int converged(const struct run* run) {
  const struct state_header* h = run->state.header;
  return h->iteration > 0 && h->residual <= run->options->tolerance * run->sums->b_norm;
}

static int finished(const struct run* run) {
  return converged(run) || run->state.header->iteration >= run->options->iterations;
}

// Returns a factor between 1 - jitter and 1 + jitter. It depends on the iteration only (splitmix64), so it is the
// same in every process and with any resizes.
static double jitter_of(const struct options* o, uint64_t iteration) {
  uint64_t z = (o->jitter_seed << 32) + iteration * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  z ^= z >> 31;
  return 1 + o->jitter * ((double)(z >> 11) * 0x1p-52 - 1);
}

// Does one iteration with its sleep, output and checkpoint.
static int step(struct run* run) {
  const struct options* o = run->options;
  const struct state_header* h = run->state.header;
  const double begin = MPI_Wtime();
  iterate(run);
  run->sums->padded_s += sleep_until(begin, run->iteration_s * jitter_of(o, h->iteration));
  if (run->state.rank == 0 && (h->iteration % o->print_every == 0 || finished(run)))
    printf("iteration %llu residual %.9e\n", (unsigned long long)h->iteration, h->residual);
  return o->checkpoint_every && h->iteration % o->checkpoint_every == 0 ? checkpoint(run) : PROGRAM_OK;
}

// Adopts the present processes and their rows.
static int settle(struct run* run) {
  const int failure = learn_ranks(run, run->state.header->n);
  if (!failure) gather(run);
  return failure;
}

// Iterates until the solution has converged, the last iteration is done, or this process leaves.
static int solve(struct run* run) {
  const int64_t last = (int64_t)run->options->iterations;
  int failure = PROGRAM_OK, now = 0;
  int64_t iteration;
  while (!failure && (now = hocket_malleable_next(run->job, last, &iteration)) > 0) {
    if (now == HOCKET_MALLEABLE_RESIZED) failure = settle(run);
    if (failure || converged(run)) break;  // the run of a checkpoint may have converged
    failure = step(run);
    if (converged(run)) break;
  }
  // This is still to be done if there were no iterations, or if a resize that was pending at their end made all new.
  return failure || now != 0 || hocket_malleable_left(run->job) ? failure : settle(run);
}

// Prints the summary with the residual of the final x.
static void summarise(const struct run* run) {
  const struct state* s = &run->state;
  const struct sums* sums = run->sums;
  struct exact_sum squares = {0};
  double padded_s;
  int ranks;
  for (uint64_t row = 0; row < s->rows; row++) {
    const double r = defect(run, row);
    exact_add(&squares, r * r);
  }
  const double residual = norm(run, &squares);  // residual of the final x
  MPI_Comm_size(s->comm, &ranks);
  MPI_Reduce(&sums->padded_s, &padded_s, 1, MPI_DOUBLE, MPI_MAX, 0, s->comm);
  if (s->rank != 0) return;
  printf("{\"jacobi\": 1, \"n\": %llu, \"ranks\": %d, \"iterations\": %llu, \"residual\": %.17g, \"b_norm\": %.17g, ",
         (unsigned long long)s->header->n, ranks, (unsigned long long)s->header->iteration, residual, sums->b_norm);
  printf("\"seconds\": %.6f, \"checkpoints\": %llu, \"checkpoint_seconds\": %.6f, \"checkpoint_bytes\": %llu, ",
         wall_clock_s() - sums->started_s, (unsigned long long)sums->checkpoints, sums->checkpoint_s,
         (unsigned long long)(sums->checkpoints * state_file_bytes(s->header->n)));
  printf("\"verified\": %llu, \"emulated\": %s, \"iteration_time_s\": %g, \"padded_seconds\": %.6f}\n",
         (unsigned long long)sums->verified, run->options->emulate.points ? "true" : "false", run->iteration_s,
         padded_s);
}

static int run_job(const struct options* o) {
  struct run run = {.options = o, .equation_type = MPI_DATATYPE_NULL};
  char text[TEXT] = "";
  malleable_failure(text, hocket_malleable_create(&run.job), "start as a malleable program");
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  int failure = start(&run);
  if (!failure) failure = solve(&run);
  if (!failure && !hocket_malleable_left(run.job)) summarise(&run);
  forget_ranks(&run);
  hocket_malleable_free(&run.job);
  if (run.equation_type != MPI_DATATYPE_NULL) MPI_Type_free(&run.equation_type);
  return failure;
}

int main(int argc, char** argv) {
  struct options options;
  int rank, provided, code = PROGRAM_OK;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);  // some methods of resizing use threads
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  setvbuf(stdout, NULL, _IOLBF, 0);
  parse(&options, argc, argv);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!options.help)
    code = run_job(&options);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
