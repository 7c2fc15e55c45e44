// A member against a controller in the same process: its main thread and its lease thread send on one connection. Built
// with -DHOCKET_SANITIZE=thread, this shows that they do so without a race.
#include "runtime/member.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "runtime/bursts.hpp"
#include "wire/frame.hpp"

namespace hocket::runtime {
namespace {

// Welcomes, grants at once (unless mute, or the file is "queued"), and keeps what it was sent.
class Controller {
 public:
  explicit Controller(const std::string& path, bool mute = false) : mute_(mute) {
    auto listening = bus::listen_at(path);
    if (!listening) ADD_FAILURE() << listening.error().text;
    listener_ = std::move(listening).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~Controller() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    listener_ = bus::Fd{};
  }
  // What it does where a member has paused.
  enum class AtPause { grant, silence, hang_up };
  std::atomic<AtPause> at_pause = AtPause::silence;

  // To the member that is connected, from another thread.
  void say(const event::Body& body) const {
    std::string out;
    ASSERT_TRUE(wire::encode(body, out));
    ASSERT_EQ(send(client_, out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  }
  // The last of that kind which has come within 10 s.
  template <class E>
  E await_last(std::size_t count_of_them = 1) {
    const Time end = node_now() + from_s(10);
    while (node_now() < end) {
      {
        const std::lock_guard lock(mutex_);
        if (count<E>() >= count_of_them)
          for (auto body = taken_.rbegin(); body != taken_.rend(); ++body)
            if (const auto* found = std::get_if<E>(&*body)) return *found;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    ADD_FAILURE() << "no " << E::name << " within 10 s";
    return {};
  }

  // While it serves.
  template <class E>
  std::size_t taken() {
    const std::lock_guard lock(mutex_);
    return count<E>();
  }

  // Grants all that is queued, the last one first, and keeps at it until there were so many; 20 s at most.
  void grant_queued(std::size_t count_of_them) {
    std::set<std::uint64_t> granted;
    const Time end = node_now() + from_s(20);
    while (granted.size() < count_of_them && node_now() < end) {
      std::vector<RequestId> queued;
      {
        const std::lock_guard lock(mutex_);
        for (const event::Body& body : taken_)
          if (const auto* start = std::get_if<event::StartIo>(&body); start && start->file == "queued")
            if (granted.insert(start->request.value).second) queued.push_back(start->request);
      }
      for (auto request = queued.rbegin(); request != queued.rend(); ++request) say(event::GrantIo{*request, {}, "t"});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  // After stop().
  template <class E>
  std::size_t count() const {
    std::size_t found = 0;
    for (const event::Body& body : taken_) found += std::holds_alternative<E>(body) ? 1 : 0;
    return found;
  }

 private:
  bool readable(const bus::Fd& fd) const {
    pollfd waited{fd.get(), POLLIN, 0};
    while (poll(&waited, 1, 20) == 0)
      if (stopping_) return false;
    return true;
  }

  void serve() {
    while (readable(listener_)) {
      const bus::Fd client{accept(listener_.get(), nullptr, nullptr)};
      client_ = client.get();
      wire::Splitter splitter;
      while (readable(client) && take_in(client, splitter)) {
      }
    }
  }

  bool take_in(const bus::Fd& client, wire::Splitter& splitter) {
    const auto space = splitter.space();
    const ssize_t n = read(client.get(), space.data, space.size);
    if (n <= 0) return false;
    splitter.filled(static_cast<std::size_t>(n));
    for (auto payload = splitter.next(); payload && payload.value(); payload = splitter.next()) {
      auto message = wire::decode(*payload.value());
      EXPECT_TRUE(message) << "a frame of the member is broken";
      if (!message) return false;
      const event::Body body = message.value().event.body;
      {
        const std::lock_guard lock(mutex_);
        taken_.push_back(body);
      }
      answer(client, body);
      if (std::holds_alternative<event::PausedIo>(body) && at_pause == AtPause::hang_up) return false;
    }
    return true;
  }

  void answer(const bus::Fd& client, const event::Body& body) const {
    std::string out;
    Status encoded = success();
    if (std::holds_alternative<event::Hello>(body))
      encoded = wire::encode(event::Welcome{AppId{1}, "a", "test", from_s(0.015)}, out);
    if (const auto* start = std::get_if<event::StartIo>(&body); start && start->file == "queued")
      encoded = wire::encode(event::QueuedIo{start->request, 1, "b"}, out);
    if (const auto* paused = std::get_if<event::PausedIo>(&body); paused && at_pause == AtPause::grant)
      encoded = wire::encode(event::GrantIo{paused->request, {}, "t"}, out);
    if (const auto* start = std::get_if<event::StartIo>(&body); start && !mute_ && start->file != "queued") {
      // A new map before each grant.
      const std::string map = start->file == "no map" ? "s1" : "s1 /scratch unix:/s1\n";
      encoded = wire::encode(event::NewServerMap{static_cast<std::int64_t>(start->request.value), map}, out);
      if (encoded) encoded = wire::encode(event::GrantIo{start->request, {}, start->target}, out);
    }
    EXPECT_TRUE(encoded);
    if (out.empty()) return;
    EXPECT_EQ(send(client.get(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  }

  bool mute_;
  bus::Fd listener_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> client_ = -1;
  std::mutex mutex_;  // of what was taken
  std::vector<event::Body> taken_;
  std::thread thread_;
};

class MemberTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-member-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    settings_.socket = name + "/s";
    settings_.answer = from_s(20);  // no test waits for it
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Member make() {
    return {settings_, event::Hello{}, [this](std::string_view why) { lost_.emplace_back(why); }};
  }

  std::filesystem::path directory_;
  Settings settings_;
  std::vector<std::string> lost_;
};

TEST_F(MemberTest, MainAndLeaseThreadSendOnOneConnection) {
  Controller controller(settings_.socket);
  Member member = make();
  member.join();
  const Time end = node_now() + from_s(20);
  std::size_t operations = 0;
  // Until the lease thread has sent as well, however slow this machine is.
  while ((operations < 500 || controller.taken<event::RenewIo>() < 5) && node_now() < end) {
    const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    ++operations;
    // Held for a while now and then, so that the lease thread comes to it.
    if (operations % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{12});
    member.report({});
    member.finish({request, {}, 1, false});
  }
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::StartIo>(), operations);
  EXPECT_EQ(controller.count<event::FinishIo>(), operations);
  EXPECT_EQ(controller.count<event::IoPhase>(), operations);
  EXPECT_GT(controller.count<event::RenewIo>(), 0U);
  EXPECT_EQ(controller.count<event::Bye>(), 1U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(MemberTest, ThreadsAskAtOnce) {
  Controller controller(settings_.socket);
  Member member = make();
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
        granted += request ? 1 : 0;
        if (request) member.finish({request, {}, 1, false});
      }
    });
  for (std::thread& thread : threads) thread.join();
  member.leave({});
  controller.stop();
  EXPECT_EQ(granted, 200);
  EXPECT_EQ(controller.count<event::FinishIo>(), 200U);
}

// One of them listens; whose grant comes in which order is not theirs to say.
TEST_F(MemberTest, ThreadsWaitSideBySide) {
  Controller controller(settings_.socket);
  Member member = make();
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        const RequestId request = member.ask({{}, "t", (n + i) % 3 == 0 ? "f" : "queued", "write", 0}, Use::burst);
        granted += request ? 1 : 0;
        if (request) member.finish({request, {}, 1, false});
      }
    });
  controller.grant_queued(133);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 200);
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 200U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(MemberTest, WhoWaitsKeepsNobodyElseFromAsking) {
  Controller controller(settings_.socket);
  Member member = make();
  RequestId late;
  std::thread waits([&] { late = member.ask({{}, "t", "queued", "write", 0}, Use::burst); });
  controller.await_last<event::StartIo>();
  for (int n = 0; n < 20; ++n) {
    const RequestId request = member.ask({{}, "u", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    member.finish({request, {}, 1, false});
  }
  EXPECT_FALSE(late) << "that thread is no nearer to its target";
  controller.grant_queued(1);
  waits.join();
  EXPECT_TRUE(late);
  member.finish({late, {}, 1, false});
  member.leave({});
  EXPECT_TRUE(lost_.empty());
}

TEST_F(MemberTest, AllThatWaitGoOnWhereTheControllerGoes) {
  settings_.answer = from_s(60);
  Controller controller(settings_.socket);
  Member member = make();
  std::vector<std::thread> threads;
  const Time start = node_now();
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { EXPECT_FALSE(member.ask({{}, "t", "queued", "write", 0}, Use::burst)); });
  controller.await_last<event::StartIo>(3);
  controller.stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(node_now() - start, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U) << "said once";
  member.leave({});
}

TEST_F(MemberTest, KeepsTheServerMapThatCameLast) {
  Controller controller(settings_.socket);
  Member member = make();
  const auto none = member.server_map();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, event::ServerMap{});
  member.finish({member.ask({}), {}, 0, false});
  const auto first = member.server_map();
  EXPECT_EQ(*first, (event::ServerMap{1, {{"s1", "/scratch", "unix:/s1"}}}));
  EXPECT_EQ(member.server_map(), first) << "the same pointer while no other has come";
  member.finish({member.ask({}), {}, 0, false});
  const auto second = member.server_map();
  EXPECT_NE(second, first) << "another map, though the servers are the same";
  EXPECT_EQ(second->epoch, 2);
  EXPECT_TRUE(lost_.empty());
  member.finish({member.ask({{}, "t", "no map", "MPI_File_write_all", 0}), {}, 0, false});
  EXPECT_EQ(member.server_map(), second) << "what is no map changes nothing";
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_TRUE(member.tell(event::MapAdopted{2}));
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::MapAdopted>(), 1U);
}

TEST_F(MemberTest, WaitsOnceForAControllerThatIsSilent) {
  settings_.answer = from_s(2);
  Controller controller(settings_.socket, true);
  Member member = make();
  const Time start = node_now();
  member.join();
  EXPECT_FALSE(member.ask({}));
  EXPECT_GE(node_now() - start, settings_.answer);
  const Time later = node_now();
  EXPECT_FALSE(member.ask({})) << "the same phase";
  member.phase_begins();
  EXPECT_FALSE(member.ask({})) << "the next phase: WELCOME was all that was ever said";
  EXPECT_LT(node_now() - later, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U);
  member.leave({});
}

TEST_F(MemberTest, AsksAgainInTheNextPhaseOfAControllerThatCameBack) {
  Member member = make();
  member.join();
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_FALSE(member.ask({}));
  Controller controller(settings_.socket);
  EXPECT_FALSE(member.ask({})) << "not within the phase";
  member.phase_begins();
  const RequestId request = member.ask({});
  EXPECT_TRUE(request);
  member.finish({request, {}, 0, false});
  member.leave({});
}

// A thread of the program may wait for a grant when another calls MPI_Finalize.
TEST_F(MemberTest, LeavesThoughAThreadWaits) {
  Controller controller(settings_.socket);
  Member member = make();
  std::thread waits([&] { EXPECT_FALSE(member.ask({{}, "t", "queued", "write", 0}, Use::burst)); });
  controller.await_last<event::StartIo>();
  member.leave({});
  waits.join();
  EXPECT_FALSE(member.ask({})) << "nothing is asked any more";
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 1U) << "the request is withdrawn";
  EXPECT_EQ(controller.count<event::Bye>(), 1U);
  EXPECT_TRUE(lost_.empty());
}

// ---- pauses --------------------------------------------------------------------------------------------------------

class PauseTest : public MemberTest {
 protected:
  // Asks for an operation, which is then told to pause.
  RequestId ask_and_be_told(Member& member, const Controller& controller) {
    member.tell_pauses(wanted_, [this] { ++called_; });
    const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
    EXPECT_TRUE(request);
    EXPECT_FALSE(wanted_);
    controller.say(event::PauseIo{request, "b", "t"});
    await_pause();
    return request;
  }
  // Begins an access of a burst, which is then told to pause.
  Bursts::Begun begin_and_be_told(Bursts& bursts, Member& member, Controller& controller, bool in_one_call) {
    member.tell_pauses(wanted_, [this] { ++called_; });
    const Bursts::Begun begun = begin(bursts, in_one_call);
    controller.say(event::PauseIo{controller.await_last<event::StartIo>().request, "b", "t"});
    await_pause();
    return begun;
  }
  static Bursts::Begun begin(Bursts& bursts, bool in_one_call) {
    return bursts.begin("t", in_one_call, [](event::StartIo& start) { start.file = "f"; });
  }
  void await_pause() const {
    const Time end = node_now() + from_s(10);
    while ((!wanted_ || called_ == 0) && node_now() < end) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ASSERT_TRUE(wanted_) << "nobody heard of the pause";
  }
  static void await_session(const Member& member, Standing standing) {
    const Time end = node_now() + from_s(10);
    while (member.session() != standing && node_now() < end) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ASSERT_EQ(member.session(), standing);
  }

  std::atomic<bool> wanted_ = false;
  std::atomic<int> called_ = 0;
};

TEST_F(PauseTest, IsHeardOfWhileNobodyWaitsAndAnsweredInTheMiddle) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  EXPECT_EQ(called_, 1);
  member.pause(1000, 7);
  EXPECT_FALSE(wanted_);
  EXPECT_EQ(member.standing(request), Standing::granted);
  const auto paused = controller.await_last<event::PausedIo>();
  EXPECT_EQ(paused.request, request);
  EXPECT_EQ(paused.bytes, 1000);
  EXPECT_EQ(paused.round, 7);
  member.pause(2000, 8);  // nothing is to pause
  controller.say(event::PauseIo{request, "b", "t"});
  await_pause();
  member.pause(2000, 8);
  EXPECT_EQ(controller.await_last<event::PausedIo>(2).round, 8) << "again, in the same access";
  member.finish({request, {}, 0, false});
  EXPECT_EQ(member.standing(request), Standing::none);
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::PausedIo>(), 2U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PauseTest, TheEndOfTheAccessIsAnAnswer) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  member.finish({request, {}, 0, false});
  EXPECT_FALSE(wanted_);
  member.pause(0, 0);
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::PausedIo>(), 0U);
  EXPECT_EQ(controller.count<event::FinishIo>(), 1U);
}

TEST_F(PauseTest, GoesOnAtOnceWhereTheControllerHasGone) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::hang_up;
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  const Time start = node_now();
  member.pause(0, 0);
  EXPECT_LT(node_now() - start, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_EQ(member.standing(request), Standing::alone);
  member.finish({request, {}, 0, false});
  member.leave({});
}

TEST_F(PauseTest, GoesOnWhereTheControllerSaysNothing) {
  settings_.answer = from_s(1);
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  const Time start = node_now();
  member.pause(0, 0);
  EXPECT_GE(node_now() - start, settings_.answer);
  EXPECT_LT(node_now() - start, from_s(20));
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_EQ(controller.await_last<event::FinishIo>().request, request) << "the request is given up";
  member.leave({});
}

TEST_F(PauseTest, IsBoundedThoughTheControllerSpeaks) {
  settings_.max_wait = from_s(1);
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  std::atomic<bool> over = false;
  std::thread speaking([&] {
    while (!over) {
      controller.say(event::QueuedIo{request, 1, "b"});
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  });
  const Time start = node_now();
  member.pause(0, 0);
  over = true;
  speaking.join();
  EXPECT_GE(node_now() - start, settings_.max_wait);
  EXPECT_LT(node_now() - start, settings_.answer);
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_NE(lost_.at(0).find("HOCKET_MAX_WAIT_S"), std::string::npos);
  member.leave({});
}

TEST_F(PauseTest, ThreadsAnswerForWhatTheyUseThemselves) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  std::thread([&] { member.pause(1, 1); }).join();
  EXPECT_TRUE(wanted_) << "another thread's access has not stopped";
  member.pause(2, 2);
  EXPECT_EQ(controller.await_last<event::PausedIo>().round, 2);
  member.finish({request, {}, 0, false});
  member.leave({});
}

TEST_F(PauseTest, AnAccessPausesThoughAnotherThreadWaits) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Member member = make();
  const RequestId request = ask_and_be_told(member, controller);
  std::thread waits([&] { EXPECT_TRUE(member.ask({{}, "u", "queued", "write", 0}, Use::burst)); });
  controller.await_last<event::StartIo>(2);
  EXPECT_TRUE(member.pause(1000, 7)) << "and it has its grant again";
  EXPECT_EQ(member.standing(request), Standing::granted);
  controller.grant_queued(1);
  waits.join();
  member.leave({});
}

TEST_F(PauseTest, ABurstPausesThoughThreadsAccessInTurns) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Member member = make();
  Bursts bursts(member, from_s(30));
  const Bursts::Begun first = begin_and_be_told(bursts, member, controller, true);
  std::atomic<bool> begun = false;
  std::thread other([&] {
    const Bursts::Begun second = begin(bursts, true);
    begun = true;
    bursts.end(*second.burst, node_now(), {}, 1, true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_FALSE(begun) << "it waits for the first to end";
  bursts.end(*first.burst, node_now(), {}, 1, true);
  other.join();
  EXPECT_EQ(controller.count<event::PausedIo>(), 1U);
  bursts.finish(true);
  member.leave({});
}

TEST_F(PauseTest, NobodyWaitsForWhatItsOwnThreadHasToEnd) {
  Controller controller(settings_.socket);
  Member member = make();
  Bursts bursts(member, from_s(30));
  const Bursts::Begun first = begin_and_be_told(bursts, member, controller, false);
  EXPECT_FALSE(begin(bursts, false).waited) << "two that go on beside what the program does";
  for (int i = 0; i < 2; ++i) bursts.end(*first.burst, node_now(), {}, 1, false);
  EXPECT_EQ(controller.count<event::PausedIo>(), 0U);
  bursts.finish(true);
  member.leave({});
}

TEST_F(PauseTest, ASessionIsOfferedTakenUpPausedAndResumed) {
  Controller controller(settings_.socket);
  Member member = make();
  EXPECT_EQ(member.session(), Standing::none);
  const RequestId session = member.inform({{}, "t", "queued", "hocket_io_inform", 0});
  ASSERT_TRUE(session);
  EXPECT_EQ(member.session(), Standing::queued);
  EXPECT_EQ(controller.await_last<event::StartIo>().request, session);
  controller.say(event::GrantIo{session, {}, "t"});
  await_session(member, Standing::offered);
  member.take_up(session);
  EXPECT_EQ(member.session(), Standing::granted);
  EXPECT_EQ(controller.await_last<event::RenewIo>().request, session);
  controller.say(event::PauseIo{session, "b", "t"});
  await_session(member, Standing::to_pause);
  member.answer_pause(session);
  EXPECT_EQ(member.session(), Standing::paused);
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, session);
  controller.say(event::GrantIo{session, {}, "t"});
  await_session(member, Standing::offered);
  member.await(session);
  EXPECT_EQ(member.session(), Standing::granted);
  member.finish({session, {}, 0, true});
  EXPECT_EQ(member.session(), Standing::none);
  member.leave({});
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PauseTest, ASessionThatNobodyHasTakenUpPausesByItself) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId session = member.inform({{}, "t", "f", "hocket_io_inform", 0});
  await_session(member, Standing::offered);
  controller.say(event::PauseIo{session, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, session);
  EXPECT_EQ(member.session(), Standing::paused);
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::RenewIo>(), 0U) << "a grant that nobody comes for goes to others";
}

TEST_F(PauseTest, ASessionPausesWhileItsProcessWaitsForAnOperation) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId session = member.inform({{}, "t", "f", "hocket_io_inform", 0});
  member.await(session);
  RequestId operation;
  std::thread asking([&] { operation = member.ask({{}, "t", "queued", "MPI_File_write_all", 0}); });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say(event::PauseIo{session, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, session);
  controller.say(event::GrantIo{session, {}, "t"});
  controller.say(event::GrantIo{asked, {}, "t"});
  asking.join();
  EXPECT_EQ(operation, asked);
  EXPECT_EQ(member.session(), Standing::granted) << "what was in use is in use again";
  member.progress(100);
  member.finish({operation, {}, 100, false});
  member.leave({});
}

TEST_F(PauseTest, ASessionGoesOnByItselfWhereTheControllerIsSilentOrGone) {
  settings_.answer = from_s(0.2);
  Controller controller(settings_.socket);
  Member member = make();
  ASSERT_TRUE(member.inform({{}, "t", "queued", "hocket_io_inform", 0}));
  await_session(member, Standing::alone);
  member.leave({});
  EXPECT_EQ(lost_.size(), 1U) << "said by the thread that has ended now";
  settings_.answer = from_s(5);
  Member other = make();
  ASSERT_TRUE(other.inform({{}, "t", "queued", "hocket_io_inform", 0}));
  controller.stop();
  await_session(other, Standing::alone);
  other.leave({});
}

}  // namespace
}  // namespace hocket::runtime
