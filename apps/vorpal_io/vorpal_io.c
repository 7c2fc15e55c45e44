// VORPAL-IO: writes and reads a field as a simulation does, as three-dimensional blocks in parallel HDF5 (CLARISSE,
// section V-A). In each time step all ranks write the three components of the field. Each component is one data set
// of the whole space, and every rank has one block of it.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel_hdf5.h"
#include "phases.h"
#include "program.h"

const char kProgram[] = "vorpal_io";

static const char kHelp[] =
    "vorpal_io: write and read blocks of a field in time steps as VORPAL does, by collective parallel HDF5\n"
    "  mpiexec -n RANKS vorpal_io --file FILE [options]\n"
    "\n"
    "  -b, --block X,Y,Z       points of a rank's block (50,50,30); 3 components of 8 bytes each\n"
    "  -D, --decomposition PX,PY,PZ   blocks in each direction, as many as ranks (as even as it can be)\n" PHASE_HELP;

static const struct option kOptions[] = {
    {"block", required_argument, 0, 'b'}, {"decomposition", required_argument, 0, 'D'}, PHASE_OPTIONS};

// WORDS are the 4-byte words of a double.
enum { DIMENSIONS = 3, COMPONENTS = 3, WORDS = 2 };
static const char* const kComponents[COMPONENTS] = {"0", "1", "2"};

// The state of the program on one rank. HDF5 wants the slowest dimension first, options name the fastest one first.
struct vorpal {
  struct phases phases;
  struct hdf5_file file;
  struct hdf5_part part;                             // z first
  int block[DIMENSIONS], decomposition[DIMENSIONS];  // x first
  double* data;                                      // one component after the other
};

static char bad[TEXT];  // error message about the arguments; "": none

// ---- options and the block of a rank -------------------------------------------------------------------------------

static void set_option(void* own, int key, const char* name) {
  struct vorpal* vorpal = own;
  int* numbers = key == 'b' ? vorpal->block : vorpal->decomposition;
  int end = 0;
  if (sscanf(optarg, "%d,%d,%d%n", &numbers[0], &numbers[1], &numbers[2], &end) != DIMENSIONS || optarg[end] ||
      numbers[0] < 1 || numbers[1] < 1 || numbers[2] < 1)
    snprintf(bad, sizeof bad, "--%s %.3000s: give three whole numbers from 1 on, X,Y,Z", name, optarg);
}

// Chooses a decomposition if none was given, and checks that it fits the number of ranks.
static void check_together(struct vorpal* vorpal, int ranks) {
  int* parts = vorpal->decomposition;
  if (parts[0] == 0) MPI_Dims_create(ranks, DIMENSIONS, parts);
  if (!bad[0] && (long long)parts[0] * parts[1] * parts[2] != ranks)
    snprintf(bad, sizeof bad, "--decomposition %d,%d,%d: its product must be the number of ranks, %d", parts[0],
             parts[1], parts[2], ranks);
}

// Computes this rank's block; ranks advance in x first.
static void place_block(struct vorpal* vorpal, int rank) {
  vorpal->part.dimensions = DIMENSIONS;
  for (int d = 0; d < DIMENSIONS; d++) {
    const int slow_first = DIMENSIONS - 1 - d, parts = vorpal->decomposition[d];
    vorpal->part.count[slow_first] = (hsize_t)vorpal->block[d];
    vorpal->part.start[slow_first] = (hsize_t)vorpal->block[d] * (hsize_t)(rank % parts);
    vorpal->part.whole[slow_first] = (hsize_t)vorpal->block[d] * (hsize_t)parts;
    rank /= parts;
  }
}

// Returns the number of points in a box.
static uint64_t points_of(const hsize_t* box) { return (uint64_t)box[0] * box[1] * box[2]; }

// ---- contents ------------------------------------------------------------------------------------------------------

// Fills or compares each row (along x) of the block in all components.
static void for_each_row(struct vorpal* vorpal, uint64_t phase, int fills) {
  const struct hdf5_part* part = &vorpal->part;
  const uint64_t rows = part->count[0] * part->count[1];
  for (uint64_t row = 0; row < rows * COMPONENTS; row++) {
    const uint64_t component = row / rows, z = row % rows / part->count[1], y = row % part->count[1];
    const uint64_t in_plane = (part->start[0] + z) * part->whole[1] + part->start[1] + y;
    const uint64_t point = component * points_of(part->whole) + in_plane * part->whole[2] + part->start[2];
    uint32_t* words = (uint32_t*)(void*)(vorpal->data + row * part->count[2]);
    if (fills)
      fill_words(words, part->count[2] * WORDS, point * WORDS, phase);
    else
      compare_words(&vorpal->phases, words, part->count[2] * WORDS, point * WORDS, phase);
  }
}

static void fill(void* own, uint64_t phase, int writes) {
  struct vorpal* vorpal = own;
  if (writes)
    for_each_row(vorpal, phase, 1);
  else
    memset(vorpal->data, 0, points_of(vorpal->part.count) * COMPONENTS * sizeof *vorpal->data);
}

static void compare(void* own, uint64_t phase) { for_each_row(own, phase, 0); }

// ---- accesses ------------------------------------------------------------------------------------------------------

static int open_file(void* own, int writes) {
  struct vorpal* vorpal = own;
  return hdf5_open(&vorpal->file, &vorpal->phases, writes);
}

static int close_file(void* own) {
  struct vorpal* vorpal = own;
  return hdf5_close(&vorpal->file, &vorpal->phases);
}

// Moves one time step: one group, and a data set for each component.
static int move_phase(void* own, uint64_t phase, int writes) {
  struct vorpal* vorpal = own;
  char text[TEXT] = "";
  hdf5_begin_step(&vorpal->file, &vorpal->phases, phase, "/Block/E", writes, text);
  for (int c = 0; c < COMPONENTS; c++)
    hdf5_move(&vorpal->file, &vorpal->phases, kComponents[c], H5T_NATIVE_DOUBLE, &vorpal->part,
              vorpal->data + (uint64_t)c * points_of(vorpal->part.count), writes, text);
  return hdf5_end_step(&vorpal->file, &vorpal->phases, writes, text);
}

// Runs the phases and prints the summary. Frees everything even after a failure.
static int run(struct vorpal* vorpal, int rank) {
  static const struct kernel kernel = {open_file, fill, move_phase, compare, close_file};
  char more[128];
  place_block(vorpal, rank);
  const uint64_t bytes = points_of(vorpal->part.count) * COMPONENTS * sizeof *vorpal->data;
  vorpal->data = malloc(bytes);
  int failure = PROGRAM_OK;
  if (any_failed(MPI_COMM_WORLD, vorpal->data ? "" : "no memory for the block: use a smaller one"))
    failure = PROGRAM_FAILED;
  vorpal->phases.bytes = points_of(vorpal->part.whole) * COMPONENTS * sizeof *vorpal->data;
  if (!failure) failure = run_phases(&vorpal->phases, &kernel, vorpal);
  const int *block = vorpal->block, *parts = vorpal->decomposition;
  snprintf(more, sizeof more, "\"block\": [%d, %d, %d], \"decomposition\": [%d, %d, %d]", block[0], block[1], block[2],
           parts[0], parts[1], parts[2]);
  failure = end_phases(&vorpal->phases, failure, more);
  free(vorpal->data);
  return failure;
}

int main(int argc, char** argv) {
  struct vorpal vorpal = {.block = {50, 50, 30}};
  int rank, ranks, code = PROGRAM_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int help = parse_phases(&vorpal.phases, bad, argc, argv, ":b:D:" PHASE_LETTERS, kOptions, set_option, &vorpal);
  if (!help) check_together(&vorpal, ranks);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!help)
    code = run(&vorpal, rank);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
