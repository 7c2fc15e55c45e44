// Reads sparse matrices in the Matrix Market exchange format (coordinate), plain or compressed with gzip.
//
// It supports what CG can use: square; real, integer or pattern; symmetric or general. The entries of a pattern count
// as 1. Entries may come in any order. A function that fails stores one line in `text`, of TEXT bytes, which names
// file and line. Nothing here uses MPI.
#pragma once

#include <stdint.h>
#include <zlib.h>

#define MATRIX_MARKET_ROWS (INT64_C(1) << 30)  // so that a column fits an int32_t

// An open file and the position in it.
struct matrix_market {
  const char* path;
  gzFile file;
  int64_t line;  // number of the last line that was read
  // Rows of the matrix, announced entries, and entries read so far.
  int64_t rows, entries, read;
  int pattern, symmetric;
};

// One entry of the matrix.
struct entry {
  int32_t row, column;  // numbered from 0
  double value;
};

// Opens the file and reads it up to its sizes. Returns 0, or -1 on failure. Close it in both cases.
int matrix_market_open(struct matrix_market* m, const char* path, char* text);

// Reads up to `most` entries in the order of the file. A symmetric matrix has those of its lower triangle only.
// Returns their number, 0 at the end of a complete file, or -1 on failure.
int64_t matrix_market_read(struct matrix_market* m, struct entry* entries, int64_t most, char* text);

void matrix_market_close(struct matrix_market* m);
