// The agent of a node whose leader runs elsewhere. It accepts the members of its node on the Unix socket at which a
// hocketd would listen, and carries their bytes to the leader and back. It decides nothing.
//
// While no leader answers, members are refused with one line, and continue uncoordinated; when the leader's link ends,
// they are disconnected at once, so that nobody waits for an answer. One thread runs it; nothing throws.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "bus/repeats.hpp"
#include "link/calling.hpp"
#include "link/link.hpp"
#include "link/node_duties.hpp"

namespace hocket::link {

class Relay {
 public:
  using Tell = std::function<void(const std::string&)>;

  // `socket` is for `listen`; the caller holds its directory's lock. `leaders` are HOST:PORT; the first one that
  // answers is used. While that is not the first of all, earlier ones are asked again.
  static Result<std::unique_ptr<Relay>> start(std::string socket, const std::vector<std::string>& leaders,
                                              std::unique_ptr<Tls> tls, const Introduction& self, Tell tell,
                                              bus::Users users = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Has orders of the leader carried out. `duties` must outlive this object; without, they are ignored.
  void serve_with(NodeDuties& duties) { duties_ = &duties; }
  // Reports an event about this node to the leader. Returns false if there is none.
  bool report(const event::Body& body);

  // Listens at the socket (bus::listen_at). A member that connects before the first link would be refused.
  Status listen();
  // Waits for something to do, for `most` at most, and does it.
  void run(Duration most);
  // Calls `ready` from `run` whenever `fd` is readable. The caller keeps the descriptor open.
  void watch(int fd, std::function<void()> ready);

  bool is_linked() const { return link_.has_value(); }
  // True if each leader was asked once and none has answered.
  bool has_failed_once() const { return rounds_ > 0; }
  // Number of members that the leader serves.
  std::size_t members() const;
  // True if the socket's path still leads to this agent.
  bool is_reachable() const;

 private:
  struct LocalMember {
    Fd socket;
    std::string out{};              // from the leader, not taken by the socket yet
    std::size_t sent = 0;           // bytes of `out` that the socket has taken
    std::size_t taken_bytes = 0;    // that the socket has taken, and the leader was not told of
    unsigned watched = 0;           // events of epoll
    std::optional<Time> refused{};  // it is not served, and has so long to read why
  };

  Relay(std::string socket, std::unique_ptr<Tls> tls, Tell tell, bus::Users users)
      : path_(std::move(socket)), tls_(std::move(tls)), tell_(std::move(tell)), users_(users) {}

  Status open();
  Time deadline(Time now) const;
  void serve(std::uint64_t key, unsigned events, Time now);

  // Asks the next leader, if it is time for that.
  void call_if_due(Time now);
  void go_on_calling(Calling::Result result, Time now);
  void next_leader(bool is_refused, Time now);
  void take_link(Time now);
  void serve_link(Time now);
  Status handle(const LinkMessage& message, Time now);
  Status carry_out(const LinkMessage& message);
  void lose_link(const std::string& reason, Time now);
  void watch_link();

  void accept_members(Time now);
  void accept_member(Fd socket, Time now);
  // Tells the member why it is not served, and closes its connection once it has read that.
  void refuse(Fd socket, const std::string& reason, Time now);
  void end_refused(Time now);
  void serve_member(std::uint64_t number, unsigned events, Time now);
  // Passes on what the member has sent. Returns false if its connection has ended.
  bool take_from(std::uint64_t number, LocalMember& member, Time now);
  // Gives the member what is there, as far as its socket takes it.
  void give_to(std::uint64_t number, LocalMember& member, Time now);
  void watch_member(std::uint64_t number, LocalMember& member);
  // While the link is full, members are not read.
  void pause_if_full();
  void end(std::uint64_t number, Time now);

  std::string path_;
  std::unique_ptr<Tls> tls_;
  Tell tell_;
  bus::Users users_;
  bus::Repeats repeats_;
  NodeDuties* duties_ = nullptr;
  Fd epoll_;
  Fd listener_;
  Fd spare_;
  std::pair<dev_t, ino_t> socket_file_{};
  std::vector<std::function<void()>> watched_;

  std::optional<Link> link_;
  std::size_t linked_to_ = 0;  // of leaders_
  Time linked_since_{};
  unsigned watched_link_ = 0;
  bool takes_orders_ = false;  // of the leader to which it is linked
  bool is_paused_ = false;

  std::vector<Calling> leaders_;
  std::size_t asked_ = 0;    // of leaders_
  Time again_{};             // when the next leader is asked
  bool all_refused_ = true;  // in this round
  int rounds_ = 0;           // through all leaders, since the last link
  std::string why_;          // no leader has answered

  std::uint64_t last_member_ = 0;
  std::unordered_map<std::uint64_t, LocalMember> members_;
  std::size_t refused_ = 0;  // of members_
};

}  // namespace hocket::link
