// posix_io PATH ACTION…: POSIX I/O in all ranks, each in its own file PATH.RANK, by its arguments in order.
//
//   NAME=BYTES    calls that function once: write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2 fwrite
//                 fwrite_unlocked copy_file_range sendfile sendfile64 add to the file, or (copies) to PATH.RANK.copy;
//                 read pread pread64 readv preadv preadv64 preadv2 preadv64v2 __read_chk __pread_chk __pread64_chk
//                 fread fread_unlocked __fread_chk __fread_unlocked_chk read from the beginning of the file
//   fsync fdatasync
//   loop=N:NAME=BYTES   the same N times
//   errno         checks that failing writes set errno, and that successful ones, to memory too, leave it unchanged
//   reused=NAME   a byte to a pipe, whose descriptor that function ends; then 1000 to the copy, which gets its number
//   fork=BYTES    a child writes so many bytes to PATH.RANK.copy
//   threads=BYTES 4 threads write so many bytes 1000 times each
//   cancel=BYTES  a writing thread is cancelled and ends
//   pause=SECONDS mark=PATH await=PATH     as in script.c
//
// Prints "calls C read R written W" of rank 0: what the functions above moved. Each byte is 'A' + rank.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);

enum { MOST = 8 << 20 };

static int rank, file, copy;
static FILE* stream;
static char* data;
static off_t end;
static long calls, bytes_read, bytes_written;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, strerror(errno));
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static ssize_t write_by(const char* name, size_t n) {
  const struct iovec parts[2] = {{data, n / 2}, {data + n / 2, n - n / 2}};
  off_t from = 0;
  if (is(name, "write")) return lseek(file, end, SEEK_SET) == end ? write(file, data, n) : -1;
  if (is(name, "pwrite")) return pwrite(file, data, n, end);
  if (is(name, "pwrite64")) return pwrite64(file, data, n, end);
  if (is(name, "writev")) return lseek(file, end, SEEK_SET) == end ? writev(file, parts, 2) : -1;
  if (is(name, "pwritev")) return pwritev(file, parts, 2, end);
  if (is(name, "pwritev64")) return pwritev64(file, parts, 2, end);
  if (is(name, "pwritev2")) return pwritev2(file, parts, 2, end, 0);
  if (is(name, "pwritev64v2")) return pwritev64v2(file, parts, 2, end, 0);
  if (is(name, "fwrite")) return fseek(stream, end, SEEK_SET) ? -1 : (ssize_t)(8 * fwrite(data, 8, n / 8, stream));
  if (is(name, "fwrite_unlocked"))
    return fseek(stream, end, SEEK_SET) ? -1 : (ssize_t)fwrite_unlocked(data, 1, n, stream);
  if (is(name, "copy_file_range")) return copy_file_range(file, &from, copy, NULL, n, 0);
  if (is(name, "sendfile")) return sendfile(copy, file, &from, n);
  if (is(name, "sendfile64")) return sendfile64(copy, file, &from, n);
  return -2;
}

static ssize_t read_by(const char* name, size_t n) {
  const struct iovec parts[2] = {{data, n / 2}, {data + n / 2, n - n / 2}};
  lseek(file, 0, SEEK_SET);
  if (is(name, "read")) return read(file, data, n);
  if (is(name, "__read_chk")) return __read_chk(file, data, n, MOST);
  if (is(name, "pread")) return pread(file, data, n, 0);
  if (is(name, "pread64")) return pread64(file, data, n, 0);
  if (is(name, "__pread_chk")) return __pread_chk(file, data, n, 0, MOST);
  if (is(name, "__pread64_chk")) return __pread64_chk(file, data, n, 0, MOST);
  if (is(name, "readv")) return readv(file, parts, 2);
  if (is(name, "preadv")) return preadv(file, parts, 2, 0);
  if (is(name, "preadv64")) return preadv64(file, parts, 2, 0);
  if (is(name, "preadv2")) return preadv2(file, parts, 2, 0, 0);
  if (is(name, "preadv64v2")) return preadv64v2(file, parts, 2, 0, 0);
  rewind(stream);
  if (is(name, "fread")) return (ssize_t)(8 * fread(data, 8, n / 8, stream));
  if (is(name, "fread_unlocked")) return (ssize_t)fread_unlocked(data, 1, n, stream);
  if (is(name, "__fread_unlocked_chk")) return (ssize_t)__fread_unlocked_chk(data, MOST, 1, n, stream);
  if (is(name, "__fread_chk")) return (ssize_t)__fread_chk(data, MOST, 1, n, stream);
  return -2;
}

static int move_by(const char* name, size_t n) {
  const ssize_t wrote = write_by(name, n);
  if (wrote == -2) {
    const ssize_t got = read_by(name, n);
    if (got == -2) return 0;
    require(got == (ssize_t)n && data[0] == 'A' + rank && data[n - 1] == 'A' + rank, name);
    bytes_read += got;
  } else {
    require(wrote == (ssize_t)n, name);
    const int copies = is(name, "copy_file_range") || !strncmp(name, "sendfile", 8);
    if (!copies) end += wrote;
    bytes_written += wrote;
  }
  ++calls;
  return 1;
}

static void look_at_errno(void) {
  const int gone = dup(file);
  close(gone);
  errno = 0;
  require(write(gone, data, MOST) == -1 && errno == EBADF, "a write to a closed descriptor");
  errno = 77;
  require(pwrite(file, data, MOST, end) == MOST && errno == 77, "errno after a write");
  end += MOST;
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit here = {(rlim_t)end, RLIM_INFINITY};
  require(setrlimit(RLIMIT_FSIZE, &here) == 0, "setrlimit");
  require(pwrite(file, data, MOST, end) == -1 && errno == EFBIG, "a write beyond the limit of a file's size");
  char* memory = NULL;
  size_t size = 0;
  FILE* without = open_memstream(&memory, &size);
  errno = 77;
  require(fwrite(data, 1, MOST, without) == MOST && errno == 77, "errno after a write into memory");
  require(fclose(without) == 0 && errno == 77, "errno after fclose");
}

// libhocket has seen that this descriptor is a pipe's write end. `name` then makes its number that of another file.
static void reuse(const char* name) {
  int ends[2];
  FILE* pipe_stream = NULL;
  const int streams = strchr("fp", name[0]) != NULL;
  require(pipe(ends) == 0 && write(ends[1], data, 1) == 1, "pipe");
  if (is(name, "pclose")) {
    pipe_stream = popen("cat >/dev/null", "w");
    require(pipe_stream && write(fileno(pipe_stream), data, 1) == 1, "popen");
  } else if (streams) {
    pipe_stream = fdopen(ends[1], "w");
  }
  const int number = pipe_stream ? fileno(pipe_stream) : ends[1];
  int other = -1;
  if (is(name, "close")) close(number);
  if (is(name, "close_range")) require(close_range((unsigned)number, (unsigned)number, 0) == 0, name);
  if (is(name, "fclose")) fclose(pipe_stream);
  if (is(name, "pclose")) pclose(pipe_stream);
  if (is(name, "dup2")) other = dup2(copy, number);
  if (is(name, "dup3")) other = dup3(copy, number, 0);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
  if (is(name, "freopen")) require((pipe_stream = freopen(path, "r+", pipe_stream)) != NULL, name);
  if (is(name, "freopen64")) require((pipe_stream = freopen64(path, "r+", pipe_stream)) != NULL, name);
  if (name[0] == 'f' && name[1] == 'r') other = fileno(pipe_stream);
  if (other < 0) other = fcntl(copy, F_DUPFD, number);
  require(other == number && pwrite(other, data, 1000, 0) == 1000, name);
  if (name[0] == 'f' && name[1] == 'r')
    fclose(pipe_stream);
  else
    close(other);
  close(ends[0]);
  if (is(name, "pclose")) close(ends[1]);
}

static void* write_often(void* bytes) {
  for (int i = 0; i < 1000; ++i) require(pwrite(file, data, *(size_t*)bytes, 0) >= 0, "pwrite");
  return NULL;
}

static void write_in_threads(size_t bytes) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) require(pthread_create(&threads[i], NULL, write_often, &bytes) == 0, "pthread_create");
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

static void* write_all(void* bytes) {
  for (;;) require(pwrite(file, data, *(size_t*)bytes, 0) >= 0, "pwrite");
  return NULL;
}

static void cancel(size_t bytes) {
  pthread_t thread;
  void* result = NULL;
  require(pthread_create(&thread, NULL, write_all, &bytes) == 0, "pthread_create");
  usleep(50000);
  require(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0, "pthread_cancel");
  require(result == PTHREAD_CANCELED, "the thread was not cancelled");
}

static void write_in_child(size_t bytes) {
  const pid_t child = fork();
  if (child == 0) _exit(write(copy, data, bytes) == (ssize_t)bytes ? 0 : 1);
  int status = 1;
  require(waitpid(child, &status, 0) == child && status == 0, "the child");
}

static void act(const char* action) {
  char name[64] = "";
  const char* value = strchr(action, '=');
  snprintf(name, sizeof name, "%.*s", (int)(value ? value - action : 63), action);
  value = value ? value + 1 : "";
  const size_t n = (size_t)atol(value);
  if (is(name, "fsync")) return require(fsync(file) == 0, name);
  if (is(name, "fdatasync")) return require(fdatasync(file) == 0, name);
  if (is(name, "errno")) return look_at_errno();
  if (is(name, "cancel")) return cancel(n);
  if (is(name, "threads")) return write_in_threads(n);
  if (is(name, "reused")) return reuse(value);
  if (is(name, "fork")) return write_in_child(n);
  if (is(name, "pause")) return (void)usleep((useconds_t)(atof(value) * 1e6));
  if (is(name, "mark")) return (void)(rank == 0 && close(open(value, O_CREAT | O_WRONLY, 0644)));
  if (is(name, "await")) {
    while (access(value, F_OK) != 0) usleep(2000);
    return;
  }
  if (is(name, "loop")) {
    for (size_t i = 0; i < n; ++i) act(strchr(value, ':') + 1);
    return;
  }
  require(n > 0 && n <= MOST && move_by(name, n), action);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[1024], other[1032];
  snprintf(path, sizeof path, "%s.%d", argv[1], rank);
  snprintf(other, sizeof other, "%s.copy", path);
  data = malloc(MOST);
  memset(data, 'A' + rank, MOST);
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  copy = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
  stream = fdopen(dup(file), "r+");
  require(file >= 0 && copy >= 0 && stream != NULL, path);
  setvbuf(stream, NULL, _IONBF, 0);
  for (int i = 2; i < argc; ++i) act(argv[i]);
  if (rank == 0) printf("calls %ld read %ld written %ld\n", calls, bytes_read, bytes_written);
  fclose(stream);
  MPI_Finalize();
  return 0;
}
