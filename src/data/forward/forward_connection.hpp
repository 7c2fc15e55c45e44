// A client's connection to the service, and its messages. Only the service's own sources include this file.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/descriptor.hpp"
#include "base/time.hpp"
#include "forward/client_segment.hpp"
#include "forward/collected_writes.hpp"
#include "forward/forward_service.hpp"

namespace hocket::forward {

inline constexpr std::size_t most_descriptors = 2;  // of a message

// A ticket has the number of the connection above that of its request: a client may have its answer, and send its next
// call, while the batch of the first one is under way.
inline constexpr int request_bits = 24;

struct ForwardService::ForwardMessage {
  union Content {
    forward_hello hello;
    forward_request request;
  };
  Content content{};
  std::size_t bytes = 0;
  std::array<Fd, most_descriptors> descriptors;
};

struct ForwardService::ForwardConnection {
  std::uint64_t number = 0;
  Fd socket;
  std::shared_ptr<ClientSegment> segment;      // null before the greeting
  std::shared_ptr<CollectedWrites> collected;  // null: nothing is; guarded by the service's mutex
  uid_t user = 0;
  pid_t process = 0;
  ForwardClients::ClientProcess* client = nullptr;
  ForwardMessage message;    // the request under way
  Time arrival{};            // of the request
  std::uint64_t queued = 0;  // requests so far
  bool is_waiting = false;   // the request has been queued, and not been carried out
  int credit = 0;            // for looking for the next call: it rises if it came soon, and falls if it did not
  std::atomic<unsigned> calls = 0;
  unsigned calls_before = 0;   // at the last beat
  bool is_looked_for = false;  // a call that comes now has come soon
};

// Sends an answer, with a descriptor unless that is -1. Returns false if it could not be sent at once.
template <class Answer>
bool send_to(int socket, const Answer& answer, int descriptor = -1) {
  Answer copy = answer;
  iovec data{&copy, sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof copy);
}

// True if the client does not wait for an answer.
inline bool is_unanswered(const forward_request& request) {
  return request.call == forward_store && (request.flags & forward_unanswered) != 0;
}

}  // namespace hocket::forward
