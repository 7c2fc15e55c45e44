// BT-IO: writes and reads a solution as NAS BT (subtype "full") does, by collective MPI-IO.
//
// A cube of N x N x N points, 5 doubles each, is cut into q x q x q cells for q x q ranks. A rank has one cell in
// each layer, each time in another column of the cube (diagonal multi-partition). So sweeps in all three directions
// keep all ranks busy. In memory each cell has a border of 2 points. Each phase writes the whole cube after the one
// before. With --decomposition blocks each rank has one block of the cube instead, for any number of ranks.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phases.h"
#include "program.h"

// Sizes of the problem. BORDER is in points, and WORDS are the 4-byte words of a point.
enum { DIMENSIONS = 3, BORDER = 2, DOUBLES = 5, WORDS = 2 * DOUBLES, MOST_CELLS = 4096 };

const char kProgram[] = "bt_io";

static const char kHelp[] =
    "bt_io: write and read the solution of a block-tridiagonal solver as NAS BT-IO does, by collective MPI-IO\n"
    "  mpiexec -n RANKS bt_io --file FILE [options]\n"
    "\n"
    "  -g, --grid N            N x N x N points of 5 doubles (64; NAS class A: 64, B: 102, C: 162)\n"
    "  -D, --decomposition D   multipartition: q x q ranks with q cells each, or blocks: a block for each rank\n"
    "                          (multipartition)\n" PHASE_HELP;

static const struct option kOptions[] = {
    {"grid", required_argument, 0, 'g'}, {"decomposition", required_argument, 0, 'D'}, PHASE_OPTIONS};

// A part of the cube and its place in memory. All arrays have z first.
struct cell {
  int start[DIMENSIONS], size[DIMENSIONS], held[DIMENSIONS];  // held: size in memory, with the border
  size_t at;                                                  // index of its first point in memory, border included
};

// The state of the program on one rank.
struct bt {
  struct phases phases;
  int grid, blocks;  // blocks: true without the multi-partition
  int rank, ranks;
  int count;
  struct cell* cells;
  double* memory;  // the cells of this rank, one after the other
  size_t points;   // points in `memory`, borders included
  // Points without borders, and the datatypes of all cells in memory and in the file.
  uint64_t own_points;
  MPI_Datatype in_memory, in_file;
  MPI_File file;
};

static char bad[TEXT];  // error message about the arguments; "": none

// ---- options -------------------------------------------------------------------------------------------------------

static void set_option(void* own, int key, const char* name) {
  struct bt* bt = own;
  if (key == 'g') bt->grid = (int)whole_number(bad, name, optarg, 1, 4096);
  if (key != 'D') return;
  bt->blocks = !strcmp(optarg, "blocks");
  if (!bt->blocks && strcmp(optarg, "multipartition") != 0)
    snprintf(bad, sizeof bad, "--%s %.3000s: give multipartition or blocks", name, optarg);
}

// Returns the smallest number whose square is at least `number`.
static int root_of(int number) {
  int root = 1;
  while (root * root < number) root++;
  return root;
}

// Checks options that depend on each other or on the number of ranks.
static void check_together(const struct bt* bt) {
  if (bad[0]) return;
  const int q = root_of(bt->ranks), least = bt->blocks ? bt->ranks : q;
  if (!bt->blocks && q * q != bt->ranks)
    snprintf(bad, sizeof bad, "the multi-partition needs a square number of ranks, not %d (or --decomposition blocks)",
             bt->ranks);
  else if (bt->grid < least || q > MOST_CELLS)
    snprintf(bad, sizeof bad, "--grid %d: give %d at least for %d ranks", bt->grid, least, bt->ranks);
}

// ---- the cells of a rank -------------------------------------------------------------------------------------------

// Cuts one dimension into `parts` and stores part `which`. Sizes differ by one point at most.
static void cut(const struct bt* bt, struct cell* cell, int dimension, int which, int parts) {
  const int least = bt->grid / parts, longer = bt->grid % parts;
  cell->size[dimension] = least + (which < longer);
  cell->start[dimension] = which * least + (which < longer ? which : longer);
}

// Places one cell in each layer. In layer z = c the rank in row i and column j has the cell at x = i + c, y = j - c.
static void place_multipartition(struct bt* bt) {
  const int q = root_of(bt->ranks);
  for (int c = 0; c < q; c++) {
    cut(bt, &bt->cells[c], 0, c, q);
    cut(bt, &bt->cells[c], 1, (bt->rank / q - c + q) % q, q);
    cut(bt, &bt->cells[c], 2, (bt->rank % q + c) % q, q);
  }
  bt->count = q;
}

// Places one block for each rank, on a grid of ranks that MPI chooses.
static void place_blocks(struct bt* bt) {
  int parts[DIMENSIONS] = {0}, rank = bt->rank;
  MPI_Dims_create(bt->ranks, DIMENSIONS, parts);
  for (int d = DIMENSIONS - 1; d >= 0; rank /= parts[d--]) cut(bt, &bt->cells[0], d, rank % parts[d], parts[d]);
  bt->count = 1;
}

// Places the cells and computes their memory, borders included.
static void place_cells(struct bt* bt) {
  if (bt->blocks)
    place_blocks(bt);
  else
    place_multipartition(bt);
  for (int c = 0; c < bt->count; c++) {
    struct cell* cell = &bt->cells[c];
    size_t held = 1, own = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
      cell->held[d] = cell->size[d] + 2 * BORDER;
      held *= (size_t)cell->held[d];
      own *= (size_t)cell->size[d];
    }
    cell->at = bt->points;
    bt->points += held;
    bt->own_points += own;
  }
}

// ---- datatypes -----------------------------------------------------------------------------------------------------

// Returns one datatype of all cells of the rank: in memory without the borders, or in the cube.
static MPI_Datatype cells_type(const struct bt* bt, MPI_Datatype point, int in_memory) {
  const int cube[DIMENSIONS] = {bt->grid, bt->grid, bt->grid}, border[DIMENSIONS] = {BORDER, BORDER, BORDER};
  MPI_Datatype parts[MOST_CELLS], all;
  MPI_Aint at[MOST_CELLS];
  int ones[MOST_CELLS];
  for (int c = 0; c < bt->count; c++) {
    const struct cell* cell = &bt->cells[c];
    MPI_Type_create_subarray(DIMENSIONS, in_memory ? cell->held : cube, cell->size, in_memory ? border : cell->start,
                             MPI_ORDER_C, point, &parts[c]);
    // Subarrays in the file have the extent of the cube, so all of them start at 0 and phases follow each other.
    at[c] = in_memory ? (MPI_Aint)(cell->at * DOUBLES * sizeof(double)) : 0;
    ones[c] = 1;
  }
  MPI_Type_create_struct(bt->count, ones, at, parts, &all);
  MPI_Type_commit(&all);
  for (int c = 0; c < bt->count; c++) MPI_Type_free(&parts[c]);
  return all;
}

// Allocates the memory and creates the datatypes. Collective; returns a PROGRAM_… code.
static int prepare(struct bt* bt) {
  bt->cells = calloc((size_t)root_of(bt->ranks), sizeof *bt->cells);
  if (bt->cells) place_cells(bt);
  bt->memory = bt->cells ? calloc(bt->points + 1, DOUBLES * sizeof(double)) : NULL;
  if (any_failed(MPI_COMM_WORLD, bt->memory ? "" : "no memory for the cells: use a smaller grid"))
    return PROGRAM_FAILED;
  MPI_Datatype point;
  MPI_Type_contiguous(DOUBLES, MPI_DOUBLE, &point);
  bt->in_memory = cells_type(bt, point, 1);
  bt->in_file = cells_type(bt, point, 0);
  MPI_Type_free(&point);
  bt->phases.bytes = (uint64_t)bt->grid * (uint64_t)bt->grid * (uint64_t)bt->grid * DOUBLES * sizeof(double);
  return PROGRAM_OK;
}

// ---- contents ------------------------------------------------------------------------------------------------------

// Fills or compares each row (along x) of all cells. `place` is the row's first word in the cube.
static void for_each_row(struct bt* bt, uint64_t phase, int fills) {
  const uint64_t n = (uint64_t)bt->grid;
  for (int c = 0; c < bt->count; c++) {
    const struct cell* cell = &bt->cells[c];
    for (int z = 0; z < cell->size[0]; z++) {
      for (int y = 0; y < cell->size[1]; y++) {
        const size_t row = (size_t)(z + BORDER) * (size_t)cell->held[1] + (size_t)(y + BORDER);
        const size_t point = cell->at + row * (size_t)cell->held[2] + BORDER;
        const uint64_t of_cube = ((uint64_t)(cell->start[0] + z) * n + (uint64_t)(cell->start[1] + y)) * n;
        const uint64_t place = (of_cube + (uint64_t)cell->start[2]) * WORDS;
        uint32_t* words = (uint32_t*)(void*)(bt->memory + point * DOUBLES);
        const size_t count = (size_t)cell->size[2] * WORDS;
        if (fills)
          fill_words(words, count, place, phase);
        else
          compare_words(&bt->phases, words, count, place, phase);
      }
    }
  }
}

// ---- accesses ------------------------------------------------------------------------------------------------------

// Opens the file with a view of this rank's cells, so that one call moves a whole phase.
static int open_file(void* own, int writes) {
  struct bt* bt = own;
  char text[TEXT] = "";
  const int failure = open_mpi_file(&bt->phases, writes, &bt->file);
  if (failure) return failure;
  mpi_failure(text, MPI_File_set_view(bt->file, 0, MPI_DOUBLE, bt->in_file, "native", bt->phases.info), "set a view of",
              bt->phases.path);
  if (!any_failed(MPI_COMM_WORLD, text)) return PROGRAM_OK;
  close_mpi_file(&bt->phases, &bt->file);
  return PROGRAM_FAILED;
}

static int close_file(void* own) {
  struct bt* bt = own;
  return close_mpi_file(&bt->phases, &bt->file);
}

// Moves one phase by one collective call. A short count is a failure: MPI may report a full disk in this way.
static int move_phase(void* own, uint64_t phase, int writes) {
  struct bt* bt = own;
  char text[TEXT] = "";
  const char* path = bt->phases.path;
  const uint64_t doubles = bt->own_points * DOUBLES;
  const MPI_Offset at = (MPI_Offset)(phase * doubles);
  int moved = 0;
  MPI_Status status;
  const int code = writes ? MPI_File_write_at_all(bt->file, at, bt->memory, 1, bt->in_memory, &status)
                          : MPI_File_read_at_all(bt->file, at, bt->memory, 1, bt->in_memory, &status);
  mpi_failure(text, code, writes ? "write" : "read", path);
  if (code == MPI_SUCCESS) MPI_Get_elements(&status, bt->in_memory, &moved);
  if (!text[0] && (uint64_t)moved != doubles)
    snprintf(text, sizeof text, "%s: rank %d moved %d of %llu numbers", path, bt->rank, moved,
             (unsigned long long)doubles);
  return end_mpi_accesses(&bt->phases, bt->file, writes, text);
}

// Fills the memory with the phase's contents, or with zeros before reading, so that old data cannot pass as read.
static void fill(void* own, uint64_t phase, int writes) {
  struct bt* bt = own;
  if (writes)
    for_each_row(bt, phase, 1);
  else
    memset(bt->memory, 0, bt->points * DOUBLES * sizeof(double));
}

static void compare(void* own, uint64_t phase) { for_each_row(own, phase, 0); }

// Runs the phases and prints the summary. Frees everything even after a failure.
static int run(struct bt* bt) {
  static const struct kernel kernel = {open_file, fill, move_phase, compare, close_file};
  char more[128];
  int failure = prepare(bt);
  if (!failure) failure = run_phases(&bt->phases, &kernel, bt);
  snprintf(more, sizeof more, "\"grid\": %d, \"decomposition\": \"%s\"", bt->grid,
           bt->blocks ? "blocks" : "multipartition");
  failure = end_phases(&bt->phases, failure, more);
  if (bt->in_memory != MPI_DATATYPE_NULL) MPI_Type_free(&bt->in_memory);
  if (bt->in_file != MPI_DATATYPE_NULL) MPI_Type_free(&bt->in_file);
  free(bt->memory);
  free(bt->cells);
  return failure;
}

int main(int argc, char** argv) {
  struct bt bt = {.grid = 64, .in_memory = MPI_DATATYPE_NULL, .in_file = MPI_DATATYPE_NULL};
  int code = PROGRAM_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &bt.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &bt.ranks);
  const int help = parse_phases(&bt.phases, bad, argc, argv, ":g:D:" PHASE_LETTERS, kOptions, set_option, &bt);
  if (!help) check_together(&bt);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!help)
    code = run(&bt);
  else if (bt.rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
