// Writes STEPS blocks between iterations, and asks before each one how long it would wait. As long as others keep the
// storage busy, it computes on and writes a few iterations later. With the argument "never" it writes when a block is
// due. See docs/coordinate.md.
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

enum { STEPS = 4, EVERY = 5, LATEST = 20 };  // blocks; iterations between two of them; most iterations of delay
enum { BYTES = 4 << 20 };                    // of each process, in each block
static const double iteration_s = 0.1;

static void compute(void) {
  const double end_s = MPI_Wtime() + iteration_s;
  volatile double x = 0;
  while (MPI_Wtime() < end_s) x = x + sqrt(x + 1);
}

// Returns 1 if waiting would take longer than the next iteration, which can be computed meanwhile.
static int is_better_later(int asks) {
  hocket_io_load load;
  return asks && hocket_io_expected_wait(MPI_COMM_WORLD, &load) == HOCKET_OK && load.wait_s > iteration_s;
}

static double write_block(MPI_File file, int step, const char* block, int rank, int processes) {
  const MPI_Offset at = ((MPI_Offset)step * processes + rank) * BYTES;
  const double start_s = MPI_Wtime();
  hocket_io_inform(MPI_COMM_WORLD);
  hocket_io_wait();
  const double waited_s = MPI_Wtime() - start_s;
  MPI_File_write_at_all(file, at, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
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
  int due = EVERY, written = 0, late = 0;
  for (int i = 1; written < STEPS || i <= STEPS * EVERY; i++) {
    compute();
    if (written == STEPS || i < due) continue;
    if (i < due + LATEST && is_better_later(asks)) {
      late++;
      continue;
    }
    waited_s += write_block(file, written++, block, rank, processes);
    due += EVERY;
  }
  const double took_s = MPI_Wtime() - start_s;

  MPI_File_close(&file);
  hocket_io_complete();
  if (rank == 0)
    printf("wrote %d blocks in %.2f s, waited %.2f s for grants, wrote %d iterations later\n", written, took_s,
           waited_s, late);
  free(block);
  MPI_Finalize();
  return 0;
}
