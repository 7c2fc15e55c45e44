// Writes FILES files, one after the other, each as one step of an I/O phase. Between two files other applications may
// go first, and hocketd knows how much is still to come. See docs/coordinate.md.
//
//   mpicc coordinate.c $(pkg-config --cflags --libs hocket-mpich) -o coordinate
//   hocket run -- mpiexec -n 4 ./coordinate out
#include <hocket/io.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES = 4, BYTES = 1 << 20 };  // of each process, in each file

static void write_file(const char* name, int number, const char* block, int rank) {
  char path[1024];
  MPI_File file;
  snprintf(path, sizeof path, "%s.%d", name, number);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, block, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

static void prepare(const char* name, int processes) {
  MPI_Info info;
  char bytes[32], files[32];
  snprintf(bytes, sizeof bytes, "%lld", (long long)FILES * BYTES * processes);
  snprintf(files, sizeof files, "%d", FILES);
  MPI_Info_create(&info);
  MPI_Info_set(info, "bytes", bytes);
  MPI_Info_set(info, "files", files);
  MPI_Info_set(info, "file", name);
  hocket_io_prepare(info);
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  int rank, processes;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const char* name = argc > 1 ? argv[1] : "out";
  char* block = calloc(BYTES, 1);

  prepare(name, processes);
  for (int i = 0; i < FILES; i++) {
    hocket_io_inform(MPI_COMM_WORLD);
    hocket_io_wait();
    write_file(name, i, block, rank);
    hocket_io_release();
  }
  hocket_io_complete();

  if (rank == 0) printf("wrote %d files of %d bytes\n", FILES, BYTES * processes);
  free(block);
  MPI_Finalize();
  return 0;
}
