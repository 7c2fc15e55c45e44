// The SPANK plugin of hocket: each step of srun becomes an application of hocket, if a hocketd listens on its node
// (docs/slurm.md). It never makes a step fail: where something is missing, the step runs without hocket.
//
// srun calls slurm_spank_local_user_init before it launches a step. slurmstepd of each node calls
// slurm_spank_user_init, as the step's user, before it starts the tasks. Between them, all nodes agree (agreement.h).
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "spank/agreement.h"
#include "spank/program_mpi.h"
#include "spank/step_environment.h"

SPANK_PLUGIN(hocket, 1)

enum {
  value_bytes = 131072,  // the longest text of an environment that the kernel takes
  names_bytes = 65536,   // of the operator's names of targets
};
static const uint32_t most_normal_step = 0xfffffff0U;  // greater numbers are batch scripts, and the like
static const uint32_t no_number = 0xfffffffeU;
static const char place_variable[] = "SLURM_HOCKET_STEP";  // srun hands variables of Slurm on, whatever --export says
static const char spawned[] = "spawned";                   // as its value: the step's environment stays as it is
static const char several_jobs_variable[] = "SLURM_HET_SIZE";  // of a heterogeneous job

// The words behind the plugin in plugstack.conf.
static struct {
  char libraries[PATH_MAX];  // the directory of libhocket-*.so
  char socket[PATH_MAX];     // of the hocketd of all users
  unsigned first_port, last_port;
  int limit_s;
} settings = {"", "/run/hocket/hocketd.sock", 0, 0, 5};

// The options of srun, sbatch and salloc.
static struct {
  bool off, watch;
  char* name;
  char* io;
  enum mpi_kind mpi;
} wanted;

enum { option_off = 1, option_watch, option_name, option_mpi, option_io };

static int take_option(int option, const char* value, int remote) {
  (void)remote;
  if (option == option_off) wanted.off = true;
  if (option == option_watch) wanted.watch = true;
  if (option == option_name) {
    for (const char* at = value; *at; ++at)
      if (iscntrl((unsigned char)*at))
        return slurm_error("--hocket-name: a name has no line breaks and no control characters"), -1;
    free(wanted.name);
    wanted.name = strdup(value);
  }
  if (option == option_mpi && (wanted.mpi = mpi_of_name(value)) == mpi_unknown)
    return slurm_error("--hocket-mpi=%s: give mpich or openmpi", value), -1;
  if (option == option_io) {
    if (strcmp(value, "mpi") != 0 && strcmp(value, "hocket") != 0)
      return slurm_error("--hocket-io=%s: give mpi or hocket", value), -1;
    free(wanted.io);
    wanted.io = strdup(value);
  }
  return ESPANK_SUCCESS;
}

static struct spank_option options[] = {
    {"no-hocket", NULL, "run without hocket", 0, option_off, take_option},
    {"hocket-name", "NAME", "name in 'hocket ls' (default: program, job, step)", 1, option_name, take_option},
    {"hocket-mpi", "MPI", "mpich or openmpi, if hocket cannot see it", 1, option_mpi, take_option},
    {"hocket-io", "WHO", "mpi or hocket performs collective accesses of files", 1, option_io, take_option},
    {"hocket-no-coordinate", NULL, "hocket only watches, and no access waits", 0, option_watch, take_option},
};

// A table that is exported would give the options to srun alone.
int slurm_spank_init(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) spank_option_register(spank, &options[i]);
  return ESPANK_SUCCESS;
}

// Reads the words of plugstack.conf. Unknown ones are said in slurmd's log, and change nothing.
static void read_settings(int count, char** words) {
  Dl_info own;
  char itself[PATH_MAX];
  // It lies in lib/hocket/slurm, the libraries in lib/hocket.
  if (dladdr(&settings, &own) && realpath(own.dli_fname, itself))
    snprintf(settings.libraries, sizeof settings.libraries, "%s", dirname(dirname(itself)));
  for (int i = 0; i < count; ++i) {
    unsigned first = 0, last = 0, limit_s = 0;
    if (sscanf(words[i], "ports=%5u-%5u", &first, &last) == 2 && first > 0 && first <= last && last < 65536)
      settings.first_port = first, settings.last_port = last;
    else if (sscanf(words[i], "limit_s=%4u", &limit_s) == 1 && limit_s > 0)
      settings.limit_s = (int)limit_s;
    else if (strncmp(words[i], "libraries=/", 11) == 0)
      snprintf(settings.libraries, sizeof settings.libraries, "%s", words[i] + 10);
    else if (strncmp(words[i], "socket=/", 8) == 0)
      snprintf(settings.socket, sizeof settings.socket, "%s", words[i] + 7);
    else
      slurm_error("hocket: plugstack.conf: '%s' is none of libraries=DIR, socket=PATH, ports=FIRST-LAST, limit_s=N",
                  words[i]);
  }
}

// ---- srun -----------------------------------------------------------------------------------------------------------

// Runs in the thread that decides.
static void say_in_srun(const char* reason) { slurm_info("hocket: %s; the step runs without hocket", reason); }

int slurm_spank_local_user_init(spank_t spank, int count, char** words) {
  uint32_t nodes = 0;
  char place[agreement_place_bytes];
  unsetenv(place_variable);
  // Slurm's PMI starts the processes that a program spawns by another srun. They belong to the program.
  if (getenv("SLURM_PMI2_SPAWN_SEQ")) return setenv(place_variable, spawned, 1), ESPANK_SUCCESS;
  if (wanted.off || getenv(several_jobs_variable) || spank_get_item(spank, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS ||
      nodes < 2)
    return ESPANK_SUCCESS;
  read_settings(count, words);
  // Without a place, the nodes stand aside.
  if (agreement_begin(nodes, settings.first_port, settings.last_port, settings.limit_s, say_in_srun, place))
    setenv(place_variable, place, 1);
  return ESPANK_SUCCESS;
}

// ---- slurmstepd -----------------------------------------------------------------------------------------------------

// A step on its node, while the plugin prepares it. Texts are the plugin's own, and freed with it.
struct step {
  spank_t spank;
  uint32_t nodes, node;
  bool given;     // `hocket run` has made this environment: it stays
  char* preload;  // LD_PRELOAD; ""
  char* library;  // libhocket for its ranks; NULL: none
  char* socket;   // of hocketd; NULL: none listens
  char* program;  // name
};

// A copy of the variable of the step's tasks; NULL if they have none, or it is too long.
static char* variable(spank_t spank, const char* name) {
  char* const text = malloc(value_bytes);
  if (text && spank_getenv(spank, name, text, value_bytes) == ESPANK_SUCCESS) return text;
  free(text);
  return NULL;
}

static bool has_variable(spank_t spank, const char* name) {
  char* const text = variable(spank, name);
  free(text);
  return text != NULL;
}

static bool file_exists(const char* path) {
  struct stat about;
  return stat(path, &about) == 0;
}

// Finds the socket of the hocketd that the tasks are to use: the one of `hocket run`, of HOCKET_DIR, of all users.
static char* find_socket(spank_t spank, bool given) {
  char* socket = given ? variable(spank, "HOCKET_SOCKET") : NULL;
  char* const directory = variable(spank, "HOCKET_DIR");
  if (!given && directory && *directory && asprintf(&socket, "%s/hocketd.sock", directory) < 0) socket = NULL;
  free(directory);
  if (socket && file_exists(socket)) return socket;
  free(socket);
  return file_exists(settings.socket) ? strdup(settings.socket) : NULL;
}

static struct program examine_step(spank_t spank) {
  struct program program = {mpi_unknown, false, false, "program"};
  int count = 0;
  char** words = NULL;
  char directory[PATH_MAX];
  if (spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS ||
      getcwd(directory, sizeof directory) == NULL)
    return program;
  char* const path = variable(spank, "PATH");
  program = examine_program(count, words, path, directory);
  free(path);
  char* const pmi = variable(spank, "SLURM_MPI_TYPE");
  if (program.mpi == mpi_unknown) program.mpi = mpi_of_pmi(pmi);
  free(pmi);
  if (wanted.mpi != mpi_unknown) program.mpi = wanted.mpi;
  return program;
}

// Chooses the library. Returns why there is none, for the user; "": the user need not know.
static void choose_library(struct step* step, char reason[agreement_reason_bytes]) {
  const struct program program = examine_step(step->spank);
  *reason = '\0';
  step->program = strdup(program.words_name);
  step->library = libhocket_in(step->preload);
  if (step->library == NULL) {
    if (program.mpi == mpi_unknown || program.is_tool || program.is_static) return;
    if (asprintf(&step->library, "%s/libhocket-%s.so", settings.libraries, mpi_name(program.mpi)) < 0)
      step->library = NULL;
  }
  if (step->library == NULL) return;
  const char* problem = NULL;
  if (strpbrk(step->library, ": \t\n"))
    problem = "LD_PRELOAD cannot hold the path";
  else if (eaccess(step->library, R_OK) != 0)  // slurmstepd is root's, and acts for the user now
    problem = "there is no";
  if (problem == NULL) return;
  snprintf(reason, agreement_reason_bytes, "%s %.150s", problem, step->library);
  free(step->library);
  step->library = NULL;
}

static void log_reason(const struct step* step, const char* reason) {
  if (*reason && step->node == 0) slurm_spank_log("hocket: %s; the step runs without hocket", reason);
}

// True if the ranks of all nodes get the library.
static bool all_agree(const struct step* step, const char* place, const char* reason) {
  if (step->nodes < 2) {
    if (step->library == NULL || step->socket == NULL) log_reason(step, step->socket ? reason : "");
    return step->library && (step->socket || step->given);
  }
  struct report report = {.has_library = step->library != NULL, .has_daemon = step->socket || step->given};
  if (step->library) report.checksum = checksum_of_library(step->library);
  snprintf(report.reason, sizeof report.reason, "%s", reason);
  gethostname(report.node, sizeof report.node - 1);
  char* const named = variable(step->spank, "SLURMD_NODENAME");
  if (named && *named) snprintf(report.node, sizeof report.node, "%s", named);
  free(named);
  char* const host = variable(step->spank, "SLURM_SRUN_COMM_HOST");
  const int answer = place && host ? agreement_ask(host, place, &report, settings.limit_s) : -1;
  free(host);
  if (answer < 0 && step->library && report.has_daemon)
    log_reason(step, "srun could not be asked if all nodes have libhocket");
  return answer > 0;
}

// Sets the variable, if there is a text. Frees the text.
static void set_and_free(spank_t spank, const char* name, char* text) {
  if (text) spank_setenv(spank, name, text, 1);
  free(text);
}

// Opens a file for reading, in a directory that may be the user's: a pipe there must not keep slurmstepd waiting.
static FILE* open_regular_stream(const char* path) {
  struct stat about;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NULL;
  FILE* const file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? fdopen(fd, "r") : NULL;
  if (file == NULL) close(fd);
  return file;
}

// Hands the operator's names of targets on, as `hocket run` does.
static void set_target_names(const struct step* step) {
  char path[PATH_MAX];
  const char* const slash = strrchr(step->socket, '/');
  if (slash == NULL || has_variable(step->spank, "HOCKET_TARGET_NAMES")) return;
  const int directory = (int)(slash - step->socket);
  if (snprintf(path, sizeof path, "%.*s/target-names", directory, step->socket) >= (int)sizeof path) return;
  FILE* const file = open_regular_stream(path);
  char* const names = file ? calloc(1, names_bytes) : NULL;
  if (names && fread(names, 1, names_bytes - 1, file) > 0) spank_setenv(step->spank, "HOCKET_TARGET_NAMES", names, 1);
  free(names);
  if (file) fclose(file);
}

static struct step_identity identity_of(spank_t spank, uint32_t number, const char* cluster) {
  uint32_t job = 0, array = 0, task = 0, restarts = 0;
  spank_get_item(spank, S_JOB_ID, &job);
  const bool is_of_array = spank_get_item(spank, S_JOB_ARRAY_ID, &array) == ESPANK_SUCCESS &&
                           spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &task) == ESPANK_SUCCESS && task < no_number;
  if (!is_of_array) array = 0;
  if (spank_get_item(spank, S_SLURM_RESTART_COUNT, &restarts) != ESPANK_SUCCESS) restarts = 0;
  return (struct step_identity){cluster ? cluster : "", job, number, array, task, restarts};
}

static void join_hocket(const struct step* step, uint32_t number) {
  const spank_t spank = step->spank;
  if (step->socket) {
    spank_setenv(spank, "HOCKET_SOCKET", step->socket, 1);
    set_target_names(step);
  } else if (!step->given) {
    spank_setenv(spank, "HOCKET_SOCKET", settings.socket, 1);  // other nodes have a hocketd; here it may come
  }
  char* const others = without_libhocket(step->preload);
  if (others) set_and_free(spank, "LD_PRELOAD", with_libhocket(step->library, others));
  free(others);
  if (wanted.io) spank_setenv(spank, "HOCKET_IO", wanted.io, 1);
  if (wanted.watch) spank_setenv(spank, "HOCKET_COORDINATE", "0", 1);
  if (!step->given) {
    char* const cluster = variable(spank, "SLURM_CLUSTER_NAME");
    const struct step_identity identity = identity_of(spank, number, cluster);
    set_and_free(spank, "HOCKET_JOB", job_of_step(&identity));
    set_and_free(spank, "HOCKET_NAME", wanted.name ? strdup(wanted.name) : name_of_step(step->program, &identity));
    free(cluster);
  }
}

// Takes out what a step around this one, or `hocket run`, has put into the environment.
static void leave_hocket(const struct step* step) {
  char* const others = without_libhocket(step->preload);
  if (others && *others) spank_setenv(step->spank, "LD_PRELOAD", others, 1);
  if (others && !*others) spank_unsetenv(step->spank, "LD_PRELOAD");
  free(others);
  spank_unsetenv(step->spank, "HOCKET_JOB");
  spank_unsetenv(step->spank, "HOCKET_NAME");
  spank_unsetenv(step->spank, "HOCKET_SOCKET");
}

// Decides if the step's ranks get the library, and why not.
static bool is_to_join(struct step* step, const char* place) {
  char reason[agreement_reason_bytes] = "";
  if (wanted.off) return false;
  if (has_variable(step->spank, several_jobs_variable)) return false;  // its components cannot agree
  choose_library(step, reason);
  return all_agree(step, place, reason) && step->program;
}

static void prepare(struct step* step, uint32_t number) {
  char* const job = variable(step->spank, "HOCKET_JOB");
  char* const place = variable(step->spank, place_variable);
  spank_unsetenv(step->spank, place_variable);
  step->given = job && *job && !is_job_of_step(job);
  step->preload = variable(step->spank, "LD_PRELOAD");
  if (step->preload == NULL) step->preload = strdup("");
  char* const preloaded = step->preload ? libhocket_in(step->preload) : NULL;
  // Under `hocket run -- mpiexec`, the step's processes start the ranks, and give them the library.
  const bool is_launcher = step->given && preloaded == NULL && !wanted.off;
  const bool is_spawned = place && strcmp(place, spawned) == 0;
  if (step->preload && !is_launcher && !is_spawned) {
    step->socket = find_socket(step->spank, step->given);
    if (is_to_join(step, place))
      join_hocket(step, number);
    else
      leave_hocket(step);
  }
  free(preloaded);
  free(place);
  free(job);
}

int slurm_spank_user_init(spank_t spank, int count, char** words) {
  uint32_t number = UINT32_MAX;
  struct step step = {.spank = spank};
  if (spank_get_item(spank, S_JOB_STEPID, &number) != ESPANK_SUCCESS || number >= most_normal_step)
    return ESPANK_SUCCESS;
  if (spank_get_item(spank, S_JOB_NNODES, &step.nodes) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
  spank_get_item(spank, S_JOB_NODEID, &step.node);
  read_settings(count, words);
  prepare(&step, number);
  free(step.preload);
  free(step.library);
  free(step.socket);
  free(step.program);
  return ESPANK_SUCCESS;
}
