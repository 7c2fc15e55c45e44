#include "transport/frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace hocket::transport {
namespace {

using ::testing::ElementsAre;

std::string_view text(const HeaderBytes& bytes) { return {bytes.data(), bytes.size()}; }

Header request(std::int64_t offset, std::int64_t bytes, std::uint16_t flags = 0) {
  Header header;
  header.type = Type::write;
  header.offset = offset;
  header.bytes = bytes;
  header.flags = flags;
  return header;
}

TEST(Frame, EveryFieldComesBack) {
  const Header header{Type::answer, flag::shared, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11};
  const auto read = decode(text(encode(header)));
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(read.value(), header);
}

TEST(Frame, TheBytesAreTheOnesOfTheVersion) {
  Header header = request(0x0102, 0, flag::viewed);
  header.sequence = 0x0807060504030201;
  const HeaderBytes bytes = encode(header);
  EXPECT_EQ(std::string(bytes.data(), 6), std::string("HKTF\x02\x05", 6));
  EXPECT_EQ(std::string(bytes.data() + 8, 8), "\x01\x02\x03\x04\x05\x06\x07\x08");
  EXPECT_EQ(bytes[40], 2);
  EXPECT_EQ(bytes[41], 1);
}

TEST(Frame, WhatIsOutOfBoundsIsRefused) {
  const auto fault = [](auto change) {
    Header header = request(0, 0);
    change(header);
    const auto read = decode(text(encode(header)));
    return read ? std::string{} : read.error().text;
  };
  EXPECT_EQ(fault([](Header&) {}), "");
  EXPECT_EQ(fault([](Header& h) { h.payload = most_payload + 1; }), "too long a payload");
  EXPECT_EQ(fault([](Header& h) { h.meta = most_meta + 1; }), "too long a meta part");
  EXPECT_EQ(fault([](Header& h) { h.offset = -1; }), "an offset out of range");
  EXPECT_EQ(fault([](Header& h) { h.bytes = std::numeric_limits<std::int64_t>::max(); }),
            "a number of bytes out of range");
  EXPECT_EQ(fault([](Header& h) { h.shared = -1; }), "a place in the segment out of range");
  EXPECT_EQ(fault([](Header& h) { h.error = -5; }), "an error below 0");
  EXPECT_EQ(fault([](Header& h) { h.flags = 1U << 12U; }), "an unknown flag");
  EXPECT_EQ(fault([](Header& h) { h.payload = 1; }), "a payload that is not its data");
  for (const int type : {0, static_cast<int>(Type::call) + 1, static_cast<int>(Type::challenge) - 1,
                         static_cast<int>(Type::alive) + 1, 255})
    EXPECT_EQ(fault([type](Header& h) { h.type = static_cast<Type>(type); }), "an unknown type") << type;
}

TEST(Frame, RandomBytesAreNoFrames) {
  std::mt19937_64 random{5};
  const HeaderBytes good = encode(request(0, 0));
  for (int i = 0; i < 20'000; ++i) {
    HeaderBytes bytes = good;
    for (int changes = 0; changes < 3; ++changes) bytes[random() % header_bytes] = static_cast<char>(random());
    const auto read = decode(text(bytes));
    if (!read) continue;
    EXPECT_EQ(encode(read.value()), bytes);  // an accepted header is decoded without loss
  }
}

TEST(Frame, AListGivesItsRuns) {
  const std::vector<FileRun> runs{{0, 4}, {4, 2}, {100, 1}};
  const auto read = runs_of(request(0, 7, flag::list), encode(runs), nullptr);
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_THAT(read.value(), ElementsAre(FileRun{0, 6}, FileRun{100, 1}));  // runs that touch are joined
}

TEST(Frame, AListThatIsNoneIsRefused) {
  const auto refused = [](const std::vector<FileRun>& runs, std::int64_t bytes) {
    return !runs_of(request(0, bytes, flag::list), encode(runs), nullptr).ok();
  };
  EXPECT_TRUE(refused({}, 1));
  EXPECT_TRUE(refused({{0, 0}}, 1));
  EXPECT_TRUE(refused({{10, 5}, {12, 1}}, 6));
  EXPECT_TRUE(refused({{10, 5}, {2, 1}}, 6));
  EXPECT_TRUE(refused({{10, 5}}, 6));
  EXPECT_TRUE(refused({{-1, 5}}, 5));
  EXPECT_TRUE(refused({{layout::limit, 5}}, 5));
  EXPECT_FALSE(runs_of(request(0, 5, flag::list), "123", nullptr).ok());
}

TEST(Frame, AViewGivesItsRuns) {
  const auto pair = layout::contiguous_bytes(2);
  const auto type = layout::resized(0, 10, pair.value());
  const auto view = layout::FileView::make(100, type.value());
  const auto read = runs_of(request(1, 4, flag::viewed), "", &view.value());
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_THAT(read.value(), ElementsAre(FileRun{101, 1}, FileRun{110, 2}, FileRun{120, 1}));
  EXPECT_FALSE(runs_of(request(1, 4, flag::viewed), "", nullptr).ok());
  EXPECT_FALSE(runs_of(request(0, 2 * most_runs + 2, flag::viewed), "", &view.value()).ok());
  EXPECT_FALSE(runs_of(request(layout::limit, 4, flag::viewed), "", &view.value()).ok());
}

TEST(Frame, ARequestOfNoDataOrOfTooManyIsRefused) {
  EXPECT_FALSE(runs_of(request(0, 0), "", nullptr).ok());
  EXPECT_FALSE(runs_of(request(0, most_payload + 1), "", nullptr).ok());
  EXPECT_FALSE(runs_of(request(layout::limit, 1), "", nullptr).ok());
}

}  // namespace
}  // namespace hocket::transport
