// The control side of a server: it registers the server with the node's hocketd and reports its load. Applications
// find the server through hocketd, which also notices a slow one.
//
// A server works without hocketd. If hocketd does not answer, the control side tries again once a second;
// applications that know the server's addresses keep using it. It runs in a thread of its own, because hocketd may be
// slow to answer. That thread touches nothing of the server but its `LoadCounters`.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "bus/client.hpp"
#include "bus/local_socket.hpp"
#include "event/event.hpp"
#include "server/load.hpp"

namespace hocket::server {

// Registration of one server with hocketd, and the thread that maintains it.
class Control {
 public:
  // Receives one line for the log, in the control thread.
  using LogSink = std::function<void(std::string_view)>;

  // Starts the thread, with all signals blocked. It connects to the hocketd at `socket`, and reconnects when the
  // connection is lost. `about` needs no pid. `load` must outlive this object.
  Control(std::string socket, event::Server about, const LoadCounters& load, LogSink say);
  ~Control() { leave(); }  // see `leave`
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Sends the final load and BYE, so that hocketd removes the server from the map at once. The thread has ended when
  // the call returns.
  void leave();

 private:
  struct ReportedLoad {  // counters of the latest report
    std::int64_t operations = 0, bytes = 0, service_ns = 0, queue = 0, held_bytes = 0;
  };

  void run();
  void connect();
  void tell_load(Time now);
  void take_in(Duration timeout);
  void lost(std::string_view why);

  const std::string socket_;
  const event::Server about_;
  const LoadCounters& load_;
  const LogSink say_;
  std::atomic<bool> leaving_ = false;
  bus::Fd wake_;  // eventfd that `leave` writes to

  // Used by the thread only.
  std::optional<bus::Client> client_;  // empty while hocketd is not connected
  bool said_lost_ = false;             // the loss was logged, and no return since
  Time connect_at_{};                  // earliest time of the next attempt
  Time told_at_{};                     // when the latest report was sent
  ReportedLoad told_;

  std::thread thread_;
};

}  // namespace hocket::server
