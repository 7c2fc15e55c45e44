#include "event/server_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/splitmix.hpp"

namespace hocket::event {
namespace {

TEST(ServerMap, IsALineAServer) {
  const std::vector<ServerMap::MappedServer> servers{{"s1", "/scratch", "unix:/run/s1 tcp:node1:4000"},
                                                     {"s2", "/my files/100%", "unix:/run/s2"}};
  const std::string text = text_of(servers);
  EXPECT_EQ(text, "s1 /scratch unix:/run/s1 tcp:node1:4000\ns2 /my%20files/100%25 unix:/run/s2\n");
  const auto map = parse_server_map(7, text);
  ASSERT_TRUE(map) << map.error().text;
  EXPECT_EQ(map.value(), (ServerMap{7, servers}));
}

TEST(ServerMap, NamesAWeightThatIsNotFull) {
  const std::vector<ServerMap::MappedServer> servers{{"s1", "/scratch", "unix:/run/s1 tcp:node1:4000", false, 3},
                                                     {"s2", "/scratch", "unix:/run/s2", true, 1},
                                                     {"s3", "/scratch", "unix:/run/s3", false, full_weight}};
  const std::string text = text_of(servers);
  EXPECT_EQ(text,
            "s1 /scratch unix:/run/s1 tcp:node1:4000 weight:3\ns2 /scratch unix:/run/s2 weight:1 slow:\n"
            "s3 /scratch unix:/run/s3\n");
  const auto map = parse_server_map(7, text);
  ASSERT_TRUE(map) << map.error().text;
  EXPECT_EQ(map.value().servers, servers);
}

TEST(ServerMap, MayBeEmpty) {
  EXPECT_EQ(text_of(ServerMap{}.servers), "");
  EXPECT_EQ(parse_server_map(3, "").value(), (ServerMap{3, {}}));
}

TEST(ServerMap, SaysWhichLineIsWrong) {
  for (const char* wrong :
       {"s1", "s1 /scratch", "s1 /scratch ", " /scratch unix:/x", "s1  unix:/x", "\n", "s1 /a% unix:/x",
        "s1 /a%2 unix:/x", "s1 /a%zz unix:/x", "s1 /a%2b unix:/x", "s1 /a unix:/x weight:0", "s1 /a unix:/x weight:9",
        "s1 /a unix:/x weight:-1", "s1 /a unix:/x weight:", "s1 /a unix:/x weight:3x",
        "s1 /a unix:/x weight:99999999999", "s1 /a  weight:3"}) {
    const auto map = parse_server_map(5, std::string{"s0 /scratch unix:/x\n"} + wrong + "\n");
    ASSERT_FALSE(map) << wrong;
    EXPECT_NE(map.error().text.find("epoch 5, line 2"), std::string::npos) << map.error().text;
  }
}

TEST(ServerMap, AnyDirectoryComesBack) {
  std::uint64_t state = 1;
  const auto below = [&state](std::uint64_t bound) { return splitmix(state += splitmix_step) % bound; };
  for (int i = 0; i < 2000; ++i) {
    std::vector<ServerMap::MappedServer> servers(below(5));
    for (auto& server : servers) {
      server = {"s" + std::to_string(below(100)), "/", "unix:/a b", below(2) == 0, static_cast<int>(1 + below(8))};
      for (std::uint64_t n = below(30); n > 0; --n) server.directory += static_cast<char>(below(256));
    }
    const auto map = parse_server_map(i, text_of(servers));
    ASSERT_TRUE(map) << map.error().text;
    EXPECT_EQ(map.value().servers, servers);
  }
}

TEST(ServerMap, ListsTheServersOfAFileInOneOrderWhateverCameFirst) {
  std::vector<ServerMap::MappedServer> servers{
      {"s3", "/a", "unix:/3"}, {"s1", "/", "unix:/1"}, {"s2", "/b", "unix:/2"}};
  const auto names = [&](std::string_view path) {
    std::vector<std::string> found;
    for (const auto& server : servers_of({1, servers}, path)) found.push_back(server.name);
    return found;
  };
  std::sort(servers.begin(), servers.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  do {
    EXPECT_EQ(names("/a/f"), (std::vector<std::string>{"s1", "s3"}));
    EXPECT_EQ(names("/b/f"), (std::vector<std::string>{"s1", "s2"}));
  } while (std::next_permutation(servers.begin(), servers.end(),
                                 [](const auto& one, const auto& other) { return one.name < other.name; }));
  for (int i = 0; i < 100; ++i) servers.push_back({"t" + std::to_string(i), "/", "unix:/t"});
  EXPECT_EQ(names("/f").size(), most_servers_of_file);
}

TEST(ServerMap, PlacementsDifferIfAByteCouldHaveAnotherServer) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(placement_of(Names{}), unknown_placement);
  EXPECT_EQ(placement_of(Names{"s1"}), one_server);
  EXPECT_EQ(placement_of(Names{"s2"}), one_server);
  std::set<Placement> seen{unknown_placement, one_server};
  std::size_t sets = 2;
  for (unsigned chosen = 0; chosen < 1U << 10U; ++chosen) {
    Names names;
    for (unsigned i = 0; i < 10; ++i)
      if ((chosen >> i & 1U) != 0) names.push_back("s" + std::to_string(i));
    if (names.size() < 2) continue;
    const Placement placement = placement_of(names);
    EXPECT_TRUE(placement > 0 && placement < Placement{1} << 61);
    seen.insert(placement);
    ++sets;
  }
  seen.insert(placement_of(Names{"s1s", "2"}));
  seen.insert(placement_of(Names{"s1", "s2"}));  // is among the sets above
  EXPECT_EQ(seen.size(), sets + 1);
}

TEST(ServerMap, PlacementsDifferIfWeightsDoUnlessTheyPlaceBytesAlike) {
  const std::vector<std::string> names{"s1", "s2"};
  const auto of = [&](int first, int second) { return placement_of(names, std::vector<int>{first, second}); };
  EXPECT_EQ(of(8, 8), placement_of(names)) << "as clients that know no weights see it";
  EXPECT_EQ(of(3, 3), placement_of(names));
  EXPECT_EQ(of(8, 4), of(2, 1));
  std::set<Placement> seen;
  std::set<double> ratios;
  for (int first = 1; first <= full_weight; ++first) {
    for (int second = 1; second <= full_weight; ++second) {
      seen.insert(of(first, second));
      ratios.insert(static_cast<double>(first) / second);
    }
  }
  EXPECT_EQ(seen.size(), ratios.size());
  EXPECT_EQ(placement_of(std::vector<std::string>{"s1"}, std::vector<int>{3}), one_server);
}

TEST(ServerMap, DataSetsAreStripedEvenlyWhateverTheWeights) {
  ServerMap map{1, {{"s1", "/a", "unix:/1"}, {"s2", "/a", "unix:/2"}, {"s3", "/a", "unix:/3"}}};
  const auto before = servers_of_data_set(map, "field");
  map.servers[0].weight = 1, map.servers[2].weight = 5;
  EXPECT_EQ(servers_of_data_set(map, "field"), before);
  EXPECT_EQ(servers_of(map, "/a/f")[2].weight, 5) << "files are not";
}

TEST(ServerMap, PlacesAFileOnlyAtTheServersThatServeIt) {
  const ServerMap map{1, {{"s2", "/a", "unix:/2"}, {"s1", "/a", "unix:/1"}, {"s3", "/b", "unix:/3"}}};
  const std::vector<std::string> both{"s1", "s2"};
  EXPECT_EQ(placement_at(map, "/a/f", "s1"), placement_of(both));
  EXPECT_EQ(placement_at(map, "/a/f", "s2"), placement_of(both));
  EXPECT_EQ(placement_at(map, "/a/f", "s3"), unknown_placement);
  EXPECT_EQ(placement_at(map, "/b/f", "s3"), one_server);
  EXPECT_EQ(placement_at({}, "/a/f", "s1"), unknown_placement);
  ServerMap weighed = map;
  weighed.servers[1].weight = 4;
  EXPECT_EQ(placement_at(weighed, "/a/f", "s2"), placement_of(both, std::vector<int>{1, 2}));
  EXPECT_EQ(placement_at(weighed, "/b/f", "s3"), one_server);
}

TEST(ServerMap, KnowsWhatAServerServes) {
  for (const char* directory : {"/scratch/a", "/scratch/a/"}) {
    const ServerMap::MappedServer server{"s1", directory, "unix:/x"};
    EXPECT_TRUE(serves(server, "/scratch/a/f")) << directory;
    for (const char* other : {"/scratch/a", "/scratch/ab", "/scratch/ab/f", "/scratch", "scratch/a/f", ""})
      EXPECT_FALSE(serves(server, other)) << directory << " " << other;
  }
  EXPECT_TRUE(serves({"s1", "/", "unix:/x"}, "/f"));
}

TEST(ServerMap, KnowsDataSetsByTheirPrefix) {
  EXPECT_EQ(data_set_of("hocket:/field"), "field");
  EXPECT_EQ(data_set_of("hocket:/"), "");
  EXPECT_EQ(data_set_of("/scratch/hocket:/field"), std::nullopt);
  EXPECT_EQ(data_set_of("hocket:field"), std::nullopt);
}

TEST(ServerMap, GivesADataSetAnotherHomeOnlyWhereAServerCameOrWent) {
  ServerMap map;
  EXPECT_EQ(home_of(map, "field"), nullptr);
  for (int i = 0; i < 5; ++i) map.servers.push_back({"s" + std::to_string(i), "/scratch", "unix:/run/s"});
  std::map<std::string, int> sets;  // number of data sets at each server
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "field" + std::to_string(i);
    const std::string before = home_of(map, name)->name;
    ++sets[before];
    const auto striped = servers_of_data_set(map, name);
    EXPECT_EQ(striped.size(), 5U);
    EXPECT_EQ(striped.front().name, before);
    ServerMap other = map;
    std::reverse(other.servers.begin(), other.servers.end());
    EXPECT_EQ(home_of(other, name)->name, before) << "for whatever order of the servers";
    EXPECT_EQ(servers_of_data_set(other, name), striped);
    std::erase_if(other.servers, [](const auto& server) { return server.name == "s3"; });
    if (before == "s3") continue;
    EXPECT_EQ(home_of(other, name)->name, before) << name << " after the end of s3";
  }
  for (const auto& [server, count] : sets) EXPECT_NEAR(count, 200, 60) << server;
}

TEST(ServerMap, KeepsDataSetsAtServersThatAreSetAside) {
  ServerMap map{4, {{"s1", "/scratch", "unix:/run/s1"}, {"s2", "/scratch", "unix:/run/s2 tcp:n:1", true}}};
  EXPECT_EQ(text_of(map.servers), "s1 /scratch unix:/run/s1\ns2 /scratch unix:/run/s2 tcp:n:1 slow:\n");
  EXPECT_EQ(parse_server_map(4, text_of(map.servers)).value(), map);
  EXPECT_FALSE(parse_server_map(4, "s2 /scratch  slow:\n")) << "without an address";
  const auto files = servers_of(map, "/scratch/f");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "s1");
  ServerMap both = map;
  both.servers[1].set_aside = false;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "field" + std::to_string(i);
    EXPECT_EQ(home_of(map, name)->name, home_of(both, name)->name) << name;
    EXPECT_EQ(servers_of_data_set(map, name).size(), home_of(map, name)->name == "s1" ? 1U : 2U)
        << "but not their parts";
  }
}

}  // namespace
}  // namespace hocket::event
