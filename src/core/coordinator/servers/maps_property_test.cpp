// Servers are assigned to applications and get weights, and both come and go, in random orders with fixed seeds. A
// model that knows only the events and the commands checks the map of each member.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/splitmix.hpp"
#include "coordinator/coordinator.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A policy that gives servers other weights all the time.
policy::ServerDecision weigh_at_random(const policy::ServersView& view, const event::Event& event) {
  policy::ServerDecision decision;
  std::uint64_t state = static_cast<std::uint64_t>(to_ns(event.time));
  for (const policy::ServerStatus& server : view.servers) {
    policy::ServerChange change;
    change.action = policy::ServerChange::Action::weigh;
    change.server = server.name;
    change.weight = static_cast<std::int64_t>(splitmix(++state) % 10);  // 0 and 9 are invalid
    decision.changes.push_back(change);
  }
  return decision;
}
const policy::ServerPolicy restless{"restless", "", weigh_at_random};

const CoordinatorSettings reweighing_settings{
    {.access = &policy::fcfs, .servers = &restless}, seconds{10}, milliseconds{100}, seconds{60}, seconds{1}};

std::string app_of(std::uint64_t member) { return "app" + std::to_string(member / 2); }  // two members each

// An I/O server that writes behind, or not.
struct ServerProcess {
  std::uint64_t member = 0;
  bool write_behind = false;
  std::int64_t sent = 0, stored = 0;  // newest epoch
  bool write_through = false;         // as it was sent last
};

// What a member of an application was sent last.
struct MemberMap {
  std::int64_t epoch = 0;
  std::vector<std::string> used, all;
  std::map<std::string, std::int64_t> weights;
  std::int64_t own_epoch = 0;  // newest epoch in which others had other servers
  bool apart = false;          // it may still use such a map
};

class MapsModel {
 public:
  explicit MapsModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    now_ += milliseconds{pick(500)};
    const std::uint64_t member = 2 + pick(6);
    const std::string name = "s" + std::to_string(pick(4));
    const auto server = servers_.find(name);
    switch (pick(10)) {
      case 0:
        if (members_.contains(member)) return leave(member);
        members_[member] = {};
        pass(member, event::Hello{app_of(member), app_of(member), "", "mpich", "", 1, 1});
        break;
      case 1:
      case 2:
        if (server != servers_.end()) {
          if (pick(3) == 0) end(name);
        } else {
          servers_[name] = {100 + ++last_, pick(2) == 0};
          pass(servers_[name].member, event::Server{name, "unix:/s", "/d", 0, servers_[name].write_behind, 7});
        }
        break;
      case 3: pass(tool, event::SetServer{name, pick(2) == 0 ? "drain" : "add"}); break;
      case 4: assign(); break;
      case 5:
      case 6:
        if (members_.contains(member)) adopt(member);
        break;
      default:
        if (server != servers_.end()) answer(server->second);
    }
    check();
  }

  std::int64_t maps_of_their_own() const { return own_; }
  std::int64_t shared_again() const { return shared_again_; }
  std::int64_t weighed() const { return weighed_; }

 private:
  static constexpr std::uint64_t tool = 99;

  std::uint64_t pick(std::uint64_t n) { return random_() % n; }

  void pass(std::uint64_t from, event::Body body) {
    for (const Command& command : coordinator_.handle({now_, {"node1", "", MemberId{from}}, std::move(body)})) {
      const auto* map = std::get_if<event::NewServerMap>(&command.body);
      if (map == nullptr) continue;
      if (command.to.value > 100) {
        take_by_server(command.to.value, *map);
      } else {
        take_by_member(command.to.value, *map);
      }
    }
  }

  void take_by_server(std::uint64_t member, const event::NewServerMap& map) {
    for (auto& [name, process] : servers_) {
      if (process.member != member) continue;
      EXPECT_GT(map.epoch, process.sent);
      shared_again_ += process.write_through && !map.write_through;
      process.sent = map.epoch;
      process.write_through = map.write_through;
    }
  }

  void take_by_member(std::uint64_t id, const event::NewServerMap& map) {
    ASSERT_TRUE(members_.contains(id)) << "it has left";
    MemberMap& member = members_[id];
    const bool is_new = member.epoch == 0;  // it gets what its application has, while servers may still store
    EXPECT_GT(map.epoch, member.epoch) << "epochs rise";
    EXPECT_FALSE(map.write_through);
    const auto parsed = event::parse_server_map(map.epoch, map.text);
    ASSERT_TRUE(parsed.ok());
    member.epoch = map.epoch;
    member.used.clear(), member.all.clear(), member.weights.clear();
    for (const auto& one : parsed.value().servers) {
      if (!one.set_aside) member.used.push_back(one.name);
      member.all.push_back(one.name);
      member.weights[one.name] = one.weight;
    }
    if (member.used != member.all) {  // no server is ever slow here
      ++own_;
      member.own_epoch = map.epoch;
      member.apart = true;
    }
    for (const auto& [name, process] : servers_) {
      EXPECT_TRUE(is_new || !process.write_behind || process.stored == process.sent) << name << " has not stored";
    }
  }

  void leave(std::uint64_t member) {
    members_.erase(member);
    const bool any = std::ranges::any_of(members_, [&](const auto& one) { return one.first / 2 == member / 2; });
    if (!any) assigned_.erase(app_of(member));
    pass(member, event::Bye{});
  }

  void end(const std::string& name) {
    const std::uint64_t member = servers_.at(name).member;
    servers_.erase(name);
    pass(member, event::Bye{});
  }

  void assign() {
    if (members_.empty()) return;
    const std::string app = app_of(std::next(members_.begin(), pick(members_.size()))->first);
    std::set<std::string> names;
    for (const auto& [name, process] : servers_) {
      if (pick(2) == 0) names.insert(name);
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
    assigned_[app] = names;
    pass(tool, event::SetServer{text.empty() ? "all" : text, "assign", app});
  }

  void adopt(std::uint64_t id) {
    MemberMap& member = members_[id];
    const std::int64_t epoch = pick(3) == 0 ? 0 : member.epoch;
    if (epoch > member.own_epoch) member.apart = false;
    pass(id, event::MapAdopted{epoch});
  }

  void answer(ServerProcess& process) {
    if (process.sent == process.stored) return;
    process.stored = process.sent;
    pass(process.member, event::MapStored{process.sent});
  }

  void check() {
    const bool all_stored = std::ranges::all_of(
        servers_, [](const auto& one) { return !one.second.write_behind || one.second.stored == one.second.sent; });
    std::vector<std::string> up;
    std::map<std::string, std::int64_t> weights;
    for (const auto& row : coordinator_.servers().describe(now_)) {
      if (row.state != "up") continue;
      up.push_back(row.server);
      weights[row.server] = row.weight;
      weighed_ += row.weight != event::full_weight;
    }
    bool any_apart = false;
    for (const auto& [id, member] : members_) {
      any_apart |= member.apart;
      if (!all_stored) continue;
      // Each application has one map: the assigned servers that are up, or all if none is.
      std::vector<std::string> wanted;
      std::ranges::copy_if(up, std::back_inserter(wanted),
                           [&](const auto& name) { return assigned_[app_of(id)].contains(name); });
      EXPECT_EQ(member.used, wanted.empty() ? up : wanted) << "member " << id;
      EXPECT_EQ(member.all, up) << "the homes of data sets";
      EXPECT_EQ(member.weights, weights) << "one server for each byte";
    }
    for (const auto& [name, process] : servers_) {
      const bool may_hold = process.write_behind && process.sent > 0 && !process.write_through;
      EXPECT_FALSE(any_apart && may_hold) << name;
    }
  }

  std::mt19937_64 random_;
  Coordinator coordinator_{reweighing_settings};
  Time now_{};
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, MemberMap> members_;
  std::map<std::string, ServerProcess> servers_;
  std::map<std::string, std::set<std::string>> assigned_;  // by application
  std::int64_t own_ = 0, shared_again_ = 0, weighed_ = 0;
};

TEST(MapsProperties, EachApplicationHasOneMapThatNamesNoLostServer) {
  std::int64_t own = 0, shared_again = 0, weighed = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MapsModel model{seed};
    for (int i = 0; i < 150 && !::testing::Test::HasFailure(); ++i) model.step();
    if (::testing::Test::HasFailure()) FAIL();
    own += model.maps_of_their_own();
    shared_again += model.shared_again();
    weighed += model.weighed();
  }
  EXPECT_GT(own, 5'000);
  EXPECT_GT(shared_again, 300);
  EXPECT_GT(weighed, 10'000);
}

}  // namespace
}  // namespace hocket::coordinator
