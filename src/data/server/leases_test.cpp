// Tests leases of parts at a real server, whose client this test is as the home of versions.
#include "server/leases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "server/testing.hpp"

namespace hocket::server {
namespace {

using event::ServerMap;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A socket between the home and the server, which can be cut.
class CuttableRelay {
 public:
  CuttableRelay(const std::string& at, std::string to)
      : listener_(std::move(bus::listen_at(at)).value()), to_(std::move(to)) {
    thread_ = std::thread([this] { run(); });
  }
  ~CuttableRelay() { cut(); }
  void cut() {
    cut_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    pollfd come{listener_.get(), POLLIN, 0};
    while (!cut_ && ::poll(&come, 1, 10) == 0) continue;
    Fd ends[2] = {
        Fd{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)},
        std::move(transport::connect_to(transport::read_address("unix:" + to_).value(), node_now() + testing::limit))
            .value()};
    listener_ = Fd{};
    std::array<char, 4096> text{};
    while (!cut_) {
      pollfd ready[2] = {{ends[0].get(), POLLIN, 0}, {ends[1].get(), POLLIN, 0}};
      ::poll(ready, 2, 10);
      for (int i = 0; i < 2; ++i) {
        if (ready[i].revents == 0) continue;
        const ssize_t got = ::read(ends[i].get(), text.data(), text.size());
        if (got <= 0 || ::write(ends[1 - i].get(), text.data(), static_cast<std::size_t>(got)) != got) return;
      }
    }
  }

  Fd listener_;
  std::string to_;
  std::atomic<bool> cut_ = false;
  std::thread thread_;
};

class Leases : public testing::Served {
 protected:
  ServerMap::MappedServer home() const { return {"home", "/", "unix:" + root_ + "/home"}; }
  ServerMap::MappedServer other() const { return {"other", "/", "unix:" + root_ + "/sock"}; }
  ServerMap::MappedServer absent() const { return {"absent", "/", "unix:" + root_ + "/absent"}; }

  void keep(std::uint64_t number, PartLeases::MappedServers servers) { leases.keep(number, servers, node_now()); }
  // Makes progress until the condition holds.
  void advance_until(const std::function<bool()>& done) {
    const Time deadline = node_now() + testing::limit;
    while (!done()) {
      ASSERT_LT(node_now(), deadline);
      pollfd ready[2] = {{workers.descriptor(), POLLIN, 0}, {leases.descriptor(), POLLIN, 0}};
      ::poll(ready, 2, 10);
      workers.reap();
      leases.advance(node_now());
    }
  }
  void advance_until_kept(std::size_t count) {
    advance_until([&] { return kept.size() == count; });
  }
  std::int64_t parts() {
    const testing::Link link = connect();
    return told(*link, "data_set_parts");
  }

  Workers workers{1};
  std::map<std::uint64_t, std::vector<std::string>> kept;  // names of the servers by number
  std::vector<std::uint64_t> lost;
  PartLeases leases{workers,
                    "",
                    {.kept =
                         [this](std::uint64_t number, const PartLeases::MappedServers& servers) {
                           EXPECT_FALSE(kept.contains(number)) << "told once";
                           for (const auto& one : servers) kept[number].push_back(one.name);
                         },
                     .lost =
                         [this](const auto& server, const std::vector<std::uint64_t>& numbers) {
                           EXPECT_EQ(server.name, "other");
                           lost.insert(lost.end(), numbers.begin(), numbers.end());
                         }}};
};

TEST_F(Leases, AServerKeepsAPartUntilItsLeaseEnds) {
  start();
  keep(7, {home(), other()});
  advance_until_kept(1);
  EXPECT_THAT(kept[7], ElementsAre("home", "other"));
  EXPECT_EQ(parts(), 1);
  keep(8, {home(), other()});  // over the same connection
  advance_until_kept(2);
  EXPECT_EQ(parts(), 2);
  leases.release(7);
  advance_until([this] { return parts() == 1; });
  leases.release(7);
  leases.release(99);
  leases.release(8);
  advance_until([this] { return parts() == 0; });
  EXPECT_THAT(lost, IsEmpty());
}

TEST_F(Leases, WhoCannotBeReachedIsLeftOut) {
  start();
  keep(7, {home(), absent(), other()});
  keep(8, {home(), absent()});
  advance_until_kept(2);
  EXPECT_THAT(kept[7], ElementsAre("home", "other"));
  EXPECT_THAT(kept[8], ElementsAre("home"));
  keep(9, {home(), absent(), other()});  // is tried again
  advance_until_kept(3);
  EXPECT_THAT(kept[9], ElementsAre("home", "other"));
}

TEST_F(Leases, IfOneRefusesTheHomeHasAll) {
  HocketServer::ServerSettings settings;
  settings.exchange.most_bytes = 0;
  start(settings);
  keep(7, {home(), other()});
  advance_until_kept(1);
  EXPECT_THAT(kept[7], ElementsAre("home"));
  EXPECT_EQ(parts(), 0);
}

TEST_F(Leases, AVersionThatIsDroppedMeanwhileLeavesNoPart) {
  start();
  keep(7, {home(), other()});
  leases.release(7);  // before the connection is made
  keep(8, {home(), other()});
  advance_until_kept(1);
  EXPECT_THAT(kept[8], ElementsAre("home", "other"));
  keep(9, {home(), other()});
  leases.release(9);  // while the server is asked
  advance_until([this] { return parts() == 1; });
  EXPECT_FALSE(kept.contains(7) || kept.contains(9));
}

TEST_F(Leases, TheHomeLearnsWhatALostServerHad) {
  start();
  CuttableRelay relay{root_ + "/relay", root_ + "/sock"};
  const ServerMap::MappedServer relayed{"other", "/", "unix:" + root_ + "/relay"};
  keep(7, {home(), relayed});
  keep(8, {home(), relayed});
  advance_until_kept(2);
  relay.cut();
  advance_until([this] { return lost.size() == 2; });
  EXPECT_THAT(lost, UnorderedElementsAre(7, 8));
  leases.release(7);
  keep(9, {home(), relayed});
  advance_until_kept(3);
  EXPECT_THAT(kept[9], ElementsAre("home")) << "nobody listens any more";
  advance_until([this] { return parts() == 0; });
}

TEST_F(Leases, TheEndOfTheHomeEndsAllParts) {
  start();
  keep(7, {home(), other()});
  advance_until_kept(1);
  {
    Workers own{1};
    bool is_kept = false;
    PartLeases second{
        own, "", {.kept = [&](auto, const auto&) { is_kept = true; }, .lost = [](const auto&, const auto&) {}}};
    second.keep(8, {home(), other()}, node_now());
    for (const Time deadline = node_now() + testing::limit; !is_kept && node_now() < deadline;) {
      own.reap();
      second.advance(node_now());
    }
    EXPECT_EQ(parts(), 2);
  }
  advance_until([this] { return parts() == 1; });
}

// Versions are striped and dropped at random: as many parts are left as there are leases.
TEST_F(Leases, AsManyPartsAreLeftAsThereAreLeases) {
  start();
  std::mt19937_64 random{1};
  std::set<std::uint64_t> live;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    keep(number, random() % 4 == 0 ? PartLeases::MappedServers{home(), absent(), other()}
                                   : PartLeases::MappedServers{home(), other()});
    live.insert(number);
    if (random() % 2 == 0) {
      const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      leases.release(*victim);
      live.erase(victim);
    }
    if (random() % 3 == 0) {
      workers.reap();
      leases.advance(node_now());
    }
  }
  advance_until([&] {
    return std::all_of(live.begin(), live.end(), [this](std::uint64_t number) { return kept.contains(number); });
  });
  advance_until([&] { return parts() == static_cast<std::int64_t>(live.size()); });
  for (const std::uint64_t number : live) EXPECT_THAT(kept[number], ElementsAre("home", "other"));
}

}  // namespace
}  // namespace hocket::server
