// The sockets of an agreement: the thread in srun, and the question of a node.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "spank/agreement.h"

enum { strangers = 64, unlimited_ms = -1 };  // connections that are no node of the step

// A connection of a node, whose line may come in parts.
struct caller {
  int fd;
  bool reported;
  size_t bytes;
  char line[agreement_line_bytes];
};

// What the thread owns.
struct listener {
  int fd;
  int limit_s;
  void (*say)(const char*);
  char token[agreement_token_bytes];
  struct agreement agreement;
  struct caller* callers;
  struct pollfd* watched;  // the listening socket, then those of the callers
  unsigned count, most;
};

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void drop(struct listener* own, unsigned at) {
  close(own->callers[at].fd);
  own->callers[at] = own->callers[--own->count];
}

static void take_caller(struct listener* own) {
  const int fd = accept4(own->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (own->count == own->most) {
    close(fd);
    return;
  }
  own->callers[own->count++] = (struct caller){.fd = fd};
}

// Reads what a node sent. Returns false if the connection is of no use: it has ended, or is a stranger's.
static bool hear(struct listener* own, struct caller* caller) {
  const ssize_t got = read(caller->fd, caller->line + caller->bytes, sizeof caller->line - 1 - caller->bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0 || caller->reported) return caller->reported && got > 0;
  caller->bytes += (size_t)got;
  caller->line[caller->bytes] = '\0';
  if (strchr(caller->line, '\n') == NULL) return caller->bytes < sizeof caller->line - 1;
  struct report report;
  if (!agreement_read(caller->line, own->token, &report)) return false;
  caller->reported = true;
  caller->bytes = 0;
  agreement_take(&own->agreement, &report);
  return true;
}

// Waits for one change, until `until_ms`.
static void wait_once(struct listener* own, long long until_ms) {
  own->watched[0] = (struct pollfd){own->fd, POLLIN, 0};
  for (unsigned i = 0; i < own->count; ++i) own->watched[i + 1] = (struct pollfd){own->callers[i].fd, POLLIN, 0};
  const long long left_ms = until_ms - now_ms();
  const int wait_ms = until_ms < 0 ? unlimited_ms : left_ms > 0 ? (int)left_ms : 0;
  if (poll(own->watched, own->count + 1, wait_ms) <= 0) return;
  for (unsigned i = own->count; i-- > 0;)
    if (own->watched[i + 1].revents && !hear(own, &own->callers[i])) drop(own, i);
  if (own->watched[0].revents) take_caller(own);
}

// True if the other end has closed the connection.
static bool has_left(const struct caller* caller) {
  char byte;
  return recv(caller->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Takes nodes into account that gave up meanwhile: srun may have been stopped for longer than they wait.
static void find_left(struct listener* own) {
  unsigned waiting = 0;
  for (unsigned i = 0; i < own->count; ++i) waiting += own->callers[i].reported && !has_left(&own->callers[i]);
  if (waiting < own->agreement.reported) agreement_leave(&own->agreement);
}

static void* decide(void* argument) {
  struct listener* const own = argument;
  long long until_ms = -1;  // the first report begins the time
  while (!agreement_is_over(&own->agreement) && (until_ms < 0 || now_ms() < until_ms)) {
    wait_once(own, until_ms);
    if (until_ms < 0 && own->agreement.reported > 0) until_ms = now_ms() + own->limit_s * 1000LL;
  }
  find_left(own);
  const char answer = agreement_answer(&own->agreement) ? 'y' : 'n';
  if (*own->agreement.reason) own->say(own->agreement.reason);
  for (unsigned i = 0; i < own->count; ++i) send(own->callers[i].fd, &answer, 1, MSG_NOSIGNAL);
  // Nodes that come later learn the same: none may believe that it decides alone.
  while (own->agreement.reported < own->agreement.nodes) {
    const unsigned before = own->agreement.reported;
    wait_once(own, -1);
    for (unsigned i = 0; own->agreement.reported > before && i < own->count; ++i)
      send(own->callers[i].fd, &answer, 1, MSG_NOSIGNAL);
  }
  while (own->count > 0) drop(own, 0);
  close(own->fd);
  free(own->callers);
  free(own->watched);
  free(own);
  return NULL;
}

static int listen_at(int family, unsigned port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const struct sockaddr_in6 six = {
      .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
  const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const int no = 0;
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const int bound = family == AF_INET6 ? bind(fd, (const struct sockaddr*)&six, sizeof six)
                                       : bind(fd, (const struct sockaddr*)&four, sizeof four);
  if (bound == 0 && listen(fd, 1024) == 0) return fd;
  close(fd);
  return -1;
}

// Makes a socket that listens at one of these ports. Returns -1 if none is free.
static int listen_between(unsigned first_port, unsigned last_port) {
  for (unsigned port = first_port; port <= last_port; ++port) {
    int fd = listen_at(AF_INET6, port);
    if (fd < 0) fd = listen_at(AF_INET, port);  // kernels without IPv6
    if (fd >= 0) return fd;
  }
  return -1;
}

static unsigned port_of(int fd) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (getsockname(fd, (struct sockaddr*)&address, &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6*)&address)->sin6_port
                                             : ((struct sockaddr_in*)&address)->sin_port);
}

bool agreement_begin(unsigned nodes, unsigned first_port, unsigned last_port, int limit_s, void (*say)(const char*),
                     char place[agreement_place_bytes]) {
  struct listener* const own = calloc(1, sizeof *own);
  if (own == NULL) return false;
  unsigned char random[(agreement_token_bytes - 1) / 2];
  own->most = nodes + strangers;
  own->callers = calloc(own->most, sizeof *own->callers);
  own->watched = calloc(own->most + 1, sizeof *own->watched);
  own->fd = listen_between(first_port, last_port);
  own->limit_s = limit_s;
  own->say = say;
  own->agreement.nodes = nodes;
  bool begun = own->callers && own->watched && own->fd >= 0 && getrandom(random, sizeof random, 0) == sizeof random;
  for (size_t i = 0; begun && i < sizeof random; ++i) snprintf(own->token + 2 * i, 3, "%02x", random[i]);
  pthread_t thread;
  if (begun) snprintf(place, agreement_place_bytes, "%u %s", port_of(own->fd), own->token);
  begun = begun && pthread_create(&thread, NULL, decide, own) == 0;
  if (begun) return pthread_detach(thread) == 0;
  if (own->fd >= 0) close(own->fd);
  free(own->callers);
  free(own->watched);
  free(own);
  return false;
}

static bool is_ready(int fd, short what, long long until_ms) {
  struct pollfd one = {fd, what, 0};
  for (;;) {
    const long long left_ms = until_ms - now_ms();
    const int ready = poll(&one, 1, left_ms > 0 ? (int)left_ms : 0);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

static int connect_until(const char* host, const char* port, long long until_ms) {
  const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  if (getaddrinfo(host, port, &wanted, &found) != 0) return -1;
  int fd = -1;
  for (const struct addrinfo* at = found; at && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    int error = 0;
    socklen_t length = sizeof error;
    const bool begun = connect(fd, at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS;
    if (begun && is_ready(fd, POLLOUT, until_ms) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
        error == 0)
      break;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

int agreement_ask(const char* host, const char* place, const struct report* report, int limit_s) {
  char port[8], token[agreement_token_bytes], line[agreement_line_bytes], answer = 0;
  if (sscanf(place, "%7s %16s", port, token) != 2) return -1;
  const long long until_ms = now_ms() + 3000LL * limit_s;
  const int fd = connect_until(host, port, now_ms() + 1000LL * limit_s);
  if (fd < 0) return -1;
  agreement_write(report, token, line);
  const size_t bytes = strlen(line);
  const bool asked = send(fd, line, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;  // a new socket has room for one line
  const bool answered = asked && is_ready(fd, POLLIN, until_ms) && read(fd, &answer, 1) == 1;
  close(fd);
  return answered ? answer == 'y' : -1;
}
