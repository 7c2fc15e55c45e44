// The leader's ends of the links: the agents of other nodes, and their members, which become members of this daemon's
// own agent (bus/agent.hpp).
//
// Only who knows the cluster's key, or has a credential by MUNGE of this user or root, is heard at all. An agent is
// trusted with what it says of its node: whose process a member is, and what has become of it. Nothing blocks, and all
// memory is bounded. Nothing throws; not thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/descriptor.hpp"
#include "bus/agent.hpp"
#include "bus/repeats.hpp"
#include "link/later.hpp"
#include "link/link.hpp"

namespace hocket::link {

class NodeAgents {
 public:
  // Bytes for one member that may be under way to its socket. The rest waits in the leader, which counts it.
  static constexpr std::size_t window_bytes = 256 << 10;
  // Connections that have not said yet who they are. Further ones wait in the kernel's queue.
  static constexpr std::size_t most_strangers = 64;
  static constexpr std::size_t most_members = 65'536;  // of one agent, at a time

  // The leader learns of nodes by these calls. A name is the one that the leader gave the node, as in the Introduction.
  // What is called may send messages to members.
  struct NodeNews {
    // An agent of this user has joined, which carries out orders.
    std::function<void(const Introduction& node)> joined = [](const Introduction&) {};
    // It has reported an event about its node.
    std::function<void(const Introduction& node, event::Body&&)> reported = [](const Introduction&, event::Body&&) {};
    // A node's agent has joined, with so many cores, or its last one has left: 0.
    std::function<void(const std::string& node, std::int64_t cores)> cores = [](const std::string&, std::int64_t) {};
    // An agent has found this leader at this place of its list, from 1.
    std::function<void(const std::string& node, std::int64_t place)> found_at = [](const std::string&, std::int64_t) {};
  };

  // Listens at HOST:PORT. `agent` takes the members; it must outlive this object, after `close`. `self` is what the
  // leader's node is.
  static Result<std::unique_ptr<NodeAgents>> listen(const std::string& address, std::unique_ptr<Tls> tls,
                                                    bus::Agent& agent, Introduction self, bus::Agent::Warn warn);

  // Returns a descriptor that is readable when `serve` has something to do.
  int descriptor() const { return epoll_.get(); }
  void serve();
  void tell(NodeNews news) { news_ = std::move(news); }
  // Asks the agent of a node, by name or identity, to carry something out. Returns false if that node has none, or one
  // that serves other users, too.
  bool order(const std::string& node, const event::Body& order);
  void order_all(const event::Body& order);
  // True if the node has such an agent, which was heard in the last seconds.
  bool hears(const std::string& node) const;
  // True if credentials by MUNGE stand for a key, so that there is no secret for I/O servers of several nodes.
  bool has_no_key() const { return tls_->munge() != nullptr; }
  // The same as `order` for the agent of a member, about that member.
  bool order_about(MemberId member, const event::Body& order);
  // Returns the identity of the member's node, or of the node of this name; "" if no agent there carries out orders.
  std::string identity_of(MemberId member) const;
  std::string identity_of(const std::string& node) const;
  // Returns the names of the nodes with agents, sorted, joined by blanks.
  std::string nodes() const;
  // Returns the host at which agents have reached this node; "" while none has.
  const std::string& own_host() const { return own_host_; }
  // Number of agents that have said who they are.
  std::size_t count() const { return agents_.size() - strangers_; }

  ~NodeAgents();

 private:
  struct Elsewhere;
  struct NodeAgent {
    std::uint64_t number;
    std::string from;  // address, for people
    Link link;
    Time since{};                                             // of the connection
    Introduction who{};                                       // its node is "" until it is admitted
    Introduction claimed{};                                   // what it has said, while its credential is checked
    std::optional<Later<std::string>> checking{};             // that, which makes the leader's own
    Duration clock_ahead{};                                   // of its clock, before this one's
    Time clock_seen{};                                        // when that was noted
    std::unordered_map<std::uint64_t, Elsewhere*> members{};  // by its numbers
    std::string lost{};                                       // why the link has ended; "" while it has not
    bool is_ready = false;                                    // it has said something since the welcome
    bool watches_room = false;
    bool is_unread = false;  // it is in `unread_`
    bool is_unflushed = false;
  };
  // A member of another node, and the way to it. Its agent is gone if its link has ended.
  struct Elsewhere final : bus::MemberSink {
    Elsewhere(NodeAgents& links, NodeAgent& its_agent, std::uint64_t its_number)
        : all(links), agent(&its_agent), number(its_number) {}
    std::size_t take(MemberId member, std::string_view bytes) override;
    void dropped(MemberId member, const std::string& reason) override;

    NodeAgents& all;
    NodeAgent* agent;
    std::uint64_t number;  // for its agent
    MemberId member{};
    std::size_t under_way_bytes = 0;
  };

  NodeAgents(std::unique_ptr<Tls> tls, bus::Agent& agent, Introduction self, bus::Agent::Warn warn)
      : tls_(std::move(tls)), agent_(agent), self_(std::move(self)), warn_(std::move(warn)) {}

  Status open(const std::string& address);
  void accept_agents();
  void take_in(Fd socket, Time now);
  // Takes no more strangers while there are too many.
  void listen_or_not();
  void serve(std::uint64_t number, Time now);
  void serve_unread(Time now);
  void keep_alive(Time now);
  Status handle(NodeAgent& one, const LinkMessage& message, Time now);
  Status introduce(NodeAgent& one, const LinkMessage& message, Time now);
  // Refuses an agent whose introduction is wrong, and returns the reason.
  static Status refuse(NodeAgent& one, const Error& why, Time now);
  void check(NodeAgent& one);
  void finish_check(NodeAgent& one, Time now);
  void admit(NodeAgent& one, const std::string& credential, Time now);
  Status take_place(const NodeAgent& one, const LinkMessage& message);
  Status handle_member(NodeAgent& one, const LinkMessage& message, Time now);
  // True if the agent carries out orders of this leader: both serve the same user alone.
  bool takes_orders(const NodeAgent& one) const;
  const NodeAgent* agent_of(const std::string& node) const;
  void send_order(NodeAgent& one, std::uint64_t member, const event::Body& order);
  void open_member(NodeAgent& one, std::uint64_t number, const bus::Caller& caller, Time now);
  // Notes what the agent's clock shows more than this one's.
  static void note_clock(NodeAgent& one, const LinkMessage& message, Time now);
  void lose(NodeAgent& one, std::string reason);
  void tell_lost(const NodeAgent& one);
  void bury();
  // Counts the agent of that node no more: as a stranger, or under its name.
  void forget_name(const Introduction& who);
  // 0: never.
  void look_at_beats(long each_ns);
  // Sends what is queued for the agent: at once, or at the end of the batch of messages that is being handled.
  void flush(NodeAgent& one);
  void flush_batch();
  void watch_room(NodeAgent& one);
  bool has_own_cores(const std::string& node) const;
  // Returns a name for the node that no other node has.
  std::string name_for(const Introduction& who) const;

  std::unique_ptr<Tls> tls_;
  bus::Agent& agent_;
  Introduction self_;
  bus::Agent::Warn warn_;
  NodeNews news_;
  std::string own_host_;
  Fd epoll_;
  std::vector<Fd> listeners_;
  bool is_listening_ = true;
  Fd spare_;
  bus::Repeats repeats_;
  Fd timer_;
  std::uint64_t last_agent_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<NodeAgent>> agents_;
  std::size_t strangers_ = 0;                                // agents that have not said yet who they are
  std::unordered_multimap<std::string, std::string> names_;  // of the other agents' nodes, with their identities
  std::vector<std::uint64_t> lost_;                          // agents for `bury`
  bool in_batch_ = false;
  std::vector<NodeAgent*> unflushed_;  // in this batch
  std::vector<std::uint64_t> unread_;  // agents of which more has come than was handled in one turn
  // Threads that check credentials. Each ends by itself, also if its agent has gone.
  const std::shared_ptr<std::atomic<int>> checking_now_ = std::make_shared<std::atomic<int>>(0);
  std::vector<std::uint64_t> checks_;  // agents whose credentials are checked
  Fd again_;                           // readable while there are such, or a check has ended
  std::unordered_map<std::uint64_t, std::unique_ptr<Elsewhere>> members_;  // by the leader's numbers
};

}  // namespace hocket::link
