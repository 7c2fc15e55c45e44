// any_access SEED STEPS PATH: ranks write parts of one file in turn, each time in another way, and others read them.
//
// All ranks draw the same steps. In each, one rank writes a part of the file in one of these ways, and after a barrier
// another rank reads a part in one of these ways, and compares it with what was written, by whomever, up to then:
//   write   a put; a collective write of this rank alone (MPI_COMM_SELF), or of all; pwrite; an independent write
//   read    a get; a collective read of this rank alone, or of all; pread; fread; an independent read; mmap
// No rank syncs or closes the file before the end. Exit code 4: a byte differed; a line says which.
#define _GNU_SOURCE
#include <fcntl.h>
#include <hocket/file.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 3 << 20, MOST = 1 << 18 };
enum { PUT_GET, ALONE, TOGETHER, POSIX, INDEPENDENT, WRITES, STREAM = WRITES, MAPPED, READS };

static int rank, ranks, failed;
static const char* path;
static uint64_t state;
static char model[BYTES], got[MOST], data[MOST];
static MPI_File together, alone;
static hocket_file* put;

static uint32_t draw(uint32_t below) {  // the same in all ranks
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

static void must(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void write_part(int how, int who, int at, int bytes) {
  if (how == TOGETHER) {
    const int own = rank == who ? bytes : 0;
    must(MPI_File_write_at_all(together, at, data, own, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "write_at_all");
  }
  if (rank != who) return;
  if (how == PUT_GET) must(hocket_file_put(put, at, data, bytes) == HOCKET_OK, "put");
  if (how == ALONE)
    must(MPI_File_write_at_all(alone, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "alone");
  if (how == INDEPENDENT)
    must(MPI_File_write_at(together, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "write_at");
  if (how == POSIX) {
    const int fd = open(path, O_WRONLY);
    must(pwrite(fd, data, (size_t)bytes, at) == bytes, "pwrite");
    close(fd);
  }
}

static void read_mapped(int at, int bytes) {
  const int fd = open(path, O_RDONLY);
  const char* all = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
  must(all != MAP_FAILED, "mmap");
  memcpy(got, all + at, (size_t)bytes);
  munmap((void*)all, BYTES);
  close(fd);
}

static void read_stream(int at, int bytes) {
  FILE* stream = fopen(path, "r");
  must(fseek(stream, at, SEEK_SET) == 0 && fread(got, 1, (size_t)bytes, stream) == (size_t)bytes, "fread");
  fclose(stream);
}

static void read_part(int how, int who, int at, int bytes) {
  if (how == TOGETHER) {
    const int own = rank == who ? bytes : 0;
    must(MPI_File_read_at_all(together, at, got, own, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "read_at_all");
  }
  if (rank != who) return;
  int64_t there = 0;
  if (how == PUT_GET) must(hocket_file_get(put, at, got, bytes, &there) == HOCKET_OK && there == bytes, "get");
  if (how == ALONE)
    must(MPI_File_read_at_all(alone, at, got, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "alone");
  if (how == INDEPENDENT)
    must(MPI_File_read_at(together, at, got, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "read_at");
  if (how == STREAM) read_stream(at, bytes);
  if (how == MAPPED) read_mapped(at, bytes);
  if (how == POSIX) {
    const int fd = open(path, O_RDONLY);
    must(pread(fd, got, (size_t)bytes, at) == bytes, "pread");
    close(fd);
  }
}

static void step(int number) {
  const int at = (int)draw(BYTES - MOST), bytes = 1 + (int)draw(draw(2) ? MOST - 1 : 1000);
  const int writer = (int)draw((uint32_t)ranks), how = (int)draw(WRITES);
  for (int i = 0; i < bytes; ++i) data[i] = (char)(number * 31 + i);
  memcpy(model + at, data, (size_t)bytes);
  write_part(how, writer, at, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  // Most reads are of what was just written.
  const int reader = (int)draw((uint32_t)ranks), way = (int)draw(READS);
  const int from = draw(4) ? at : (int)draw(BYTES - MOST);
  read_part(way, reader, from, bytes);
  if (rank == reader && memcmp(got, model + from, (size_t)bytes) != 0) {
    int first = 0, last = bytes - 1;
    while (got[first] == model[from + first]) ++first;
    while (got[last] == model[from + last]) --last;
    printf("step %d: rank %d wrote %d bytes by way %d at %d; rank %d read by way %d at %d; bytes %d to %d differ\n",
           number, writer, bytes, how, at, reader, way, from, from + first, from + last);
    failed = 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(argc == 4, "the command line");
  state = strtoull(argv[1], NULL, 10), path = argv[3];
  if (rank == 0) {
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    must(ftruncate(fd, BYTES) == 0, "ftruncate");
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, (char*)path, MPI_MODE_RDWR, MPI_INFO_NULL, &together);
  MPI_File_open(MPI_COMM_SELF, (char*)path, MPI_MODE_RDWR, MPI_INFO_NULL, &alone);
  must(hocket_file_open(path, HOCKET_FILE_READ | HOCKET_FILE_WRITE, NULL, &put) == HOCKET_OK, "hocket_file_open");
  for (int i = 0; i < atoi(argv[2]); ++i) step(i);
  must(hocket_file_close(put) == HOCKET_OK, "hocket_file_close");
  MPI_File_close(&alone);
  MPI_File_close(&together);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    static char stored[BYTES];
    const int fd = open(path, O_RDONLY);
    must(read(fd, stored, BYTES) == BYTES, "read");
    if (memcmp(stored, model, BYTES) != 0) printf("the file differs at the end\n"), failed = 1;
  }
  MPI_Finalize();
  return failed ? 4 : 0;
}
