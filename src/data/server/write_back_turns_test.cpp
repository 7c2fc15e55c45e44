// Tests when a server stores what it has answered early: in the turn of the application, or at once if somebody waits.
// A stand-in for hocketd in the same process grants what the test says.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "bus/stand_in_testing.hpp"
#include "event/applicant.hpp"
#include "event/server_map.hpp"
#include "server/testing.hpp"
#include "transport/held_view.hpp"
#include "transport/held_writes.hpp"

namespace hocket::server {
namespace {

using bus::testing::eventually;
using bus::testing::StandIn;
using testing::bytes_of;
using testing::Handle;
using testing::Link;
using transport::OffsetPlace;
using transport::ServerLink;

class WriteBackTurns : public testing::Served {
 protected:
  static constexpr std::int64_t mib = 1 << 20;

  // hocketd grants at once, or leaves requests queued.
  enum class Daemon { none, grants, queues };
  void start_with(Daemon daemon, TurnLimits limits = {}, std::int64_t buffer_bytes = 64 * mib) {
    grants_ = daemon == Daemon::grants;
    if (daemon != Daemon::none) {
      hocketd_.emplace(root_ + "/hocketd", [this](const event::Body& said) -> StandIn::Reaction {
        const auto* asked = std::get_if<event::StartIo>(&said);
        if (asked == nullptr) return {};
        if (grants_) return {{event::GrantIo{asked->request, {}, asked->target, 1}}};
        return {{event::QueuedIo{asked->request, 1, "other"}}};
      });
    }
    turns_.emplace(root_ + "/hocketd", limits, [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      complaints_.emplace_back(line);
    });
    HocketServer::ServerSettings settings;
    settings.write_behind = true;
    settings.turns = &*turns_;
    settings.engine.buffer_bytes = buffer_bytes;
    auto held = transport::HeldWrites::in(root_, "s1");
    ASSERT_TRUE(held.ok());
    held_ = std::move(held).value();
    settings.engine.held = held_.get();
    start(settings);
    view_.attach(root_);
  }
  void TearDown() override {
    stop();
    turns_.reset();
    hocketd_.reset();
  }

  Handle open_for(ServerLink& link, const std::string& job = "job-a", const std::string& path = "file") {
    const std::string text = event::text_of({job, "a", "disk", "ost1"});
    return open_file(link, {.reads = true, .writes = true, .applicant = text}, path);
  }
  // Writes, which the server answers early.
  void put(ServerLink& link, Handle handle, const std::string& text, std::int64_t offset = 0) {
    EXPECT_EQ(write_now(link, handle, OffsetPlace{offset}, bytes_of(text)), 0);
  }
  bool is_stored(const std::string& text) const { return contents() == text; }
  // True if the server still holds the write after a while.
  bool rests(const std::string& text) const {
    std::this_thread::sleep_for(std::chrono::milliseconds{60});
    return contents() != text;
  }
  std::vector<std::string> complaints() {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

  std::atomic<bool> grants_ = true;
  std::optional<StandIn> hocketd_;
  std::optional<TurnTaker> turns_;
  std::unique_ptr<transport::HeldWrites> held_;
  transport::HeldView view_;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
};

TEST_F(WriteBackTurns, AskForTheApplicationAtItsTarget) {
  start_with(Daemon::grants);
  const Link link = connect();
  const Handle handle = open_for(*link);
  put(*link, handle, "held");
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
  const event::Hello hello = hocketd_->await<event::Hello>(1).front();
  EXPECT_EQ(hello.job, "job-a");
  EXPECT_EQ(hello.processes, 0);
  EXPECT_FALSE(hello.mpi.empty()) << "it would be a tool, which may not ask";
  const event::StartIo asked = hocketd_->await<event::StartIo>(1).front();
  EXPECT_EQ(asked.operation, event::write_back);
  EXPECT_EQ(asked.target, "disk");
  EXPECT_EQ(asked.parts, "ost1");
  EXPECT_EQ(asked.bytes, 4);
  EXPECT_EQ(hocketd_->await<event::FinishIo>(1).front().request, asked.request);
  EXPECT_TRUE(hocketd_->taken<event::Bye>().empty());
  EXPECT_EQ(close_now(*link, handle), 0);
  EXPECT_EQ(hocketd_->await<event::Bye>(1).size(), 1U) << "the application does not outlive its own members";
}

TEST_F(WriteBackTurns, AreAwaitedIfNobodyWaits) {
  start_with(Daemon::queues);
  const Link link = connect();
  const Handle handle = open_for(*link);
  put(*link, handle, "held");
  const event::StartIo asked = hocketd_->await<event::StartIo>(1).front();
  EXPECT_TRUE(rests("held"));
  hocketd_->say({event::GrantIo{asked.request, {}, "disk", 1}});
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
}

TEST_F(WriteBackTurns, AreNotAwaitedBySyncOrReadOrClose) {
  start_with(Daemon::queues);
  const Link link = connect();
  Handle handle = open_for(*link);
  put(*link, handle, "one");
  EXPECT_EQ(sync_now(*link, handle), 0);
  EXPECT_TRUE(is_stored("one"));
  put(*link, handle, "two");
  std::string read(3, '\0');
  EXPECT_EQ(read_now(*link, handle, OffsetPlace{0}, bytes_of(read)), 0);
  EXPECT_EQ(read, "two");
  EXPECT_TRUE(is_stored("two"));
  put(*link, handle, "six");
  EXPECT_EQ(close_now(*link, handle), 0);
  EXPECT_TRUE(is_stored("six"));
  EXPECT_TRUE(eventually([&] {
    return hocketd_->taken<event::StartIo>().size() == hocketd_->taken<event::FinishIo>().size();
  })) << "what is not needed any more is withdrawn";
}

TEST_F(WriteBackTurns, AreNotAwaitedByAProcessOfTheNode) {
  start_with(Daemon::queues);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  struct stat status {};
  fstat(file_.get(), &status);
  EXPECT_TRUE(view_.await(hocket::key_of(status.st_dev, status.st_ino)));
  EXPECT_TRUE(is_stored("held"));
}

TEST_F(WriteBackTurns, AreNotAwaitedByAnotherApplicationThatUsesTheFile) {
  start_with(Daemon::queues);
  const Link link = connect(), other = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  put(*other, open_for(*other, "job-b"), "HE");
  EXPECT_TRUE(eventually([&] { return is_stored("HEld"); })) << "in the order in which they came";
}

TEST_F(WriteBackTurns, AreNotAwaitedIfMemoryRunsOut) {
  start_with(Daemon::queues, {}, 8 * mib);
  const Link link = connect();
  const Handle handle = open_for(*link);
  const std::string megabyte(mib, 'm');
  const Time began = node_now();
  for (int i = 0; i < 20; ++i) put(*link, handle, megabyte, i * mib);
  EXPECT_LT(node_now() - began, std::chrono::seconds{10});
  EXPECT_GE(contents().size(), 12U * mib);
  EXPECT_EQ(sync_now(*link, handle), 0);
  EXPECT_EQ(contents().size(), 20U * mib);
}

TEST_F(WriteBackTurns, AreNotAwaitedByAClientThatGivesUp) {
  start_with(Daemon::queues);
  Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  transport::Parting parting = link->part();
  link.reset();
  EXPECT_TRUE(eventually([&] { return parting.is_over(); })) << "it may access the file then";
  EXPECT_TRUE(is_stored("held"));
}

TEST_F(WriteBackTurns, AreAwaitedForWhatADeadApplicationWrote) {
  start_with(Daemon::queues);
  Link link = connect();
  put(*link, open_for(*link), "held");
  const event::StartIo asked = hocketd_->await<event::StartIo>(1).front();
  link.reset();
  EXPECT_TRUE(rests("held"));
  hocketd_->say({event::GrantIo{asked.request, {}, "disk", 1}});
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
  EXPECT_EQ(hocketd_->await<event::Bye>(1).size(), 1U);
}

TEST_F(WriteBackTurns, AreNotAwaitedByANewMap) {
  start_with(Daemon::queues);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  std::atomic<bool> stored = false;
  server_->take_map(event::ServerMap{}, [&] { stored = true; });
  EXPECT_TRUE(eventually([&] { return stored.load(); }));
  EXPECT_TRUE(is_stored("held"));
}

TEST_F(WriteBackTurns, AreNotAwaitedAtTheEndOfTheServer) {
  start_with(Daemon::queues);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  stop();
  EXPECT_TRUE(is_stored("held"));
}

TEST_F(WriteBackTurns, EndWithHocketd) {
  start_with(Daemon::queues);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(rests("held"));
  hocketd_->stop();
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
}

TEST_F(WriteBackTurns, AreNotAwaitedWithoutHocketd) {
  start_with(Daemon::none);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
}

TEST_F(WriteBackTurns, AreNotAwaitedForeverIfNoneComes) {
  start_with(Daemon::queues, {.longest = std::chrono::milliseconds{150}});
  const Link link = connect();
  const Time began = node_now();
  put(*link, open_for(*link), "held");
  EXPECT_TRUE(eventually([&] { return is_stored("held"); }));
  EXPECT_GE(node_now() - began, std::chrono::milliseconds{150});
  ASSERT_TRUE(eventually([&] { return complaints().size() == 1U; }));
  EXPECT_EQ(complaints().front(), "no turn at disk came for 0.15 s; stores what it holds for 'a' without");
}

TEST_F(WriteBackTurns, AreGivenBackIfPreempted) {
  start_with(Daemon::grants);
  const Link link = connect();
  const Handle handle = open_for(*link);
  put(*link, handle, "one");
  EXPECT_TRUE(eventually([&] { return is_stored("one"); }));
  grants_ = false;
  hocketd_->await<event::FinishIo>(1);
  put(*link, handle, "two");
  const event::StartIo asked = hocketd_->await<event::StartIo>(2).back();
  hocketd_->say({event::GrantIo{asked.request, {}, "disk", 1}, event::PauseIo{asked.request, "b", "disk"}});
  EXPECT_TRUE(eventually(
      [&] { return hocketd_->taken<event::PausedIo>().size() + hocketd_->taken<event::FinishIo>().size() == 2; }));
}

TEST_F(WriteBackTurns, AMapIsAdoptedSoThatNobodyWaitsForTheServer) {
  start_with(Daemon::grants);
  const Link link = connect();
  put(*link, open_for(*link), "held");
  hocketd_->await<event::StartIo>(1);
  hocketd_->say({event::NewServerMap{7, ""}});
  EXPECT_EQ(hocketd_->await<event::MapAdopted>(1).front().epoch, 7);
}

}  // namespace
}  // namespace hocket::server
