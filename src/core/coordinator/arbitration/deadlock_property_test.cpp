// Applications of one thread each request one target after the other and give all of them back at the end, in thousands
// of random runs. All finish, whatever order they ask in. If all ask in the same order, in which no deadlock is
// possible, no target ever has two of them at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct App {
  std::vector<std::size_t> route;  // targets in the order of its requests
  std::size_t granted = 0;         // number of targets granted
  int rounds = 1;                  // rounds to be done
  std::uint64_t request = 0;       // number of its last request
  Time asked{};
};

class DeadlockRun {
 public:
  DeadlockRun(const policy::Policy& policy, std::uint64_t seed, bool in_order)
      : random_(seed), in_order_(in_order), coordinator_({{&policy}, lease, milliseconds{20}, seconds{3}, seconds{1}}) {
    apps_.resize(2 + random_() % 4);
    for (std::size_t i = 0; i < apps_.size(); ++i) {
      const std::string name = "a" + std::to_string(i);
      send(i, event::Hello{name, name, "/bin/a", "mpich", {}, 1, 4});
      apps_[i].rounds = 1 + static_cast<int>(random_() % 4);
      draw(apps_[i]);
      due_in(i, some(500));
    }
  }

  void to_the_end() {
    for (int steps = 0; !queue_.empty() || waits(); ++steps) {
      ASSERT_LT(steps, 100'000) << "it does not end";
      const auto deadline = coordinator_.deadline();
      if (deadline && (queue_.empty() || *deadline <= std::get<Time>(queue_.top()))) {
        now_ = std::max(now_, *deadline);
        send(0, event::Tick{});
        continue;
      }
      ASSERT_FALSE(queue_.empty()) << "somebody waits, and nothing is due ever";
      const auto [time, i] = queue_.top();
      queue_.pop();
      now_ = time;
      go_on(i);
    }
  }
  int met = 0;  // how often a target had two at once
  Duration longest{};

 private:
  static constexpr Duration lease = std::chrono::hours{10};  // no application dies
  using Entry = std::tuple<Time, std::size_t>;

  Duration some(std::int64_t most_ms) { return milliseconds{1 + static_cast<std::int64_t>(random_() % most_ms)}; }
  void due_in(std::size_t i, Duration later) { queue_.emplace(now_ + later, i); }
  bool waits() const {
    return std::any_of(apps_.begin(), apps_.end(), [](const App& app) { return app.rounds > 0; });
  }

  void draw(App& app) {
    app.route = {0, 1, 2, 3};
    std::shuffle(app.route.begin(), app.route.end(), random_);
    app.route.resize(1 + random_() % 3);
    if (in_order_) std::sort(app.route.begin(), app.route.end());
  }

  // Requests the next target, or ends the round if the application has all of them.
  void go_on(std::size_t i) {
    App& app = apps_[i];
    if (app.granted < app.route.size()) {
      app.asked = now_;
      const std::string target = "t" + std::to_string(app.route[app.granted]);
      return send(i, event::StartIo{RequestId{++app.request}, target, "/f", "op", 10});
    }
    while (app.granted > 0) {  // the last target first
      --app.granted;
      send(i, event::FinishIo{RequestId{app.request - (app.route.size() - 1 - app.granted)}, {}, 10, true});
    }
    if (--app.rounds == 0) return;
    draw(app);
    due_in(i, some(500));
  }

  void send(std::size_t i, event::Body body) {
    const event::Event event{now_, {"node1", "", MemberId{i + 1}}, std::move(body)};
    const std::vector<Command> commands = coordinator_.handle(event);
    for (const Command& command : commands) {
      const auto* grant = std::get_if<event::GrantIo>(&command.body);
      if (grant == nullptr || grant->request.value != apps_.at(command.to.value - 1).request) continue;
      granted(command.to.value - 1);
    }
  }

  void granted(std::size_t i) {
    App& app = apps_[i];
    longest = std::max(longest, now_ - app.asked);
    const std::size_t target = app.route[app.granted];
    for (const App& other : apps_) {
      const auto end = other.route.begin() + static_cast<std::ptrdiff_t>(other.granted);
      met += std::find(other.route.begin(), end, target) != end;
    }
    ++app.granted;
    due_in(i, some(500));
  }

  std::mt19937_64 random_;
  const bool in_order_;
  Coordinator coordinator_;
  std::vector<App> apps_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  Time now_ = Time{} + seconds{1};
};

class Deadlocks : public ::testing::TestWithParam<const policy::Policy*> {};

TEST_P(Deadlocks, AreBroken) {
  int met = 0;
  for (std::uint64_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DeadlockRun run{*GetParam(), seed, false};
    run.to_the_end();
    met += run.met;
    EXPECT_LT(run.longest, seconds{60}) << "it waited for one circle after the other";
  }
  EXPECT_GT(met, 100) << "there were none";
}

TEST_P(Deadlocks, AreNotSeenWhereThereAreNone) {
  for (std::uint64_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DeadlockRun run{*GetParam(), seed, true};
    run.to_the_end();
    EXPECT_EQ(run.met, 0) << "two had a target at once";
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Deadlocks, ::testing::Values(&policy::fcfs, &policy::interrupt),
                         [](const auto& one) { return std::string{one.param->name}; });

}  // namespace
}  // namespace hocket::coordinator
