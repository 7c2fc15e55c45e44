// The state of the solver in files: system, restart and checkpoint are one format.
//
//   offset 0   header, 64 bytes: struct state_header
//   offset 64  n records of n + 2 doubles, one a row i of the system:  x_i  b_i  A_i0 … A_i,n-1
//
// Numbers are little-endian. A system that is not started yet is the state of iteration 0 with x = 0. Rank r holds a
// block of rows, so that its part of a file is one piece. In memory x lies apart from the equations, which do not
// change.
//
// All functions are collective over the communicator of the state, and return 0 or one of the failure codes of
// program.h: the same on every rank, after one rank has said on stderr what was wrong. Not thread-safe.
#pragma once

#include <mpi.h>
#include <stdint.h>

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

// The memory is the caller's.
struct state {
  struct state_header* header;
  MPI_Comm comm;
  int rank;                  // in comm
  uint64_t first_row, rows;  // of this rank
  uint64_t most_rows;        // of any rank
  double* x;                 // of its rows
  double* equations;         // rows * (n + 1): b_i A_i0 … A_i,n-1
};

static inline double* equation(const struct state* s, uint64_t row) { return s->equations + row * (s->header->n + 1); }

// The header of a system that is not started yet.
struct state_header state_new(uint64_t n);

// Reads and checks the header of a file.
int state_read_header(struct state_header* header, const char* path, MPI_Comm comm);

// A dense, strictly diagonally dominant system whose solution is x_i = (i + 1) / n. The same for any number of ranks.
void state_generate(struct state* s, uint64_t seed);

// x and the equations, from a file with this header. chunk_bytes: at most so much a rank in one collective call, and
// never less than one record.
int state_read(struct state* s, const char* path, int64_t chunk_bytes);
// Written beside `path` and renamed when it is whole and on storage, so that `path` is never half a state.
int state_write(const struct state* s, const char* path, int64_t chunk_bytes);

// Each rank reads its part back with plain pread and compares it byte for byte with what it holds.
int state_verify(const struct state* s, const char* path);

uint64_t state_file_bytes(uint64_t n);
