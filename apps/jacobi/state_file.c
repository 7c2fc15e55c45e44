#define _GNU_SOURCE  // for fallocate
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

_Static_assert(sizeof(struct state_header) == 64, "the header is 64 bytes in every file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the files are little-endian");

static const int kOff = sizeof(struct state_header);

static uint64_t record_bytes(uint64_t n) { return (n + 2) * sizeof(double); }
uint64_t state_file_bytes(uint64_t n) { return sizeof(struct state_header) + n * record_bytes(n); }
// Returns the offset of a row's record in the file; `row` counts from this rank's first.
static uint64_t offset_of(const struct state* s, uint64_t row) {
  return (uint64_t)kOff + (s->first_row + row) * record_bytes(s->header->n);
}

// ---- a system to solve ---------------------------------------------------------------------------------------------

// Returns a uniform number in [0, 1). It is a hash (splitmix64) of its place, so no rank needs the numbers before its
// own.
static double uniform(uint64_t seed, uint64_t place) {
  uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + place * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Generates equation i. Off the diagonal are negative numbers, so that errors do not cancel. The diagonal exceeds
// their sum by 1/16 of it, so each iteration reduces the residual by about that fraction, however large the system.
static void generate_equation(double* equation_i, uint64_t n, uint64_t i, uint64_t seed) {
  double *a = equation_i + 1, sum = 0, b = 0;
  for (uint64_t j = 0; j < n; j++) {
    if (j == i) continue;
    a[j] = -uniform(seed, i * n + j);
    sum -= a[j];
  }
  a[i] = 1 + sum * (1 + 1.0 / 16);
  // The right side belongs to the solution x_j = (j + 1) / n.
  for (uint64_t j = 0; j < n; j++) b += a[j] * (double)(j + 1) / (double)n;
  equation_i[0] = b;
}

struct state_header state_new(uint64_t n) {
  struct state_header header = {.version = STATE_VERSION, .n = n};
  memcpy(header.magic, STATE_MAGIC, sizeof header.magic);
  return header;
}

void state_generate(struct state* s, uint64_t seed) {
  for (uint64_t row = 0; row < s->rows; row++) {
    s->x[row] = 0;
    generate_equation(equation(s, row), s->header->n, s->first_row + row, seed);
  }
}

// ---- reading -------------------------------------------------------------------------------------------------------

// Checks the header of a file of `size` bytes. An empty text means that it is good.
static void check_header(char* text, const struct state_header* h, int64_t size, const char* path) {
  if (size < kOff || memcmp(h->magic, STATE_MAGIC, sizeof h->magic) != 0)
    snprintf(text, TEXT, "%s is not a Jacobi state (no magic number): make one with --generate N", path);
  else if (h->version != STATE_VERSION)
    snprintf(text, TEXT, "%s has format version %u, this program reads version %d", path, h->version, STATE_VERSION);
  else if (h->n < 1 || h->n > STATE_N_MAX)
    snprintf(text, TEXT, "%s has n = %llu, outside 1 … %llu: it is damaged", path, (unsigned long long)h->n,
             (unsigned long long)STATE_N_MAX);
  else if ((uint64_t)size != state_file_bytes(h->n))
    snprintf(text, TEXT, "%s is %lld bytes long, but n = %llu needs %llu: it is cut short or damaged", path,
             (long long)size, (unsigned long long)h->n, (unsigned long long)state_file_bytes(h->n));
}

// Rank 0 reads and checks the header, and broadcasts it.
int state_read_header(struct state_header* h, const char* path, MPI_Comm comm) {
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(comm, &rank);
  memset(h, 0, sizeof *h);
  if (rank == 0) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0 || pread(fd, h, sizeof *h, 0) < 0)
      snprintf(text, sizeof text, "cannot read %s: %s", path, strerror(errno));
    else
      check_header(text, h, status.st_size, path);
    if (fd >= 0) close(fd);
  }
  MPI_Bcast(h, sizeof *h, MPI_BYTE, 0, comm);
  return any_failed(comm, text) ? PROGRAM_BAD_INPUT : PROGRAM_OK;
}

// Checks that the matrix is strictly diagonally dominant: Jacobi then converges. This also detects damaged files.
static int check_rows(const struct state* s, const char* path) {
  char text[TEXT] = "";
  uint64_t n = s->header->n;
  for (uint64_t row = 0; row < s->rows && !text[0]; row++) {
    const double* a = equation(s, row) + 1;
    uint64_t i = s->first_row + row;
    double others = 0, diagonal = a[i] < 0 ? -a[i] : a[i];
    for (uint64_t j = 0; j < n; j++)
      if (j != i) others += a[j] < 0 ? -a[j] : a[j];
    if (!(diagonal > others))  // also refuses NaN
      snprintf(text, sizeof text,
               "%s: row %llu is not strictly diagonally dominant (|diagonal| %g, the others' sum %g)", path,
               (unsigned long long)i, diagonal, others);
  }
  return any_failed(s->comm, text) ? PROGRAM_BAD_INPUT : PROGRAM_OK;
}

// ---- moving records ------------------------------------------------------------------------------------------------

enum direction { READ, WRITE };

// Creates the datatype of `rows` records from row `from` on, as they lie in memory: x_i and equation i alternate,
// with addresses relative to s->x. Returns 0 without memory.
static int record_type(const struct state* s, uint64_t from, uint64_t rows, MPI_Datatype* type) {
  int* lengths = malloc((2 * rows + 1) * sizeof *lengths);
  MPI_Aint *places = malloc((2 * rows + 1) * sizeof *places), base;
  const int good = lengths && places;
  MPI_Get_address(s->x, &base);
  for (uint64_t i = 0; good && i < rows; i++) {
    lengths[2 * i] = 1;
    lengths[2 * i + 1] = (int)s->header->n + 1;
    MPI_Get_address(s->x + from + i, &places[2 * i]);
    MPI_Get_address(equation(s, from + i), &places[2 * i + 1]);
    places[2 * i] = MPI_Aint_diff(places[2 * i], base);
    places[2 * i + 1] = MPI_Aint_diff(places[2 * i + 1], base);
  }
  if (good) {
    MPI_Type_create_hindexed((int)(2 * rows), lengths, places, MPI_DOUBLE, type);
    MPI_Type_commit(type);
  }
  free(lengths);
  free(places);
  return good;
}

// Moves `rows` records from row `from` on by one collective call. A rank without rows takes part with an empty
// access.
static int move_rows(MPI_File file, const struct state* s, uint64_t from, uint64_t rows, enum direction way,
                     const char* path) {
  char text[TEXT] = "";
  MPI_Datatype type;
  MPI_Status status;
  if (any_failed(s->comm, record_type(s, from, rows, &type) ? "" : "no memory for a datatype of the rows"))
    return PROGRAM_FAILED;
  const int doubles = (int)(rows * (s->header->n + 2));
  MPI_Offset at = (MPI_Offset)offset_of(s, from);
  int code = way == READ ? MPI_File_read_at_all(file, at, s->x, rows != 0, type, &status)
                         : MPI_File_write_at_all(file, at, s->x, rows != 0, type, &status);
  int moved = 0;
  if (code == MPI_SUCCESS && rows) MPI_Get_elements(&status, type, &moved);
  mpi_failure(text, code, way == READ ? "read" : "write", path);
  if (code == MPI_SUCCESS && moved != doubles)
    snprintf(text, sizeof text, "cannot %s %s: rank %d moved %d of %d numbers at offset %lld: is the storage full?",
             way == READ ? "read" : "write", path, s->rank, moved, doubles, (long long)at);
  MPI_Type_free(&type);
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// Makes as many collective calls as the rank with the most rows needs.
static int move_all(MPI_File file, const struct state* s, int64_t chunk_bytes, enum direction way, const char* path) {
  uint64_t each = (uint64_t)chunk_bytes / record_bytes(s->header->n);
  if (each < 1) each = 1;
  int failure = PROGRAM_OK;
  for (uint64_t from = 0; from < s->most_rows && !failure; from += each) {
    uint64_t left = from < s->rows ? s->rows - from : 0;
    failure = move_rows(file, s, from, left < each ? left : each, way, path);
  }
  return failure;
}

// Opens the file in all ranks or in none. `failure` is the code to return: a file to read is input of the user.
static int open_file(MPI_File* file, const struct state* s, const char* path, int mode, int failure) {
  char text[TEXT] = "";
  int code = MPI_File_open(s->comm, path, mode, MPI_INFO_NULL, file);
  mpi_failure(text, code, "open", path);
  if (!any_failed(s->comm, text)) return PROGRAM_OK;
  if (code == MPI_SUCCESS) MPI_File_close(file);
  return failure;
}

int state_read(struct state* s, const char* path, int64_t chunk_bytes) {
  MPI_File file;
  int failure = open_file(&file, s, path, MPI_MODE_RDONLY, PROGRAM_BAD_INPUT);
  if (failure) return failure;
  failure = move_all(file, s, chunk_bytes, READ, path);
  MPI_File_close(&file);
  return failure ? failure : check_rows(s, path);
}

// ---- writing -------------------------------------------------------------------------------------------------------

// Writes the header collectively; rank 0 has all of its bytes.
static int write_header(MPI_File file, const struct state* s, const char* path) {
  char text[TEXT] = "";
  MPI_Status status;
  int bytes = s->rank == 0 ? kOff : 0;
  mpi_failure(text, MPI_File_write_at_all(file, 0, s->header, bytes, MPI_BYTE, &status), "write", path);
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// Syncs and closes the file. Closing happens after a failure too, and its own failure counts.
static int sync_and_close(MPI_File* file, const struct state* s, const char* path, int failure) {
  char text[TEXT] = "";
  if (!failure) {
    mpi_failure(text, MPI_File_sync(*file), "sync", path);
    if (any_failed(s->comm, text)) failure = PROGRAM_FAILED;
  }
  // The text of an earlier failure was reported already.
  text[0] = 0;
  mpi_failure(text, MPI_File_close(file), "close", path);
  return any_failed(s->comm, text) ? PROGRAM_FAILED : failure;
}

// Gives the file its final name, or removes it after a failure.
static int rename_whole(const struct state* s, const char* from, const char* to, int failure) {
  char text[TEXT] = "";
  if (s->rank == 0 && failure) unlink(from);
  if (failure) return failure;
  if (s->rank == 0 && rename(from, to) < 0)
    snprintf(text, sizeof text, "cannot rename %s to %s: %s", from, to, strerror(errno));
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// Creates the file and reserves its space, by rank 0. So a full disk is detected here instead of inside a collective
// write, where Open MPI 5 leaves the other ranks hanging. File systems that cannot reserve space (EOPNOTSUPP) do
// without.
static int create_whole(const struct state* s, const char* path) {
  char text[TEXT] = "";
  if (s->rank == 0) {
    uint64_t bytes = state_file_bytes(s->header->n);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || (fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP)) {
      snprintf(text, sizeof text, "cannot create %s with %llu bytes: %s", path, (unsigned long long)bytes,
               strerror(errno));
      if (fd >= 0) unlink(path);
    }
    if (fd >= 0) close(fd);
  }
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

int state_write(const struct state* s, const char* path, int64_t chunk_bytes) {
  char part[2048];
  MPI_File file;
  snprintf(part, sizeof part, "%s.part", path);
  int failure = create_whole(s, part);
  if (!failure) failure = open_file(&file, s, part, MPI_MODE_WRONLY, PROGRAM_FAILED);
  if (failure) return failure;
  failure = write_header(file, s, part);
  if (!failure) failure = move_all(file, s, chunk_bytes, WRITE, part);
  failure = sync_and_close(&file, s, part, failure);
  return rename_whole(s, part, path, failure);
}

// ---- comparing -----------------------------------------------------------------------------------------------------

// Reports the first byte that differs.
static void report_difference(char* text, const char* path, uint64_t offset, const unsigned char* held,
                              const unsigned char* found) {
  uint64_t at = 0;
  while (held[at] == found[at]) at++;
  snprintf(text, TEXT, "%s differs from what was written: offset %llu, expected 0x%02x, found 0x%02x", path,
           (unsigned long long)(offset + at), held[at], found[at]);
}

// Compares the bytes [offset, offset + bytes) of the file with `held`.
static void compare(char* text, int fd, const char* path, uint64_t offset, const void* held, uint64_t bytes) {
  static unsigned char found[1 << 20];
  const unsigned char* expected = held;
  for (uint64_t done = 0; done < bytes && !text[0];) {
    uint64_t want = bytes - done < sizeof found ? bytes - done : sizeof found;
    ssize_t got = pread(fd, found, want, (off_t)(offset + done));
    if (got <= 0)
      snprintf(text, TEXT, "cannot read %s back: %s at offset %llu, expected %llu bytes more", path,
               got < 0 ? strerror(errno) : "end of file", (unsigned long long)(offset + done),
               (unsigned long long)(bytes - done));
    else if (memcmp(found, expected + done, (size_t)got) != 0)
      report_difference(text, path, offset + done, expected + done, found);
    else
      done += (uint64_t)got;
  }
}

int state_verify(const struct state* s, const char* path) {
  char text[TEXT] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    snprintf(text, sizeof text, "cannot read %s back: %s", path, strerror(errno));
  } else {
    if (s->rank == 0) compare(text, fd, path, 0, s->header, sizeof *s->header);
    for (uint64_t row = 0; row < s->rows && !text[0]; row++) {
      compare(text, fd, path, offset_of(s, row), &s->x[row], sizeof *s->x);
      compare(text, fd, path, offset_of(s, row) + sizeof *s->x, equation(s, row),
              record_bytes(s->header->n) - sizeof *s->x);
    }
    close(fd);
  }
  return any_failed(s->comm, text) ? PROGRAM_FAILED : PROGRAM_OK;
}
