// S-IOR: the access patterns of IOR by collective MPI-IO, in phases with computing between them (CLARISSE, section
// V-A). With --file-per-process each rank uses POSIX calls on a file of its own.
//
// A phase has S segments. A segment has one block for each rank, in the order of ranks, or in random order
// (--random). The blocks of a rank form a stream, and each collective call moves its next T bytes. Few large blocks
// give IOR's segmented pattern, many small ones the strided one. `s_ior --help` lists the options.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "own_file.h"
#include "phases.h"
#include "program.h"

const char kProgram[] = "s_ior";

static const char kHelp[] =
    "s_ior: write and read in the patterns of IOR: a shared file by collective MPI-IO, or a file for each rank\n"
    "  mpiexec -n RANKS s_ior --file FILE [options]\n"
    "  mpiexec -n 4 s_ior -o f -b 16m -t 1m -s 1 -c      each rank's 16 MiB in one run, 1 MiB a call\n"
    "  mpiexec -n 4 s_ior -o f -b 4k -t 1m -s 4096 -c    blocks of 4 KiB in turn, 1 MiB a call\n"
    "\n"
    "  -b, --block B           bytes of a rank in a segment, a multiple of 4 (1m); k, m, g: KiB, MiB, GiB\n"
    "  -t, --transfer T        bytes of a rank in one collective call (1m)\n"
    "  -s, --segments S        segments of a phase (1)\n"
    "  -R, --random SEED       draw which rank each block of a phase belongs to\n"
    "  -F, --file-per-process  each rank has a file of its own, FILE.RANK, and accesses it by POSIX calls (pwrite, "
    "pread,\n"
    "                          fsync) of T bytes\n" PHASE_HELP;

static const struct option kOptions[] = {
    {"block", required_argument, 0, 'b'},      {"transfer", required_argument, 0, 't'},
    {"segments", required_argument, 0, 's'},   {"random", required_argument, 0, 'R'},
    {"file-per-process", no_argument, 0, 'F'}, PHASE_OPTIONS};

// The state of the program on one rank.
struct ior {
  struct phases phases;
  uint64_t block, transfer, segments, seed;
  int random, own_files;
  int rank, ranks;
  int* blocks;         // this rank's blocks of a phase with --random, ascending
  MPI_Datatype tiles;  // filetype of the view; null: each call is in one block and needs no view
  char* data;          // the stream of one phase
  MPI_File file;
  int descriptor;  // this rank's file with --file-per-process
  char own_path[TEXT];
};

static char bad[TEXT];  // error message about the arguments; "": none

// ---- options -------------------------------------------------------------------------------------------------------

// Parses a number of bytes with an optional k, m or g.
static uint64_t bytes_of(const char* name, const char* text) {
  char digits[32] = "";
  const size_t length = strspn(text, "0123456789");
  const char* unit = text + length;
  const int shift = !strcmp(unit, "k") ? 10 : !strcmp(unit, "m") ? 20 : !strcmp(unit, "g") ? 30 : *unit ? -1 : 0;
  if (shift < 0 || length == 0 || length > 15) {
    snprintf(bad, sizeof bad, "--%s %.3000s: give a number of bytes, with k, m or g for KiB, MiB or GiB", name, text);
    return 0;
  }
  memcpy(digits, text, length);
  return whole_number(bad, name, digits, 1, UINT64_C(1) << 50) << shift;
}

static void set_option(void* own, int key, const char* name) {
  struct ior* ior = own;
  switch (key) {
    case 'b': ior->block = bytes_of(name, optarg); break;
    case 't': ior->transfer = bytes_of(name, optarg); break;
    case 's': ior->segments = whole_number(bad, name, optarg, 1, INT32_MAX); break;
    case 'F': ior->own_files = 1; break;
    case 'R': ior->random = 1, ior->seed = whole_number(bad, name, optarg, 0, UINT64_MAX); break;
    default: break;
  }
}

// Checks options that depend on each other. MPI counts are int, hence the limits.
static void check_together(const struct ior* ior) {
  if (bad[0]) return;
  if (ior->block % 4 || ior->transfer % 4)
    snprintf(bad, sizeof bad, "--block and --transfer: give multiples of 4 bytes");
  else if (ior->block * ior->segments % ior->transfer)
    snprintf(bad, sizeof bad, "--transfer %llu: a rank's %llu bytes of a phase are no multiple of it",
             (unsigned long long)ior->transfer, (unsigned long long)(ior->block * ior->segments));
  else if (ior->own_files && ior->random)
    snprintf(bad, sizeof bad, "--random: with --file-per-process a rank's blocks are one behind the other");
  else if (ior->transfer > INT32_MAX)
    snprintf(bad, sizeof bad, "--transfer: give less than 2 GiB");
  else if (ior->segments * (uint64_t)ior->ranks > INT32_MAX)
    snprintf(bad, sizeof bad, "--segments: give less than 2^31 for all ranks together");
}

// ---- the stream in the file ----------------------------------------------------------------------------------------

// True if each collective call lies within one block of the file.
static int is_in_blocks(const struct ior* ior) {
  return ior->own_files || (!ior->random && ior->block % ior->transfer == 0);
}

// Returns the file offset of the rank's block `j` of the phase.
static uint64_t offset_of(const struct ior* ior, uint64_t phase, uint64_t j) {
  const uint64_t ranks = (uint64_t)ior->ranks;
  const uint64_t in_phase = ior->random ? (uint64_t)ior->blocks[j] : j * ranks + (uint64_t)ior->rank;
  return (phase * ior->segments * ranks + in_phase) * ior->block;
}

static int ascending(const void* a, const void* b) {
  const int left = *(const int*)a, right = *(const int*)b;
  return (left > right) - (left < right);
}

// Deals the blocks of a phase to the ranks. All ranks shuffle alike, without messages, and each takes its part.
// Returns 0 without memory.
static int draw_blocks(struct ior* ior) {
  const uint64_t all = ior->segments * (uint64_t)ior->ranks;
  int* shuffled = malloc(all * sizeof *shuffled);
  ior->blocks = malloc(ior->segments * sizeof *ior->blocks);
  if (!shuffled || !ior->blocks) {
    free(shuffled);
    return 0;
  }
  uint64_t state = ior->seed * 2 + 1;
  for (uint64_t i = 0; i < all; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t other = (state >> 33) % (i + 1);
    shuffled[i] = shuffled[other];
    shuffled[other] = (int)i;
  }
  memcpy(ior->blocks, shuffled + (uint64_t)ior->rank * ior->segments, ior->segments * sizeof *ior->blocks);
  // The blocks of a rank ascend, because a file view must not go back.
  qsort(ior->blocks, ior->segments, sizeof *ior->blocks, ascending);
  free(shuffled);
  return 1;
}

// Creates the filetype of the view. A tile is one segment, or with --random one phase.
static void make_tiles(struct ior* ior) {
  MPI_Datatype block, blocks;
  const MPI_Aint segment = (MPI_Aint)ior->block * ior->ranks;
  MPI_Type_contiguous((int)ior->block, MPI_BYTE, &block);
  if (ior->random)
    MPI_Type_create_indexed_block((int)ior->segments, 1, ior->blocks, block, &blocks);
  else
    MPI_Type_dup(block, &blocks);
  MPI_Type_create_resized(blocks, 0, ior->random ? segment * (MPI_Aint)ior->segments : segment, &ior->tiles);
  MPI_Type_commit(&ior->tiles);
  MPI_Type_free(&block);
  MPI_Type_free(&blocks);
}

// Allocates the memory and creates the view's type. Collective; returns a PROGRAM_… code.
static int prepare(struct ior* ior) {
  char text[TEXT] = "";
  const uint64_t bytes = ior->block * ior->segments;
  ior->data = malloc(bytes);
  if (!ior->data || (ior->random && !draw_blocks(ior)))
    snprintf(text, sizeof text, "no memory for the %llu bytes of a phase", (unsigned long long)bytes);
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  memset(ior->data, 0, bytes);
  if (!is_in_blocks(ior)) make_tiles(ior);
  ior->phases.bytes = bytes * (uint64_t)ior->ranks;
  return PROGRAM_OK;
}

// ---- accesses ------------------------------------------------------------------------------------------------------

// Opens the shared file and sets the view if one is needed.
static int open_file(void* own, int writes) {
  struct ior* ior = own;
  char text[TEXT] = "";
  const int failure = open_mpi_file(&ior->phases, writes, &ior->file);
  if (failure || ior->tiles == MPI_DATATYPE_NULL) return failure;
  const MPI_Offset first = ior->random ? 0 : (MPI_Offset)ior->block * ior->rank;
  mpi_failure(text, MPI_File_set_view(ior->file, first, MPI_BYTE, ior->tiles, "native", ior->phases.info),
              "set a view of", ior->phases.path);
  if (!any_failed(MPI_COMM_WORLD, text)) return PROGRAM_OK;
  close_mpi_file(&ior->phases, &ior->file);
  return PROGRAM_FAILED;
}

static int close_file(void* own) {
  struct ior* ior = own;
  return close_mpi_file(&ior->phases, &ior->file);
}

// Moves the data from `done` on by one call. What is wrong goes into text.
static void move(struct ior* ior, uint64_t phase, uint64_t done, int writes, char* text) {
  const char* path = ior->phases.path;
  // Offsets count bytes of the view if there is one, and bytes of the file otherwise.
  const MPI_Offset at =
      (MPI_Offset)(ior->tiles != MPI_DATATYPE_NULL ? phase * ior->block * ior->segments + done
                                                   : offset_of(ior, phase, done / ior->block) + done % ior->block);
  const int count = (int)ior->transfer;
  int moved = 0;
  MPI_Status status;
  const int code = writes ? MPI_File_write_at_all(ior->file, at, ior->data + done, count, MPI_BYTE, &status)
                          : MPI_File_read_at_all(ior->file, at, ior->data + done, count, MPI_BYTE, &status);
  mpi_failure(text, code, writes ? "write" : "read", path);
  if (code == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &moved);
  if (!text[0] && moved != count)
    snprintf(text, TEXT, "%s: rank %d moved %d of %d bytes", path, ior->rank, moved, count);
}

static int move_phase(void* own, uint64_t phase, int writes) {
  struct ior* ior = own;
  char text[TEXT] = "", later[TEXT] = "";
  for (uint64_t done = 0; done < ior->block * ior->segments; done += ior->transfer)
    move(ior, phase, done, writes, text[0] ? later : text);  // other ranks may not have failed and would wait
  return end_mpi_accesses(&ior->phases, ior->file, writes, text);
}

// Returns block `j` of the stream as words.
static uint32_t* block_of(const struct ior* ior, uint64_t j) { return (uint32_t*)(void*)(ior->data + j * ior->block); }

// ---- accesses with --file-per-process ------------------------------------------------------------------------------

static int open_own(void* own, int writes) {
  struct ior* ior = own;
  char text[TEXT] = "";
  ior->descriptor = open_own_file(ior->phases.path, ior->rank, writes, ior->own_path, text);
  if (!any_failed(MPI_COMM_WORLD, text)) return PROGRAM_OK;
  if (ior->descriptor >= 0) close(ior->descriptor);
  return PROGRAM_FAILED;
}

static int close_own(void* own) {
  struct ior* ior = own;
  char text[TEXT] = "";
  close_own_file(ior->descriptor, ior->own_path, text);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

static int move_own_phase(void* own, uint64_t phase, int writes) {
  struct ior* ior = own;
  char text[TEXT] = "";
  const uint64_t bytes = ior->block * ior->segments;
  for (uint64_t done = 0; done < bytes && !text[0]; done += ior->transfer)
    move_in_own_file(ior->descriptor, ior->own_path, ior->data + done, ior->transfer, phase * bytes + done, writes,
                     text);
  if (writes && ior->phases.syncs && !text[0]) sync_own_file(ior->descriptor, ior->own_path, text);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// ---- contents, and the run -----------------------------------------------------------------------------------------

// The place of a word is its place in the file, which already differs between phases.
static void fill(void* own, uint64_t phase, int writes) {
  struct ior* ior = own;
  if (!writes) memset(ior->data, 0, ior->block * ior->segments);
  for (uint64_t j = 0; writes && j < ior->segments; j++)
    fill_words(block_of(ior, j), ior->block / 4, offset_of(ior, phase, j) / 4, 0);
}

static void compare(void* own, uint64_t phase) {
  struct ior* ior = own;
  for (uint64_t j = 0; j < ior->segments; j++)
    compare_words(&ior->phases, block_of(ior, j), ior->block / 4, offset_of(ior, phase, j) / 4, 0);
}

// Runs the phases with the kernel of the chosen interface.
static int run(struct ior* ior) {
  static const struct kernel shared = {open_file, fill, move_phase, compare, close_file};
  static const struct kernel own = {open_own, fill, move_own_phase, compare, close_own};
  char more[512];
  int failure = prepare(ior);
  if (!failure) failure = run_phases(&ior->phases, ior->own_files ? &own : &shared, ior);
  // end_phases removes only the file of the given name, which here is the prefix.
  if (ior->own_files && !ior->phases.keeps) unlink(ior->own_path);
  snprintf(more, sizeof more,
           "\"block\": %llu, \"transfer\": %llu, \"segments\": %llu, \"random\": %s, \"file_per_process\": %s",
           (unsigned long long)ior->block, (unsigned long long)ior->transfer, (unsigned long long)ior->segments,
           ior->random ? "true" : "false", ior->own_files ? "true" : "false");
  failure = end_phases(&ior->phases, failure, more);
  if (ior->tiles != MPI_DATATYPE_NULL) MPI_Type_free(&ior->tiles);
  free(ior->blocks);
  free(ior->data);
  return failure;
}

int main(int argc, char** argv) {
  struct ior ior = {.block = 1 << 20, .transfer = 1 << 20, .segments = 1, .tiles = MPI_DATATYPE_NULL};
  int code = PROGRAM_OK;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ior.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ior.ranks);
  const int help = parse_phases(&ior.phases, bad, argc, argv, ":b:t:s:R:F" PHASE_LETTERS, kOptions, set_option, &ior);
  if (!help) check_together(&ior);
  if (any_failed(MPI_COMM_WORLD, bad))
    code = PROGRAM_BAD_INPUT;
  else if (!help)
    code = run(&ior);
  else if (ior.rank == 0)
    fputs(kHelp, stdout);
  MPI_Finalize();
  return code;
}
