#include "transport/staging.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <vector>

namespace hocket::transport {
namespace {

constexpr std::int64_t page = 4096;

TEST(Staging, BothEndsSeeTheSameBytes) {
  const auto own = SharedSegment::make(4 * page);
  ASSERT_NE(own, nullptr);
  const Fd sent{dup(own->descriptor())};
  const auto others = SharedSegment::map(sent, 4 * page);
  ASSERT_NE(others, nullptr);
  std::memcpy(own->bytes().data() + 100, "hocket", 6);
  EXPECT_EQ(std::memcmp(others->bytes().data() + 100, "hocket", 6), 0);
}

TEST(Staging, ASegmentThatCouldShrinkIsNotMapped) {
  const Fd file{memfd_create("test", MFD_ALLOW_SEALING)};
  ASSERT_EQ(ftruncate(file.get(), 4 * page), 0);
  EXPECT_EQ(SharedSegment::map(file, 4 * page), nullptr);
  const auto own = SharedSegment::make(4 * page);
  EXPECT_NE(ftruncate(own->descriptor(), page), 0);
  const Fd sent{dup(own->descriptor())};
  EXPECT_EQ(SharedSegment::map(sent, 5 * page), nullptr);
  EXPECT_EQ(SharedSegment::map(sent, 0), nullptr);
  EXPECT_EQ(SharedSegment::map(Fd{}, page), nullptr);
}

TEST(Staging, PartsNeverOverlapAndAllComesBack) {
  constexpr std::int64_t bytes = 64 * page;
  const auto arena = std::make_shared<Arena>(SharedSegment::make(bytes));
  std::mt19937_64 random{3};
  std::vector<Staged> held;
  for (int i = 0; i < 5'000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
      continue;
    }
    const auto part = arena->take(1 + static_cast<std::int64_t>(random() % (9 * page)));
    if (part.empty()) continue;
    ASSERT_EQ(arena->position(part), part.data() - arena->segment().bytes().data());
    for (const Staged& other : held) {
      const bool apart = part.data() + part.size() <= other.bytes().data() ||
                         other.bytes().data() + other.bytes().size() <= part.data();
      ASSERT_TRUE(apart) << "part " << i;
    }
    held.emplace_back(part, arena);
  }
  held.clear();
  EXPECT_EQ(arena->take(bytes).size(), static_cast<std::size_t>(bytes));
  EXPECT_TRUE(arena->take(1).empty());
}

TEST(Staging, OtherMemoryIsNotInTheSegment) {
  const Arena arena{SharedSegment::make(4 * page)};
  const Staged plain{100};
  EXPECT_EQ(plain.bytes().size(), 100U);
  EXPECT_FALSE(plain.is_shared());
  EXPECT_EQ(arena.position(plain.bytes()), std::nullopt);
  const auto all = arena.segment().bytes();
  EXPECT_EQ(arena.position({all.data() + 4 * page - 1, 2}), std::nullopt);
}

}  // namespace
}  // namespace hocket::transport
