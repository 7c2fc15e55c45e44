// sees_held HOW PATH [WHO]: writes collectively, or puts, and then accesses the file in another way without a sync.
//
// Two ranks write or put BLOCK bytes each, 'A' + rank. After a barrier, each rank accesses all of the file. WHO:
//   write put                                  both ranks write collectively (if WHO is missing), or put
//   write_alone put_alone                      rank 0 writes or puts both blocks; only rank 1 accesses the file then
// HOW:
//   pread readv fread fstat stat lseek second  reads the bytes or the length: through POSIX, or another MPI_File_open
//   fgets mmap aio splice lstat statx          the same
//   iread                                      the same, through a nonblocking call of MPI
//   cat stdin                                  the same, by a child process that does not use MPI
//   second_off                                 the same, collectively, by the MPI library
//   copy                                       rank 0 copies the file to PATH.copy by sendfile
//   pwrite fprintf second_write                each rank writes '0' + rank over a part of the other's bytes
//   ftruncate truncate open fopen              one rank shortens the file to 0 bytes
//   signal                                     pread in a signal handler that interrupts the program's own code
// Then the file is synced and closed. Exit code 4: a rank saw other bytes, or another length; a line says which.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <hocket/file.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BLOCK = (1 << 20) + 5, ALL = 2 * BLOCK, PART = 5000 };

static int rank, is_alone, failed;
static const char *how, *path;
static char got[ALL + 1];

static int is(const char* name) { return strcmp(how, name) == 0; }

static void expect(long long found, long long wanted, const char* what) {
  if (found == wanted) return;
  printf("rank %d, %s: %s is %lld, not %lld\n", rank, how, what, found, wanted);
  failed = 1;
}

static void expect_all(void) {
  int wrong = 0;
  for (int i = 0; i < ALL; ++i) wrong += got[i] != 'A' + i / BLOCK;
  expect(wrong, 0, "number of older bytes");
}

static void on_signal(int number) {
  (void)number;
  const int fd = open(path, O_RDONLY);
  expect(pread(fd, got, ALL, 0), ALL, "length");
  close(fd);
}

static void read_posix(void) {
  const int fd = open(path, O_RDONLY);
  if (is("pread")) expect(pread(fd, got, ALL, 0), ALL, "length");
  if (is("readv")) expect(readv(fd, (struct iovec[]){{got, BLOCK}, {got + BLOCK, BLOCK}}, 2), ALL, "length");
  if (is("fread")) {
    FILE* stream = fdopen(dup(fd), "r");
    size_t bytes = 0, more;
    while (bytes < ALL && (more = fread(got + bytes, 1, 1000 < ALL - bytes ? 1000 : ALL - bytes, stream)) > 0)
      bytes += more;
    expect((long long)bytes, ALL, "length");
    fclose(stream);
  }
  if (is("fgets")) {
    FILE* stream = fdopen(dup(fd), "r");
    if (!fgets(got, ALL + 1, stream)) failed = 1;
    fclose(stream);
  }
  if (is("mmap")) {
    const char* all = mmap(NULL, ALL, PROT_READ, MAP_PRIVATE, fd, 0);
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_size == ALL) memcpy(got, all, ALL);
  }
  if (is("aio")) {
    struct aiocb access = {.aio_fildes = fd, .aio_buf = got, .aio_nbytes = ALL};
    aio_read(&access);
    while (aio_error(&access) == EINPROGRESS) usleep(1000);
    expect(aio_return(&access), ALL, "length");
  }
  if (is("splice")) {
    int ends[2];
    if (pipe(ends) != 0) failed = 1;
    for (ssize_t bytes = 0, more; bytes < ALL; bytes += more) {
      more = splice(fd, NULL, ends[1], NULL, 4096, 0);
      if (more <= 0 || (more = read(ends[0], got + bytes, 4096)) <= 0) break;
    }
  }
  if (is("signal")) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
  }
  close(fd);
  expect_all();
}

static void look_at_length(void) {
  struct stat file;
  const int fd = open(path, O_RDONLY);
  if (is("fstat") && fstat(fd, &file) == 0) expect(file.st_size, ALL, "length");
  if (is("stat") && stat(path, &file) == 0) expect(file.st_size, ALL, "length");
  if (is("lstat") && lstat(path, &file) == 0) expect(file.st_size, ALL, "length");
  struct statx extended;
  if (is("statx") && statx(AT_FDCWD, path, 0, STATX_SIZE, &extended) == 0)
    expect((long long)extended.stx_size, ALL, "length");
  if (is("lseek")) expect(lseek(fd, 0, SEEK_END), ALL, "length");
  close(fd);
}

static void copy(void) {
  char name[1024];
  snprintf(name, sizeof name, "%s.copy", path);
  const int from = open(path, O_RDONLY), to = open(name, O_RDWR | O_CREAT, 0600);
  expect(sendfile(to, from, NULL, ALL), ALL, "length");
  expect(pread(to, got, ALL, 0), ALL, "length");
  close(from), close(to);
  expect_all();
}

// Lets a child process copy the file, which it has open itself or as its standard input.
static void let_child_read(void) {
  char command[3000];
  snprintf(command, sizeof command, "cat %s '%s' > '%s.copy%d'", is("stdin") ? "<" : "", path, path, rank);
  expect(system(command), 0, "status of cat");
  snprintf(command, sizeof command, "%s.copy%d", path, rank);
  const int fd = open(command, O_RDONLY);
  expect(read(fd, got, ALL), ALL, "length");
  close(fd);
  expect_all();
}

static void overwrite(void) {
  char part[PART + 1] = {0};
  memset(part, '0' + rank, PART);
  const int fd = open(path, O_WRONLY);
  if (is("fprintf")) {
    FILE* stream = fdopen(fd, "w");
    fseek(stream, (1 - rank) * BLOCK, SEEK_SET);
    expect(fprintf(stream, "%s", part), PART, "length");
    fclose(stream);
    return;
  }
  expect(pwrite(fd, part, PART, (1 - rank) * BLOCK), PART, "length");
  close(fd);
}

static void shorten(void) {
  if (is("truncate") && truncate(path, 0) != 0) failed = 1;
  if (is("open")) close(open(path, O_WRONLY | O_TRUNC));
  if (is("fopen")) fclose(fopen(path, "w"));
  if (is("ftruncate")) {
    const int fd = open(path, O_WRONLY);
    if (ftruncate(fd, 0) != 0) failed = 1;
    close(fd);
  }
}

static void access_through_another_opening(void) {
  MPI_File other;
  MPI_Status status;
  int bytes;
  char part[PART];
  memset(part, '0' + rank, PART);
  MPI_Info info;
  MPI_Info_create(&info);
  if (is("second_off")) MPI_Info_set(info, "hocket_collective", "off");
  MPI_File_open(is("second_off") && !is_alone ? MPI_COMM_WORLD : MPI_COMM_SELF, (char*)path, MPI_MODE_RDWR, info,
                &other);
  MPI_Info_free(&info);
  if (is("iread")) {
    MPI_Request request;
    MPI_File_iread_at(other, 0, got, ALL, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    expect_all();
  } else if (is("second") || is("second_off")) {
    (is("second") ? MPI_File_read_at : MPI_File_read_at_all)(other, 0, got, ALL, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    expect(bytes, ALL, "length");
    expect_all();
  } else {
    MPI_File_write_at(other, (1 - rank) * BLOCK, part, PART, MPI_BYTE, &status);
  }
  MPI_File_close(&other);
}

// Writes or puts the blocks of this rank, or of both.
static MPI_File file = MPI_FILE_NULL;
static hocket_file* put = NULL;

static void write_blocks(const char* who) {
  static char own[ALL];
  const int bytes = is_alone ? ALL : BLOCK;
  memset(own, 'A' + rank, BLOCK), memset(own + BLOCK, 'B', BLOCK);
  const int64_t at = is_alone ? 0 : (int64_t)rank * BLOCK;
  if (is_alone && rank != 0) return;
  if (strncmp(who, "put", 3) == 0) {
    hocket_file_open(path, HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &put);
    expect(hocket_file_put(put, at, own, bytes), HOCKET_OK, "status of put");
    return;
  }
  MPI_File_open(is_alone ? MPI_COMM_SELF : MPI_COMM_WORLD, (char*)path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                &file);
  expect(MPI_File_write_at_all(file, at, own, bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS, "status of write");
}

static void access_otherwise(void) {
  if (is("pread") || is("readv") || is("fread") || is("signal") || is("fgets") || is("mmap") || is("aio") ||
      is("splice"))
    read_posix();
  if (is("fstat") || is("stat") || is("lstat") || is("statx") || is("lseek")) look_at_length();
  if (is("second") || is("second_off") || is("second_write") || is("iread")) access_through_another_opening();
  if (is("pwrite") || is("fprintf")) overwrite();
  if (is("cat") || is("stdin")) let_child_read();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  how = argv[1], path = argv[2];
  const char* who = argc > 3 ? argv[3] : "write";
  is_alone = strstr(who, "alone") != NULL;
  write_blocks(who);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_alone || rank == 1) access_otherwise();
  if (rank == is_alone && is("copy")) copy();
  if (rank == is_alone) shorten();
  MPI_Barrier(MPI_COMM_WORLD);
  if (put) {
    expect(hocket_file_flush(put), HOCKET_OK, "status of flush");
    expect(hocket_file_close(put), HOCKET_OK, "status of close");
  } else if (file != MPI_FILE_NULL && (MPI_File_sync(file) != MPI_SUCCESS || MPI_File_close(&file) != MPI_SUCCESS)) {
    failed = 1;
  }
  MPI_Finalize();
  return failed ? 4 : 0;
}
