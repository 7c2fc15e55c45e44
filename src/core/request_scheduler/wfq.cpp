// Weighted fair queueing between applications, as start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996; for
// storage Jin, Chase, Kaur: Interposed Proportional Sharing, SIGMETRICS 2004). AGIOS has a weighted round robin of that
// name.
//
// Each application has a start tag: the virtual time at which its oldest request would begin if the server were divided
// by weight. The least tag is next. A request that is dispatched raises the tag of its application by cost / weight,
// and virtual time is the least tag at the last dispatch. So an application that was idle does not save up a share.
//
// A request costs its bytes and `request_cost`. Requests are not merged, since others' would come along for nothing.
#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class WeightedFair final : public Algorithm {
 public:
  explicit WeightedFair(const SchedulerSettings& settings) : request_cost_(settings.request_cost) {}

  void added(PendingRequest& request) override {
    Tagged& application = tagged_[request.request.application];
    if (application.waiting.empty()) {
      application.tag = std::max(application.tag, virtual_time_);
      by_tag_.emplace(application.tag, request.request.application);
    }
    application.waiting.insert(&request);
  }

  void removed(PendingRequest& request, Departure why) override {
    const auto found = tagged_.find(request.request.application);
    Tagged& application = found->second;
    const double least_tag = by_tag_.begin()->first;  // below this one's if the request goes first as overdue
    by_tag_.erase({application.tag, found->first});
    application.waiting.erase(&request);
    if (why == Departure::dispatched) {
      virtual_time_ = std::max(virtual_time_, least_tag);
      application.tag += static_cast<double>(request.bytes() + request_cost_) / request.request.weight;
    }
    if (!application.waiting.empty()) by_tag_.emplace(application.tag, found->first);
    if (by_tag_.empty()) {
      tagged_.clear();  // nobody waits: all begin anew
      virtual_time_ = 0;
    } else if (tagged_.size() > 2 * by_tag_.size() + 64) {
      std::erase_if(tagged_,
                    [&](const auto& one) { return one.second.waiting.empty() && one.second.tag <= virtual_time_; });
    }
  }

  ScheduleChoice choose(const ByAge&, Time) override {
    return {*tagged_.find(by_tag_.begin()->second)->second.waiting.begin()};
  }

 private:
  struct Tagged {
    double tag = 0;
    ByAge waiting;
  };

  std::int64_t request_cost_;
  double virtual_time_ = 0;
  std::unordered_map<std::uint64_t, Tagged> tagged_;   // by application
  std::set<std::pair<double, std::uint64_t>> by_tag_;  // applications that have waiting requests
};

}  // namespace

std::unique_ptr<Algorithm> make_wfq(const SchedulerSettings& settings) {
  return std::make_unique<WeightedFair>(settings);
}

}  // namespace hocket::request_scheduler
