// Messages on the link between the agent of a node and the leader. The agent does not read what its members say: it
// carries the bytes of their sockets, each piece with the member's number. Beside that, the leader asks the agent for
// what only a process of that node can do (orders), and learns what has become of it (reports). Both are events.
//
// A message is a frame (wire/frame.hpp) whose payload has a head of 17 bytes: its kind, the member's number on that
// link, and the sender's clock, little-endian. Nothing throws; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "bus/rights.hpp"
#include "event/event.hpp"

namespace hocket::link {

// Version of these messages. Both ends must have the same.
inline constexpr std::int64_t link_version = 4;

enum class MessageKind : std::uint8_t {
  hello = 1,  // agent: who it is (Introduction), the first message
  welcome,    // leader: the node's name from now on (Admission)
  refused,    // either end: why it ends the link; the last message
  beat,       // either end: it runs, but had nothing to say
  opened,     // agent: a member has connected (Caller)
  closed,     // agent: its connection has ended; leader: the agent shall end it. The text says why
  data,       // bytes of the member's socket, in either direction
  taken,      // the agent has given so many bytes of data to the member's socket
  place,      // agent: at which place of its list it has found this leader, from 1; follows `welcome`
  order,      // leader: an event that the agent carries out on its node; about the member, if that is not 0
  report,     // agent: an event about its node
};

// The members of one link have numbers from 1 on, which are never used again.
struct LinkMessage {
  MessageKind kind = MessageKind::beat;
  std::uint64_t member = 0;  // 0: the message is about none
  Time sent{};               // by the clock of the sender's node
  std::string_view bytes;    // at most `most_bytes`
};

inline constexpr std::size_t most_bytes = 32 << 10;

// Appends the message as a frame. Precondition: its bytes are at most `most_bytes`.
void encode(const LinkMessage& message, std::string& out);
// Reads the payload of a frame. The bytes of the message point into it.
Result<LinkMessage> decode(std::string_view payload);

// The agent's first message. A node is its kernel (boot id) and its namespaces, not its name.
struct Introduction {
  std::int64_t version = link_version;
  std::string hocket;  // version of hocket, for people
  std::string node;    // host name
  std::string identity;
  std::int64_t cores = 0;  // that programs of the node may use; 0: none are given out
  std::int64_t user = 0;   // whose process the agent is
  // It serves this user's programs alone: then it may carry out orders of this user's leader.
  bool serves_alone = false;
  std::string credential{};  // by MUNGE, for this connection; "": the key says enough
};
std::string text_of(const Introduction& introduction);
Result<Introduction> introduction_from(std::string_view text);

// The leader's answer to it.
struct Admission {
  std::string node;
  std::string credential{};   // as in Introduction, the leader's
  std::int64_t user = 0;      // whose process the leader is
  bool serves_alone = false;  // as in Introduction; an agent obeys its own user's leader only
};
std::string text_of(const Admission& admission);
Result<Admission> admission_from(std::string_view text);

// A member's process, as the kernel of its node says.
std::string text_of(const bus::Caller& caller);
Result<bus::Caller> caller_from(std::string_view text);

// An event in an order or a report. Fails if it is longer than `most_bytes`, or is no event.
Status encode(const event::Body& body, std::string& out);
Result<event::Body> body_from(std::string_view text);

// The number in `taken` or `place`; an error if the text is none.
Result<std::uint64_t> count_from(std::string_view text);

}  // namespace hocket::link
