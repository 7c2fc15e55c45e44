#include "matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix_market.h"
#include "program.h"

enum { BATCH = 1 << 16 };  // entries that rank 0 broadcasts at once

static const char kNoMemory[] = "no memory for this process's part of the matrix: use more processes";

int matrix_size(const struct matrix_source* source, int64_t* n, MPI_Comm comm) {
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(comm, &rank);
  *n = source->points * source->points * source->points;
  if (!source->path) return PROGRAM_OK;
  if (rank == 0) {
    struct matrix_market file;
    if (matrix_market_open(&file, source->path, text) == 0) *n = file.rows;
    matrix_market_close(&file);
  }
  MPI_Bcast(n, 1, MPI_INT64_T, 0, comm);
  return any_failed(comm, text) ? PROGRAM_BAD_INPUT : PROGRAM_OK;
}

// ---- the stencil ---------------------------------------------------------------------------------------------------

enum { STENCIL_POINTS = (2 * MATRIX_REACH + 1) * (2 * MATRIX_REACH + 1) * (2 * MATRIX_REACH + 1) };  // the most

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Stores the columns of a stencil row in ascending order and returns how many there are, at most STENCIL_POINTS.
static int stencil_row(int64_t row, const struct matrix_source* s, int32_t* columns) {
  const int64_t points = s->points, reach = s->reach;
  const int64_t x = row % points, y = row / points % points, z = row / points / points;
  int count = 0;
  for (int64_t k = greater(z - reach, 0); k <= lesser(z + reach, points - 1); k++)
    for (int64_t j = greater(y - reach, 0); j <= lesser(y + reach, points - 1); j++)
      for (int64_t i = greater(x - reach, 0); i <= lesser(x + reach, points - 1); i++)
        columns[count++] = (int32_t)((k * points + j) * points + i);
  return count;
}

// Fills the rows of the stencil: -1 beside the diagonal, and on it the number of the other points, 26 in HPCG. The
// first pass counts, so that memory is reserved once.
static int fill_stencil(struct matrix* m, const struct matrix_source* s, matrix_reserve* reserve, void* context,
                        MPI_Comm comm) {
  int32_t columns[STENCIL_POINTS];
  const int64_t width = 2 * s->reach + 1;
  const double diagonal = (double)(width * width * width - 1);
  for (int64_t i = 0; i < m->count; i++) m->starts[i + 1] = m->starts[i] + stencil_row(m->first + i, s, columns);
  if (any_failed(comm, reserve(m, m->starts[m->count], context) ? "" : kNoMemory)) return PROGRAM_FAILED;
  for (int64_t i = 0; i < m->count; i++) {
    stencil_row(m->first + i, s, m->columns + m->starts[i]);
    for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++)
      m->values[k] = m->columns[k] == m->first + i ? diagonal : -1;
  }
  return PROGRAM_OK;
}

// ---- from a file ---------------------------------------------------------------------------------------------------

// The entries of this process's rows in the order of the file. The array doubles when it is full.
struct heap {
  struct entry* entries;
  int64_t count, room;
  int no_memory;  // true if an allocation failed; the entry was dropped
};

// Keeps an entry if its row belongs to this process.
static void keep(struct heap* heap, const struct matrix* m, int64_t row, int64_t column, double value) {
  if (row < m->first || row >= m->first + m->count) return;
  if (heap->count == heap->room) {
    const int64_t room = heap->room ? heap->room * 2 : BATCH;
    struct entry* more = realloc(heap->entries, (size_t)room * sizeof *more);
    heap->no_memory |= !more;
    if (!more) return;
    heap->entries = more;
    heap->room = room;
  }
  heap->entries[heap->count++] = (struct entry){(int32_t)(row - m->first), (int32_t)column, value};
}

// Keeps an entry and its mirror image. A general matrix becomes the sum of A / 2 and its transpose.
static void keep_both(struct heap* heap, const struct matrix* m, const struct entry* e, int symmetric) {
  if (symmetric && e->row == e->column) {
    keep(heap, m, e->row, e->row, e->value);
    return;
  }
  const double value = symmetric ? e->value : e->value / 2;
  keep(heap, m, e->row, e->column, value);
  keep(heap, m, e->column, e->row, value);
}

// Distributes the entries of the file. Rank 0 reads batches and broadcasts them, and each process keeps those of its
// rows.
static int read_entries(struct heap* heap, const struct matrix* m, const char* path, MPI_Comm comm) {
  static struct entry batch[BATCH];
  char text[TEXT] = "";
  struct matrix_market file = {0};
  int rank;
  MPI_Comm_rank(comm, &rank);
  int64_t head[2] = {0, 0};  // entries of this batch (-1: failure); true if the matrix is symmetric
  if (rank == 0 && matrix_market_open(&file, path, text) < 0) head[0] = -1;
  do {
    if (rank == 0 && head[0] >= 0) head[0] = matrix_market_read(&file, batch, BATCH, text);
    head[1] = file.symmetric;
    MPI_Bcast(head, 2, MPI_INT64_T, 0, comm);
    if (head[0] > 0) MPI_Bcast(batch, (int)(head[0] * (int64_t)sizeof *batch), MPI_BYTE, 0, comm);
    for (int64_t k = 0; k < head[0]; k++) keep_both(heap, m, &batch[k], head[1] != 0);
  } while (head[0] > 0);
  matrix_market_close(&file);
  if (any_failed(comm, text)) return PROGRAM_BAD_INPUT;
  return any_failed(comm, heap->no_memory ? kNoMemory : "") ? PROGRAM_FAILED : PROGRAM_OK;
}

// Orders by column. Equal columns order by value, so their sum does not depend on the order in the file.
static int compare(const void* left, const void* right) {
  const struct entry *a = left, *b = right;
  if (a->column != b->column) return a->column < b->column ? -1 : 1;
  return (a->value > b->value) - (a->value < b->value);
}

// Sorts the entries by row and column, and adds up duplicates. Sets starts[] so that starts[i + 1] - starts[i] is the
// number of nonzeros of row i. Returns the sorted entries, or NULL without memory. Rows are sorted by counting, in
// linear time.
static struct entry* sort(struct heap* heap, struct matrix* m) {
  struct entry* sorted = malloc((size_t)(heap->count + 1) * sizeof *sorted);
  int64_t* next = calloc((size_t)m->count + 2, sizeof *next);
  if (sorted && next) {
    for (int64_t k = 0; k < heap->count; k++) next[heap->entries[k].row + 2]++;
    for (int64_t i = 0; i < m->count; i++) next[i + 2] += next[i + 1];
    for (int64_t k = 0; k < heap->count; k++) sorted[next[heap->entries[k].row + 1]++] = heap->entries[k];
    int64_t kept = 0;
    for (int64_t i = 0; i < m->count; i++) {  // next[i] is now the beginning of row i
      qsort(sorted + next[i], (size_t)(next[i + 1] - next[i]), sizeof *sorted, compare);
      for (int64_t k = next[i]; k < next[i + 1]; k++)
        if (kept > m->starts[i] && sorted[kept - 1].column == sorted[k].column)
          sorted[kept - 1].value += sorted[k].value;
        else
          sorted[kept++] = sorted[k];
      m->starts[i + 1] = kept;
    }
  } else {
    free(sorted);
    sorted = NULL;
  }
  free(next);
  return sorted;
}

// Fills the rows from a file. Failures are agreed on before anything is stored.
static int fill_from_file(struct matrix* m, const struct matrix_source* source, matrix_reserve* reserve, void* context,
                          MPI_Comm comm) {
  struct heap heap = {0};
  int failure = read_entries(&heap, m, source->path, comm);
  if (!failure && (source->dominant || source->shift != 0))
    for (int64_t i = m->first; i < m->first + m->count; i++) keep(&heap, m, i, i, 0);  // so that it can be changed
  struct entry* sorted = failure ? NULL : sort(&heap, m);
  free(heap.entries);
  if (!failure) {
    const int good = sorted && !heap.no_memory && reserve(m, m->starts[m->count], context);
    failure = any_failed(comm, good ? "" : kNoMemory) ? PROGRAM_FAILED : PROGRAM_OK;
  }
  for (int64_t k = 0; !failure && k < m->starts[m->count]; k++) {
    m->columns[k] = sorted[k].column;
    m->values[k] = sorted[k].value;
  }
  free(sorted);
  return failure;
}

// ---- both ----------------------------------------------------------------------------------------------------------

// Replaces the diagonal if `dominant`, and adds the shift.
static void change_diagonal(struct matrix* m, const struct matrix_source* source) {
  for (int64_t i = 0; i < m->count; i++) {
    double others = 0, *diagonal = NULL;
    for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++)
      if (m->columns[k] == m->first + i)
        diagonal = &m->values[k];
      else
        others += fabs(m->values[k]);
    if (source->dominant) *diagonal = 1 + others;
    *diagonal += source->shift;
  }
}

int matrix_fill(struct matrix* matrix, const struct matrix_source* source, matrix_reserve* reserve, void* context,
                MPI_Comm comm) {
  const int failure = source->path ? fill_from_file(matrix, source, reserve, context, comm)
                                   : fill_stencil(matrix, source, reserve, context, comm);
  if (!failure && (source->dominant || source->shift != 0)) change_diagonal(matrix, source);
  return failure;
}
