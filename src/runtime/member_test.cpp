// Tests a member against a controller in the same process. The main thread and the lease thread send on one connection.
// Built with -DHOCKET_SANITIZE=thread, the tests show that they do so without a race.
#include "runtime/member.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/member_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::Controller;
using testing::eventually;
using testing::MemberTest;

TEST_F(MemberTest, MainAndLeaseThreadSendOnOneConnection) {
  Controller controller(settings_.socket);
  Member member = make();
  member.join();
  const Time end = node_now() + from_s(20);
  std::size_t operations = 0;
  // Repeats until the lease thread has sent too, however slow the machine is.
  while ((operations < 500 || controller.taken<event::RenewIo>() < 5) && node_now() < end) {
    const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    ++operations;
    // Holds a grant for a while now and then, so that the lease thread renews it.
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

// One of the threads listens. The grants may come in any order.
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

// The thread that renews leases sleeps while another one listens.
TEST_F(MemberTest, NobodySpinsWhileAThreadWaits) {
  const auto cpu_s = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  Controller controller(settings_.socket);
  Member member = make();
  const RequestId held = member.ask({{}, "t", "f", "write", 0}, Use::burst);
  std::thread waits([&] { EXPECT_TRUE(member.ask({{}, "u", "queued", "write", 0}, Use::burst)); });
  controller.await_last<event::StartIo>(2);
  const double before_s = cpu_s();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  EXPECT_LT(cpu_s() - before_s, 0.4);
  controller.grant_queued(1);
  waits.join();
  controller.say(event::PauseIo{held, "b", "t"});  // the keeper listens again
  EXPECT_TRUE(eventually([&] { return member.standing(held) == Standing::to_pause; }));
  member.leave({});
}

// REFUSED does not name a request.
TEST_F(MemberTest, WhatIsRefusedIsWithdrawn) {
  Controller controller(settings_.socket);
  Member member = make();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] { EXPECT_FALSE(member.ask({{}, "t", "queued", "write", 0}, Use::burst)); });
  controller.await_last<event::StartIo>(2);
  controller.say(event::Refused{"START_IO: one too many"});
  for (std::thread& thread : threads) thread.join();
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::FinishIo>(), 2U) << "hocketd would keep the target for them";
  EXPECT_EQ(lost_.size(), 1U);
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
  std::filesystem::remove(settings_.socket);  // a new attempt to connect fails
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

// A thread of the program may be waiting for a grant when another one calls MPI_Finalize.
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

}  // namespace
}  // namespace hocket::runtime
