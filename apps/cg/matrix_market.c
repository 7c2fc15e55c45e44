#define _POSIX_C_SOURCE 200809L
#include "matrix_market.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "program.h"

enum { LINE = 4096, END_OF_FILE = 0, A_LINE = 1, FAILED = -1 };

// Stores "PATH line N: …" in text. Returns FAILED, so that a caller can return its result.
static int wrong(const struct matrix_market* m, char* text, const char* format, ...) {
  va_list values;
  int used = snprintf(text, TEXT, "%.3000s line %lld: ", m->path, (long long)m->line);
  va_start(values, format);
  vsnprintf(text + used, (size_t)(TEXT - used), format, values);
  va_end(values);
  return FAILED;
}

// Reads one line. Compressed and plain files look the same through zlib.
static int next_line(struct matrix_market* m, char* line, char* text) {
  m->line++;
  if (!gzgets(m->file, line, LINE)) {
    int code;
    const char* why = gzerror(m->file, &code);
    if (code == Z_OK || code == Z_STREAM_END) return END_OF_FILE;
    return wrong(m, text, "cannot read on: %s", code == Z_ERRNO ? strerror(errno) : why);
  }
  if (!strchr(line, '\n') && strlen(line) == LINE - 1)
    return wrong(m, text, "longer than %d characters: is this a Matrix Market file?", LINE - 2);
  return A_LINE;
}

static int blank(const char* line) { return line[strspn(line, " \t\r\n")] == 0; }

// Reads the header line, and refuses what CG cannot use.
static int read_banner(struct matrix_market* m, char* text) {
  char line[LINE], banner[64] = "", object[64] = "", format[64] = "", field[64] = "", symmetry[64] = "";
  const int got = next_line(m, line, text);
  if (got == FAILED) return FAILED;
  if (got == END_OF_FILE) return wrong(m, text, "the file is empty: give a Matrix Market file");
  const int words = sscanf(line, "%63s %63s %63s %63s %63s", banner, object, format, field, symmetry);
  if (strcasecmp(banner, "%%MatrixMarket") != 0)
    return wrong(m, text, "no Matrix Market file: it must begin with %%%%MatrixMarket");
  if (words < 5) return wrong(m, text, "the header has %d of 5 words: matrix coordinate FIELD SYMMETRY", words);
  if (strcasecmp(object, "matrix") != 0 || strcasecmp(format, "coordinate") != 0)
    return wrong(m, text, "'%s %s' is not supported: give a sparse matrix ('matrix coordinate')", object, format);
  m->pattern = strcasecmp(field, "pattern") == 0;
  if (!m->pattern && strcasecmp(field, "real") != 0 && strcasecmp(field, "integer") != 0)
    return wrong(m, text, "field '%s' is not supported: give real, integer or pattern", field);
  m->symmetric = strcasecmp(symmetry, "symmetric") == 0;
  if (!m->symmetric && strcasecmp(symmetry, "general") != 0)
    return wrong(m, text, "symmetry '%s' is not supported: give symmetric or general", symmetry);
  return A_LINE;
}

// Parses a whole number at *at and moves *at behind it. Returns 0 if there is none.
static int take_whole(char** at, int64_t* value) {
  char* end;
  errno = 0;
  *value = strtoll(*at, &end, 10);
  const int good = end != *at && !errno && strchr(" \t\r\n", *end) != NULL;  // strchr also finds the terminating 0
  *at = end;
  return good;
}

// Reads the line of sizes; comments and empty lines may precede it.
static int read_sizes(struct matrix_market* m, char* text) {
  char line[LINE], *at = line;
  int64_t columns;
  int got;
  do got = next_line(m, line, text);
  while (got == A_LINE && (line[0] == '%' || blank(line)));
  if (got == FAILED) return FAILED;
  if (got == END_OF_FILE) return wrong(m, text, "the file ends before the line with its sizes: it is cut short");
  if (!take_whole(&at, &m->rows) || !take_whole(&at, &columns) || !take_whole(&at, &m->entries) || !blank(at))
    return wrong(m, text, "sizes expected: ROWS COLUMNS ENTRIES, three whole numbers");
  if (m->rows != columns)
    return wrong(m, text, "%lld rows and %lld columns: CG needs a square matrix", (long long)m->rows,
                 (long long)columns);
  if (m->rows < 1 || m->rows > MATRIX_MARKET_ROWS)
    return wrong(m, text, "%lld rows: this program takes 1 to %lld", (long long)m->rows, (long long)MATRIX_MARKET_ROWS);
  if (m->entries < 0) return wrong(m, text, "%lld entries: a negative number", (long long)m->entries);
  return A_LINE;
}

int matrix_market_open(struct matrix_market* m, const char* path, char* text) {
  *m = (struct matrix_market){.path = path};
  m->file = gzopen(path, "rb");
  if (!m->file) {
    snprintf(text, TEXT, "cannot read %.3000s: %s", path, errno ? strerror(errno) : "out of memory");
    return FAILED;
  }
  gzbuffer(m->file, 1 << 18);  // larger than zlib's default, since the file is read sequentially
  return read_banner(m, text) == A_LINE && read_sizes(m, text) == A_LINE ? 0 : FAILED;
}

// Parses one entry and checks that it is inside the matrix.
static int read_entry(struct matrix_market* m, char* line, struct entry* entry, char* text) {
  char *at = line, *end;
  int64_t row, column;
  if (!take_whole(&at, &row) || !take_whole(&at, &column))
    return wrong(m, text, "entry expected: ROW COLUMN%s", m->pattern ? "" : " VALUE");
  if (row < 1 || row > m->rows || column < 1 || column > m->rows)
    return wrong(m, text, "entry (%lld, %lld) is outside 1 … %lld", (long long)row, (long long)column,
                 (long long)m->rows);
  if (m->symmetric && column > row)
    return wrong(m, text, "entry (%lld, %lld) is above the diagonal: a symmetric file has the lower triangle",
                 (long long)row, (long long)column);
  double value = 1;
  end = at;
  if (!m->pattern) value = strtod(at, &end);
  if (!m->pattern && (end == at || !isfinite(value)))
    return wrong(m, text, "entry (%lld, %lld) has no finite value", (long long)row, (long long)column);
  if (!blank(end)) return wrong(m, text, "more than ROW COLUMN%s in a line", m->pattern ? "" : " VALUE");
  *entry = (struct entry){(int32_t)(row - 1), (int32_t)(column - 1), value};
  return A_LINE;
}

int64_t matrix_market_read(struct matrix_market* m, struct entry* entries, int64_t most, char* text) {
  char line[LINE];
  int64_t count = 0;
  while (count < most) {
    const int got = next_line(m, line, text);
    if (got == FAILED) return FAILED;
    if (got == END_OF_FILE) break;
    if (blank(line)) continue;
    if (m->read == m->entries)
      return wrong(m, text, "more than the %lld entries that the file announces", (long long)m->entries);
    if (read_entry(m, line, &entries[count], text) == FAILED) return FAILED;
    count++;
    m->read++;
  }
  // The file may end anywhere, so the number of entries is compared at the end.
  if (count == 0 && m->read < m->entries)
    return wrong(m, text, "the file ends after %lld of %lld entries: it is cut short", (long long)m->read,
                 (long long)m->entries);
  return count;
}

void matrix_market_close(struct matrix_market* m) {
  if (m->file) gzclose(m->file);
  m->file = NULL;
}
