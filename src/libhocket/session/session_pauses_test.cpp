// Tests how a member pauses (CALCioM, section III-A): its operations, its bursts and its step.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "session/bursts.hpp"
#include "session/session.hpp"
#include "session/session_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::Controller;
using testing::eventually;
using testing::SessionTest;

class PauseTest : public SessionTest {
 protected:
  // Asks for an operation, and then sends PAUSE_IO for it.
  RequestId ask_and_be_told(Session& session, Controller& controller) {
    session.tell_pauses(wanted_, [this] { ++called_; });
    const RequestId request = session.ask({{}, "t", "f", "MPI_File_write_all", 0});
    EXPECT_TRUE(request);
    EXPECT_FALSE(wanted_);
    controller.say(event::PauseIo{request, "b", "t"});
    await_pause();
    return request;
  }
  // Begins an access of a burst, and then sends PAUSE_IO for it.
  Bursts::BurstAccess begin_and_be_told(Bursts& bursts, Session& session, Controller& controller, bool in_one_call) {
    session.tell_pauses(wanted_, [this] { ++called_; });
    const Bursts::BurstAccess begun = begin(bursts, in_one_call);
    controller.say(event::PauseIo{controller.await_last<event::StartIo>().request, "b", "t"});
    await_pause();
    return begun;
  }
  static Bursts::BurstAccess begin(Bursts& bursts, bool in_one_call) {
    return bursts.begin(bursts.of("t"), in_one_call, [](event::StartIo& start) { start.file = "f"; });
  }
  void await_pause() const {
    ASSERT_TRUE(eventually([&] { return wanted_ && called_ > 0; })) << "nobody heard of the pause";
  }
  // Starts a step and takes up its grant.
  static RequestId begin_step(Session& session) {
    const RequestId step = session.inform({{}, "t", "f", "hocket_io_inform", 0});
    session.await(step);
    return step;
  }
  static void await_step(const Session& session, Standing standing) {
    eventually([&] { return session.step_standing() == standing; });
    ASSERT_EQ(session.step_standing(), standing);
  }

  std::atomic<bool> wanted_ = false;
  std::atomic<int> called_ = 0;
};

TEST_F(PauseTest, IsHeardOfWhileNobodyWaitsAndAnsweredInTheMiddle) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  EXPECT_EQ(called_, 1);
  EXPECT_TRUE(session.asked_to_pause(request));
  session.pause(1000, 7);
  EXPECT_FALSE(wanted_);
  EXPECT_FALSE(session.asked_to_pause(request)) << "it has answered";
  EXPECT_EQ(session.standing(request), Standing::granted);
  const auto paused = controller.await_last<event::PausedIo>();
  EXPECT_EQ(paused.request, request);
  EXPECT_EQ(paused.bytes, 1000);
  EXPECT_EQ(paused.round, 7);
  session.pause(2000, 8);  // nothing is to pause
  controller.say(event::PauseIo{request, "b", "t"});
  await_pause();
  session.pause(2000, 8);
  EXPECT_EQ(controller.await_last<event::PausedIo>(2).round, 8) << "again, in the same access";
  session.finish({request, {}, 0, false});
  EXPECT_EQ(session.standing(request), Standing::none);
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::PausedIo>(), 2U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PauseTest, TheEndOfTheAccessIsAnAnswer) {
  Controller controller(settings_.socket);
  Session session = make();
  const Time before = node_now();
  const RequestId request = ask_and_be_told(session, controller);
  const std::optional<Time> asked = session.asked_to_pause(request);
  ASSERT_TRUE(asked);
  EXPECT_TRUE(before <= *asked && *asked <= node_now());
  session.finish({request, {}, 0, false});
  EXPECT_FALSE(wanted_);
  session.pause(0, 0);
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::PausedIo>(), 0U);
  EXPECT_EQ(controller.count<event::FinishIo>(), 1U);
}

TEST_F(PauseTest, GoesOnAtOnceWhereTheControllerHasGone) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::hang_up;
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  const Time start = node_now();
  session.pause(0, 0);
  EXPECT_LT(node_now() - start, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_EQ(session.standing(request), Standing::alone);
  session.finish({request, {}, 0, false});
  session.leave({});
}

TEST_F(PauseTest, GoesOnWhereTheControllerSaysNothing) {
  settings_.answer = from_s(3);
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  const Time start = node_now();
  session.pause(0, 0);
  EXPECT_GE(node_now() - start, settings_.answer);
  EXPECT_LT(node_now() - start, from_s(20));
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_EQ(controller.await_last<event::FinishIo>().request, request) << "the request is given up";
  session.leave({});
}

TEST_F(PauseTest, IsBoundedThoughTheControllerSpeaks) {
  settings_.max_wait = from_s(3);
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  std::atomic<bool> over = false;
  std::thread speaking([&] {
    while (!over) {
      controller.say(event::QueuedIo{request, 1, "b"});
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  });
  const Time start = node_now();
  session.pause(0, 0);
  over = true;
  speaking.join();
  EXPECT_GE(node_now() - start, settings_.max_wait);
  EXPECT_LT(node_now() - start, settings_.answer);
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_NE(lost_.at(0).find("HOCKET_MAX_WAIT_S"), std::string::npos);
  session.leave({});
}

TEST_F(PauseTest, ThreadsAnswerForWhatTheyUseThemselves) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  std::thread([&] { session.pause(1, 1); }).join();
  EXPECT_TRUE(wanted_) << "another thread's access has not stopped";
  session.pause(2, 2);
  EXPECT_EQ(controller.await_last<event::PausedIo>().round, 2);
  session.finish({request, {}, 0, false});
  session.leave({});
}

TEST_F(PauseTest, AnAccessPausesThoughAnotherThreadWaits) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Session session = make();
  const RequestId request = ask_and_be_told(session, controller);
  std::thread waits([&] { EXPECT_TRUE(session.ask({{}, "u", "queued", "write", 0}, RequestPurpose::burst)); });
  controller.await_last<event::StartIo>(2);
  EXPECT_TRUE(session.pause(1000, 7)) << "and it has its grant again";
  EXPECT_EQ(session.standing(request), Standing::granted);
  controller.grant_queued(1);
  waits.join();
  session.leave({});
}

TEST_F(PauseTest, ABurstPausesThoughThreadsAccessInTurns) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Session session = make();
  Bursts bursts(session, from_s(30));
  const Bursts::BurstAccess first = begin_and_be_told(bursts, session, controller, true);
  std::atomic<bool> begun = false;
  std::thread other([&] {
    const Bursts::BurstAccess second = begin(bursts, true);
    begun = true;
    bursts.end(*second.burst, node_now(), {}, 1, true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_FALSE(begun) << "it waits for the first to end";
  bursts.end(*first.burst, node_now(), {}, 1, true);
  other.join();
  EXPECT_EQ(controller.count<event::PausedIo>(), 1U);
  bursts.finish(true);
  session.leave({});
}

TEST_F(PauseTest, NobodyWaitsForWhatItsOwnThreadHasToEnd) {
  Controller controller(settings_.socket);
  Session session = make();
  Bursts bursts(session, from_s(30));
  const Bursts::BurstAccess first = begin_and_be_told(bursts, session, controller, false);
  EXPECT_FALSE(begin(bursts, false).waited) << "two that go on beside what the program does";
  for (int i = 0; i < 2; ++i) bursts.end(*first.burst, node_now(), {}, 1, false);
  EXPECT_EQ(controller.count<event::PausedIo>(), 0U);
  bursts.finish(true);
  session.leave({});
}

TEST_F(PauseTest, AStepIsOfferedTakenUpPausedAndResumed) {
  Controller controller(settings_.socket);
  Session session = make();
  EXPECT_EQ(session.step_standing(), Standing::none);
  const RequestId step = session.inform({{}, "t", "queued", "hocket_io_inform", 0});
  ASSERT_TRUE(step);
  EXPECT_EQ(session.step_standing(), Standing::queued);
  EXPECT_EQ(controller.await_last<event::StartIo>().request, step);
  controller.say(event::GrantIo{step, {}, "t"});
  await_step(session, Standing::offered);
  session.take_up(step);
  EXPECT_EQ(session.step_standing(), Standing::granted);
  EXPECT_EQ(controller.await_last<event::RenewIo>().request, step);
  controller.say(event::PauseIo{step, "b", "t"});
  await_step(session, Standing::to_pause);
  session.answer_pause(step);
  EXPECT_EQ(session.step_standing(), Standing::paused);
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, step);
  controller.say(event::GrantIo{step, {}, "t"});
  await_step(session, Standing::offered);
  session.await(step);
  EXPECT_EQ(session.step_standing(), Standing::granted);
  session.finish({step, {}, 0, true});
  EXPECT_EQ(session.step_standing(), Standing::none);
  session.leave({});
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PauseTest, AStepThatNobodyHasTakenUpPausesByItself) {
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId step = session.inform({{}, "t", "f", "hocket_io_inform", 0});
  await_step(session, Standing::offered);
  controller.say(event::PauseIo{step, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, step);
  EXPECT_EQ(session.step_standing(), Standing::paused);
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::RenewIo>(), 0U) << "a grant that nobody comes for goes to others";
}

TEST_F(PauseTest, AStepPausesWhileItsProcessWaitsForAnOperation) {
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId step = begin_step(session);
  RequestId operation;
  std::thread asking([&] { operation = session.ask({{}, "t", "queued", "MPI_File_write_all", 0}); });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say(event::PauseIo{step, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, step);
  controller.say(event::GrantIo{step, {}, "t"});
  controller.say(event::GrantIo{asked, {}, "t"});
  asking.join();
  EXPECT_EQ(operation, asked);
  EXPECT_EQ(session.step_standing(), Standing::granted) << "what was in use is in use again";
  session.progress(100);
  session.finish({operation, {}, 100, false});
  session.leave({});
}

// The thread that answered for the step waits for it, whatever happens to requests of other threads.
TEST_F(PauseTest, AStepIsAwaitedByTheThreadThatSteppedAside) {
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId step = begin_step(session);
  std::atomic<bool> back = false;
  std::thread waits([&] {
    EXPECT_TRUE(session.ask({{}, "u", "queued", "MPI_File_write_all", 0}));
    back = true;
  });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say(event::PauseIo{step, "b", "t"});
  controller.await_last<event::PausedIo>();
  std::thread other([&] { EXPECT_FALSE(session.ask({{}, "v", "queued", "MPI_File_write_all", 0})); });
  controller.say(event::LeaseExpired{controller.await_last<event::StartIo>(3).request, {}, {}});
  other.join();
  controller.say(event::GrantIo{asked, {}, "u"});
  EXPECT_TRUE(eventually([&] { return session.standing(asked) == Standing::granted; }));
  EXPECT_FALSE(back) << "the step has not been granted again";
  controller.say(event::GrantIo{step, {}, "t"});
  waits.join();
  EXPECT_EQ(session.step_standing(), Standing::granted);
  session.leave({});
}

TEST_F(PauseTest, AStepThatSteppedAsideForAnAccessThatPausesIsAwaited) {
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId step = begin_step(session);
  const RequestId operation = ask_and_be_told(session, controller);
  std::atomic<bool> back = false;
  std::thread pauses([&] {
    session.await(operation);
    back = true;
  });
  EXPECT_EQ(controller.await_last<event::PausedIo>().request, operation);
  controller.say(event::PauseIo{step, "b", "t"});
  EXPECT_EQ(controller.await_last<event::PausedIo>(2).request, step);
  controller.say(event::GrantIo{operation, {}, "t"});
  EXPECT_TRUE(eventually([&] { return session.standing(operation) == Standing::granted; }));
  EXPECT_FALSE(back) << "the step has not been granted again";
  controller.say(event::GrantIo{step, {}, "t"});
  pauses.join();
  EXPECT_EQ(session.step_standing(), Standing::granted);
  session.leave({});
}

// Messages that come together are handled together: a thread gets its grant even if the next PAUSE_IO follows it.
TEST_F(PauseTest, AGrantIsTakenThoughItIsToPauseAgainAtOnce) {
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId step = begin_step(session);
  RequestId operation;
  std::thread asking([&] { operation = session.ask({{}, "t", "queued", "MPI_File_write_all", 0}); });
  const RequestId asked = controller.await_last<event::StartIo>(2).request;
  controller.say_at_once(
      {event::GrantIo{asked, {}, "t"}, event::PauseIo{step, "b", "t"}, event::PauseIo{asked, "b", "t"}});
  asking.join();
  EXPECT_EQ(operation, asked);
  EXPECT_EQ(session.standing(asked), Standing::to_pause) << "in its first round";
  session.finish({operation, {}, 100, false});
  EXPECT_EQ(session.step_standing(), Standing::to_pause);
  std::atomic<bool> over = false;
  std::thread awaiting([&] {
    session.await(step);
    over = true;
  });
  const Time end = node_now() + from_s(10);
  while (!over && node_now() < end) {  // has no effect before the thread waits
    controller.say_at_once({event::GrantIo{step, {}, "t"}, event::PauseIo{step, "b", "t"}});
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_TRUE(over) << "it never got on";
  controller.say(event::GrantIo{step, {}, "t"});
  awaiting.join();
  session.leave({});
}

TEST_F(PauseTest, AStepGoesOnByItselfWhereTheControllerIsSilentOrGone) {
  settings_.answer = from_s(0.2);
  Controller controller(settings_.socket);
  Session session = make();
  ASSERT_TRUE(session.inform({{}, "t", "queued", "hocket_io_inform", 0}));
  await_step(session, Standing::alone);
  session.leave({});
  EXPECT_EQ(lost_.size(), 1U) << "said by the thread that has ended now";
  settings_.answer = from_s(5);
  Session other = make();
  ASSERT_TRUE(other.inform({{}, "t", "queued", "hocket_io_inform", 0}));
  controller.stop();
  await_step(other, Standing::alone);
  other.leave({});
}

}  // namespace
}  // namespace hocket::runtime
