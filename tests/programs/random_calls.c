// random_calls SEED CALLS DIRECTORY: makes random calls on files of the directory, and compares each result, and the
// bytes that a mapping shows, with a model in memory. It prints "ok CALLS" in the end, or what differed, with exit
// code 3.
//
// A call may fail with EIO if a server ends. Then it must have been made wholly, not at all, or for the first part of
// its data, as its offset says, and the model follows what the file says.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { room = 192 << 10, most_call = 24 << 10, most_large_call = 160 << 10 };

static uint64_t state;
static unsigned long call;
static const char* what = "";

static uint64_t draw(void) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static size_t below(size_t most) { return (size_t)(draw() % most); }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// The library copies the data of calls of up to 64 KiB in another way than those of larger ones.
static size_t draw_most(void) { return below(16) ? most_call : most_large_call; }

// A file, as the model has it. `at` is the offset of the descriptions `fd` (with its duplicate, if it has one) and
// `appending`.
struct model {
  char path[512];
  int fd, duplicate, appending;
  size_t size;
  off_t at, appending_at;
  char bytes[room];  // those beyond the size mean nothing
};
static struct model files[2], before;

static void remember(struct model* copy, const struct model* file) {
  memcpy(copy, file, offsetof(struct model, bytes) + file->size);
}

static void differ(const char* text, long got, long wanted) {
  printf("call %lu, %s: %s is %ld, not %ld\n", call, what, text, got, wanted);
  exit(3);
}

static void check(const char* text, long got, long wanted) {
  if (got != wanted) differ(text, got, wanted);
}

// Returns what of the file is not as the model says, or NULL; looks at it without a data call.
static const char* difference(const struct model* file) {
  struct stat about;
  if (fstat(file->fd, &about) != 0 || about.st_size != (off_t)file->size) return "size";
  if (lseek(file->fd, 0, SEEK_CUR) != file->at) return "offset";
  if (lseek(file->appending, 0, SEEK_CUR) != file->appending_at) return "offset of who appends";
  if (file->size == 0) return NULL;
  char* const seen = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
  const bool same = seen != MAP_FAILED && memcmp(seen, file->bytes, file->size) == 0;
  munmap(seen, file->size);
  return same ? NULL : "content";
}

static bool is_as(const struct model* file) { return difference(file) == NULL; }

static void put(struct model* file, size_t at, const char* data, size_t bytes) {
  if (at > file->size) memset(file->bytes + file->size, 0, at - file->size);
  memcpy(file->bytes + at, data, bytes);
  if (at + bytes > file->size) file->size = at + bytes;
}

// The kernel ends a write of a process that is killed after any page. So a call that appends, or that moves an offset
// which the library does not own alone, may have been made for the first part of its data. How far the offset has come
// says which part that is. Below a file system of FUSE the kernel leaves the offset, and the file's size says it.
static bool is_made_in_part(struct model* file) {
  static struct model part;
  struct stat about = {0};
  const bool appends = file->at == before.at;
  const off_t from = appends ? (off_t)before.size : before.at;
  const off_t has_come = lseek(appends ? file->appending : file->fd, 0, SEEK_CUR);
  const bool stays = appends && has_come == before.appending_at && fstat(file->fd, &about) == 0;
  const off_t to = stays ? about.st_size : has_come;
  if (to <= from || to >= (appends ? file->appending_at : file->at)) return false;
  remember(&part, &before);
  put(&part, (size_t)from, file->bytes + from, (size_t)(to - from));
  if (!stays) *(appends ? &part.appending_at : &part.at) = to;
  if (!is_as(&part)) return false;
  remember(file, &part);
  return true;
}

static void settle(struct model* file, long got, long wanted) {
  if (got == wanted) return;
  if (got != -1 || errno != EIO) differ("the result", got, wanted);
  const char* const made = difference(file);
  if (!made || is_made_in_part(file)) return;
  const size_t wanted_size = file->size;
  remember(file, &before);
  const char* const not_made = difference(file);
  if (!not_made) return;
  struct stat about = {0};
  fstat(file->fd, &about);
  printf("call %lu, %s: failed with EIO, and was made in part: its %s, its %s; its size is %ld, was %zu, not %zu\n",
         call, what, made, not_made, (long)about.st_size, before.size, wanted_size);
  exit(3);
}

static char data[most_large_call + sizeof(uint64_t)], got[most_large_call];

static size_t fill(size_t most) {
  const size_t bytes = most == 0 ? 0 : 1 + below(most);
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    const uint64_t some = draw();
    memcpy(data + i, &some, sizeof some);
  }
  return bytes;
}

// Fills in data that can be written at the offset.
static size_t fill_at(off_t at) { return fill(smaller((size_t)(room - at), draw_most())); }

static size_t readable(const struct model* file, size_t at, size_t bytes) {
  const size_t left = at < file->size ? file->size - at : 0;
  return left < bytes ? left : bytes;
}

static int cut(struct iovec* parts, char* memory, size_t bytes) {
  int count = 0;
  while (bytes > 0 && count < 4) {
    const size_t some = count == 3 ? bytes : 1 + below(bytes);
    parts[count++] = (struct iovec){memory, some};
    memory += some;
    bytes -= some;
  }
  return count;
}

static int one_of(struct model* file) { return file->duplicate < 0 || below(2) ? file->fd : file->duplicate; }

static void write_some(struct model* file, bool vector) {
  const size_t bytes = fill_at(file->at);
  if (bytes == 0) return;
  what = vector ? "writev" : "write";
  struct iovec parts[4];
  put(file, (size_t)file->at, data, bytes);
  file->at += (off_t)bytes;
  const long done = vector ? writev(one_of(file), parts, cut(parts, data, bytes)) : write(one_of(file), data, bytes);
  settle(file, done, (long)bytes);
}

// A program that writes little by little.
static void write_pieces(struct model* file) {
  what = "a small write";
  for (size_t i = below(30); i > 0; --i) {
    const size_t bytes = fill(smaller((size_t)(room - file->at), 300));
    if (bytes == 0) return;
    remember(&before, file);
    put(file, (size_t)file->at, data, bytes);
    file->at += (off_t)bytes;
    settle(file, write(file->fd, data, bytes), (long)bytes);
  }
}

static void read_some(struct model* file, bool vector) {
  const size_t bytes = 1 + below(draw_most()), wanted = readable(file, (size_t)file->at, bytes);
  what = vector ? "readv" : "read";
  struct iovec parts[4];
  const off_t at = file->at;
  file->at += (off_t)wanted;
  const long done = vector ? readv(one_of(file), parts, cut(parts, got, bytes)) : read(one_of(file), got, bytes);
  settle(file, done, (long)wanted);
  if (done > 0 && memcmp(got, file->bytes + at, (size_t)done) != 0) differ("what was read", 0, 1);
}

static void write_at(struct model* file, bool vector) {
  const size_t most = draw_most(), at = below(room - most), bytes = fill(most);
  what = vector ? "pwritev" : "pwrite";
  struct iovec parts[4];
  put(file, at, data, bytes);
  const long done =
      vector ? pwritev(file->fd, parts, cut(parts, data, bytes), (off_t)at) : pwrite(file->fd, data, bytes, (off_t)at);
  settle(file, done, (long)bytes);
}

static void read_at(struct model* file, bool vector) {
  const size_t at = below(room), bytes = 1 + below(draw_most()), wanted = readable(file, at, bytes);
  what = vector ? "preadv" : "pread";
  struct iovec parts[4];
  const long done =
      vector ? preadv(file->fd, parts, cut(parts, got, bytes), (off_t)at) : pread(file->fd, got, bytes, (off_t)at);
  settle(file, done, (long)wanted);
  if (done > 0 && memcmp(got, file->bytes + at, (size_t)done) != 0) differ("what was read", 0, 1);
}

static void append(struct model* file) {
  const size_t bytes = fill_at((off_t)file->size);
  if (bytes == 0) return;
  what = "write with O_APPEND";
  put(file, file->size, data, bytes);
  file->appending_at = (off_t)file->size;
  settle(file, write(file->appending, data, bytes), (long)bytes);
}

static void seek(struct model* file) {
  what = "lseek";
  file->at = (off_t)below(room);
  check("the offset", lseek(file->fd, file->at, SEEK_SET), file->at);
}

static void change_size(struct model* file) {
  what = "ftruncate";
  const size_t size = below(room);
  if (size > file->size) memset(file->bytes + file->size, 0, size - file->size);
  file->size = size;
  check("the result", ftruncate(file->fd, (off_t)size), 0);
}

static void by_child(struct model* file) {
  const size_t bytes = fill_at(file->at);
  if (bytes == 0) return;
  what = "write of a child";
  put(file, (size_t)file->at, data, bytes);
  file->at += (off_t)bytes;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(write(file->fd, data, bytes) == (ssize_t)bytes ? 0 : errno == EIO ? 1 : 2);
  int status = 0;
  waitpid(child, &status, 0);
  errno = EIO;
  settle(file, WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == 1 ? -1 : -2, 0);
}

// A stream makes several calls, of which some may have failed: each byte is the old or the new one.
static void follow(struct model* file) {
  struct stat about;
  if (fstat(file->fd, &about) != 0 || about.st_size < (off_t)before.size || about.st_size > (off_t)file->size)
    differ("the size", about.st_size, (long)file->size);
  file->size = (size_t)about.st_size;
  if (file->size == 0) return;
  char* const seen = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
  if (seen == MAP_FAILED) differ("mmap", -1, 0);
  for (size_t i = 0; i < file->size; ++i) {
    const char old = i < before.size ? before.bytes[i] : '\0';
    if (seen[i] != old && seen[i] != file->bytes[i]) differ("a byte", seen[i], file->bytes[i]);
    file->bytes[i] = seen[i];
  }
  munmap(seen, file->size);
}

static void by_stream(struct model* file) {
  const size_t at = below(room), bytes = fill_at((off_t)at);
  what = "fwrite";
  FILE* const stream = fopen(file->path, "r+");
  if (!stream || fseek(stream, (long)at, SEEK_SET) != 0) differ("fopen", -1, 0);
  put(file, at, data, bytes);
  const bool well = fwrite(data, 1, bytes, stream) == bytes;
  const int ended = fclose(stream);
  if (!well || ended != 0) follow(file);
}

static void copy(struct model* from, struct model* to, bool by_sendfile) {
  const size_t at = below(room), to_at = below(room), most = 1 + below(draw_most());
  size_t bytes = readable(from, at, most);
  if (bytes > room - to_at) return;
  off64_t from_offset = (off64_t)at, to_offset = (off64_t)to_at;
  remember(&before, to);
  long done;
  if (by_sendfile) {
    what = "sendfile";
    if (bytes > (size_t)(room - to->at)) return;
    if (bytes > 0) put(to, (size_t)to->at, from->bytes + at, bytes);
    to->at += (off_t)bytes;
    done = sendfile(to->fd, from->fd, &from_offset, most);
  } else {
    what = "copy_file_range";
    if (bytes > 0) put(to, to_at, from->bytes + at, bytes);
    done = copy_file_range(from->fd, &from_offset, to->fd, &to_offset, most, 0);
  }
  settle(to, done, (long)bytes);
  if (done > 0) check("the source's offset", from_offset, (long)(at + bytes));
}

static void open_again(struct model* file) {
  what = "open";
  close(file->fd);
  if (file->duplicate >= 0) close(file->duplicate);
  close(file->appending);
  if (below(4) == 0) {
    unlink(file->path);
    file->size = 0;
  } else if (below(3) == 0) {
    char other[600];
    snprintf(other, sizeof other, "%s.renamed", file->path);
    rename(file->path, other);
    rename(other, file->path);
  }
  file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  file->duplicate = below(3) ? -1 : dup(file->fd);
  file->appending = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file->fd < 0 || file->appending < 0) differ("a descriptor", -1, 0);
  file->at = file->appending_at = 0;
}

// Stores to a mapping of the file. The calls that follow see them, also while the file is mapped.
static void store(struct model* file) {
  if (file->size == 0) return;
  const size_t size = file->size, at = below(size), bytes = fill(smaller(size - at, draw_most()));
  char* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
  if (memory == MAP_FAILED) differ("mmap", -1, 0);
  memcpy(memory + at, data, bytes);
  put(file, at, data, bytes);
  remember(&before, file);
  switch (below(3)) {
    case 0: read_at(file, below(2)); break;
    case 1: write_at(file, below(2)); break;
    default: break;
  }
  what = "a store to a mapping";
  if (memcmp(memory, file->bytes, size) != 0) differ("the mapping", 0, 1);
  if (below(16) == 0) check("the result of msync", msync(memory, size, MS_SYNC), 0);
  munmap(memory, size);
}

// Reserves room, makes holes, and writes zeros, where the file system can do that.
static void allocate(struct model* file) {
  static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
                              FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
  what = "fallocate";
  const int mode = modes[below(sizeof modes / sizeof *modes)];
  const size_t at = below(room), bytes = 1 + below(room - at), end = at + bytes;
  if (fallocate(file->fd, mode, (off_t)at, (off_t)bytes) != 0) {
    check("the error", errno, EOPNOTSUPP);
    return;
  }
  if (!(mode & FALLOC_FL_KEEP_SIZE) && end > file->size) {
    memset(file->bytes + file->size, 0, end - file->size);
    file->size = end;
  }
  const bool empties = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
  if (empties && at < file->size) memset(file->bytes + at, 0, smaller(end, file->size) - at);
}

static void synchronize(struct model* file) {
  const bool whole = below(2);
  what = whole ? "fsync" : "fdatasync";
  check("the result", whole ? fsync(file->fd) : fdatasync(file->fd), 0);
}

// Calls that take long, or that few programs make.
static void rare_step(struct model* file) {
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3: return open_again(file);
    case 4:
    case 5:
    case 6: return store(file);
    case 7:
    case 8: return allocate(file);
    case 9: return below(8) ? seek(file) : synchronize(file);
    default: return seek(file);
  }
}

static void step(struct model* file) {
  remember(&before, file);
  switch (below(16)) {
    case 0:
    case 1: return write_some(file, below(2));
    case 2:
    case 3: return read_some(file, below(2));
    case 4:
    case 5: return write_at(file, below(2));
    case 6:
    case 7: return read_at(file, below(2));
    case 8:
    case 9: return append(file);
    case 10: return write_pieces(file);
    case 11: return below(4) ? seek(file) : change_size(file);
    case 12: return below(16) ? seek(file) : by_child(file);
    case 13: return by_stream(file);
    case 14: return copy(&files[0], &files[1], below(2));
    default: return rare_step(file);
  }
}

int main(int count, char** words) {
  if (count != 4) return 2;
  state = strtoull(words[1], NULL, 10);
  const unsigned long calls = strtoul(words[2], NULL, 10);
  for (int i = 0; i < 2; ++i) {
    snprintf(files[i].path, sizeof files[i].path, "%s/file-%s-%d", words[3], words[1], i);
    files[i].fd = files[i].duplicate = files[i].appending = -1;
    unlink(files[i].path);
    open_again(&files[i]);
  }
  for (call = 0; call < calls; ++call) {
    struct model* const file = &files[below(2)];
    step(file);
    if (below(16) == 0 && !is_as(file)) differ("the file", 0, 1);
  }
  if (!is_as(&files[0]) || !is_as(&files[1])) differ("a file in the end", 0, 1);
  printf("ok %lu\n", calls);
  return 0;
}
