// The sparse matrix of the CG program, with its rows distributed over the processes. It comes from a Matrix Market
// file, or is a stencil on a grid of N x N x N points: that of HPCG, which has 27 points, or a wider one.
//
// CG needs a symmetric, positive definite matrix. A general matrix A is replaced by its symmetric part (A + A^T) / 2,
// which equals A if A is symmetric. Duplicate entries are added up. `dominant` makes any symmetric matrix positive
// definite: each diagonal entry becomes 1 + the sum of the absolute values of the row's other entries.
#pragma once

#include <mpi.h>
#include <stdint.h>

// The origin of a matrix, and changes to its diagonal.
struct matrix_source {
  const char* path;  // Matrix Market file; NULL: the stencil
  int64_t points;    // grid points of the stencil in each direction
  int64_t reach;     // greatest distance of two points of the stencil in each direction; 1: 27 points, 2: 125
  int dominant;
  double shift;  // added to the diagonal
};

// The rows of this process in CSR format. Columns ascend in each row. libhocket owns the arrays.
struct matrix {
  int64_t n;             // rows of the whole matrix
  int64_t first, count;  // this process's rows: first … first + count - 1
  int64_t* starts;       // count + 1 offsets, from 0
  int32_t* columns;
  double* values;
};

#define MATRIX_POINTS 1023  // limit in each direction: as many rows as an entry can name
#define MATRIX_REACH 3

// Determines the number of rows n; rank 0 of `comm` reads it. Collective; returns the same PROGRAM_… code in each
// process.
int matrix_size(const struct matrix_source* source, int64_t* n, MPI_Comm comm);

// Allocates columns and values of this process's rows. Returns 0 without memory.
typedef int matrix_reserve(struct matrix* matrix, int64_t nonzeros, void* context);

// Fills the rows first … first + count - 1 of each process. Precondition: n, first, count and starts are set.
// Collective; returns the same PROGRAM_… code in each process. No process holds the whole file: rank 0 broadcasts it
// in batches.
int matrix_fill(struct matrix* matrix, const struct matrix_source* source, matrix_reserve* reserve, void* context,
                MPI_Comm comm);
