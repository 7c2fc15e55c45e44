// Resizes and joins in random and hostile orders with thousands of fixed seeds. A model that knows only the events that
// went in and the commands that came out checks them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t resizing_cores = 12;
constexpr Duration resizing_join_limit = seconds{2};
const CoordinatorSettings resizing_settings{{&policy::fcfs}, seconds{10},    milliseconds{100},  std::chrono::hours{24},
                                            seconds{1},      resizing_cores, resizing_join_limit};
constexpr std::uint64_t resizing_members = 6;  // two for each application
constexpr std::uint64_t tools = 3;             // numbered from 101

std::uint64_t application_of(std::uint64_t member) { return (member - 1) / 2; }
std::string name_of(std::uint64_t application) { return "app" + std::to_string(application); }

class ResizeObserver {
 public:
  void pass(Coordinator& coordinator, const event::Event& event) {
    const std::vector<Command> commands = coordinator.handle(event);
    now_ = std::max(now_, event.time);
    from_ = event.origin.member.value;
    answers_ = 0;
    std::visit([this](const auto& body) { before(body); }, event.body);
    for (const Command& command : commands) {
      std::visit([this, &command](const auto& body) { told(command.to.value, body); }, command.body);
    }
    std::visit([this](const auto& body) { after(body); }, event.body);
    for (const auto& [app, join] : joins_) {
      if (join.ready.size() >= join.count) continue;
      ASSERT_TRUE(coordinator.deadline()) << "processes are waited for without end";
      EXPECT_LE(*coordinator.deadline(), join.until);
      const bool ticked = std::holds_alternative<event::Tick>(event.body);
      EXPECT_FALSE(ticked && join.until <= now_) << "a join outlived its bound";
    }
    std::int64_t used = 0;
    for (const auto& [id, application] : coordinator.cluster().applications()) {
      const event::Application row = coordinator.describe(application, now_);
      EXPECT_GE(row.processes, 0);
      EXPECT_GE(row.sleeping, 0);
      EXPECT_EQ(row.resizing_to != 0, resizes_.contains(index_of(row.application)));
      used += row.resizing_to != 0 ? std::max(row.processes, row.resizing_to) : row.processes;
    }
    EXPECT_FALSE(grew_ && used > resizing_cores) << "a resize took more cores than there are";
    grew_ = false;
  }

  std::size_t resized() const { return resized_; }
  std::size_t refused() const { return refused_; }
  std::size_t withdrawn() const { return withdrawn_; }
  std::size_t joined() const { return joined_; }
  std::size_t join_failed() const { return join_failed_; }
  std::size_t under_way() const { return resizes_.size() + joins_.size(); }

 private:
  struct Resize {
    std::uint64_t request = 0;
    std::uint64_t tool = 0;
  };
  struct Join {
    std::uint64_t request = 0;
    std::size_t count = 0;
    std::uint64_t asking = 0;
    Time until{};
    std::set<std::uint64_t> ready;
  };

  static std::uint64_t index_of(const std::string& name) { return static_cast<std::uint64_t>(name.back() - '0'); }
  bool knows(std::uint64_t member) const { return known_.contains(member); }

  // ---- events
  void before(const event::Hello&) { known_.insert(from_); }
  void before(const event::Malleable& said) {
    if (!knows(from_)) return;
    commanding_[application_of(from_)] = from_;
    processes_[application_of(from_)] = said.processes;
  }
  void before(const event::Reconfiguration& record) {
    if (knows(from_) && record.done) processes_[application_of(from_)] = record.targets;
  }
  void before(const event::ProcessReady& said) {
    const auto join = joins_.find(application_of(from_));
    if (!knows(from_) || join == joins_.end() || join->second.request != said.request.value) return;
    if (join->second.ready.size() < join->second.count) join->second.ready.insert(from_);
  }
  template <class Other>
  void before(const Other&) {}

  void after(const event::Resize&) { EXPECT_EQ(answers_, 1) << "a tool must be told, or the application asked"; }
  void after(const event::Reconfiguration&) {
    if (knows(from_)) joins_.erase(application_of(from_));
  }
  void after(const event::Bye&) { gone(); }
  void after(const event::Lost&) { gone(); }
  template <class Other>
  void after(const Other&) {}

  void gone() {
    if (!known_.erase(from_)) return;
    const std::uint64_t app = application_of(from_);
    if (commanding_[app] == from_) commanding_[app] = 0;
    const bool last = std::none_of(known_.begin(), known_.end(), [&](auto m) { return application_of(m) == app; });
    if (!last) return;
    EXPECT_FALSE(resizes_.contains(app)) << "a tool waits for an application that is gone";
    EXPECT_FALSE(joins_.contains(app)) << "processes of an application that is gone were not stopped";
    processes_.erase(app);
  }

  // ---- commands
  void told(std::uint64_t to, const event::Reconfigure& command) {
    const std::uint64_t app = application_of(to);
    EXPECT_EQ(commanding_[app], to) << "asked a member that does not command";
    EXPECT_GE(command.processes, 1);
    EXPECT_TRUE(requests_.insert(command.request.value).second) << "a request number was used twice";
    EXPECT_TRUE(resizes_.emplace(app, Resize{command.request.value, from_}).second) << "two resizes at once";
    grew_ = command.processes > processes_[app];
    ++answers_;
  }
  void told(std::uint64_t to, const event::Reconfiguration& record) {
    const auto resize = resizes_.find(application_of(from_));
    ASSERT_NE(resize, resizes_.end()) << "nobody asked";
    EXPECT_EQ(resize->second.tool, to);
    EXPECT_EQ(resize->second.request, record.request.value);
    resizes_.erase(resize);
    ++resized_;
  }
  void told(std::uint64_t to, const event::Refused&) {
    if (to <= resizing_members) return;  // a member without WELCOME
    ++refused_;
    if (from_ > resizing_members) {
      ++answers_;
      return;
    }
    const auto resize = resizes_.find(application_of(from_));
    ASSERT_NE(resize, resizes_.end()) << "refused without having been asked";
    EXPECT_EQ(resize->second.tool, to);
    resizes_.erase(resize);
  }
  void told(std::uint64_t to, const event::WithdrawResize& command) {
    const auto resize = resizes_.find(application_of(command.begun ? from_ : to));
    ASSERT_NE(resize, resizes_.end()) << "withdrew what nobody asked for";
    EXPECT_EQ(resize->second.request, command.request.value);
    EXPECT_EQ(resize->second.tool, command.begun ? to : from_) << "of another tool";
    ++withdrawn_;
  }
  void told(std::uint64_t to, const event::StartProcesses& command) {
    EXPECT_EQ(to, 0u);
    const std::uint64_t app = application_of(from_);
    Join join{command.request.value, static_cast<std::size_t>(command.count), from_, now_ + resizing_join_limit, {}};
    EXPECT_TRUE(joins_.emplace(app, join).second) << "two joins at once";
    apps_[command.app.value] = app;
  }
  void told(std::uint64_t to, const event::StopProcesses& command) {
    EXPECT_EQ(to, 0u);
    EXPECT_TRUE(apps_.contains(command.app.value));
    EXPECT_EQ(joins_.erase(apps_[command.app.value]), 1u) << "stopped what was not started";
  }
  void told(std::uint64_t, const event::ProcessesReady& ready) {
    if (!ready.failed.empty()) {
      ++join_failed_;
      return;
    }
    const auto join = joins_.find(application_of(from_));
    ASSERT_NE(join, joins_.end());
    EXPECT_EQ(join->second.ready.size(), join->second.count) << "told too early";
    EXPECT_EQ(join->second.request, ready.request.value);
    ++joined_;
  }
  template <class Other>
  void told(std::uint64_t, const Other&) {}

  Time now_{};
  std::uint64_t from_ = 0;
  int answers_ = 0;
  bool grew_ = false;
  std::set<std::uint64_t> known_;
  std::map<std::uint64_t, std::uint64_t> commanding_;
  std::map<std::uint64_t, std::int64_t> processes_;
  std::map<std::uint64_t, Resize> resizes_;
  std::map<std::uint64_t, Join> joins_;
  std::map<std::uint64_t, std::uint64_t> apps_;  // application by the coordinator's number
  std::set<std::uint64_t> requests_;
  std::size_t resized_ = 0, refused_ = 0, withdrawn_ = 0, joined_ = 0, join_failed_ = 0;
};

class ResizeChaos {
 public:
  explicit ResizeChaos(std::uint64_t seed) : random_(seed) {}

  event::Event next(std::optional<Time> deadline) {
    time_ += milliseconds{pick(100)};
    if (deadline && one_in(12)) time_ = std::max(time_, *deadline);
    std::uint64_t from = 1 + pick(resizing_members);
    event::Body body = body_of(from);
    return {time_, {"node1", "", MemberId{from}}, std::move(body)};
  }
  Time time() const { return time_; }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }
  std::int64_t small(std::uint64_t below) { return static_cast<std::int64_t>(pick(below)); }

  event::Body body_of(std::uint64_t& from) {
    switch (pick(15)) {
      case 0:
        return event::Hello{
            "job" + name_of(application_of(from)), name_of(application_of(from)), "/p", "mpich", "0.1", 1, small(4)};
      case 1:
      case 2: return event::Malleable{1 + small(5), small(40), small(3), one_in(2) ? "merge" : "baseline"};
      case 3:
      case 4:
      case 5: {
        const std::uint64_t application = pick(4);  // the last application never runs
        from = 101 + pick(tools);
        return event::Resize{name_of(application), small(9) - 2, one_in(2), one_in(3) ? small(50) : 0,
                             one_in(8) ? "n1:1 n2" : ""};
      }
      case 6:
      case 7: return record();
      case 8: return event::StartProcesses{RequestId{1 + pick(3)}, small(3), "port", 1, {}, {}};
      case 9:
      case 10: return event::ProcessReady{RequestId{1 + pick(3)}};
      case 11: return one_in(3) ? event::Body{event::StopProcesses{RequestId{1 + pick(3)}, {}}} : event::Tick{};
      case 12: return event::ProcessFailed{RequestId{1 + pick(3)}, AppId{1 + pick(4)}, "ended"};
      case 13:
        if (one_in(2)) return event::WithdrawResize{RequestId{1 + pick(12)}, true};
        from = 101 + pick(tools);
        return one_in(2) ? event::Body{event::WithdrawResize{}} : event::Body{event::Lost{}};
      default: return one_in(2) ? event::Body{event::Bye{}} : one_in(2) ? event::Body{event::Lost{}} : event::Tick{};
    }
  }
  event::Body record() {
    event::Reconfiguration record;
    record.request = RequestId{one_in(4) ? 0 : 1 + pick(12)};
    record.done = one_in(2);
    record.targets = 1 + small(5);
    record.iteration = small(40);
    record.woken = small(3);
    record.put_to_sleep = small(3);
    return record;
  }

  std::mt19937_64 random_;
  Time time_ = Time{} + seconds{1};
};

TEST(ResizingProperties, HoldInAnyOrderOfEvents) {
  std::size_t resized = 0, refused = 0, withdrawn = 0, joined = 0, join_failed = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Coordinator coordinator{resizing_settings};
    ResizeObserver observer;
    ResizeChaos chaos{seed};
    for (int i = 0; i < 250; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      observer.pass(coordinator, event);
      if (::testing::Test::HasFailure()) FAIL() << "after event " << i << ", " << event::type_name(event.body);
    }
    for (std::uint64_t member = 1; member <= resizing_members; ++member) {
      observer.pass(coordinator, {chaos.time(), {"node1", "", MemberId{member}}, event::Lost{}});
    }
    EXPECT_EQ(observer.under_way(), 0u) << "something is left behind";
    EXPECT_EQ(coordinator.deadline(), std::nullopt);
    resized += observer.resized();
    refused += observer.refused();
    withdrawn += observer.withdrawn();
    joined += observer.joined();
    join_failed += observer.join_failed();
  }
  // Checks that the orders were hostile enough to reach the cases in question.
  EXPECT_GT(resized, 1'000u);
  EXPECT_GT(refused, 10'000u);
  EXPECT_GT(withdrawn, 1'000u);
  EXPECT_GT(joined, 300u);
  EXPECT_GT(join_failed, 1'000u);
}

TEST(ResizingProperties, TheSameEventsGiveTheSameCommands) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Coordinator coordinator{resizing_settings};
    Coordinator other{resizing_settings};
    ResizeChaos chaos{seed};
    for (int i = 0; i < 250; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      const auto commands = coordinator.handle(event);
      const auto again = other.handle(event);
      ASSERT_EQ(commands.size(), again.size());
      for (std::size_t c = 0; c < commands.size(); ++c) {
        ASSERT_EQ(event::properties_of({event.time, {"", "", commands[c].to}, commands[c].body}),
                  event::properties_of({event.time, {"", "", again[c].to}, again[c].body}));
      }
    }
  }
}

}  // namespace
}  // namespace hocket::coordinator
