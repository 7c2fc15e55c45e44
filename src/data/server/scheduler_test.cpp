#include "server/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hocket::server {
namespace {

using ::testing::ElementsAre;

FileRequest write(std::uint64_t ticket, std::vector<FileRun> runs, std::uint64_t file = 1) {
  return {ticket, file, true, std::move(runs)};
}
FileRequest read(std::uint64_t ticket, std::vector<FileRun> runs, std::uint64_t file = 1) {
  return {ticket, file, false, std::move(runs)};
}

TEST(Scheduler, NeighboursBecomeOneAccessInOffsetOrder) {
  Scheduler scheduler{{}};
  scheduler.add(write(1, {{8, 4}}));
  scheduler.add(write(2, {{0, 4}, {20, 4}}));
  scheduler.add(write(3, {{4, 4}}));
  const auto batch = scheduler.next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->tickets, ElementsAre(1, 2, 3));
  EXPECT_THAT(batch->chunks, ElementsAre(RequestChunk{0, 4, 1, 0}, RequestChunk{4, 4, 2, 0}, RequestChunk{8, 4, 0, 0},
                                         RequestChunk{20, 4, 1, 4}));
  ASSERT_EQ(batch->extents.size(), 2U);
  EXPECT_EQ(batch->extents[0].end, 12);
  EXPECT_EQ(batch->extents[0].count, 3U);
  EXPECT_EQ(scheduler.waiting(), 0U);
  EXPECT_FALSE(scheduler.next());
}

TEST(Scheduler, WithoutMergingARequestIsABatch) {
  Scheduler scheduler{{.merges = false}};
  scheduler.add(write(1, {{0, 4}}));
  scheduler.add(write(2, {{4, 4}}));
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(1));
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(2));
}

TEST(Scheduler, WhatOverlapsWaitsAndSoDoesWhatOverlapsThat) {
  Scheduler scheduler{{}};
  scheduler.add(write(1, {{0, 10}}));
  scheduler.add(write(2, {{9, 2}}));   // waits for 1
  scheduler.add(write(3, {{10, 1}}));  // overlaps only 2
  scheduler.add(write(4, {{30, 1}}));
  const auto first = scheduler.next();
  EXPECT_THAT(first->tickets, ElementsAre(1, 4));
  EXPECT_FALSE(scheduler.next());
  scheduler.done(*first);
  const auto second = scheduler.next();
  EXPECT_THAT(second->tickets, ElementsAre(2));
  scheduler.done(*second);
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(3));
}

TEST(Scheduler, ReadsMayOverlapAndAreJoinedAcrossSmallGaps) {
  Scheduler scheduler{{.most_read_gap = 10}};
  scheduler.add(read(1, {{0, 4}}));
  scheduler.add(read(2, {{2, 8}}));
  scheduler.add(read(3, {{20, 1}}));
  scheduler.add(read(4, {{32, 1}}));
  const auto batch = scheduler.next();
  EXPECT_THAT(batch->tickets, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(batch->extents.size(), 2U);
  EXPECT_EQ(batch->extents[0].end, 21);
  EXPECT_FALSE(batch->extents[0].seamless);
}

TEST(Scheduler, FilesTakeTurns) {
  Scheduler scheduler{{.merges = false}};
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) scheduler.add(write(ticket, {{0, 1}}, 1));
  scheduler.add(write(4, {{0, 1}}, 2));
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(1));
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(4));
}

TEST(Scheduler, WhatIsDroppedNeverComes) {
  Scheduler scheduler{{}};
  scheduler.add(write(1, {{0, 4}}));
  scheduler.add(write(2, {{0, 4}}));
  EXPECT_THAT(scheduler.drop_if([](std::uint64_t ticket) { return ticket == 1; }), ElementsAre(1));
  EXPECT_THAT(scheduler.next()->tickets, ElementsAre(2));
}

TEST(Scheduler, ProspectsAreOneBatchForEachApplicationInEachFile) {
  Scheduler scheduler{{}};
  const auto any = [](std::uint64_t) { return true; };
  scheduler.add({1, 5, true, {{0, 4}}, 1});
  scheduler.add({2, 5, true, {{4, 4}}, 2});
  scheduler.add({3, 5, true, {{8, 4}}, 1});
  scheduler.add({4, 5, true, {{0, 4}}, 2});  // waits for 1
  const auto prospects = scheduler.prospects(100, any);
  ASSERT_EQ(prospects.size(), 2U);
  EXPECT_EQ(prospects[0].bytes, 8);
  EXPECT_EQ(prospects[1].bytes, 4);
  EXPECT_TRUE(scheduler.prospects(100, any).empty()) << "nothing has changed";
  scheduler.look_again(5);
  EXPECT_TRUE(scheduler.prospects(100, [](std::uint64_t) { return false; }).empty());
  EXPECT_EQ(scheduler.prospects(100, any).size(), 2U);
  scheduler.add({5, 5, true, {{12, 4}}, 1});
  EXPECT_THAT(scheduler.next_of(prospects[0])->tickets, ElementsAre(1, 3)) << "no more than the prospect has";
  EXPECT_TRUE(scheduler.waits(5, 1));
  EXPECT_THAT(scheduler.next_of(5)->tickets, ElementsAre(2, 5));
  EXPECT_FALSE(scheduler.waits(5, 1));
}

TEST(Scheduler, AProspectIsNotForALargerRequestThatMayBeginMeanwhile) {
  Scheduler scheduler{{}};
  const auto any = [](std::uint64_t) { return true; };
  scheduler.add({1, 5, true, {{0, 4}}, 2});
  const auto under_way = scheduler.next_of(scheduler.prospects(100, any).at(0));
  scheduler.add({2, 5, true, {{0, 90}}, 1});  // waits for 1
  scheduler.add({3, 5, true, {{95, 4}}, 1});
  const BatchProspect prospect = scheduler.prospects(100, any).at(0);
  EXPECT_EQ(prospect.bytes, 4);
  scheduler.done(*under_way);
  EXPECT_THAT(scheduler.next_of(prospect)->tickets, ElementsAre(3)) << "it has a slot for 4 bytes";
  EXPECT_EQ(scheduler.prospects(100, any).at(0).bytes, 90);
}

// ---- the property: all reads and the file are as if each request had been carried out when it came ------------------

constexpr std::int64_t model_file_bytes = 96;
using Bytes = std::vector<int>;  // by byte: ticket of the last write

std::vector<FileRun> random_runs(std::mt19937_64& random) {
  std::vector<FileRun> runs;
  std::int64_t at = static_cast<std::int64_t>(random() % model_file_bytes);
  for (std::uint64_t count = 1 + random() % 4; count > 0 && at < model_file_bytes; --count) {
    const auto length = std::min<std::int64_t>(1 + static_cast<std::int64_t>(random() % 12), model_file_bytes - at);
    runs.push_back({at, length});
    at += length + 1 + static_cast<std::int64_t>(random() % 9);
  }
  return runs;
}

class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed)
      : random_(seed), scheduler_({.merges = seed % 3 != 0, .most_bytes = 40, .most_read_gap = 3}) {}

  void run() {
    for (int step = 0; step < 300; ++step) {
      switch (random_() % 4) {
        case 0:
        case 1: come(); break;
        case 2: begin(); break;
        default: end(); break;
      }
    }
    while (scheduler_.waiting() > 0 || !under_way_.empty()) {
      begin();
      end();
    }
    EXPECT_EQ(file_, expected_file_);
    EXPECT_EQ(carried_out_, requests_.size());
  }

 private:
  void come() {
    FileRequest request{requests_.size() + 1, 7, random_() % 3 != 0, random_runs(random_), random_() % 3};
    Bytes expected;
    for (const FileRun& run : request.runs) {
      for (std::int64_t at = run.at; at < run.end(); ++at) {
        if (request.writes) expected_file_[at] = static_cast<int>(request.ticket);
        expected.push_back(expected_file_[at]);
      }
    }
    requests_[request.ticket] = {request, expected};
    scheduler_.add(request);
  }

  // Returns the next batch, or that of an application, which must be what its prospect says.
  std::optional<Batch> next() {
    if (random_() % 2 == 0) return scheduler_.next();
    const std::int64_t most_bytes = 1 + static_cast<std::int64_t>(random_() % 40);
    const auto prospects = scheduler_.prospects(most_bytes, [](std::uint64_t) { return true; });
    if (prospects.empty()) return scheduler_.next();
    const BatchProspect& chosen = prospects[random_() % prospects.size()];
    auto batch = scheduler_.next_of(chosen);
    EXPECT_TRUE(batch) << "it could begin";
    if (!batch) return batch;
    std::int64_t bytes = 0;
    for (const std::uint64_t ticket : batch->tickets) {
      EXPECT_EQ(requests_.at(ticket).first.application, chosen.application);
      bytes += static_cast<std::int64_t>(requests_.at(ticket).second.size());
    }
    EXPECT_EQ(bytes, chosen.bytes);
    EXPECT_EQ(batch->tickets.front(), chosen.ticket);
    EXPECT_EQ(batch->writes, chosen.writes);
    EXPECT_TRUE(bytes <= most_bytes || batch->tickets.size() == 1);
    return batch;
  }

  void begin() {
    auto batch = next();
    if (!batch) return;
    for (std::size_t i = 0; i < batch->chunks.size(); ++i) {
      const RequestChunk& chunk = batch->chunks[i];
      if (i == 0) continue;
      const RequestChunk& before = batch->chunks[i - 1];
      ASSERT_LE(batch->writes ? before.end() : before.at, chunk.at);
    }
    under_way_.push_back(std::move(*batch));
    // Batches under way may access the file in any order, and their chunks too.
    if (random_() % 2 == 0) carry_out(under_way_.size() - 1);
  }

  void end() {
    if (under_way_.empty()) return;
    const std::size_t which = random_() % under_way_.size();
    carry_out(which);
    scheduler_.done(under_way_[which]);
    carried_out_ += under_way_[which].tickets.size();
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void carry_out(std::size_t which) {
    Batch& batch = under_way_[which];
    std::size_t seen = 0;
    for (const BatchExtent& extent : batch.extents) {
      for (std::size_t i = extent.first; i < extent.first + extent.count; ++i, ++seen) {
        const RequestChunk& chunk = batch.chunks[i];
        ASSERT_GE(chunk.at, extent.at);
        ASSERT_LE(chunk.end(), extent.end);
        const auto& [request, expected] = requests_.at(batch.tickets[chunk.request]);
        for (std::int64_t k = 0; k < chunk.length; ++k) {
          int& byte = file_[chunk.at + k];
          if (batch.writes) byte = static_cast<int>(request.ticket);
          ASSERT_EQ(byte, expected[chunk.data + k]) << "request " << request.ticket;
        }
      }
    }
    ASSERT_EQ(seen, batch.chunks.size());
  }

  std::mt19937_64 random_;
  Scheduler scheduler_;
  Bytes file_ = Bytes(model_file_bytes);
  Bytes expected_file_ = Bytes(model_file_bytes);
  std::map<std::uint64_t, std::pair<FileRequest, Bytes>> requests_;
  std::vector<Batch> under_way_;
  std::size_t carried_out_ = 0;
};

TEST(Scheduler, LooksForProspectsOnlyForApplicationsWithoutAnOffer) {
  Scheduler scheduler{{}};
  const auto any_file = [](std::uint64_t) { return true; };
  const auto of = [&](auto is_offered) {
    std::vector<std::uint64_t> applications;
    for (const BatchProspect& one : scheduler.prospects(1000, any_file, is_offered))
      applications.push_back(one.application);
    return applications;
  };
  using Applications = std::vector<std::uint64_t>;
  const auto all = [](std::uint64_t, std::uint64_t) { return true; };
  const auto first = [](std::uint64_t, std::uint64_t application) { return application == 1; };
  const auto none = [](std::uint64_t, std::uint64_t) { return false; };
  scheduler.add({1, 7, true, {{0, 10}}, 1});
  EXPECT_EQ(of(all), Applications{});
  EXPECT_EQ(of(none), Applications{1}) << "the change has not been seen yet";
  scheduler.add({2, 7, true, {{10, 10}}, 1});
  EXPECT_EQ(of(first), Applications{});
  scheduler.add({3, 7, true, {{20, 10}}, 2});
  EXPECT_EQ(of(first), Applications{2});
  EXPECT_EQ(of(none), Applications{}) << "nothing has changed";
  EXPECT_TRUE(scheduler.waits(7, 2));
  EXPECT_EQ(scheduler.drop_if([](std::uint64_t ticket) { return ticket == 3; }), Applications{3});
  EXPECT_FALSE(scheduler.waits(7, 2));
  ASSERT_TRUE(scheduler.next());
  EXPECT_FALSE(scheduler.waits(7, 1));
}

TEST(Scheduler, IsAsIfEachRequestWereCarriedOutWhenItCame) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomRequests{seed}.run();
    if (HasFatalFailure() || HasNonfatalFailure()) break;
  }
}

}  // namespace
}  // namespace hocket::server
