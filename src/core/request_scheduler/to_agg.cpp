// Time order with aggregation (AGIOS, TO-agg): the oldest request, with those that touch it.
//
// AGIOS merges a request into a waiting one when it arrives, and bounds the number of merged requests. Here they are
// merged when the older one is chosen, which gives the same batches, and the bytes are bounded as well.
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class TimeOrderAggregated final : public Algorithm {
 public:
  void added(PendingRequest&) override {}
  void removed(PendingRequest&, Departure) override {}
  ScheduleChoice choose(const ByAge& eligible, Time) override { return {*eligible.begin(), Merging::touching}; }
};

}  // namespace

std::unique_ptr<Algorithm> make_to_agg(const SchedulerSettings&) { return std::make_unique<TimeOrderAggregated>(); }

}  // namespace hocket::request_scheduler
