// script ACTION…: executes its arguments in order, in all ranks. The tests write their scenarios with it.
//
//   world self half     the communicator that the next open uses: all ranks, each its own, or only the upper half
//                       (the lower half skips what follows, up to `all`)
//   all                 every rank takes part again
//   open=PATH           collective, write-only, created; with `self` each rank adds its rank to the name
//   target=NAME         the next open names its target by hint
//   targets=NAMES       the next open names the parts of its target by hint
//   collective=METHOD   MPI_File_set_info: who does the file's collective accesses from here on, and how
//   write=BYTES  split=BYTES  start=BYTES  alone=BYTES
//                       each rank writes its block after the earlier data: collective, split collective,
//                       nonblocking collective, independent
//   writing=PATH        collective writes with 2 ms between two, until the file exists
//   toolarge=BYTES      a collective write, and a split one, beyond the limit of a file's size; rank 0 prints "failed"
//                       if both fail
//   begin=BYTES finish  the two halves of a split collective write: between them the grant is held; other files may be
//                       opened and closed meanwhile, and afterwards the file is this one again
//   sync close          MPI_File_sync, MPI_File_close
//   try                 from here on, each rank prints the error class of sync and close, and goes on
//   pause=SECONDS       sleeps for so long
//   allreduce=N         N times MPI_Allreduce
//   mark=PATH           rank 0 makes the file, so that a test sees the progress of the program
//   await=PATH          waits until the file exists
//   fork                rank 0 forks a child that exits at once
//   spawn=N             starts N processes of this program that do the actions after it; the parents wait for them
//   kill abort          rank 0 ends itself with SIGKILL, or calls MPI_Abort
// Each byte that a rank writes is 'A' + rank. Exit code 3: an MPI routine failed unexpectedly.
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm comm;
static MPI_File file;
static MPI_Offset written;  // by all ranks of comm
static char target[256];
static char targets[256];

static void sleep_for(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void check(int rc) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(rc, text, &length);
  fprintf(stderr, "rank %d: %s\n", rank, text);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int tries;

static void check_or_print(int rc) {
  int class = MPI_SUCCESS;
  if (!tries) return check(rc);
  MPI_Error_class(rc, &class);
  puts(class == MPI_SUCCESS        ? "MPI_SUCCESS"
       : class == MPI_ERR_NO_SPACE ? "MPI_ERR_NO_SPACE"
       : class == MPI_ERR_IO       ? "MPI_ERR_IO"
                                   : "another class");
}

static void open_file(const char* path) {
  char name[1024];
  MPI_Info info = MPI_INFO_NULL;
  if (comm == MPI_COMM_SELF)
    snprintf(name, sizeof name, "%s.%d", path, rank);
  else
    snprintf(name, sizeof name, "%s", path);
  if (*target || *targets) MPI_Info_create(&info);
  if (*target) MPI_Info_set(info, "hocket_target", target);
  if (*targets) MPI_Info_set(info, "hocket_targets", targets);
  if (MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file) != MPI_SUCCESS) {
    fprintf(stderr, "rank %d: open failed\n", rank);
    file = MPI_FILE_NULL;
  }
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  written = 0;
}

static void set_method(const char* method) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "hocket_collective", method);
  check(MPI_File_set_info(file, info));
  MPI_Info_free(&info);
}

static void write_block(const char* how, int bytes) {
  int r, n;
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &n);
  char* block = malloc((size_t)bytes);
  memset(block, 'A' + rank, (size_t)bytes);
  const MPI_Offset at = written + (MPI_Offset)r * bytes;
  MPI_Status status;
  MPI_Request request;
  if (!strcmp(how, "write")) check(MPI_File_write_at_all(file, at, block, bytes, MPI_BYTE, &status));
  if (!strcmp(how, "alone")) check(MPI_File_write_at(file, at, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  if (!strcmp(how, "split")) {
    check(MPI_File_write_at_all_begin(file, at, block, bytes, MPI_BYTE));
    check(MPI_File_write_at_all_end(file, block, &status));
  }
  if (!strcmp(how, "start")) {
    check(MPI_File_iwrite_at_all(file, at, block, bytes, MPI_BYTE, &request));
    check(MPI_Wait(&request, &status));
  }
  written += (MPI_Offset)n * bytes;
  free(block);
}

static void write_until(const char* path) {
  int there = 0;
  while (!there) {
    write_block("write", 100000);
    there = rank == 0 && access(path, F_OK) == 0;
    check(MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD));
    sleep_for(0.002);
  }
}

static char* held;  // data that `begin` writes
static MPI_File held_file;

static void begin_block(int bytes) {
  int r, n;
  MPI_Comm_rank(comm, &r);
  MPI_Comm_size(comm, &n);
  held = malloc((size_t)bytes);
  memset(held, 'A' + rank, (size_t)bytes);
  held_file = file;
  check(MPI_File_write_at_all_begin(file, written + (MPI_Offset)r * bytes, held, bytes, MPI_BYTE));
  written += (MPI_Offset)n * bytes;
}

static void finish_block(void) {
  file = held_file;
  check(MPI_File_write_at_all_end(file, held, MPI_STATUS_IGNORE));
  free(held);
}

static void write_too_large(int bytes) {
  char* block = calloc((size_t)bytes, 1);
  const MPI_Offset at = written + (MPI_Offset)rank * bytes;
  struct rlimit before, limit;
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  limit.rlim_cur = (rlim_t)written + 1;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  int failed = MPI_File_write_at_all(file, at, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  int rc = MPI_File_write_at_all_begin(file, at, block, bytes, MPI_BYTE);
  if (rc == MPI_SUCCESS) rc = MPI_File_write_at_all_end(file, block, MPI_STATUS_IGNORE);
  failed &= rc != MPI_SUCCESS;
  setrlimit(RLIMIT_FSIZE, &before);
  free(block);
  if (rank == 0 && failed) puts("failed");
}

static void mark(const char* path) {
  if (rank != 0) return;
  const int fd = open(path, O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
}

static void await_file(const char* path) {
  while (rank == 0 && access(path, F_OK) != 0) sleep_for(0.002);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void spawn(const char* program, int count, char** actions) {
  MPI_Comm children;
  MPI_Comm_spawn(program, actions, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Comm_disconnect(&children);
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  check(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  comm = MPI_COMM_WORLD;
  int taking_part = 1;
  for (int i = 1; i < argc; ++i) {
    char* action = argv[i];
    char* value = strchr(action, '=');
    if (value) *value++ = '\0';
    if (!strcmp(action, "all")) taking_part = 1;
    if (!taking_part) continue;
    if (!strcmp(action, "world")) comm = MPI_COMM_WORLD;
    if (!strcmp(action, "self")) comm = MPI_COMM_SELF;
    if (!strcmp(action, "half")) {
      taking_part = rank >= size / 2;
      check(MPI_Comm_split(MPI_COMM_WORLD, taking_part, rank, &comm));
    }
    if (!strcmp(action, "target")) snprintf(target, sizeof target, "%s", value);
    if (!strcmp(action, "targets")) snprintf(targets, sizeof targets, "%s", value);
    if (!strcmp(action, "open")) open_file(value);
    if (!strcmp(action, "write") || !strcmp(action, "split") || !strcmp(action, "start") || !strcmp(action, "alone"))
      write_block(action, atoi(value));
    if (!strcmp(action, "writing")) write_until(value);
    if (!strcmp(action, "collective")) set_method(value);
    if (!strcmp(action, "begin")) begin_block(atoi(value));
    if (!strcmp(action, "toolarge")) write_too_large(atoi(value));
    if (!strcmp(action, "finish")) finish_block();
    if (!strcmp(action, "try")) tries = 1;
    if (!strcmp(action, "sync")) check_or_print(MPI_File_sync(file));
    if (!strcmp(action, "close")) check_or_print(MPI_File_close(&file));
    if (!strcmp(action, "pause")) sleep_for(atof(value));
    if (!strcmp(action, "mark")) mark(value);
    if (!strcmp(action, "await")) await_file(value);
    if (!strcmp(action, "kill") && rank == 0) raise(SIGKILL);
    if (!strcmp(action, "abort") && rank == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(action, "fork") && rank == 0) {
      const pid_t child = fork();
      if (child == 0) exit(0);
      waitpid(child, NULL, 0);
    }
    if (!strcmp(action, "allreduce"))
      for (int n = atoi(value); n > 0; --n) {
        int one = 1, sum;
        check(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
      }
    if (!strcmp(action, "spawn")) {
      spawn(argv[0], atoi(value), argv + i + 1);
      break;
    }
  }
  if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
