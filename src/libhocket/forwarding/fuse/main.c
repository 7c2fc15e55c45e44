// hocket-forward-fuse [--cached] PAGE DIRECTORY [PROGRAM ARGUMENT0 …]: runs a program in a mount namespace of its own,
// where files below the directory are forwarded, for programs into which no library can be loaded. --cached is for
// tests: the mount is as on a kernel before Linux 6.6.
//
// One process serves the mount. It is outside of the namespace, and ends with the namespace's last process, because the
// kernel then ends the mount. The other process becomes the program. Without a program it only tries if that is
// allowed. If not, it says why, in one line on stderr, and exits with 1, or runs the program directly. PAGE is as in
// page_layout.h.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forwarding/channels.h"
#include "forwarding/forward.h"
#include "forwarding/fuse/operations.h"
#include "forwarding/page.h"

enum { failed = 1, misused = 2, not_started = 127 };

static const char* directory;
static const char* page_path;
static char** program;  // and its arguments; NULL: there is none
static bool is_mounted;

static _Noreturn void become_program(void) {
  execv(program[0], program + 1);
  fprintf(stderr, "hocket: %s: cannot be started: %s\n", program[0], strerror(errno));
  exit(not_started);
}

// Says what cannot be done. The program then runs directly.
static _Noreturn void give_up(const char* what) {
  const int error = errno;
  if (!program) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(failed);
  }
  fprintf(stderr, "hocket: %s is not forwarded: %s: %s\n", program[0], what, strerror(error));
  if (is_mounted) umount2(directory, MNT_DETACH);
  become_program();
}

// ---- the process that serves the mount -----------------------------------------------------------------------------

// libfuse 3.14 does not say to the kernel that it may map files that it does not cache, nor that the bits of setuid are
// not its business. So the first message and its answer are looked at.
static const unsigned direct_io_allow_mmap = 1U << 4;  // FUSE_DIRECT_IO_ALLOW_MMAP, in flags2
static bool must_cache, may_map;
static unsigned known_flags;  // to the kernel
static uint64_t first_message;

static ssize_t receive(int fd, void* message, size_t room, void* unused) {
  (void)unused;
  const ssize_t received = read(fd, message, room);
  const struct fuse_in_header* const header = message;
  if (received < (ssize_t)(sizeof *header + sizeof(struct fuse_init_in)) || header->opcode != FUSE_INIT)
    return received;
  const struct fuse_init_in* const asked = (const void*)(header + 1);
  first_message = header->unique;
  known_flags = asked->flags;
  may_map = !must_cache && (asked->flags & FUSE_INIT_EXT) && (asked->flags2 & direct_io_allow_mmap);
  return received;
}

static ssize_t answer(int fd, struct iovec* parts, int count, void* unused) {
  (void)unused;
  const struct fuse_out_header* const header = parts[0].iov_base;
  struct fuse_init_out* const said = count == 2 ? parts[1].iov_base : NULL;
  const bool is_first = header->unique == first_message && header->error == 0;
  if (is_first && said && parts[1].iov_len >= offsetof(struct fuse_init_out, unused)) {
    said->flags |= known_flags & FUSE_HANDLE_KILLPRIV;
    if (may_map) said->flags |= FUSE_INIT_EXT, said->flags2 |= direct_io_allow_mmap;
    is_uncached = may_map;
  }
  return writev(fd, parts, count);
}

static int receive_fd(int socket) {
  char byte;
  struct iovec part = {&byte, 1};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const struct cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  int fd = -1;
  if (rights && rights->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(rights), sizeof fd);
  return fd;
}

// Takes the limits that this process may have, because it opens what many processes open, and their limits are checked
// by the kernel. Returns how many descriptors without rights it may keep.
static int raise_limits(void) {
  struct rlimit limit = {0};
  const int both[] = {RLIMIT_FSIZE, RLIMIT_NOFILE};
  for (size_t i = 0; i < 2; ++i) {
    getrlimit(both[i], &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(both[i], &limit);
  }
  return limit.rlim_cur / 4 < 1 << 18 ? (int)(limit.rlim_cur / 4) : 1 << 18;
}

// Closes everything but one descriptor, and the standard files become /dev/null: who reads the program's output is not
// to wait for this process.
static void close_others(int kept) {
  const int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; ++i) dup2(null, i);
  if (kept > 3) close_range(3, (unsigned)kept - 1, 0);
  close_range((unsigned)kept + 1, ~0U, 0);
}

// The lock is there as long as this process is: `hocket forward` waits for its end before it reads the counts.
static bool begin_forwarding(void) {
  const int page = open(page_path, O_RDWR | O_CLOEXEC);
  if (page < 0 || flock(page, LOCK_SH) != 0 || setenv("HOCKET_FORWARD", page_path, 1) != 0) return false;
  if (!page_open() || !channels_prepare()) return false;
  channels_spread();
  return forward_is_on = true;
}

static int serve(int given_socket, bool is_cached) {
  static const struct fuse_custom_io messages = {.writev = answer, .read = receive};
  must_cache = is_cached;
  setsid();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  umask(0);
  const int socket = fcntl(given_socket, F_DUPFD_CLOEXEC, 3);  // the caller's standard files may be closed
  if (socket < 0) return failed;
  close_others(socket);
  const int most_kept = raise_limits();
  const int below = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (below < 0 || chdir("/") != 0 || !nodes_begin(below, most_kept) || !begin_forwarding()) return failed;
  char* words[] = {"hocket-forward-fuse", NULL};
  struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
  const struct fuse_lowlevel_ops operations = all_operations();
  struct fuse_session* const session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  const int device = receive_fd(socket);
  if (!session || device < 0 || fuse_session_custom_io(session, &messages, device) != 0 || !locks_begin())
    return failed;
  struct fuse_loop_config* const loop = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(loop, 32);
  fuse_loop_cfg_set_idle_threads(loop, 32);
  close(socket);
  return fuse_session_loop_mt(session, loop) == 0 ? 0 : failed;
}

// Starts that process as nobody's child, so that the program waits for no child that it does not know. Returns the
// socket that takes the device.
static int start_server(bool is_cached) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up("cannot make a socket");
  const pid_t parent = fork();
  if (parent < 0) give_up("cannot start a process");
  if (parent == 0) {
    close(ends[0]);
    const pid_t server = fork();
    _exit(server == 0 ? serve(ends[1], is_cached) : server < 0 ? failed : 0);
  }
  close(ends[1]);
  int status;
  if (waitpid(parent, &status, 0) != parent || status != 0) give_up("cannot start a process");
  return ends[0];
}

// ---- the process that becomes the program --------------------------------------------------------------------------

static void put(const char* path, const char* format, ...) {
  char text[64];
  va_list rest;
  va_start(rest, format);
  const int length = vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, (size_t)length) != length) give_up("cannot keep the user in a user namespace");
  close(fd);
}

// Moves this process into a mount namespace of its own. Who is not root needs a user namespace for that, in which it
// keeps its user and group.
static void enter_namespace(void) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) give_up("no mount namespace is allowed");
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", "%u %u 1\n", user, user);
    put("/proc/self/gid_map", "%u %u 1\n", group, group);
  }
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) give_up("no mount is allowed");
}

static void send_fd(int socket, int fd) {
  char byte = 0;
  struct iovec part = {&byte, 1};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {{0}};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  struct cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) give_up("the process of the mount has ended");
}

static void mount_over_directory(int socket) {
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) give_up("cannot open /dev/fuse");
  char options[128];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other,max_read=1048576", device,
           geteuid(), getegid());
  if (mount("hocket", directory, "fuse.hocket", MS_NOSUID | MS_NODEV, options) != 0)
    give_up("no FUSE mount is allowed");
  is_mounted = true;
  send_fd(socket, device);
  close(device);  // if the other process ends, calls fail, and do not wait
  // The present directory is the one below the mount, until it is entered anew.
  char* const here = getcwd(NULL, 0);
  struct stat about;
  if (stat(directory, &about) != 0) give_up("the process of the mount does not serve it");
  if (here && chdir(here) != 0) give_up("cannot enter the present directory");
  free(here);
}

int main(int count, char** words) {
  const bool is_cached = count > 1 && strcmp(words[1], "--cached") == 0;
  char** const rest = words + (is_cached ? 2 : 1);
  const int given = count - (int)(rest - words);
  if (given != 2 && given < 4) {
    fprintf(stderr, "usage: hocket-forward-fuse [--cached] PAGE DIRECTORY [PROGRAM ARGUMENT0 ...]\n");
    return misused;
  }
  program = given > 2 ? rest + 2 : NULL;
  page_path = rest[0];
  directory = rest[1];
  const int socket = start_server(is_cached);
  enter_namespace();
  mount_over_directory(socket);
  close(socket);
  if (!program) return 0;
  become_program();
}
