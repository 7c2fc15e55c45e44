// The control side of a server: it registers the server with the node's hocketd and reports its load, also as a
// heartbeat. Applications
// find the server through hocketd, which also notices a slow one.
//
// A server works without hocketd. If hocketd does not answer, the control side tries again once a second;
// applications that know the server's addresses keep using it. It runs in a thread of its own, because hocketd may be
// slow to answer. That thread touches nothing of the server but its `LoadCounters`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bus/client.hpp"
#include "bus/local_socket.hpp"
#include "event/event.hpp"
#include "event/server_map.hpp"
#include "forward/forward_service.hpp"
#include "server/load.hpp"

namespace hocket::server {

// Registration of one server with hocketd, and the thread that maintains it.
class Control {
 public:
  // Receives one line for the log, in the control thread.
  using LogSink = std::function<void(std::string_view)>;
  // Receives a server map of hocketd, or no value when the connection to it has ended, in the control thread. The
  // server calls `stored`, from any thread, when everything that it held before is in the files
  // (HocketServer::take_map).
  using MapSink = std::function<void(std::optional<event::ServerMap>, std::function<void()> stored)>;

  // Receives which servers keep data sets while some are drained; no value: none is known to be, because another
  // hocketd has been connected. In the control thread. The server calls `report` from any thread.
  using DataSetsSink = std::function<void(const event::MoveDataSets*, std::function<void(event::DataSetsLeft)> report)>;

  // Starts the thread, with all signals blocked. It connects to the hocketd at `socket`, and reconnects when the
  // connection is lost. `about` needs no pid. `load` must outlive this object, and so must `forwarding`, which takes
  // hocketd's commands about forwarded calls; nullptr: there is none.
  Control(
      std::string socket, event::Server about, const LoadCounters& load, LogSink say, MapSink take_map,
      DataSetsSink take_data_sets = [](const auto*, auto) {}, forward::ForwardService* forwarding = nullptr);
  ~Control() { leave(); }  // see `leave`
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Sends the final load and BYE, so that hocketd removes the server from the map at once. The thread has ended when
  // the call returns.
  void leave();

 private:
  struct ReportedLoad {  // counters of the latest report
    std::int64_t operations = 0, bytes = 0, service_ns = 0, queue = 0, held_bytes = 0;
    forward::ForwardTotals forwarding;
  };

  void run();
  void connect();
  void tell_load(Time now);
  void add_forwarding(event::ServerLoad& load, const forward::ForwardTotals& now_totals, Time now);
  void ask_applications();
  void use(const event::UseScheduler& wanted);
  void tell_stored();
  void tell_left();
  void take_in(Duration timeout);
  void hear();
  void take(const event::NewServerMap& map);
  void lost(std::string_view why);

  const std::string socket_;
  const event::Server about_;
  const LoadCounters& load_;
  const LogSink say_;
  const MapSink take_map_;
  const DataSetsSink take_data_sets_;
  forward::ForwardService* const forwarding_;
  // What other threads tell this one. Shared with the server, which may call back after this object has gone.
  struct Signals {
    std::atomic<bool> leaving = false;
    bus::Fd wake;  // eventfd
    void raise() const;
  };
  const std::shared_ptr<Signals> signals_ = std::make_shared<Signals>();
  // The newest map before which the server has stored what it held. Each connection has another object, because another
  // hocketd counts epochs anew.
  std::shared_ptr<std::atomic<std::int64_t>> stored_epoch_;
  // What the server keeps of data sets, if that is not sent yet. Each connection has another object, as above.
  struct LeftToTell {
    std::mutex mutex;
    std::optional<event::DataSetsLeft> left;
  };
  std::shared_ptr<LeftToTell> left_;
  // Processes whose applications hocketd is to be asked for. Shared with the service, which may ask later.
  struct ToAsk {
    std::mutex mutex;
    std::vector<std::string> pids;
  };
  const std::shared_ptr<ToAsk> to_ask_ = std::make_shared<ToAsk>();

  // Used by the thread only.
  std::optional<bus::Client> client_;  // empty while hocketd is not connected
  bool said_lost_ = false;             // the loss was logged, and no return since
  Time connect_at_{};                  // earliest time of the next attempt
  Time told_at_{};                     // when the latest report was sent
  Duration report_every_ = report_interval(1);
  ReportedLoad told_;
  Time told_shares_at_{};
  std::string told_shares_, told_weights_;
  std::int64_t told_epoch_ = 0;   // in MAP_STORED, since the connection began
  std::int64_t told_beats_ = -1;  // LoadCounters::beats then

  std::thread thread_;
};

}  // namespace hocket::server
