// The connections of a relay to one hocket-server of another node. Each carries one call at a time.
//
// A call whose connection fails may still be under way on the other node, and a write of it must not come after newer
// ones. So the relay looks for proof that it is over: the server's own end of the connection, or a new connection. The
// server admits one of a later generation only when nothing of the earlier ones of this run is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "forward/relayed_call.hpp"
#include "transport/parting.hpp"
#include "transport/stream.hpp"

namespace hocket::relay {

// Thread-safe.
class RemoteServer {
 public:
  struct RemoteSettings {
    std::string addresses;                          // transport/address.hpp
    std::string secret_file;                        // read for each connection
    std::string run;                                // a number of this run of the relay, which no other has
    Duration connecting = std::chrono::seconds{5};  // and as long until the server admits the connection
    Duration silence = std::chrono::seconds{30};    // without a sign of life
    Duration answering = std::chrono::minutes{10};  // with signs of life only
    // From the first attempt to reach a server that did not answer to the second. It doubles, up to 32 times.
    Duration again_after = std::chrono::seconds{1};
  };
  enum class Became : std::uint8_t {
    answered,
    not_made,  // nothing has been done, and nothing will be
    over,      // it may have been done, and is not under way any more
    unknown,   // it may be done later
  };
  struct RemoteAnswer {
    std::int64_t result = 0;
    int error = 0;            // number of errno, if `result` is -1
    bool is_refused = false;  // the server leaves the call to the program's node: nothing was done
  };

  struct RemoteLink {
    transport::Stream stream;
    std::uint64_t generation = 0;
    bool is_left = false;  // the client has gone, and the server has been told
  };
  using LinkPtr = std::unique_ptr<RemoteLink>;

  explicit RemoteServer(RemoteSettings settings);

  // Returns a connection for one call. nullptr: the server cannot be reached.
  LinkPtr take();

  // Has the server carry out a call. `memory` has the data of a write, and gets those of a read. If `client`, a socket
  // (-1: none), is closed by its other end, nobody waits any more, and what the server has not begun is not done.
  Became make(LinkPtr link, const forward::RelayedCall& call, char* memory, int client, RemoteAnswer& answer);
  // The same with a connection that is taken for it.
  Became make(const forward::RelayedCall& call, char* memory, int client, RemoteAnswer& answer);
  // True if nothing that became unknown can be done later any more.
  bool is_settled();
  // Waits until that is so. Returns false if that is not known in time.
  bool await_settled(Duration bound);
  // Returns the number of the node on which the server runs (transport::node_number), "" if its address does not say.
  const std::string& node() const { return node_; }

 private:
  LinkPtr connect(Duration bound);
  void give_back(LinkPtr link);
  void leave(RemoteLink& link);
  bool may_try(Duration alone);
  bool look_if_settled();
  bool settle();
  bool send(RemoteLink& link, const forward::RelayedCall& call, char* memory) const;
  Became receive(RemoteLink& link, const forward::RelayedCall& call, char* memory, int client,
                 RemoteAnswer& answer) const;

  const RemoteSettings settings_;
  std::string node_;
  std::atomic<std::uint64_t> generation_;
  std::mutex mutex_;           // guards those below
  std::vector<LinkPtr> idle_;  // of the present generation
  Time down_until_{};          // since the server did not answer
  int failures_ = 0;           // of attempts to reach it, since it was reached last
  bool is_unsettled_ = false;
  std::vector<transport::Parting> partings_;  // connections of the calls that became unknown, since it is unsettled
};

}  // namespace hocket::relay
