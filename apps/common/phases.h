// The frame of the I/O programs in apps/: options, timed phases, verifiable contents, hints, and the summary. A
// program adds its access pattern as a `struct kernel`.
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// The options and results of a program. A phase is a burst of collective accesses by all ranks after some computing.
struct phases {
  const char* path;
  uint64_t count;
  double compute_s;  // seconds of sleep before each phase
  int writes, reads, checks, keeps, syncs;
  MPI_Info info;    // hints of the file
  double* write_s;  // seconds of each phase on the slowest rank
  double* read_s;
  uint64_t bytes;      // bytes of one phase, all ranks together
  uint64_t compared;   // 4-byte words that this rank read and compared
  uint64_t different;  // those of them that differ
  long memory_kib;     // largest growth of this process's memory during accesses; -1: unknown
};

// These go to the end of a program's own `struct option` table, and behind its own letters.
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
  "  -c, --check             compare what was read with the expected content\n"                     \
  "  -k, --keep              keep the file\n"                                                       \
  "  -y, --sync              a phase of writing ends when the data are on the storage\n"            \
  "  -H, --hint KEY=VALUE    a hint of the file; may be repeated\n"                                 \
  "\n"                                                                                              \
  "The last line on stdout is a summary in JSON; its times are those of the slowest rank in each\n" \
  "phase. Exit code: 0; 1 if something failed or differs; 2 for bad arguments.\n"

// Parses all options: those above itself, the others by `set(own, key, name)`. What is wrong goes into `bad`, of TEXT
// bytes. Returns 1 if --help was given. end_phases frees what this allocates.
struct option;
int parse_phases(struct phases* phases, char* bad, int argc, char** argv, const char* letters,
                 const struct option* options, void (*set)(void* own, int key, const char* name), void* own);

// Returns the 4-byte word at a place of the data set in a phase. It is a hash, so misplaced data cannot pass as
// right.
static inline uint32_t word_at(uint64_t place, uint64_t phase) {
  uint64_t z = place + (phase + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(z >> 32);
}
// Fill or compare words at the places from `place` on; a comparison counts words and differences in `phases`.
void fill_words(uint32_t* words, size_t count, uint64_t place, uint64_t phase);
void compare_words(struct phases* phases, const uint32_t* words, size_t count, uint64_t place, uint64_t phase);

// The access pattern of a program. Functions that can fail return an exit code, the same in all ranks, after one rank
// has reported the reason.
struct kernel {
  int (*open)(void* own, int writes);
  void (*fill)(void* own, uint64_t phase, int writes);  // fills the memory with the phase's contents, or with zeros
  int (*move)(void* own, uint64_t phase, int writes);   // does the accesses of one phase; only this is timed
  void (*compare)(void* own, uint64_t phase);
  int (*close)(void* own);
};

// Writes all phases and then reads them, as the options say. Collective; returns an exit code.
int run_phases(struct phases* phases, const struct kernel* kernel, void* own);

// Open and close the file with its hints, for kernels that call MPI-IO. After a failure no file is open.
int open_mpi_file(const struct phases* phases, int writes, MPI_File* file);
int close_mpi_file(const struct phases* phases, MPI_File* file);
// Ends the accesses of a phase. If `text` of any rank is not empty, the first is reported. Otherwise syncs if the
// options ask for it. Collective.
int end_mpi_accesses(const struct phases* phases, MPI_File file, int writes, char* text);

// Deletes the file unless it is kept, prints the summary with `more` ("\"key\": value, …"), and frees what
// parse_phases allocated. Returns the program's exit code. Collective.
int end_phases(struct phases* phases, int failure, const char* more);
