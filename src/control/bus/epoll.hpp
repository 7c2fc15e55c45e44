// Descriptors in an epoll of the daemons' loops. Nothing throws; thread-safe.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace hocket::bus {

// Changes for which events (EPOLLIN, EPOLLOUT) the descriptor is watched. `key` comes with each event.
inline bool set_in_epoll(const Fd& epoll, int operation, int fd, std::uint32_t events, std::uint64_t key) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.u64 = key;
  return epoll_ctl(epoll.get(), operation, fd, &wanted) == 0;
}

inline void change_in_epoll(const Fd& epoll, int fd, std::uint32_t events, std::uint64_t key) {
  set_in_epoll(epoll, EPOLL_CTL_MOD, fd, events, key);
}

inline Status add_to_epoll(const Fd& epoll, int fd, std::uint32_t events, std::uint64_t key) {
  if (set_in_epoll(epoll, EPOLL_CTL_ADD, fd, events, key)) return success();
  return Error{"cannot wait for a descriptor: " + error_text(errno)};
}

}  // namespace hocket::bus
