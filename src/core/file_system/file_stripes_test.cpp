#include "file_system/file_stripes.hpp"

#include <gtest/gtest.h>

#include "file_system/ask_stripes.hpp"
#include "file_system/lustre_bytes_testing.hpp"

namespace hocket::file_system {
namespace {

using namespace testing;

constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t end_of_file = std::numeric_limits<std::int64_t>::max();

std::optional<FileStripes> stripes_in(const std::string& hex) { return lustre_stripes(bytes_of(hex)); }

TEST(LustreStripes, AreThoseOfTheAttribute) {
  EXPECT_EQ(stripes_in(v1), (FileStripes{ServerKind::ost, {{0, end_of_file, mib, {3, 11}}}}));
  EXPECT_EQ(stripes_in(v3), (FileStripes{ServerKind::ost, {{0, end_of_file, mib, {258}}}}));
}

TEST(LustreStripes, OfACompositeAreThoseOfItsComponents) {
  EXPECT_EQ(stripes_in(composite(has_objects)),
            (FileStripes{ServerKind::ost, {{0, 4 * mib, mib, {3, 11}}, {4 * mib, end_of_file, mib, {258}}}}));
  EXPECT_EQ(stripes_in(composite(has_none)),
            (FileStripes{ServerKind::ost, {{0, 4 * mib, mib, {3, 11}}, {4 * mib, end_of_file, 0, {}}}}));
}

TEST(LustreStripes, OfDataOnTheMetadataTargetHaveNoServer) {
  std::string on_mdt = v1;
  on_mdt.replace(on_mdt.find("01000000"), 8, "00010000");
  EXPECT_EQ(stripes_in(on_mdt), (FileStripes{ServerKind::ost, {{0, end_of_file, 0, {}, true}}}));
  EXPECT_EQ(server_at(stripes_in(on_mdt).value(), 0), std::nullopt);
}

TEST(LustreStripes, WithoutObjectsAreNone) {
  std::string released = v1;
  released.replace(released.find("01000000"), 8, "01000080");
  EXPECT_EQ(stripes_in(released), std::nullopt);
  EXPECT_EQ(stripes_in(v1.substr(0, v1.find("4500000000000000"))), std::nullopt) << "the default of a directory";
  EXPECT_EQ(stripes_in("d10bd10b 01000000"), std::nullopt) << "some other attribute";
}

TEST(LustreStripes, NeverReadBeyondTheEnd) {
  for (const std::string& text : {v1, v3, composite(has_objects)}) {
    const std::vector<std::byte> whole = bytes_of(text);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(lustre_stripes(part), std::nullopt) << size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::vector<std::byte> wrong = whole;
      wrong[i] = std::byte{0xff};
      const auto stripes = lustre_stripes(wrong);  // the sanitizers watch
      if (stripes) server_at(*stripes, 5 * mib);
    }
  }
}

TEST(ServerAt, FollowsTheStripes) {
  const FileStripes two = stripes_in(v1).value();
  EXPECT_EQ(server_at(two, 0), 3U);
  EXPECT_EQ(server_at(two, mib - 1), 3U);
  EXPECT_EQ(server_at(two, mib), 11U);
  EXPECT_EQ(server_at(two, 1000 * mib), 3U);
  const FileStripes grown = stripes_in(composite(has_objects)).value();
  EXPECT_EQ(server_at(grown, 4 * mib - 1), 11U);
  EXPECT_EQ(server_at(grown, 4 * mib), 258U);
  const FileStripes grows = stripes_in(composite(has_none)).value();
  EXPECT_EQ(server_at(grows, 3 * mib), 11U);
  EXPECT_EQ(server_at(grows, 4 * mib), std::nullopt);
  EXPECT_EQ(server_at({}, 0), std::nullopt);
  EXPECT_EQ(server_at({ServerKind::ost, {{0, end_of_file, 0, {1, 2}}}}, 0), std::nullopt) << "no stripe size";
}

// Stands for a file on BeeGFS.
struct FakeBeegfs {
  unsigned pattern = 1;
  std::vector<unsigned short> targets;
  int fails_at = -1;
  int calls = 0;

  int operator()(unsigned long request, void* argument) {
    if (calls++ == fails_at) return -1;
    if (request == beegfs_stripe_info) {
      *static_cast<BeegfsStripeInfo*>(argument) = {pattern, 524288, static_cast<unsigned short>(targets.size())};
      return 0;
    }
    EXPECT_EQ(request, beegfs_stripe_target);
    auto& stripe = *static_cast<BeegfsStripeTarget*>(argument);
    stripe.target = targets.at(stripe.index);
    return 0;
  }
};

std::optional<FileStripes> stripes_on(FakeBeegfs fake) {
  return beegfs_stripes([&](unsigned long request, void* argument) { return fake(request, argument); });
}

TEST(BeegfsStripes, AreThoseOfTheTargets) {
  EXPECT_EQ(stripes_on({1, {102, 101}}), (FileStripes{ServerKind::target, {{0, end_of_file, 524288, {102, 101}}}}));
  EXPECT_EQ(stripes_on({3, {7}}), (FileStripes{ServerKind::mirror, {{0, end_of_file, 524288, {7}}}}));
}

TEST(BeegfsStripes, AreNotKnownIfACallFailsOrThereAreTooMany) {
  for (int call = 0; call < 3; ++call) EXPECT_EQ(stripes_on({1, {101, 102}, call}), std::nullopt) << call;
  EXPECT_EQ(stripes_on({}), std::nullopt);
  EXPECT_EQ(stripes_on({1, std::vector<unsigned short>(257, 1)}), std::nullopt);
}

// The numbers that BeeGFS's client compiles to on x86-64.
TEST(BeegfsStripes, UseTheNumbersOfItsClient) {
  EXPECT_EQ(beegfs_stripe_info, 0x800c6619UL);
  EXPECT_EQ(beegfs_stripe_target, 0x8106661aUL);
}

TEST(Stripes, AreNotKnownElsewhere) {
  EXPECT_EQ(stripes_of("/proc/self/stat"), std::nullopt);
  EXPECT_EQ(stripes_of("/not/there/at/all"), std::nullopt);
  EXPECT_EQ(stripes_of(""), std::nullopt);
  EXPECT_EQ(stripes_of(0), std::nullopt);
  EXPECT_EQ(stripes_of(-1), std::nullopt);
}

}  // namespace
}  // namespace hocket::file_system
