// Which processes may connect to a daemon, and what they may say there. The kernel says whose process a member is; a
// member says nothing about that itself.
//
// No function throws, and all are thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::bus {

// The users who may connect are this one and root, or all of the node.
struct Users {
  bool all = false;
  std::optional<gid_t> operators{};     // members of this group are operators, as are this user and root
  std::size_t most_connections = 4096;  // of each other user
};

// A process that connects, or has connected, to the agent of its node.
struct Caller {
  uid_t user = 0;
  pid_t process = 0;  // 0: not visible, because it has another PID namespace
  bool is_operator = true;
  std::string step{};  // of Slurm (slurm_step.hpp), "1234.0"; "": none, or not known
};

// Returns the process at the other end of a Unix socket. Fails if it may not connect.
Result<Caller> caller_of(int socket, const Users& users);
// Fails if processes of the user may not connect.
Status may_connect(const Caller& caller, const Users& users);

// Returns why no member may send this event; "" if members may.
std::string why_not_sent(const event::Body& body);

// Returns the application that the event steers, for events by which one steers others; "" for all of them. Nothing if
// the event is about the sender alone.
std::optional<std::string> steers(const event::Body& body);
// Returns the application about which hocketd has decided something, if the event says that.
std::optional<std::string_view> concerns(const event::Body& body);

}  // namespace hocket::bus
