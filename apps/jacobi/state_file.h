// The state of the solver in files. System, restart file and checkpoint have the same format:
//
//   offset 0   header, 64 bytes: struct state_header
//   offset 64  n records of n + 2 doubles, one for each row i of the system:  x_i  b_i  A_i0 … A_i,n-1
//
// Numbers are little-endian. A system that is not started yet is the state of iteration 0 with x = 0. A rank holds a
// block of rows, so its part of a file is contiguous. In memory x is separate from the equations, because they are
// constant.
//
// All functions are collective over the communicator of the state. They return 0 or a failure code of program.h, the
// same on every rank, after one rank has reported the reason on stderr. Not thread-safe.
#pragma once

#include <mpi.h>
#include <stdint.h>

#define STATE_MAGIC "JACOBI\r\n"
enum { STATE_VERSION = 1 };
#define STATE_N_MAX (UINT64_C(1) << 29)  // n * (n + 2) * 8 bytes still fit an MPI_Offset

// The first 64 bytes of a file.
struct state_header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t n;
  uint64_t iteration;  // completed iterations
  double residual;     // 2-norm of b - A x for the x that the last iteration started from; 0 before the first
  uint8_t zero[24];
};

// A rank's part of the system. The caller owns all memory.
struct state {
  struct state_header* header;
  MPI_Comm comm;
  int rank;                  // this process in comm
  uint64_t first_row, rows;  // rows of this rank
  uint64_t most_rows;        // largest number of rows of any rank
  double* x;                 // x_i of this rank's rows
  double* equations;         // rows * (n + 1): b_i A_i0 … A_i,n-1
};

// Returns the equation of a row of this rank: b_i, then the coefficients.
static inline double* equation(const struct state* s, uint64_t row) { return s->equations + row * (s->header->n + 1); }

// Returns the header of a system that is not started yet.
struct state_header state_new(uint64_t n);

// Reads and checks the header of a file. `header` is the same on every rank afterwards.
int state_read_header(struct state_header* header, const char* path, MPI_Comm comm);

// Generates a dense, strictly diagonally dominant system with the solution x_i = (i + 1) / n. The system is the same
// for any number of ranks.
void state_generate(struct state* s, uint64_t seed);

// Reads x and the equations from a file with this header. A rank moves at most `chunk_bytes` in one collective call,
// but never less than one record.
int state_read(struct state* s, const char* path, int64_t chunk_bytes);
// Writes a file beside `path` and renames it when it is complete and on storage. So `path` never holds half a state.
int state_write(const struct state* s, const char* path, int64_t chunk_bytes);

// Compares the file with memory: each rank reads its part back with plain pread and compares it byte for byte.
int state_verify(const struct state* s, const char* path);

uint64_t state_file_bytes(uint64_t n);
