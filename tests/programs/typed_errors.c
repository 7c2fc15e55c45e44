/* typed_errors FILE: puts with wrong arguments of hocket/file_mpi.h, and prints what is said about each. */
#include <hocket/file_mpi.h>
#include <stdio.h>

static void say(const char* what, int status) {
  printf("%s: %s\n", what, status < 0 ? hocket_error_text(status) : "no error");
}

int main(int argc, char** argv) {
  hocket_file* file;
  int numbers[2] = {1, 2};
  const int ones[2] = {1, 1}, back[2] = {4, 0}, below[1] = {-2};
  int64_t got = -1;
  if (argc != 2) return 2;
  const int opened = hocket_file_open(argv[1], HOCKET_FILE_READ | HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &file);
  if (opened < 0) fprintf(stderr, "%s\n", hocket_error_text(opened));
  say("before MPI_Init", hocket_file_put_typed(file, 0, (MPI_Datatype)0, numbers, 1, (MPI_Datatype)0));
  MPI_Init(&argc, &argv);
  MPI_Datatype overlapping, negative, empty, every_second, absolute;
  MPI_Type_indexed(2, ones, back, MPI_INT, &overlapping);
  MPI_Type_indexed(1, ones, below, MPI_INT, &negative);
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second);
  MPI_Aint address;
  MPI_Get_address(numbers, &address);
  MPI_Type_create_hindexed_block(1, 2, &address, MPI_INT, &absolute);
  say("offset", hocket_file_put_typed(file, -1, MPI_INT, numbers, 1, MPI_INT));
  say("count", hocket_file_put_typed(file, 0, MPI_INT, numbers, -2, MPI_INT));
  say("null type", hocket_file_put_typed(file, 0, MPI_INT, numbers, 1, MPI_DATATYPE_NULL));
  say("null filetype", hocket_file_put_typed(file, 0, MPI_DATATYPE_NULL, numbers, 1, MPI_INT));
  say("overlap", hocket_file_put_typed(file, 0, overlapping, numbers, 1, MPI_INT));
  say("below 0", hocket_file_put_typed(file, 0, negative, numbers, 1, MPI_INT));
  say("empty", hocket_file_put_typed(file, 0, empty, numbers, 1, MPI_INT));
  say("too far", hocket_file_put_typed(file, ((int64_t)1 << 62) - 8, MPI_INT, numbers, 2, MPI_INT));
  say("no data", hocket_file_put_typed(file, 0, MPI_INT, NULL, 1, MPI_INT));
  say("operation", hocket_file_put_typed_all(file, 0, 0, MPI_INT, numbers, 1, MPI_INT));
  say("bottom", hocket_file_put_typed(file, 0, every_second, MPI_BOTTOM, 1, absolute));
  say("partial", hocket_file_get_typed(file, 12, MPI_BYTE, numbers, 2, MPI_INT, &got));
  printf("%lld bytes\n", (long long)got);
  MPI_Type_free(&overlapping);
  MPI_Type_free(&negative);
  MPI_Type_free(&empty);
  MPI_Type_free(&every_second);
  MPI_Type_free(&absolute);
  MPI_Finalize();
  say("after MPI_Finalize", hocket_file_put_typed(file, 0, (MPI_Datatype)0, numbers, 1, (MPI_Datatype)0));
  return hocket_file_close(file) < 0;
}
