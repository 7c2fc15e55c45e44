// The sparse matrix of the CG program, its rows shared out over the processes: from a Matrix Market file, or the
// 27-point stencil of HPCG on a grid of N x N x N points.
//
// CG needs a symmetric, positive definite matrix. A general matrix A is taken for its symmetric part (A + A^T) / 2,
// which is A itself where A is symmetric; entries that are given twice are added up. `dominant` makes any symmetric
// matrix positive definite: its diagonal becomes 1 + the sum of the absolute values of the row's other entries.
#pragma once

#include <mpi.h>
#include <stdint.h>

struct matrix_source {
  const char* path;  // of a Matrix Market file; NULL: the stencil
  int64_t points;    // of the stencil's grid, in each direction
  int dominant;
  double shift;  // is added to the diagonal
};

// This process's rows, in CSR. Columns ascend in each row.
struct matrix {
  int64_t n;             // rows of the whole matrix
  int64_t first, count;  // this process's rows: first … first + count - 1
  int64_t* starts;       // count + 1 of them, from 0
  int32_t* columns;
  double* values;
};

#define MATRIX_POINTS 1023  // at most, in each direction: as many rows as an entry can name

// n, as the source tells it: rank 0 of `comm` looks. Collective; returns a PROGRAM_… code, the same in each process.
int matrix_size(const struct matrix_source* source, int64_t* n, MPI_Comm comm);

// Makes room for the columns and values of this process's rows. Returns 0 if there is no memory.
typedef int matrix_reserve(struct matrix* matrix, int64_t nonzeros, void* context);

// Fills the rows first … first + count - 1 of each process; n, first, count and starts are there. Collective; returns a
// PROGRAM_… code, the same in each process. No process holds the file: rank 0 reads it piece by piece for all.
int matrix_fill(struct matrix* matrix, const struct matrix_source* source, matrix_reserve* reserve, void* context,
                MPI_Comm comm);
