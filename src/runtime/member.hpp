// This process as a member of the control plane: it asks hocketd before collective accesses and reports I/O phases.
//
// Fail-open: every wait is bounded (ARCHITECTURE.md, "Waiting"), and nothing here makes the application fail. Where
// hocketd is not there or does not answer, the process goes on without it until its next I/O phase.
//
// Thread-safe. Used in rank 0 of a world, and in rank 0 of a file's communicator.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "bus/client.hpp"
#include "event/event.hpp"
#include "event/server_map.hpp"
#include "runtime/lease.hpp"
#include "runtime/settings.hpp"

namespace hocket::runtime {

class Member {
 public:
  // `lost` gets one line each time that hocketd was missing where it was needed.
  Member(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost);

  // Says HELLO, without waiting for the answer.
  void join();

  // The first operation of an I/O phase comes: try again what failed in the phase before.
  void phase_begins() { may_retry_ = true; }

  // START_IO, and the wait for the grant. Gives the request's id, or none: go on uncoordinated.
  RequestId ask(event::StartIo start);

  // FINISH_IO of a request that `ask` gave.
  void finish(event::FinishIo finish);

  // Where nothing is asked, no other moment finds out that hocketd has gone, or come: tries to join again.
  void report(const event::IoPhase& phase);

  // Malleability. An event to hocketd; false: it is not there.
  bool tell(const event::Body& body) { return send(body); }
  // The next RECONFIGURE or PROCESSES_READY that has come; nothing where none has, or another thread waits for a grant.
  std::optional<event::Body> next_command();
  // The server map that came last, of epoch 0 where none has; never null, another pointer for each that came. Looks
  // whether one has come, unless another thread waits for a grant.
  std::shared_ptr<const event::ServerMap> server_map();
  bool connected() const { return fd_ >= 0; }
  // How often it has connected: what hocketd was told before, a new one does not know.
  std::int64_t connections() const { return connections_; }
  // HELLO to a hocketd that may be there again.
  bool reconnect();

  // BYE, the last word: the lease thread has ended and the connection is closed when it returns.
  void leave(const event::Bye& bye);

  // In the child after fork(): the connection is the parent's. Async-signal-safe.
  void abandon() noexcept;

 private:
  enum class Outcome { granted, alone, closed };

  bool connect();
  bool ready();
  bool send(const event::Body& body);
  Outcome wait_for_grant(RequestId request);
  std::optional<event::Event> next_event(Time deadline);
  void take(const event::Body& body);
  void take_what_came();
  void give_up(std::string_view why);
  void disconnect();

  const Settings settings_;
  const event::Hello hello_;
  const std::function<void(std::string_view)> lost_;

  std::mutex asking_;  // one thread waits for a grant at a time; taken before `connection_`
  std::mutex connection_;
  std::optional<bus::Client> client_;  // under connection_
  std::atomic<bool> may_retry_ = true;
  bool alone_ = false;   // under asking_: not asking until the next phase
  bool silent_ = false;  // under asking_: connected, but nothing is heard
  std::uint64_t last_request_ = 0;
  std::deque<event::Body> commands_;          // under asking_: that have come, and nobody has taken
  Duration lease_ = std::chrono::seconds{5};  // until WELCOME says
  std::mutex map_mutex_;
  std::shared_ptr<const event::ServerMap> map_ = std::make_shared<event::ServerMap>();  // under map_mutex_
  std::atomic<int> fd_ = -1;
  std::atomic<std::int64_t> connections_ = 0;
  LeaseKeeper leases_;
};

}  // namespace hocket::runtime
