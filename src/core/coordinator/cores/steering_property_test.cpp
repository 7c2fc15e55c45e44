// Core policies want anything, and applications do anything: they refuse, answer late, twice or never, die, report
// false sizes, change their periods. Thousands of fixed seeds are checked against what must never happen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <random>

#include "base/node_counts.hpp"
#include "base/places.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t property_cores = 40;
constexpr std::uint64_t applications = 6;
constexpr Duration property_join_limit = seconds{5};

std::mt19937_64 wishes;  // random changes that the policies want; seeded by each run

policy::CoreDecision want_anything(const policy::CoreView& view, const event::Event&, AppId) {
  policy::CoreDecision decision;
  if (wishes() % 3 != 0) return decision;
  for (const auto& [id, application] : view.cluster.applications()) {
    if (wishes() % 3 != 0) continue;
    policy::CoreChange change;
    const auto up_to = [](std::int64_t n) {
      return static_cast<std::int64_t>(wishes() % static_cast<std::uint64_t>(n));
    };
    change.application = wishes() % 50 == 0 ? AppId{wishes()} : id;
    change.processes = wishes() % 40 == 0 ? static_cast<std::int64_t>(wishes()) : up_to(16);
    const std::int64_t done = application.malleability.iteration;
    change.at_iteration = wishes() % 4 == 0 ? done + up_to(20) - 5 : 0;
    if (wishes() % 2 == 0) change.return_at_iteration = done + up_to(40);
    if (wishes() % 2 == 0) change.start_after = view.now + milliseconds{up_to(20'000)};
    if (wishes() % 2 == 0) change.period_after = milliseconds{up_to(20'000)};
    if (wishes() % 100 == 0) change.start_after = time_from_ns(static_cast<std::int64_t>(wishes()));
    decision.changes.push_back(change);
  }
  return decision;
}
constexpr policy::CorePolicy interference{"anything", "", policy::CoreKind::interference, want_anything};
constexpr policy::CorePolicy sharing{"everything", "", policy::CoreKind::sharing, want_anything};

CoordinatorSettings settings_of(std::uint64_t seed) {
  CoordinatorSettings settings{
      {&policy::fcfs, seed % 4 == 0 ? nullptr : &interference, seed % 3 == 0 ? nullptr : &sharing},
      seconds{10},
      milliseconds{100},
      seconds{60},
      seconds{1},
      property_cores,
      property_join_limit};
  settings.probe = seed % 2 == 0;
  settings.most_slowdown = seed % 5 == 0 ? 0.1 : 0;
  if (seed % 3 == 1) settings.nodes = {{"a", 15}, {"b", 15}, {"c", 10}};
  return settings;
}

// Applications with requested and real sizes, and the invariants between the two.
class World {
 public:
  World(std::uint64_t seed, bool hostile)
      : random_(seed), hostile_(hostile), has_nodes_(seed % 3 != 0), coordinator_(settings_of(seed)) {
    wishes.seed(seed + 1);
    if (seed % 3 == 2) {
      for (const auto& [node, cores] : std::map<std::string, std::int64_t>{{"a", 15}, {"b", 15}, {"c", 10}})
        coordinator_.handle({now_, {"a", "", {}}, event::NodeCores{node, cores}});
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
  }

  // From now on all applications do what they are asked, and the policies want nothing new.
  void calm_down() {
    hostile_ = false;
    give({}, event::SetPolicy{"fcfs"});
    for (int round = 0; round < 40; ++round) {
      for (auto& [member, app] : apps_) obey(member, app, true);
      for (auto& [member, app] : apps_) {
        app.iteration += 10;
        obey(member, app, true);
        report_phase(member, app);
      }
      now_ += std::chrono::hours{12};  // long periods: time limits are a few periods of a day
      give({}, event::Tick{});
    }
    for (const auto& [id, application] : coordinator_.cluster().applications()) {
      const std::int64_t less = application.expansion.original - application.computing_processes();
      const bool no_room = less > coordinator_.cores().free();  // others were started with the cores that it gave up
      EXPECT_TRUE(application.expansion.decision == 0 || no_room) << application.name << ": a change is not undone";
      EXPECT_EQ(application.malleability.resizing_to, 0) << application.name << ": an answer is waited for";
      EXPECT_EQ(coordinator_.cores().of(id), application.computing_processes()) << application.name;
      const std::uint64_t member = application.members.front()->id.value;
      if (!has_nodes_ || lied_.contains(member) || application.runs_on().empty()) continue;
      Nodes books;
      for (const NodeCount& share : coordinator_.cores().shares_of(id)) books[share.node] = share.count;
      EXPECT_EQ(books, apps_.at(member).nodes) << application.name << " is elsewhere";
      ++compared_;
    }
  }

  void end_all() {
    while (!apps_.empty()) give(apps_.begin()->first, event::Lost{}), apps_.erase(apps_.begin());
    EXPECT_EQ(coordinator_.cores().free(), property_cores) << "cores of nobody";
    EXPECT_EQ(coordinator_.deadline(), std::nullopt);
  }

  std::int64_t grown() const { return grown_; }
  std::int64_t shrunk() const { return shrunk_; }
  std::int64_t reclaimed() const { return reclaimed_; }
  std::int64_t cancelled() const { return cancelled_; }
  std::int64_t named() const { return named_; }
  std::int64_t compared() const { return compared_; }

 private:
  using Nodes = std::map<std::string, std::int64_t>;  // processes by node
  struct App {
    std::int64_t processes = 1;
    Nodes nodes;  // where these run
    std::int64_t iteration = 0;
    std::int64_t phase = 0;
    std::optional<event::Reconfigure> wanted;  // the last request, which replaces the one before
    std::optional<event::Reconfigure> begun;
    Time begun_at{};
  };

  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }

  void give(std::uint64_t member, event::Body body) {
    const event::Event event{now_, {"a", "", MemberId{member}}, std::move(body)};
    const std::vector<Command> commands = coordinator_.handle(event);
    for (const Command& command : commands) take(command);
    check();
  }

  void take(const Command& command) {
    if (const auto* decision = std::get_if<event::Decision>(&command.body)) {
      EXPECT_EQ(decision->number, ++decisions_) << "decisions are numbered in order";
      reclaimed_ += decision->action == "reclaim";
      cancelled_ += decision->action == "cancel";
      return;
    }
    if (const auto* outcome = std::get_if<event::Outcome>(&command.body)) {
      EXPECT_LE(outcome->decision, decisions_);
      EXPECT_GT(outcome->decision, 0);
      return;
    }
    const auto* asked = std::get_if<event::Reconfigure>(&command.body);
    const auto app = apps_.find(command.to.value);
    if (asked == nullptr || app == apps_.end()) return;
    const std::int64_t known = coordinator_.cluster().find(command.to)->application->computing_processes();
    EXPECT_GE(asked->processes, 1);
    // The application may have more cores than it uses: it was asked for that many before.
    grew_ = grew_ || asked->processes > std::max(known, had_[command.to.value]);
    grown_ += asked->processes > known;
    shrunk_ += asked->processes < known;
    named_ += !asked->leave.empty();
    EXPECT_TRUE(node_counts_of(asked->leave)) << asked->leave;
    app->second.wanted = *asked;
  }

  void check() {
    std::int64_t all = 0;
    const model::Cores& of = coordinator_.cores();
    for (const auto& [id, application] : coordinator_.cluster().applications()) {
      const std::int64_t has = of.of(id);
      all += has;
      had_[application.members.front()->id.value] = has;
      EXPECT_GE(has, application.computing_processes()) << application.name << " uses cores that it does not have";
      EXPECT_GE(has, application.malleability.resizing_to) << application.name << " is to use cores of others";
      if (application.expansion.decision == 0 && application.malleability.resizing_to == 0) {
        EXPECT_EQ(has, application.computing_processes()) << application.name << " keeps cores that nobody gave it";
      }
      for (const NodeCount& run : application.runs_on()) {
        std::int64_t here = 0;
        for (const NodeCount& share : of.shares_of(id)) here += share.node == run.node ? share.count : 0;
        EXPECT_GE(here, has_nodes_ ? run.count : 0) << application.name << " runs on cores of others at " << run.node;
      }
      // The cores cover whatever the application was asked for and may be changing to, as long as it reports its true
      // size.
      const auto app = apps_.find(application.members.front()->id.value);
      const bool begun = app != apps_.end() && !lied_.contains(app->first) && app->second.begun;
      if (begun && now_ - app->second.begun_at <= property_join_limit) {
        EXPECT_GE(has, app->second.begun->processes) << application.name << " grows into cores of others";
      }
    }
    if (grew_) {
      EXPECT_LE(all, std::max(property_cores, all_before_)) << "a core is given twice";
    }
    EXPECT_EQ(of.free(), std::max<std::int64_t>(0, property_cores - all));
    grew_ = false;
    all_before_ = all;
  }

  void step() {
    now_ += milliseconds{pick(3000)};
    if (one_in(20)) now_ += seconds{pick(100)};
    if (one_in(3)) {
      if (const auto deadline = coordinator_.deadline(); deadline && one_in(4)) now_ = std::max(now_, *deadline);
      give({}, event::Tick{});
    }
    const std::uint64_t member = 1 + pick(applications);
    const auto app = apps_.find(member);
    if (app == apps_.end()) return arrive(member);
    switch (pick(12)) {
      case 0:
        if (!one_in(4)) return;
        give(member, one_in(2) ? event::Body{event::Lost{}} : event::Body{event::Bye{}});
        apps_.erase(member);
        lied_.erase(member);
        return;
      case 1: return lie(member, app->second);
      case 2: return tool(member);
      case 3:
      case 4:
      case 5: return report_phase(member, app->second);
      default:
        app->second.iteration += static_cast<std::int64_t>(pick(15));
        return obey(member, app->second, !hostile_);
    }
  }

  void arrive(std::uint64_t member) {
    App& app = apps_[member] = {};
    had_.erase(member);
    app.processes = 1 + static_cast<std::int64_t>(pick(10));
    for (std::int64_t i = 0; i < app.processes; ++i) ++app.nodes[some_node()];
    give(member, event::Hello{"job" + std::to_string(++jobs_), "app", "/bin/a", "mpich", "0.1", 1, app.processes});
    if (!one_in(6)) announce(member, app);
    if (one_in(3)) {
      const auto id = coordinator_.cluster().find(MemberId{member})->application->id;
      for (const std::int64_t n : {1, 4, 16}) {
        give({}, event::Profile{id, n, 10.0 / static_cast<double>(n), 0, 1, 0, 3, 1e9});
      }
    }
  }

  void announce(std::uint64_t member, const App& app) {
    give(member, event::Malleable{app.processes, app.iteration, 0, "merge", 0, nodes_of(app)});
  }

  std::string some_node() { return {static_cast<char>('a' + pick(3))}; }

  static std::string nodes_of(const App& app) {
    std::vector<NodeCount> counts;
    for (const auto& [node, count] : app.nodes) counts.push_back({node, count});
    return text_of(counts, 1000);
  }

  static void remove_from(Nodes& nodes, const std::string& node) {
    if (--nodes.at(node) == 0) nodes.erase(node);
  }

  // Makes the resize. Launchers and MPI's worlds do not always permit what hocketd wishes.
  void become(App& app, const event::Reconfigure& wanted) {
    constexpr std::int64_t many =
        1000;  // more at once are on one node: an application that lied may be asked for any size
    const std::int64_t change = wanted.processes - app.processes;
    if (std::abs(change) > many) {
      app.nodes = {{some_node(), wanted.processes}};
      app.processes = wanted.processes;
    }
    const auto places = places_of(wanted.places).value();
    for (std::size_t i = 0; app.processes < wanted.processes; ++i, ++app.processes)
      ++app.nodes[i < places.size() && !one_in(4) ? places[i].node : some_node()];
    const auto leave = node_counts_of(wanted.leave, 1).value();
    for (const NodeCount& named : leave) {
      for (std::int64_t i = 0; i < named.count && app.processes > wanted.processes && !one_in(4); ++i) {
        if (!app.nodes.contains(named.node)) break;
        remove_from(app.nodes, named.node);
        --app.processes;
      }
    }
    for (; app.processes > wanted.processes; --app.processes)
      remove_from(app.nodes, std::next(app.nodes.begin(), static_cast<std::ptrdiff_t>(pick(app.nodes.size())))->first);
  }

  // Runs one control point: the wanted resize begins, and the one that had begun ends.
  void obey(std::uint64_t member, App& app, bool well) {
    if (app.begun) {
      // A resize that takes longer than the applications' own time limit was taken as lost.
      if (now_ - app.begun_at > property_join_limit) lied_.insert(member);
      const event::Reconfigure begun = *std::exchange(app.begun, std::nullopt);
      const std::int64_t before = app.processes;
      become(app, begun);
      answer(member, app, begun, before, true, well);
    }
    if (!app.wanted || app.wanted->at_iteration > app.iteration) return;
    const event::Reconfigure wanted = *std::exchange(app.wanted, std::nullopt);
    const bool late = wanted.at_iteration != 0 && wanted.at_iteration < app.iteration && one_in(2);
    if (wanted.processes == app.processes || late || (!well && one_in(5))) {
      return answer(member, app, wanted, app.processes, false, well);
    }
    app.begun = wanted;
    app.begun_at = now_;
    if (well || one_in(2)) obey(member, app, well);
  }

  void answer(std::uint64_t member, const App& app, const event::Reconfigure& asked, std::int64_t before, bool done,
              bool well) {
    if (!well && one_in(8)) {
      lied_.insert(member);  // its answer is lost: its size is not the reported one
      return;
    }
    event::Reconfiguration record;
    record.request = asked.request;
    record.done = done;
    record.sources = before;
    record.targets = asked.processes;
    record.iteration = app.iteration;
    if (done && (well || !one_in(6))) record.nodes = nodes_of(app);
    for (int i = !well && one_in(8) ? 2 : 1; i > 0; --i) give(member, record);
    if (done && (well || one_in(2))) announce(member, app);
  }

  void report_phase(std::uint64_t member, App& app) {
    event::IoPhase said;
    said.index = app.phase++;
    said.start = now_ - milliseconds{pick(2000)};
    said.end = hostile_ && one_in(20) ? time_from_ns(static_cast<std::int64_t>(random_())) : now_;
    said.io = milliseconds{pick(1000)};
    said.cpu = milliseconds{pick(9000)};
    said.iteration = one_in(10) ? -1 : app.iteration;
    said.processes = one_in(3) ? 0 : app.processes;
    give(member, said);
  }

  // Sends impossible sizes and iterations, in answer to requests that were never made.
  void lie(std::uint64_t member, App& app) {
    if (!hostile_) return;
    lied_.insert(member);
    const auto size = static_cast<std::int64_t>(one_in(3) ? random_() : 1 + pick(12));
    if (one_in(2))
      return give(member, event::Malleable{size, static_cast<std::int64_t>(random_() % 1000), 0, "merge", 0});
    event::Reconfiguration record;
    record.request = RequestId{pick(50)};
    record.done = one_in(2);
    record.sources = static_cast<std::int64_t>(pick(12));
    record.targets = size;
    record.iteration = static_cast<std::int64_t>(random_() % 1000);
    give(member, record);
    app.iteration += 3;
  }

  void tool(std::uint64_t member) {
    const model::Member* known = coordinator_.cluster().find(MemberId{member});
    switch (pick(6)) {
      case 0:
        if (one_in(8)) give(100, event::SetPolicy{one_in(2) ? "fcfs" : "nonsense"});
        return;
      case 1:
        return give(100, event::Resize{known->application->name, static_cast<std::int64_t>(pick(12)), false, 0, ""});
      case 2: return give(100, event::WithdrawResize{});
      default: return;
    }
  }

  std::mt19937_64 random_;
  bool hostile_;
  bool has_nodes_;  // several, with names
  Coordinator coordinator_;
  Time now_ = Time{} + seconds{10};
  std::map<std::uint64_t, App> apps_;
  std::set<std::uint64_t> lied_;  // members whose size the coordinator cannot know
  std::uint64_t jobs_ = 0;
  std::int64_t decisions_ = 0;
  std::int64_t all_before_ = 0;
  std::map<std::uint64_t, std::int64_t> had_;  // cores of each member before the event
  bool grew_ = false;
  std::int64_t grown_ = 0, shrunk_ = 0, reclaimed_ = 0, cancelled_ = 0, named_ = 0, compared_ = 0;
};

TEST(SteeringProperties, HoldWhateverPoliciesWantAndApplicationsDo) {
  std::int64_t grown = 0, shrunk = 0, reclaimed = 0, cancelled = 0, named = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{seed, true};
    world.run(300);
    if (::testing::Test::HasFailure()) FAIL();
    grown += world.grown();
    shrunk += world.shrunk();
    reclaimed += world.reclaimed();
    cancelled += world.cancelled();
    named += world.named();
    world.end_all();
    if (::testing::Test::HasFailure()) FAIL();
  }
  // Checks that the orders reached the cases in question.
  EXPECT_GT(grown, 3'000);
  EXPECT_GT(shrunk, 3'000);
  EXPECT_GT(reclaimed, 300);
  EXPECT_GT(cancelled, 1'000);
  EXPECT_GT(named, 1'000);
}

TEST(SteeringProperties, EveryExpansionIsUndoneWhenNoPolicyWantsIt) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{seed, true};
    world.run(200);
    world.calm_down();
    compared += world.compared();
    if (::testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(compared, 100) << "the books were compared with where applications run";
}

}  // namespace
}  // namespace hocket::coordinator
