// An agent's attempt to link itself to a leader: it resolves the name, connects, and introduces itself. Each address of
// the name is tried. Nothing blocks: a thread asks name servers, whose answers are kept. Nothing throws; not
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "link/later.hpp"
#include "link/link.hpp"
#include "link/tcp.hpp"

namespace hocket::link {

class Calling {
 public:
  enum class Result {
    undecided,
    linked,      // `take_link` has it
    unanswered,  // nobody listens, or nobody answers in time
    refused,     // the leader does not want this agent, or is none
  };

  // Returns the addresses of HOST:PORT. Takes as long as the name servers do.
  using Resolve = std::function<hocket::Result<std::vector<Endpoint>>(const std::string&)>;

  Calling(
      std::string leader, const Tls& tls, Introduction self,
      Resolve resolver = [](const std::string& leader) { return resolve(leader); })
      : leader_(std::move(leader)), tls_(tls), self_(std::move(self)), resolve_(std::move(resolver)) {}

  const std::string& leader() const { return leader_; }
  bool is_under_way() const { return connecting_ || link_ || asks_name_; }
  // Begins, or returns the result at once.
  Result begin(Time now);
  // Goes on, when the descriptor is ready or the deadline has come.
  Result go_on(Time now);
  // Returns the descriptor to watch; -1 while a thread asks name servers.
  int fd() const { return link_ ? link_->fd() : connecting_.get(); }
  // The descriptor must be watched for room, too.
  bool wants_room() const { return connecting_ || (link_ && link_->wants_room()); }
  Time deadline() const;

  // Returns the link after `linked`, and the name of this node.
  Link take_link();
  const std::string& own_name() const { return own_name_; }
  // True if the leader may give orders: both ends serve the same user alone.
  bool takes_orders() const { return takes_orders_; }
  // Says why the newest attempt has failed.
  const std::string& why() const { return why_; }
  // True if that is not what it was at the last call, so that the log has each reason once.
  bool has_new_reason() { return std::exchange(told_, why_) != why_; }
  void give_up();

 private:
  static constexpr Duration resolve_limit = std::chrono::seconds{2};
  static constexpr Duration connect_limit = std::chrono::seconds{2};
  static constexpr Duration kept = std::chrono::minutes{1};  // what the resolver said

  // Asks a thread for the addresses, and connects to what it, or an earlier one, has found.
  Result take_addresses(Time now);
  Result connect_next(Time now);
  Result begin_greeting(Time now);
  Result serve(Time now);
  void say_hello(const std::string& credential, Time now);
  // Sends the own credential and checks the leader's, if they are by MUNGE.
  Status vouch(Time now);
  Status take_welcome(const LinkMessage& message);
  Result fail(std::string why, Result result);

  std::string leader_;
  const Tls& tls_;
  Introduction self_;
  Resolve resolve_;
  std::optional<Later<std::vector<Endpoint>>> resolving_;  // it may outlast an attempt
  bool asks_name_ = false;                                 // the attempt awaits that
  Time looked_{};                                          // when this object last looked at what threads make
  std::vector<Endpoint> endpoints_;
  Time resolved_{};
  std::size_t next_ = 0;  // of endpoints_
  Time since_{};
  Fd connecting_;
  std::optional<Link> link_;
  std::optional<Later<std::string>> making_;    // the own credential
  std::optional<Later<std::string>> checking_;  // the leader's
  bool has_vouched_ = false;
  bool is_welcome_ = false;
  bool is_refused_ = false;
  bool takes_orders_ = false;
  std::string own_name_;
  std::string why_;
  std::string told_;
};

}  // namespace hocket::link
