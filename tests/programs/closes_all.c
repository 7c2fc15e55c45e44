// closes_all PATH HOW: a program that closes descriptors which it has not opened, and uses their numbers itself.
//
// It writes a block to PATH, so that libhocket has all of its descriptors: the connection to hocketd ($HOCKET_SOCKET)
// and what has appeared since MPI_Init. MPI's own stay open, because MPI could not end without them.
//
//   loop     closes these up to number 1023, and opens sockets, which get the numbers
//   all      closes them all, and opens sockets
//   instead  makes each of them a socket of its own with dup2()
//
// Then it writes two blocks more, 0.3 s apart. At the end its sockets must be open and must have received nothing.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BLOCK = 2 << 20, NUMBERS = 8192, LOOP_END = 1024, PAIRS = 16 };

static int file;
static char block[BLOCK];
static char before[NUMBERS];
static int pairs[PAIRS][2];

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

static int leads_to_hocketd(int fd) {
  struct sockaddr_un name = {0};
  socklen_t size = sizeof name;
  const char* path = getenv("HOCKET_SOCKET");
  return path && getpeername(fd, (struct sockaddr*)&name, &size) == 0 && strcmp(name.sun_path, path) == 0;
}

static int is_libhockets(int fd) { return fd != file && is_open(fd) && (!before[fd] || leads_to_hocketd(fd)); }

static void write_block(int number) {
  require(pwrite(file, block, BLOCK, (off_t)number * BLOCK) == BLOCK && fsync(file) == 0, "a write");
}

static void take_over(const char* how) {
  static char theirs[NUMBERS];
  const int end = strcmp(how, "loop") == 0 ? LOOP_END : NUMBERS;
  for (int fd = 3; fd < end; ++fd) theirs[fd] = (char)is_libhockets(fd);
  const int replaces = strcmp(how, "instead") == 0;
  for (int fd = 3; fd < end; ++fd)
    if (theirs[fd] && !replaces) require(close(fd) == 0, "close");
  for (int i = 0; i < PAIRS; ++i) require(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0, "socketpair");
  int next = 0;
  for (int fd = 3; fd < end; ++fd)
    if (theirs[fd] && replaces) {
      require(next < PAIRS && dup2(pairs[next][0], fd) == fd, "dup2");
      close(pairs[next][0]);
      pairs[next++][0] = fd;
    }
}

static void look_at_sockets(void) {
  char byte;
  for (int i = 0; i < PAIRS; ++i)
    for (int end = 0; end < 2; ++end) {
      require(send(pairs[i][end], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1, "a socket of the program");
      require(recv(pairs[i][1 - end], &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x', "the byte that was sent");
      require(recv(pairs[i][1 - end], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "nothing else");
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  require(argc == 3, "closes_all PATH HOW");
  for (int fd = 0; fd < NUMBERS; ++fd) before[fd] = (char)is_open(fd);
  file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  require(file >= 0, argv[1]);
  write_block(0);
  take_over(argv[2]);
  write_block(1);
  usleep(300000);
  write_block(2);
  usleep(300000);
  look_at_sockets();
  MPI_Finalize();
  look_at_sockets();
  return 0;
}
