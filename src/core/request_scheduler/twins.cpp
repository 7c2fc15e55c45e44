// TWINS (Bez, Boito, Schnorr, Navaux, Méhaut: TWINS: Server Access Coordination in the I/O Forwarding Layer, PDP 2017;
// AGIOS, TWINS): in each time window the I/O node accesses one data server of the file system only, in the order of
// arrival. If that server has no request, the rest of the window is idle.
//
// Decided here: windows lie at multiples of their length, so I/O nodes with one clock stay in step, and `twins_first`
// lets them begin with different servers. AGIOS begins a window when the previous one is noticed to be over. A request
// belongs to the server of its first byte; one without a known offset may go in any window.
//
// Without a number of data servers in the settings, the servers are those that requests have named, by rising numbers.
// So I/O nodes that see files on the same data servers have the same windows, whatever these are called.
#include <algorithm>
#include <vector>

#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class TimeWindows final : public Algorithm {
 public:
  explicit TimeWindows(const SchedulerSettings& settings)
      : window_(settings.twins_window),
        stripe_(settings.twins_stripe),
        first_(settings.twins_first),
        learns_(settings.twins_servers == 0) {
    for (int number = 0; number < settings.twins_servers; ++number) servers_.push_back({number, {}});
  }

  void added(PendingRequest& request) override { waiting_of(request).insert(&request); }
  void removed(PendingRequest& request, Departure) override { waiting_of(request).erase(&request); }
  ScheduleChoice choose(const ByAge&, Time now) override {
    if (servers_.empty()) return {*anywhere_.begin()};
    const std::int64_t window = now.time_since_epoch() / window_;
    const ByAge& server = servers_[server_of(window)].waiting;
    if (server.empty() && anywhere_.empty()) return {nullptr, {}, 0, 0, next_window_with_requests(window)};
    if (server.empty()) return {*anywhere_.begin()};
    if (anywhere_.empty()) return {*server.begin()};
    return {std::min(*server.begin(), *anywhere_.begin(), OldestFirst{})};
  }
  bool needs_data_servers() const override { return learns_; }

 private:
  struct DataServer {
    int number = 0;
    ByAge waiting;
  };

  std::size_t server_of(std::int64_t window) const {
    return static_cast<std::size_t>(window + first_) % servers_.size();
  }
  ByAge& waiting_of(const PendingRequest& request) {
    const int named = request.request.data_server;
    if (learns_) return named < 0 ? anywhere_ : waiting_for(named);
    if (named >= 0) return servers_[static_cast<std::size_t>(named) % servers_.size()].waiting;
    if (request.request.extents.empty()) return anywhere_;
    return servers_[static_cast<std::size_t>(request.at / stripe_) % servers_.size()].waiting;
  }
  // Adds the server if it is new.
  ByAge& waiting_for(int number) {
    auto at = std::ranges::lower_bound(servers_, number, {}, &DataServer::number);
    if (at == servers_.end() || at->number != number) at = servers_.insert(at, DataServer{number, {}});
    return at->waiting;
  }
  // Precondition: a request waits for a data server.
  Time next_window_with_requests(std::int64_t window) const {
    do ++window;
    while (servers_[server_of(window)].waiting.empty());
    return Time{window_ * window};
  }

  Duration window_;
  std::int64_t stripe_;
  std::int64_t first_;
  bool learns_;                      // the data servers from the requests
  std::vector<DataServer> servers_;  // by number
  ByAge anywhere_;
};

}  // namespace

std::unique_ptr<Algorithm> make_twins(const SchedulerSettings& settings) {
  return std::make_unique<TimeWindows>(settings);
}

}  // namespace hocket::request_scheduler
