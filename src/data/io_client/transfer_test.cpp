#include "io_client/transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/splitmix.hpp"
#include "io_client/testing.hpp"

namespace hocket::io_client {
namespace {

constexpr std::int64_t chunk_bytes = 1000;

std::byte* memory_of(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }

layout::Layout blocks(std::int64_t count, std::int64_t block, std::int64_t stride) {
  return layout::hvector(count, 1, stride, layout::contiguous_bytes(block).value()).value();
}

layout::FileView strided(std::int64_t displacement, std::int64_t block, std::int64_t stride) {
  const auto tile = layout::resized(0, stride, layout::contiguous_bytes(block).value());
  return layout::FileView::make(displacement, tile.value()).value();
}

// Servers of one file, and an access through all of them.
class Transfers : public testing::Test {
 protected:
  void start(const std::vector<StandIn::StandInSettings>& settings) {
    for (const StandIn::StandInSettings& one : settings) {
      servers_.push_back(std::make_unique<StandIn>(bytes_, one));
      files_.push_back(servers_.back()->open());
    }
    await_answers(files_);
  }

  // Deals the data out in chunks, to one server after the other; a round is a chunk of each.
  Transferred run(const Local& local, Terms terms = {}) {
    std::string serialised(too_long_ ? transport::ServerLink::most_view_bytes + 1 : 0, '\0');
    if (!too_long_) layout::append(local.view, serialised);
    terms.serialised = serialised;
    std::int64_t at = local.data.first;
    std::int64_t count = 0;
    const auto next = [&]() -> std::optional<Chunk> {
      if (at >= local.data.end) return std::nullopt;
      const layout::Extent data{at, std::min(at + chunk_bytes, local.data.end)};
      at = data.end;
      const auto servers = static_cast<std::int64_t>(files_.size());
      return Chunk{static_cast<std::size_t>(count % servers), data, count++ / servers};
    };
    return transfer(files_, local, next, terms, DescriptorWait());
  }

  static Local contiguous(bool writes, std::int64_t offset, std::string& text) {
    const auto size = static_cast<std::int64_t>(text.size());
    return {writes, layout::FileView(offset), {0, size}, layout::contiguous_bytes(size).value(), memory_of(text)};
  }

  static bool eventually(const std::function<bool()>& holds) {
    const Time deadline = node_now() + std::chrono::seconds{20};
    while (!holds() && node_now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return holds();
  }

  const std::shared_ptr<SharedBytes> bytes_ = std::make_shared<SharedBytes>();
  std::vector<std::unique_ptr<StandIn>> servers_;
  std::vector<ServedFile> files_;
  bool too_long_ = false;  // the view is longer than a server accepts
};

// A view of a table of `runs` runs at irregular distances: it has no short formula.
layout::FileView irregular(std::int64_t runs) {
  std::vector<std::int64_t> at;
  std::uint64_t state = 5;
  for (std::int64_t i = 0; i < runs; ++i)
    at.push_back((at.empty() ? 0 : at.back()) + 9 + static_cast<std::int64_t>(splitmix(state += splitmix_step) % 900));
  return layout::FileView::make(0, layout::hindexed_block(8, at, layout::contiguous_bytes(1).value()).value()).value();
}

TEST_F(Transfers, TheMethodDecidesIfTheViewIsSent) {
  start({{}, {}});
  std::string text(4000, 'x');
  Local local = contiguous(true, 0, text);
  local.view = strided(0, 8, 16);
  EXPECT_EQ(run(local, {.method = Method::list}).error, 0);
  EXPECT_EQ(servers_[0]->views + servers_[1]->views, 0);
  EXPECT_EQ(run(local).error, 0);
  EXPECT_EQ(servers_[0]->views + servers_[1]->views, 2) << "a formula is shorter than 500 runs";
  local.view = irregular(2000);
  text.resize(16);
  local.data.end = 16;
  local.memory = layout::contiguous_bytes(16).value();
  EXPECT_EQ(run(local).error, 0);
  EXPECT_EQ(servers_[0]->views + servers_[1]->views, 2) << "two runs are shorter than a table of 2,000";
  EXPECT_EQ(run(local, {.method = Method::view}).error, 0);
  EXPECT_EQ(servers_[0]->views + servers_[1]->views, 4);
  EXPECT_EQ(run(local).error, 0);
  EXPECT_EQ(servers_[0]->requests + servers_[1]->requests, 4 + 4 + 3) << "no view is sent again";
  EXPECT_EQ(servers_[0]->views + servers_[1]->views, 4);
}

TEST_F(Transfers, ManyChunksAreInFlightButNoMoreThanThreeForEachServer) {
  start({{}, {}});
  std::string text(20 * chunk_bytes, 'x');
  EXPECT_EQ(run(contiguous(true, 5, text)).error, 0);
  EXPECT_EQ(bytes_->text, std::string(5, '\0') + text);
  for (const auto& server : servers_) {
    EXPECT_EQ(server->requests, 10);
    EXPECT_GE(server->most_unanswered, 3);
    EXPECT_LE(server->most_unanswered, 6);
    EXPECT_EQ(server->views, 0) << "a contiguous view is not sent";
  }
}

TEST_F(Transfers, OneServerHasThreeChunks) {
  start({{}});
  std::string text(10 * chunk_bytes, 'x');
  EXPECT_EQ(run(contiguous(true, 0, text)).error, 0);
  EXPECT_EQ(servers_[0]->most_unanswered, 3);
}

TEST_F(Transfers, AReadEndsWithTheFile) {
  start({{}});
  bytes_->text = std::string(2500, 'a');
  std::string text(5 * chunk_bytes, '.');
  const Transferred done = run(contiguous(false, 0, text));
  EXPECT_EQ(done.error, 0);
  EXPECT_EQ(done.there, 2500);
  EXPECT_FALSE(done.gap);
  EXPECT_EQ(text, std::string(2500, 'a') + std::string(2500, '.'));
}

TEST_F(Transfers, DataBehindAMissingPartAreAGap) {
  start({{}, {}});
  // The second server writes behind further on, which the first one does not know.
  const auto longer = std::make_shared<SharedBytes>();
  longer->text = std::string(2 * chunk_bytes, 'b');
  servers_.push_back(std::make_unique<StandIn>(longer, StandIn::StandInSettings{}));
  files_[1] = servers_.back()->open();
  await_answers(files_);
  bytes_->text = std::string(10, 'a');
  std::string text(2 * chunk_bytes, '.');
  const Transferred done = run(contiguous(false, 0, text));
  EXPECT_EQ(done.there, 10);
  EXPECT_TRUE(done.gap);
}

TEST_F(Transfers, AnErrorIsReportedAndTheRestIsDone) {
  start({{.data_error = ENOSPC}, {}});
  std::string text(4 * chunk_bytes, 'x');
  const Transferred done = run(contiguous(true, 0, text));
  EXPECT_EQ(done.error, ENOSPC);
  EXPECT_FALSE(done.lost);
  EXPECT_EQ(servers_[1]->requests, 2);
  EXPECT_EQ(bytes_->text.substr(3 * chunk_bytes), std::string(chunk_bytes, 'x'));
}

TEST_F(Transfers, ALostServerEndsTheAttempt) {
  start({{.dies_at = 1}, {}});
  std::string text(40 * chunk_bytes, 'x');
  const Transferred done = run(contiguous(true, 0, text), {.serialised = {}, .operation = 5, .participants = 1});
  EXPECT_TRUE(done.lost);
  EXPECT_TRUE(files_[0].lost());
  EXPECT_FALSE(files_[1].lost());
  EXPECT_EQ(pending(files_), 0U);
  EXPECT_LT(servers_[1]->requests, 20) << "nothing more is requested after the loss";
  EXPECT_EQ(servers_[1]->ends, 0) << "the operation is repeated";
  // A file that is lost already: nothing is requested at all.
  const int before = servers_[1]->requests;
  EXPECT_TRUE(run(contiguous(true, 0, text)).lost);
  EXPECT_EQ(servers_[1]->requests, before);
}

TEST_F(Transfers, EachServerLearnsTheEndOfACollectiveOperation) {
  start({{}, {}});
  std::string text(chunk_bytes, 'x'), none;
  EXPECT_EQ(run(contiguous(true, 0, text), {.serialised = {}, .operation = 5, .participants = 3}).error, 0);
  // Without data, nothing else makes the client send.
  EXPECT_EQ(run(contiguous(true, 0, none), {.serialised = {}, .operation = 6, .participants = 3}).error, 0);
  EXPECT_EQ(run(contiguous(true, 0, text)).error, 0);
  for (const auto& server : servers_) {
    EXPECT_TRUE(eventually([&] { return server->ends == 2; })) << server->ends;
    EXPECT_EQ(server->participants, 3);
  }
}

// A gate that holds the access before a round until it has been asked some times.
class Turnstile final : public RoundGate {
 public:
  explicit Turnstile(std::int64_t round) : round_(round) {}

  bool may_begin(std::int64_t round) const override { return round < round_ || open_; }
  void begins(std::int64_t round) override {
    EXPECT_TRUE(may_begin(round));
    begun_ = round;
  }
  void stored(std::int64_t bytes) override { stored_ += bytes; }
  bool hear(bool idle) override {
    EXPECT_TRUE(idle);
    return false;
  }
  bool speak(std::optional<std::int64_t> held, bool ended) override {
    if (held) {
      EXPECT_EQ(*held, round_);
      EXPECT_EQ(begun_, round_ - 1);
      stored_when_held_ = stored_;
      open_ = ++asked_ == 3;
    }
    ended_ |= ended;
    return held.has_value();
  }
  bool own_part_done() const override { return ended_; }
  bool awaits_messages() const override { return false; }
  bool failed() const override { return failed_; }

  const std::int64_t round_;
  bool open_ = false, ended_ = false, failed_ = false;
  int asked_ = 0;
  std::int64_t begun_ = -1, stored_ = 0, stored_when_held_ = -1;
};

TEST_F(Transfers, AGateHoldsTheAccessBetweenTwoRounds) {
  start({{}, {}});
  Turnstile gate{3};
  std::string text(10 * chunk_bytes, 'x');
  const Transferred done = run(contiguous(true, 0, text), {.serialised = {}, .gate = &gate});
  EXPECT_EQ(done.error, 0);
  EXPECT_EQ(gate.asked_, 3);
  EXPECT_EQ(gate.stored_when_held_, 3 * 2 * chunk_bytes) << "everything begun is stored";
  EXPECT_EQ(gate.begun_, 4);
  EXPECT_EQ(gate.stored_, 10 * chunk_bytes);
  EXPECT_TRUE(gate.ended_);
}

TEST_F(Transfers, AGateThatFailsLetsNothingBegin) {
  start({{}});
  Turnstile gate{0};
  gate.failed_ = true;
  std::string text(10 * chunk_bytes, 'x');
  EXPECT_FALSE(run(contiguous(true, 0, text), {.serialised = {}, .gate = &gate}).lost);
  EXPECT_EQ(servers_[0]->requests, 0);
}

// The model is a file and a memory in which each byte is moved by itself.
TEST_F(Transfers, AnyAccessMovesTheBytesOfAModel) {
  std::uint64_t state = 3;
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(splitmix(state += splitmix_step) % static_cast<std::uint64_t>(most + 1));
  };
  start({{}, {.tcp = true}, {}});
  std::string model;
  for (int round = 0; round < 120; ++round) {
    const std::int64_t block = 1 + draw(300), count = 1 + draw(30), skipped = draw(2 * block);
    const layout::FileView view =
        draw(2) == 0 ? layout::FileView(draw(500)) : strided(draw(500), block, block + draw(200));
    const layout::Layout memory =
        draw(1) == 0 ? layout::contiguous_bytes(block * count).value() : blocks(count, block, block + draw(100));
    const bool writes = draw(1) == 0;
    too_long_ = draw(3) == 0;
    const auto method = static_cast<Method>(draw(2));
    std::string buffer(static_cast<std::size_t>(memory.extent()), '\0');
    for (char& c : buffer) c = static_cast<char>('a' + draw(25));
    std::string expected = buffer;
    const layout::Extent data{skipped, skipped + block * count};
    std::int64_t there = 0;
    layout::Segments segments(memory.walk());
    for (auto run = segments.next(); run; run = segments.next()) {
      for (std::int64_t i = 0; i < run->length; ++i) {
        const auto in_file = static_cast<std::size_t>(view.offset(data.first + run->data + i));
        const auto in_memory = static_cast<std::size_t>(run->at + i);
        if (writes && model.size() <= in_file) model.resize(in_file + 1);
        if (writes) model[in_file] = buffer[in_memory];
        if (!writes && in_file < model.size()) expected[in_memory] = model[in_file];
        there += writes || in_file < model.size() ? 1 : 0;
      }
    }
    SCOPED_TRACE(testing::Message() << "round " << round);
    const Transferred done = run(Local{writes, view, data, memory, memory_of(buffer)}, {.method = method});
    ASSERT_FALSE(done.lost);
    ASSERT_EQ(done.error, 0);
    ASSERT_EQ(done.there, there);
    ASSERT_EQ(buffer, expected);
    ASSERT_EQ(bytes_->text, model);
  }
}

}  // namespace
}  // namespace hocket::io_client
