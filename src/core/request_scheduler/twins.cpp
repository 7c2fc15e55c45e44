// TWINS (Bez, Boito, Schnorr, Navaux, Méhaut: TWINS: Server Access Coordination in the I/O Forwarding Layer, PDP 2017;
// AGIOS, TWINS): in each time window the I/O node accesses one data server of the file system only, in the order of
// arrival. If that server has no request, the rest of the window is idle.
//
// Decided here: windows lie at multiples of their length, so I/O nodes with one clock stay in step, and `twins_first`
// lets them begin with different servers. AGIOS begins a window when the previous one is noticed to be over. A request
// belongs to the server of its first byte; one without a known offset may go in any window.
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
        waiting_(static_cast<std::size_t>(settings.twins_servers)) {}

  void added(PendingRequest& request) override { waiting_of(request).insert(&request); }
  void removed(PendingRequest& request, Departure) override { waiting_of(request).erase(&request); }
  ScheduleChoice choose(const ByAge&, Time now) override {
    const std::int64_t window = now.time_since_epoch() / window_;
    const ByAge& server = waiting_[server_of(window)];
    if (server.empty() && anywhere_.empty()) return {nullptr, {}, 0, 0, next_window_with_requests(window)};
    if (server.empty()) return {*anywhere_.begin()};
    if (anywhere_.empty()) return {*server.begin()};
    return {std::min(*server.begin(), *anywhere_.begin(), OldestFirst{})};
  }

 private:
  std::size_t server_of(std::int64_t window) const {
    return static_cast<std::size_t>(window + first_) % waiting_.size();
  }
  ByAge& waiting_of(const PendingRequest& request) {
    if (request.request.data_server >= 0) {
      return waiting_[static_cast<std::size_t>(request.request.data_server) % waiting_.size()];
    }
    if (request.request.extents.empty()) return anywhere_;
    return waiting_[static_cast<std::size_t>(request.at / stripe_) % waiting_.size()];
  }
  // Precondition: a request waits for a data server.
  Time next_window_with_requests(std::int64_t window) const {
    do ++window;
    while (waiting_[server_of(window)].empty());
    return Time{window_ * window};
  }

  Duration window_;
  std::int64_t stripe_;
  std::int64_t first_;
  std::vector<ByAge> waiting_;  // by data server
  ByAge anywhere_;
};

}  // namespace

std::unique_ptr<Algorithm> make_twins(const SchedulerSettings& settings) {
  return std::make_unique<TimeWindows>(settings);
}

}  // namespace hocket::request_scheduler
