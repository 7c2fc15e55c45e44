#include "server/moved_name.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::server {
namespace {

TEST(MovedName, HasATextForm) {
  const MovedName moved{"a field", 7, {{"reader one", 5}, {"b", 7}}, {{6, 255, 2, 1, {"b"}}, {7, 0, 0, 3, {}}}};
  EXPECT_EQ(text_of(moved),
            "a field\nlast 7\nread 7 b\nread 5 reader one\nversion 6 255 2 1\ngiven b\nversion 7 0 0 3\n");
}

TEST(MovedName, IsReadAsItWasWritten) {
  std::mt19937_64 random{1};
  const auto name = [&random] {
    std::string text;
    for (std::uint64_t i = 0; i <= random() % 12; ++i) text += static_cast<char>(' ' + random() % 95);
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    MovedName moved{name(), static_cast<std::uint32_t>(random()), {}, {}};
    for (std::uint64_t n = random() % 4; n > 0; --n) moved.read[name()] = static_cast<std::uint32_t>(random());
    for (std::uint64_t n = random() % 3; n > 0; --n) {
      MovedVersion& version = moved.versions.emplace_back();
      version = {static_cast<std::uint32_t>(random()),
                 random(),
                 static_cast<std::int64_t>(random() % 9),
                 static_cast<std::int64_t>(random() % 9),
                 {}};
      for (std::uint64_t k = random() % 3; k > 0; --k) version.given.insert(name());
    }
    const auto read = parse_moved_name(text_of(moved));
    ASSERT_TRUE(read.ok()) << read.error().text;
    ASSERT_EQ(read.value(), moved) << text_of(moved);
  }
}

TEST(MovedName, RefusesWhatIsNone) {
  for (const char* text : {"x\nlast\n", "x\nlast -1\n", "x\nlast 1 2\n", "x\nlast 4294967296\n", "x\nread 1\n",
                           "x\nread 1 a\nread 2 a\n", "x\ngiven a\n", "x\nversion 1 2 3\n", "x\nversion 1 2 3 4 5\n",
                           "x\nversion 1 2 -3 4\n", "x\nversion 1 2 3 4\ngiven a\ngiven a\n", "x\nother 1\n", "x\n\n"})
    EXPECT_FALSE(parse_moved_name(text).ok()) << text;
  EXPECT_EQ(parse_moved_name("x\nlast 1\nfirst\n").error().text, "line 3 of a data set that moves: 'first'");
}

}  // namespace
}  // namespace hocket::server
