#define _GNU_SOURCE
#include "phases.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { MOST_PHASES = 1000000 };

// ---- options -------------------------------------------------------------------------------------------------------

// Adds a hint to the info of the file; MPI ignores hints that it does not know.
static void set_hint(struct phases* phases, char* bad, const char* text) {
  char key[MPI_MAX_INFO_KEY + 1] = "";
  const char* equals = strchr(text, '=');
  const size_t length = equals ? (size_t)(equals - text) : 0;
  if (length == 0 || length >= sizeof key || !equals[1]) {
    snprintf(bad, TEXT, "--hint %.3000s: give KEY=VALUE", text);
    return;
  }
  memcpy(key, text, length);
  MPI_Info_set(phases->info, key, equals + 1);
}

// Stores an option that all programs share. Returns 0 for an option of the program itself.
static int set_own(struct phases* phases, char* bad, int key, const char* name) {
  switch (key) {
    case 'o': phases->path = optarg; break;
    case 'p': phases->count = whole_number(bad, name, optarg, 1, MOST_PHASES); break;
    case 'd': phases->compute_s = real_number(bad, name, optarg, 0, 3600); break;
    case 'w': phases->writes = 1; break;
    case 'r': phases->reads = 1; break;
    case 'c': phases->checks = 1; break;
    case 'k': phases->keeps = 1; break;
    case 'y': phases->syncs = 1; break;
    case 'H': set_hint(phases, bad, optarg); break;
    default: return 0;
  }
  return 1;
}

// Returns the long name of an option for messages; getopt reports only the letter.
static const char* name_of(int key, const struct option* options) {
  while (options->name && options->val != key) options++;
  return options->name ? options->name : "";
}

// Applies defaults and checks options that depend on each other. Allocates the times.
static void check_phases(struct phases* phases, char* bad) {
  if (!phases->writes && !phases->reads) phases->writes = phases->reads = 1;
  if (!bad[0] && !phases->path) snprintf(bad, TEXT, "give --file FILE (see --help)");
  if (!bad[0] && phases->checks && !phases->reads) snprintf(bad, TEXT, "--check needs --read");
  if (bad[0]) return;
  phases->write_s = calloc(phases->count, sizeof *phases->write_s);
  phases->read_s = calloc(phases->count, sizeof *phases->read_s);
  if (!phases->write_s || !phases->read_s) snprintf(bad, TEXT, "no memory for %s", "the times of the phases");
}

int parse_phases(struct phases* phases, char* bad, int argc, char** argv, const char* letters,
                 const struct option* options, void (*set)(void* own, int key, const char* name), void* own) {
  // -1 means unknown until the first phase is measured.
  *phases = (struct phases){.count = 10, .memory_kib = -1};
  MPI_Info_create(&phases->info);
  int help = 0;
  opterr = 0;
  for (int key; !bad[0] && (key = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
    if (key == 'h')
      help = 1;
    else if (key == ':')
      snprintf(bad, TEXT, "%s needs a value (see --help)", argv[optind - 1]);
    else if (key == '?')
      snprintf(bad, TEXT, "unknown option %s (see --help)", argv[optind - 1]);
    else if (!set_own(phases, bad, key, name_of(key, options)))
      set(own, key, name_of(key, options));
  }
  if (!bad[0] && optind < argc) snprintf(bad, TEXT, "unexpected argument %s (see --help)", argv[optind]);
  if (!help) check_phases(phases, bad);
  return help;
}

// ---- contents ------------------------------------------------------------------------------------------------------

void fill_words(uint32_t* words, size_t count, uint64_t place, uint64_t phase) {
  for (size_t i = 0; i < count; i++) words[i] = word_at(place + i, phase);
}

void compare_words(struct phases* phases, const uint32_t* words, size_t count, uint64_t place, uint64_t phase) {
  phases->compared += count;
  for (size_t i = 0; i < count; i++) phases->different += words[i] != word_at(place + i, phase);
}

// ---- memory --------------------------------------------------------------------------------------------------------

// Returns a value of /proc/self/status in KiB, or -1 if there is none.
static long status_kib(const char* key) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && kib < 0 && fgets(line, sizeof line, file))
    if (!strncmp(line, key, strlen(key))) kib = strtol(line + strlen(key), NULL, 10);
  if (file) fclose(file);
  return kib;
}

// Resets the kernel's peak and returns the present memory in KiB, or -1 if that is not possible.
static long watch_memory(void) {
  FILE* file = fopen("/proc/self/clear_refs", "w");  // 5 resets the peak to the present size (proc(5))
  const int good = file && fputs("5", file) >= 0;
  return file && fclose(file) == 0 && good ? status_kib("VmRSS:") : -1;
}

// Updates the largest growth since `before_kib`.
static void look_at_memory(struct phases* phases, long before_kib) {
  const long grown_kib = before_kib < 0 ? -1 : status_kib("VmHWM:") - before_kib;
  if (grown_kib > phases->memory_kib) phases->memory_kib = grown_kib;
}

// ---- phases --------------------------------------------------------------------------------------------------------

// Runs one phase. The barrier lets all ranks start together, and the slowest rank decides the time.
static int run_phase(struct phases* phases, const struct kernel* kernel, void* own, uint64_t phase, int writes) {
  sleep_until(MPI_Wtime(), phases->compute_s);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start_s = MPI_Wtime();
  const int failure = kernel->move(own, phase, writes);
  const double own_s = MPI_Wtime() - start_s;
  MPI_Allreduce(&own_s, (writes ? phases->write_s : phases->read_s) + phase, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return failure;
}

// Runs all phases in one direction. The contents are made outside the measured time. The file is closed after a
// failure too.
static int run_way(struct phases* phases, const struct kernel* kernel, void* own, int writes) {
  long before_kib = -1;
  int failure = kernel->open(own, writes);
  if (failure) return failure;
  for (uint64_t phase = 0; phase < phases->count && !failure; phase++) {
    kernel->fill(own, phase, writes);
    // The first phase's data must not count as growth, so the watch begins behind it.
    if (phase == 0) before_kib = watch_memory();
    failure = run_phase(phases, kernel, own, phase, writes);
    look_at_memory(phases, before_kib);
    if (!failure && !writes && phases->checks) kernel->compare(own, phase);
  }
  const int closing = kernel->close(own);
  return failure ? failure : closing;
}

int run_phases(struct phases* phases, const struct kernel* kernel, void* own) {
  int failure = phases->writes ? run_way(phases, kernel, own, 1) : PROGRAM_OK;
  if (!failure && phases->reads) failure = run_way(phases, kernel, own, 0);
  return failure;
}

int open_mpi_file(const struct phases* phases, int writes, MPI_File* file) {
  char text[TEXT] = "";
  const int mode = writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
  const int code = MPI_File_open(MPI_COMM_WORLD, phases->path, mode, phases->info, file);
  mpi_failure(text, code, "open", phases->path);
  if (!any_failed(MPI_COMM_WORLD, text)) return PROGRAM_OK;
  if (code == MPI_SUCCESS) MPI_File_close(file);
  return PROGRAM_FAILED;
}

int close_mpi_file(const struct phases* phases, MPI_File* file) {
  char text[TEXT] = "";
  mpi_failure(text, MPI_File_close(file), "close", phases->path);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// The ranks agree before the sync: it is collective, and a rank that failed would not take part.
int end_mpi_accesses(const struct phases* phases, MPI_File file, int writes, char* text) {
  if (any_failed(MPI_COMM_WORLD, text)) return PROGRAM_FAILED;
  if (!writes || !phases->syncs) return PROGRAM_OK;
  mpi_failure(text, MPI_File_sync(file), "sync", phases->path);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// ---- the end -------------------------------------------------------------------------------------------------------

static void print_times(const char* name, const double* seconds, uint64_t count) {
  printf("\"%s\": [", name);
  for (uint64_t i = 0; i < count; i++) printf("%s%.6f", i ? ", " : "", seconds[i]);
  printf("], ");
}

// Prints the summary, a JSON object on one line, which tools read.
static void summarise(const struct phases* phases, const uint64_t totals[2], long memory_kib, const char* more) {
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  printf("{\"%s\": 1, \"ranks\": %d, %s, \"phases\": %llu, \"phase_bytes\": %llu, ", kProgram, ranks, more,
         (unsigned long long)phases->count, (unsigned long long)phases->bytes);
  if (phases->writes) print_times("write_s", phases->write_s, phases->count);
  if (phases->reads) print_times("read_s", phases->read_s, phases->count);
  printf("\"memory_kib\": %ld, \"compared\": %llu, \"different\": %llu}\n", memory_kib, (unsigned long long)totals[0],
         (unsigned long long)totals[1]);
}

int end_phases(struct phases* phases, int failure, const char* more) {
  char text[TEXT] = "";
  uint64_t own[2] = {phases->compared, phases->different}, totals[2];
  long memory_kib;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(own, totals, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&phases->memory_kib, &memory_kib, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  // Each rank reports its own differences; any_failed prints those of the lowest rank.
  if (phases->different)
    snprintf(text, sizeof text, "%s: %llu of %llu words that rank %d read differ from what was written", phases->path,
             (unsigned long long)own[1], (unsigned long long)own[0], rank);
  if (any_failed(MPI_COMM_WORLD, text)) failure = PROGRAM_FAILED;
  if (rank == 0 && !phases->keeps) unlink(phases->path);
  if (rank == 0 && (!failure || totals[1])) summarise(phases, totals, memory_kib, more);
  free(phases->write_s);
  free(phases->read_s);
  MPI_Info_free(&phases->info);
  return failure;
}
