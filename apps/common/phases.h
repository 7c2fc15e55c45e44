// What the I/O programs of apps/ share: contents that tell where they belong, phases that are timed, hints, the
// summary.
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// What the programs are asked to do in phases, each a burst of collective accesses of all ranks after some computing.
struct phases {
  const char* path;
  uint64_t count;
  double compute_s;  // slept before each phase
  int writes, reads, checks, keeps, syncs;
  MPI_Info info;    // hints of the file
  double* write_s;  // of each phase, by the slowest rank
  double* read_s;
  uint64_t bytes;      // of a phase, all ranks
  uint64_t compared;   // words of 4 bytes that this rank read and compared
  uint64_t different;  // of them
  long memory_kib;     // by which this process's memory grew at most in the accesses; -1: not known
};

// In a program's own `struct option` table, at its end; the letters behind its own.
#define PHASE_LETTERS "o:p:d:wrckyH:h"
// clang-format off
#define PHASE_OPTIONS \
  {"file", required_argument, 0, 'o'}, {"phases", required_argument, 0, 'p'}, {"compute", required_argument, 0, 'd'}, \
  {"write", no_argument, 0, 'w'}, {"read", no_argument, 0, 'r'}, {"check", no_argument, 0, 'c'}, \
  {"keep", no_argument, 0, 'k'}, {"sync", no_argument, 0, 'y'}, {"hint", required_argument, 0, 'H'}, \
  {"help", no_argument, 0, 'h'}, {0, 0, 0, 0}
// clang-format on

#define PHASE_HELP                                                                                  \
  "  -o, --file FILE         the file\n"                                                            \
  "  -p, --phases P          phases (10), each behind the one before in the file\n"                 \
  "  -d, --compute S         compute so many seconds before each phase, by sleeping (0)\n"          \
  "  -w, --write             write …\n"                                                           \
  "  -r, --read              … and read (without either: both)\n"                                 \
  "  -c, --check             compare what was read with what is to be in the file\n"                \
  "  -k, --keep              keep the file\n"                                                       \
  "  -y, --sync              a phase of writing ends when the data are on the storage\n"            \
  "  -H, --hint KEY=VALUE    a hint of the file; as often as wanted\n"                              \
  "\n"                                                                                              \
  "The last line on stdout is a summary in JSON; its times are those of the slowest rank in each\n" \
  "phase. Exit code: 0; 1 if something failed or differs; 2 for bad arguments.\n"

// Reads all options: those above by itself, the others by `set(own, key, name)`. What is wrong goes into `bad`, of TEXT
// bytes. Returns 1 if --help was given.
struct option;
int parse_phases(struct phases* phases, char* bad, int argc, char** argv, const char* letters,
                 const struct option* options, void (*set)(void* own, int key, const char* name), void* own);

// The word of 4 bytes at a place of a data set in a phase.
static inline uint32_t word_at(uint64_t place, uint64_t phase) {
  uint64_t z = place + (phase + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(z >> 32);
}
// Fills words, or compares and counts them, that are the places from `place` on.
void fill_words(uint32_t* words, size_t count, uint64_t place, uint64_t phase);
void compare_words(struct phases* phases, const uint32_t* words, size_t count, uint64_t place, uint64_t phase);

// One program's part of it. Functions that may fail return an exit code, the same in all ranks, and have said why.
struct kernel {
  int (*open)(void* own, int writes);
  void (*fill)(void* own, uint64_t phase, int writes);  // the memory: with what is to be written, or with zeros
  int (*move)(void* own, uint64_t phase, int writes);   // this is what is timed
  void (*compare)(void* own, uint64_t phase);
  int (*close)(void* own);
};

// Writes all phases, then reads them, as was asked for. Collective.
int run_phases(struct phases* phases, const struct kernel* kernel, void* own);

// For kernels that call MPI-IO: the file with its hints. After an error nothing is open.
int open_mpi_file(const struct phases* phases, int writes, MPI_File* file);
int close_mpi_file(const struct phases* phases, MPI_File* file);
// The end of a phase's accesses, in all ranks: the first failure of any of them, told in `text`; else a sync if it is
// wanted.
int end_mpi_accesses(const struct phases* phases, MPI_File file, int writes, char* text);

// Deletes the file if it is not to be kept, prints the summary with `more` ("\"key\": value, …"), and frees what
// parse_phases made. Returns the program's exit code. Collective.
int end_phases(struct phases* phases, int failure, const char* more);
