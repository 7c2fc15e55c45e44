// The state of the solver, which lies in memory as it lies in a file, and the file: system, restart and checkpoint are
// one format.
//
//   offset 0   header, 64 bytes: struct state_header
//   offset 64  n records of n + 2 doubles, one a row i of the system:  x_i  b_i  A_i0 … A_i,n-1
//
// Numbers are little-endian. A system that is not started yet is the state of iteration 0 with x = 0. Rank r holds a
// block of rows, so that its part of a file is one piece; the first n % ranks ranks hold one row more than the others.
//
// All functions but state_free are collective over MPI_COMM_WORLD. Those that can fail return 0, or one of the failure
// codes below: the same on every rank, after one rank has said on stderr what was wrong. Not thread-safe.
#pragma once

#include <mpi.h>
#include <stdint.h>

enum { JACOBI_OK = 0, JACOBI_FAILED = 1, JACOBI_BAD_INPUT = 2 };  // also the exit codes of the program

#define STATE_MAGIC "JACOBI\r\n"
enum { STATE_VERSION = 1 };
#define STATE_N_MAX (UINT64_C(1) << 29)  // n * (n + 2) * 8 bytes still fits an MPI_Offset

struct state_header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t n;
  uint64_t iteration;  // iterations done
  double residual;     // 2-norm of b - A x for the x that the last iteration started from; 0 before the first
  uint8_t zero[24];
};

struct state {
  struct state_header header;
  int rank, ranks;
  uint64_t first_row, rows;  // of this rank
  double* records;           // rows * (n + 2), owned
};

// Rows of a rank: [*first_row, *first_row + *rows).
void block_of(uint64_t n, int ranks, int rank, uint64_t* first_row, uint64_t* rows);

static inline double* record(const struct state* s, uint64_t row) { return s->records + row * (s->header.n + 2); }

// If any rank gives a text that is not empty, the lowest such rank prints it as one line on stderr, and all ranks
// get 1.
int any_failed(const char* text);

// A dense, strictly diagonally dominant system whose solution is x_i = (i + 1) / n. The same for any number of ranks.
int state_generate(struct state* s, uint64_t n, uint64_t seed);

// chunk_bytes: at most so much a rank in one collective call, and never less than one record.
int state_read(struct state* s, const char* path, int64_t chunk_bytes);
// Written beside `path` and renamed when it is whole and on storage, so that `path` is never half a state.
int state_write(const struct state* s, const char* path, int64_t chunk_bytes);

// Each rank reads its part back with plain pread and compares it byte for byte with what it holds.
int state_verify(const struct state* s, const char* path);

uint64_t state_file_bytes(uint64_t n);
void state_free(struct state* s);
