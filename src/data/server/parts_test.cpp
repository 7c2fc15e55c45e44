// Tests the parts of other servers' data sets, case by case and against a model.
#include "server/parts.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <random>
#include <set>

#include "layout/stripes.hpp"

namespace hocket::server {
namespace {

constexpr std::int64_t stripe = layout::stripe_bytes;

class Parts : public ::testing::Test {
 protected:
  explicit Parts(std::int64_t most_bytes = 8 * stripe) : sets({.most_bytes = most_bytes}) {}

  DataSets sets;
  Files files = std::move(Files::in("/tmp")).value();
  DataSetParts parts{sets, files};
};

TEST_F(Parts, AreRefusedIfTheirNumbersAreWrong) {
  EXPECT_EQ(parts.keep({1, 0, 2}, 1).error, EINVAL) << "index 0 is that of the home";
  EXPECT_EQ(parts.keep({1, 2, 2}, 1).error, EINVAL);
  EXPECT_EQ(parts.keep({1, 1, 65}, 1).error, EINVAL);
  EXPECT_EQ(parts.keep({1, 1, 2}, 1).error, 0);
  EXPECT_EQ(parts.keep({1, 1, 2}, 2).error, EINVAL) << "the number is in use";
  EXPECT_EQ(parts.open(2, true, 0).error, ESTALE);
  EXPECT_EQ(parts.grow(2, 1).error, ECANCELED);
  EXPECT_EQ(parts.read(2), 0);
  EXPECT_EQ(parts.release(2), 0);
}

TEST_F(Parts, CountOnlyTheirOwnStripes) {
  const DataSetParts::Opened kept = parts.keep({1, 1, 3}, 1);
  ASSERT_EQ(kept.error, 0);
  EXPECT_EQ(kept.file->stripe_index, 1U);
  EXPECT_EQ(kept.file->stripe_servers, 3U);
  EXPECT_EQ(parts.grow(1, stripe).error, 0);
  EXPECT_EQ(sets.bytes(), 0) << "that is the home's stripe";
  EXPECT_EQ(parts.grow(1, stripe + 5).error, 0);
  EXPECT_EQ(sets.bytes(), 5);
  EXPECT_EQ(parts.grow(1, 5 * stripe).error, 0);
  EXPECT_EQ(sets.bytes(), 2 * stripe);
  EXPECT_EQ(parts.grow(1, stripe).error, 0) << "it does not shrink";
  EXPECT_EQ(sets.bytes(), 2 * stripe);
}

TEST_F(Parts, WithoutRoomTheyAreFreed) {
  const DataSetParts::Opened kept = parts.keep({1, 1, 2}, 1);
  EXPECT_EQ(parts.grow(1, 4 * stripe).error, 0);
  const DataSetParts::Grown grown = parts.grow(1, 40 * stripe);
  EXPECT_EQ(grown.error, ENOSPC);
  EXPECT_EQ(grown.freed, 2 * stripe);
  EXPECT_TRUE(kept.file->dropped);
  EXPECT_EQ(parts.grow(1, 1).error, ECANCELED);
  EXPECT_EQ(parts.release(1), 0) << "nothing is counted any more";
  EXPECT_EQ(parts.count(), 0U);
}

TEST_F(Parts, AReaderFindsThePartAsLongAsTheVersion) {
  const DataSetParts::Opened kept = parts.keep({1, 1, 2}, 1);
  const DataSetParts::Opened opened = parts.open(1, false, 3 * stripe);
  EXPECT_EQ(opened.file, kept.file);
  struct stat status {};
  ASSERT_EQ(fstat(opened.file->readable.get(), &status), 0);
  EXPECT_EQ(status.st_size, 3 * stripe);
}

class RefusedParts : public Parts {
 protected:
  RefusedParts() : Parts(0) {}
};

TEST_F(RefusedParts, AServerWithoutMemoryForDataSetsKeepsNone) { EXPECT_EQ(parts.keep({1, 1, 2}, 1).error, ENOSPC); }

// A part ends when its lease has ended and nobody reads it. All memory is counted until then, and given back once.
TEST(PartsProperties, EndWithTheirLeasesAndReaders) {
  struct ModelPart {
    SessionId home = 0;
    std::int64_t bytes = 0;
    int readers = 0;
    bool leased = true, dropped = false;
  };
  for (std::uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    constexpr std::int64_t most = 6 * stripe;
    DataSets sets{{.most_bytes = most}};
    Files files = std::move(Files::in("/tmp")).value();
    DataSetParts parts{sets, files};
    std::map<std::uint64_t, ModelPart> model;
    const auto bytes_of_all = [&model] {
      std::int64_t sum = 0;
      for (const auto& [number, part] : model) sum += part.bytes;
      return sum;
    };
    // Returns the bytes that become free.
    const auto forget_if_unused = [&model](std::uint64_t number) -> std::int64_t {
      const ModelPart part = model.at(number);
      if (part.leased || part.readers > 0) return 0;
      model.erase(number);
      return part.bytes;
    };
    const auto give = [&sets](std::int64_t bytes) { EXPECT_TRUE(sets.give(bytes).empty()); };
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t number = 1 + random() % 5;
      const auto found = model.find(number);
      const bool is_there = found != model.end();
      switch (random() % 6) {
        case 0: {
          const SessionId home = 1 + random() % 2;
          EXPECT_EQ(parts.keep({number, 1, 2}, home).error, is_there ? EINVAL : 0);
          if (!is_there) model[number] = {home};
          break;
        }
        case 1: {
          const bool writes = random() % 2 == 0;
          const bool opens = is_there && found->second.leased;
          EXPECT_EQ(parts.open(number, writes, stripe).error, opens ? 0 : ESTALE);
          if (opens && !writes) ++found->second.readers;
          break;
        }
        case 2: {
          const auto end = static_cast<std::int64_t>(random() % (9 * stripe));
          const DataSetParts::Grown grown = parts.grow(number, end);
          if (!is_there || found->second.dropped) {
            EXPECT_EQ(grown.error, ECANCELED);
            break;
          }
          ModelPart& part = found->second;
          const std::int64_t bytes = std::max(part.bytes, layout::bytes_of_server(end, 1, 2));
          const bool fits = bytes_of_all() - part.bytes + bytes <= most;
          EXPECT_EQ(grown.error, fits ? 0 : ENOSPC);
          EXPECT_EQ(grown.freed, fits ? 0 : part.bytes);
          part.bytes = fits ? bytes : 0;
          part.dropped |= !fits;
          give(grown.freed);
          break;
        }
        case 3:
          if (!is_there || found->second.readers == 0) break;
          --found->second.readers;
          give(parts.read(number));
          forget_if_unused(number);
          break;
        case 4:
          if (is_there) found->second.leased = false;
          give(parts.release(number));
          if (is_there) forget_if_unused(number);
          break;
        default: {
          const SessionId home = 1 + random() % 2;
          std::int64_t freed = 0;
          for (std::uint64_t one = 1; one <= 5; ++one) {
            const auto its = model.find(one);
            if (its == model.end() || its->second.home != home) continue;
            its->second.leased = false;
            freed += forget_if_unused(one);
          }
          const std::int64_t given = parts.gone(home);
          EXPECT_EQ(given, freed);
          give(given);
        }
      }
      EXPECT_EQ(sets.bytes(), bytes_of_all());
      EXPECT_EQ(parts.count(), model.size());
    }
  }
}

}  // namespace
}  // namespace hocket::server
