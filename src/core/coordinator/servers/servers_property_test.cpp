// Servers come, leave, slow down and send false reports, in random and hostile orders with fixed seeds. A simple model,
// which knows only the events that went in and the commands that came out, checks them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double margin = 1.25;
const CoordinatorSettings server_settings{{&policy::fcfs}, seconds{10}, milliseconds{100}, seconds{60}, seconds{1}};

bool beats(const std::string& name) { return !name.empty() && (name.back() - '0') % 2 == 1; }

// Members 1 to 4 belong to applications. Members 11 to 18 are servers, which change their names when they come again.
class ServerChaos {
 public:
  explicit ServerChaos(std::uint64_t seed) : random_(seed) {}

  event::Event next(std::optional<Time> deadline) {
    time_ += one_in(20) ? Duration{seconds{pick(30)}} : milliseconds{pick(60)};
    if (one_in(50)) time_ -= seconds{pick(10)};
    if (deadline && one_in(10)) time_ = std::max(time_, *deadline);
    const std::uint64_t server = 11 + pick(8);
    switch (pick(21)) {
      case 20: return of(one_in(8) ? 99 : 0, event::ServerEnded{name(), one_in(8) ? 8 : 7});
      case 0: return of(1 + pick(4), event::Hello{one_in(2) ? "a" : "b", "app", "", "mpich", "", 1, 1});
      case 1: return of(1 + pick(4), event::MapAdopted{static_cast<std::int64_t>(pick(40)) - 5});
      case 2: return of(one_in(4) ? 1 + pick(4) : server, one_in(2) ? event::Body{event::Bye{}} : event::Lost{"gone"});
      case 3:
      case 4:
      case 5: return of(server, said());
      case 6:
        if (one_in(4)) return of(99, event::SetServer{one_in(3) ? "all" : name(), "scheduler", {}, "job-fair"});
        if (one_in(8)) return of(server, event::SchedulerUsed{name(), "job-fair", "fifo"});
        return of(99, event::SetServer{name(), one_in(10) ? "up" : one_in(3) ? "drain" : "add"});
      case 7: return one_in(4) ? of(99, slow()) : of(0, event::Tick{});
      case 8: return of(0, event::Tick{});
      default: return of(server, load(server));
    }
  }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  event::Event of(std::uint64_t member, event::Body body) const {
    return {time_, {"node1", "", MemberId{member}}, std::move(body)};
  }
  std::string name() { return one_in(30) ? "" : "s" + std::to_string(pick(6)); }
  // Servers with odd names promise a heartbeat, and send it or not.
  event::Body said() {
    const std::string its = name();
    return event::Server{its, one_in(30) ? "" : "unix:/s",         one_in(30) ? "no path" : "/scratch", 0, false,
                         7,   beats(its) ? seconds{1} : Duration{}};
  }
  event::Body slow() {
    event::SlowIoServer told;
    told.server = name();
    return told;
  }
  // Servers with odd numbers are slow now and then.
  event::Body load(std::uint64_t server) {
    if (one_in(30)) return event::ServerLoad{odd(), odd(), Duration{odd()}, odd(), odd(), Duration{odd()}};
    const std::int64_t operations = 1 + static_cast<std::int64_t>(pick(20));
    const bool is_slow = (static_cast<std::uint64_t>(to_ns(time_) / 1'000'000'000) / 20 + server) % 4 == 0;
    const microseconds each{(is_slow ? 2000 : 300) + pick(50)};
    return event::ServerLoad{operations, operations << 20, operations * each, 0, 0, {}};
  }
  std::int64_t odd() { return static_cast<std::int64_t>(random_()) >> pick(64); }

  std::mt19937_64 random_;
  Time time_ = Time{} + seconds{100};
};

class ServerObserver {
 public:
  void pass(Coordinator& coordinator, const event::Event& event) {
    const std::vector<std::string> before = map_.names, aside_before = map_.aside;
    now_ = std::max(now_, event.time);
    const std::uint64_t from = event.origin.member.value;
    const auto& commands = coordinator.handle(event);
    if (const auto* hello = std::get_if<event::Hello>(&event.body); hello && !hello->mpi.empty()) members_.insert(from);
    const bool leaves =
        std::holds_alternative<event::Bye>(event.body) || std::holds_alternative<event::Lost>(event.body);
    if (leaves) members_.erase(from);

    std::set<std::uint64_t> told;
    for (const Command& command : commands) {
      if (const auto* map = std::get_if<event::NewServerMap>(&command.body)) {
        EXPECT_TRUE(told.insert(command.to.value).second) << "told twice";
        take(*map);
      }
      if (const auto* slow = std::get_if<event::SlowIoServer>(&command.body)) check(*slow, before);
      if (const auto* hung = std::get_if<event::HungIoServer>(&command.body)) {
        ++hung_;
        EXPECT_TRUE(beats(hung->server)) << "it promised no heartbeat";
        EXPECT_GE(hung->silent, Servers::missed_heartbeats * seconds{1});
      }
    }
    if (map_.names != before || map_.aside != aside_before) {
      EXPECT_EQ(told, members_) << "a change that not all were told of";
      ++changes_;
    } else if (std::holds_alternative<event::Hello>(event.body)) {
      EXPECT_EQ(told.size(), map_.epoch > 0 && members_.contains(from) ? 1U : 0U);
    } else {
      EXPECT_TRUE(told.empty()) << "a map that is none";
    }
    check_state(coordinator, event);
  }

  std::int64_t changes() const { return changes_; }
  std::int64_t slow() const { return slow_; }
  std::int64_t detected() const { return detected_; }
  std::int64_t hung() const { return hung_; }

 private:
  struct Map {
    std::int64_t epoch = 0;
    std::vector<std::string> names, aside;  // in use, and set aside
  };

  void take(const event::NewServerMap& told) {
    const auto parsed = event::parse_server_map(told.epoch, told.text);
    ASSERT_TRUE(parsed) << parsed.error().text;
    std::vector<std::string> names, aside;
    for (const auto& server : parsed.value().servers) (server.set_aside ? aside : names).push_back(server.name);
    if (told.epoch == map_.epoch) {
      EXPECT_EQ(names, map_.names) << "two maps of one epoch";
      EXPECT_EQ(aside, map_.aside) << "two maps of one epoch";
    } else {
      EXPECT_EQ(told.epoch, map_.epoch + 1);
      map_ = {told.epoch, names, aside};
    }
    std::set<std::string> all(names.begin(), names.end());
    all.insert(aside.begin(), aside.end());
    EXPECT_EQ(all.size(), names.size() + aside.size()) << "a server is there twice";
  }

  void check(const event::SlowIoServer& told, const std::vector<std::string>& before) {
    ++slow_;
    // Without an application, no member received the map to compare with.
    if (members_.empty()) return;
    EXPECT_EQ(std::ranges::count(before, told.server), 1) << "it was not in the map";
    EXPECT_GE(before.size(), 2U) << "the last one";
    EXPECT_GE(told.hold_off, server_settings.slow_server_hold_off);
    EXPECT_LE(told.hold_off, model::longest_hold_off);
    if (told.reports == 0) return;
    ++detected_;
    EXPECT_GE(before.size(), 3U);
    const auto n = static_cast<double>(before.size());
    EXPECT_GT(static_cast<double>(told.service.count()),
              margin * n / (n - 1) * static_cast<double>(told.peers.count()));
    EXPECT_GE(told.service - told.peers, SlowServers::least_longer);
  }

  void check_state(const Coordinator& coordinator, const event::Event& event) {
    std::vector<std::string> up, aside;
    bool is_up = false;
    bool is_due = false;  // a heartbeat is awaited
    const auto rows = coordinator.servers().describe(now_);
    for (const event::IoServer& row : rows) {
      // A hung server stays where it was.
      if (row.state == "up") mapped_.insert(row.server);
      if (row.state != "up" && row.state != "hung") mapped_.erase(row.server);
      if (mapped_.contains(row.server)) up.push_back(row.server);
      is_up |= row.state == "up";
      if (row.state == "slow") aside.push_back(row.server);
      is_due |= beats(row.server) && row.state != "hung" && row.state != "lost";
      EXPECT_EQ(row.state == "slow", row.back > Time{});
      EXPECT_GE(row.operations, 0);
      EXPECT_GE(row.bytes_per_s, 0);
      EXPECT_LE(row.epoch, coordinator.servers().epoch());
    }
    if (!is_up) {
      EXPECT_TRUE(aside.empty()) << "a slow one is better than none";
    }
    if (!members_.empty()) {
      if (coordinator.servers().epoch() != map_.epoch) {
        // The map changed while no application ran; a member that comes now receives it.
        ADD_FAILURE() << "epoch " << coordinator.servers().epoch() << ", told " << map_.epoch;
      }
      EXPECT_EQ(up, map_.names);
      EXPECT_EQ(aside, map_.aside);
    } else {
      map_ = {coordinator.servers().epoch(), up, aside};
    }
    const auto deadline = coordinator.servers().deadline();
    EXPECT_EQ(deadline.has_value(), !aside.empty() || is_due);
    if (deadline && std::holds_alternative<event::Tick>(event.body)) {
      EXPECT_GT(*deadline, now_) << "a tick that did not do what was due";
    }
    for (const auto& [id, application] : coordinator.cluster().applications()) {
      EXPECT_LE(coordinator.servers().epoch_of(application), coordinator.servers().epoch());
    }
  }

  Time now_{};
  std::set<std::uint64_t> members_;
  Map map_;
  std::int64_t changes_ = 0;
  std::int64_t slow_ = 0;
  std::int64_t detected_ = 0;
  std::int64_t hung_ = 0;
  std::set<std::string> mapped_;  // servers that are up, or were when they became hung
};

TEST(ServersProperties, HoldInAnyOrderOfEvents) {
  std::int64_t changes = 0;
  std::int64_t slow = 0;
  std::int64_t detected = 0;
  std::int64_t hung = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Coordinator coordinator{server_settings};
    ServerObserver observer;
    ServerChaos chaos{seed};
    for (int i = 0; i < 400; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      observer.pass(coordinator, event);
      if (::testing::Test::HasFailure()) FAIL() << "after event " << i << ", " << event::type_name(event.body);
    }
    changes += observer.changes();
    slow += observer.slow();
    detected += observer.detected();
    hung += observer.hung();
  }
  // Checks that the orders were hostile enough to reach the cases in question.
  EXPECT_GT(changes, 10'000);
  EXPECT_GT(slow, 1'000);
  EXPECT_GT(detected, 200);
  EXPECT_GT(hung, 500);
}

TEST(ServersProperties, TheSameEventsGiveTheSameCommands) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Coordinator coordinator{server_settings};
    Coordinator other{server_settings};
    ServerChaos chaos{seed};
    for (int i = 0; i < 300; ++i) {
      const event::Event event = chaos.next(coordinator.deadline());
      const auto told = testing::describe_all(coordinator.handle(event));
      ASSERT_EQ(told, testing::describe_all(other.handle(event))) << "seed " << seed;
    }
  }
}

// Servers that write behind answer late, hang, and end, while the map changes. Applications get no epoch before every
// process that may hold data has stored it or has ended, and in the end they have the newest.
TEST(ServersProperties, ApplicationsGetAMapWhenAllHaveStored) {
  struct Process {
    std::uint64_t member = 0;
    std::int64_t pid = 0;
    std::int64_t sent = 0;    // the newest epoch that it was sent
    std::int64_t stored = 0;  // the newest epoch that it has answered
  };
  std::int64_t handed = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    Coordinator coordinator{server_settings};
    std::map<std::string, Process> alive;
    std::int64_t last = 0, pid = 0;
    Time now{};
    const auto pass = [&](std::uint64_t from, event::Body body) {
      const bool reports_end =
          std::holds_alternative<event::ServerEnded>(body) || std::holds_alternative<event::Bye>(body);
      for (const Command& command : coordinator.handle({now, {"node1", "", MemberId{from}}, std::move(body)})) {
        if (std::holds_alternative<event::Refused>(command.body)) {
          for (auto& [name, process] : alive) {
            if (process.member == command.to.value) process.member = 0;
          }
        }
        const auto* map = std::get_if<event::NewServerMap>(&command.body);
        if (map == nullptr) continue;
        if (command.to.value != 1) {
          for (auto& [name, process] : alive) {
            if (process.member == command.to.value) process.sent = map->epoch;
          }
          continue;
        }
        EXPECT_GT(map->epoch, last);
        late += map->epoch > last + 1 || reports_end;
        last = map->epoch;
        ++handed;
        for (const auto& [name, process] : alive) EXPECT_GE(process.stored, last) << name << " has not stored";
      }
    };
    const auto answer = [&](Process& process) {
      if (process.member == 0 || process.sent == process.stored) return;
      process.stored = process.sent;
      pass(process.member, event::MapStored{process.sent});
    };
    const auto end = [&](std::string name) {  // a copy: the key is erased
      const Process process = alive.at(name);
      alive.erase(name);
      if (process.member != 0) pass(process.member, event::Lost{});
      pass(0, event::ServerEnded{name, process.pid});
    };
    const auto register_at = [&](const std::string& name, Process& process) {
      process.member = 100 + static_cast<std::uint64_t>(++pid);
      pass(process.member, event::Server{name, "unix:/" + name, "/s", 0, true, process.pid, seconds{1}});
    };
    pass(1, event::Hello{"a", "app", "", "mpich", "", 1, 1});
    for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
      now += milliseconds{random() % 900};
      const std::string name = "s" + std::to_string(random() % 3);
      const auto found = alive.find(name);
      const bool is_connected = found != alive.end() && found->second.member != 0;
      switch (random() % 8) {
        case 0:
          if (found == alive.end()) register_at(name, alive[name] = {0, ++pid});
          break;
        case 1:
        case 2:
          if (is_connected) answer(found->second);
          break;
        case 3:  // its connection ends, and its process lives on
          if (is_connected && random() % 4 == 0) pass(std::exchange(found->second.member, 0), event::Lost{});
          break;
        case 4:
          if (found != alive.end() && !is_connected) register_at(name, found->second);
          break;
        case 5:
          if (found != alive.end() && random() % 4 == 0) end(name);
          break;
        case 6: pass(99, event::SetServer{name, random() % 2 == 0 ? "drain" : "add"}); break;
        case 7:
          if (is_connected) pass(found->second.member, event::ServerLoad{});
          break;
      }
      if (const auto due = coordinator.deadline(); due && *due <= now) pass(0, event::Tick{});
    }
    while (!alive.empty() && alive.begin()->second.member == 0) end(alive.begin()->first);
    for (const std::string name : {"s0", "s1", "s2"}) {
      const auto found = alive.find(name);
      if (found == alive.end()) continue;
      found->second.member == 0 ? end(name) : answer(found->second);
    }
    for (auto& [name, process] : alive) answer(process);
    EXPECT_EQ(last, coordinator.servers().epoch()) << "the newest map is not handed out";
    if (::testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(handed, 3'000);
  EXPECT_GT(late, 1'000);
}

// When all have left, the map is empty and nothing is due.
TEST(ServersProperties, NothingIsLeftBehind) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Coordinator coordinator{server_settings};
    ServerChaos chaos{seed};
    event::Event event;
    for (int i = 0; i < 200; ++i) coordinator.handle(event = chaos.next(coordinator.deadline()));
    for (std::uint64_t member = 1; member <= 18; ++member) {
      coordinator.handle({event.time, {"node1", "", MemberId{member}}, event::Lost{}});
    }
    for (int i = 0; i < 6; ++i) {
      coordinator.handle({event.time, {"node1", "", {}}, event::ServerEnded{"s" + std::to_string(i), 7}});
    }
    for (const event::IoServer& row : coordinator.servers().describe(event.time)) EXPECT_EQ(row.state, "lost");
    EXPECT_EQ(coordinator.deadline(), std::nullopt) << "seed " << seed;
    EXPECT_LE(coordinator.servers().describe(event.time).size(), 6U);
  }
}

}  // namespace
}  // namespace hocket::coordinator
