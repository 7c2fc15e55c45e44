// A PnetCDF program with the calls of its manual: dimensions, variables, attributes, and records. Collective accesses
// are by subarrays, by strides, by a mapping of memory, and by several requests at once.
//
//   pnetcdf_patterns FILE write|read   read compares the data and prints "right"
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 10, RECORDS = 3 };

static int rank, ranks;

static void check(int status, int line) {
  if (status == NC_NOERR) return;
  fprintf(stderr, "rank %d, line %d: %s\n", rank, line, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define NC(call) check(call, __LINE__)

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s differs from what was written\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Returns the content of element (row, column) of a variable.
static int value(int variable, MPI_Offset row, MPI_Offset column) {
  return (int)(variable * 1000003 + row * 1009 + column);
}

static void define(int file, int variables[4]) {
  int dimensions[2], records[2];
  NC(ncmpi_def_dim(file, "y", (MPI_Offset)ROWS * ranks, &dimensions[0]));
  NC(ncmpi_def_dim(file, "x", COLUMNS, &dimensions[1]));
  NC(ncmpi_def_dim(file, "time", NC_UNLIMITED, &records[0]));
  records[1] = dimensions[1];
  NC(ncmpi_def_var(file, "rows", NC_INT, 2, dimensions, &variables[0]));
  NC(ncmpi_def_var(file, "strided", NC_INT, 2, dimensions, &variables[1]));
  NC(ncmpi_def_var(file, "mapped", NC_INT, 2, dimensions, &variables[2]));
  NC(ncmpi_def_var(file, "records", NC_INT, 2, records, &variables[3]));
  NC(ncmpi_put_att_text(file, variables[0], "units", 7, "metres\n"));
  NC(ncmpi_enddef(file));
}

static void find(int file, int variables[4]) {
  const char* const names[] = {"rows", "strided", "mapped", "records"};
  for (int i = 0; i < 4; ++i) NC(ncmpi_inq_varid(file, names[i], &variables[i]));
}

// Variable 0: the rows of this rank, contiguous.
static void move_rows(int file, int variable, int writes) {
  const MPI_Offset start[] = {(MPI_Offset)rank * ROWS, 0}, count[] = {ROWS, COLUMNS};
  int data[ROWS][COLUMNS] = {{0}};
  for (int y = 0; y < ROWS && writes; ++y)
    for (int x = 0; x < COLUMNS; ++x) data[y][x] = value(0, start[0] + y, x);
  if (writes) {
    NC(ncmpi_put_vara_int_all(file, variable, start, count, &data[0][0]));
    return;
  }
  NC(ncmpi_get_vara_int_all(file, variable, start, count, &data[0][0]));
  for (int y = 0; y < ROWS; ++y)
    for (int x = 0; x < COLUMNS; ++x) require(data[y][x] == value(0, start[0] + y, x), "rows");
}

// Variable 1: every ranks-th row.
static void move_strided(int file, int variable, int writes) {
  const MPI_Offset start[] = {rank, 0}, count[] = {ROWS, COLUMNS}, stride[] = {ranks, 1};
  int data[ROWS][COLUMNS] = {{0}};
  for (int y = 0; y < ROWS && writes; ++y)
    for (int x = 0; x < COLUMNS; ++x) data[y][x] = value(1, rank + (MPI_Offset)y * ranks, x);
  if (writes) {
    NC(ncmpi_put_vars_int_all(file, variable, start, count, stride, &data[0][0]));
    return;
  }
  NC(ncmpi_get_vars_int_all(file, variable, start, count, stride, &data[0][0]));
  for (int y = 0; y < ROWS; ++y)
    for (int x = 0; x < COLUMNS; ++x) require(data[y][x] == value(1, rank + (MPI_Offset)y * ranks, x), "strided");
}

// Variable 2: the rows of this rank, column-major in memory.
static void move_mapped(int file, int variable, int writes) {
  const MPI_Offset start[] = {(MPI_Offset)rank * ROWS, 0}, count[] = {ROWS, COLUMNS}, stride[] = {1, 1},
                   map[] = {1, ROWS};
  int data[COLUMNS][ROWS] = {{0}};
  for (int y = 0; y < ROWS && writes; ++y)
    for (int x = 0; x < COLUMNS; ++x) data[x][y] = value(2, start[0] + y, x);
  if (writes) {
    NC(ncmpi_put_varm_int_all(file, variable, start, count, stride, map, &data[0][0]));
    return;
  }
  NC(ncmpi_get_varm_int_all(file, variable, start, count, stride, map, &data[0][0]));
  for (int y = 0; y < ROWS; ++y)
    for (int x = 0; x < COLUMNS; ++x) require(data[x][y] == value(2, start[0] + y, x), "mapped");
}

// Variable 3: columns in turn, of all records, by combined requests.
static void move_records(int file, int variable, int writes) {
  int requests[RECORDS * COLUMNS], statuses[RECORDS * COLUMNS], data[RECORDS * COLUMNS], used = 0;
  for (int t = 0; t < RECORDS; ++t) {
    for (int x = rank; x < COLUMNS; x += ranks) {
      const MPI_Offset start[] = {t, x}, count[] = {1, 1};
      data[used] = writes ? value(3, t, x) : 0;
      if (writes)
        NC(ncmpi_iput_vara_int(file, variable, start, count, &data[used], &requests[used]));
      else
        NC(ncmpi_iget_vara_int(file, variable, start, count, &data[used], &requests[used]));
      ++used;
    }
  }
  NC(ncmpi_wait_all(file, used, requests, statuses));
  for (int i = 0; i < used; ++i) NC(statuses[i]);
  used = 0;
  for (int t = 0; t < RECORDS && !writes; ++t)
    for (int x = rank; x < COLUMNS; x += ranks) require(data[used++] == value(3, t, x), "records");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int writes = argc > 2 && !strcmp(argv[2], "write");
  int file, variables[4];
  if (writes) {
    NC(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    define(file, variables);
  } else {
    NC(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
    find(file, variables);
  }
  move_rows(file, variables[0], writes);
  move_strided(file, variables[1], writes);
  move_mapped(file, variables[2], writes);
  move_records(file, variables[3], writes);
  NC(ncmpi_close(file));
  if (rank == 0) printf("%s\n", writes ? "written" : "right");
  MPI_Finalize();
  return 0;
}
