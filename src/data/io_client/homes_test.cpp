#include "io_client/homes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "io_client/testing.hpp"

namespace hocket::io_client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view data_set = "field";

// Servers in the order of their weights for the name; each has settings of its own.
class Homes {
 public:
  explicit Homes(std::vector<StandIn::StandInSettings> settings) {
    event::ServerMap names;
    for (std::size_t i = 0; i < settings.size(); ++i) names.servers.push_back({"s" + std::to_string(i), "/", "x"});
    const auto ranked = event::ranked_for(names, data_set);
    for (std::size_t i = 0; i < settings.size(); ++i) {
      servers.push_back(std::make_unique<StandIn>(no_bytes(), settings[i]));
      map.servers.insert(map.servers.begin(), {ranked[i].name, "/", servers.back()->server().addresses});
      ranks.push_back(ranked[i].name);
    }
  }

  // Returns the ranks of the servers that were found, the home first.
  std::vector<std::size_t> find() {
    std::vector<std::size_t> found;
    for (const auto& one : finder.find(map, data_set, DescriptorWait()))
      found.push_back(static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), one.name) - ranks.begin()));
    return found;
  }
  event::ServerMap::MappedServer& ranked(std::size_t rank) {
    return *std::find_if(map.servers.begin(), map.servers.end(), [&](auto& one) { return one.name == ranks[rank]; });
  }

  event::ServerMap map;
  std::vector<std::unique_ptr<StandIn>> servers;  // by rank
  std::vector<std::string> ranks;
  HomeFinder finder{StandIn::secret};
};

TEST(HomeFinder, ANewNameHasTheServerOfMostWeight) {
  Homes homes({{}, {}, {}});
  EXPECT_THAT(homes.find(), ElementsAre(0, 1, 2));
  EXPECT_THAT(homes.find(), ElementsAre(0, 1, 2)) << "over the same connections";
}

TEST(HomeFinder, AHomeIsFoundByOneQuestion) {
  Homes homes({{.is_home = true}, {.is_home = true}});
  EXPECT_THAT(homes.find(), ElementsAre(0, 1));
  EXPECT_EQ(homes.servers[1]->finds, 0);
}

TEST(HomeFinder, AloneItIsNotAsked) {
  Homes homes(std::vector<StandIn::StandInSettings>(1));
  EXPECT_THAT(homes.find(), ElementsAre(0));
  EXPECT_EQ(homes.servers[0]->finds, 0);
  homes.map.servers.clear();
  EXPECT_THAT(homes.find(), IsEmpty());
}

TEST(HomeFinder, ANameStaysWhereItIs) {
  Homes homes({{}, {}, {.is_home = true}, {}, {}, {}});
  EXPECT_THAT(homes.find(), ElementsAre(2, 0, 1, 3, 4, 5));
  EXPECT_EQ(homes.servers[4]->finds, 0) << "only the first four are asked";
}

TEST(HomeFinder, DrainedServersBecomeNoHomes) {
  Homes homes({{.find_error = ESHUTDOWN}, {.find_error = ESHUTDOWN}, {}});
  homes.ranked(0).set_aside = homes.ranked(1).set_aside = true;
  EXPECT_THAT(homes.find(), ElementsAre(2));
}

TEST(HomeFinder, ADrainedServerMayStillBeTheHome) {
  Homes homes({{}, {.is_home = true}, {}});
  homes.ranked(1).set_aside = true;
  EXPECT_THAT(homes.find(), ElementsAre(1, 0, 2));
}

TEST(HomeFinder, IfAllAreDrainedThereIsNone) {
  Homes homes({{.find_error = ESHUTDOWN}, {.find_error = ESHUTDOWN}});
  EXPECT_THAT(homes.find(), IsEmpty());
}

TEST(HomeFinder, AServerThatIsNotThereCountsAsTheHomeIfItIsFirst) {
  Homes homes({{}, {}, {}});
  homes.ranked(0).addresses = "unix:/nowhere";
  EXPECT_THAT(homes.find(), ElementsAre(0, 1, 2)) << "joining says what is wrong";
  homes.ranked(0).addresses = homes.servers[0]->server().addresses;
  homes.ranked(1).addresses = "unix:/nowhere";
  EXPECT_THAT(homes.find(), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace hocket::io_client
