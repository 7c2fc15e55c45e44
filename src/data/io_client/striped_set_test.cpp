// Tests how a process opens and closes the parts of a version, with servers that fail in all ways.
#include "io_client/striped_set.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "io_client/testing.hpp"
#include "layout/stripes.hpp"

namespace hocket::io_client {
namespace {

using Server = event::ServerMap::MappedServer;

Server named(const StandIn& server, const std::string& name) { return {name, "/", server.server().addresses}; }

// Joins a version at its home.
std::vector<ServedFile> joined(const Server& home) {
  std::vector<ServedFile> files;
  files.emplace_back(home, StandIn::secret);
  files.front().join({});
  await_answers(files);
  EXPECT_FALSE(files.front().failed());
  return files;
}

int open(std::vector<ServedFile>& files) {
  const std::vector<Server> wanted{files.front().server()};
  return open_parts(files, wanted, StandIn::secret, true, DescriptorWait());
}

TEST(StripedSet, TheFirstStripeNeedsNoParts) {
  EXPECT_FALSE(needs_parts({0, 0}));
  EXPECT_FALSE(needs_parts({5, layout::stripe_bytes}));
  EXPECT_TRUE(needs_parts({0, layout::stripe_bytes + 1}));
}

TEST(StripedSet, AHomeThatHasAllHasNoParts) {
  const StandIn home{no_bytes(), {}};
  std::vector<ServedFile> files = joined(named(home, "home"));
  EXPECT_EQ(open(files), 0);
  EXPECT_EQ(files.size(), 1U);
  EXPECT_EQ(close_version(files, 9, DescriptorWait()), 0);
  EXPECT_EQ(home.closed_at, 9);
}

TEST(StripedSet, AServerThatSaysNoMapIsAnError) {
  const StandIn home{no_bytes(), {.stripes = "nonsense\n"}};
  std::vector<ServedFile> files = joined(named(home, "home"));
  EXPECT_EQ(open(files), EPROTO);
}

// The home and up to three others act at random; the model says what the client must find.
TEST(StripedSetProperties, AVersionIsWholeOrLost) {
  enum class Fault { none, absent, refuses, fails_to_close };
  int whole = 0, broken = 0;
  for (std::uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    const int locate_error = random() % 6 == 0 ? ECANCELED : 0;
    const int home_close_error = random() % 6 == 0 ? ECANCELED : 0;
    StandIn home{no_bytes(), {.sync_error = home_close_error, .locate_error = locate_error}};
    std::vector<std::unique_ptr<StandIn>> others;
    std::vector<Server> servers{named(home, "home")};
    bool opens = locate_error == 0, closes = true;
    for (std::size_t i = 0; i < random() % 4; ++i) {
      const auto fault = random() % 2 == 0 ? Fault::none : static_cast<Fault>(random() % 4);
      StandIn::StandInSettings settings;
      settings.part_error = fault == Fault::refuses ? ESTALE : 0;
      settings.sync_error = fault == Fault::fails_to_close ? ECANCELED : 0;
      others.push_back(std::make_unique<StandIn>(no_bytes(), settings));
      servers.push_back(named(*others.back(), "s" + std::to_string(i)));
      if (fault == Fault::absent) servers.back().addresses = "unix:/nowhere/" + servers.back().name;
      opens &= fault != Fault::absent && fault != Fault::refuses;
      closes &= fault != Fault::fails_to_close;
    }
    home.stripe_over(event::text_of(servers));
    std::vector<ServedFile> files = joined(servers.front());
    const int opened = open(files);
    EXPECT_EQ(opened, opens ? 0 : locate_error != 0 ? locate_error : ECONNRESET);
    EXPECT_EQ(any_lost(files), !opens && locate_error == 0);
    if (!opens) {
      if (locate_error == 0) {
        EXPECT_EQ(close_version(files, 9, DescriptorWait()), ECONNRESET);
        EXPECT_EQ(home.closes, 0) << "the home must not publish what is not complete";
      }
      ++broken;
      continue;
    }
    EXPECT_EQ(files.size(), servers.size());
    const auto end = static_cast<std::int64_t>(random() % 100);
    const int closed = close_version(files, end, DescriptorWait());
    for (const auto& one : others) EXPECT_EQ(one->closes, 1);
    if (!closes) {
      EXPECT_EQ(closed, ECANCELED);
      EXPECT_EQ(home.closes, 0);
      ++broken;
    } else {
      EXPECT_EQ(closed, home_close_error);
      EXPECT_EQ(home.closed_at, end);
      ++whole;
    }
  }
  EXPECT_GT(whole, 10);
  EXPECT_GT(broken, 10);
}

}  // namespace
}  // namespace hocket::io_client
