// Reads sparse matrices in the Matrix Market exchange format (coordinate), plain or compressed with gzip.
//
// What CG can use of it: square; real, integer or pattern; symmetric or general. A pattern has no values: its entries
// count as 1. Entries may come in any order. Functions that can fail put one line into `text`, of TEXT bytes, that
// names file and line; nothing here speaks MPI.
#pragma once

#include <stdint.h>
#include <zlib.h>

#define MATRIX_MARKET_ROWS (INT64_C(1) << 30)  // so that a column is an int32_t

struct matrix_market {
  const char* path;
  gzFile file;
  int64_t line;  // number of the last line read
  int64_t rows, entries, read;
  int pattern, symmetric;
};

struct entry {
  int32_t row, column;  // from 0
  double value;
};

// Opens the file and reads it up to its sizes. Returns 0; -1 on failure.
int matrix_market_open(struct matrix_market* m, const char* path, char* text);

// The next entries as they stand in the file, at most `most`: of a symmetric matrix the lower triangle. Returns how
// many; 0 at the end, when all that were announced have been read and nothing follows; -1 on failure.
int64_t matrix_market_read(struct matrix_market* m, struct entry* entries, int64_t most, char* text);

void matrix_market_close(struct matrix_market* m);
