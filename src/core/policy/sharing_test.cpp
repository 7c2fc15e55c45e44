#include "policy/sharing.hpp"

#include <random>

#include "policy/contention.hpp"
#include "policy/sharing_testing.hpp"

namespace hocket::policy {
namespace {

using testing::allocation;
using testing::Known;
using testing::Machine;
using testing::table2;

constexpr const CorePolicy* all[] = {&fair, &speedup, &io_aware, &predictive};

TEST(Fair, SharesOutInEqualParts) {
  EXPECT_EQ(allocation(fair, 36), (Sizes{8, 10, 10, 8}));
  EXPECT_EQ(allocation(fair, 82), (Sizes{20, 22, 21, 19}));
  EXPECT_EQ(allocation(fair, 28), (Sizes{6, 8, 8, 6}));
}

// The paper says: "The speedup-based scheduler assigns more resources to the applications with better speedups (A1, A2
// and A4)."
TEST(Speedup, FavoursTheApplicationsThatScale) {
  for (const std::int64_t cores : {36, 82, 135, 210}) {
    const Sizes sizes = allocation(speedup, cores);
    const std::int64_t of_a3 = sizes[2] - 8;
    EXPECT_GE(sizes[0] - 6, 2 * of_a3) << cores;
    EXPECT_GT(sizes[1] - 8, of_a3) << cores;
    EXPECT_GT(sizes[3] - 6, of_a3) << cores;
    EXPECT_EQ(sizes[0] + sizes[1] + sizes[2] + sizes[3], cores);
  }
}

TEST(Speedup, GoesByTheSpeedupAgainstOneProcess) {
  const auto divides = [](std::int64_t p) { return 100.0 / static_cast<double>(p); };
  const auto nothing = [](std::int64_t) { return 0.1; };
  // Both scale perfectly, so a core is worth the same to both, though it saves the small one a larger part of its time.
  Machine machine{{{"large", 40, divides, nothing}, {"small", 4, divides, nothing}}, 64};
  machine.run(speedup);
  const Sizes sizes = machine.sizes();
  EXPECT_EQ(sizes[0] + sizes[1], 64);
  const Sharer sharer{&machine.cluster.applications().begin()->second, 40, 40};
  EXPECT_NEAR(marginal_speedup(sharer, 40, 44), 1, 0.05);
}

TEST(Speedup, LeavesCoresThatHelpNobody) {
  const auto flat = [](std::int64_t p) { return p < 8 ? 80.0 / static_cast<double>(p) : 10.0; };
  Machine machine{{{"A", 4, flat, [](std::int64_t) { return 1.0; }}}, 64};
  machine.run(speedup);
  EXPECT_LE(machine.sizes()[0], 12);
}

// The paper says of Fig. 17: "When the number of resources is reduced (36 processes in total), it assigns all the
// resources to application A1 …. For 82 and 135 processes both A1 and A3 benefit …. For larger amounts (210 processes)
// … all applications benefit (A1 and A3 to a greater extent)."
TEST(IoAware, GivesTheAllocationsOfFig17) {
  EXPECT_EQ(allocation(io_aware, 36), (Sizes{14, 8, 8, 6}));
  for (const std::int64_t cores : {82, 135}) {
    const Sizes sizes = allocation(io_aware, cores);
    EXPECT_GT(sizes[0], 6 + 10) << cores;
    EXPECT_GT(sizes[2], 8 + 10) << cores;
    EXPECT_EQ(sizes[1], 8) << cores;
    EXPECT_EQ(sizes[3], 6) << cores;
    EXPECT_EQ(sizes[0] + sizes[2] + 8 + 6, cores);
  }
  const Sizes sizes = allocation(io_aware, 210);
  for (const std::size_t i : {0, 2}) {
    for (const std::size_t k : {1, 3}) EXPECT_GT(sizes[i] - table2()[i].processes, sizes[k] - table2()[k].processes);
  }
  EXPECT_GT(sizes[1], 8);
  EXPECT_GT(sizes[3], 6);
}

TEST(IoAware, ThePlainIoRatioDoesNot) {
  Machine machine{table2(), 135};
  Pool pool{{}, 107};
  for (const auto& [id, application] : machine.cluster.applications()) {
    pool.sharers.push_back({&application, application.computing_processes(), application.computing_processes()});
  }
  const auto plain = [](const Sharer& sharer, std::int64_t from, std::int64_t to) {
    return marginal_speedup(sharer, from, to) / model::pace(*sharer.application, to)->io_ratio();
  };
  const Sizes sizes = share_greedily(pool, original_sizes(pool), pool.free, plain);
  EXPECT_GT(sizes[1], 8);
  EXPECT_GT(sizes[3], 6);
}

TEST(Sharing, OneThatLeavesGivesItsCoresToTheOthers) {
  for (const CorePolicy* policy : all) {
    Machine machine{table2(), 82};
    machine.run(*policy);
    const std::int64_t before = machine.sizes()[0];
    machine.leave(std::next(machine.cluster.applications().begin())->first);
    machine.run(*policy);
    EXPECT_GT(machine.sizes()[0], before) << policy->name;
  }
}

TEST(Sharing, OneThatComesGetsItsPartOfWhatOthersHave) {
  for (const CorePolicy* policy : {&fair, &speedup}) {
    std::vector<Known> applications = table2();
    const Known last = applications.back();
    applications.pop_back();
    Machine machine{applications, 82};
    machine.run(*policy);
    // The earlier applications give back the cores that the new one starts with, as when cores are reclaimed.
    for (const auto& [id, application] : machine.cluster.applications()) {
      if (machine.free() >= last.processes) break;
      const std::int64_t size = application.malleability.processes;
      if (size <= application.expansion.original + last.processes) continue;
      CoreChange back;
      back.application = id;
      back.processes = size - last.processes;
      machine.resize(*policy, back);
    }
    machine.add(last);
    machine.run(*policy);
    const Sizes anew = allocation(*policy, 82);
    for (std::size_t i = 0; i < anew.size(); ++i) {
      const auto wanted = static_cast<double>(anew[i]);
      EXPECT_NEAR(static_cast<double>(machine.sizes()[i]), wanted, 0.15 * wanted + 1)
          << policy->name << " of A" << i + 1;
    }
  }
}

TEST(Sharing, WaitsForNewApplicationsToBeKnown) {
  for (const CorePolicy* policy : all) {
    Machine machine{table2(), 210};
    machine.announce({"new", 6, {}, {}, 0});
    EXPECT_TRUE(machine.ask(*policy).changes.empty()) << policy->name;
    machine.now += std::chrono::minutes{10};  // it does no I/O
    EXPECT_FALSE(machine.ask(*policy).changes.empty()) << policy->name;
  }
}

TEST(Sharing, TheFirstOfSeveralDoesNotGetAll) {
  Machine machine{{}, 64};
  machine.now += std::chrono::hours{1};
  machine.announce({"A1", 6, {}, {}, 0});
  EXPECT_TRUE(machine.ask(fair).changes.empty());
  machine.announce({"A2", 6, {}, {}, 0});
  machine.now += std::chrono::seconds{11};
  machine.run(fair);
  EXPECT_EQ(machine.sizes(), (Sizes{32, 32}));
}

TEST(Sharing, WaitsWhileOneShrinksAndLeavesTemporaryExpansionsAlone) {
  for (const CorePolicy* policy : all) {
    Machine machine{table2(), 210};
    model::Application& first = *machine.cluster.find(machine.cluster.applications().begin()->first);
    first.malleability.resizing_to = 2;
    EXPECT_TRUE(machine.ask(*policy).changes.empty()) << policy->name;
    first.malleability.resizing_to = 0;
    first.expansion = {1, "phase-shift", 4, 1000, {}};
    const CoreDecision decision = machine.ask(*policy);
    EXPECT_FALSE(decision.changes.empty());
    for (const CoreChange& change : decision.changes) EXPECT_NE(change.application, first.id) << policy->name;
  }
}

TEST(Sharing, SaysWhyInNumbers) {
  const auto reason = [](const CorePolicy& policy) {
    Machine machine{table2(), 36};
    return machine.ask(policy).changes.at(0).reason;
  };
  EXPECT_EQ(std::get<event::EqualPart>(reason(fair)), (event::EqualPart{8, 4}));
  EXPECT_NEAR(std::get<event::SpeedupGain>(reason(speedup)).gain_now, 0.95, 0.05);
  EXPECT_NEAR(std::get<event::IoBalance>(reason(io_aware)).io_ratio_now, 0.0365, 0.001);
  EXPECT_EQ(std::get<event::ObjectiveGain>(reason(predictive)).objective, "flops");
  EXPECT_GT(std::get<event::ObjectiveGain>(reason(predictive)).gain, 0);
}

// For random applications, policies never use more cores than exist, never go below an initial size, and come to rest.
TEST(Sharing, KeepsToTheCores) {
  std::mt19937_64 random{11};
  const auto draw = [&](double from, double to) { return std::uniform_real_distribution<double>{from, to}(random); };
  for (int round = 0; round < 40; ++round) {
    std::vector<Known> applications;
    std::int64_t taken = 0;
    for (int i = 0; i < 1 + round % 7; ++i) {
      const auto processes = static_cast<std::int64_t>(draw(1, 40));
      const double work = draw(10, 2000);
      const double part = draw(0, 2);
      const double io = draw(0, 1) < 0.2 ? 0.001 : draw(0.1, 30);
      applications.push_back({std::string{"A"}.append(std::to_string(i)), processes,
                              [=](std::int64_t p) { return work / static_cast<double>(p) + part; },
                              [=](std::int64_t p) { return io / std::min(4.0, static_cast<double>(p)); }, draw(1, 1e9),
                              i % 3 ? "gpfs" : "lustre"});
      taken += processes;
    }
    for (const CorePolicy* policy : all) {
      Machine machine{applications, taken + static_cast<std::int64_t>(draw(0, 300))};
      machine.run(*policy);
      machine.leave(machine.cluster.applications().begin()->first);
      machine.run(*policy);
    }
  }
}

// Rounding makes a flat curve fall by about 1e-16 at some sizes.
TEST(Sharing, GivesNothingForRoundingNoise) {
  const auto flat = [](std::int64_t p) { return 60 * (1 - 1e-15 * static_cast<double>(p % 3)); };
  const auto io = [](std::int64_t) { return 2.0; };
  for (const CorePolicy* policy : {&speedup, &io_aware, &predictive}) {
    Machine machine{{{"A1", 8, flat, io, 1e9}, {"A2", 8, flat, io, 1e9}}, 100};
    EXPECT_TRUE(machine.ask(*policy).changes.empty()) << policy->name;
  }
}

// Two applications that scale would come to the target more than twice as often. The third has a fixed size, and would
// wait.
TEST(Sharing, MakesNobodySlowerThanMostSlowdownAllows) {
  const auto scales = [](std::int64_t p) { return 1000.0 / static_cast<double>(p); };
  const auto rigid = [](std::int64_t) { return 60.0; };
  const auto io = [](std::int64_t) { return 20.0; };
  for (const CorePolicy* policy : all) {
    const auto grown = [&](double most_slowdown) {
      Machine machine{{{"M1", 8, scales, io, 1e9}, {"M2", 8, scales, io, 1e9}, {"R", 8, rigid, io, 1e9}}, 256};
      machine.most_slowdown = most_slowdown;
      auto& alone = *machine.cluster.find_application("R");
      alone.malleability.malleable = false;
      machine.run(*policy);
      const Sizes sizes = machine.sizes();
      const auto period = [&](std::size_t m1, std::size_t m2) {
        const ContentionModel queue{{{scales(static_cast<std::int64_t>(m1)), 20, 1, 0},
                                     {scales(static_cast<std::int64_t>(m2)), 20, 1, 0},
                                     {60, 20, 1, 0}},
                                    1};
        return queue.cycle_s(2);
      };
      return period(static_cast<std::size_t>(sizes[0]), static_cast<std::size_t>(sizes[1])) / period(8, 8);
    };
    EXPECT_GT(grown(0), 1.1) << policy->name;
    EXPECT_LE(grown(0.1), 1.1) << policy->name;
  }
}

TEST(Sharing, NobodyGetsMoreThanItsLimit) {
  const auto scales = [](std::int64_t p) { return 1000.0 / static_cast<double>(p); };
  const auto io = [](std::int64_t) { return 1.0; };
  for (const CorePolicy* policy : all) {
    Machine machine{{{"A", 4, scales, io, 1e9}, {"B", 4, scales, io, 1e9}, {"C", 9, scales, io, 1e9}}, 60};
    machine.settings.size_limits = {{"A", 10}, {"C", 5}, {"D", 1}};
    machine.run(*policy);
    const Sizes sizes = machine.sizes();
    EXPECT_EQ(sizes[0], 10) << policy->name;
    EXPECT_EQ(sizes[1], 60 - 10 - 9) << policy->name;
    EXPECT_EQ(sizes[2], 9) << policy->name << ": it keeps what it was started with";
  }
}

}  // namespace
}  // namespace hocket::policy
