// Random requests through every algorithm, against a file that is a plain string of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "request_scheduler/request_scheduler.hpp"
#include "request_scheduler/request_scheduler_testing.hpp"

namespace hocket::request_scheduler {
namespace {

// Files of bytes, and the offsets of open descriptions. A description above 100 appends.
class ModelFiles {
 public:
  // Carries a request out, and returns what it read.
  std::string carry_out(const IoRequest& request) {
    std::string& file = files_[request.file];
    if (!request.extents.empty()) {
      std::string read;
      for (const FileExtent& extent : request.extents) read += access(file, request, extent);
      return read;
    }
    std::int64_t& offset = offsets_[request.order];
    if (request.order > 100) offset = static_cast<std::int64_t>(file.size());
    const std::int64_t at = offset;
    offset += request.bytes;
    return access(file, request, {at, request.bytes});
  }
  bool operator==(const ModelFiles&) const = default;

 private:
  static std::string access(std::string& file, const IoRequest& request, FileExtent extent) {
    const auto at = static_cast<std::size_t>(extent.at);
    const auto length = static_cast<std::size_t>(extent.length);
    if (!request.writes) {
      std::string read = at < file.size() ? file.substr(at, length) : "";
      read.resize(length);  // bytes beyond the end count as zeros: writes that do not overlap may move the end
      return read;
    }
    if (file.size() < at + length && length > 0) file.resize(at + length);
    std::fill_n(file.begin() + extent.at, length, static_cast<char>('a' + request.ticket % 26));
    return {};
  }

  std::map<std::uint64_t, std::string> files_;
  std::map<std::uint64_t, std::int64_t> offsets_;
};

struct RunOptions {
  std::string_view name;
  std::uint64_t seed;
  bool switches = false;
};

// One run of random requests. `order` is what was carried out, in order of dispatch.
class RandomRun {
 public:
  explicit RandomRun(RunOptions options)
      : options_(options),
        random_(options.seed),
        scheduler_(RequestScheduler::create(options.name, settings()).value()) {}

  void run(std::size_t steps) {
    for (std::size_t step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) {
      now_ += Duration{static_cast<std::int64_t>(random_() % 300'000)};
      const std::uint64_t kind = random_() % 100;
      if (kind < 45) send();
      if (kind >= 45 && kind < 75) take();
      if (kind >= 75 && kind < 97) end_one();
      if (kind == 97) drop();
      if (kind > 97 && options_.switches) change();
    }
    drain();
  }

  const std::vector<std::uint64_t>& order() const { return order_; }

  // The requests that were not dropped give the same reads and files as one after the other in the order of `add`.
  void check() const {
    ModelFiles sequential;
    std::size_t carried_out = 0;
    for (const IoRequest& request : sent_) {
      const auto read = reads_.find(request.ticket);
      if (read == reads_.end()) {
        EXPECT_TRUE(dropped_.contains(request.ticket)) << "lost " << request.ticket;
        continue;
      }
      ++carried_out;
      EXPECT_EQ(sequential.carry_out(request), read->second) << "read of " << request.ticket;
    }
    EXPECT_EQ(carried_out, reads_.size());
    EXPECT_TRUE(sequential == files_);
  }

 private:
  static SchedulerSettings settings() {
    SchedulerSettings settings;
    settings.most_bytes = 200;
    settings.most_requests = 5;
    settings.most_read_gap = 3;
    settings.aioli_quantum = 16;
    settings.mlf_quantum = 8;
    settings.hbrr_quantum = 3;
    settings.most_wait = std::chrono::milliseconds{20};
    return settings;
  }
  std::int64_t below(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
  }

  void send() {
    IoRequest request;
    request.ticket = sent_.size() + 1;
    request.file = random_() % 3 + 1;
    request.writes = random_() % 2 == 0;
    request.application = random_() % 4;
    request.user = request.application / 2;
    request.processes = static_cast<int>(request.application) + 1;
    request.arrival = now_;
    request.data_server = static_cast<int>(random_() % 4) - 1;
    const std::uint64_t kind = random_() % 10;
    if (kind == 0) {
      request.order = request.file * 10 + random_() % 2;  // descriptions belong to one file
      request.bytes = below(40);
    } else if (kind == 1) {
      request.order = request.file + 100;
      request.writes = true;
      request.bytes = below(40);
    } else {
      request.flags = random_() % 8 == 0 ? 1 : 0;
      std::int64_t at = below(400);
      for (std::uint64_t i = random_() % 8 == 0 ? 3 : 1; i > 0; --i) {
        const std::int64_t length = random_() % 30 == 0 ? 300 : below(40);
        request.extents.push_back({at, length});
        at += length + below(20);
      }
    }
    if (!request.extents.empty() && random_() % 12 == 0) request.order = request.file * 10;  // a known offset
    sent_.push_back(request);
    ASSERT_TRUE(scheduler_.add(request));
  }

  void take() {
    if (under_way_.size() >= 4) return;
    NextBatch next = scheduler_.next(now_);
    ASSERT_TRUE(!next.again || *next.again > now_);
    if (!next.batch) return;
    check_batch(*next.batch);
    // A batch changes the file somewhere between its dispatch and its end.
    const bool at_once = random_() % 2 == 0;
    if (at_once) carry_out(*next.batch);
    under_way_.push_back({std::move(*next.batch), at_once});
  }

  void end_one() {
    if (under_way_.empty()) return;
    const auto one = under_way_.begin() + below(static_cast<std::int64_t>(under_way_.size()));
    if (!one->carried_out) carry_out(one->batch);
    ASSERT_TRUE(scheduler_.done(one->batch.number));
    under_way_.erase(one);
  }

  void carry_out(const RequestBatch& batch) {
    for (const std::uint64_t ticket : batch.tickets) {
      ASSERT_FALSE(dropped_.contains(ticket));
      ASSERT_TRUE(reads_.emplace(ticket, files_.carry_out(sent_[ticket - 1])).second) << "twice: " << ticket;
      order_.push_back(ticket);
    }
  }

  void check_batch(const RequestBatch& batch) const {
    std::map<std::uint32_t, std::vector<FileExtent>> chunks;
    for (const BatchChunk& chunk : batch.chunks) chunks[chunk.request].push_back({chunk.at, chunk.length});
    std::int64_t bytes = 0;
    for (std::uint32_t i = 0; i < batch.tickets.size(); ++i) {
      const IoRequest& request = sent_[batch.tickets[i] - 1];
      ASSERT_EQ(request.file, batch.file);
      ASSERT_EQ(request.writes, batch.writes);
      ASSERT_EQ(request.flags, batch.flags);
      ASSERT_TRUE(request.order == 0 || batch.tickets.size() == 1);
      const std::vector<FileExtent> extents(request.extents.begin(), request.extents.end());
      ASSERT_TRUE(extents.empty() || chunks[i] == extents);
      for (const FileExtent& extent : extents) bytes += extent.length;
      if (extents.empty()) bytes += request.bytes;
    }
    ASSERT_EQ(bytes, batch.bytes);
    ASSERT_TRUE(batch.tickets.size() == 1 || batch.bytes <= settings().most_bytes);
    ASSERT_LE(batch.tickets.size(), settings().most_requests);
    std::int64_t end = -1;
    for (const AccessRange& access : batch.accesses) {
      ASSERT_GT(access.at, end);
      end = access.end;
    }
  }

  void drop() {
    const std::uint64_t remainder = random_() % 7;
    for (const std::uint64_t ticket :
         scheduler_.drop_if([&](const IoRequest& request) { return request.ticket % 7 == remainder; })) {
      ASSERT_TRUE(dropped_.insert(ticket).second);
    }
  }

  void change() {
    const auto names = algorithm_names();
    ASSERT_TRUE(scheduler_.use(names[random_() % names.size()], settings()));
  }

  // Nothing is sent any more. The times that the scheduler names suffice; no polling in between.
  void drain() {
    std::size_t turns = 0;
    while (scheduler_.waiting() > 0 || !under_way_.empty()) {
      ASSERT_LT(++turns, 100'000U) << "stuck";
      NextBatch next = scheduler_.next(now_);
      if (next.batch) {
        check_batch(*next.batch);
        under_way_.push_back({std::move(*next.batch), false});
      } else if (!under_way_.empty()) {
        end_one();
      } else {
        ASSERT_TRUE(next.again) << "requests wait, and no time is named";
        ASSERT_GT(*next.again, now_);
        now_ = *next.again;
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_FALSE(scheduler_.next(now_).batch);
  }

  struct Running {
    RequestBatch batch;
    bool carried_out;
  };

  RunOptions options_;
  std::mt19937_64 random_;
  RequestScheduler scheduler_;
  Time now_{};
  std::vector<IoRequest> sent_;
  std::map<std::uint64_t, std::string> reads_;  // by ticket, of all that were carried out
  std::set<std::uint64_t> dropped_;
  std::vector<std::uint64_t> order_;
  std::vector<Running> under_way_;
  ModelFiles files_;
};

class RandomRequests : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(, RandomRequests, ::testing::ValuesIn(algorithm_names()), test_name);

TEST_P(RandomRequests, AreEachCarriedOutOnceAndLikeOneAfterTheOther) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run{{GetParam(), seed}};
    run.run(1'000);
    run.check();
  }
}

TEST_P(RandomRequests, SurviveSwitchesOfTheAlgorithm) {
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run{{GetParam(), seed * 1'000, true}};
    run.run(1'000);
    run.check();
  }
}

TEST_P(RandomRequests, AreOrderedTheSameEachTime) {
  RandomRun first{{GetParam(), 99, true}};
  RandomRun second{{GetParam(), 99, true}};
  first.run(1'000);
  second.run(1'000);
  EXPECT_EQ(first.order(), second.order());
  EXPECT_GT(first.order().size(), 200U);
}

}  // namespace
}  // namespace hocket::request_scheduler
