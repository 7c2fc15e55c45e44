// First in first out: the oldest eligible request, alone. The baseline of AGIOS (TO), IOFSL, and ThemisIO.
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class Fifo final : public Algorithm {
 public:
  void added(PendingRequest&) override {}
  void removed(PendingRequest&, Departure) override {}
  ScheduleChoice choose(const ByAge& eligible, Time) override { return {*eligible.begin()}; }
};

}  // namespace

std::unique_ptr<Algorithm> make_fifo(const SchedulerSettings&) { return std::make_unique<Fifo>(); }

}  // namespace hocket::request_scheduler
