// Computes STEPS * EVERY iterations, and writes a block after every EVERY of them. Before it writes, it asks how long
// it would wait. While others keep the storage busy, it computes iterations that are still to be done, and comes back
// shortly before the storage is free. Then one step writes all blocks that are due, so that it waits less often. With
// the argument "never" it writes each block when it is due. See docs/coordinate.md.
//
//   mpicc ask_first.c $(pkg-config --cflags --libs hocket-mpich) -o ask_first
//   hocket run -- mpiexec -n 2 ./ask_first out         asks
//   hocket run -- mpiexec -n 2 ./ask_first out never   does not ask
#include <hocket/io.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, EVERY = 5 };  // blocks; iterations for each
enum { BYTES = 4 << 20 };       // of each process, in each block
static const double iteration_s = 0.1;

static void compute(void) {
  const double end_s = MPI_Wtime() + iteration_s;
  volatile double x = 0;
  while (MPI_Wtime() < end_s) x = x + sqrt(x + 1);
}

// Returns 1 if the next iteration can be computed before the storage is free. Two iterations of wait are left, because
// others are served first if the program comes back too late.
static int is_better_later(int asks) {
  hocket_io_load load;
  return asks && hocket_io_expected_wait(MPI_COMM_WORLD, &load) == HOCKET_OK && load.wait_s > 2 * iteration_s;
}

// Writes the blocks from `first` to before `end` in one step, and returns how long it waited for the grant.
static double write_blocks(MPI_File file, int first, int end, const char* block, int rank, int processes) {
  const double start_s = MPI_Wtime();
  hocket_io_inform(MPI_COMM_WORLD);
  hocket_io_wait();
  const double waited_s = MPI_Wtime() - start_s;
  for (int i = first; i < end; i++) {
    const MPI_Offset at = ((MPI_Offset)i * processes + rank) * BYTES;
    MPI_File_write_at_all(file, at, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  hocket_io_release();
  return waited_s;
}

int main(int argc, char** argv) {
  int rank, processes;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const char* name = argc > 1 ? argv[1] : "out";
  const int asks = argc <= 2 || strcmp(argv[2], "never") != 0;
  char* block = calloc(BYTES, 1);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "file", name);
  hocket_io_prepare(info);
  MPI_Info_free(&info);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);

  const double start_s = MPI_Wtime();
  double waited_s = 0;
  int written = 0, computed = 0, meanwhile = 0;
  for (int i = 1; i <= STEPS * EVERY; i++) {
    compute();
    computed++;
    const int due = i / EVERY;
    if (written == due) continue;
    if (i < STEPS * EVERY && is_better_later(asks)) {
      meanwhile++;
      continue;
    }
    waited_s += write_blocks(file, written, due, block, rank, processes);
    written = due;
  }
  const double took_s = MPI_Wtime() - start_s;

  MPI_File_close(&file);
  hocket_io_complete();
  if (rank == 0)
    printf(
        "wrote %d blocks in %.2f s, waited %.2f s for grants, computed %d iterations, %d of them instead of waiting\n",
        written, took_s, waited_s, computed, meanwhile);
  free(block);
  MPI_Finalize();
  return 0;
}
