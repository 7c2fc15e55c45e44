#include "io_client/served_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <vector>

#include "io_client/testing.hpp"
#include "io_client/waiting.hpp"

namespace hocket::io_client {
namespace {

std::span<ServedFile> one(ServedFile& file) { return {&file, 1}; }

// Queues a read, which a mute server never answers.
void read_into(ServedFile& file, std::string& text) {
  file.link().read(file.handle(), transport::OffsetPlace{0}, 0, std::as_writable_bytes(std::span{text}),
                   [](int, auto) {});
}

TEST(ServedFile, IsLostIfNobodyListens) {
  ServedFile file{{"s", "/", "unix:/nowhere"}, ""};
  EXPECT_TRUE(file.lost());
  EXPECT_TRUE(file.failed());
  EXPECT_THAT(file.why(), testing::HasSubstr("no hocket-server listens at /nowhere"));
  // Requests of a lost file do nothing.
  file.open("/file", {}, {.reads = true});
  file.join({});
  file.sync();
  file.close();
  file.show("view");
  EXPECT_FALSE(file.poll());
  EXPECT_EQ(file.pending(), 0U);
  EXPECT_EQ(file.take_error(), 0);
}

TEST(ServedFile, OpensAndCloses) {
  for (const bool behind : {false, true}) {
    const StandIn server{no_bytes(), {.behind = behind}};
    ServedFile file = server.open();
    EXPECT_EQ(file.pending(), 1U);
    EXPECT_TRUE(file.failed()) << "it is not open yet";
    await_answers(one(file));
    EXPECT_FALSE(file.failed());
    EXPECT_EQ(file.writes_behind(), behind);
    file.close();
    await_answers(one(file));
    EXPECT_EQ(file.take_error(), 0);
    file.lose("given up");
    EXPECT_EQ(file.writes_behind(), behind) << "known after the loss";
  }
}

TEST(ServedFile, SaysWhatItJoined) {
  const StandIn server{no_bytes(), {}};
  ServedFile file{server.server(), StandIn::secret};
  file.join({.name = "field", .application = "a"});
  ServedFile moved = std::move(file);
  await_answers(one(moved));
  EXPECT_FALSE(moved.failed());
  EXPECT_EQ(moved.version(), 7);
  EXPECT_EQ(moved.bytes(), 99);
}

TEST(ServedFile, AnErrorIsTakenOnce) {
  const StandIn closed{no_bytes(), {.open_error = EACCES}};
  ServedFile file = closed.open();
  await_answers(one(file));
  EXPECT_TRUE(file.failed());
  EXPECT_FALSE(file.lost());
  file.close();
  EXPECT_EQ(file.pending(), 0U) << "the server does not have it open";
  EXPECT_EQ(file.take_error(), EACCES);
  EXPECT_EQ(file.take_error(), 0);

  const StandIn full{no_bytes(), {.sync_error = ENOSPC}};
  ServedFile other = full.open();
  await_answers(one(other));
  other.sync();
  await_answers(one(other));
  EXPECT_FALSE(other.failed()) << "it is still open";
  EXPECT_EQ(take_error(one(other)), ENOSPC);
  EXPECT_EQ(take_error(one(other)), 0);
}

TEST(ServedFile, TheErrorThatCancelledTheOthersIsTaken) {
  const StandIn cancelled{no_bytes(), {.open_error = ECANCELED}};
  const StandIn full{no_bytes(), {.open_error = ENOSPC}};
  std::vector<ServedFile> files;
  files.push_back(cancelled.open());
  files.push_back(full.open());
  await_answers(files);
  EXPECT_EQ(take_error(files), ENOSPC);
  files.clear();
  files.push_back(cancelled.open());
  await_answers(files);
  EXPECT_EQ(take_error(files), ECANCELED);
}

// Writes ten bytes, relies on them, and loses the server. Returns what is lost.
ServedFile::LostData loss_with(StandIn::StandInSettings settings) {
  settings.behind = true;
  auto server = std::make_unique<StandIn>(no_bytes(), settings);
  ServedFile file = server->open();
  await_answers(one(file));
  const std::string text(10, '.');
  file.link().write(file.handle(), transport::OffsetPlace{0}, 0, std::as_bytes(std::span{text}), [](int, auto) {});
  await_answers(one(file));
  file.rely();
  if (settings.sync_error != 0) file.sync();
  await_answers(one(file));
  server.reset();
  while (file.poll() || !file.lost()) ::poll(nullptr, 0, 1);
  const ServedFile::LostData loss = file.take_lost_data();
  EXPECT_EQ(file.take_lost_data().error, 0) << "each is returned once";
  return loss;
}

TEST(ServedFile, KnowsWhatALostServerHeld) {
  const ServedFile::LostData held = loss_with({});
  EXPECT_EQ(held.error, EIO);
  EXPECT_EQ(held.bytes, 10);
  EXPECT_EQ(loss_with({.stores = true}).error, 0) << "it had stored everything";
  const ServedFile::LostData failed = loss_with({.stores = true, .stored_error = EDQUOT});
  EXPECT_EQ(failed.error, EDQUOT);
  EXPECT_EQ(failed.bytes, 0);
  EXPECT_EQ(loss_with({.sync_error = ENOSPC}).error, ENOSPC) << "of the sync before";
}

TEST(ServedFile, WritesOfAnAccessThatIsRepeatedAreNoLoss) {
  auto server = std::make_unique<StandIn>(no_bytes(), StandIn::StandInSettings{.behind = true});
  ServedFile file = server->open();
  await_answers(one(file));
  const std::string text(10, '.');
  file.link().write(file.handle(), transport::OffsetPlace{0}, 0, std::as_bytes(std::span{text}), [](int, auto) {});
  await_answers(one(file));
  server.reset();
  while (file.poll() || !file.lost()) ::poll(nullptr, 0, 1);
  EXPECT_EQ(file.take_lost_data().error, 0);
  EXPECT_TRUE(file.may_have_held()) << "of other processes";
}

TEST(ServedFile, SaysWhatIsLost) {
  ServedFile file{{"s1", "/", "unix:/nowhere"}, ""};
  EXPECT_EQ(file.text_of({ENOSPC, 0}), "the I/O server s1 could not store what was written: No space left on device");
  file.lose("gone");
  EXPECT_THAT(file.text_of({EIO, 12}),
              testing::StartsWith("the I/O server s1 was lost with 12 bytes that it had not stored yet ("));
}

TEST(ServedFile, LeadsToItsServerUntilThatEnds) {
  auto server = std::make_unique<StandIn>(no_bytes(), StandIn::StandInSettings{});
  const event::ServerMap::MappedServer place = server->server();
  ServedFile file = server->open();
  await_answers(one(file));
  EXPECT_TRUE(file.leads_to(place));
  EXPECT_FALSE(file.leads_to({"other", place.directory, place.addresses}));
  server.reset();
  EXPECT_FALSE(file.leads_to(place));
  EXPECT_TRUE(file.lost());
}

TEST(Waiting, AConnectionThatEndsIsLostWhenItsCallbacksHaveRun) {
  const StandIn server{no_bytes(), {.dies_at = 0}};
  ServedFile file = server.open();
  await_answers(one(file));
  std::string text(10, '.');
  int error = 0;
  file.link().read(file.handle(), transport::OffsetPlace{0}, 0, std::as_writable_bytes(std::span{text}),
                   [&](int its_error, auto) { error = its_error; });
  await_answers(one(file));
  EXPECT_TRUE(any_lost(one(file)));
  EXPECT_NE(error, 0);
  EXPECT_NE(file.why(), "");
}

TEST(Waiting, AnExceptionLosesTheFilesThatOweAnAnswer) {
  const StandIn mute{no_bytes(), {.mute = true}}, server{no_bytes(), {}};
  std::vector<ServedFile> files;
  files.push_back(mute.open());
  files.push_back(server.open());
  await_answers(files);
  std::string text(10, '.');
  read_into(files[0], text);
  EXPECT_EQ(pending(files), 1U);
  const auto fail = []() -> StepResult { throw std::runtime_error{"no memory"}; };
  EXPECT_THROW(wait(files, DescriptorWait(), fail), std::runtime_error);
  EXPECT_TRUE(files[0].lost());
  EXPECT_EQ(files[0].why(), "given up");
  EXPECT_FALSE(files[1].lost());
}

// Counts what a wait tells its strategy, and sleeps no longer than a millisecond.
class Recorder final : public WaitStrategy {
 public:
  explicit Recorder(int& moves, int& pauses) : moves_(moves), pauses_(pauses) {}
  void moved() override { ++moves_; }
  void pause(std::span<pollfd> connections, Duration idle, Duration left, bool awaits_messages) override {
    ++pauses_;
    EXPECT_EQ(connections.size(), 1U);
    EXPECT_TRUE(awaits_messages);
    EXPECT_GE(idle, Duration{});
    EXPECT_EQ(left, std::chrono::seconds{1}) << "nothing is due";
    ::poll(connections.data(), connections.size(), 1);
  }

 private:
  int &moves_, &pauses_;
};

TEST(Waiting, SilenceCountsOnlyWhileAnAnswerIsDue) {
  const StandIn server{no_bytes(), {}};
  ServedFile file = server.open();
  await_answers(one(file));
  int moves = 0, pauses = 0, steps = 0;
  wait(one(file), Recorder{moves, pauses}, [&] {
    ++steps;
    return StepResult{.done = steps == 10, .moved = steps == 5, .awaits_messages = true};
  });
  EXPECT_EQ(moves, 1);
  EXPECT_EQ(pauses, 8);
}

}  // namespace
}  // namespace hocket::io_client
