// posix_rules RULE ROUNDS DIRECTORY: several processes do what POSIX and Linux have rules for, such as appends, locks
// and renames, and check that the rule holds. "all" stands for every rule. It exits with 0 if all do, else it prints
// what does not hold.
//
// A call that moves a shared offset, or appends, may fail with EIO if a server ends. Then it must have been made wholly
// or not at all: the records have a size that no call is cut in.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      printf("%s, line %d: %s does not hold (errno: %s)\n", rule, __LINE__, #condition, strerror(errno)); \
      fflush(stdout);                                                                                     \
      _exit(3);                                                                                           \
    }                                                                                                     \
  } while (0)

enum { processes = 4, most_rounds = 1 << 16 };

static const char* rule = "";
static int rounds;

// Memory of all processes: what became of each record, and what they tell each other.
enum { not_made = 0, made = 1, unknown = 2 };
static struct {
  _Atomic uint8_t fate[processes][most_rounds];
  _Atomic int done;
  _Atomic int winner[most_rounds];
} * common;

static int opened(const char* name, int flags) {
  const int fd = open(name, flags | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  return fd;
}

static void remove_all(void) { CHECK(system("rm -rf ./rule-*") == 0); }

// Runs `body` in several processes, and waits for them.
static void in_processes(void (*body)(int)) {
  pid_t children[processes];
  memset(common, 0, sizeof *common);
  fflush(stdout);
  for (int i = 0; i < processes; ++i) {
    children[i] = fork();
    CHECK(children[i] >= 0);
    if (children[i] > 0) continue;
    body(i);
    exit(0);
  }
  for (int i = 0; i < processes; ++i) {
    int status;
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    if (status != 0) _exit(3);  // the child has said why
  }
}

// ---- records -------------------------------------------------------------------------------------------------------

struct record {
  uint32_t begin, process, number, sum;
  char rest[44];
  uint32_t end;
};
_Static_assert(sizeof(struct record) == 64, "records never straddle a page");
enum { begins = 0x52454321, ends = 0x21434552 };

static struct record record_of(int process, int number) {
  struct record one = {begins, (uint32_t)process, (uint32_t)number, (uint32_t)(process * 7919 + number), {0}, ends};
  memset(one.rest, 'a' + (process + number) % 26, sizeof one.rest);
  return one;
}

// Writes the record. If nobody knows whether it was written, that is noted.
static void put_record(int fd, int process, int number) {
  const struct record one = record_of(process, number);
  const ssize_t bytes = write(fd, &one, sizeof one);
  CHECK(bytes == sizeof one || (bytes == -1 && errno == EIO));
  common->fate[process][number] = bytes < 0 ? unknown : made;
}

// Checks that the file consists of whole records, none twice, each process's in order, and none lost unless `may_lack`.
static void check_records(const char* name, bool may_lack) {
  const int fd = opened(name, O_RDONLY);
  int next[processes] = {0};
  struct record one;
  ssize_t bytes;
  while ((bytes = read(fd, &one, sizeof one)) != 0) {
    CHECK(bytes == sizeof one && one.process < processes && one.number < (uint32_t)rounds);
    const struct record wanted = record_of((int)one.process, (int)one.number);
    CHECK(memcmp(&one, &wanted, sizeof one) == 0);
    int* const number = &next[one.process];
    CHECK((int)one.number >= *number);
    for (; *number < (int)one.number; ++*number) CHECK(may_lack || common->fate[one.process][*number] == unknown);
    ++*number;
  }
  for (int i = 0; i < processes && !may_lack; ++i)
    for (; next[i] < rounds; ++next[i]) CHECK(common->fate[i][next[i]] == unknown);
  close(fd);
}

static void appends(int process) {
  const int fd = opened("rule-append", O_WRONLY | O_CREAT | O_APPEND);
  for (int i = 0; i < rounds; ++i) put_record(fd, process, i);
  CHECK(close(fd) == 0);
}

// Appends of several processes: each is whole, and none is lost.
static void append(void) {
  in_processes(appends);
  check_records("rule-append", false);
}

static int inherited;
static void writes_with_shared_offset(int process) {
  for (int i = 0; i < rounds; ++i) put_record(inherited, process, i);
}

// Writes with one offset that processes share: each is whole, and none is lost.
static void share_offset(void) {
  inherited = opened("rule-offset", O_WRONLY | O_CREAT | O_TRUNC);
  in_processes(writes_with_shared_offset);
  close(inherited);
  check_records("rule-offset", false);
}

static void appends_or_truncates(int process) {
  const int fd = opened("rule-truncate", O_WRONLY | O_CREAT | O_APPEND);
  for (int i = 0; i < rounds; ++i) {
    if (process == 0)
      CHECK(i % 8 != 0 || (i % 16 ? ftruncate(fd, 0) : truncate("rule-truncate", 0)) == 0);
    else
      put_record(fd, process, i);
  }
  CHECK(close(fd) == 0);
}

// A truncation comes before or after an append: no record is cut, and there are no zeros between them.
static void truncate_beside_append(void) {
  in_processes(appends_or_truncates);
  check_records("rule-truncate", true);
}

// ---- locks ---------------------------------------------------------------------------------------------------------

static int by_fcntl(int fd, bool locks, int command) {
  struct flock lock = {.l_type = locks ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8};
  return fcntl(fd, command, &lock);
}
static int by_process(int fd, bool locks) { return by_fcntl(fd, locks, F_SETLKW); }
static int by_description(int fd, bool locks) { return by_fcntl(fd, locks, F_OFD_SETLKW); }
static int by_flock(int fd, bool locks) { return flock(fd, locks ? LOCK_EX : LOCK_UN); }
static int by_lockf(int fd, bool locks) {
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  return lockf(fd, locks ? F_LOCK : F_ULOCK, 8);
}
static int (*lock_one)(int fd, bool locks);

// Adds one to the counter of the file, with or without the description's offset.
static void add_one(int fd, bool at_offset) {
  uint64_t counter = 0;
  if (at_offset) {
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, &counter, 8) == 8);
    ++counter;
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    for (int i = 0; i < 8; ++i) CHECK(write(fd, (char*)&counter + i, 1) == 1);  // as a program writes little by little
  } else {
    CHECK(pread(fd, &counter, 8, 0) == 8);
    ++counter;
    CHECK(pwrite(fd, &counter, 8, 0) == 8);
  }
}

static void counts_under_lock(int process) {
  const int fd = opened("rule-lock", O_RDWR);
  for (int i = 0; i < rounds; ++i) {
    CHECK(lock_one(fd, true) == 0);
    add_one(fd, (process + i) % 4 == 0);
    CHECK(lock_one(fd, false) == 0);
  }
  CHECK(close(fd) == 0);
}

// Counters that several processes increment under a lock miss no increment.
static void locks(void) {
  static int (*const kinds[])(int, bool) = {by_process, by_description, by_flock, by_lockf};
  const int all = rounds;
  rounds = rounds > 4 ? rounds / 4 : 1;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    const uint64_t zero = 0;
    uint64_t counter = 0;
    const int fd = opened("rule-lock", O_RDWR | O_CREAT | O_TRUNC);
    CHECK(write(fd, &zero, 8) == 8 && close(fd) == 0);
    lock_one = kinds[i];
    in_processes(counts_under_lock);
    const int seen = opened("rule-lock", O_RDONLY);
    CHECK(read(seen, &counter, 8) == 8);
    CHECK(counter == (uint64_t)processes * (uint64_t)rounds);
    close(seen);
  }
  rounds = all;
}

// ---- names ---------------------------------------------------------------------------------------------------------

enum { version_bytes = 3000 };

// Reads the whole file, and checks that it is one version.
static void check_version(int fd) {
  static char seen[version_bytes + 100];
  ssize_t bytes = 0, some;
  while ((some = read(fd, seen + bytes, sizeof seen - (size_t)bytes)) > 0) bytes += some;
  CHECK(some == 0 && bytes == version_bytes);
  for (int i = 1; i < version_bytes; ++i) CHECK(seen[i] == seen[0]);
}

static void write_version(int fd, char letter) {
  char piece[100];
  memset(piece, letter, sizeof piece);
  for (int i = 0; i < version_bytes; i += 100) CHECK(write(fd, piece, 100) == 100);
}

static void replaces(int process) {
  char name[64];
  struct stat about;
  snprintf(name, sizeof name, "rule-new-%d", process);
  for (int i = 0; i < rounds / 4; ++i) {
    const int fd = opened(name, O_RDWR | O_CREAT | O_TRUNC);
    const char letter = (char)('a' + (process * 5 + i) % 26);
    write_version(fd, letter);
    CHECK(close(fd) == 0);
    const int old = opened("rule-common", O_RDWR);
    CHECK(rename(name, "rule-common") == 0);
    check_version(old);  // whatever has become of its name
    const int now = opened("rule-common", O_RDONLY);
    check_version(now);
    CHECK(fstat(old, &about) == 0 && about.st_nlink <= 1 && about.st_size == version_bytes);
    close(now);
    close(old);
  }
}

// A file that is renamed over another one replaces it at once: nobody sees a part, or none. Who has the old one open
// keeps it.
static void rename_over(void) {
  const int fd = opened("rule-common", O_RDWR | O_CREAT | O_TRUNC);
  write_version(fd, 'x');
  CHECK(close(fd) == 0);
  in_processes(replaces);
}

static void writes_on(int process) {
  char name[64], other[64];
  snprintf(name, sizeof name, "rule-open-%d", process);
  snprintf(other, sizeof other, "rule-over-%d", process);
  const int over = opened(other, O_RDWR | O_CREAT | O_TRUNC);
  const int fd = opened(name, O_RDWR | O_CREAT | O_TRUNC);
  for (int i = 0; i < rounds; ++i) {
    put_record(fd, process, i);
    if (i % 5 == 0) CHECK(rename(i % 2 ? other : name, i % 2 ? name : other) == 0);
    if (i % 5 == 0 && i == 0) CHECK(write(over, "replaced", 8) == 8);
  }
  char seen[16];
  struct stat about;
  CHECK(fstat(over, &about) == 0 && about.st_nlink == 0 && about.st_size == 8);
  CHECK(pread(over, seen, 16, 0) == 8 && memcmp(seen, "replaced", 8) == 0);
  struct record one;
  for (int i = 0; i < rounds; ++i) {
    const struct record wanted = record_of(process, i);
    CHECK(pread(fd, &one, sizeof one, (off_t)sizeof one * i) == sizeof one && memcmp(&one, &wanted, sizeof one) == 0);
  }
}

// An open file is renamed over others while it is written.
static void rename_open(void) { in_processes(writes_on); }

static void makes_links(int process) {
  char name[64], other[64];
  struct stat about;
  snprintf(name, sizeof name, "rule-link-%d", process);
  snprintf(other, sizeof other, "rule-same-%d", process);
  for (int i = 0; i < rounds / 4; ++i) {
    const int fd = opened(name, O_RDWR | O_CREAT | O_TRUNC);
    write_version(fd, 'a');
    CHECK(link(name, other) == 0);
    const int second = opened(other, O_RDWR);
    check_version(second);
    CHECK(pwrite(second, "b", 1, 10) == 1);
    char seen = 0;
    CHECK(pread(fd, &seen, 1, 10) == 1 && seen == 'b');
    CHECK(fstat(fd, &about) == 0 && about.st_nlink == 2 && about.st_size == version_bytes);
    CHECK(unlink(name) == 0 && stat(other, &about) == 0 && about.st_nlink == 1);
    CHECK(write(fd, "more", 4) == 4 && stat(other, &about) == 0 && about.st_size == version_bytes + 4);
    CHECK(unlink(other) == 0 && fstat(second, &about) == 0 && about.st_nlink == 0);
    CHECK(pread(second, &seen, 1, version_bytes) == 1 && seen == 'm');
    close(second);
    CHECK(close(fd) == 0);
  }
}

// Two names of one file, and a file without a name.
static void links(void) { in_processes(makes_links); }

static void makes_nameless(int process) {
  char name[64], link_name[64];
  for (int i = 0; i < rounds / 4; ++i) {
    const int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) return;  // the file system has none
    CHECK(fd >= 0);
    write_version(fd, 't');
    snprintf(name, sizeof name, "rule-tmpfile-%d-%d", process, i);
    snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", fd);
    CHECK(linkat(AT_FDCWD, link_name, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0);
    const int second = opened(name, O_RDONLY);
    check_version(second);
    close(second);
    CHECK(close(fd) == 0 && unlink(name) == 0);
  }
}

static void nameless(void) { in_processes(makes_nameless); }

static void creates(int process) {
  char name[64];
  for (int i = 0; i < rounds; ++i) {
    snprintf(name, sizeof name, "rule-excl-%d", i);
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 || errno == EEXIST);
    if (fd < 0) continue;
    int none = 0;
    CHECK(atomic_compare_exchange_strong(&common->winner[i], &none, process + 1));
    CHECK(write(fd, &process, sizeof process) == sizeof process && close(fd) == 0);
  }
}

// Of several processes that create a file, one succeeds.
static void create_once(void) {
  in_processes(creates);
  for (int i = 0; i < rounds; ++i) {
    char name[64];
    int process = -1;
    snprintf(name, sizeof name, "rule-excl-%d", i);
    const int fd = opened(name, O_RDONLY);
    CHECK(read(fd, &process, sizeof process) == sizeof process && process + 1 == common->winner[i]);
    close(fd);
    CHECK(unlink(name) == 0);
  }
}

static void moves_or_writes(int process) {
  if (process == 0) {
    for (int i = 0; common->done < processes - 1; ++i)
      CHECK(rename(i % 2 ? "rule-there" : "rule-here", i % 2 ? "rule-here" : "rule-there") == 0 && usleep(200) == 0);
    if (access("rule-here", F_OK) != 0) CHECK(rename("rule-there", "rule-here") == 0);
    return;
  }
  char name[64];
  int fd;
  do {
    snprintf(name, sizeof name, "rule-%s/%d", common->winner[0]++ % 2 ? "here" : "there", process);
    fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == ENOENT);
  CHECK(fd >= 0);
  for (int i = 0; i < rounds; ++i) put_record(fd, process, i);
  CHECK(close(fd) == 0);
  ++common->done;
}

// A directory is renamed while files in it are written.
static void rename_directory(void) {
  CHECK(mkdir("rule-here", 0700) == 0);
  in_processes(moves_or_writes);
  for (int process = 1; process < processes; ++process) {
    char name[64];
    struct record one;
    snprintf(name, sizeof name, "rule-here/%d", process);
    const int fd = opened(name, O_RDONLY);
    for (int i = 0; i < rounds; ++i) {
      const struct record wanted = record_of(process, i);
      CHECK(read(fd, &one, sizeof one) == sizeof one && memcmp(&one, &wanted, sizeof one) == 0);
    }
    close(fd);
  }
}

// ---- contents ------------------------------------------------------------------------------------------------------

static void writes_stripes(int process) {
  const int fd = opened("rule-stripes", O_RDWR | O_CREAT);
  for (int i = 0; i < rounds; ++i) {
    const struct record one = record_of(process, i);
    const off_t at = (off_t)sizeof one * (i * processes + process);
    struct record seen;
    if (i % 2) {
      CHECK(pwrite(fd, &one, sizeof one, at) == sizeof one);
    } else {
      CHECK(lseek(fd, at, SEEK_SET) == at && write(fd, &one, 32) == 32 && write(fd, (char*)&one + 32, 32) == 32);
    }
    CHECK(pread(fd, &seen, sizeof seen, at) == sizeof seen && memcmp(&one, &seen, sizeof one) == 0);
  }
  CHECK(close(fd) == 0);
}

// Processes that write different parts of one file, next to each other.
static void stripes(void) {
  in_processes(writes_stripes);
  const int fd = opened("rule-stripes", O_RDONLY);
  struct record one;
  for (int i = 0; i < rounds * processes; ++i) {
    const struct record wanted = record_of(i % processes, i / processes);
    CHECK(read(fd, &one, sizeof one) == sizeof one && memcmp(&one, &wanted, sizeof one) == 0);
  }
  CHECK(read(fd, &one, 1) == 0);
  close(fd);
}

static void makes_holes(int process) {
  enum { far = 1 << 20 };
  static char zeros[far], seen[far];
  char name[64];
  snprintf(name, sizeof name, "rule-hole-%d", process);
  for (int i = 0; i < rounds / 16 + 1; ++i) {
    const int fd = opened(name, O_RDWR | O_CREAT | O_TRUNC);
    CHECK(lseek(fd, far, SEEK_SET) == far);
    write_version(fd, 'h');
    CHECK(lseek(fd, 0, SEEK_END) == far + version_bytes);
    const off_t data = lseek(fd, 0, SEEK_DATA);
    CHECK(data <= far && data >= 0 && lseek(fd, far, SEEK_HOLE) == far + version_bytes);
    CHECK(lseek(fd, far + version_bytes, SEEK_DATA) == -1 && errno == ENXIO);
    CHECK(pread(fd, seen, far, 0) == far && memcmp(seen, zeros, far) == 0);
    CHECK(lseek(fd, far / 2, SEEK_SET) == far / 2);
    write_version(fd, 'm');
    CHECK(pread(fd, seen, 1, far / 2 - 1) == 1 && seen[0] == 0);
    CHECK(pread(fd, seen, 1, far / 2 + version_bytes) == 1 && seen[0] == 0);
    CHECK(ftruncate(fd, far / 2 + 10) == 0 && ftruncate(fd, far) == 0);
    CHECK(pread(fd, seen, 20, far / 2) == 20 && seen[9] == 'm' && seen[10] == 0);
    CHECK(lseek(fd, 0, SEEK_END) == far && close(fd) == 0);
  }
}

// Parts that nobody has written are zeros, and SEEK_DATA and SEEK_HOLE know them.
static void holes(void) { in_processes(makes_holes); }

// --------------------------------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  void (*run)(void);
} rules[] = {
    {"append", append},
    {"share-offset", share_offset},
    {"truncate", truncate_beside_append},
    {"locks", locks},
    {"rename-over", rename_over},
    {"rename-open", rename_open},
    {"links", links},
    {"nameless", nameless},
    {"create-once", create_once},
    {"rename-directory", rename_directory},
    {"stripes", stripes},
    {"holes", holes},
};

int main(int count, char** words) {
  if (count != 4 || chdir(words[3]) != 0) return 2;
  rounds = atoi(words[2]);
  if (rounds < 1 || rounds > most_rounds) return 2;
  common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  bool any = false;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
    if (strcmp(words[1], "all") != 0 && strcmp(words[1], rules[i].name) != 0) continue;
    rule = rules[i].name;
    any = true;
    remove_all();
    rules[i].run();
    remove_all();
  }
  return any ? 0 : 2;
}
