// Tests delegations against a controller in the same process: requests begin without a message, and go back in order.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/batches.hpp"
#include "session/bursts.hpp"
#include "session/session.hpp"
#include "session/session_testing.hpp"
#include "session/system_calls_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::Controller;
using testing::eventually;

class SessionDelegationsTest : public testing::SessionTest {
 protected:
  static event::StartIo start_of(const std::string& file = "f", const std::string& target = "t") {
    return {{}, target, file, "MPI_File_write_all", 10};
  }
  // Has target "t" delegated to the session by request 1.
  static void delegate(Session& session) {
    session.join();
    const RequestId request = session.ask(start_of("delegated"));
    ASSERT_EQ(request.value, 1U);
    session.finish({request, {}, 1, false});
  }
};

TEST_F(SessionDelegationsTest, RequestsBeginWithoutAMessageAndComeInABatch) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  for (int i = 0; i < 20; ++i) {
    const RequestId request = session.ask(start_of());
    ASSERT_TRUE(request);
    EXPECT_EQ(session.standing(request), Standing::granted);
    session.finish({request, from_s(0.001), 5, false});
  }
  const auto last = controller.await_last<event::StartIo>(21);
  EXPECT_EQ(last.request.value, 21U);
  EXPECT_EQ(last.delegation.value, 1U);
  EXPECT_GT(last.ago, Duration{});
  EXPECT_LT(last.ago, from_s(10));
  const auto finish = controller.await_last<event::FinishIo>(21);
  EXPECT_EQ(finish.bytes, 5);
  EXPECT_LE(finish.ago, last.ago) << "it happened later";
  EXPECT_EQ(controller.count<event::RenewIo>(), 0U) << "there is no lease";
  session.leave({});
  EXPECT_TRUE(lost_.empty());
}

TEST_F(SessionDelegationsTest, ABatchHasABound) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  const Time begin = node_now();
  for (std::size_t i = 0; i < 2 * most_in_batch; ++i) session.finish({session.ask(start_of()), {}, 1, false});
  controller.await_last<event::FinishIo>(most_in_batch);
  EXPECT_LT(node_now() - begin, from_s(10));
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 2 * most_in_batch + 1) << "the rest goes before BYE";
}

TEST_F(SessionDelegationsTest, OtherTargetsAreAskedFor) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  session.finish({session.ask(start_of("f", "other")), {}, 1, false});
  EXPECT_EQ(controller.await_last<event::StartIo>(2).delegation.value, 0U);
  session.leave({});
}

TEST_F(SessionDelegationsTest, ARecallIsAnsweredWhileTheProgramComputes) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  controller.say(event::RecallIo{RequestId{1}, "b", "t"});
  EXPECT_EQ(controller.await_last<event::ReturnIo>().request.value, 1U);
  session.finish({session.ask(start_of()), {}, 1, false});
  EXPECT_EQ(controller.await_last<event::StartIo>(2).delegation.value, 0U) << "it asks again";
  session.leave({});
}

TEST_F(SessionDelegationsTest, WhatIsUnderWayIsToldFirstAndPauses) {
  Controller controller(settings_.socket);
  controller.at_pause = Controller::AtPause::grant;
  Session session = make();
  std::atomic<bool> wanted = false;
  session.tell_pauses(wanted, [] {});
  delegate(session);
  const RequestId request = session.ask(start_of());
  session.progress(7);
  controller.say(event::RecallIo{RequestId{1}, "b", "t"});
  controller.await_last<event::ReturnIo>();
  EXPECT_EQ(controller.count<event::StartIo>(), 2U) << "before the answer";
  EXPECT_EQ(controller.await_last<event::RenewIo>(2).bytes, 7) << "at once, and then with its lease";
  controller.say(event::PauseIo{request, "b", "t"});
  ASSERT_TRUE(eventually([&] { return wanted.load(); }));
  EXPECT_TRUE(session.pause(9, 3));
  EXPECT_EQ(controller.await_last<event::PausedIo>().bytes, 9);
  session.finish({request, {}, 1, false});
  EXPECT_EQ(controller.await_last<event::FinishIo>(2).ago, Duration{}) << "at once, as any other";
  session.leave({});
}

TEST_F(SessionDelegationsTest, AStepIsOfferedAtOnceAndNotRenewedBeforeItIsTakenUp) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  const RequestId request = session.inform(start_of());
  EXPECT_EQ(session.step_standing(), Standing::offered);
  controller.say(event::RecallIo{RequestId{1}, "b", "t"});
  controller.await_last<event::ReturnIo>();
  EXPECT_EQ(controller.count<event::StartIo>(), 2U);
  std::this_thread::sleep_for(std::chrono::milliseconds{30});  // twice the lease
  EXPECT_EQ(controller.count<event::RenewIo>(), 0U);
  session.take_up(request);
  controller.await_last<event::RenewIo>(2);
  session.finish({request, {}, 1, false});
  session.leave({});
}

TEST_F(SessionDelegationsTest, AnExpiredLeaseEndsWhatWasBegun) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  const RequestId request = session.ask(start_of());
  controller.say(event::LeaseExpired{RequestId{1}, "a", "t"});
  ASSERT_TRUE(eventually([&] { return session.standing(request) == Standing::expired; }));
  session.finish({request, {}, 1, false});
  session.finish({session.ask(start_of()), {}, 1, false});
  EXPECT_EQ(controller.await_last<event::StartIo>(2).delegation.value, 0U);
  session.leave({});
}

TEST_F(SessionDelegationsTest, WithTheConnectionADelegationEnds) {
  settings_.answer = from_s(1);
  auto controller = std::make_unique<Controller>(settings_.socket);
  Session session = make();
  delegate(session);
  const RequestId request = session.ask(start_of());
  controller.reset();
  ASSERT_TRUE(eventually([&] { return !session.connected(); }));
  EXPECT_EQ(session.standing(request), Standing::granted) << "the access goes on";
  session.finish({request, {}, 1, false});
  EXPECT_FALSE(session.ask(start_of())) << "uncoordinated";
  EXPECT_EQ(lost_.size(), 1U);
  session.leave({});
}

// Threads access all the time, and the delegation is recalled and given again. No request begins under one that was
// returned, and the numbers of requests rise.
TEST_F(SessionDelegationsTest, NothingBeginsUnderADelegationThatWasReturned) {
  std::vector<event::Body> taken;
  {
    Controller controller(settings_.socket);
    Session session = make();
    session.join();
    std::atomic<bool> ends = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!ends) {
          session.finish({session.ask(start_of("delegated")), {}, 1, false});
          std::this_thread::sleep_for(std::chrono::microseconds{20});
        }
      });
    }
    std::set<std::uint64_t> recalled;  // requests that were granted by a message, each with a delegation
    for (const Time end = node_now() + from_s(20); recalled.size() < 30 && node_now() < end;) {
      std::this_thread::sleep_for(std::chrono::microseconds{300});
      for (const event::StartIo& start : controller.all<event::StartIo>())
        if (!start.delegation && recalled.insert(start.request.value).second)
          controller.say(event::RecallIo{start.request, "b", "t"});
    }
    ends = true;
    for (std::thread& thread : threads) thread.join();
    session.leave({});
    controller.stop();
    taken = controller.everything();
    EXPECT_TRUE(lost_.empty());
  }
  std::uint64_t last = 0;
  std::set<std::uint64_t> returned;
  std::size_t begun = 0;
  for (const event::Body& body : taken) {
    if (const auto* back = std::get_if<event::ReturnIo>(&body)) returned.insert(back->request.value);
    const auto* start = std::get_if<event::StartIo>(&body);
    if (start == nullptr) continue;
    EXPECT_GT(start->request.value, std::exchange(last, start->request.value));
    if (!start->delegation) continue;
    ++begun;
    EXPECT_FALSE(returned.contains(start->delegation.value)) << "request " << start->request.value;
  }
  EXPECT_GT(begun, 100U);
  EXPECT_GT(returned.size(), 10U);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_F(SessionDelegationsTest, AnIndependentAccessMakesNoSystemCall) {
  Controller controller(settings_.socket);
  Session session = make();
  delegate(session);
  Bursts bursts(session, from_s(10));
  Bursts::Burst& burst = bursts.of("t");
  bool counts = false;
  int calls = 0;
  std::thread thread([&] {
    const auto access = [&] {
      const auto begun = bursts.begin(burst, true, [](event::StartIo& start) { start.file = "f"; });
      EXPECT_TRUE(begun.granted);
      bursts.end(burst, node_now(), Duration{1'000}, 10, true);
    };
    for (int i = 0; i < 100; ++i) access();  // takes memory
    counts = testing::SystemCalls::begin_to_count();
    const int before = testing::SystemCalls::count();
    for (int i = 0; i < 100'000; ++i) access();
    calls = testing::SystemCalls::count() - before;
    getppid();
    EXPECT_EQ(testing::SystemCalls::count() - before, calls + 1) << "what counts, counts";
  });
  thread.join();
  if (!counts) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(calls, 0);
  session.leave({});
}
#endif

}  // namespace
}  // namespace hocket::runtime
