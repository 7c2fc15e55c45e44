// Tests a member against a controller in the same process. The main thread and the lease thread send on one connection.
// Built with -DHOCKET_SANITIZE=thread, the tests show that they do so without a race.
#include "session/session.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "session/session_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::Controller;
using testing::eventually;
using testing::SessionTest;

TEST_F(SessionTest, MainAndLeaseThreadSendOnOneConnection) {
  Controller controller(settings_.socket);
  Session session = make();
  session.join();
  const Time end = node_now() + from_s(20);
  std::size_t operations = 0;
  // Repeats until the lease thread has sent too, however slow the machine is.
  while ((operations < 500 || controller.count<event::RenewIo>() < 5) && node_now() < end) {
    const RequestId request = session.ask({{}, "t", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    ++operations;
    // Holds a grant for a while now and then, so that the lease thread renews it.
    if (operations % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{12});
    session.report({});
    session.finish({request, {}, 1, false});
  }
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::StartIo>(), operations);
  EXPECT_EQ(controller.count<event::FinishIo>(), operations);
  EXPECT_EQ(controller.count<event::IoPhase>(), operations);
  EXPECT_GT(controller.count<event::RenewIo>(), 0U);
  EXPECT_EQ(controller.count<event::Bye>(), 1U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(SessionTest, AsksHowLongARequestWouldWait) {
  Controller controller(settings_.socket);
  Session session = make();
  session.join();
  for (int i = 0; i < 2; ++i) {
    const auto answer = session.expected_wait({0, "t", 10});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->ahead, 3);
    EXPECT_EQ(answer->wait, from_s(2));
  }
  EXPECT_EQ(controller.count<event::StartIo>(), 0U) << "nothing is requested";
  session.leave({});
}

TEST_F(SessionTest, TheQuestionIsBoundedAndWorksWithoutHocketd) {
  Session lonely = make();
  EXPECT_FALSE(lonely.expected_wait({0, "t", 10}));
  settings_.answer = from_s(0.2);
  Controller controller(settings_.socket, true);
  Session session = make();
  session.join();
  const Time before = node_now();
  EXPECT_FALSE(session.expected_wait({0, "t", 10}));
  EXPECT_GE(node_now() - before, from_s(0.2));
  session.leave({});
}

TEST_F(SessionTest, ThreadsAskAtOnce) {
  Controller controller(settings_.socket);
  Session session = make();
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        const RequestId request = session.ask({{}, "t", "f", "MPI_File_write_all", 0});
        granted += request ? 1 : 0;
        if (request) session.finish({request, {}, 1, false});
      }
    });
  for (std::thread& thread : threads) thread.join();
  session.leave({});
  controller.stop();
  EXPECT_EQ(granted, 200);
  EXPECT_EQ(controller.count<event::FinishIo>(), 200U);
}

// One of the threads listens. The grants may come in any order.
TEST_F(SessionTest, ThreadsWaitSideBySide) {
  Controller controller(settings_.socket);
  Session session = make();
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        const RequestId request =
            session.ask({{}, "t", (n + i) % 3 == 0 ? "f" : "queued", "write", 0}, RequestPurpose::burst);
        granted += request ? 1 : 0;
        if (request) session.finish({request, {}, 1, false});
      }
    });
  controller.grant_queued(133);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 200);
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 200U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(SessionTest, WhoWaitsKeepsNobodyElseFromAsking) {
  Controller controller(settings_.socket);
  Session session = make();
  RequestId late;
  std::thread waits([&] { late = session.ask({{}, "t", "queued", "write", 0}, RequestPurpose::burst); });
  controller.await_last<event::StartIo>();
  for (int n = 0; n < 20; ++n) {
    const RequestId request = session.ask({{}, "u", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    session.finish({request, {}, 1, false});
  }
  EXPECT_FALSE(late) << "that thread is no nearer to its target";
  controller.grant_queued(1);
  waits.join();
  EXPECT_TRUE(late);
  session.finish({late, {}, 1, false});
  session.leave({});
  EXPECT_TRUE(lost_.empty());
}

// The thread that renews leases sleeps while another one listens.
TEST_F(SessionTest, NobodySpinsWhileAThreadWaits) {
  const auto cpu_s = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  Controller controller(settings_.socket);
  Session session = make();
  const RequestId held = session.ask({{}, "t", "f", "write", 0}, RequestPurpose::burst);
  std::thread waits([&] { EXPECT_TRUE(session.ask({{}, "u", "queued", "write", 0}, RequestPurpose::burst)); });
  controller.await_last<event::StartIo>(2);
  const double before_s = cpu_s();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  EXPECT_LT(cpu_s() - before_s, 0.4);
  controller.grant_queued(1);
  waits.join();
  controller.say(event::PauseIo{held, "b", "t"});  // the keeper listens again
  EXPECT_TRUE(eventually([&] { return session.standing(held) == Standing::to_pause; }));
  session.leave({});
}

// REFUSED does not name a request.
TEST_F(SessionTest, WhatIsRefusedIsWithdrawn) {
  Controller controller(settings_.socket);
  Session session = make();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] { EXPECT_FALSE(session.ask({{}, "t", "queued", "write", 0}, RequestPurpose::burst)); });
  controller.await_last<event::StartIo>(2);
  controller.say(event::Refused{"START_IO: one too many"});
  for (std::thread& thread : threads) thread.join();
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 2U) << "hocketd would keep the target for them";
  EXPECT_EQ(lost_.size(), 1U);
}

TEST_F(SessionTest, AllThatWaitGoOnWhereTheControllerGoes) {
  settings_.answer = from_s(60);
  Controller controller(settings_.socket);
  Session session = make();
  std::vector<std::thread> threads;
  const Time start = node_now();
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { EXPECT_FALSE(session.ask({{}, "t", "queued", "write", 0}, RequestPurpose::burst)); });
  controller.await_last<event::StartIo>(3);
  std::filesystem::remove(settings_.socket);  // a new attempt to connect fails
  controller.stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(node_now() - start, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U) << "said once";
  session.leave({});
}

TEST_F(SessionTest, KeepsTheServerMapThatCameLast) {
  Controller controller(settings_.socket);
  Session session = make();
  const auto none = session.server_map();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, event::ServerMap{});
  session.finish({session.ask({}), {}, 0, false});
  const auto first = session.server_map();
  EXPECT_EQ(*first, (event::ServerMap{1, {{"s1", "/scratch", "unix:/s1"}}}));
  EXPECT_EQ(session.server_map(), first) << "the same pointer while no other has come";
  session.finish({session.ask({}), {}, 0, false});
  const auto second = session.server_map();
  EXPECT_NE(second, first) << "another map, though the servers are the same";
  EXPECT_EQ(second->epoch, 2);
  EXPECT_TRUE(lost_.empty());
  session.finish({session.ask({{}, "t", "no map", "MPI_File_write_all", 0}), {}, 0, false});
  EXPECT_EQ(session.server_map(), second) << "what is no map changes nothing";
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_TRUE(session.tell(event::MapAdopted{2}));
  session.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::MapAdopted>(), 1U);
}

TEST_F(SessionTest, WaitsOnceForAControllerThatIsSilent) {
  settings_.answer = from_s(2);
  Controller controller(settings_.socket, true);
  Session session = make();
  const Time start = node_now();
  session.join();
  EXPECT_FALSE(session.ask({}));
  EXPECT_GE(node_now() - start, settings_.answer);
  const Time later = node_now();
  EXPECT_FALSE(session.ask({})) << "the same phase";
  session.phase_begins();
  EXPECT_FALSE(session.ask({})) << "the next phase: WELCOME was all that was ever said";
  EXPECT_LT(node_now() - later, settings_.answer);
  EXPECT_EQ(lost_.size(), 1U);
  session.leave({});
}

TEST_F(SessionTest, AsksAgainInTheNextPhaseOfAControllerThatCameBack) {
  Session session = make();
  session.join();
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_FALSE(session.ask({}));
  Controller controller(settings_.socket);
  EXPECT_FALSE(session.ask({})) << "not within the phase";
  session.phase_begins();
  const RequestId request = session.ask({});
  EXPECT_TRUE(request);
  session.finish({request, {}, 0, false});
  session.leave({});
}

// A thread of the program may be waiting for a grant when another one calls MPI_Finalize.
TEST_F(SessionTest, LeavesThoughAThreadWaits) {
  Controller controller(settings_.socket);
  Session session = make();
  std::thread waits([&] { EXPECT_FALSE(session.ask({{}, "t", "queued", "write", 0}, RequestPurpose::burst)); });
  controller.await_last<event::StartIo>();
  session.leave({});
  waits.join();
  EXPECT_FALSE(session.ask({})) << "nothing is asked any more";
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 1U) << "the request is withdrawn";
  EXPECT_EQ(controller.count<event::Bye>(), 1U);
  EXPECT_TRUE(lost_.empty());
}

}  // namespace
}  // namespace hocket::runtime
