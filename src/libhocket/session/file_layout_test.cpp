#include "session/file_layout.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hocket::runtime {
namespace {

// Bytes written in hexadecimal, as `getfattr -e hex -n lustre.lov FILE` prints them; spaces are for the reader.
std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  std::string pair;
  for (const char one : hex) {
    if (one == ' ') continue;
    pair += one;
    if (pair.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoul(pair, nullptr, 16)));
    pair.clear();
  }
  return bytes;
}

// A file of two stripes on OST 3 and OST 11 (0x0b): magic, pattern, object id and sequence, stripe size, stripe count,
// generation; then object id and sequence, generation and index for each stripe.
const std::string v1 =
    "d00bd10b 01000000 2200000000000000 0104000002000000 00001000 0200 0000"
    "4500000000000000 0000000000000000 00000000 03000000"
    "4600000000000000 0000000000000000 00000000 0b000000";
// The same with a pool "fast", one stripe on OST 258.
const std::string v3 =
    "d00bd30b 01000000 2200000000000000 0104000002000000 00001000 0100 0000 66617374000000000000000000000000"
    "4500000000000000 0000000000000000 00000000 02010000";

const std::string composite_header_of_two = "d00bd60b 20010000 02000000 0000 0200 0000 000000000000 0000000000000000";
std::string entry(const std::string& flags, const std::string& offset, const std::string& size) {
  return "01000000" + flags + "0000000000000000 ffffffffffffffff" + offset + size +
         "00000000 0000000000000000 00000000";
}

using Names = PartNames;

TEST(LustreLayout, NamesTheOstsOfTheStripes) {
  EXPECT_EQ(lustre_layout(bytes_of(v1)), (Names{"ost11", "ost3"}));
  EXPECT_EQ(lustre_layout(bytes_of(v3)), Names{"ost258"});
}

TEST(LustreLayout, OfACompositeIsTheUnionOfItsComponents) {
  const std::string both = composite_header_of_two + entry("10000000", "80000000", "50000000") +
                           entry("10000000", "d0000000", "48000000") + v1 + v3;
  EXPECT_EQ(lustre_layout(bytes_of(both)), (Names{"ost11", "ost258", "ost3"}));
}

TEST(LustreLayout, OfAFileThatMayGrowElsewhereIsNotKnown) {
  const std::string grows = composite_header_of_two + entry("10000000", "80000000", "50000000") +
                            entry("00000000", "d0000000", "48000000") + v1 + v3;
  EXPECT_EQ(lustre_layout(bytes_of(grows)), std::nullopt);
}

TEST(LustreLayout, OfDataOnTheMetadataTargetNamesIt) {
  std::string on_mdt = v1;
  on_mdt.replace(on_mdt.find("01000000"), 8, "00010000");
  EXPECT_EQ(lustre_layout(bytes_of(on_mdt)), Names{"mdt"});
}

TEST(LustreLayout, WithoutObjectsIsNone) {
  std::string released = v1;
  released.replace(released.find("01000000"), 8, "01000080");
  EXPECT_EQ(lustre_layout(bytes_of(released)), std::nullopt);
  const std::string default_of_directory = v1.substr(0, v1.find("4500000000000000"));
  EXPECT_EQ(lustre_layout(bytes_of(default_of_directory)), std::nullopt);
  EXPECT_EQ(lustre_layout(bytes_of("d10bd10b 01000000")), std::nullopt) << "some other attribute";
}

TEST(LustreLayout, NeverReadsBeyondItsEnd) {
  const std::string both = composite_header_of_two + entry("10000000", "80000000", "50000000") +
                           entry("10000000", "d0000000", "48000000") + v1 + v3;
  for (const std::string& text : {v1, v3, both}) {
    const std::vector<std::byte> whole = bytes_of(text);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(lustre_layout(part), std::nullopt) << size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::vector<std::byte> wrong = whole;
      wrong[i] = std::byte{0xff};
      lustre_layout(wrong);  // the sanitizers watch
    }
  }
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

std::optional<PartNames> layout_on(FakeBeegfs fake) {
  return beegfs_layout([&](unsigned long request, void* argument) { return fake(request, argument); });
}

TEST(BeegfsLayout, NamesTheStripeTargets) {
  EXPECT_EQ(layout_on({1, {102, 101, 102}}), (Names{"target101", "target102"}));
  EXPECT_EQ(layout_on({3, {7}}), Names{"mirror7"});
}

TEST(BeegfsLayout, IsNotKnownIfACallFailsOrThereAreTooMany) {
  for (int call = 0; call < 3; ++call) EXPECT_EQ(layout_on({1, {101, 102}, call}), std::nullopt) << call;
  EXPECT_EQ(layout_on({}), std::nullopt);
  EXPECT_EQ(layout_on({1, std::vector<unsigned short>(65, 1)}), std::nullopt);
}

// The numbers that BeeGFS's client compiles to on x86-64.
TEST(BeegfsLayout, UsesTheNumbersOfItsClient) {
  EXPECT_EQ(beegfs_stripe_info, 0x800c6619UL);
  EXPECT_EQ(beegfs_stripe_target, 0x8106661aUL);
}

TEST(Layout, IsNotKnownElsewhere) {
  EXPECT_EQ(layout_of("/proc/self/stat"), std::nullopt);
  EXPECT_EQ(layout_of("/not/there/at/all"), std::nullopt);
  EXPECT_EQ(layout_of(""), std::nullopt);
}

}  // namespace
}  // namespace hocket::runtime
