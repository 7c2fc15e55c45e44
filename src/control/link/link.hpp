// One end of a connection between an agent and the leader: messages over TLS, with bounded memory and beats, by which
// each end knows that the other one runs. The ends differ in what they do with messages: relay.hpp, node_agents.hpp.
//
// A leader has thousands of agents, more than its cache has room for, so it looks at a link as seldom as it can. An
// agent that has nothing to say sends a beat each `beat`, and the leader answers it at once, while it has the link in
// its cache. If what an agent has said is not answered within `early_beat`, it sends a beat then. It gives the leader
// up when it has had no answer for `silence`. A leader gives an agent up that has said nothing for `agent_silence`:
// members of others may wait for what its members hold.
//
// No function blocks or throws. A link is not thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/saturating.hpp"
#include "base/time.hpp"
#include "link/message.hpp"
#include "link/tls.hpp"
#include "wire/frame.hpp"

namespace hocket::link {

inline constexpr Duration beat = std::chrono::seconds{4};
inline constexpr Duration early_beat = std::chrono::seconds{2};
inline constexpr Duration silence = std::chrono::seconds{5};
inline constexpr Duration agent_silence = std::chrono::seconds{7};

enum class LinkEnd { agent, leader };

class Link {
 public:
  // Bytes that wait for the network above which the link takes no more of members.
  static constexpr std::size_t full_bytes = 1 << 20;

  // `end`: which one this is. `now`: the greeting must be complete within `silence` from then on.
  Link(LinkEnd end, TlsStream stream, Time now) : end_(end), stream_(std::move(stream)), heard_(now), spoke_(now) {}

  int fd() const { return stream_.fd(); }
  // When the other end said something.
  Time heard() const { return heard_; }
  // The other end has said nothing for too long.
  bool is_silent(Time now) const { return now >= silent_at(); }
  // The greeting has failed, though the other end was there: it has another key.
  bool is_rejected() const { return stream_.is_rejected(); }
  // The greeting is complete.
  bool is_greeted() const { return greeted_; }
  // Returns the value that only this connection has (TlsStream::binding).
  std::string binding() const { return stream_.binding(); }
  // The socket must be watched for room, too.
  bool wants_room() const { return stream_.wants_room() || (greeted_ && has_unsent()); }
  bool is_full() const { return unsent() > full_bytes; }

  // Continues the greeting, and passes what has come to `handle`, some messages at most. Sends what waits. An error
  // means that the link has ended. Call it when the socket is ready, and again if `has_unread`.
  using TakeMessage = std::function<Status(const LinkMessage&)>;
  Status serve(Time now, const TakeMessage& handle);
  bool has_unread() const { return has_unread_; }

  // Queues a message. `flush` sends what waits as far as the network takes it.
  void send(MessageKind kind, std::uint64_t member, std::string_view bytes, Time now);
  Status flush();

  // Sends an agent's beat if one is due. Fails if the other end has been silent for too long.
  Status keep_alive(Time now);
  // When `keep_alive` has something to do.
  Time deadline() const { return greeted_ ? std::min(beat_at(), silent_at()) : silent_at(); }

 private:
  // Returns when an agent's beat is due, and when the other end has been silent for too long.
  Time beat_at() const {
    if (end_ == LinkEnd::leader) return Time::max();
    const Time latest = spoke_ + beat;
    return asked_ && !asked_by_beat_ ? std::min(*asked_ + early_beat, latest) : latest;
  }
  Time silent_at() const {
    if (!greeted_) return heard_ + silence;
    if (end_ == LinkEnd::leader) return heard_ + agent_silence;
    return asked_ ? *asked_ + silence : heard_ + beat + silence;
  }
  std::size_t unsent() const { return out_.size() - sent_; }
  bool has_unsent() const { return unsent() > 0; }
  // Reads once, and handles the complete messages. Returns false if nothing has come.
  Result<bool> take_in(Time now, const TakeMessage& handle);

  LinkEnd end_;
  TlsStream stream_;
  bool greeted_ = false;
  bool has_unread_ = false;
  wire::Splitter splitter_;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_ already sent
  Time heard_;
  Time spoke_;
  std::optional<Time> asked_;   // since when what this end has said is unanswered
  bool asked_by_beat_ = false;  // a beat was sent since then, which the leader will answer
  bool owes_beat_ = false;      // to an agent's beat
};

// Returns what the clock of the other node shows more than this one's, less the time on the way.
inline Duration clock_ahead(const LinkMessage& message, Time now) {
  return Duration{saturating_difference(to_ns(message.sent), to_ns(now))};
}

}  // namespace hocket::link
