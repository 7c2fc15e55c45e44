#define _GNU_SOURCE
#include "forwarding/channels.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "forwarding/forward.h"
#include "forwarding/page.h"
#include "forwarding/raw.h"

enum {
  channels = 64,
  kept_bytes = 4 << 20,  // of a segment's memory, after a call
  silence_ms = 5000,     // without a beat
  retry_ms = 1000,       // until a server that did not accept is tried again
};

// A small call is answered within a few microseconds, and to sleep and be woken takes longer. So its answer is looked
// for a few times before. Where that is often in vain, because the server gets no processor meanwhile, only the first
// calls of each hundred or so do it. The server looks for the next call of a connection at the same calls.
enum { looked_for_bytes = 64 << 10, look_ns = 20000, trial_ns = 50000, in_vain_costs = 2, most_credit = 16 };

// A descriptor of ours, and what the program would have changed if it had closed it.
struct own_descriptor {
  int fd;  // 0: none
  dev_t device;
  ino_t inode;
};

struct channel {
  _Atomic int busy;
  struct own_descriptor socket;
  struct own_descriptor segment_file;
  char* memory;
  _Atomic uint64_t* beats;  // of the server
  pid_t server;
  bool is_relayed;
  int credit;      // for looking for an answer: it rises with each that came, and falls with each that did not
  unsigned calls;  // of the connection
  uid_t user;      // for whom it was made
  uint32_t epoch;  // of the servers for which the connection was made; 0: there is none
};

// The state of this process. The kernel gives a child of fork an empty page instead.
struct process_state {
  _Atomic int stage;  // 0: new, 1: being made, 2: ready
  pid_t process;
  _Atomic uint32_t number_after;       // the process's number, plus one; 0: it has none yet
  _Atomic int64_t no_server_until_ms;  // since no server accepts
  _Atomic uint32_t without_server;     // the epoch in which none did
  bool is_spread;                      // each connection is as if it were another process's
};
static struct process_state* state;
static struct channel all[channels];  // a child of fork finds its parent's here, and gives them up
static _Thread_local unsigned last_used;

// ---- descriptors and memory ----------------------------------------------------------------------------------------

static bool is_ours(const struct own_descriptor* one) {
  struct stat about;
  return one->fd > 0 && raw_fstat(one->fd, &about) == 0 && about.st_ino == one->inode && about.st_dev == one->device;
}

// Moves a new descriptor out of the way, to the highest numbers: programs expect the lowest free ones for themselves.
static struct own_descriptor take_over(int fd) {
  struct own_descriptor own = {0, 0, 0};
  if (fd < 0) return own;
  struct rlimit limit;
  const rlim_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? limit.rlim_cur : 65536;
  const rlim_t from = most > 512 ? most - 3 * channels : most - most / 4;
  const long high = RAW3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
  if (high >= 0) RAW1(SYS_close, fd);
  own.fd = high >= 0 ? (int)high : fd;
  struct stat about;
  if (raw_fstat(own.fd, &about) == 0) own.inode = about.st_ino, own.device = about.st_dev;
  return own;
}

static void close_own(struct own_descriptor* one) {
  if (is_ours(one)) RAW1(SYS_close, one->fd);
  *one = (struct own_descriptor){0, 0, 0};
}

static void disconnect(struct channel* channel) {
  close_own(&channel->socket);
  if (channel->beats) munmap((void*)channel->beats, 4096);
  channel->beats = NULL;
  channel->epoch = 0;
  channel->credit = 0;
  channel->calls = 0;
}

// Gives up the connection and its memory.
static void clear(struct channel* channel) {
  disconnect(channel);
  close_own(&channel->segment_file);
  if (channel->memory) munmap(channel->memory, forward_most_bytes);
  channel->memory = NULL;
}

// Makes the memory that is shared with servers. Its descriptor is kept, because each new server needs it. `why` says
// why there is none.
static bool have_segment(struct channel* channel, enum forward_count* why) {
  if (channel->memory && is_ours(&channel->segment_file)) return true;
  clear(channel);
  *why = forward_limited;
  if (forward_is_limited()) return false;  // the memory is a file: the program would get SIGXFSZ for its size
  *why = forward_no_slot;
  const int fd = (int)RAW2(SYS_memfd_create, "hocket-forward", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return false;
  const bool made = RAW2(SYS_ftruncate, fd, forward_most_bytes) == 0 &&
                    RAW3(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  void* memory = made ? mmap(NULL, forward_most_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (memory == MAP_FAILED) return RAW1(SYS_close, fd), false;
  channel->segment_file = take_over(fd);
  channel->memory = memory;
  return true;
}

// ---- messages ------------------------------------------------------------------------------------------------------

union control {
  char bytes[CMSG_SPACE(2 * sizeof(int))];
  struct cmsghdr align;
};

static long send_with(int socket, void* data, size_t bytes, const int* descriptors, size_t count) {
  struct iovec part = {data, bytes};
  union control control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
  }
  long sent;
  do sent = RAW3(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
  while (sent == -EINTR);
  return sent;
}

// Receives a message and at most one descriptor, which is -1 if there is none.
static long receive_with(int socket, void* data, size_t bytes, int* descriptor, int flags) {
  struct iovec part = {data, bytes};
  union control control;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  long received;
  do received = RAW3(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC | flags);
  while (received == -EINTR);
  *descriptor = -1;
  for (struct cmsghdr* rights = received >= 0 ? CMSG_FIRSTHDR(&message) : NULL; rights;
       rights = CMSG_NXTHDR(&message, rights))
    if (rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
      memcpy(descriptor, CMSG_DATA(rights), sizeof(int));
  return received;
}

// The kernel's time, not libc's: tools replace that one (faketime), and a server would seem to hang.
static int64_t now_ns(void) {
  struct timespec now = {0, 0};
  RAW2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ms(void) { return now_ns() / 1000000; }

// Waits until the socket is readable, for `ms` at most. Signals do not end the wait.
static bool is_readable_within(int socket, int64_t ms) {
  const int64_t deadline = now_ms() + ms;
  while (true) {
    int64_t left = deadline - now_ms();
    if (left < 0) left = 0;
    struct timespec timeout = {left / 1000, left % 1000 * 1000000};
    struct pollfd ready = {socket, POLLIN, 0};
    const long events = RAW(SYS_ppoll, &ready, 1, &timeout, NULL, 8, 0);
    if (events > 0) return true;
    if (events != -EINTR || left == 0) return false;
  }
}

// ---- connecting ----------------------------------------------------------------------------------------------------

// Returns the user for whom this thread acts; libc's function may be replaced (fakeroot).
static uid_t own_user(void) { return (uid_t)RAW1(SYS_geteuid, 0); }

// A server of another user would act with other rights: root's writes leave a file its setuid bit, for instance.
static bool is_trusted(int socket, pid_t* process) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  *process = peer.pid;
  return peer.uid == own_user();
}

static bool greet(struct channel* channel, int socket) {
  struct forward_hello hello = {.version = forward_version};
  memcpy(hello.application, page_application(), sizeof hello.application);
  if (send_with(socket, &hello, sizeof hello, &channel->segment_file.fd, 1) != (long)sizeof hello) return false;
  struct forward_welcome welcome;
  int beats = -1;
  if (!is_readable_within(socket, silence_ms)) return false;
  const long received = receive_with(socket, &welcome, sizeof welcome, &beats, 0);
  if (beats < 0) return false;
  void* memory = MAP_FAILED;
  if (received == (long)sizeof welcome && welcome.version == forward_version && welcome.error == 0)
    memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, beats, 0);
  RAW1(SYS_close, beats);
  if (memory == MAP_FAILED) return false;
  channel->beats = memory;
  channel->is_relayed = welcome.relays != 0;
  return true;
}

static bool connect_to(struct channel* channel, int fd, const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, sizeof address.sun_path);
  channel->socket = take_over(fd);
  const struct timeval most = {silence_ms / 1000, 0};  // while the server's queue of connections is full
  setsockopt(channel->socket.fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  long connected;
  do connected = RAW3(SYS_connect, channel->socket.fd, &address, sizeof address);
  while (connected == -EINTR);
  return connected == 0 && is_trusted(channel->socket.fd, &channel->server) && greet(channel, channel->socket.fd);
}

// Only processes that forward something get a number, so that they are spread over the servers evenly.
static uint32_t own_number(const struct channel* channel) {
  uint32_t number = atomic_load(&state->number_after);
  if (number == 0) {
    const uint32_t given = page_new_process() + 1;
    if (atomic_compare_exchange_strong(&state->number_after, &number, given)) number = given;
  }
  return number - 1 + (state->is_spread ? (uint32_t)(channel - all) : 0);
}

// Connects to the process's own server, or to the next one that answers. `why` says why it did not.
static bool connect_to_any(struct channel* channel, enum forward_count* why) {
  const uint32_t servers = page_servers();
  for (uint32_t choice = 0; choice < (servers > 0 ? servers : 1); ++choice) {
    char path[forward_path_bytes];
    uint32_t epoch;
    if (!page_server(own_number(channel), choice, path, &epoch, why)) return false;
    *why = forward_no_slot;
    const long fd = RAW3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    channel->user = own_user();
    if (connect_to(channel, (int)fd, path)) return channel->epoch = epoch, true;
    disconnect(channel);
  }
  *why = forward_no_server;
  return false;
}

// Servers that changed meanwhile are tried anew: those that did not answer say nothing about them.
static bool have_connection(struct channel* channel, enum forward_count* why) {
  if (channel->epoch != 0 && channel->epoch == page_epoch() && channel->user == own_user() && is_ours(&channel->socket))
    return true;
  disconnect(channel);
  uint32_t epoch;
  do {
    epoch = page_epoch();
    *why = forward_no_server;
    if (state->without_server == epoch && now_ms() < state->no_server_until_ms) return false;
    if (!have_segment(channel, why)) return false;
    if (connect_to_any(channel, why)) return true;
  } while (*why == forward_no_server && page_epoch() != epoch);
  if (*why != forward_no_server) return false;
  state->no_server_until_ms = now_ms() + retry_ms;
  state->without_server = epoch;
  return false;
}

// ---- taking and giving back ----------------------------------------------------------------------------------------

// Gives up the parent's connections, and makes the state this process's own.
static void begin_anew(void) {
  for (int i = 0; i < channels; ++i) {
    clear(&all[i]);
    atomic_store_explicit(&all[i].busy, 0, memory_order_release);
  }
  state->process = (pid_t)RAW1(SYS_getpid, 0);
  atomic_store_explicit(&state->stage, 2, memory_order_release);
}

bool channels_prepare(void) {
  void* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, 4096, MADV_WIPEONFORK) != 0) return false;
  state = memory;
  begin_anew();
  return true;
}

void channels_spread(void) { state->is_spread = true; }

void channels_forked(void) {
  int is_new = 0;
  if (atomic_compare_exchange_strong(&state->stage, &is_new, 1)) begin_anew();
}

// True if the state is this process's own. In a child of vfork it is the parent's. A child that was made without libc
// finds it empty, and makes it.
static bool is_ready(void) {
  if (atomic_load_explicit(&state->stage, memory_order_acquire) != 2) channels_forked();
  return atomic_load_explicit(&state->stage, memory_order_acquire) == 2 && state->process == (pid_t)RAW1(SYS_getpid, 0);
}

struct channel* channel_take(enum forward_count* why) {
  const int before = errno;
  *why = forward_unsafe;
  struct channel* taken = NULL;
  if (!is_ready()) return NULL;
  *why = forward_no_slot;
  for (unsigned i = 0; i < channels && !taken; ++i) {
    struct channel* one = &all[(last_used + i) % channels];
    if (atomic_exchange_explicit(&one->busy, 1, memory_order_acquire) != 0) continue;
    last_used = (last_used + i) % channels;
    taken = one;
  }
  if (taken && !have_connection(taken, why)) {
    if (*why == forward_no_slot) clear(taken);  // the program may need its descriptor
    atomic_store_explicit(&taken->busy, 0, memory_order_release);
    taken = NULL;
  }
  errno = before;
  return taken;
}

bool channels_release(void) {
  const int before = errno;
  bool any = false;
  for (int i = 0; is_ready() && i < channels; ++i) {
    if (atomic_exchange_explicit(&all[i].busy, 1, memory_order_acquire) != 0) continue;
    any = any || is_ours(&all[i].socket) || is_ours(&all[i].segment_file);
    clear(&all[i]);
    atomic_store_explicit(&all[i].busy, 0, memory_order_release);
  }
  errno = before;
  return any;
}

char* channel_memory(struct channel* channel) { return channel->memory; }
uint32_t channel_epoch(const struct channel* channel) { return channel->epoch; }
bool channel_is_relayed(const struct channel* channel) { return channel->is_relayed; }
bool channel_is_connected(const struct channel* channel) { return is_ours(&channel->socket); }

bool channel_connect(struct channel* channel, enum forward_count* why) {
  const int before = errno;
  *why = forward_no_slot;
  const bool connected = is_ours(&channel->segment_file) && have_connection(channel, why);
  errno = before;
  return connected;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

// Kills a server that shows no sign of life, and waits until it has ended. Its number is that of the process that
// accepted the connection, which is still open, but the process may be hidden in another namespace.
static bool end_server(const struct channel* channel) {
  if (channel->server <= 0 || !is_ours(&channel->socket)) return false;
  const long process = RAW2(SYS_pidfd_open, channel->server, 0);
  if (process < 0) return false;
  // As long as the connection is open, the number belongs to the server.
  bool ended = false;
  if (!is_readable_within(channel->socket.fd, 0)) {
    RAW4(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0);
    ended = is_readable_within((int)process, silence_ms);
  }
  RAW1(SYS_close, process);
  return ended;
}

// Waits for the answer. A server whose storage is slow still beats, and is waited for, as the kernel would be. Returns
// false if it shows no sign of life, or if the program has closed the connection meanwhile.
static bool await_answer(const struct channel* channel) {
  uint64_t beats = atomic_load_explicit(channel->beats, memory_order_relaxed);
  while (!is_readable_within(channel->socket.fd, silence_ms)) {
    const uint64_t now = atomic_load_explicit(channel->beats, memory_order_relaxed);
    if (now == beats || !is_ours(&channel->socket)) return false;
    beats = now;
  }
  return true;
}

// Looks for the answer for a moment. Returns what receiving returned, or -EAGAIN.
static long look_for_answer(struct channel* channel, int64_t bytes, struct forward_answer* answer) {
  const bool is_trial = channel->calls++ % forward_between_trials < forward_trials;
  const bool is_crowded = atomic_load_explicit(&channel->beats[1], memory_order_relaxed) != 0;
  if (is_crowded || bytes > looked_for_bytes || (channel->credit <= 0 && !is_trial)) return -EAGAIN;
  const int64_t until = now_ns() + (is_trial ? trial_ns : look_ns);
  long received;
  do {
    int none = -1;
    received = receive_with(channel->socket.fd, answer, sizeof *answer, &none, MSG_DONTWAIT);
  } while (received == -EAGAIN && now_ns() < until);
  channel->credit += received == -EAGAIN ? -in_vain_costs : 1;
  if (channel->credit > most_credit) channel->credit = most_credit;
  if (channel->credit < 0) channel->credit = 0;
  return received;
}

void channel_give_back(struct channel* channel, int64_t bytes) {
  if (bytes > kept_bytes && is_ours(&channel->segment_file))
    RAW4(SYS_fallocate, channel->segment_file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kept_bytes,
         forward_most_bytes - kept_bytes);
  atomic_store_explicit(&channel->busy, 0, memory_order_release);
}

static enum channel_outcome call(struct channel* channel, const struct forward_request* request, int file, int from,
                                 struct forward_answer* answer) {
  const int descriptors[2] = {file, from};
  struct forward_request copy = *request;
  const size_t count = file < 0 ? 0 : from < 0 ? 1 : 2;
  if (send_with(channel->socket.fd, &copy, sizeof copy, descriptors, count) != (long)sizeof copy)
    return channel_not_sent;
  long received = look_for_answer(channel, request->bytes, answer);
  if (received != -EAGAIN) return received == (long)sizeof *answer ? channel_answered : channel_ended;
  int none = -1;
  if (!await_answer(channel) && !end_server(channel) &&
      !(is_ours(&channel->socket) && is_readable_within(channel->socket.fd, 0)))
    return channel_unknown;
  received = receive_with(channel->socket.fd, answer, sizeof *answer, &none, 0);
  return received == (long)sizeof *answer ? channel_answered : channel_ended;
}

void channel_tell(const struct channel* channel, const struct forward_request* request) {
  const int before = errno;
  struct forward_request copy = *request;
  if (is_ours(&channel->socket)) send_with(channel->socket.fd, &copy, sizeof copy, NULL, 0);
  errno = before;
}

enum channel_outcome channel_call(struct channel* channel, const struct forward_request* request, int file, int from,
                                  struct forward_answer* answer) {
  const int before = errno;
  const enum channel_outcome outcome = call(channel, request, file, from, answer);
  if (outcome != channel_answered) disconnect(channel);
  if (outcome == channel_unknown) clear(channel);  // the server may still use the memory, so no other call may
  errno = before;
  return outcome;
}
