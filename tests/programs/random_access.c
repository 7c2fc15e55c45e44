// Collective accesses of a file by random views, compared with a byte-by-byte model of the file.
//
//   random_access FILE SEED CASES [strict [END]]   each case: a new file, views, writes, a sync, reads by other views
//
// With END, further cases follow until a file of that name exists, so that a test has the time it needs.
//
// MPI libraries differ in what they leave in holes beyond the end of the file, and in a read's status and file pointer
// there. `strict` adds cases of an initially empty file, in which hocket does all accesses.
//
// All ranks draw the same numbers, so each knows what the others do, and every rank holds the whole model. Accesses by
// explicit offset and by file pointer, collective and independent, follow each other on one handle. A case may lie
// beyond 4 GiB. A rank that finds a difference reports where, and ends the job. Rank 0 prints the number of cases.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL = 1 << 19, MEMORY = 1 << 12, RANKS = 8 };  // bytes of the file, of a buffer; most ranks

static uint64_t state;
static int rank, ranks, current, strict;

static int64_t draw(int64_t first, int64_t last) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return first + (int64_t)(state % (uint64_t)(last - first + 1));
}

static void require(int holds, const char* what, long long a, long long b) {
  if (holds) return;
  fprintf(stderr, "rank %d of %d, case %d: %s (%lld, %lld)\n", rank, ranks, current, what, a, b);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// The bytes of a file from `base` on; `size` is its end, relative to the base.
static unsigned char model[MODEL];
static int64_t base, size;

// A rank's view: `blocks` blocks of `lengths` etypes at rising places in a tile, which repeats.
typedef struct {
  int64_t displacement;
  int etype_bytes, blocks, lengths[4], places[4], extent;  // in etypes
  MPI_Datatype etype, filetype;
} View;

static void draw_view(View* view, int interleaved, int of) {
  const MPI_Datatype etypes[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
  const int bytes[] = {1, 2, 4, 8};
  const int kind = (int)draw(0, 3);
  view->etype = etypes[kind], view->etype_bytes = bytes[kind];
  view->displacement = base + draw(0, 40);
  if (interleaved) {  // all ranks' blocks side by side: no holes
    const int length = 1 + interleaved % 5;
    view->etype = MPI_INT, view->etype_bytes = 4;
    view->displacement = base + 8;
    view->blocks = 1, view->lengths[0] = length, view->places[0] = of * length, view->extent = ranks * length;
  } else {
    int at = (int)draw(0, 4);
    view->blocks = (int)draw(1, 4);
    for (int i = 0; i < view->blocks; ++i) {
      view->lengths[i] = (int)draw(1, 6), view->places[i] = at;
      at += view->lengths[i] + (int)draw(0, 12);
    }
    view->extent = at + (int)draw(0, 8);
  }
  MPI_Datatype indexed;
  MPI_Type_indexed(view->blocks, view->lengths, view->places, view->etype, &indexed);
  MPI_Type_create_resized(indexed, 0, (MPI_Aint)view->extent * view->etype_bytes, &view->filetype);
  MPI_Type_commit(&view->filetype);
  MPI_Type_free(&indexed);
}

// Returns where byte `data` of the view's data is in the model.
static int64_t place(const View* view, int64_t data) {
  int64_t tile = 0, etype = data / view->etype_bytes;
  for (int i = 0; i < view->blocks; ++i) tile += view->lengths[i];
  int64_t left = etype % tile;
  for (int i = 0; i < view->blocks; ++i) {
    if (left < view->lengths[i])
      return view->displacement - base + data % view->etype_bytes +
             (etype / tile * view->extent + view->places[i] + left) * view->etype_bytes;
    left -= view->lengths[i];
  }
  return -1;
}

// Makes the type of `etypes` of the view in memory: contiguous, or with gaps of an etype.
static MPI_Datatype memory_type(const View* view, int gaps) {
  MPI_Datatype type;
  MPI_Type_create_resized(view->etype, 0, (gaps ? 2 : 1) * view->etype_bytes, &type);
  MPI_Type_commit(&type);
  return type;
}

static unsigned char content(int64_t seed, int of, int64_t byte) {
  return (unsigned char)((uint64_t)(seed * 31 + of * 7 + byte + 1) * 2654435761u >> 11);
}

static unsigned char buffer[MEMORY], expected[MEMORY];

// Makes one access of all ranks; each rank draws what all do. If two ranks would write the same bytes, only the first
// of them writes, and the other gets no data.
static void access_all(MPI_File file, View* views, int writes, int filled, int64_t pointers[RANKS]) {
  const int by_pointer = (int)draw(0, 1), independent = draw(0, 5) == 0 && filled, large = draw(0, 3) == 0;
  const int64_t seed = draw(0, 1 << 30);
  static unsigned char taken[MODEL];
  memset(taken, 0, sizeof taken);
  for (int r = 0; r < ranks; ++r) {
    View* view = &views[r];
    int64_t offset = by_pointer ? pointers[r] : draw(0, 30), etypes = draw(0, 4) == 0 ? 0 : draw(1, 120);
    const int gaps = (int)draw(0, 1);
    int64_t bytes = etypes * view->etype_bytes;
    if (bytes > 0) {
      const int64_t last = place(view, offset * view->etype_bytes + bytes - 1);
      require(last >= 0 && last < MODEL, "the test's own model is too small", last, MODEL);
    }
    for (int64_t i = 0; writes && i < bytes; ++i)
      if (taken[place(view, offset * view->etype_bytes + i)]) bytes = etypes = 0;
    int64_t moved = 0;
    for (int64_t i = 0; i < bytes; ++i) {
      const int64_t at = place(view, offset * view->etype_bytes + i);
      if (writes) {
        taken[at] = 1;
        model[at] = content(seed, r, i);
        if (at >= size) size = at + 1;
      }
      if (at < size) ++moved;
    }
    if (by_pointer) pointers[r] += etypes;
    if (r != rank) continue;
    // This rank's access is made below, after all draws.
    MPI_Datatype type = memory_type(view, gaps);
    const int step = gaps ? 2 : 1, e = view->etype_bytes;
    memset(buffer, 0xEE, sizeof buffer), memset(expected, 0xEE, sizeof expected);
    for (int64_t i = 0; i < bytes; ++i) {
      const int64_t at = place(view, offset * e + i), in_memory = i / e * e * step + i % e;
      if (writes) buffer[in_memory] = content(seed, r, i);
      if (!writes && at < size) expected[in_memory] = model[at];
    }
    MPI_Status status;
    int rc = MPI_SUCCESS;
    const int n = (int)etypes;
    if (independent && by_pointer)
      rc = writes ? MPI_File_write(file, buffer, n, type, &status) : MPI_File_read(file, buffer, n, type, &status);
    else if (independent)
      rc = writes ? MPI_File_write_at(file, offset, buffer, n, type, &status)
                  : MPI_File_read_at(file, offset, buffer, n, type, &status);
#if MPI_VERSION >= 4
    else if (large && by_pointer)
      rc = writes ? MPI_File_write_all_c(file, buffer, n, type, &status)
                  : MPI_File_read_all_c(file, buffer, n, type, &status);
    else if (large)
      rc = writes ? MPI_File_write_at_all_c(file, offset, buffer, n, type, &status)
                  : MPI_File_read_at_all_c(file, offset, buffer, n, type, &status);
#endif
    else if (by_pointer)
      rc = writes ? MPI_File_write_all(file, buffer, n, type, &status)
                  : MPI_File_read_all(file, buffer, n, type, &status);
    else
      rc = writes ? MPI_File_write_at_all(file, offset, buffer, n, type, &status)
                  : MPI_File_read_at_all(file, offset, buffer, n, type, &status);
    require(rc == MPI_SUCCESS, "an access failed", rc, writes);
    int count = -1;
    MPI_Get_elements(&status, type, &count);
    const int elements = moved % e == 0 ? (int)(moved / e) : MPI_UNDEFINED;  // the file may end within one
    require(count == elements, "the status has another number of elements", count, elements);
    for (int64_t i = 0; !writes && i < (int64_t)sizeof buffer; ++i)
      require(buffer[i] == expected[i], "read another byte", i, by_pointer + 2 * independent);
    MPI_Offset position = 0;
    MPI_File_get_position(file, &position);
    require(position == pointers[r], "the file pointer is elsewhere", position, pointers[r]);
    (void)large;
    MPI_Type_free(&type);
  }
}

static void check_file(MPI_File file) {
  MPI_Offset end = 0;
  MPI_File_get_size(file, &end);
  require(end == (size ? base + size : 0), "the file's size", end, base + size);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  static unsigned char found[MODEL];
  MPI_File_read_at(file, base, found, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
  for (int64_t i = 0; i < size; ++i) require(found[i] == model[i], "the file has another byte", i, found[i]);
}

// Writes the file with the content of the model.
static void start_file(const char* name) {
  FILE* file = fopen(name, "w");
  require(file && fseeko(file, base, SEEK_SET) == 0, "no file can be made", 0, 0);
  require(fwrite(model, 1, (size_t)size, file) == (size_t)size && fclose(file) == 0, "a file cannot be filled", 0, 0);
}

static void run_case(const char* name) {
  memset(model, 0, sizeof model), size = 0;
  base = draw(0, 3) == 0 ? 5000000000 + draw(0, 99) : 0;
  const int filled = draw(0, 2) > 0 || !strict;
  MPI_Info info;
  MPI_Info_create(&info);
  char number[32];
  snprintf(number, sizeof number, "%d", (int)draw(1, 5));
  MPI_Info_set(info, "hocket_aggregators", number);
  MPI_Info_set(info, "hocket_buffer_size", "4096");
  MPI_Info_set(info, "hocket_shared_memory", draw(0, 1) ? "on" : "off");
  if (filled) size = MODEL;
  for (int64_t i = 0; i < size; ++i) model[i] = content(current, 0, i);
  if (rank == 0) start_file(name);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file;
  int rc = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
  require(rc == MPI_SUCCESS, "MPI_File_open", rc, 0);
  for (int round = 0; round < 3; ++round) {
    View views[RANKS];
    int64_t pointers[RANKS] = {0};
    const int interleaved = draw(0, 1) ? (int)draw(1, 9) : 0;
    for (int r = 0; r < ranks; ++r) draw_view(&views[r], interleaved, r);
    const char* methods[] = {"view", "list", "auto"};
    MPI_Info_set(info, "hocket_collective", methods[draw(0, 2)]);
    if (draw(0, 2) == 0) MPI_Info_set(info, "hocket_aggregators", draw(0, 1) ? "2" : "3");
    MPI_File_set_view(file, views[rank].displacement, views[rank].etype, views[rank].filetype, "native", info);
    const int atomic = draw(0, 9) == 0 && filled;
    if (atomic) MPI_File_set_atomicity(file, 1);
    for (int access = (int)draw(1, 4); access > 0; --access) {
      access_all(file, views, draw(0, 2) > 0, filled, pointers);
      MPI_File_sync(file);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_File_sync(file);
    }
    if (atomic) MPI_File_set_atomicity(file, 0);
    for (int r = 0; r < ranks; ++r) MPI_Type_free(&views[r].filetype);
  }
  check_file(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_close(&file);
  MPI_Info_free(&info);
}

static int goes_on(const char* end) {
  int more = end && rank == 0 && access(end, F_OK) != 0;
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int cases = argc > 3 ? atoi(argv[3]) : 0;
  strict = argc > 4 && strcmp(argv[4], "strict") == 0;
  for (current = 0; current < cases || goes_on(argc > 5 ? argv[5] : NULL); ++current) {
    state = (strtoull(argv[2], NULL, 10) * 1000003 + (uint64_t)current + 1) * 0x9E3779B97F4A7C15u | 1;
    run_case(argv[1]);
  }
  if (rank == 0) printf("%d cases\n", current);
  MPI_Finalize();
  return 0;
}
