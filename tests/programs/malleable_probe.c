// A malleable program that checks every element at every iteration, for the tests of malleability.
//
//   malleable_probe ITERATIONS LENGTH [ITERATION_MS]
//
// It registers a variable block array, a constant block array, a weighted array, a replicated variable array, a sparse
// matrix with rows distributed by nonzeros, and an array distributed like its rows; also a block-cyclic array, a
// two-dimensional one, one whose owners the program lists, and one in the program's own memory. Rank 0 prints
// "iteration I processes N" after each resize, and at the end "ok ITERATIONS processes N sum S". A wrong number ends it
// with exit code 3.
//
// The environment holds settings that tests need:
//   PROBE_BALANCE=1           rank 0 reports half the speed of the others after each fifth iteration; its lines also
//                             have its share
//   PROBE_BALANCE=once        the same after the fifth iteration only
//   PROBE_WORK="A B"          each iteration computes (sleeps) A ns for each weighted element in rank 0, B ns in the
//                             others; the lines of rank 0 also have its share
//   PROBE_RESIZES=N           end two iterations after the N-th resize (not with PROBE_BALANCE or HOCKET_PROCESSES)
//   PROBE_USAGE=1             the lines of rank 0 also have its descriptors and KiB of memory; at start and end it
//                             prints how many communicators it can make
//   PROBE_HOLD=DIRECTORY      while DIRECTORY/WHERE exists, a process prints "held WHERE PID" and waits. WHERE is
//                             "init" (any process, before MPI_Init), "begin" (one that joined, before it meets the
//                             others), or an iteration's number (rank 0, before it; the others wait in a control point)
//   PROBE_END=FILE            end when FILE exists
//   PROBE_OTHER_LENGTH=1      a process that joined registers another length
//   PROBE_WRITE_CONSTANT=1    write constant data at each iteration
//   PROBE_REQUEST=I:N[:METHODS],…  request N processes after iteration I; rank 0 prints "requested N processes"
//   PROBE_WAIT=I:S,…          after iteration I, wait for a pending resize for S seconds
//   PROBE_TIMES=1             at the end rank 0 prints the times of the last resize
//   PROBE_SPLIT=1             the last process of MPI_COMM_WORLD takes no part
//   PROBE_LATE=1              register two more arrays at iteration 3, make one longer at 6, drop the other at 9
//   PROBE_WRONG_OWNERS=N      the function of owners forgets the last element if there are N processes
#define _GNU_SOURCE
#include <dirent.h>
#include <hocket/malleable.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long length, iterations;
static hocket_malleable* job;
static double *variable, *constant, *weighted, *like;
static int64_t *count, *starts;
static int32_t* columns;
static double* values;
static int writes_constant, tells_usage;
static double *cyclic, *grid, *listed, *own, *late, *late_constant;
static long late_length;
static int allocations;  // of the program's own memory
enum { grid_columns = 7, most_extents = 64, late_begin = 3, late_longer = 6, late_end = 9, late_more = 77 };

static int nonzeros_of(int64_t row) { return (int)(row % 7); }

static void wrong(const char* what, int64_t index, double is, double should) {
  int rank;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  fprintf(stderr, "malleable_probe: rank %d pid %d: %s[%lld] is %g, should be %g\n", rank, (int)getpid(), what,
          (long long)index, is, should);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void must(int status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "malleable_probe: %s: %s\n", what, hocket_error_text(status));
  MPI_Abort(MPI_COMM_WORLD, 4);
}

static void range(const char* name, int64_t* first, int64_t* n) {
  must(hocket_malleable_range(job, name, -1, first, n), name);
}

// Deals runs of elements to the ranks in turn, the last rank first.
static int64_t owners(void* context, int64_t all, int ranks, int rank, int64_t capacity,
                      hocket_malleable_extent* extents) {
  const char* wrong_for = context;
  const int64_t run = all / 30 + 1;
  int64_t n = 0;
  for (int64_t k = ranks - 1 - rank; k * run < all; k += ranks, n++) {
    if (n >= capacity) continue;
    const int64_t end = (k + 1) * run < all ? (k + 1) * run : all;
    const int forgets = end == all && wrong_for && atoi(wrong_for) == ranks;
    extents[n] = (hocket_malleable_extent){k * run, end - k * run - forgets};
  }
  return n;
}

// Allocates like realloc, but nothing may rely on what new memory holds.
static void* allocate(void* context, void* memory, int64_t bytes) {
  int* count_of = context;
  if (bytes == 0) {
    --*count_of;
    free(memory);
    return NULL;
  }
  if (memory) return realloc(memory, (size_t)bytes);
  ++*count_of;
  memory = malloc((size_t)bytes);
  if (memory) memset(memory, 0x5A, (size_t)bytes);
  return memory;
}

static int64_t extents_of(const char* name, hocket_malleable_extent* extents) {
  int64_t n;
  must(hocket_malleable_extents(job, name, -1, most_extents, extents, &n, NULL), name);
  if (n > most_extents) wrong(name, 0, (double)n, most_extents);
  return n;
}

// Sets each element to `factor` times its index, plus `plus`.
static void set(const char* name, double* data, double factor, double plus) {
  hocket_malleable_extent extents[most_extents];
  const int64_t n = extents_of(name, extents);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < extents[k].count; i++) *data++ = factor * (double)(extents[k].first + i) + plus;
}

static void check_values(const char* name, const double* data, double factor, double plus) {
  hocket_malleable_extent extents[most_extents];
  const int64_t n = extents_of(name, extents);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < extents[k].count; i++, data++)
      if (*data != factor * (double)(extents[k].first + i) + plus)
        wrong(name, extents[k].first + i, *data, factor * (double)(extents[k].first + i) + plus);
}

static void add_one(const char* name, double* data) {
  int64_t elements;
  must(hocket_malleable_extents(job, name, -1, 0, NULL, NULL, &elements), name);
  for (int64_t i = 0; i < elements; i++) data[i] += 1;
}

// The rectangle has as many elements as the extents, and its first one is theirs.
static void check_rectangle(void) {
  hocket_malleable_extent rows, columns, extents[1];
  int64_t elements;
  must(hocket_malleable_rectangle(job, "grid", -1, &rows, &columns), "rectangle");
  must(hocket_malleable_extents(job, "grid", -1, 1, extents, NULL, &elements), "grid");
  if (rows.count * columns.count != elements)
    wrong("rectangle", 0, (double)(rows.count * columns.count), (double)elements);
  if (elements > 0 && extents[0].first != rows.first * grid_columns + columns.first)
    wrong("rectangle", 1, (double)(rows.first * grid_columns + columns.first), (double)extents[0].first);
}

// Rows of the grid may be many extents, so the rectangle says which elements they are.
static void fill_grid(void) {
  hocket_malleable_extent rows, columns;
  double* data = grid;
  must(hocket_malleable_rectangle(job, "grid", -1, &rows, &columns), "rectangle");
  for (int64_t row = rows.first; row < rows.first + rows.count; row++)
    for (int64_t column = columns.first; column < columns.first + columns.count; column++)
      *data++ = 6 * (double)(row * grid_columns + column);
}

static void fill_more(void) {
  set("cyclic", cyclic, 5, 0);
  fill_grid();
  set("listed", listed, 7, 0);
  set("own", own, 8, 0);
}

static void check_grid(void) {
  hocket_malleable_extent rows, columns;
  const double* data = grid;
  must(hocket_malleable_rectangle(job, "grid", -1, &rows, &columns), "rectangle");
  for (int64_t row = rows.first; row < rows.first + rows.count; row++)
    for (int64_t column = columns.first; column < columns.first + columns.count; column++, data++)
      if (*data != 6 * (double)(row * grid_columns + column))
        wrong("grid", row * grid_columns + column, *data, 6 * (double)(row * grid_columns + column));
}

static void check_more(long iteration) {
  check_values("cyclic", cyclic, 5, (double)iteration);
  check_rectangle();
  check_grid();
  check_values("listed", listed, 7, (double)iteration);
  check_values("own", own, 8, 0);
  if (late) check_values("late", late, 9, (double)iteration);
  if (late_constant) check_values("late_constant", late_constant, 10, 0);
}

static void step_more(void) {
  add_one("cyclic", cyclic);
  add_one("listed", listed);
  if (late) add_one("late", late);
}

static void register_more(void) {
  int by_block, by_grid, by_owners;
  must(hocket_malleable_cyclic(job, length / 40 + 1, &by_block), "cyclic");
  must(hocket_malleable_rectangles(job, length / grid_columns, grid_columns, &by_grid), "rectangles");
  must(hocket_malleable_owners(job, owners, getenv("PROBE_WRONG_OWNERS"), &by_owners), "owners");
  must(hocket_malleable_array(job, "cyclic", MPI_DOUBLE, length, by_block, HOCKET_MALLEABLE_VARIABLE, &cyclic),
       "cyclic");
  must(hocket_malleable_array(job, "grid", MPI_DOUBLE, length / grid_columns * grid_columns, by_grid,
                              HOCKET_MALLEABLE_CONSTANT, &grid),
       "grid");
  must(hocket_malleable_memory(job, allocate, &allocations), "memory");
  must(hocket_malleable_array(job, "listed", MPI_DOUBLE, length, by_owners, HOCKET_MALLEABLE_VARIABLE, &listed),
       "listed");
  must(hocket_malleable_array(job, "own", MPI_DOUBLE, length, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_CONSTANT, &own),
       "own");
  must(hocket_malleable_memory(job, NULL, NULL), "memory");
}

// Changes arrays while the program computes. A process that joins or wakes takes those that the others registered.
static void change_arrays(long iteration) {
  static int by_block = -1;
  if (!getenv("PROBE_LATE") || iteration < late_begin) return;
  if (by_block < 0) must(hocket_malleable_cyclic(job, length / 40 + 1, &by_block), "late distribution");
  if (!late) {
    late_length = iteration > late_longer ? length + late_more : length;
    must(hocket_malleable_array(job, "late", MPI_DOUBLE, late_length, by_block, HOCKET_MALLEABLE_VARIABLE, &late),
         "late");
    if (iteration == late_begin) set("late", late, 9, (double)iteration);
  }
  if (!late_constant && iteration < late_end) {
    must(hocket_malleable_array(job, "late_constant", MPI_DOUBLE, length, HOCKET_MALLEABLE_BLOCK,
                                HOCKET_MALLEABLE_CONSTANT, &late_constant),
         "late_constant");
    if (iteration == late_begin) set("late_constant", late_constant, 10, 0);
  }
  if (iteration == late_longer) {
    hocket_malleable_extent extents[most_extents];
    must(hocket_malleable_length(job, "late", length + late_more), "length");
    const int64_t n = extents_of("late", extents);
    double* data = late;
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = extents[k].first; i < extents[k].first + extents[k].count; i++, data++)
        if (i >= length && *data != 0) wrong("new elements of late", i, *data, 0);
    data = late;
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = extents[k].first; i < extents[k].first + extents[k].count; i++, data++)
        if (i >= length) *data = 9 * (double)i + (double)iteration;
  }
  if (iteration == late_end && late_constant) {
    must(hocket_malleable_drop(job, "late_constant"), "drop");
    if (late_constant) wrong("pointer of what was dropped", 0, 1, 0);
  }
}

static void fill(void) {
  int64_t first, n, nonzeros = 0;
  range("variable", &first, &n);
  for (int64_t i = 0; i < n; i++) variable[i] = (double)(first + i);
  range("constant", &first, &n);
  for (int64_t i = 0; i < n; i++) constant[i] = 2.0 * (double)(first + i);
  range("weighted", &first, &n);
  for (int64_t i = 0; i < n; i++) weighted[i] = 3.0 * (double)(first + i);
  range("like", &first, &n);
  for (int64_t i = 0; i < n; i++) like[i] = 4.0 * (double)(first + i);
  range("matrix", &first, &n);
  for (int64_t i = 0; i < n; i++) starts[i + 1] = nonzeros += nonzeros_of(first + i);
  must(hocket_malleable_csr_reserve(job, "matrix", nonzeros), "reserve");
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = starts[i]; k < starts[i + 1]; k++) {
      columns[k] = (int32_t)(first + i + (k - starts[i]));
      values[k] = (double)(first + i) + 0.5 * (double)(k - starts[i]);
    }
  fill_more();
}

static void check_matrix(void) {
  int64_t first, n;
  range("matrix", &first, &n);
  if (starts[0] != 0) wrong("starts", 0, (double)starts[0], 0);
  for (int64_t i = 0; i < n; i++) {
    int64_t row = first + i;
    if (starts[i + 1] - starts[i] != nonzeros_of(row))
      wrong("lengths", row, (double)(starts[i + 1] - starts[i]), nonzeros_of(row));
    for (int64_t k = 0; k < nonzeros_of(row); k++) {
      if (columns[starts[i] + k] != row + k) wrong("columns", row, columns[starts[i] + k], (double)(row + k));
      if (values[starts[i] + k] != (double)row + 0.5 * (double)k)
        wrong("values", row, values[starts[i] + k], (double)row);
    }
  }
}

static void check(long iteration) {
  int64_t first, n;
  range("variable", &first, &n);
  for (int64_t i = 0; i < n; i++)
    if (variable[i] != (double)(first + i + iteration))
      wrong("variable", first + i, variable[i], (double)(first + i + iteration));
  range("constant", &first, &n);
  for (int64_t i = writes_constant ? n : 0; i < n; i++)
    if (constant[i] != 2.0 * (double)(first + i)) wrong("constant", first + i, constant[i], 2.0 * (double)(first + i));
  range("weighted", &first, &n);
  for (int64_t i = 0; i < n; i++)
    if (weighted[i] != 3.0 * (double)(first + i) + (double)iteration)
      wrong("weighted", first + i, weighted[i], 3.0 * (double)(first + i) + (double)iteration);
  range("like", &first, &n);
  for (int64_t i = 0; i < n; i++)
    if (like[i] != 4.0 * (double)(first + i)) wrong("like", first + i, like[i], 4.0 * (double)(first + i));
  if (count[0] != iteration) wrong("count", 0, (double)count[0], (double)iteration);
  check_matrix();
  check_more(iteration);
}

static void step(long iteration) {
  int64_t first, n;
  range("variable", &first, &n);
  for (int64_t i = 0; i < n; i++) variable[i] += 1;
  range("weighted", &first, &n);
  for (int64_t i = 0; i < n; i++) weighted[i] += 1;
  step_more();
  count[0] = iteration + 1;
  range("constant", &first, &n);
  for (int64_t i = 0; writes_constant && i < n; i++) constant[i] += 1;
}

static int descriptors(void) {
  int n = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (directory && readdir(directory)) n++;
  if (directory) closedir(directory);
  return n - 3;  // ".", ".." and the directory itself
}

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// Returns how many communicators this process can still make. A leak lowers the number.
static int free_communicators(void) {
  enum { most = 1 << 16 };
  static MPI_Comm made[most];
  MPI_Comm self;
  int n = 0;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
  while (n < most && MPI_Comm_dup(self, &made[n]) == MPI_SUCCESS) n++;
  for (int i = 0; i < n; i++) MPI_Comm_free(&made[i]);
  MPI_Comm_free(&self);
  return n;
}

static void resized(long iteration, const char* word) {
  int rank, size;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  MPI_Comm_size(hocket_malleable_comm(job), &size);
  if (rank != 0) return;
  if (tells_usage)
    printf("%s %ld processes %d descriptors %d kib %ld\n", word, iteration, size, descriptors(), resident_kib());
  else if (getenv("PROBE_BALANCE") || getenv("PROBE_WORK")) {
    int64_t first, n;
    range("weighted", &first, &n);
    printf("%s %ld processes %d share %lld\n", word, iteration, size, (long long)n);
  } else
    printf("%s %ld processes %d\n", word, iteration, size);
}

static void tell_communicators(void) {
  int rank;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  if (tells_usage && rank == 0) printf("communicators %d\n", free_communicators());
}

static void hold(const char* where) {
  const char* directory = getenv("PROBE_HOLD");
  char file[4096];
  if (!directory) return;
  snprintf(file, sizeof file, "%s/%s", directory, where);
  if (access(file, F_OK) != 0) return;
  printf("held %s %d\n", where, (int)getpid());
  fflush(stdout);
  const struct timespec pause = {0, 5000000};
  while (access(file, F_OK) == 0) nanosleep(&pause, NULL);
}

static void hold_before(long iteration) {
  char where[24];
  int rank;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  snprintf(where, sizeof where, "%ld", iteration);
  if (rank == 0) hold(where);
}

// Rank 0 checks for the file that ends the run.
static int is_to_end(void) {
  const char* file = getenv("PROBE_END");
  int end, rank;
  if (!file) return 0;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  end = rank == 0 && access(file, F_OK) == 0;
  MPI_Bcast(&end, 1, MPI_INT, 0, hocket_malleable_comm(job));
  return end;
}

static double total(void) {
  int64_t first, n;
  double own = 0, sum = 0;
  range("variable", &first, &n);
  for (int64_t i = 0; i < n; i++) own += variable[i];
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, hocket_malleable_comm(job));
  return sum;
}

static void register_arrays(void) {
  int rows;
  const long other = hocket_malleable_joined(job) && getenv("PROBE_OTHER_LENGTH") ? length + 1 : length;
  must(hocket_malleable_array(job, "variable", MPI_DOUBLE, other, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_VARIABLE,
                              &variable),
       "variable");
  must(hocket_malleable_array(job, "constant", MPI_DOUBLE, length, HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_CONSTANT,
                              &constant),
       "constant");
  must(hocket_malleable_array(job, "weighted", MPI_DOUBLE, length, HOCKET_MALLEABLE_WEIGHTED, HOCKET_MALLEABLE_VARIABLE,
                              &weighted),
       "weighted");
  must(hocket_malleable_array(job, "count", MPI_INT64_T, 2, HOCKET_MALLEABLE_REPLICATED, HOCKET_MALLEABLE_VARIABLE,
                              &count),
       "count");
  must(hocket_malleable_csr(job, "matrix", length, HOCKET_MALLEABLE_NONZEROS, HOCKET_MALLEABLE_CONSTANT, &starts,
                            MPI_INT32_T, &columns, MPI_DOUBLE, &values, &rows),
       "matrix");
  must(hocket_malleable_array(job, "like", MPI_DOUBLE, length, rows, HOCKET_MALLEABLE_CONSTANT, &like), "like");
  register_more();
}

static void balance(void) {
  int rank;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  must(hocket_malleable_balance(job, rank == 0 ? 0.2 : 0.1), "balance");
}

static void work(void) {
  const char* wanted = getenv("PROBE_WORK");
  long first_ns, other_ns;
  int64_t first, n;
  int rank;
  if (!wanted || sscanf(wanted, "%ld %ld", &first_ns, &other_ns) != 2) return;
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  range("weighted", &first, &n);
  const long ns = n * (rank == 0 ? first_ns : other_ns);
  const struct timespec pause = {ns / 1000000000, ns % 1000000000};
  nanosleep(&pause, NULL);
}

// Returns the text behind "ITERATION:" in a list of such entries; NULL if there is none.
static const char* entry_of(const char* list, long iteration) {
  for (char* rest; list && *list; list = strchr(rest, ',') ? strchr(rest, ',') + 1 : NULL)
    if (strtol(list, &rest, 10) == iteration && *rest == ':') return rest + 1;
  return NULL;
}

static void request_and_wait(long iteration) {
  char methods[100] = "";
  long processes;
  const char* wanted = entry_of(getenv("PROBE_REQUEST"), iteration);
  const char* limit_s = entry_of(getenv("PROBE_WAIT"), iteration);
  if (wanted && sscanf(wanted, "%ld:%99[^,]", &processes, methods) >= 1) {
    int rank;
    must(hocket_malleable_request(job, processes, methods), "request");
    MPI_Comm_rank(hocket_malleable_comm(job), &rank);
    if (rank == 0) printf("requested %ld processes\n", processes);
  }
  if (limit_s) must(hocket_malleable_wait(job, atof(limit_s)), "wait");
}

static void tell_times(void) {
  hocket_malleable_times t;
  int rank;
  must(hocket_malleable_last_times(job, &t), "last_times");
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  if (!getenv("PROBE_TIMES") || rank != 0) return;
  printf("times {\"number\": %lld, \"sources\": %lld, \"destinations\": %lld, \"iteration\": %lld, ",
         (long long)t.number, (long long)t.sources, (long long)t.destinations, (long long)t.iteration);
  printf("\"started\": %lld, \"woken\": %lld, \"moved\": %lld, \"kept\": %lld, ", (long long)t.started,
         (long long)t.woken, (long long)t.bytes_moved, (long long)t.bytes_kept);
  printf("\"wait_s\": %g, \"spawn_s\": %g, \"spawn_stopped_s\": %g, \"constant_s\": %g, ", t.wait_s, t.spawn_s,
         t.spawn_stopped_s, t.constant_s);
  printf("\"constant_stopped_s\": %g, \"variable_s\": %g, \"resume_s\": %g, \"stopped_s\": %g, \"total_s\": %g}\n",
         t.constant_stopped_s, t.variable_s, t.resume_s, t.stopped_s, t.total_s);
}

// Returns 0 in a process that takes no part.
static int create(void) {
  MPI_Comm part, parent;
  int rank, size;
  MPI_Comm_get_parent(&parent);
  if (!getenv("PROBE_SPLIT")) {
    must(hocket_malleable_create(&job), "create");
    return 1;
  }
  if (parent != MPI_COMM_NULL) {
    must(hocket_malleable_create_on(MPI_COMM_NULL, &job), "create_on");
    return 1;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &part);
  if (rank == size - 1) return 0;
  must(hocket_malleable_create_on(part, &job), "create_on");
  return 1;
}

// Runs after a resize in each destination rank; count[1] is the number of resizes so far.
static void count_resize(long iteration) {
  const char* wanted = getenv("PROBE_RESIZES");
  if (++count[1] == (wanted ? atol(wanted) : -1)) iterations = iteration + 2;
}

static void compute(long ms) {
  int state, first = 1;
  int64_t it;
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  const char* balanced = getenv("PROBE_BALANCE");
  const int once = balanced && strcmp(balanced, "once") == 0;
  while ((state = hocket_malleable_next(job, iterations, &it)) > 0) {
    if (state == HOCKET_MALLEABLE_RESIZED) {
      if (!first || hocket_malleable_joined(job)) count_resize(it);
      resized(it, first ? "begin" : "iteration");
      if (first && !hocket_malleable_joined(job)) tell_communicators();
    }
    first = 0;
    if (is_to_end()) break;
    hold_before(it);
    change_arrays(it);
    check(it);
    step(it);
    if (ms) nanosleep(&pause, NULL);
    work();
    request_and_wait((long)it);
    if (balanced && (once ? it == 4 : (it + 1) % 5 == 0)) balance();
  }
  must(state, "next");
  if (hocket_malleable_left(job)) return;
  check(it);
  tell_communicators();
  tell_times();
  int rank, size;
  const double sum = total();
  MPI_Comm_rank(hocket_malleable_comm(job), &rank);
  MPI_Comm_size(hocket_malleable_comm(job), &size);
  if (rank == 0) printf("ok %ld processes %d sum %.17g\n", (long)it, size, sum);
}

int main(int argc, char** argv) {
  int level;
  iterations = argc > 1 ? atol(argv[1]) : 10;
  length = argc > 2 ? atol(argv[2]) : 1000;
  writes_constant = getenv("PROBE_WRITE_CONSTANT") != NULL;
  tells_usage = getenv("PROBE_USAGE") != NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  hold("init");
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (!create()) {
    MPI_Finalize();
    return 0;
  }
  register_arrays();
  if (!hocket_malleable_joined(job)) fill();
  if (hocket_malleable_joined(job)) hold("begin");
  must(hocket_malleable_begin(job, 0), "begin");
  compute(argc > 3 ? atol(argv[3]) : 0);
  hocket_malleable_free(&job);
  if (allocations) fprintf(stderr, "malleable_probe: %d allocations were not freed\n", allocations);
  MPI_Finalize();
  return allocations ? 5 : 0;
}
