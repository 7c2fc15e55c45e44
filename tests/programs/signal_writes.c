// signal_writes PATH N: the handler of a timer's signal writes a checkpoint, N times, while the program does other
// work.
//
// The handler writes 1 MiB with write(2) to PATH.RANK.saved and calls fsync, as a handler of Slurm's --signal does.
// The program allocates memory, writes by stream, by descriptor and through MPI, and has threads that do the same,
// until QUIET signals are left. Then it only waits for those, which come seldom: each of their writes begins a burst of
// its own. At the end it prints "saved N of N" in rank 0, if the file is as long as all blocks together.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, AROUND = 16, PIECES = 200, QUIET = 5 };

static int rank, saved_file, own_file;
static char block[BLOCK];
static MPI_File shared;
static FILE* text;
static atomic_int saved, wanted;
static atomic_flag saving = ATOMIC_FLAG_INIT;  // several threads may handle a signal at the same time

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 3);
}

// The same few blocks again and again: the file stays small.
static void save(int signal) {
  (void)signal;
  const int before = errno;
  if (atomic_flag_test_and_set(&saving)) return;
  if (saved < wanted) {
    if (saved % AROUND == 0) lseek(saved_file, 0, SEEK_SET);
    if (write(saved_file, block, BLOCK) != BLOCK || fsync(saved_file) != 0) _exit(4);
    ++saved;
  }
  atomic_flag_clear(&saving);
  errno = before;
}

static void use_memory(void) {
  static _Thread_local void* pieces[PIECES];
  for (int i = 0; i < 20 * PIECES; ++i) {
    free(pieces[i % PIECES]);
    pieces[i % PIECES] = malloc((size_t)(i * 7919 % 100000 + 1));
  }
}

static void write_by_descriptor(void) {
  for (int i = 0; i < 8; ++i) require(pwrite(own_file, block, BLOCK / 4, (off_t)i * BLOCK) == BLOCK / 4, "pwrite");
}

static void* work_beside(void* nothing) {
  (void)nothing;
  while (saved < wanted - QUIET) {
    use_memory();
    write_by_descriptor();
  }
  return NULL;
}

static void work(void) {
  use_memory();
  write_by_descriptor();
  rewind(text);
  for (int i = 0; i < 200; ++i) fprintf(text, "%d of %d: %s\n", (int)saved, (int)wanted, "a line of the log");
  fwrite(block, 1, BLOCK / 8, text);
  require(MPI_File_write_at(shared, (MPI_Offset)rank * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "MPI_File_write_at");
}

static int open_beside(const char* path, const char* suffix) {
  char name[1024];
  snprintf(name, sizeof name, "%s.%d.%s", path, rank, suffix);
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  require(file >= 0, name);
  return file;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  require(argc == 3 && provided == MPI_THREAD_MULTIPLE, "signal_writes PATH N");
  wanted = atoi(argv[2]);
  saved_file = open_beside(argv[1], "saved");
  own_file = open_beside(argv[1], "own");
  text = fdopen(open_beside(argv[1], "log"), "w");
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared);
  const struct sigaction handled = {.sa_handler = save, .sa_flags = SA_RESTART};
  const struct itimerval often = {{0, 7000}, {0, 7000}}, seldom = {{0, 200000}, {0, 200000}};
  pthread_t beside[2];
  for (int i = 0; i < 2; ++i) require(pthread_create(&beside[i], NULL, work_beside, NULL) == 0, "pthread_create");
  require(sigaction(SIGALRM, &handled, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
  while (saved < wanted - QUIET) work();
  for (int i = 0; i < 2; ++i) pthread_join(beside[i], NULL);
  require(setitimer(ITIMER_REAL, &seldom, NULL) == 0, "setitimer");
  while (saved < wanted) usleep(1000);
  signal(SIGALRM, SIG_IGN);
  struct stat file;
  const int blocks = wanted < AROUND ? (int)wanted : AROUND;
  require(fstat(saved_file, &file) == 0 && file.st_size == (off_t)blocks * BLOCK, "the saved blocks");
  MPI_File_close(&shared);
  if (rank == 0) printf("saved %d of %d\n", (int)saved, (int)wanted);
  MPI_Finalize();
  return 0;
}
