#define _GNU_SOURCE  // fallocate
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct state_header) == 64, "the header is 64 bytes in every file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the files are little-endian");

enum { TEXT = 4600 };  // of a failure: two paths and some words
static const int kOff = sizeof(struct state_header);

static uint64_t record_bytes(uint64_t n) { return (n + 2) * sizeof(double); }
uint64_t state_file_bytes(uint64_t n) { return sizeof(struct state_header) + n * record_bytes(n); }
static uint64_t offset_of(const struct state* s, uint64_t row) {
  return (uint64_t)kOff + (s->first_row + row) * record_bytes(s->header.n);
}

void block_of(uint64_t n, int ranks, int rank, uint64_t* first_row, uint64_t* rows) {
  uint64_t each = n / (uint64_t)ranks, more = n % (uint64_t)ranks, r = (uint64_t)rank;
  *rows = each + (r < more);
  *first_row = r * each + (r < more ? r : more);
}

int any_failed(const char* text) {
  int rank, ranks, lowest;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int mine = text[0] ? rank : ranks;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == rank && lowest < ranks) fprintf(stderr, "jacobi: %s\n", text);
  return lowest < ranks;
}

// Puts "cannot DO PATH: why" into text if `code` is an error.
static void mpi_failure(char* text, int code, const char* what, const char* path) {
  char why[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, why, &length);
  for (char* c = why; *c; c++)
    if (*c == '\n') *c = ' ';
  snprintf(text, TEXT, "cannot %s %s: %s", what, path, why);
}

static int allocate(struct state* s, uint64_t n) {
  char text[TEXT] = "";
  MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
  block_of(n, s->ranks, s->rank, &s->first_row, &s->rows);
  s->records = calloc(s->rows ? s->rows : 1, record_bytes(n));
  if (!s->records)
    snprintf(text, sizeof text, "no memory for %llu rows of n = %llu on rank %d: use more ranks or a smaller system",
             (unsigned long long)s->rows, (unsigned long long)n, s->rank);
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

// ---- a system to solve ---------------------------------------------------------------------------------------------

// Uniform in [0, 1), from a hash (splitmix64) of its place, so that no rank needs the numbers before its own.
static double uniform(uint64_t seed, uint64_t place) {
  uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + place * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Off the diagonal -uniform, so that the errors do not cancel: the diagonal's margin of 1/16 over its row makes each
// iteration reduce the residual by about that, however large the system.
static void generate_row(double* rec, uint64_t n, uint64_t i, uint64_t seed) {
  double *a = rec + 2, sum = 0, b = 0;
  for (uint64_t j = 0; j < n; j++) {
    if (j == i) continue;
    a[j] = -uniform(seed, i * n + j);
    sum -= a[j];
  }
  a[i] = 1 + sum * (1 + 1.0 / 16);
  for (uint64_t j = 0; j < n; j++) b += a[j] * (double)(j + 1) / (double)n;
  rec[0] = 0;
  rec[1] = b;
}

int state_generate(struct state* s, uint64_t n, uint64_t seed) {
  memset(s, 0, sizeof *s);
  memcpy(s->header.magic, STATE_MAGIC, sizeof s->header.magic);
  s->header.version = STATE_VERSION;
  s->header.n = n;
  int failure = allocate(s, n);
  if (failure) return failure;
  for (uint64_t row = 0; row < s->rows; row++) generate_row(record(s, row), n, s->first_row + row, seed);
  return JACOBI_OK;
}

// ---- reading -------------------------------------------------------------------------------------------------------

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

// Rank 0 reads and checks the header, all learn it.
static int read_header(struct state_header* h, const char* path) {
  char text[TEXT] = "";
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
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
  MPI_Bcast(h, sizeof *h, MPI_BYTE, 0, MPI_COMM_WORLD);
  return any_failed(text) ? JACOBI_BAD_INPUT : JACOBI_OK;
}

// Jacobi converges on a strictly diagonally dominant matrix; a damaged one shows here, too.
static int check_rows(const struct state* s, const char* path) {
  char text[TEXT] = "";
  uint64_t n = s->header.n;
  for (uint64_t row = 0; row < s->rows && !text[0]; row++) {
    const double* a = record(s, row) + 2;
    uint64_t i = s->first_row + row;
    double others = 0, diagonal = a[i] < 0 ? -a[i] : a[i];
    for (uint64_t j = 0; j < n; j++)
      if (j != i) others += a[j] < 0 ? -a[j] : a[j];
    if (!(diagonal > others))
      snprintf(text, sizeof text,
               "%s: row %llu is not strictly diagonally dominant (|diagonal| %g, the others' sum %g)", path,
               (unsigned long long)i, diagonal, others);
  }
  return any_failed(text) ? JACOBI_BAD_INPUT : JACOBI_OK;
}

// ---- moving records ------------------------------------------------------------------------------------------------

enum direction { READ, WRITE };

// One collective call: `rows` records of this rank from row `from` on.
static int move_rows(MPI_File file, const struct state* s, uint64_t from, uint64_t rows, enum direction way,
                     const char* path) {
  char text[TEXT] = "";
  MPI_Datatype type;
  MPI_Status status;
  MPI_Type_contiguous((int)(s->header.n + 2), MPI_DOUBLE, &type);  // so that the count is in rows and fits an int
  MPI_Type_commit(&type);
  MPI_Offset at = (MPI_Offset)offset_of(s, from);
  void* buffer = rows ? record(s, from) : s->records;
  int code = way == READ ? MPI_File_read_at_all(file, at, buffer, (int)rows, type, &status)
                         : MPI_File_write_at_all(file, at, buffer, (int)rows, type, &status);
  int moved = 0;
  if (code == MPI_SUCCESS) MPI_Get_count(&status, type, &moved);
  mpi_failure(text, code, way == READ ? "read" : "write", path);
  if (code == MPI_SUCCESS && moved != (int)rows)
    snprintf(text, sizeof text, "cannot %s %s: rank %d moved %d of %llu records at offset %lld: is the storage full?",
             way == READ ? "read" : "write", path, s->rank, moved, (unsigned long long)rows, (long long)at);
  MPI_Type_free(&type);
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

// As many collective calls as rank 0, which has the most rows, needs.
static int move_all(MPI_File file, const struct state* s, int64_t chunk_bytes, enum direction way, const char* path) {
  uint64_t each = (uint64_t)chunk_bytes / record_bytes(s->header.n), first, most;
  if (each < 1) each = 1;
  block_of(s->header.n, s->ranks, 0, &first, &most);
  int failure = JACOBI_OK;
  for (uint64_t from = 0; from < most && !failure; from += each) {
    uint64_t left = from < s->rows ? s->rows - from : 0;
    failure = move_rows(file, s, from, left < each ? left : each, way, path);
  }
  return failure;
}

static int open_file(MPI_File* file, const char* path, int mode, int failure) {
  char text[TEXT] = "";
  int code = MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, file);
  mpi_failure(text, code, "open", path);
  if (!any_failed(text)) return JACOBI_OK;
  if (code == MPI_SUCCESS) MPI_File_close(file);
  return failure;
}

int state_read(struct state* s, const char* path, int64_t chunk_bytes) {
  MPI_File file;
  memset(s, 0, sizeof *s);
  int failure = read_header(&s->header, path);
  if (!failure) failure = allocate(s, s->header.n);
  if (!failure) failure = open_file(&file, path, MPI_MODE_RDONLY, JACOBI_BAD_INPUT);
  if (failure) return failure;
  failure = move_all(file, s, chunk_bytes, READ, path);
  MPI_File_close(&file);
  return failure ? failure : check_rows(s, path);
}

// ---- writing -------------------------------------------------------------------------------------------------------

static int write_header(MPI_File file, const struct state* s, const char* path) {
  char text[TEXT] = "";
  MPI_Status status;
  int bytes = s->rank == 0 ? kOff : 0;
  mpi_failure(text, MPI_File_write_at_all(file, 0, &s->header, bytes, MPI_BYTE, &status), "write", path);
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

static int sync_and_close(MPI_File* file, const char* path, int failure) {
  char text[TEXT] = "";
  if (!failure) {
    mpi_failure(text, MPI_File_sync(*file), "sync", path);
    if (any_failed(text)) failure = JACOBI_FAILED;
  }
  text[0] = 0;
  mpi_failure(text, MPI_File_close(file), "close", path);
  return any_failed(text) ? JACOBI_FAILED : failure;
}

static int rename_whole(const struct state* s, const char* from, const char* to, int failure) {
  char text[TEXT] = "";
  if (s->rank == 0 && failure) unlink(from);
  if (failure) return failure;
  if (s->rank == 0 && rename(from, to) < 0)
    snprintf(text, sizeof text, "cannot rename %s to %s: %s", from, to, strerror(errno));
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

// Rank 0 makes the file and claims its space, so that a full disk is met here and not inside a collective write, where
// Open MPI 5 leaves the other ranks hanging. A file system that cannot claim space (EOPNOTSUPP) goes without.
static int create_whole(const struct state* s, const char* path) {
  char text[TEXT] = "";
  if (s->rank == 0) {
    uint64_t bytes = state_file_bytes(s->header.n);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || (fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP)) {
      snprintf(text, sizeof text, "cannot create %s with %llu bytes: %s", path, (unsigned long long)bytes,
               strerror(errno));
      if (fd >= 0) unlink(path);
    }
    if (fd >= 0) close(fd);
  }
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

int state_write(const struct state* s, const char* path, int64_t chunk_bytes) {
  char part[2048];
  MPI_File file;
  snprintf(part, sizeof part, "%s.part", path);
  int failure = create_whole(s, part);
  if (!failure) failure = open_file(&file, part, MPI_MODE_WRONLY, JACOBI_FAILED);
  if (failure) return failure;
  failure = write_header(file, s, part);
  if (!failure) failure = move_all(file, s, chunk_bytes, WRITE, part);
  failure = sync_and_close(&file, part, failure);
  return rename_whole(s, part, path, failure);
}

// ---- comparing -----------------------------------------------------------------------------------------------------

static void report_difference(char* text, const char* path, uint64_t offset, const unsigned char* held,
                              const unsigned char* found) {
  uint64_t at = 0;
  while (held[at] == found[at]) at++;
  snprintf(text, TEXT, "%s differs from what was written: offset %llu, expected 0x%02x, found 0x%02x", path,
           (unsigned long long)(offset + at), held[at], found[at]);
}

// Compares [offset, offset + bytes) of the file with `held`.
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
    if (s->rank == 0) compare(text, fd, path, 0, &s->header, sizeof s->header);
    compare(text, fd, path, offset_of(s, 0), s->records, s->rows * record_bytes(s->header.n));
    close(fd);
  }
  return any_failed(text) ? JACOBI_FAILED : JACOBI_OK;
}

void state_free(struct state* s) {
  free(s->records);
  s->records = NULL;
}
