// Schedules of faults in virtual time: servers are killed, stopped, slowed, drained, added, ended, and started again;
// hocketd restarts, and in half of the schedules changes weights; the file system fills up; clients are killed. No
// acknowledged byte is lost or wrong, errors are told where bytes were lost, and every call ends. docs/guarantees.md is
// the specification.
//
// $HOCKET_SCHEDULES sets how many schedules are tried; `./dev test --long` tries 10,000.
#include <gtest/gtest.h>

#include <cstdlib>

#include "server/fault_clients_testing.hpp"

namespace hocket::server::faults {
namespace {

// Seeds that have failed once; 1655 does if a hung server is written around.
constexpr std::uint64_t once_failed[] = {1, 433, 10762, 52235, 72592, 1655};

std::uint64_t schedules() {
  const char* const wanted = std::getenv("HOCKET_SCHEDULES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3000;
}

struct Sums {
  int acknowledged = 0, failed = 0, synced = 0, losses = 0, uncertain = 0, read = 0;
  std::int64_t handed = 0;
  Duration longest{};
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, bool weighs) : world_(seed) {
    world_.daemon = std::make_unique<Daemon>(world_, !one_in(4), weighs);
    for (std::uint64_t i = 2 + below(3); i > 0; --i) start_server("s" + std::to_string(i));
    if (!one_in(12)) world_.daemon->start();
    const int clients = 1 + static_cast<int>(below(3));
    for (int i = 0; i < clients; ++i) clients_.push_back(std::make_unique<Client>(world_, i, clients));
  }

  void run(Sums& sums) {
    for (const auto& client : clients_) {
      world_.clock.in(milliseconds{200} + world_.random.upto(seconds{2}), [&one = *client] { one.start(); });
    }
    for (std::uint64_t faults = 2 + below(8); faults > 0; --faults) {
      world_.clock.in(world_.random.upto(seconds{25}), [this] { fault(); });
    }
    const Time last = world_.clock.now() + std::chrono::hours{1};
    world_.clock.at(last, [] {});
    const auto all_done = [this] {
      return std::all_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->done(); });
    };
    while (!all_done() && world_.clock.now() < last && !::testing::Test::HasFailure()) world_.clock.step();
    EXPECT_TRUE(all_done()) << "a client waits for ever";
    is_over_ = true;
    // Requests that servers were sent take effect now, or never.
    for (const auto& process : world_.processes) {
      process->service = milliseconds{2};
      process->go_on();
    }
    world_.storage.room = Storage::most_room;
    const Time end = world_.clock.now() + seconds{20};
    world_.clock.at(end, [] {});
    while (world_.clock.now() < end) world_.clock.step();
    world_.storage.check_end();
    for (const auto& process : world_.processes) {
      EXPECT_FALSE(!process->ended() && process->holds_anything()) << process->name << " never stores what it holds";
    }
    for (const auto& client : clients_) {
      EXPECT_LE(client->longest, seconds{200});
      sums.acknowledged += client->acknowledged;
      sums.failed += client->failed;
      sums.synced += client->synced;
      sums.losses += client->losses;
      sums.uncertain += client->uncertain;
      sums.read += client->read;
      sums.longest = std::max(sums.longest, client->longest);
    }
    sums.handed += world_.daemon->handed();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return world_.random.below(n); }
  bool one_in(std::uint64_t n) { return world_.random.one_in(n); }

  void start_server(const std::string& name) {
    Process& started = *world_.processes.emplace_back(std::make_unique<Process>(world_, name, !one_in(4)));
    world_.clock.in(world_.random.upto(milliseconds{50}), [&started] { started.reach_control(); });
  }

  void fault() {
    if (is_over_) return;
    Process& one = *world_.processes[below(world_.processes.size())];
    const Duration later = world_.random.upto(one_in(3) ? seconds{45} : seconds{8});
    switch (below(10)) {
      case 0:
      case 1: return one.kill();
      case 2:
      case 3:
        later.count() % 2 == 0 ? one.stop() : one.stop_when_busy();
        return world_.clock.in(later, [&one] { one.go_on(); });
      case 4:
        one.service = milliseconds{1 + below(1500)};
        return world_.clock.in(later, [&one] { one.service = milliseconds{2}; });
      case 5:
        world_.daemon->feed(99, event::SetServer{one.name, "drain"});
        return world_.clock.in(later, [this, &one] { world_.daemon->feed(99, event::SetServer{one.name, "add"}); });
      case 6: return restart(one);
      case 7:
        world_.storage.room = static_cast<std::int64_t>(below(40));
        return world_.clock.in(later, [this] { world_.storage.room = Storage::most_room; });
      case 8:
        if (!world_.daemon->up()) return;
        world_.daemon->end();
        return world_.clock.in(later, [this] { world_.daemon->start(); });
      default: return clients_[below(clients_.size())]->kill();
    }
  }
  // The server ends in order, or is killed; another one of its name comes, perhaps before hocketd knows the end.
  void restart(Process& one) {
    one_in(2) ? one.kill() : one.terminate();
    world_.clock.in(world_.random.upto(seconds{3}), [this, name = one.name] {
      if (world_.serving(name) == nullptr) start_server(name);
    });
  }

  World world_;
  std::vector<std::unique_ptr<Client>> clients_;
  bool is_over_ = false;  // no fault is to come any more
};

void run(std::uint64_t seed, bool weighs, Sums& sums) {
  SCOPED_TRACE("seed " + std::to_string(seed) + (weighs ? ", with weights" : ""));
  Schedule{seed, weighs}.run(sums);
}

TEST(FaultSchedules, KeepThePromises) {
  Sums sums;
  for (const std::uint64_t seed : once_failed) run(seed, false, sums);
  for (std::uint64_t seed = 1; seed <= schedules() && !::testing::Test::HasFailure(); ++seed)
    run(seed, seed % 2 == 0, sums);
  if (schedules() < 100) return;
  // Checks that the schedules reach what they are for; the numbers are for each 100 of them.
  const auto hundreds = static_cast<std::int64_t>(schedules() / 100);
  EXPECT_GT(sums.acknowledged, 1000 * hundreds);
  EXPECT_GT(sums.read, 800 * hundreds);
  EXPECT_GT(sums.synced, 500 * hundreds);
  EXPECT_GT(sums.failed, 10 * hundreds);
  EXPECT_GT(sums.losses, 10 * hundreds);
  EXPECT_GT(sums.handed, 200 * hundreds);
  EXPECT_GT(sums.uncertain, 0);
}

}  // namespace
}  // namespace hocket::server::faults
