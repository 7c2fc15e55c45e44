/* Writes in each fifth of 30 iterations. In one file each rank has every size-th block of 1000 bytes, and the writes
 * append: four collective calls, with a view of doubles behind a header, so that offsets count doubles. In the second
 * each rank has one extent, which it overwrites in four independent calls. The third is written as the first one, by
 * POSIX calls.
 *
 *   strided DIRECTORY
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { iterations = 30, period = 5, calls = 4, doubles = 125, header = 64 };

static int open_descriptor(const char* directory, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  const int descriptor = open(path, O_CREAT | O_WRONLY, 0600);
  if (descriptor < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return descriptor;
}

static MPI_File open_file(const char* directory, const char* name) {
  char path[4096];
  MPI_File file;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file))
    MPI_Abort(MPI_COMM_WORLD, 1);
  return file;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_File together = open_file(argv[1], "together"), alone = open_file(argv[1], "alone");
  const int shared = open_descriptor(argv[1], "shared");
  MPI_File_set_view(together, header, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
  double block[doubles] = {0}, sum = 1;
  for (int it = 0, block_number = 0; it < iterations; it++) {
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if ((it + 1) % period != 0) continue;
    for (int call = 0; call < calls; call++)
      if (pwrite(shared, block, sizeof block, (off_t)((block_number + call) * size + rank) * (off_t)sizeof block) < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int call = 0; call < calls; call++, block_number++)
      MPI_File_write_at_all(together, (MPI_Offset)(block_number * size + rank) * doubles, block, doubles, MPI_DOUBLE,
                            MPI_STATUS_IGNORE);
    for (int call = 0; call < calls; call++)
      MPI_File_write_at(alone, (MPI_Offset)(rank * calls + call) * (MPI_Offset)sizeof block, block, doubles, MPI_DOUBLE,
                        MPI_STATUS_IGNORE);
  }
  MPI_File together_closed = together, alone_closed = alone;
  MPI_File_close(&together_closed);
  MPI_File_close(&alone_closed);
  close(shared);
  MPI_Finalize();
  return 0;
}
