// four_files NAME FILES BYTES: writes FILES files, NAME.0 and so on, one after the other, each as one step of one I/O
// phase; each rank writes BYTES into each. Between two files another application may go first (CALCioM, Fig. 10).
#include <hocket/io.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  fprintf(stderr, "four_files: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_file(const char* name, int number, const char* block, int bytes, int rank) {
  char path[4096];
  MPI_File file;
  snprintf(path, sizeof path, "%s.%d", name, number);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "open");
  check(MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  check(MPI_File_sync(file), "sync");
  check(MPI_File_close(&file), "close");
}

static void prepare(int files, long long bytes_of_all) {
  MPI_Info info;
  char text[32];
  MPI_Info_create(&info);
  snprintf(text, sizeof text, "%lld", bytes_of_all);
  MPI_Info_set(info, "bytes", text);
  snprintf(text, sizeof text, "%d", files);
  MPI_Info_set(info, "files", text);
  hocket_io_prepare(info);
  MPI_Info_free(&info);
}

int main(int count, char** words) {
  int rank, processes;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (count != 4) check(MPI_ERR_ARG, "usage: four_files NAME FILES BYTES");
  const int files = atoi(words[2]), bytes = atoi(words[3]);
  char* const block = malloc((size_t)bytes);
  memset(block, 'a' + rank % 26, (size_t)bytes);
  prepare(files, (long long)files * bytes * processes);
  for (int i = 0; i < files; ++i) {
    hocket_io_inform(MPI_COMM_WORLD);
    hocket_io_wait();
    write_file(words[1], i, block, bytes, rank);
    hocket_io_release();
  }
  hocket_io_complete();
  free(block);
  MPI_Finalize();
  return 0;
}
