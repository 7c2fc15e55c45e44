// Forwarded applications and servers come and go in random orders with fixed seeds, under each policy that gives out
// servers, on one or two file systems. After each event the assignment in force is that which allocate() gives for the
// present set of each file system.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "allocation/choices.hpp"
#include "coordinator/coordinator.hpp"

namespace hocket::coordinator {
namespace {

using allocation::Job;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t system_nodes = 64, system_servers = 8;

// An application: its words in HELLO, and its newest map.
struct Running {
  Job job;
  std::string file_system;
  std::vector<std::string> used;  // by its last map
  bool direct = false;
  bool has_map = false;
  std::vector<std::string> before;  // the same before the event
  bool was_there = false;
};

class AssignmentModel {
 public:
  // `file_systems`: their names; "": nobody says one.
  AssignmentModel(std::string_view policy, std::uint64_t seed, const allocation::AllocationRules& rules,
                  std::vector<std::string> file_systems)
      : policy_(policy),
        random_(seed),
        rules_(rules),
        file_systems_(std::move(file_systems)),
        settings_(settings_of(policy, rules)),
        coordinator_(settings_) {}

  void step() {
    now_ += milliseconds{pick(3000)};
    for (auto& [member, one] : running_) {
      one.before = one.used;
      one.was_there = true;
    }
    gone_ = false;
    const std::string name = "s" + std::to_string(pick(6));
    const auto server = servers_.find(name);
    switch (pick(8)) {
      case 0:
      case 1:
      case 2: start(); break;
      case 3:
        if (!running_.empty())
          end(std::next(running_.begin(), static_cast<std::ptrdiff_t>(pick(running_.size())))->first);
        break;
      case 4:
      case 5:
        if (server == servers_.end()) {
          servers_[name] = {200 + ++last_, true, any_file_system()};
          order_.push_back(name);
          event::Server said{name, "unix:/" + name, "/d", 0, pick(2) == 0, 7};
          said.file_system = servers_[name].file_system;
          pass(servers_[name].member, std::move(said));
        } else if (pick(2) == 0) {
          gone_ = true;
          pass(server->second.member, event::Lost{});
          pass(0, event::ServerEnded{name, 7});
          servers_.erase(name);
          std::erase(order_, name);
        }
        break;
      case 6:
        if (server == servers_.end()) break;
        server->second.up = !server->second.up;
        gone_ = !server->second.up;
        pass(tool, event::SetServer{name, server->second.up ? "add" : "drain"});
        break;
      default:
        if (server != servers_.end()) pass(server->second.member, event::ServerLoad{});
    }
    check();
  }

  std::int64_t compared() const { return compared_; }
  std::int64_t shared() const { return shared_; }
  std::int64_t refused() const { return refused_; }
  std::int64_t without() const { return without_; }

 private:
  static constexpr std::uint64_t tool = 99;

  struct ServerProcess {
    std::uint64_t member = 0;
    bool up = false;
    std::string file_system;
  };

  static CoordinatorSettings settings_of(std::string_view policy, const allocation::AllocationRules& rules) {
    CoordinatorSettings made{policy::parse_combination("fcfs+" + std::string{policy}).value(), seconds{10},
                             milliseconds{100}, seconds{60}, seconds{1}};
    made.arbitration = {rules, system_nodes, system_servers};
    return made;
  }

  std::uint64_t pick(std::uint64_t n) { return random_() % n; }

  std::string any_file_system() {
    return file_systems_.size() == 1 ? file_systems_.front() : file_systems_[pick(file_systems_.size())];
  }

  void start() {
    const std::uint64_t member = ++last_;
    Running& one = running_[member];
    one.job = {"a" + std::to_string(member), static_cast<int>(1 + pick(40)), static_cast<int>(1 + pick(100)), {}};
    if (pick(5) > 0)
      for (int servers = 0; servers <= 4; ++servers)
        if (pick(3) > 0) one.job.choices.push_back({servers, static_cast<std::int64_t>(pick(1000))});
    event::Hello hello{one.job.name, one.job.name, "", "", "", 1, one.job.processes};
    hello.forwards = true;
    hello.compute_nodes = one.job.nodes;
    hello.curve = allocation::text_of(one.job.choices);
    hello.file_system = one.file_system = any_file_system();
    pass(member, hello);
  }
  void end(std::uint64_t member) {
    running_.erase(member);
    pass(member, pick(2) == 0 ? event::Body{event::Bye{}} : event::Body{event::Lost{}});
  }

  void pass(std::uint64_t from, event::Body body) {
    for (const Command& command : coordinator_.handle({now_, {"node1", "", MemberId{from}}, std::move(body)})) {
      const auto* map = std::get_if<event::NewServerMap>(&command.body);
      if (map == nullptr || !running_.contains(command.to.value)) continue;
      Running& one = running_[command.to.value];
      one.has_map = true;
      one.direct = map->direct;
      one.used.clear();
      const auto parsed = event::parse_server_map(map->epoch, map->text);
      ASSERT_TRUE(parsed.ok());
      for (const auto& server : parsed.value().servers)
        if (!server.set_aside) one.used.push_back(server.name);
      std::ranges::sort(one.used);
    }
  }

  std::vector<std::string> up(const std::string& file_system) const {
    std::vector<std::string> names;
    for (const std::string& name : order_)
      if (servers_.at(name).up && servers_.at(name).file_system == file_system) names.push_back(name);
    return names;
  }

  // The jobs of a file system in the present set: one without a choice that the rules allow has the number of `static`.
  std::vector<Job> jobs(const std::string& file_system, int pool) const {
    std::vector<Job> all;
    for (const auto& [member, one] : running_) {
      if (one.file_system != file_system) continue;
      all.push_back(one.job);
      Job& job = all.back();
      if (!allocation::restricted(job, rules_).choices.empty()) continue;
      int number = (job.nodes * static_cast<int>(system_servers) + static_cast<int>(system_nodes) - 1) /
                   static_cast<int>(system_nodes);
      number = std::clamp(number, 1, std::max(pool, 1));
      while (rules_.divides_evenly && job.nodes % number != 0) --number;
      job.choices = {{number, 0}};
    }
    return all;
  }

  void check() {
    const bool is_any_up = std::ranges::any_of(servers_, [](const auto& entry) { return entry.second.up; });
    for (const std::string& file_system : file_systems_) check(file_system, is_any_up);
  }

  void check(const std::string& file_system, bool is_any_up) {
    const std::vector<std::string> present = up(file_system);
    for (const auto& [member, one] : running_) {
      if (one.file_system != file_system) continue;
      for (const std::string& name : one.used) ASSERT_EQ(std::ranges::count(present, name), 1) << name << " has gone";
      if (policy_ == "static" && one.was_there && !one.before.empty() && !gone_) {
        ASSERT_EQ(one.used, one.before) << one.job.name << " is a running job";
      }
    }
    if (!is_any_up || policy_ == "static") return;
    const allocation::Pool pool{static_cast<int>(present.size()), system_nodes, system_servers};
    const std::vector<Job> all = jobs(file_system, pool.servers);
    auto wanted = allocation::allocate(policy_, all, pool, rules_);
    if (!wanted) {
      ++refused_;
      wanted = allocation::allocate("static", all, pool, rules_);
    }
    std::map<std::string, int> users;
    std::size_t i = 0;
    for (const auto& [member, one] : running_) {
      if (one.file_system != file_system) continue;
      const int number = wanted.value().jobs[i++].servers;
      ASSERT_TRUE(one.has_map) << one.job.name;
      ASSERT_EQ(static_cast<int>(one.used.size()), std::min(number, pool.servers))
          << one.job.name << " under " << policy_;
      ASSERT_EQ(one.direct, number == 0) << "one without a server to have is not one that is to have none";
      without_ += one.used.empty() && number > 0;
      for (const std::string& name : one.used) ++users[name];
      ++compared_;
    }
    const bool shares = std::ranges::any_of(wanted.value().jobs, [](const auto& job) { return job.shared; }) ||
                        wanted.value().servers > pool.servers;
    for (const auto& [name, count] : users) {
      ASSERT_TRUE(shares || count == 1) << name << " has " << count << " applications";
      shared_ += count > 1;
    }
  }

  std::string_view policy_;
  std::mt19937_64 random_;
  allocation::AllocationRules rules_;
  std::vector<std::string> file_systems_;
  CoordinatorSettings settings_;
  Coordinator coordinator_;
  Time now_{};
  std::uint64_t last_ = 100;
  std::map<std::uint64_t, Running> running_;  // in order of arrival
  std::map<std::string, ServerProcess> servers_;
  std::vector<std::string> order_;  // of arrival
  bool gone_ = false;               // a server has gone in this step
  std::int64_t compared_ = 0, shared_ = 0, refused_ = 0, without_ = 0;
};

TEST(ArbitrationProperties, TheAssignmentInForceIsThatForThePresentSet) {
  const std::vector<std::vector<std::string>> file_systems{{""}, {"dev:0:25", "dev:8:1"}, {"dev:8:1"}};
  std::int64_t compared = 0, shared = 0, refused = 0, without = 0;
  for (const std::string_view policy : allocation::policies) {
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
      const allocation::AllocationRules rules{.direct = seed % 2 == 0,
                                              .divides_evenly = seed % 3 == 0,
                                              .least_of_static = seed % 4 == 0 ? std::optional{0.8} : std::nullopt,
                                              .shared_server = seed % 5 == 0};
      AssignmentModel model{policy, seed, rules, file_systems[seed % 7 % 3]};
      for (int i = 0; i < 120; ++i) {
        model.step();
        if (::testing::Test::HasFatalFailure()) FAIL() << policy << ", seed " << seed << ", step " << i;
      }
      compared += model.compared();
      shared += model.shared();
      refused += model.refused();
      without += model.without();
    }
  }
  EXPECT_GT(compared, 30'000);
  EXPECT_GT(shared, 1'000);
  EXPECT_GT(refused, 300);
  EXPECT_GT(without, 100) << "applications on whose file system no server was up, while others were";
}

}  // namespace
}  // namespace hocket::coordinator
