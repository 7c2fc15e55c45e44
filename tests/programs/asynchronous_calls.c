// asynchronous_calls PATH: writes a file by aio_write and lio_listio of libc, several calls at a time, and reads it
// back by aio_read, for programs under `hocket forward`. It exits with 0 if all is as it should be, else it prints what
// is not.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { calls = 32, bytes = 5000 };  // of each kind: aio_write, lio_listio, and aio_read of both

#include "check.h"

static char written[2 * calls][bytes], got[2 * calls][bytes];
static struct aiocb controls[2 * calls];

static struct aiocb* control(int number, int fd, char* memory) {
  controls[number] = (struct aiocb){.aio_fildes = fd,
                                    .aio_buf = memory,
                                    .aio_nbytes = bytes,
                                    .aio_offset = (off_t)number * bytes,
                                    .aio_lio_opcode = LIO_WRITE};
  return &controls[number];
}

static void await(int from, int to) {
  for (int i = from; i < to; ++i) {
    const struct aiocb* const one[] = {&controls[i]};
    while (aio_error(&controls[i]) == EINPROGRESS) aio_suspend(one, 1, NULL);
    CHECK(aio_error(&controls[i]) == 0 && aio_return(&controls[i]) == bytes);
  }
}

int main(int count, char** words) {
  if (count != 2) return 2;
  const int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0);
  for (int i = 0; i < 2 * calls; ++i) memset(written[i], 'A' + i, bytes);
  for (int i = 0; i < calls; ++i) CHECK(aio_write(control(i, fd, written[i])) == 0);
  struct aiocb* list[calls];
  for (int i = 0; i < calls; ++i) list[i] = control(calls + i, fd, written[calls + i]);
  CHECK(lio_listio(LIO_WAIT, list, calls, NULL) == 0);
  await(0, 2 * calls);
  struct aiocb synced = {.aio_fildes = fd};
  CHECK(aio_fsync(O_SYNC, &synced) == 0);
  const struct aiocb* const one[] = {&synced};
  while (aio_error(&synced) == EINPROGRESS) aio_suspend(one, 1, NULL);
  CHECK(aio_return(&synced) == 0);
  // libc refuses what it does not know before it looks where there is nothing.
  struct aiocb* volatile none = NULL;
  CHECK(aio_fsync(~(O_SYNC | O_DSYNC), none) == -1 && errno == EINVAL);
  for (int i = 0; i < 2 * calls; ++i) CHECK(aio_read(control(i, fd, got[i])) == 0);
  await(0, 2 * calls);
  CHECK(memcmp(written, got, sizeof got) == 0);
  // An error is that of the call.
  const int reader = open(words[1], O_RDONLY);
  CHECK(aio_write(control(0, reader, written[0])) == 0);
  while (aio_error(&controls[0]) == EINPROGRESS) usleep(1000);
  CHECK(aio_error(&controls[0]) == EBADF && aio_return(&controls[0]) == -1);
  return 0;
}
