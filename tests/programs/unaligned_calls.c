// unaligned_calls PATH: direct I/O with offsets, lengths, memory and parts that are aligned more or less, for programs
// under `hocket forward`. What the kernel refuses differs between file systems and kernels, so it prints each result,
// and nothing if the file system has no direct I/O.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static void tell(const char* call, const char* what, int by, ssize_t result) {
  printf("%s, %s by %d: %zd, error %d\n", call, what, by, result, result < 0 ? errno : 0);
}

static void tell_all(int fd, const char* what, int by, char* memory, size_t bytes, off_t at) {
  lseek(fd, at, SEEK_SET);
  tell("write", what, by, write(fd, memory, bytes));
  lseek(fd, at, SEEK_SET);
  tell("read", what, by, read(fd, memory, bytes));
  tell("pwrite", what, by, pwrite(fd, memory, bytes, at));
  tell("pread", what, by, pread(fd, memory, bytes, at));
}

static void tell_vectors(int fd, const char* what, int by, const struct iovec parts[2]) {
  tell("pwritev", what, by, pwritev(fd, parts, 2, 0));
  tell("preadv", what, by, preadv(fd, parts, 2, 0));
}

int main(int count, char** words) {
  enum { room = 1 << 16, bytes = 8192 };
  if (count != 2) return 2;
  const int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
  if (fd < 0) return errno == EINVAL ? 0 : 3;
  char* const memory = aligned_alloc(4096, room);
  for (int i = 0; i < room; ++i) memory[i] = (char)(i / 1000);
  if (pwrite(fd, memory, room, 0) != room) return 3;
  for (int by = 1; by <= 4096; by *= 2) {
    const size_t first = (size_t)by;
    tell_all(fd, "offset", by, memory, bytes, by);
    tell_all(fd, "length", by, memory, bytes + first, 0);
    tell_all(fd, "memory", by, memory + by, bytes, 4096);
    tell_all(fd, "all", by, memory + by, bytes + first, by);
    tell_vectors(fd, "cut", by, (struct iovec[]){{memory, first}, {memory + by, bytes - first}});
    tell_vectors(fd, "apart", by, (struct iovec[]){{memory, first}, {memory + 8192, bytes - first}});
  }
  return 0;
}
