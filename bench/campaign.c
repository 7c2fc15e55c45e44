/* Random accesses of two files while somebody else kills, stops, slows, and fills what they go through, compared with a
 * byte-by-byte model.
 *
 *   campaign FILE TABLE SEED SECONDS [loses] [fills] [sets | sets-may-fail]
 *     accesses FILE by MPI-IO, FILE.put by put and get, and with `sets` also data sets; prints one line
 *   campaign check FILE TABLE SEED
 *     compares both files with the tables that the job has left
 *
 * A file has blocks of an odd length, drawn from the seed. All ranks draw the same numbers, so each knows who writes
 * which version of which block. For each block the model has the versions that a byte may have:
 *
 *   now    since the last write that succeeded; several if a later write failed
 *   later  the same, and all since the last sync or close that succeeded: what is left if held data are lost
 *
 * A read must find bytes of `now`. With `loses`, servers that hold data are killed: until the next sync or close tells,
 * bytes of `later` are right as well. If that call fails, `later` becomes `now`; if it succeeds, `now` becomes `later`.
 *
 * With `fills` the storage may be full. Then only hocket itself writes under Open MPI, and under MPICH no access is
 * nonblocking or split. What the MPIs do is the same without hocket: MPI_Wait of a write that fails never returns
 * (MPICH 5.0.2) or crashes (Open MPI 5.0.11), and a strided write of either that fails may keep its lock of the file,
 * for which other ranks wait for ever.
 *
 * A data set is written by all ranks as one application, and read back by all ranks as another one. A version that was
 * published must be read, byte by byte, by the next opening. If servers may end, both may fail instead
 * (`sets-may-fail`): then the next version has another name, so a version that is left can not be taken for a newer
 * one.
 *
 * With $CAMPAIGN_TELL rank 0 tells each step. It leaves TABLE and TABLE.put before each write, with the versions
 * that are about to be written. What a rank finds wrong it appends to TABLE.found, too: launchers may lose the last
 * lines of a job that aborts. A call that takes longer than LIMIT_S ends the job. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <hocket/file.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 200, MOST = 24, LIMIT_S = 100, LONGEST_RUN = 12, LONGEST_BLOCK = 40961 };

typedef struct {
  int count;
  int version[MOST];
} Versions;

typedef struct {
  Versions now[BLOCKS], later[BLOCKS];
  int unchecked; /* reads of blocks that had too many versions */
} Model;

typedef struct {
  char path[900], table[900];
  const char* name;
  Model model;
} File;

static int rank, ranks, loses, fills, step, block_bytes;
static int sets, sets_may_fail, set_names; /* exchanges data sets; may it fail; names that were given up */
static long long seed, calls, failed, exchanged;
static uint64_t drawn;
static char doing[200] = "starts";
static File files[2] = {{.name = "MPI-IO"}, {.name = "put and get"}};
static MPI_File mpi_file = MPI_FILE_NULL;
static hocket_file* put_file;
static int found = -1; /* TABLE.found */

static void tell(const char* text, size_t length) {
  (void)!write(found, text, length);
  (void)!write(2, text, length);
}

static void fail(const char* format, ...) {
  char text[400], line[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "campaign: seed %lld, step %d (%s), rank %d: %s\n", seed, step, doing, rank, text);
  tell(line, strlen(line));
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

static void hangs(int number) {
  (void)number;
  char text[400];
  const int length = snprintf(text, sizeof text, "campaign: seed %lld, step %d (%s), rank %d: does not end\n", seed,
                              step, doing, rank);
  tell(text, (size_t)length);
  _exit(3);
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* The same numbers in all ranks. */
static int draw(int below) {
  drawn += 0x9E3779B97F4A7C15u;
  return (int)(mix(drawn) % (uint64_t)below);
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- content and model ------------------------------------------------------------------------------------------- */

static unsigned char content(int block, int version, int i) {
  const uint64_t word =
      mix((uint64_t)seed << 40 ^ (uint64_t)block << 28 ^ (uint64_t)version << 4 ^ (uint64_t)(i / 4096));
  return (unsigned char)(word + (uint64_t)i * 31);
}

static void fill(char* to, int block, int version) {
  for (int i = 0; i < block_bytes; ++i) to[i] = (char)content(block, version, i);
}

static void add(Versions* versions, int version) {
  for (int i = 0; i < versions->count && i < MOST; ++i)
    if (versions->version[i] == version) return;
  if (versions->count < MOST) versions->version[versions->count] = version;
  ++versions->count; /* beyond MOST: any content is right */
}

static void wrote(Model* model, int block, int version, int succeeded) {
  if (succeeded) model->now[block].count = 0;
  add(&model->now[block], version);
  add(&model->later[block], version);
}

static void synced(Model* model, int succeeded) {
  if (succeeded)
    memcpy(model->later, model->now, sizeof model->later);
  else
    memcpy(model->now, model->later, sizeof model->now);
}

/* Version 0 has not been written. Such bytes may be anything (MPI 4.1, section 14.2.5): ROMIO fills them with garbage.
 */
static int is_one_of(const Versions* versions, int block, int i, unsigned char byte) {
  for (int v = 0; v < versions->count; ++v)
    if (versions->version[v] == 0 || content(block, versions->version[v], i) == byte) return 1;
  return 0;
}

/* Returns the place of the first byte that no version has; -1 if there is none. */
static int first_wrong(Model* model, int block, const char* data, int wide) {
  const Versions* versions = wide ? &model->later[block] : &model->now[block];
  if (versions->count > MOST) {
    ++model->unchecked;
    return -1;
  }
  for (int i = 0; i < block_bytes; ++i)
    if (!is_one_of(versions, block, i, (unsigned char)data[i])) return i;
  return -1;
}

static void check(File* file, int block, const char* data) {
  const int at = first_wrong(&file->model, block, data, loses);
  if (at < 0) return;
  int older = step; /* the newest version that has this byte and the next ones; 0: none */
  const int compared = block_bytes - at < 16 ? block_bytes - at : 16;
  for (int same = 0; older > 0; --older) {
    for (same = 0; same < compared && content(block, older, at + same) == (unsigned char)data[at + same]; ++same)
      continue;
    if (same == compared) break;
  }
  fail("%s: byte %d of block %d is %d, of version %d; the last one written is %d", file->name, at, block,
       (unsigned char)data[at], older, file->model.now[block].version[0]);
}

/* ---- tables that outlive the job ----------------------------------------------------------------------------------
 */

static void leave_table(const File* file) {
  if (rank != 0) return;
  char made[1000];
  snprintf(made, sizeof made, "%s.new", file->table);
  FILE* to = fopen(made, "wb");
  if (!to || fwrite(&file->model, sizeof file->model, 1, to) != 1 || fclose(to) != 0 || rename(made, file->table) != 0)
    fail("cannot leave %s", file->table);
}

static int check_file(File* file) {
  FILE* from = fopen(file->table, "rb");
  if (!from) return 0; /* nothing was written yet */
  if (fread(&file->model, sizeof file->model, 1, from) != 1) return 1;
  fclose(from);
  from = fopen(file->path, "rb");
  static char data[LONGEST_BLOCK];
  for (int block = 0; block < BLOCKS; ++block) {
    memset(data, 0, sizeof data); /* beyond the end of the file nothing was written */
    if (from && fread(data, 1, block_bytes, from) == 0 && ferror(from)) return 1;
    const int at = first_wrong(&file->model, block, data, 1);
    if (at < 0) continue;
    fprintf(stderr, "campaign: seed %lld, %s: byte %d of block %d is of no version that it may have\n", seed,
            file->name, at, block);
    return 1;
  }
  if (from) fclose(from);
  return 0;
}

/* ---- who accesses what ----------------------------------------------------------------------------------------------
 */

/* Blocks of this step: in one run, or scattered. owner -1: nobody. */
static int owner[BLOCKS];

static void deal_out(int scattered) {
  memset(owner, -1, sizeof owner);
  int block = draw(BLOCKS / 4);
  for (int r = 0; r < ranks; ++r) {
    const int length = draw(5) == 0 ? 0 : 1 + draw(LONGEST_RUN);
    for (int i = 0; i < length && block < BLOCKS; ++i) {
      owner[block] = r;
      block += 1 + (scattered ? draw(4) : 0);
    }
    if (draw(3) == 0) block += draw(BLOCKS / 4);
  }
  if (!scattered || draw(2)) return;
  for (int b = 0; b < BLOCKS; ++b) /* interleaved: the ranks' spans overlap */
    if (owner[b] >= 0) owner[b] = draw(ranks);
}

static int mine(int* blocks) {
  int count = 0;
  for (int block = 0; block < BLOCKS; ++block)
    if (owner[block] == rank) blocks[count++] = block;
  return count;
}

static char* data_of(const int* blocks, int count, int version) {
  char* data = malloc((size_t)count * block_bytes + 1);
  if (!data) fail("no memory");
  for (int i = 0; i < count; ++i)
    if (version > 0)
      fill(data + (size_t)i * block_bytes, blocks[i], version);
    else
      memset(data + (size_t)i * block_bytes, 0xEE, block_bytes);
  return data;
}

static int agreed(int own) {
  int all = 0;
  ++calls;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  failed += !all;
  if (rank == 0 && getenv("CAMPAIGN_TELL")) fprintf(stderr, "step %d: %s: %s\n", step, doing, all ? "done" : "failed");
  return all;
}

/* Leaves what a job may have written that is killed in this step, before any rank writes. */
static void about_to_write(File* file) {
  if (rank == 0) {
    static File planned;
    memcpy(&planned, file, sizeof planned);
    for (int block = 0; block < BLOCKS; ++block)
      if (owner[block] >= 0) add(&planned.model.later[block], step);
    leave_table(&planned);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void have_written(File* file, int succeeded) {
  for (int block = 0; block < BLOCKS; ++block)
    if (owner[block] >= 0) wrote(&file->model, block, step, succeeded);
}

static void check_read(File* file, const int* blocks, int count, const char* data, int succeeded) {
  for (int i = 0; succeeded && i < count; ++i) check(file, blocks[i], data + (size_t)i * block_bytes);
}

/* ---- MPI-IO
 * ----------------------------------------------------------------------------------------------------------- */

static void open_mpi(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (draw(2)) MPI_Info_set(info, "hocket_buffer_size", draw(2) ? "65536" : "1048576");
  if (draw(3) == 0) MPI_Info_set(info, "hocket_collective", draw(2) ? "view" : "list");
  const int code = MPI_File_open(MPI_COMM_WORLD, files[0].path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &mpi_file);
  MPI_Info_free(&info);
  if (code != MPI_SUCCESS) fail("MPI_File_open: %d", code);
  MPI_File_set_errhandler(mpi_file, MPI_ERRORS_RETURN);
}

static int with_view(const int* blocks, int count, int (*access)(MPI_File, void*, int, MPI_Datatype, MPI_Status*),
                     void* data) {
  int lengths[BLOCKS];
  MPI_Aint places[BLOCKS];
  for (int i = 0; i < count; ++i) lengths[i] = block_bytes, places[i] = (MPI_Aint)blocks[i] * block_bytes;
  MPI_Datatype view = MPI_BYTE;
  if (count > 0) MPI_Type_create_hindexed(count, lengths, places, MPI_BYTE, &view), MPI_Type_commit(&view);
  MPI_File_set_view(mpi_file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL);
  MPI_Status status;
  const int code = access(mpi_file, data, count * block_bytes, MPI_BYTE, &status);
  MPI_File_set_view(mpi_file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  if (count > 0) MPI_Type_free(&view);
  return code == MPI_SUCCESS;
}

static int write_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
  return MPI_File_write_all(file, data, count, type, status);
}

static int read_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
  return MPI_File_read_all(file, data, count, type, status);
}

static int iwrite_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
  MPI_Request request;
  const int code = MPI_File_iwrite_all(file, data, count, type, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
}

/* MPICH's file has an access under way also after a begin that fails. Without its end, the rank's next begin is refused
 * at once, while the other ranks wait for it. */
static int split_write_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
  const int code = MPI_File_write_all_begin(file, data, count, type);
  const int ended = MPI_File_write_all_end(file, data, status);
  return code == MPI_SUCCESS ? ended : code;
}

/* One block a call. */
static int independently(const int* blocks, int count, char* data, int kind) {
  for (int i = 0; i < count; ++i) {
    const MPI_Offset at = (MPI_Offset)blocks[i] * block_bytes;
    char* const block = data + (size_t)i * block_bytes;
    MPI_Status status;
    MPI_Request request;
    int code;
    if (kind == 0) {
      code = MPI_File_write_at(mpi_file, at, block, block_bytes, MPI_BYTE, &status);
    } else if (kind == 1) {
      code = MPI_File_iwrite_at(mpi_file, at, block, block_bytes, MPI_BYTE, &request);
      if (code == MPI_SUCCESS) code = MPI_Wait(&request, &status);
    } else {
      code = MPI_File_read_at(mpi_file, at, block, block_bytes, MPI_BYTE, &status);
    }
    if (code != MPI_SUCCESS) return 0;
  }
  return 1;
}

enum { IWRITE_ALL = 3, SPLIT_WRITE_ALL, IWRITE_AT, WRITE_AT };

/* Returns another way to write if the MPI does not return from this one when the storage is full. */
static int way_that_ends(int way) {
#ifdef OPEN_MPI
  return fills && way >= IWRITE_ALL ? 0 : way;
#else
  if (fills && (way == IWRITE_ALL || way == SPLIT_WRITE_ALL)) return 0;
  return fills && way == IWRITE_AT ? WRITE_AT : way;
#endif
}

static void write_mpi(void) {
  static int (*const ways[])(MPI_File, void*, int, MPI_Datatype, MPI_Status*) = {write_all, write_all, write_all,
                                                                                 iwrite_all, split_write_all};
  const int way = way_that_ends(draw(8));
  snprintf(doing, sizeof doing, "write %d", way);
  int blocks[BLOCKS];
  deal_out(draw(2));
  about_to_write(&files[0]);
  const int count = mine(blocks);
  char* data = data_of(blocks, count, step);
  have_written(&files[0], agreed(way < IWRITE_AT ? with_view(blocks, count, ways[way], data)
                                                 : independently(blocks, count, data, way == IWRITE_AT)));
  free(data);
}

static void read_mpi(void) {
  const int collective = draw(3) > 0;
  snprintf(doing, sizeof doing, "read %d", collective);
  int blocks[BLOCKS];
  deal_out(draw(2));
  const int count = mine(blocks);
  char* data = data_of(blocks, count, 0);
  for (int i = 0; i < count; ++i)
    memset(data + (size_t)i * block_bytes, 0, block_bytes); /* beyond the end nothing is read */
  const int succeeded =
      agreed(collective ? with_view(blocks, count, read_all, data) : independently(blocks, count, data, 2));
  check_read(&files[0], blocks, count, data, succeeded);
  free(data);
}

/* ---- put and get
 * ------------------------------------------------------------------------------------------------------ */

static int open_put(void) {
  return hocket_file_open(files[1].path, HOCKET_FILE_READ | HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &put_file) ==
         HOCKET_OK;
}

static void put_or_get(int puts) {
  snprintf(doing, sizeof doing, puts ? "put" : "get");
  int blocks[BLOCKS];
  deal_out(draw(2));
  if (puts) about_to_write(&files[1]);
  const int count = mine(blocks);
  char* data = data_of(blocks, count, puts ? step : 0);
  int own = 1;
  for (int i = 0; i < count; ++i) {
    char* const block = data + (size_t)i * block_bytes;
    if (!puts) memset(block, 0, block_bytes);
    const int status = puts ? hocket_file_put(put_file, (int64_t)blocks[i] * block_bytes, block, block_bytes)
                            : hocket_file_get(put_file, (int64_t)blocks[i] * block_bytes, block, block_bytes, NULL);
    if (status != HOCKET_OK) own = 0;
  }
  const int succeeded = agreed(own);
  if (puts)
    have_written(&files[1], succeeded);
  else
    check_read(&files[1], blocks, count, data, succeeded);
  free(data);
}

static void reopen_put(void) {
  snprintf(doing, sizeof doing, "close and open, put");
  int own = hocket_file_flush(put_file) == HOCKET_OK;
  MPI_Barrier(MPI_COMM_WORLD); /* each process's flush stores what others have put, too */
  if (hocket_file_close(put_file) != HOCKET_OK) own = 0;
  synced(&files[1].model, agreed(own));
  if (!open_put()) fail("hocket_file_open");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void sync_or_reopen(int reopens) {
  snprintf(doing, sizeof doing, reopens ? "close and open" : "sync");
  const int code = reopens ? MPI_File_close(&mpi_file) : MPI_File_sync(mpi_file);
  synced(&files[0].model, agreed(code == MPI_SUCCESS));
  if (reopens) open_mpi();
}

/* ---- data sets --------------------------------------------------------------------------------------------------- */

enum { MOST_SET_BLOCKS = 40, SET_WAIT_S = 10 };

/* All ranks open the set together. Each opening has a group number of its own. */
static hocket_file* open_set(int mode) {
  char path[100];
  snprintf(path, sizeof path, "hocket:/campaign-%lld-%d", seed, set_names);
  hocket_file_options options = {0};
  options.application = mode == HOCKET_FILE_WRITE ? "campaign-writer" : "campaign-reader";
  options.participants = ranks;
  options.group = 2 * (uint64_t)step + (mode == HOCKET_FILE_WRITE);
  options.wait_s = SET_WAIT_S;
  hocket_file* set = NULL;
  return hocket_file_open(path, mode, &options, &set) == HOCKET_OK ? set : NULL;
}

/* Puts this rank's blocks, which are every ranks-th one: block by block, in one call, or in one of all ranks. */
static int put_blocks(hocket_file* set, int blocks, int way) {
  int own[MOST_SET_BLOCKS + 8];
  int count = 0;
  for (int block = rank; block < blocks; block += ranks) own[count++] = block;
  char* data = data_of(own, count, step);
  const int64_t first = (int64_t)rank * block_bytes, stride = (int64_t)ranks * block_bytes;
  int status = HOCKET_OK;
  if (way == 1) status = hocket_file_put_strided(set, first, block_bytes, stride, count, data);
  if (way == 2) status = hocket_file_put_strided_all(set, 1, first, block_bytes, stride, count, data);
  for (int i = 0; way == 0 && i < count && status == HOCKET_OK; ++i)
    status = hocket_file_put(set, first + i * stride, data + (size_t)i * block_bytes, block_bytes);
  free(data);
  return status == HOCKET_OK;
}

static int write_set(int blocks, int way) {
  hocket_file* set = open_set(HOCKET_FILE_WRITE);
  int own = set && put_blocks(set, blocks, way);
  if (set && hocket_file_close(set) != HOCKET_OK) own = 0;
  return agreed(own);
}

static void check_set_block(int block, const char* data) {
  for (int i = 0; i < block_bytes; ++i)
    if (content(block, step, i) != (unsigned char)data[i])
      fail("data set: byte %d of block %d is %d, not %d", i, block, (unsigned char)data[i], content(block, step, i));
}

/* Each rank reads all blocks. */
static int get_blocks(hocket_file* set, int blocks) {
  int64_t bytes = 0, got = 0;
  if (hocket_file_size(set, &bytes) != HOCKET_OK) return 0;
  if (bytes != (int64_t)blocks * block_bytes) fail("data set: %lld bytes, not %d blocks", (long long)bytes, blocks);
  static char data[LONGEST_BLOCK];
  for (int block = 0; block < blocks; ++block) {
    memset(data, 0, sizeof data);
    if (hocket_file_get(set, (int64_t)block * block_bytes, data, block_bytes, &got) != HOCKET_OK) return 0;
    if (got != block_bytes) fail("data set: %lld bytes of block %d", (long long)got, block);
    check_set_block(block, data);
  }
  return 1;
}

static int read_set(int blocks) {
  hocket_file* set = open_set(HOCKET_FILE_READ);
  int own = set && get_blocks(set, blocks);
  if (set && hocket_file_close(set) != HOCKET_OK) own = 0;
  return agreed(own);
}

static void exchange(void) {
  const int blocks = ranks + draw(MOST_SET_BLOCKS), way = draw(3);
  snprintf(doing, sizeof doing, "write data set %d, way %d", set_names, way);
  int succeeded = write_set(blocks, way);
  alarm(LIMIT_S);
  if (succeeded) {
    snprintf(doing, sizeof doing, "read data set %d", set_names);
    succeeded = read_set(blocks);
  }
  exchanged += succeeded;
  if (succeeded) return;
  if (!sets_may_fail) fail("failed, though no server and no hocketd has ended or was stopped");
  ++set_names;
}

/* ---- */

/* Often several writes follow each other: what is held of one must not be stored after the next. */
static void one_step(void) {
  static int writes, puts;
  alarm(LIMIT_S);
  if (writes > 0) {
    --writes;
    return puts ? put_or_get(1) : write_mpi();
  }
  if (sets && draw(6) == 0) return exchange(); /* no draw without sets: earlier seeds keep their steps */
  if (draw(6) == 0) writes = draw(10), puts = draw(3) == 0;
  switch (draw(20)) {
    case 0: return sync_or_reopen(1);
    case 1:
    case 2: return sync_or_reopen(0);
    case 3: return reopen_put();
    case 4:
    case 5:
    case 6: return put_or_get(1);
    case 7:
    case 8: return put_or_get(0);
    case 9:
    case 10:
    case 11:
    case 12: return read_mpi();
    default: return write_mpi();
  }
}

static int goes_on(double end_s) {
  int more = now_s() < end_s;
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more;
}

static void run(double seconds) {
  for (int f = 0; f < 2; ++f)
    for (int block = 0; block < BLOCKS; ++block) wrote(&files[f].model, block, 0, 1), synced(&files[f].model, 1);
  open_mpi();
  if (!open_put()) fail("hocket_file_open");
  const double end_s = now_s() + seconds;
  for (step = 1; goes_on(end_s); ++step) one_step();
  alarm(LIMIT_S);
  snprintf(doing, sizeof doing, "end");
  reopen_put();
  if (hocket_file_close(put_file) != HOCKET_OK) synced(&files[1].model, 0);
  synced(&files[0].model, agreed(MPI_File_close(&mpi_file) == MPI_SUCCESS));
  leave_table(&files[0]), leave_table(&files[1]);
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr,
            "usage: campaign FILE TABLE SEED SECONDS [loses] [fills] [sets | sets-may-fail] | "
            "campaign check FILE TABLE SEED\n");
    return 2;
  }
  const int checks = argc == 5 && !strcmp(argv[1], "check");
  char** const given = argv + 1 + checks;
  static const int lengths[] = {1009, 8209, LONGEST_BLOCK};
  seed = atoll(given[2]);
  drawn = mix((uint64_t)seed + 1);
  block_bytes = lengths[draw(3)];
  for (int f = 0; f < 2; ++f) {
    snprintf(files[f].path, sizeof files[f].path, "%s%s", given[0], f ? ".put" : "");
    snprintf(files[f].table, sizeof files[f].table, "%s%s", given[1], f ? ".put" : "");
  }
  if (checks) return check_file(&files[0]) | check_file(&files[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 5; i < argc; ++i) {
    loses |= !strcmp(argv[i], "loses");
    fills |= !strcmp(argv[i], "fills");
    sets_may_fail |= !strcmp(argv[i], "sets-may-fail");
    sets |= !strcmp(argv[i], "sets");
  }
  sets |= sets_may_fail;
  char findings[sizeof files[0].table];
  snprintf(findings, sizeof findings, "%s.found", given[1]);
  found = open(findings, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (found < 0) fail("%s: %s", findings, strerror(errno));
  signal(SIGALRM, hangs);
  run(atof(argv[4]));
  const int own = files[0].model.unchecked + files[1].model.unchecked;
  int unchecked = 0;
  MPI_Reduce(&own, &unchecked, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d steps, %lld calls, %lld failed, %lld data sets, %d unchecked\n", step - 1, calls, failed, exchanged,
           unchecked);
  MPI_Finalize();
  return 0;
}
