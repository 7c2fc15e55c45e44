// random_hand_over one|two ADDRESS SEED ROUNDS DIRECTORY [killed]: two programs, each on a host of its own, write files
// of a shared directory in turn, and compare them with a model in memory. In each round one of them opens a file, makes
// random calls, and closes or syncs it. Then the other one opens it, and every byte must be as the model says. Both
// draw the same rounds from SEED, so their models are equal. They take turns over a connection to ADDRESS, the host of
// "one".
//
// With "killed", servers end meanwhile, and a call may fail with EIO. The round then ends as if the program had
// repaired its file. It prints "ok ROUNDS, repaired N" in the end, or what differed, with exit code 3.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_files = 4, room = 256 << 10, most_call = 20000, most_small = 3000, port = 7100, failed_code = 9 };

static uint64_t state, own_state;  // of the draws that both programs make, and of those that this one makes
static unsigned long round_number, repaired;
static bool is_one, may_fail;
static const char* what = "";

static uint64_t next(uint64_t* from) {  // splitmix64
  uint64_t z = (*from += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static size_t below(size_t most) { return (size_t)(next(&state) % most); }
static size_t own_below(size_t most) { return (size_t)(next(&own_state) % most); }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static _Noreturn void differ(const char* text, long got, long wanted) {
  const int error = errno;
  printf("round %lu, %s, host %s: %s is %ld, not %ld (errno: %s)\n", round_number, what, is_one ? "one" : "two", text,
         got, wanted, strerror(error));
  fflush(stdout);
  _exit(3);
}
static void check(const char* text, long got, long wanted) {
  if (got != wanted) differ(text, got, wanted);
}

// ---- the model -----------------------------------------------------------------------------------------------------

struct model {
  char path[512];
  bool exists;
  size_t size;
  char bytes[room];  // those beyond the size mean nothing
};
static struct model files[most_files];

static void resize(struct model* file, size_t size) {
  if (size > file->size) memset(file->bytes + file->size, 0, size - file->size);
  file->size = size;
}

static void put(struct model* file, size_t at, const char* data, size_t bytes) {
  if (at + bytes > file->size) resize(file, at + bytes);
  memcpy(file->bytes + at, data, bytes);
}

// ---- one round of the writer ---------------------------------------------------------------------------------------

// The open file of the round. The other program makes the same calls on its model only.
static struct {
  struct model* file;
  int fd;
  size_t at;  // offset of the description
  bool appends, acts, failed;
} now;

static bool acts(void) { return now.acts && !now.failed; }

// Says if a call did what it was to do. If a server ended, the round fails.
static bool is_done(long got, long wanted) {
  if (got == wanted) return true;
  if (may_fail && ((got < 0 && errno == EIO) || (got >= 0 && got < wanted))) return !(now.failed = true);
  differ("the result", got, wanted);
}

static char data[most_call];

static size_t draw_data(size_t most, size_t at) {
  size_t bytes = 1 + below(most);
  bytes = at < room ? smaller(bytes, room - at) : 0;
  uint64_t one = next(&state);
  for (size_t i = 0; i < bytes; ++i) data[i] = (char)(one = one * 0x5851f42d4c957f2d + 0x14057b7ef767814f, one >> 56);
  return bytes;
}

static size_t place(void) { return now.appends ? now.file->size : now.at; }

static void wrote(size_t at, size_t bytes) {
  put(now.file, at, data, bytes);
  now.at = at + bytes;
}

static void write_some(size_t most) {
  const size_t at = place(), bytes = draw_data(most, at);
  if (bytes == 0) return;
  if (acts()) is_done(write(now.fd, data, bytes), (long)bytes);
  wrote(at, bytes);
}

static void write_small_ones(void) {
  const size_t most = below(4) == 0 ? most_small : 200;
  for (size_t left = 2 + below(14); left > 0; --left) write_some(most);
}

static void write_one(void) { write_some(most_call); }

static void write_parts(void) {
  const size_t at = place(), bytes = draw_data(most_call, at), first = below(bytes + 1);
  const struct iovec parts[] = {{data, first}, {data + first, bytes - first}};
  if (bytes == 0) return;
  if (acts()) is_done(writev(now.fd, parts, 2), (long)bytes);
  wrote(at, bytes);
}

static size_t draw_place(void) {
  const size_t beyond = below(8) == 0 ? below(5000) : 0;
  return below(now.file->size + 1) + beyond;
}

static void write_at_place(void) {
  const size_t at = draw_place(), bytes = draw_data(most_call, at);
  if (bytes == 0) return;
  if (acts()) is_done(pwrite(now.fd, data, bytes, (off_t)at), (long)bytes);
  put(now.file, at, data, bytes);
}

static void seek(void) {
  now.at = below(now.file->size + 1);
  if (acts()) check("the offset", lseek(now.fd, (off_t)now.at, SEEK_SET), (long)now.at);
  write_small_ones();
}

static void truncate_file(void) {
  const size_t size = smaller(draw_place(), room);
  if (acts()) is_done(ftruncate(now.fd, (off_t)size), 0);
  resize(now.file, size);
}

static void sync_file(void) {
  if (acts()) is_done(fsync(now.fd), 0);
}

static void read_back(void) {
  const size_t at = below(now.file->size + 1), bytes = smaller(1 + below(most_call), now.file->size - at);
  if (!acts() || !is_done(pread(now.fd, data, bytes, (off_t)at), (long)bytes)) return;
  check("what was read back", memcmp(data, now.file->bytes + at, bytes), 0);
}

static void read_on(void) {
  const size_t left = now.at < now.file->size ? now.file->size - now.at : 0, bytes = smaller(1 + below(3000), left);
  if (acts() && is_done(read(now.fd, data, bytes), (long)bytes))
    check("what was read", memcmp(data, now.file->bytes + now.at, bytes), 0);
  now.at += bytes;
}

static void copy(bool sends) {
  struct model* const from = &files[below(most_files)];
  const size_t at = draw_place(), from_at = below(from->size + 1);
  size_t bytes = smaller(1 + below(most_call), from->size - from_at);
  bytes = at < room ? smaller(bytes, room - at) : 0;
  if (from == now.file || !from->exists || bytes == 0) return;
  const int source = acts() ? open(from->path, O_RDONLY | O_CLOEXEC) : -1;
  off_t from_offset = (off_t)from_at, offset = (off_t)at;
  if (acts() && sends) check("the offset", lseek(now.fd, offset, SEEK_SET), offset);
  for (size_t done = 0; acts() && done < bytes;) {
    const ssize_t some = sends ? sendfile(now.fd, source, &from_offset, bytes - done)
                               : copy_file_range(source, &from_offset, now.fd, &offset, bytes - done, 0);
    if (some <= 0) is_done(some, (long)(bytes - done));
    if (some > 0) done += (size_t)some;
  }
  if (source >= 0) close(source);
  put(now.file, at, from->bytes + from_at, bytes);
  if (sends) now.at = at + bytes;
}
static void copy_range(void) { copy(false); }
static void send_range(void) { copy(true); }

static void use_stream(void) {
  const size_t at = below(now.file->size + 1), bytes = draw_data(most_call, at), buffer = 100 + below(2000);
  if (bytes == 0) return;
  FILE* const stream = acts() ? fopen(now.file->path, "r+e") : NULL;
  if (acts()) {
    if (!stream) differ("the stream", 0, 1);
    setvbuf(stream, NULL, _IOFBF, buffer);
    fseek(stream, (long)at, SEEK_SET);
    size_t done = 0;
    while (done < bytes && fwrite(data + done, 1, smaller(50, bytes - done), stream) > 0) done += 50;
    const bool is_good = done >= bytes && !ferror(stream);
    is_done(fclose(stream) == 0 && is_good ? 0 : -1, 0);
  }
  put(now.file, at, data, bytes);
}

static void append(void) {
  const size_t at = now.file->size, bytes = draw_data(most_small, at);
  if (bytes == 0) return;
  if (acts()) {
    const int fd = open(now.file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    is_done(write(fd, data, bytes), (long)bytes);
    is_done(close(fd), 0);
  }
  put(now.file, at, data, bytes);
}

// Waits for a child that ends like a program of its own.
static void reap(pid_t child, bool is_killed) {
  int status;
  check("the child", waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == failed_code && may_fail)
    now.failed = true;
  else
    check("the end of the child", status, is_killed ? SIGKILL : 0);
}

static void write_in_child(void) {
  const pid_t child = acts() ? fork() : 0;
  if (!acts()) {
    write_small_ones();
  } else if (child == 0) {
    write_small_ones();
    _exit(now.failed ? failed_code : 0);
  } else {
    reap(child, false);
    now.acts = false;  // for the model only
    write_small_ones();
    now.acts = true;
  }
}

typedef void operation(void);
static operation* const operations[] = {write_small_ones, write_small_ones, write_one,      write_parts, write_in_child,
                                        sync_file,        read_back,        write_at_place, seek,        truncate_file,
                                        read_on,          copy_range,       send_range,     use_stream,  append};
enum { all_operations = sizeof operations / sizeof *operations, of_appending = 7 };  // the first ones append as well

enum ending { closes, closes_too, duplicates, syncs, renames, removes, exits, exits_at_once, executes, is_killed };
enum { all_endings = is_killed + 1 };

static void make_calls(void) {
  const bool truncates = below(6) == 0;
  now.appends = below(6) == 0;
  now.at = 0;
  if (now.acts) {
    const int flags = O_RDWR | O_CREAT | (truncates ? O_TRUNC : 0) | (now.appends ? O_APPEND : 0);
    now.fd = open(now.file->path, flags | (below(2) ? O_CLOEXEC : 0), 0600);
    if (now.fd < 0) differ("the descriptor", now.fd, 3);
  } else {
    below(2);
  }
  now.file->exists = true;
  if (truncates) now.file->size = 0;
  for (size_t left = 1 + below(5); left > 0; --left) {
    const size_t kind = below(now.appends ? of_appending : all_operations);
    operations[kind]();
  }
}

static void end_in_child(enum ending ending) {
  if (now.failed) _exit(failed_code);
  if (ending == executes) execl("/bin/true", "true", NULL);
  if (ending == exits) exit(0);
  if (ending == is_killed && !is_done(fsync(now.fd), 0)) _exit(failed_code);
  if (ending == is_killed) raise(SIGKILL);
  _exit(0);
}

// The file is closed or synced now, and others may open it. A descriptor that stays open is returned, or -1.
static int end_round(enum ending ending, struct model* target) {
  if (ending == duplicates) {
    const int first = now.fd;
    if (now.acts) now.fd = dup(first), is_done(close(first), 0);
    write_small_ones();
  }
  if (ending == syncs && acts() && is_done(fsync(now.fd), 0)) return now.fd;
  if (now.fd >= 0) {
    const long result = close(now.fd);
    if (!now.failed) is_done(result, 0);
  }
  if (now.acts && ending == renames) check("rename", rename(now.file->path, target->path), 0);
  if (now.acts && ending == removes) check("unlink", unlink(now.file->path), 0);
  if (ending == renames && target != now.file) {
    target->exists = true;
    resize(target, 0);
    put(target, 0, now.file->bytes, now.file->size);
  }
  if (ending == removes || (ending == renames && target != now.file)) now.file->exists = false, now.file->size = 0;
  return -1;
}

static void repair(const struct model* file) {
  if (!file->exists) return;
  bool is_good = false;
  for (int attempt = 0; !is_good && attempt < 1000; ++attempt) {
    const int fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    is_good = fd >= 0 && pwrite(fd, file->bytes, file->size, 0) == (ssize_t)file->size && fsync(fd) == 0;
    if (fd >= 0) is_good = close(fd) == 0 && is_good;
  }
  check("the repair", is_good, true);
  ++repaired;
}

static int take_turn(bool is_writer, struct model** changed) {
  now.file = &files[below(most_files)];
  now.acts = is_writer;
  now.failed = false;
  now.fd = -1;
  const enum ending ending = (enum ending)(below(2) ? below(closes_too + 1) : below(all_endings));
  struct model* const target = &files[below(most_files)];
  changed[0] = now.file;
  changed[1] = target;
  int kept = -1;
  if (ending < exits) {
    make_calls();
    kept = end_round(ending, target);
  } else {
    fflush(stdout);
    const pid_t child = is_writer ? fork() : -1;
    if (child == 0) make_calls(), end_in_child(ending);
    if (child > 0) reap(child, ending == is_killed);
    now.acts = false;
    make_calls();
  }
  if (now.failed)
    for (int i = 0; i < 2; ++i) repair(changed[i]);
  return kept;
}

// ---- the reader ----------------------------------------------------------------------------------------------------

static char seen[room];

// Reads a file in one of several ways. Returns false if a server ended meanwhile.
static bool read_all(int fd, size_t size) {
  const size_t way = own_below(5), chunk = 2000 + own_below(most_call);
  what = (const char*[]){"read", "pread", "mapping", "stream", "backwards"}[way];
  if (way == 2 && size > 0) {
    char* const mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    check("the mapping", mapped != MAP_FAILED, true);
    memcpy(seen, mapped, size);
    munmap(mapped, size);
  } else if (way == 3) {
    FILE* const stream = fdopen(dup(fd), "r");
    const size_t got = fread(seen, 1, size, stream);
    const bool is_good = !ferror(stream);
    fclose(stream);
    if (!is_good && may_fail) return false;
    check("bytes of the stream", (long)got, (long)size);
  } else {
    for (size_t done = 0; done < size;) {
      const size_t some = smaller(chunk, size - done), at = way == 4 ? size - done - some : done;
      const ssize_t got = way == 0 ? read(fd, seen + done, some) : pread(fd, seen + at, some, (off_t)at);
      if (got < 0 && errno == EIO && may_fail) return false;
      check("bytes that were read", got, (long)some);
      done += some;
    }
  }
  return true;
}

static void verify(const struct model* file) {
  what = "open";
  for (bool is_read = false; !is_read;) {
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    check("whether the file is there", fd >= 0 || errno != ENOENT, file->exists);
    if (!file->exists) return;
    struct stat about;
    check("fstat", fstat(fd, &about), 0);
    check("the size", about.st_size, (long)file->size);
    is_read = read_all(fd, file->size);
    close(fd);
  }
  size_t at = 0;
  while (at < file->size && seen[at] == file->bytes[at]) ++at;
  if (at < file->size) {
    printf("file %s, size %zu, first byte that differs: %zu\n", file->path, file->size, at);
    differ("the byte", seen[at], file->bytes[at]);
  }
}

// ---- turns ---------------------------------------------------------------------------------------------------------

static int connected(const char* address) {
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &where.sin_addr);
  if (is_one) {
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check("bind", bind(listening, (struct sockaddr*)&where, sizeof where), 0);
    check("listen", listen(listening, 1), 0);
    return accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  }
  for (int attempt = 0; attempt < 500; ++attempt) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr*)&where, sizeof where) == 0) return fd;
    close(fd);
    usleep(20000);
  }
  differ("the connection", -1, 3);
}

static void tell(int peer) { check("a word to the other host", send(peer, "", 1, MSG_NOSIGNAL), 1); }
static void await(int peer) {
  char byte;
  check("a word of the other host", recv(peer, &byte, 1, 0), 1);
}

static void verify_some(struct model* const* changed) {
  verify(changed[0]);
  verify(changed[1]);
  verify(&files[own_below(most_files)]);
}

static void make_round(int peer, uint64_t seed) {
  struct model* changed[2];
  state = seed * 1000003 + round_number;
  const bool is_writer = (below(2) == 0) == is_one;
  what = "turn";
  if (is_writer) {
    const int kept = take_turn(true, changed);
    tell(peer);
    await(peer);
    what = "close";
    if (kept >= 0) check("close", close(kept), 0);
    verify_some(changed);
    tell(peer);
  } else {
    await(peer);
    take_turn(false, changed);
    verify_some(changed);
    tell(peer);
    await(peer);
  }
}

int main(int count, char** words) {
  if (count < 6) return fprintf(stderr, "usage: random_hand_over one|two ADDRESS SEED ROUNDS DIRECTORY [killed]\n"), 2;
  is_one = strcmp(words[1], "one") == 0;
  may_fail = count > 6;
  const uint64_t seed = strtoull(words[3], NULL, 0);
  const unsigned long rounds = strtoul(words[4], NULL, 0);
  own_state = seed * 2 + is_one;
  for (int i = 0; i < most_files; ++i) snprintf(files[i].path, sizeof files[i].path, "%s/file%d", words[5], i);
  const int peer = connected(words[2]), at_once = 1;
  setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  for (round_number = 1; round_number <= rounds; ++round_number) make_round(peer, seed);
  printf("ok %lu, repaired %lu\n", rounds, repaired);
}
