#include "request_scheduler/vector_calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace hocket::request_scheduler {
namespace {

TEST(VectorCalls, MergeWhatFollowsWithoutGapOrOverlap) {
  const std::vector<VectorPart> parts = {{0, 4, 1}, {4, 4, 1}, {8, 4, 1}, {13, 4, 1}, {16, 4, 1}};
  EXPECT_EQ(vector_calls(parts, 1024, 1 << 20), (std::vector<VectorCall>{{0, 3}, {3, 1}, {4, 1}}));
}

TEST(VectorCalls, MergeNoOtherKindAndNoneThatStandsAlone) {
  const std::vector<VectorPart> parts = {{0, 4, 1}, {4, 4, 2}, {8, 4, 0}, {12, 4, 0}, {16, 0, 1}, {16, 4, 1}};
  EXPECT_EQ(vector_calls(parts, 1024, 1 << 20).size(), 5U);  // an empty part before a part of its kind does no harm
}

TEST(VectorCalls, KeepTheBounds) {
  const std::vector<VectorPart> parts = {{0, 4, 1}, {4, 4, 1}, {8, 4, 1}, {12, 100, 1}, {112, 4, 1}};
  EXPECT_EQ(vector_calls(parts, 2, 1 << 20), (std::vector<VectorCall>{{0, 2}, {2, 2}, {4, 1}}));
  EXPECT_EQ(vector_calls(parts, 1024, 8), (std::vector<VectorCall>{{0, 2}, {2, 1}, {3, 1}, {4, 1}}));
}

TEST(VectorCalls, SettleWhatTheyHaveDone) {
  const std::vector<VectorPart> parts = {{0, 4, 1}, {4, 4, 1}, {8, 4, 1}};
  EXPECT_EQ(settled_parts(parts, 12), (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_EQ(settled_parts(parts, 6), (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(settled_parts(parts, 4), (std::vector<std::int64_t>{4}));
  EXPECT_TRUE(settled_parts(parts, 0).empty());
  EXPECT_TRUE(settled_parts(parts, -1).empty());
}

// A file on a device with room for `room` bytes and one bad place: a write ends before the bad place, and fails if it
// begins there.
class ModelFile {
 public:
  ModelFile(std::int64_t room, std::int64_t bad) : bytes_(static_cast<std::size_t>(room), '.'), bad_(bad) {}

  // Returns how many bytes were written, or -1.
  std::int64_t write(std::int64_t at, const std::string& data) {
    const auto room = static_cast<std::int64_t>(bytes_.size());
    const std::int64_t stop = at <= bad_ ? std::min(bad_, room) : room;
    if (at >= stop) return -1;
    const std::int64_t length = std::min<std::int64_t>(static_cast<std::int64_t>(data.size()), stop - at);
    std::copy_n(data.begin(), length, bytes_.begin() + at);
    return length;
  }
  // Returns what is there, nothing beyond the end.
  std::string read(std::int64_t at, std::int64_t length) const {
    if (at >= static_cast<std::int64_t>(bytes_.size())) return {};
    return bytes_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }
  bool operator==(const ModelFile&) const = default;

 private:
  std::string bytes_;
  std::int64_t bad_;
};

struct RandomParts {
  std::vector<VectorPart> parts;
  std::vector<std::string> data;
};

RandomParts random_parts(std::mt19937_64& random) {
  RandomParts made;
  std::int64_t at = static_cast<std::int64_t>(random() % 20);
  for (std::uint64_t i = random() % 12 + 1; i > 0; --i) {
    const auto length = static_cast<std::int64_t>(random() % 9);
    made.parts.push_back({at, length, random() % 3});
    made.data.emplace_back(static_cast<std::size_t>(length), static_cast<char>('a' + made.data.size()));
    at += length + static_cast<std::int64_t>(random() % 3 == 0 ? random() % 4 : 0);
  }
  return made;
}

// Carries the parts out in calls, as a server does, and returns the result of each.
std::vector<std::int64_t> written_in_calls(const RandomParts& random, ModelFile& file, std::size_t most_parts) {
  std::vector<std::int64_t> results;
  const std::span<const VectorPart> parts = random.parts;
  for (const VectorCall& call : vector_calls(parts, most_parts, 30)) {
    std::string all;
    for (std::size_t i = call.first; i < call.first + call.count; ++i) all += random.data[i];
    const std::int64_t moved = call.count > 1 ? file.write(parts[call.first].at, all) : -1;
    for (const std::int64_t one : settled_parts(parts.subspan(call.first, call.count), moved)) results.push_back(one);
    for (std::size_t i = results.size(); i < call.first + call.count; ++i)
      results.push_back(file.write(parts[i].at, random.data[i]));
  }
  return results;
}

TEST(VectorCalls, GiveEachPartWhatItsOwnCallWouldHaveGiven) {
  std::mt19937_64 random{1};
  std::size_t merged = 0, short_results = 0;
  for (int round = 0; round < 20'000; ++round) {
    const RandomParts parts = random_parts(random);
    ModelFile one(60, static_cast<std::int64_t>(random() % 100));
    ModelFile other = one;
    std::vector<std::int64_t> alone;
    for (std::size_t i = 0; i < parts.parts.size(); ++i) alone.push_back(one.write(parts.parts[i].at, parts.data[i]));
    const std::size_t most = random() % 5 + 1;
    EXPECT_EQ(written_in_calls(parts, other, most), alone) << "round " << round;
    ASSERT_TRUE(one == other) << "round " << round;
    merged += parts.parts.size() - vector_calls(parts.parts, most, 30).size();
    short_results += static_cast<std::size_t>(std::ranges::count(alone, -1));
  }
  EXPECT_GT(merged, 1'000U);
  EXPECT_GT(short_results, 1'000U);
}

TEST(VectorCalls, GiveEachReaderItsOwnBytes) {
  std::mt19937_64 random{2};
  for (int round = 0; round < 20'000; ++round) {
    const RandomParts made = random_parts(random);
    const std::span<const VectorPart> parts = made.parts;
    ModelFile file(static_cast<std::int64_t>(random() % 60), 1000);
    for (std::int64_t at = 0; at < 60; ++at) (void)file.write(at, std::string(1, static_cast<char>('0' + at)));
    for (const VectorCall& call : vector_calls(parts, 4, 30)) {
      const std::span<const VectorPart> group = parts.subspan(call.first, call.count);
      const std::string all = file.read(group.front().at, group.back().at + group.back().length - group.front().at);
      std::size_t data = 0, done = 0;
      for (const std::int64_t one : settled_parts(group, static_cast<std::int64_t>(all.size()))) {
        EXPECT_EQ(all.substr(data, static_cast<std::size_t>(one)), file.read(group[done].at, group[done].length));
        data += static_cast<std::size_t>(one);
        ++done;
      }
      ASSERT_EQ(data, all.size());
    }
  }
}

}  // namespace
}  // namespace hocket::request_scheduler
