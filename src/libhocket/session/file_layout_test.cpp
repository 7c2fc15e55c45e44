#include "session/file_layout.hpp"

#include <gtest/gtest.h>

#include "file_system/lustre_bytes_testing.hpp"

namespace hocket::runtime {
namespace {

using namespace file_system::testing;
using file_system::ServerKind;
using Names = PartNames;

std::optional<PartNames> names_in(const std::string& hex) {
  return part_names(file_system::lustre_stripes(bytes_of(hex)).value());
}

TEST(FileLayout, NamesTheOstsOfTheStripes) {
  EXPECT_EQ(names_in(v1), (Names{"ost11", "ost3"}));
  EXPECT_EQ(names_in(v3), Names{"ost258"});
}

TEST(FileLayout, OfACompositeIsTheUnionOfItsComponents) {
  EXPECT_EQ(names_in(composite(has_objects)), (Names{"ost11", "ost258", "ost3"}));
}

TEST(FileLayout, OfAFileThatMayGrowElsewhereIsNotKnown) { EXPECT_EQ(names_in(composite(has_none)), std::nullopt); }

TEST(FileLayout, NamesTheMetadataTargetOfDataThere) {
  EXPECT_EQ(part_names({ServerKind::ost, {{0, 1 << 20, 0, {}, true}, {1 << 20, 2 << 20, 65536, {3}}}}),
            (Names{"mdt", "ost3"}));
}

TEST(FileLayout, NamesTheTargetsOfBeegfs) {
  EXPECT_EQ(part_names({ServerKind::target, {{0, 1, 65536, {102, 101, 102}}}}), (Names{"target101", "target102"}));
  EXPECT_EQ(part_names({ServerKind::mirror, {{0, 1, 65536, {7}}}}), Names{"mirror7"});
}

TEST(FileLayout, IsNotKnownIfARequestMayNotNameAsMany) {
  file_system::StripedExtent extent;
  for (std::uint32_t number = 0; number < 64; ++number) extent.servers.push_back(number);
  EXPECT_EQ(part_names({ServerKind::ost, {extent}})->size(), 64U);
  extent.servers.push_back(64);
  EXPECT_EQ(part_names({ServerKind::ost, {extent}}), std::nullopt);
}

TEST(FileLayout, IsNotKnownElsewhere) {
  EXPECT_EQ(layout_of("/proc/self/stat"), std::nullopt);
  EXPECT_EQ(layout_of("/not/there/at/all"), std::nullopt);
  EXPECT_EQ(layout_of(""), std::nullopt);
}

}  // namespace
}  // namespace hocket::runtime
