#include "forward/storage_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hocket::forward {
namespace {

using request_scheduler::IoRequest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kib = 1 << 10;

using QueuePtr = std::unique_ptr<StorageQueue>;

QueuePtr queue_of(const std::string& scheduler, int slots) {
  auto made = StorageQueue::create({.scheduler = {scheduler}, .forwarded = slots, .collective = slots});
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// An access of its own file, so that it conflicts with no other.
IoRequest access_of(std::uint64_t application, std::int64_t bytes, std::uint64_t ticket = 0) {
  IoRequest request;
  request.ticket = ticket;
  request.file = ticket;
  request.writes = true;
  request.extents.push_back({0, bytes});
  request.application = application;
  request.arrival = node_now();
  return request;
}

TEST(StorageQueue, GivesCallsAndBatchesTheSlotsTogether) {
  const QueuePtr queue = queue_of("wfq", 2);
  ASSERT_TRUE(queue->orders_batches());
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) ASSERT_TRUE(queue->add(access_of(1, 4 * kib, ticket)));
  const auto first = queue->take();
  const auto second = queue->take();
  ASSERT_TRUE(first.batch && second.batch);
  const std::uint64_t offer = queue->offer(access_of(2, 4 * kib));
  EXPECT_THAT(queue->granted().tickets, IsEmpty()) << "both slots are taken";
  EXPECT_FALSE(queue->take().batch);
  queue->done(first.batch->number);
  EXPECT_THAT(queue->granted().tickets, ElementsAre(offer)) << "application 2 has had nothing";
  EXPECT_FALSE(queue->take().batch);
  queue->ended(offer);
  EXPECT_TRUE(queue->take().batch);
}

TEST(StorageQueue, UnderFifoCallsAloneHaveTheSlots) {
  const QueuePtr queue = queue_of("fifo", 1);
  EXPECT_FALSE(queue->orders_batches());
  queue->add(access_of(1, kib, 1));
  queue->add(access_of(1, kib, 2));
  const auto first = queue->take();
  ASSERT_TRUE(first.batch);
  EXPECT_FALSE(queue->take().batch);
  queue->done(first.batch->number);
  EXPECT_TRUE(queue->take().batch);
}

TEST(StorageQueue, WakesWhoHasSomethingToDo) {
  const QueuePtr queue = queue_of("wfq", 1);
  int engine = 0, forwarding = 0;
  queue->wake_engine_with([&] { ++engine; });
  queue->wake_forwarding_with([&] { ++forwarding; });
  const std::uint64_t offer = queue->offer(access_of(2, kib));
  ASSERT_THAT(queue->granted().tickets, ElementsAre(offer));
  queue->add(access_of(1, kib, 1));
  EXPECT_FALSE(queue->take().batch);
  EXPECT_EQ(forwarding, 0);
  queue->ended(offer);
  EXPECT_EQ(forwarding, 1) << "the slot is free for the call";
  const auto call = queue->take();
  ASSERT_TRUE(call.batch);
  queue->offer(access_of(2, kib));
  EXPECT_THAT(queue->granted().tickets, IsEmpty());
  EXPECT_EQ(engine, 0);
  queue->done(call.batch->number);
  EXPECT_EQ(engine, 1) << "the slot is the batch's";
  queue->wake_engine_with({});
  queue->wake_forwarding_with({});
}

TEST(StorageQueue, WakesTheEngineWhenAnOfferHasToWaitForATime) {
  Time now = node_now();
  auto made = StorageQueue::create(
      {.scheduler = {"twins", 2, kib}, .forwarded = 2, .collective = 2, .clock = [&now] { return now; }});
  ASSERT_TRUE(made.ok());
  const QueuePtr queue = std::move(made).value();
  queue->add(access_of(1, kib, 1));  // all files begin at the first data server
  auto first = queue->take();
  for (int i = 0; i < 100 && !first.batch; ++i) {
    now += std::chrono::milliseconds{1};  // until the window of that server
    first = queue->take();
  }
  ASSERT_TRUE(first.batch);
  queue->done(first.batch->number);
  int engine = 0;
  queue->wake_engine_with([&] { ++engine; });
  queue->add(access_of(1, kib, 2));
  IoRequest other = access_of(2, kib);
  other.extents.begin()->at = kib;
  ASSERT_NE(queue->offer(std::move(other)), 0U);
  EXPECT_TRUE(queue->take().batch);
  EXPECT_EQ(engine, 1) << "a slot is free, and its window comes";
  EXPECT_TRUE(queue->granted().again);
  queue->wake_engine_with({});
}

TEST(StorageQueue, OffersThatAreTakenBackHaveNoSlot) {
  const QueuePtr queue = queue_of("job-fair", 1);
  const std::vector<std::uint64_t> offers{queue->offer(access_of(1, kib)), queue->offer(access_of(1, kib))};
  queue->add(access_of(2, kib, 1));
  const auto taken = queue->take();  // perhaps a batch has been granted instead
  queue->withdraw(offers);
  EXPECT_THAT(queue->granted().tickets, IsEmpty());
  const auto call = taken.batch ? taken : queue->take();
  ASSERT_TRUE(call.batch) << "nothing else needs the slot";
  EXPECT_FALSE(queue->take().batch);
  queue->done(call.batch->number);
  queue->add(access_of(2, kib, 2));
  EXPECT_TRUE(queue->take().batch);
}

TEST(StorageQueue, CountsBothKindsForEachApplication) {
  const QueuePtr queue = queue_of("job-fair", 4);
  ForwardClients& clients = queue->clients();
  const auto* const client = clients.add(getpid());
  const std::uint64_t application = clients.of(client).application;
  queue->add(access_of(application, 3 * kib, 1));
  ASSERT_TRUE(queue->take().batch);
  const StorageQueue::BatchShare share{application, 2, 5 * kib, Duration{0}};
  queue->count({&share, 1});
  EXPECT_EQ(queue->shares().substr(0, 7), "3 8192 ");
  queue->offer(access_of(application, kib));
  queue->granted();
  EXPECT_EQ(queue->shares().substr(0, 7), "3 8192 ") << "offers are counted by the engine";
}

// ---- any order of events --------------------------------------------------------------------------------------------

// The server: threads of forwarding and the engine act when they are woken, or have something to do by themselves.
class SimulatedServer {
 public:
  SimulatedServer(std::uint64_t seed, int slots) : random_(seed), slots_(slots), queue_(queue_of("wfq", slots)) {
    queue_->wake_engine_with([this] { engine_is_awake_ = true; });
    queue_->wake_forwarding_with([this] { threads_awake_ = true; });
  }
  ~SimulatedServer() {
    queue_->wake_engine_with({});
    queue_->wake_forwarding_with({});
  }

  void step() {
    switch (below(10)) {
      case 0:
      case 1: add_call(); break;
      case 2:
      case 3:
        wanted_batches_ += 1;
        engine_is_awake_ = true;
        break;
      case 4: end_a_call(); break;
      case 5: end_a_batch(); break;
      case 6: lose_offers(); break;
      case 7: change(); break;
      default: break;
    }
    if (below(3) > 0) run_awake();  // else they are slow
    EXPECT_LE(static_cast<int>(calls_.size() + granted_.size()), slots_);
  }

  // Lets everything end, without a further event from outside.
  void settle() {
    run_awake();
    for (int i = 0; i < 100'000 && !(calls_.empty() && granted_.empty() && batches_.empty()); ++i) {
      end_a_call();
      end_a_batch();
      run_awake();
    }
    EXPECT_EQ(added_, taken_);
    EXPECT_TRUE(offers_.empty() && wanted_batches_ == 0) << "batches are left waiting";
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void add_call() {
    queue_->add(access_of(1 + below(3), static_cast<std::int64_t>(1 + below(64)) * kib, ++last_ticket_));
    ++added_;
    threads_awake_ = true;  // it is a thread of forwarding that has received the call
  }
  void end_a_call() {
    if (calls_.empty()) return;
    queue_->done(calls_.back());
    calls_.pop_back();
    threads_awake_ = true;
  }
  void end_a_batch() {
    if (!batches_.empty() && below(2) == 0) {
      batches_.pop_back();  // of `fifo`
      engine_is_awake_ = true;
    } else if (!granted_.empty()) {
      queue_->ended(granted_.back());
      granted_.pop_back();
      engine_is_awake_ = true;
    }
  }
  // The clients of an application have gone.
  void lose_offers() {
    const std::vector<std::uint64_t> lost(offers_.begin(), offers_.end());
    queue_->withdraw(lost);
    offers_.clear();
  }
  void change() {
    const char* const names[] = {"fifo", "wfq", "job-fair", "to-agg", "sjf", "hbrr", "mlf", "user-fair"};
    EXPECT_TRUE(queue_->use({names[below(8)]}).ok());
  }

  void run_awake() {
    while (std::exchange(threads_awake_, false) || engine_is_awake_) {
      if (std::exchange(engine_is_awake_, false)) run_engine();
      run_threads();
    }
  }
  void run_threads() {
    while (true) {
      const auto next = queue_->take();
      if (next.batch) taken_ += next.batch->tickets.size();
      if (!next.batch) {
        // MLF lets calls wait for neighbours; a thread looks again then.
        if (next.again) threads_awake_ = true;
        return;
      }
      calls_.push_back(next.batch->number);
    }
  }
  void run_engine() {
    if (!queue_->orders_batches()) {
      wanted_batches_ += offers_.size();
      lose_offers();
      for (; wanted_batches_ > 0; --wanted_batches_) batches_.push_back(0);
      return;
    }
    for (; wanted_batches_ > 0; --wanted_batches_)
      offers_.insert(queue_->offer(access_of(1 + below(3), static_cast<std::int64_t>(1 + below(64)) * kib)));
    const auto grants = queue_->granted();
    if (grants.again) engine_is_awake_ = true;
    for (const std::uint64_t ticket : grants.tickets) {
      EXPECT_EQ(offers_.erase(ticket), 1U) << "it was taken back, or granted before";
      granted_.push_back(ticket);
    }
  }

  std::mt19937_64 random_;
  int slots_;
  QueuePtr queue_;
  bool engine_is_awake_ = false, threads_awake_ = false;
  std::uint64_t last_ticket_ = 0;
  std::size_t added_ = 0, taken_ = 0;  // calls
  std::size_t wanted_batches_ = 0;     // that the engine has not offered yet
  std::set<std::uint64_t> offers_;
  std::vector<std::uint64_t> calls_, granted_, batches_;  // under way
};

TEST(StorageQueue, LeavesNothingWaitingWhateverTheOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    SimulatedServer server{seed, 1 + static_cast<int>(seed % 4)};
    for (std::uint64_t i = 0; i < 20 + seed % 60; ++i) server.step();
    server.settle();
  }
}

// ---- shares ---------------------------------------------------------------------------------------------------------

// A small application and a large one always have something waiting, and one slot. Returns the small one's part.
double part_of_small(const std::string& scheduler, bool small_forwards, bool large_forwards) {
  constexpr std::uint64_t small = 1, large = 2;
  constexpr std::int64_t sizes[] = {0, 64 * kib, 1024 * kib};
  const QueuePtr queue = queue_of(scheduler, 1);
  std::map<std::uint64_t, std::uint64_t> owner;  // of tickets
  std::map<std::uint64_t, std::int64_t> bytes;   // by application
  std::uint64_t last = 0;
  const auto ask = [&](std::uint64_t application) {
    const bool forwards = application == small ? small_forwards : large_forwards;
    IoRequest request = access_of(application, sizes[application], forwards ? ++last : 0);
    if (forwards) {
      EXPECT_TRUE(queue->add(std::move(request)));
    }
    owner[forwards ? last : queue->offer(std::move(request))] = application;
  };
  for (int i = 0; i < 4; ++i) ask(small);
  for (int i = 0; i < 64; ++i) ask(large);
  while (bytes[large] < std::int64_t{1} << 30) {
    const auto call = queue->take();
    const auto grants = queue->granted();
    const std::uint64_t ticket = call.batch ? call.batch->tickets.front() : grants.tickets.at(0);
    const std::uint64_t application = owner.at(ticket);
    bytes[application] += sizes[application];
    ask(application);
    call.batch ? queue->done(call.batch->number) : queue->ended(ticket);
  }
  return static_cast<double>(bytes[small]) / static_cast<double>(bytes[small] + bytes[large]);
}

TEST(StorageQueue, DividesBytesBetweenASmallAndALargeApplication) {
  for (const std::string scheduler : {"job-fair", "wfq"}) {
    SCOPED_TRACE(scheduler);
    // Each access costs as much as some bytes, which the smaller ones feel.
    EXPECT_NEAR(part_of_small(scheduler, false, false), 0.49, 0.04);
    EXPECT_NEAR(part_of_small(scheduler, true, false), 0.49, 0.04);
    EXPECT_NEAR(part_of_small(scheduler, false, true), 0.49, 0.04);
  }
  EXPECT_LT(part_of_small("to-agg", false, false), 0.02) << "the order of arrival";
}

TEST(StorageQueue, TellsIfSeveralApplicationsHaveAccesses) {
  Time now = node_now();
  auto made = StorageQueue::create({.scheduler = {"wfq"}, .clock = [&] { return now; }});
  const QueuePtr queue = std::move(made).value();
  const std::uint64_t unknown = queue->clients().of(nullptr).application;
  queue->offer(access_of(unknown + 1, kib));
  queue->offer(access_of(unknown, kib));
  queue->offer(access_of(unknown + 1, kib));
  EXPECT_FALSE(queue->is_shared()) << "clients that are not known may be of the same application";
  queue->add(access_of(unknown + 2, kib, 1));
  EXPECT_TRUE(queue->is_shared());
  now += std::chrono::seconds{2};
  EXPECT_FALSE(queue->is_shared());
}

}  // namespace
}  // namespace hocket::forward
