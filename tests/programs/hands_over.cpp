// hands_over CASE FILE: writes the lines "new 0000" to "new 0999" to a file that other nodes read afterwards, in one of
// the ways in which programs do that. After "ready" on stdout, what the case promises is to be seen; the program then
// waits for the end of stdin, if it is still there. `hands_over read WAY FILE` prints a file, and
// `hands_over count LOCK FILE` counts in it under locks.
#include <aio.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      printf("line %d: %s does not hold (errno: %s)\n", __LINE__, #condition, strerror(errno)); \
      fflush(stdout);                                                                           \
      _exit(3);                                                                                 \
    }                                                                                           \
  } while (0)

namespace {

constexpr int lines = 1000;
constexpr int line_bytes = 9;
std::string path;

std::string line(int number) {
  char text[16];
  snprintf(text, sizeof text, "new %04d\n", number);
  return text;
}

std::string all_lines(int first = 0, int last = lines) {
  std::string all;
  for (int i = first; i < last; ++i) all += line(i);
  return all;
}

int opened(int more = 0) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | more, 0600);
  CHECK(fd >= 0);
  return fd;
}

// Small writes that follow one another, which may be collected.
void write_lines(int fd, int first = 0, int last = lines) {
  for (int i = first; i < last; ++i) CHECK(write(fd, line(i).data(), line_bytes) == line_bytes);
}

void ready() { CHECK(write(1, "ready\n", 6) == 6); }

// Keeps what is open until stdin ends.
void stay() {
  ready();
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
}

void reap(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// ---- close ---------------------------------------------------------------------------------------------------------

void closes() {
  const int fd = opened();
  write_lines(fd);
  CHECK(close(fd) == 0);
  stay();
}

void closes_a_duplicate_last() {
  const int fd = opened();
  write_lines(fd, 0, 500);
  const int other = dup(fd);
  CHECK(close(fd) == 0);
  write_lines(other, 500);
  CHECK(close(other) == 0);
  stay();
}

void replaces_the_descriptor() {
  const int fd = opened();
  write_lines(fd);
  const int null = open("/dev/null", O_RDONLY);
  CHECK(dup2(null, fd) == fd);
  stay();
}

void closes_a_range() {
  write_lines(opened());
  CHECK(close_range(3, ~0U, 0) == 0);
  stay();
}

void closes_from() {
  write_lines(opened());
  closefrom(3);
  stay();
}

void closes_in_another_thread() {
  const int fd = opened();
  write_lines(fd, 0, 500);
  std::thread([fd] {
    write_lines(fd, 500);
    CHECK(close(fd) == 0);
  }).join();
  stay();
}

void c_stream() {
  FILE* const file = fopen(path.c_str(), "r+");
  for (int i = 0; i < lines; ++i) CHECK(fputs(line(i).c_str(), file) >= 0);
  CHECK(fclose(file) == 0);
  stay();
}

void small_buffer() {
  FILE* const file = fopen(path.c_str(), "r+");
  setvbuf(file, nullptr, _IOFBF, 100);
  for (int i = 0; i < lines; ++i) CHECK(fprintf(file, "new %04d\n", i) == line_bytes);
  CHECK(fclose(file) == 0);
  stay();
}

void reopened_stream() {
  FILE* file = fopen(path.c_str(), "r+");
  setvbuf(file, nullptr, _IOFBF, 100);
  for (int i = 0; i < lines; ++i) CHECK(fprintf(file, "new %04d\n", i) == line_bytes);
  file = freopen("/dev/null", "w", file);
  CHECK(file);
  stay();
}

void cpp_stream() {
  {
    std::fstream file(path, std::ios::in | std::ios::out);
    for (int i = 0; i < lines; ++i) file << line(i) << std::flush;
  }
  stay();
}

void scattered() {
  const int fd = opened();
  for (int i = lines - 1; i >= 0; --i)
    CHECK(pwrite(fd, line(i).data(), line_bytes, off_t{i} * line_bytes) == line_bytes);
  CHECK(close(fd) == 0);
  stay();
}

void vectors() {
  const int fd = opened();
  for (int i = 0; i < lines; i += 2) {
    std::string one = line(i), two = line(i + 1);
    const iovec parts[] = {{one.data(), line_bytes}, {two.data(), line_bytes}};
    CHECK(writev(fd, parts, 2) == 2 * line_bytes);
  }
  CHECK(close(fd) == 0);
  stay();
}

void asynchronous() {
  const int fd = opened();
  std::string all = all_lines();
  aiocb request{};
  request.aio_fildes = fd;
  request.aio_buf = all.data();
  request.aio_nbytes = all.size();
  CHECK(aio_write(&request) == 0);
  const aiocb* const wanted[] = {&request};
  CHECK(aio_suspend(wanted, 1, nullptr) == 0 && aio_return(&request) == static_cast<ssize_t>(all.size()));
  CHECK(close(fd) == 0);
  stay();
}

// ---- sync, while the file stays open -------------------------------------------------------------------------------

void syncs() {
  const int fd = opened();
  write_lines(fd);
  CHECK(fsync(fd) == 0);
  stay();
}

void syncs_data() {
  const int fd = opened();
  write_lines(fd);
  CHECK(fdatasync(fd) == 0);
  stay();
}

void syncs_by_another_descriptor() {
  write_lines(opened());
  CHECK(fsync(opened()) == 0);
  stay();
}

void syncs_each_write() {
  write_lines(opened(O_SYNC));
  stay();
}

void stream_syncs() {
  FILE* const file = fopen(path.c_str(), "r+");
  for (int i = 0; i < lines; ++i) CHECK(fputs(line(i).c_str(), file) >= 0);
  CHECK(fflush(file) == 0 && fsync(fileno(file)) == 0);
  stay();
}

// ---- the end of the process ----------------------------------------------------------------------------------------

void exits() {
  write_lines(opened());
  exit(0);
}

void exits_at_once() {
  write_lines(opened());
  _exit(0);
}

void becomes_another_program() {
  write_lines(opened(O_CLOEXEC));
  execl("/bin/echo", "echo", "ready", nullptr);
}

void is_killed_after_sync() {
  const int fd = opened();
  write_lines(fd);
  CHECK(fsync(fd) == 0);
  raise(SIGKILL);
}

// ---- several processes ---------------------------------------------------------------------------------------------

void child_writes() {
  const int fd = opened();
  write_lines(fd, 0, 300);
  const pid_t child = fork();
  if (child == 0) write_lines(fd, 300, 600), _exit(0);
  reap(child);
  write_lines(fd, 600);
  CHECK(close(fd) == 0);
  stay();
}

void child_closes_last() {
  const int fd = opened();
  write_lines(fd, 0, 300);
  const pid_t child = fork();
  if (child == 0) {
    write_lines(fd, 300);
    CHECK(close(fd) == 0);
    stay();
    _exit(0);
  }
  CHECK(close(fd) == 0);
  reap(child);
}

void child_of_vfork_is_another_program() {
  const int fd = opened();
  write_lines(fd, 0, 500);
  CHECK(lseek(fd, 500 * line_bytes, SEEK_SET) == 500 * line_bytes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, 1);
  char program[] = "seq", format[] = "--format=new %04g", first[] = "500", last[] = "999";
  char* const words[] = {program, format, first, last, nullptr};
  pid_t child;
  CHECK(posix_spawnp(&child, program, &actions, nullptr, words, environ) == 0);
  reap(child);
  CHECK(close(fd) == 0);
  stay();
}

void send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  CHECK(sendmsg(socket, &message, 0) == 1);
}

int receive_descriptor(int socket) {
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  CHECK(recvmsg(socket, &message, 0) == 1);
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

void passes_the_descriptor() {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = receive_descriptor(ends[1]);
    write_lines(fd, 500);
    CHECK(close(fd) == 0);
    _exit(0);
  }
  const int fd = opened();
  write_lines(fd, 0, 500);
  send_descriptor(ends[0], fd);
  CHECK(close(fd) == 0);
  reap(child);
  stay();
}

// ---- copies, sizes, names ------------------------------------------------------------------------------------------

std::string source() {
  const std::string name = path + ".source";
  std::ofstream(name) << all_lines();
  return name;
}

void copies_a_range() {
  const int from = open(source().c_str(), O_RDONLY), fd = opened();
  for (ssize_t left = lines * line_bytes; left > 0;) {
    const ssize_t some = copy_file_range(from, nullptr, fd, nullptr, static_cast<size_t>(left), 0);
    CHECK(some > 0);
    left -= some;
  }
  CHECK(close(fd) == 0);
  stay();
}

void sends_a_file() {
  const int from = open(source().c_str(), O_RDONLY), fd = opened();
  for (ssize_t left = lines * line_bytes; left > 0;) {
    const ssize_t some = sendfile(fd, from, nullptr, static_cast<size_t>(left));
    CHECK(some > 0);
    left -= some;
  }
  CHECK(close(fd) == 0);
  stay();
}

void stores_to_a_mapping() {
  const int fd = opened();
  void* const memory = mmap(nullptr, lines * line_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(memory != MAP_FAILED);
  memcpy(memory, all_lines().data(), lines * line_bytes);
  CHECK(msync(memory, lines * line_bytes, MS_SYNC) == 0 && munmap(memory, lines * line_bytes) == 0 && close(fd) == 0);
  stay();
}

void renames_the_closed_file() {
  const std::string target = path;
  path += ".part";
  const int fd = opened();
  write_lines(fd);
  CHECK(close(fd) == 0);
  CHECK(rename(path.c_str(), target.c_str()) == 0);
  stay();
}

void renames_the_synced_file() {
  const std::string target = path;
  path += ".part";
  const int fd = opened();
  write_lines(fd);
  CHECK(fsync(fd) == 0);
  CHECK(rename(path.c_str(), target.c_str()) == 0);
  stay();
}

void closes_the_renamed_file() {
  const std::string target = path;
  path += ".part";
  const int fd = opened();
  write_lines(fd);
  CHECK(rename(path.c_str(), target.c_str()) == 0);
  CHECK(close(fd) == 0);
  stay();
}

void truncates() {
  const int fd = opened();
  write_lines(fd);
  write_lines(fd);
  CHECK(ftruncate(fd, lines * line_bytes) == 0);
  CHECK(close(fd) == 0);
  stay();
}

void truncates_by_name() {
  const int fd = opened();
  write_lines(fd);
  write_lines(fd);
  CHECK(truncate(path.c_str(), lines * line_bytes) == 0);
  CHECK(close(fd) == 0);
  stay();
}

void begins_anew() {
  const int fd = opened(O_TRUNC);
  write_lines(fd);
  CHECK(close(fd) == 0);
  stay();
}

void appends() {
  const int fd = opened(O_APPEND | O_TRUNC);
  write_lines(fd);
  CHECK(close(fd) == 0);
  stay();
}

void allocates_and_fills() {
  const int fd = opened(O_TRUNC);
  CHECK(posix_fallocate(fd, 0, lines * line_bytes) == 0);
  write_lines(fd);
  CHECK(close(fd) == 0);
  stay();
}

// ---- errors --------------------------------------------------------------------------------------------------------

// Writes more than the file system takes, and prints which call said so.
void outgrows(bool syncs) {
  const int fd = opened();
  const std::string some(1000, 'x');
  std::string said;
  for (int i = 0; i < 500 && said.empty(); ++i)
    if (write(fd, some.data(), some.size()) < 0) said = "write";
  if (syncs && said.empty() && fsync(fd) != 0) said = "fsync";
  if (close(fd) != 0 && said.empty()) said = "close";
  CHECK(said.empty() || errno == EDQUOT);
  printf("%s\n", said.c_str());
}

void outgrows_and_closes() { outgrows(false); }

void outgrows_and_syncs() { outgrows(true); }

// ---- seen a moment later
// --------------------------------------------------------------------------------------------------

void is_killed() {
  write_lines(opened());
  raise(SIGKILL);
}

// A close that the library does not see, because it is made without libc.
void closes_unseen() {
  const int fd = opened();
  write_lines(fd);
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(3L), "D"(static_cast<long>(fd)) : "rcx", "r11", "memory");
  CHECK(result == 0);
  stay();
}

// ---- locks ---------------------------------------------------------------------------------------------------------

void lock(const std::string& kind, int fd, bool takes) {
  struct flock all {};
  all.l_type = takes ? F_WRLCK : F_UNLCK;
  CHECK((kind == "flock"    ? flock(fd, takes ? LOCK_EX : LOCK_UN)
         : kind == "lockf"  ? lockf(fd, takes ? F_LOCK : F_ULOCK, 0)
         : kind == "record" ? fcntl(fd, F_SETLKW, &all)
                            : fcntl(fd, F_OFD_SETLKW, &all)) == 0);
}

// Several such programs on several nodes count together, in a file that each has open all the time. The last lock of
// each ends with the process. A kernel does not tell a FUSE file system that a lock of a description ends so.
void count_by(const std::string& kind) {
  const int fd = open(path.c_str(), O_RDWR);
  CHECK(fd >= 0);
  for (int round = 0; round < 50; ++round) {
    char text[16] = "";
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    lock(kind, fd, true);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, text, line_bytes) == line_bytes);
    snprintf(text, sizeof text, "%08d\n", atoi(text) + 1);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    for (int i = 0; i < line_bytes; i += 3) CHECK(write(fd, text + i, 3) == 3);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    if (round < 49 || kind == "description") lock(kind, fd, false);
  }
}

// ---- reading -------------------------------------------------------------------------------------------------------

void print(const char* data, size_t bytes) { CHECK(fwrite(data, 1, bytes, stdout) == bytes); }

void read_by(const std::string& way) {
  const int fd = open(path.c_str(), O_RDONLY);
  struct stat about {};
  CHECK(fd >= 0 && fstat(fd, &about) == 0);
  const auto size = static_cast<size_t>(about.st_size);
  std::vector<char> memory(size + 1);
  if (way == "read") {
    ssize_t some;
    while ((some = read(fd, memory.data(), 1000)) > 0) print(memory.data(), static_cast<size_t>(some));
    CHECK(some == 0);
  } else if (way == "pread") {
    for (size_t at = 0; at < size; at += 100) {
      const ssize_t some = pread(fd, memory.data(), 100, static_cast<off_t>(at));
      CHECK(some > 0);
      print(memory.data(), static_cast<size_t>(some));
    }
  } else if (way == "mapping") {
    const auto* const mapped = static_cast<char*>(mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0));
    CHECK(mapped != MAP_FAILED);
    print(mapped, size);
  } else if (way == "stream") {
    FILE* const file = fdopen(fd, "r");
    print(memory.data(), fread(memory.data(), 1, size + 1, file));
  } else if (way == "ifstream") {
    std::ifstream file(path);
    file.read(memory.data(), static_cast<std::streamsize>(size) + 1);
    print(memory.data(), static_cast<size_t>(file.gcount()));
  } else if (way == "sendfile") {
    while (sendfile(1, fd, nullptr, size) > 0) {
    }
  } else if (way == "direct") {
    const int direct = open(path.c_str(), O_RDONLY | O_DIRECT);
    void* aligned;
    CHECK(direct >= 0 && posix_memalign(&aligned, 4096, 1 << 20) == 0);
    const ssize_t some = read(direct, aligned, 1 << 20);
    CHECK(some >= 0);
    print(static_cast<char*>(aligned), static_cast<size_t>(some));
  } else {
    CHECK(way == "one of those above");
  }
}

const std::map<std::string, void (*)()> cases = {
    {"closes", closes},
    {"closes-a-duplicate-last", closes_a_duplicate_last},
    {"replaces-the-descriptor", replaces_the_descriptor},
    {"closes-a-range", closes_a_range},
    {"closes-from", closes_from},
    {"closes-in-another-thread", closes_in_another_thread},
    {"c-stream", c_stream},
    {"small-buffer", small_buffer},
    {"reopened-stream", reopened_stream},
    {"cpp-stream", cpp_stream},
    {"scattered", scattered},
    {"vectors", vectors},
    {"asynchronous", asynchronous},
    {"syncs", syncs},
    {"syncs-data", syncs_data},
    {"syncs-by-another-descriptor", syncs_by_another_descriptor},
    {"syncs-each-write", syncs_each_write},
    {"stream-syncs", stream_syncs},
    {"exits", exits},
    {"exits-at-once", exits_at_once},
    {"becomes-another-program", becomes_another_program},
    {"is-killed-after-sync", is_killed_after_sync},
    {"child-writes", child_writes},
    {"child-closes-last", child_closes_last},
    {"child-of-vfork", child_of_vfork_is_another_program},
    {"passes-the-descriptor", passes_the_descriptor},
    {"copies-a-range", copies_a_range},
    {"sends-a-file", sends_a_file},
    {"stores-to-a-mapping", stores_to_a_mapping},
    {"renames-the-closed-file", renames_the_closed_file},
    {"renames-the-synced-file", renames_the_synced_file},
    {"closes-the-renamed-file", closes_the_renamed_file},
    {"truncates", truncates},
    {"truncates-by-name", truncates_by_name},
    {"begins-anew", begins_anew},
    {"appends", appends},
    {"allocates-and-fills", allocates_and_fills},
    {"outgrows-and-closes", outgrows_and_closes},
    {"outgrows-and-syncs", outgrows_and_syncs},
    {"is-killed", is_killed},
    {"closes-unseen", closes_unseen},
};

}  // namespace

int main(int count, char** words) {
  if (count == 1) {
    for (const auto& [name, function] : cases) printf("%s\n", name.c_str());
    return 0;
  }
  path = words[count - 1];
  if (count == 4 && strcmp(words[1], "read") == 0)
    read_by(words[2]);
  else if (count == 4 && strcmp(words[1], "count") == 0)
    count_by(words[2]);
  else
    cases.at(words[1])();
}
