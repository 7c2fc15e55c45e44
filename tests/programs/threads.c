// threads PATH: four threads a rank, each with its own communicator and file, write and communicate at once.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { thread_count = 4, rounds = 10, block = 512 };

static const char* path;
static int rank;

struct work {
  int number;
  MPI_Comm comm;
};

static void* run(void* argument) {
  const struct work* work = argument;
  char name[1024];
  static const char zeros[block];
  MPI_File file;
  snprintf(name, sizeof name, "%s.%d", path, work->number);
  if (MPI_File_open(work->comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 3);
  for (int round = 0; round < rounds; ++round) {
    int one = 1, sum;
    MPI_File_write_at_all(file, (MPI_Offset)(2 * round + rank) * block, zeros, block, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, work->comm);
  }
  MPI_File_close(&file);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[thread_count];
  struct work work[thread_count];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  path = argv[1];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < thread_count; ++i) {
    work[i].number = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm);
  }
  for (int i = 0; i < thread_count; ++i) pthread_create(&threads[i], NULL, run, &work[i]);
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < thread_count; ++i) MPI_Comm_free(&work[i].comm);
  MPI_Finalize();
  return 0;
}
