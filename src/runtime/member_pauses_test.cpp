// Tests how a member pauses (CALCioM, section III-A): its operations, its bursts and its session.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/bursts.hpp"
#include "runtime/member.hpp"
#include "runtime/member_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::Controller;
using testing::eventually;
using testing::MemberTest;

class PauseTest : public MemberTest {
 protected:
  // Asks for an operation, and then sends PAUSE_IO for it.
  RequestId ask_and_be_told(Member& member, const Controller& controller) {
    member.tell_pauses(wanted_, [this] { ++called_; });
    const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
    EXPECT_TRUE(request);
    EXPECT_FALSE(wanted_);
    controller.say(event::PauseIo{request, "b", "t"});
    await_pause();
    return request;
  }
  // Begins an access of a burst, and then sends PAUSE_IO for it.
  Bursts::Begun begin_and_be_told(Bursts& bursts, Member& member, Controller& controller, bool in_one_call) {
    member.tell_pauses(wanted_, [this] { ++called_; });
    const Bursts::Begun begun = begin(bursts, in_one_call);
    controller.say(event::PauseIo{controller.await_last<event::StartIo>().request, "b", "t"});
    await_pause();
    return begun;
  }
  static Bursts::Begun begin(Bursts& bursts, bool in_one_call) {
    return bursts.begin(bursts.of("t"), in_one_call, [](event::StartIo& start) { start.file = "f"; });
  }
  void await_pause() const {
    ASSERT_TRUE(eventually([&] { return wanted_ && called_ > 0; })) << "nobody heard of the pause";
  }
  // Starts a session and takes up its grant.
  static RequestId begin_step(Member& member) {
    const RequestId session = member.inform({{}, "t", "f", "hocket_io_inform", 0});
    member.await(session);
    return session;
  }
  static void await_session(const Member& member, Standing standing) {
    eventually([&] { return member.session() == standing; });
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
  settings_.answer = from_s(3);
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
  settings_.max_wait = from_s(3);
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
  EXPECT_EQ(controller.taken<event::PausedIo>(), 1U);
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
  EXPECT_EQ(controller.taken<event::PausedIo>(), 0U);
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
  const RequestId session = begin_step(member);
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

// The thread that answered for the session waits for it, whatever happens to requests of other threads.
TEST_F(PauseTest, ASessionIsAwaitedByTheThreadThatSteppedAside) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId session = begin_step(member);
  std::atomic<bool> back = false;
  std::thread waits([&] {
    EXPECT_TRUE(member.ask({{}, "u", "queued", "MPI_File_write_all", 0}));
    back = true;
  });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say(event::PauseIo{session, "b", "t"});
  controller.await_last<event::PausedIo>();
  std::thread other([&] { EXPECT_FALSE(member.ask({{}, "v", "queued", "MPI_File_write_all", 0})); });
  controller.say(event::LeaseExpired{controller.await_last<event::StartIo>(3).request, {}, {}});
  other.join();
  controller.say(event::GrantIo{asked, {}, "u"});
  EXPECT_TRUE(eventually([&] { return member.standing(asked) == Standing::granted; }));
  EXPECT_FALSE(back) << "the session has not been granted again";
  controller.say(event::GrantIo{session, {}, "t"});
  waits.join();
  EXPECT_EQ(member.session(), Standing::granted);
  member.leave({});
}

TEST_F(PauseTest, ASessionThatSteppedAsideForAnAccessThatPausesIsAwaited) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId session = begin_step(member);
  const RequestId operation = ask_and_be_told(member, controller);
  std::atomic<bool> back = false;
  std::thread pauses([&] {
    member.await(operation);
    back = true;
  });
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, operation);
  controller.say(event::PauseIo{session, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>(2).request, session);
  controller.say(event::GrantIo{operation, {}, "t"});
  EXPECT_TRUE(eventually([&] { return member.standing(operation) == Standing::granted; }));
  EXPECT_FALSE(back) << "the session has not been granted again";
  controller.say(event::GrantIo{session, {}, "t"});
  pauses.join();
  EXPECT_EQ(member.session(), Standing::granted);
  member.leave({});
}

// Messages that come together are handled together: a thread gets its grant even if the next PAUSE_IO follows it.
TEST_F(PauseTest, AGrantIsTakenThoughItIsToPauseAgainAtOnce) {
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId session = begin_step(member);
  RequestId operation;
  std::thread asking([&] { operation = member.ask({{}, "t", "queued", "MPI_File_write_all", 0}); });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say_at_once(
      {event::GrantIo{asked, {}, "t"}, event::PauseIo{session, "b", "t"}, event::PauseIo{asked, "b", "t"}});
  asking.join();
  EXPECT_EQ(operation, asked);
  EXPECT_EQ(member.standing(asked), Standing::to_pause) << "in its first round";
  member.finish({operation, {}, 100, false});
  EXPECT_EQ(member.session(), Standing::to_pause);
  std::atomic<bool> over = false;
  std::thread awaiting([&] {
    member.await(session);
    over = true;
  });
  const Time end = node_now() + from_s(10);
  while (!over && node_now() < end) {  // has no effect before the thread waits
    controller.say_at_once({event::GrantIo{session, {}, "t"}, event::PauseIo{session, "b", "t"}});
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_TRUE(over) << "it never got on";
  controller.say(event::GrantIo{session, {}, "t"});
  awaiting.join();
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
