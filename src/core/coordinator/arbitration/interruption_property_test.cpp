// Applications do I/O, pause on request and resume, die, or end in the middle. Thousands of random runs cover each
// access policy. Exclusive grants stay exclusive, every request is served, and every pause ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t most_interruptions = 2;

struct Case {
  const policy::Policy* policy;
  bool exclusive;
};

// A process group of an application. It does phases of operations one after the other, each with a given amount of
// work.
struct Group {
  std::uint64_t member = 0;
  std::uint64_t app = 0;
  int phases = 0;      // phases to be done
  int operations = 0;  // operations of the phase to be done
  Duration left{};     // remaining work of the operation
  std::uint64_t request = 0;
  std::int64_t phase_index = 0;
  enum class State { computing, waiting, running, paused, ended } state = State::computing;
  Time since{};           // start, while it runs
  bool stops = false;     // it was asked to pause, and will
  std::uint64_t due = 0;  // number of the event that it waits for; others are outdated
};

class InterruptionRun {
 public:
  InterruptionRun(const Case& what, std::uint64_t seed)
      : case_(what), random_(seed), coordinator_(settings(what, one_in(2) ? Duration{} : milliseconds{20})) {
    const std::size_t apps = 2 + random_() % 4;
    for (std::uint64_t app = 1; app <= apps; ++app) {
      for (std::size_t n = 1 + random_() % 2; n > 0; --n) add_group(app);
    }
  }

  void to_the_end() {
    for (int steps = 0; !queue_.empty(); ++steps) {
      ASSERT_LT(steps, 200'000) << "it does not end";
      const auto deadline = coordinator_.deadline();
      if (deadline && *deadline <= queue_.top().time) {
        now_ = std::max(now_, *deadline);
        send(0, event::Tick{});
        continue;
      }
      const Entry next = queue_.top();
      queue_.pop();
      now_ = next.time;
      if (groups_[next.group].due == next.number) happen(groups_[next.group]);
      check();
    }
    for (const Group& group : groups_) {
      // A group that waits while nothing is due would wait forever.
      EXPECT_EQ(group.state, Group::State::ended) << "member " << group.member << " was not served";
    }
  }
  int paused = 0;
  int answered_late = 0;

 private:
  struct Entry {
    Time time;
    std::size_t group;
    std::uint64_t number;
    bool operator<(const Entry& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);  // the earliest comes first
    }
  };

  static CoordinatorSettings settings(const Case& what, Duration linger) {
    CoordinatorSettings settings{{what.policy}, seconds{1000}, linger, seconds{40}, seconds{30}};
    settings.access.most_interruptions = most_interruptions;
    return settings;
  }
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  Duration some(std::int64_t most_ms) {
    return milliseconds{1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most_ms))};
  }
  std::size_t index(const Group& group) const { return static_cast<std::size_t>(&group - groups_.data()); }
  void due_in(Group& group, Duration later) {
    group.due = ++numbers_;
    queue_.push({now_ + later, index(group), group.due});
  }

  void add_group(std::uint64_t app) {
    groups_.push_back({});
    Group& group = groups_.back();
    group.member = groups_.size();
    group.app = app;
    group.phases = 1 + static_cast<int>(random_() % 3);
    now_ = Time{} + seconds{1};
    event::Hello hello{"job" + std::to_string(app), "a" + std::to_string(app), "/bin/a", "mpich", {}, 1, 1 << app};
    send(group.member, hello);
    group.operations = 1 + static_cast<int>(random_() % 3);
    due_in(group, some(3000));
  }

  void happen(Group& group) {
    using State = Group::State;
    switch (group.state) {
      case State::computing: return ask(group);
      case State::running: return group.stops ? stop(group) : finish(group);
      default: FAIL() << "nothing is due while it waits";
    }
  }

  void ask(Group& group) {
    group.left = some(one_in(3) ? 20'000 : 500);
    group.state = Group::State::waiting;
    const std::int64_t bytes = one_in(3) ? 0 : static_cast<std::int64_t>(random_() % 1000);
    send(group.member, event::StartIo{RequestId{++group.request}, "disk", "/f", "op", bytes, bytes * 3});
    if (group.state == Group::State::waiting && one_in(30)) {  // the group gives up
      send(group.member, event::FinishIo{RequestId{group.request}, {}, 0, false});
      next(group);
    }
  }

  void finish(Group& group) {
    const bool last = group.operations == 1;
    group.state = Group::State::computing;
    send(group.member, event::FinishIo{RequestId{group.request}, now_ - group.since, 10, last && one_in(2)});
    next(group);
  }

  void next(Group& group) {
    group.state = Group::State::computing;
    group.stops = false;
    if (one_in(60)) return end(group, event::Lost{"it died"});
    if (--group.operations > 0) return due_in(group, some(30));
    event::IoPhase phase;
    phase.index = group.phase_index++;
    phase.end = phase.start = now_;
    phase.io = some(20'000);
    phase.bytes_written = 10;
    phase.target = "disk";
    send(group.member, phase);
    if (--group.phases == 0) return end(group, event::Bye{});
    group.operations = 1 + static_cast<int>(random_() % 3);
    due_in(group, some(5000));
  }

  void end(Group& group, event::Body how) {
    group.state = Group::State::ended;
    ++group.due;
    send(group.member, std::move(how));
  }

  void stop(Group& group) {
    group.stops = false;
    group.left -= std::min(group.left - Duration{1}, now_ - group.since);
    group.state = Group::State::paused;
    ++paused;
    send(group.member, event::PausedIo{RequestId{group.request}, 5, 1});
    if (group.state == Group::State::paused && one_in(40)) end(group, event::Lost{"it was killed while paused"});
  }

  void send(std::uint64_t member, event::Body body) {
    const event::Event event{now_, {"node1", "", MemberId{member}}, std::move(body)};
    const std::vector<Command> commands = coordinator_.handle(event);
    for (const Command& command : commands) {
      if (command.to.value == 0 || command.to.value > groups_.size()) continue;
      Group& group = groups_[command.to.value - 1];
      if (const auto* grant = std::get_if<event::GrantIo>(&command.body)) granted(group, *grant);
      if (const auto* pause = std::get_if<event::PauseIo>(&command.body)) told_to_pause(group, *pause);
      EXPECT_FALSE(std::holds_alternative<event::LeaseExpired>(command.body));
    }
  }

  void granted(Group& group, const event::GrantIo& grant) {
    if (group.state == Group::State::running || grant.request.value != group.request) return;  // a new share
    ASSERT_TRUE(group.state == Group::State::waiting || group.state == Group::State::paused) << "nothing was asked for";
    group.state = Group::State::running;
    group.since = now_;
    group.stops = false;
    due_in(group, group.left);
  }

  void told_to_pause(Group& group, const event::PauseIo& pause) {
    if (group.state != Group::State::running || pause.request.value != group.request) return;
    EXPECT_FALSE(group.stops) << "told twice";
    EXPECT_LE(interruptions_of(group), most_interruptions);
    const Duration end = group.left - (now_ - group.since);
    const Duration stop = some(300);
    if (one_in(5) || stop >= end) {  // the operation ends before it can pause, or cannot pause
      ++answered_late;
      return;
    }
    group.stops = true;
    due_in(group, stop);
  }

  std::int64_t interruptions_of(const Group& group) const {
    for (const auto& [id, application] : coordinator_.cluster().applications()) {
      if (application.job == "job" + std::to_string(group.app)) return application.demand.interruptions;
    }
    return 0;
  }

  void check() const {
    if (!case_.exclusive) return;
    std::uint64_t app = 0;
    for (const Group& group : groups_) {
      if (group.state != Group::State::running) continue;
      EXPECT_TRUE(app == 0 || app == group.app) << app << " and " << group.app << " have the target at once";
      app = group.app;
    }
  }

  const Case case_;
  std::mt19937_64 random_;
  Coordinator coordinator_;
  std::vector<Group> groups_;
  std::priority_queue<Entry> queue_;
  std::uint64_t numbers_ = 0;
  Time now_{};
};

class Interruption : public ::testing::TestWithParam<Case> {};

TEST_P(Interruption, EveryoneIsServedAndAPauseEnds) {
  int paused = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= 4000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    InterruptionRun run{GetParam(), seed};
    run.to_the_end();
    paused += run.paused;
    late += run.answered_late;
  }
  const bool interrupts = GetParam().policy == &policy::interrupt || GetParam().policy == &policy::dynamic ||
                          GetParam().policy == &policy::cost;
  EXPECT_EQ(paused > 300, interrupts) << paused;
  EXPECT_EQ(late > 100, interrupts) << late;
}

INSTANTIATE_TEST_SUITE_P(Policies, Interruption,
                         ::testing::Values(Case{&policy::fcfs, true}, Case{&policy::interrupt, true},
                                           Case{&policy::dynamic, false}, Case{&policy::cost, false},
                                           Case{&policy::set_10, false}, Case{&policy::interfere, false}),
                         [](const auto& one) {
                           std::string name{one.param.policy->name};
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace hocket::coordinator
