// VPIC-IO: writes and reads particles as a plasma simulation does, as one-dimensional arrays in parallel HDF5
// (CLARISSE, section V-A). In each time step all ranks write the eight variables of their particles. Each variable is
// one data set, in which the particles of a rank are contiguous.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel_hdf5.h"
#include "phases.h"
#include "program.h"

const char kProgram[] = "vpic_io";

static const char kHelp[] =
    "vpic_io: write and read particles in time steps as VPIC does, by collective parallel HDF5\n"
    "  mpiexec -n RANKS vpic_io --file FILE [options]\n"
    "\n"
    "  -n, --particles N       particles of a rank (131032); 32 bytes each in a phase\n" PHASE_HELP;

static const struct option kOptions[] = {{"particles", required_argument, 0, 'n'}, PHASE_OPTIONS};

// Positions, momenta and identities have 4 bytes each.
enum { VARIABLES = 8, REAL_VARIABLES = 6 };
static const char* const kVariables[VARIABLES] = {"x", "y", "z", "px", "py", "pz", "id1", "id2"};

// The state of the program on one rank.
struct vpic {
  struct phases phases;
  struct hdf5_file file;
  struct hdf5_part part;
  uint64_t particles;
  uint32_t* data;  // one variable after the other
};

static char bad[TEXT];  // error message about the arguments; "": none

static void set_option(void* own, int key, const char* name) {
  struct vpic* vpic = own;
  if (key == 'n') vpic->particles = whole_number(bad, name, optarg, 1, UINT64_C(1) << 32);
}

static int open_file(void* own, int writes) {
  struct vpic* vpic = own;
  return hdf5_open(&vpic->file, &vpic->phases, writes);
}

static int close_file(void* own) {
  struct vpic* vpic = own;
  return hdf5_close(&vpic->file, &vpic->phases);
}

// Returns the place of this rank's first word of a variable; the variables follow each other.
static uint64_t place_of(const struct vpic* vpic, int variable) {
  return (uint64_t)variable * vpic->part.whole[0] + vpic->part.start[0];
}

// Fills the memory with the phase's contents, or with zeros before reading.
static void fill(void* own, uint64_t phase, int writes) {
  struct vpic* vpic = own;
  if (!writes) memset(vpic->data, 0, vpic->particles * VARIABLES * sizeof *vpic->data);
  for (int v = 0; writes && v < VARIABLES; v++)
    fill_words(vpic->data + (uint64_t)v * vpic->particles, vpic->particles, place_of(vpic, v), phase);
}

static void compare(void* own, uint64_t phase) {
  struct vpic* vpic = own;
  for (int v = 0; v < VARIABLES; v++)
    compare_words(&vpic->phases, vpic->data + (uint64_t)v * vpic->particles, vpic->particles, place_of(vpic, v), phase);
}

// Moves one time step: one group, and a data set for each variable.
static int move_phase(void* own, uint64_t phase, int writes) {
  struct vpic* vpic = own;
  char text[TEXT] = "";
  hdf5_begin_step(&vpic->file, &vpic->phases, phase, "", writes, text);
  for (int v = 0; v < VARIABLES; v++)
    hdf5_move(&vpic->file, &vpic->phases, kVariables[v], v < REAL_VARIABLES ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT,
              &vpic->part, vpic->data + (uint64_t)v * vpic->particles, writes, text);
  return hdf5_end_step(&vpic->file, &vpic->phases, writes, text);
}

// Runs the phases and prints the summary. Frees everything even after a failure.
static int run(struct vpic* vpic, int rank, int ranks) {
  static const struct kernel kernel = {open_file, fill, move_phase, compare, close_file};
  char more[64];
  vpic->data = malloc(vpic->particles * VARIABLES * sizeof *vpic->data);
  int failure = PROGRAM_OK;
  if (any_failed(MPI_COMM_WORLD, vpic->data ? "" : "no memory for the particles: use fewer")) failure = PROGRAM_FAILED;
  vpic->part = (struct hdf5_part){.dimensions = 1,
                                  .whole = {vpic->particles * (uint64_t)ranks},
                                  .start = {vpic->particles * (uint64_t)rank},
                                  .count = {vpic->particles}};
  vpic->phases.bytes = vpic->part.whole[0] * VARIABLES * sizeof *vpic->data;
  if (!failure) failure = run_phases(&vpic->phases, &kernel, vpic);
  snprintf(more, sizeof more, "\"particles\": %llu", (unsigned long long)vpic->particles);
  failure = end_phases(&vpic->phases, failure, more);
  free(vpic->data);
  return failure;
}

int main(int argc, char** argv) {
  struct vpic vpic = {.particles = 131032};
  int rank, ranks, code = PROGRAM_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int help = parse_phases(&vpic.phases, bad, argc, argv, ":n:" PHASE_LETTERS, kOptions, set_option, &vpic);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!help)
    code = run(&vpic, rank, ranks);
  else if (rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
