// Preloaded: stops its process when epoll_wait or recvmsg (HOCKET_STOP_AFTER names one) has found something, before the
// program sees it. It does so once, if the file that HOCKET_STOP names exists, and removes that file.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void stop_after(const char* call, int found) {
  const char* wanted = getenv("HOCKET_STOP_AFTER");
  const char* stop = getenv("HOCKET_STOP");
  if (found > 0 && wanted && stop && strcmp(call, wanted) == 0 && unlink(stop) == 0) raise(SIGSTOP);
}

int epoll_wait(int epoll, struct epoll_event* events, int most, int timeout_ms) {
  int (*next)(int, struct epoll_event*, int, int) = dlsym(RTLD_NEXT, "epoll_wait");
  const int found = next(epoll, events, most, timeout_ms);
  stop_after("epoll_wait", found);
  return found;
}

ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
  ssize_t (*next)(int, struct msghdr*, int) = dlsym(RTLD_NEXT, "recvmsg");
  const ssize_t got = next(socket, message, flags);
  stop_after("recvmsg", got > 0);
  return got;
}
