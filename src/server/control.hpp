// The control side of a server: tells the node's hocketd that it is there and what it does, so that applications find
// it and a slow one is noticed.
//
// A server serves without hocketd: where none answers, it is looked for again once a second, and who has the server's
// addresses may go on using it meanwhile. Runs in one thread of its own, for hocketd may be slow to answer; it touches
// nothing of the server but the counters of `Load`.
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

class Control {
 public:
  // One line for the log; called from the thread.
  using Say = std::function<void(std::string_view)>;

  // `about` needs no pid. `load` must outlive it. Starts the thread, with all signals blocked; connects to the hocketd
  // that listens at `socket`, now and whenever it has gone.
  Control(std::string socket, event::Server about, const Load& load, Say say);
  // As `leave`.
  ~Control() { leave(); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Says the last of the load, and BYE: the server comes out of the map at once. The thread has ended when it returns.
  void leave();

 private:
  struct Told {  // of the counters
    std::int64_t operations = 0, bytes = 0, service_ns = 0, queue = 0, held_bytes = 0;
  };

  void run();
  void connect();
  void tell_load(Time now);
  void take_in(Duration timeout);
  void lost(std::string_view why);

  const std::string socket_;
  const event::Server about_;
  const Load& load_;
  const Say say_;
  std::atomic<bool> leaving_ = false;
  bus::Fd wake_;  // an eventfd: `leave` has been called

  // Of the thread.
  std::optional<bus::Client> client_;
  bool said_lost_ = false;
  Time connect_at_{};
  Time told_at_{};
  Told told_;

  std::thread thread_;
};

}  // namespace hocket::server
