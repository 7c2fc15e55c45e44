// each_data_call NAME FROM TO: makes the call NAME once, for programs under `hocket forward`. FROM has 10 bytes, the
// last of which ends a line. Calls that read read them, calls that copy copy them to TO, and calls that write write
// "abcdefghi\n" to TO. It exits with 0 if the call moved these bytes, else it prints what is wrong.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { bytes = 10 };

// Functions of libc without a header: the forms of _FORTIFY_SOURCE, and the names that other libraries use.
ssize_t __read_chk(int fd, void* data, size_t count, size_t room);
ssize_t __pread_chk(int fd, void* data, size_t count, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void* data, size_t count, off64_t at, size_t room);
size_t __fread_chk(void* data, size_t room, size_t size, size_t count, FILE* stream);
char* __fgets_chk(char* data, size_t room, int count, FILE* stream);
int __fprintf_chk(FILE* stream, int flag, const char* format, ...);
ssize_t __read(int fd, void* data, size_t count);
ssize_t __write(int fd, const void* data, size_t count);
ssize_t __pread64(int fd, void* data, size_t count, off64_t at);
ssize_t __pwrite64(int fd, const void* data, size_t count, off64_t at);

static int from, to;  // descriptors
static FILE *in, *out;
static char text[] = "abcdefghi\n";
static char got[bytes + 1];
static off64_t from_at, at;

#define GOT (&(struct iovec){got, bytes}), 1
#define TEXT (&(struct iovec){text, bytes}), 1
#define LINE(moved) ((moved) ? (long)strlen(got) : -1)

static long getline_once(void) {
  char* line = NULL;
  size_t room = 0;
  const ssize_t count = getline(&line, &room, in);
  if (count == bytes) memcpy(got, line, bytes);
  free(line);
  return count;
}

// Reads or writes a character at a time, which are one call of the stream.
static long getc_all(void) {
  for (int i = 0; i < bytes; ++i) got[i] = (char)getc(in);
  return bytes;
}
static long putc_all(void) {
  for (int i = 0; i < bytes; ++i) putc(text[i], out);
  return fflush(out) == 0 ? bytes : -1;
}
static long fputs_exit(void) {
  fputs(text, out);
  exit(0);  // what the stream holds is written now
}

#define CALLS(X)                                                                                         \
  X(read, true, read(from, got, bytes))                                                                  \
  X(write, false, write(to, text, bytes))                                                                \
  X(pread, true, pread(from, got, bytes, 0))                                                             \
  X(pwrite, false, pwrite(to, text, bytes, 0))                                                           \
  X(pread64, true, pread64(from, got, bytes, 0))                                                         \
  X(pwrite64, false, pwrite64(to, text, bytes, 0))                                                       \
  X(readv, true, readv(from, GOT))                                                                       \
  X(writev, false, writev(to, TEXT))                                                                     \
  X(preadv, true, preadv(from, GOT, 0))                                                                  \
  X(pwritev, false, pwritev(to, TEXT, 0))                                                                \
  X(preadv64, true, preadv64(from, GOT, 0))                                                              \
  X(pwritev64, false, pwritev64(to, TEXT, 0))                                                            \
  X(preadv2, true, preadv2(from, GOT, 0, 0))                                                             \
  X(pwritev2, false, pwritev2(to, TEXT, 0, 0))                                                           \
  X(preadv64v2, true, preadv64v2(from, GOT, 0, 0))                                                       \
  X(pwritev64v2, false, pwritev64v2(to, TEXT, 0, 0))                                                     \
  X(preadv2_of_the_offset, true, preadv2(from, GOT, -1, 0))                                              \
  X(pwritev2_of_the_offset, false, pwritev2(to, TEXT, -1, 0))                                            \
  X(__read_chk, true, __read_chk(from, got, bytes, sizeof got))                                          \
  X(__pread_chk, true, __pread_chk(from, got, bytes, 0, sizeof got))                                     \
  X(__pread64_chk, true, __pread64_chk(from, got, bytes, 0, sizeof got))                                 \
  X(__read, true, __read(from, got, bytes))                                                              \
  X(__write, false, __write(to, text, bytes))                                                            \
  X(__pread64, true, __pread64(from, got, bytes, 0))                                                     \
  X(__pwrite64, false, __pwrite64(to, text, bytes, 0))                                                   \
  X(dprintf, false, dprintf(to, "%s", text))                                                             \
  X(fread, true, (long)fread(got, 1, bytes, in))                                                         \
  X(fread_unlocked, true, (long)fread_unlocked(got, 1, bytes, in))                                       \
  X(__fread_chk, true, (long)__fread_chk(got, sizeof got, 1, bytes, in))                                 \
  X(fgets, true, LINE(fgets(got, sizeof got, in)))                                                       \
  X(__fgets_chk, true, LINE(__fgets_chk(got, sizeof got, sizeof got, in)))                               \
  X(getline, true, getline_once())                                                                       \
  X(getc, true, getc_all())                                                                              \
  X(fwrite, false, fwrite(text, 1, bytes, out) + fclose(out))                                            \
  X(fputs, false, fputs(text, out) < 0 || fclose(out) != 0 ? -1 : bytes)                                 \
  X(fputs_exit, false, fputs_exit())                                                                     \
  X(putc, false, putc_all())                                                                             \
  X(fprintf, false, fprintf(out, "%s", text) + fflush(out))                                              \
  X(__fprintf_chk, false, __fprintf_chk(out, 1, "%s", text) + fflush(out))                               \
  X(copy_file_range, false, copy_file_range(from, &from_at, to, &at, bytes, 0))                          \
  X(sendfile, false, sendfile(to, from, (off_t*)&from_at, bytes))                                        \
  X(sendfile64, false, sendfile64(to, from, &from_at, bytes))                                            \
  X(SYS_read, true, syscall(SYS_read, from, got, bytes))                                                 \
  X(SYS_write, false, syscall(SYS_write, to, text, bytes))                                               \
  X(SYS_pread64, true, syscall(SYS_pread64, from, got, bytes, 0))                                        \
  X(SYS_pwrite64, false, syscall(SYS_pwrite64, to, text, bytes, 0))                                      \
  X(SYS_readv, true, syscall(SYS_readv, from, GOT))                                                      \
  X(SYS_writev, false, syscall(SYS_writev, to, TEXT))                                                    \
  X(SYS_preadv, true, syscall(SYS_preadv, from, GOT, 0, 0))                                              \
  X(SYS_pwritev, false, syscall(SYS_pwritev, to, TEXT, 0, 0))                                            \
  X(SYS_preadv2, true, syscall(SYS_preadv2, from, GOT, 0, 0, 0))                                         \
  X(SYS_pwritev2, false, syscall(SYS_pwritev2, to, TEXT, 0, 0, 0))                                       \
  X(SYS_copy_file_range, false, syscall(SYS_copy_file_range, from, &from_at, to, &at, (size_t)bytes, 0)) \
  X(SYS_sendfile, false, syscall(SYS_sendfile, to, from, &from_at, (size_t)bytes))

#define FUNCTION(name, reads, call) \
  static long make_##name(void) { return (long)(call); }
CALLS(FUNCTION)

#define ROW(name, reads, call) {#name, reads, make_##name},
static const struct {
  const char* name;
  bool reads;
  long (*make)(void);
} calls[] = {CALLS(ROW)};

int main(int count, char** words) {
  if (count == 1) {  // the names of all calls
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) puts(calls[i].name);
    return 0;
  }
  if (count != 4) return 2;
  from = open(words[2], O_RDONLY), to = open(words[3], O_WRONLY);
  in = fopen(words[2], "r"), out = fopen(words[3], "r+");
  if (from < 0 || to < 0 || !in || !out) return perror("each_data_call: cannot open the files"), 2;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (strcmp(words[1], calls[i].name) != 0) continue;
    const long moved = calls[i].make();
    const bool right = moved == bytes && (!calls[i].reads || memcmp(got, "012345678\n", bytes) == 0);
    if (!right) printf("%s returned %ld (errno: %s), and read '%.10s'\n", words[1], moved, strerror(errno), got);
    return right ? 0 : 3;
  }
  printf("unknown call %s\n", words[1]);
  return 2;
}
