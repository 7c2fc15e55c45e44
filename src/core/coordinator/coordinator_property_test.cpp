// Random and hostile orders of events with thousands of fixed seeds. A simple model, which knows only the events that
// went in and the commands that came out, checks the coordinator.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration lease = seconds{10};
constexpr Duration idle_hold = milliseconds{100};
// The time slice is longer than any of these runs: coordinator_test.cpp tests it.
constexpr Duration long_turn = std::chrono::hours{24 * 365 * 100};
const CoordinatorSettings long_turn_settings{{&policy::fcfs}, lease, idle_hold, long_turn, seconds{1}};

// An observer of events and commands that checks what must never happen. It is written for clarity: every question is a
// walk through all requests.
class RequestObserver {
 public:
  // Passes `event` to the coordinator and observes the commands.
  void pass(Coordinator& coordinator, const event::Event& event) {
    const std::vector<Command>& commands = coordinator.handle(event);
    const std::optional<Time> deadline = coordinator.deadline();
    now_ = std::max(now_, event.time);
    from_ = event.origin.member.value;
    commands_ = &commands;
    std::visit([this](const auto& body) { before(body); }, event.body);
    for (const Command& command : commands) {
      std::visit([this, &command](const auto& body) { told(command.to.value, body); }, command.body);
    }
    check_state(deadline, std::holds_alternative<event::Tick>(event.body));
  }

  bool anybody_waits() const {
    return std::any_of(requests_.begin(), requests_.end(), [](const auto& r) { return !r.second.granted; });
  }
  std::size_t requests() const { return requests_.size(); }
  std::size_t granted_after_waiting() const { return granted_after_waiting_; }
  std::size_t expired() const { return expired_; }
  std::size_t kept_used() const { return kept_used_; }
  std::size_t holds_ended() const { return holds_ended_; }
  std::size_t deadlocks() const { return deadlocks_; }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // member, request
  struct Request {
    std::uint64_t app = 0;
    std::string target;
    std::uint64_t arrival = 0;
    bool granted = false;
    Time expires{};
    Time since{};
  };
  struct Member {
    std::uint64_t app = 0;
    std::uint64_t last_request = 0;
    std::int64_t last_phase = -1;
  };

  // ---- events

  void before(const event::Hello& hello) {
    ASSERT_EQ(commands_->size(), 1u);
    const auto& welcome = std::get<event::Welcome>(commands_->front().body);
    if (hello.mpi.empty() && hello.processes <= 0) return;
    if (const auto known = members_.find(from_); known != members_.end()) {
      EXPECT_EQ(welcome.app.value, known->second.app);
      return;
    }
    const auto job = jobs_.find(hello.job);
    if (job != jobs_.end() && members_of(job->second) > 0) {
      EXPECT_EQ(welcome.app.value, job->second) << "one job, one application";
    } else {
      EXPECT_TRUE(apps_ever_.insert(welcome.app.value).second) << "an id is used twice";
    }
    jobs_[hello.job] = welcome.app.value;
    members_[from_].app = welcome.app.value;
    names_[welcome.app.value] = welcome.application;
    std::set<std::string> names;
    std::set<std::uint64_t> apps;
    for (const auto& [id, member] : members_) {
      apps.insert(member.app);
      names.insert(names_[member.app]);
    }
    EXPECT_EQ(names.size(), apps.size()) << "two applications of one name";
  }

  void before(const event::StartIo& start) {
    const auto member = members_.find(from_);
    if (member == members_.end() || start.request.value <= member->second.last_request) {
      ASSERT_EQ(commands_->size(), 1u);
      EXPECT_TRUE(std::holds_alternative<event::Refused>(commands_->front().body));
      return;
    }
    member->second.last_request = start.request.value;
    requests_[{from_, start.request.value}] = {member->second.app, start.target, ++arrivals_, false, {}, now_};
    refresh(start.target);
    answers_to_ = Key{from_, start.request.value};
  }

  void before(const event::FinishIo& finish) {
    const auto found = requests_.find({from_, finish.request.value});
    if (found == requests_.end()) return;
    const Request request = found->second;
    refresh(request.target);
    requests_.erase(found);
    if (request.granted && grants(request.app, request.target) == 0) {
      kept_.erase({request.target, request.app});
      if (!finish.phase_over) kept_[{request.target, request.app}] = now_ + idle_hold;
    }
  }

  // The prepared phase is complete. While the application has requests, the phase goes on.
  void before(const event::InformIo& inform) {
    const auto member = members_.find(from_);
    if (member == members_.end() || !inform.phase_over) return;
    const std::uint64_t app = member->second.app;
    if (std::any_of(requests_.begin(), requests_.end(), [&](const auto& r) { return r.second.app == app; })) return;
    holds_ended_ += std::erase_if(kept_, [&](const auto& kept) { return kept.first.second == app; });
  }

  void before(const event::RenewIo& renew) {
    const auto found = requests_.find({from_, renew.request.value});
    if (found != requests_.end() && found->second.granted) refresh(found->second.target);
  }

  void before(const event::IoPhase& phase) {
    const auto member = members_.find(from_);
    if (member == members_.end() || phase.index <= member->second.last_phase) return;
    member->second.last_phase = phase.index;
    std::erase_if(kept_, [&](const auto& kept) { return kept.first.second == member->second.app; });
  }

  void before(const event::Bye&) { gone(); }
  void before(const event::Lost&) { gone(); }
  void before(const event::SetPolicy& set) {
    if (const auto found = policy::find_policy(set.policy)) {
      exclusive_ = found.value() == &policy::fcfs;
    } else {
      ASSERT_EQ(commands_->size(), 1u);
      EXPECT_TRUE(std::holds_alternative<event::Refused>(commands_->front().body));
    }
  }
  template <class Other>
  void before(const Other&) {}

  void gone() {
    const auto member = members_.find(from_);
    if (member == members_.end()) return;
    const std::uint64_t app = member->second.app;
    std::erase_if(requests_, [&](const auto& request) { return request.first.first == from_; });
    members_.erase(member);
    if (members_of(app) == 0) std::erase_if(kept_, [&](const auto& kept) { return kept.first.second == app; });
  }

  // ---- commands

  void told(std::uint64_t to, const event::GrantIo& grant) {
    const auto found = requests_.find({to, grant.request.value});
    ASSERT_NE(found, requests_.end()) << "a grant of nothing";
    Request& request = found->second;
    EXPECT_FALSE(request.granted) << "granted twice";
    EXPECT_EQ(grant.target, request.target);
    const auto kept = kept_.find({request.target, request.app});
    const bool is_kept = kept != kept_.end() && kept->second > now_;
    kept_used_ += is_kept;
    if (exclusive_ && !is_kept && grants(request.app, request.target) == 0) {
      if (now_ - request.since >= seconds{5} && is_deadlocked(request))
        ++deadlocks_;
      else
        check_turn(request);
      if (answers_to_ != found->first) ++granted_after_waiting_;
    }
    request.granted = true;
    request.expires = now_ + lease;
    kept_.erase({request.target, request.app});
    if (answers_to_ == found->first) answers_to_.reset();
  }

  // True if an application that has the target waits, directly or through others, for what the request's application
  // has.
  bool is_deadlocked(const Request& request) const {
    std::set<std::uint64_t> reached;
    add_holders(request.target, reached);
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const auto& [key, other] : requests_) {
        if (!other.granted && reached.count(other.app) > 0) add_holders(other.target, reached);
      }
    }
    return reached.count(request.app) > 0;
  }
  void add_holders(const std::string& target, std::set<std::uint64_t>& to) const {
    for (const auto& [key, other] : requests_) {
      if (other.granted && other.target == target) to.insert(other.app);
    }
  }

  // Precondition: the request's application does not have the target already.
  void check_turn(const Request& request) {
    for (const auto& [key, other] : requests_) {
      if (other.target != request.target) continue;
      EXPECT_FALSE(other.granted && other.app != request.app) << "a target held by two applications";
      EXPECT_TRUE(other.granted || other.arrival >= request.arrival) << "one that came earlier was passed over";
    }
    for (const auto& [target_app, until] : kept_) {
      EXPECT_FALSE(target_app.first == request.target && until > now_) << "granted while kept for another";
    }
  }

  void told(std::uint64_t to, const event::QueuedIo& queued) {
    const auto found = requests_.find({to, queued.request.value});
    ASSERT_NE(found, requests_.end()) << "nothing is queued";
    EXPECT_FALSE(found->second.granted);
    std::int64_t before = 0;
    for (const auto& [key, other] : requests_) {
      before += !other.granted && other.target == found->second.target && other.arrival < found->second.arrival;
    }
    EXPECT_EQ(queued.position, before + 1);
    if (answers_to_ != found->first) return;
    EXPECT_TRUE(somebody_has(found->second.target, now_ + Duration{1})) << "asked for a free target, and has to wait";
    answers_to_.reset();
  }

  void told(std::uint64_t to, const event::LeaseExpired& expired) {
    const auto found = requests_.find({to, expired.request.value});
    ASSERT_NE(found, requests_.end()) << "the lease of nothing";
    EXPECT_TRUE(found->second.granted);
    EXPECT_LE(found->second.expires, now_) << "a lease that was not over";
    ++expired_;
    requests_.erase(found);
  }
  template <class Other>
  void told(std::uint64_t, const Other&) {}

  // ---- always

  void check_state(std::optional<Time> deadline, bool ticked) {
    EXPECT_FALSE(answers_to_) << "START_IO was not answered";
    answers_to_.reset();
    for (const auto& [key, request] : requests_) {
      ASSERT_TRUE(deadline) << "somebody holds or waits, and nothing is due ever";
      if (request.granted) {
        EXPECT_FALSE(ticked && request.expires <= now_) << "a lease outlived its end";
        EXPECT_LE(*deadline, request.expires);
        continue;
      }
      EXPECT_TRUE(exclusive_) << "somebody waits under interfere";
      EXPECT_TRUE(somebody_has(request.target, *deadline)) << "somebody waits for a free target";
      EXPECT_EQ(grants(request.app, request.target), 0u) << "an application excludes itself";
    }
    if (ticked && deadline) {
      EXPECT_GT(*deadline, now_) << "a tick that did not do what was due";
    }
  }

  // Returns true if an application does I/O on the target, or keeps it at least until `time`.
  bool somebody_has(const std::string& target, Time time) const {
    for (const auto& [key, request] : requests_) {
      if (request.granted && request.target == target) return true;
    }
    for (const auto& [target_app, until] : kept_) {
      if (target_app.first == target && time <= until) return true;
    }
    return false;
  }

  std::size_t grants(std::uint64_t app, const std::string& target) const {
    return static_cast<std::size_t>(std::count_if(requests_.begin(), requests_.end(), [&](const auto& r) {
      return r.second.granted && r.second.app == app && r.second.target == target;
    }));
  }
  std::size_t members_of(std::uint64_t app) const {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(), [&](const auto& member) { return member.second.app == app; }));
  }
  void refresh(const std::string& target) {
    for (auto& [key, request] : requests_) {
      if (key.first == from_ && request.target == target && request.granted) request.expires = now_ + lease;
    }
  }

  Time now_{};
  std::uint64_t from_ = 0;
  const std::vector<Command>* commands_ = nullptr;
  bool exclusive_ = true;
  std::map<Key, Request> requests_;
  std::map<std::uint64_t, Member> members_;
  std::map<std::string, std::uint64_t> jobs_;
  std::map<std::uint64_t, std::string> names_;
  std::set<std::uint64_t> apps_ever_;
  std::map<std::pair<std::string, std::uint64_t>, Time> kept_;  // (target, application): until
  std::uint64_t arrivals_ = 0;
  std::optional<Key> answers_to_;
  std::size_t granted_after_waiting_ = 0;
  std::size_t expired_ = 0;
  std::size_t kept_used_ = 0;
  std::size_t holds_ended_ = 0;  // idle holds, by INFORM_IO
  std::size_t deadlocks_ = 0;
};

// Events as no orderly run has them: repeated, unknown, late, from members that came back or never came.
class RequestChaos {
 public:
  explicit RequestChaos(std::uint64_t seed) : random_(seed), changes_policy_(seed % 3 == 0) {}

  event::Event next(std::optional<Time> deadline) {
    step_time(deadline);
    if (one_in(2)) member_ = 1 + pick(members);
    event::Event event{time_, {"node1", "", MemberId{member_}}, {}};
    event.body = body(member_);
    return event;
  }

 private:
  static constexpr std::uint64_t members = 8;

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }

  void step_time(std::optional<Time> deadline) {
    if (one_in(20)) {
      time_ -= milliseconds{pick(5000)};
    } else if (one_in(30)) {
      time_ += seconds{pick(15)};
    } else if (deadline && one_in(4)) {
      time_ = std::max(time_, *deadline);
    } else {
      time_ += milliseconds{pick(30)};
    }
  }

  event::Body body(std::uint64_t member) {
    switch (pick(changes_policy_ ? 22 : 20)) {
      case 0:
      case 1:
        return event::Hello{
            "job" + std::to_string(member / 2), "app" + std::to_string(pick(2)), "/bin/a", "mpich", "0.1", 1,
            static_cast<std::int64_t>(pick(5))};
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        return event::StartIo{request_to_start(member), "target" + std::to_string(pick(3) * pick(2)), "/f", "op", 1};
      case 8:
      case 9:
      case 10:
      case 11:
      case 12: return event::FinishIo{some_request(member), {}, 0, one_in(2)};
      case 13:
      case 14: return one_in(2) ? event::Body{event::RenewIo{some_request(member)}} : inform();
      case 15: return phase();
      case 16: return one_in(3) ? event::Body{event::Bye{}} : event::Body{event::Lost{"gone"}};
      case 17:
      case 18: return event::Tick{};
      case 19: return one_in(2) ? junk() : resizing(member);
      default: return event::SetPolicy{one_in(8) ? "fcsf" : one_in(2) ? "interfere" : "fcfs"};
    }
  }

  RequestId request_to_start(std::uint64_t member) {
    if (one_in(10)) return some_request(member);
    return RequestId{last_[member] += 1 + (one_in(10) ? pick(5) : 0)};
  }
  // Returns mostly one of the last few requests.
  RequestId some_request(std::uint64_t member) {
    if (one_in(15)) return RequestId{random_()};
    const std::uint64_t back = pick(4) * pick(2);
    return RequestId{last_[member] > back ? last_[member] - back : 0};
  }
  event::IoPhase phase() {
    event::IoPhase phase;
    phase.index = static_cast<std::int64_t>(one_in(3) ? pick(100) : phases_++);
    phase.start = time_ - milliseconds{pick(100)};
    phase.end = one_in(5) ? time_from_ns(static_cast<std::int64_t>(random_())) : time_;
    phase.io = one_in(5) ? Duration{static_cast<std::int64_t>(random_())} : milliseconds{pick(50)};
    phase.bytes_written = static_cast<std::int64_t>(random_());
    return phase;
  }
  event::InformIo inform() {
    const auto number = [&] { return static_cast<std::int64_t>(one_in(5) ? random_() : pick(100)); };
    event::InformIo inform{number(), "note=x", number(), number(), number()};
    inform.phase_over = one_in(2);
    return inform;
  }
  // Sends what members and tools send, in no order; resizing_property_test.cpp checks the results.
  event::Body resizing(std::uint64_t member) {
    const RequestId request{pick(6)};
    const auto count = static_cast<std::int64_t>(one_in(10) ? random_() : pick(9));
    switch (pick(7)) {
      case 0: return event::Malleable{count, static_cast<std::int64_t>(pick(50)), 0, "merge"};
      case 1: return event::Resize{"app0", count, one_in(2), static_cast<std::int64_t>(pick(60)), ""};
      case 2: return event::StartProcesses{request, count, "port", 1, {}, {}};
      case 3: return event::ProcessReady{request};
      case 4: return event::StopProcesses{request, {}};
      case 5: return event::ProcessFailed{request, AppId{pick(6)}, "ended"};
      default: break;
    }
    event::Reconfiguration record;
    record.request = request;
    record.done = one_in(2);
    record.targets = count;
    record.woken = static_cast<std::int64_t>(random_() * (member % 2));
    return record;
  }
  event::Body junk() {
    switch (pick(5)) {
      case 0: return event::Hello{"", "tool", "", "", "", 0, 0};
      case 1: return event::GrantIo{RequestId{1}, {}, "target0"};
      case 2: return event::Subscribe{1, "START_IO"};
      case 3: return event::LeaseExpired{RequestId{1}, "app0", "target0"};
      default: return event::User{"MINE", {{"x", 1.0}}};
    }
  }

  std::mt19937_64 random_;
  bool changes_policy_;
  std::uint64_t member_ = 1;
  Time time_ = Time{} + seconds{1};
  std::map<std::uint64_t, std::uint64_t> last_;
  std::uint64_t phases_ = 0;
};

void record(std::vector<event::Properties>& to, const event::Event& cause, const std::vector<Command>& commands) {
  for (const Command& c : commands) to.push_back(event::properties_of({cause.time, {"", "", c.to}, c.body}));
}

TEST(CoordinatorProperties, HoldInAnyOrderOfEvents) {
  std::size_t waited = 0;
  std::size_t expired = 0;
  std::size_t kept = 0;
  std::size_t deadlocks = 0;
  std::size_t holds_ended = 0;
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Coordinator coordinator{long_turn_settings};
    RequestObserver observer;
    RequestChaos chaos{seed};
    for (int i = 0; i < 300; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      observer.pass(coordinator, event);
      if (::testing::Test::HasFailure()) FAIL() << "after event " << i << ", " << event::type_name(event.body);
    }
    waited += observer.granted_after_waiting();
    expired += observer.expired();
    kept += observer.kept_used();
    deadlocks += observer.deadlocks();
    holds_ended += observer.holds_ended();
  }
  // Checks that the orders were hostile enough to reach the cases in question.
  EXPECT_GT(waited, 10'000u);
  EXPECT_GT(expired, 10'000u);
  EXPECT_GT(kept, 1'000u);
  EXPECT_GT(deadlocks, 300u);
  EXPECT_GT(holds_ended, 300u);
}

// From any state, if no member sends anything again, all waiting requests are granted, one lease and one idle hold
// after the other.
TEST(CoordinatorProperties, EverybodyIsServedWithinABound) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Coordinator coordinator{long_turn_settings};
    RequestObserver observer;
    RequestChaos chaos{seed};
    Time now{};
    for (int i = 0; i < 100; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      now = std::max(now, event.time);
      observer.pass(coordinator, event);
    }
    const Time bound = now + static_cast<std::int64_t>(observer.requests() + 1) * (lease + idle_hold);
    while (observer.anybody_waits()) {
      ASSERT_TRUE(coordinator.deadline());
      now = std::max(now, *coordinator.deadline());
      ASSERT_LE(now, bound) << "still waiting";
      const event::Event tick{now, {}, event::Tick{}};
      observer.pass(coordinator, tick);
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
  }
}

TEST(CoordinatorProperties, TheSameEventsGiveTheSameCommands) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::vector<event::Event> events;
    std::vector<event::Properties> commands;
    Coordinator coordinator{long_turn_settings};
    RequestChaos chaos{seed};
    for (int i = 0; i < 300; ++i) {
      events.push_back(chaos.next(coordinator.deadline()));
      record(commands, events.back(), coordinator.handle(events.back()));
    }
    std::vector<event::Properties> again;
    Coordinator other{long_turn_settings};
    for (const event::Event& event : events) record(again, event, other.handle(event));
    ASSERT_EQ(commands, again) << "seed " << seed;
  }
}

// When all members have left, nothing remains: no application, no target, no deadline.
TEST(CoordinatorProperties, NothingIsLeftBehind) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Coordinator coordinator{long_turn_settings};
    RequestChaos chaos{seed};
    event::Event event;
    for (int i = 0; i < 200; ++i) coordinator.handle(event = chaos.next(coordinator.deadline()));
    for (std::uint64_t member = 1; member <= 8; ++member) {
      coordinator.handle({event.time, {"node1", "", MemberId{member}}, event::Lost{}});
    }
    EXPECT_TRUE(coordinator.cluster().applications().empty()) << "seed " << seed;
    EXPECT_EQ(coordinator.deadline(), std::nullopt) << "seed " << seed;
    for (const char* target : {"target0", "target1", "target2"}) {
      EXPECT_EQ(coordinator.cluster().find_target(target), nullptr) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace hocket::coordinator
