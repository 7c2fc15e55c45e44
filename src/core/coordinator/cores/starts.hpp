// Starts keeps cores for applications that are about to start (CLARISSE+FlexMPI, sections 3 and 4.4: a new application
// asks the resource manager before it starts). While others return cores that policies gave them, the new application
// waits, within its time limit. It never waits for cores that nobody is going to return.
//
// The cores count as taken under an id of their own, so policies cannot give them away. With the application's HELLO,
// the application itself takes them. Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/command.hpp"
#include "model/cores.hpp"

namespace hocket::coordinator {

class Starts {
 public:
  // Both arguments must outlive this object. `decisions` counts the published decisions.
  Starts(model::Cores& cores, std::int64_t& decisions) : cores_(cores), decisions_(decisions) {}

  // Handles ASK_CORES: claims the cores, free or not. `answer` must follow.
  void ask(const Moment& moment, const event::AskCores& asked);
  // Answers the starts that need not wait any more, and tells new ones that they must. `coming` is the number of cores
  // whose return was requested from others.
  void answer(const Moment& moment, std::int64_t coming);
  // Forgets the starts for which that member still waits: it has left.
  void leave(MemberId member);
  // Hands the cores over to an application of that job that has arrived: it claims its own.
  void joined(const std::string& job);
  // Gives up the cores of applications that were answered and have not come.
  void expire(Time now);

  // Returns the next time at which a wait or the keeping of cores ends.
  std::optional<Time> deadline() const;
  bool empty() const { return starts_.empty(); }

 private:
  struct Start {
    MemberId asker;
    AppId id;  // under which the cores are taken
    std::string job;
    std::string application;
    std::int64_t processes = 0;
    std::int64_t missing_at_first = 0;
    Time asked{};
    Time until{};           // end of the wait; answered: time at which the cores are given up
    bool told = false;      // that it has to wait
    bool answered = false;  // it may start
  };

  std::int64_t missing(std::size_t which) const;
  void may_start(const Moment& moment, Start& start, std::int64_t missing);

  model::Cores& cores_;
  std::int64_t& decisions_;
  std::vector<Start> starts_;  // in order of arrival
  std::uint64_t made_ = 0;
};

}  // namespace hocket::coordinator
