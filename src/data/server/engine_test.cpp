// Tests which batch of the engine is next, beside forwarded calls.
#include "server/engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "transport/held_view.hpp"

namespace hocket::server {
namespace {

using forward::StorageQueue;

constexpr std::int64_t request_bytes = 64 << 10;
constexpr std::uint64_t small_application = 101, large_application = 102;
constexpr Duration most_time = std::chrono::seconds{60};

// An engine without sockets. The test's thread is the server's loop.
class OrderedEngine : public ::testing::Test {
 protected:
  OrderedEngine() {
    std::string name = "/tmp/hocket-engine-XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~OrderedEngine() override {
    engine_.reset();
    std::filesystem::remove_all(root_);
  }

  // Each request takes `delay` of an I/O thread.
  void start(const std::string& scheduler, int slots, Duration delay = {},
             forward::FileDataServers::ReadStripes read_stripes = {}) {
    queue_ = StorageQueue::create({.scheduler = {scheduler},
                                   .forwarded = slots,
                                   .collective = slots,
                                   .read_stripes = std::move(read_stripes)})
                 .value();
    Engine::EngineSettings settings;
    settings.threads = slots;
    settings.injection.delay = delay;
    settings.queue = queue_.get();
    settings.held = held_.get();
    engine_ = std::make_unique<Engine>(settings, Files::in(root_).value(), load_,
                                       Engine::EngineCalls{.answer = [this](const Answer& given) { take(given); },
                                                           .stored = [](const FileOpening&, int) {},
                                                           .log = [](const std::string&) {}});
  }

  FilePtr file(const std::string& name) {
    std::ofstream{root_ + "/" + name};
    return engine_->files().open(name, {}, true, true).file;
  }

  // Submits a write of a request's size at the next place of its application in the file.
  void submit(const FilePtr& file, std::uint64_t application, SessionId session, const OpeningPtr& behind = nullptr) {
    Task task;
    task.asker = {session, ++last_request_};
    task.file = file;
    task.writes = true;
    task.behind = behind;
    task.runs.push_back({offset_ % (std::int64_t{64} << 20), request_bytes});
    offset_ += request_bytes;
    task.bytes = request_bytes;
    task.owner.application = application;
    task.buffer = engine_->take(request_bytes);
    ASSERT_TRUE(task.buffer);
    engine_->submit(std::move(task), node_now());
  }

  // A client that sends its next request when it has the answer of the last one.
  void keep_sending(const FilePtr& file, std::uint64_t application, SessionId session) {
    senders_[session] = {file, application};
    submit(file, application, session);
  }

  void take(const Answer& given) {
    errors_[given.to.session] = given.error;
    ++answers_;
    const auto sender = senders_.find(given.to.session);
    if (sender == senders_.end()) return;
    bytes_[sender->second.application] += given.bytes;
    if (!stopping_) submit(sender->second.file, sender->second.application, given.to.session);
  }

  template <class Condition>
  void run_until(Condition is_over) {
    const Time end = node_now() + most_time;
    while (!is_over()) {
      ASSERT_LT(node_now(), end);
      engine_->advance(node_now());
      pollfd done{engine_->workers().descriptor(), POLLIN, 0};
      ::poll(&done, 1, 2);
      engine_->workers().reap();
    }
  }
  void run_until_idle() {
    stopping_ = true;
    run_until([&] { return engine_->idle(); });
  }

  double part_of_small() const {
    const auto small = static_cast<double>(bytes_.at(small_application));
    return small / (small + static_cast<double>(bytes_.at(large_application)));
  }

  struct Sender {
    FilePtr file;
    std::uint64_t application = 0;
  };
  std::string root_;
  LoadCounters load_;
  std::unique_ptr<transport::HeldWrites> held_;
  std::unique_ptr<StorageQueue> queue_;
  std::unique_ptr<Engine> engine_;
  std::map<SessionId, Sender> senders_;
  std::map<std::uint64_t, std::int64_t> bytes_;  // by application
  std::map<SessionId, int> errors_;
  std::uint64_t last_request_ = 0;
  std::int64_t offset_ = 0;
  std::size_t answers_ = 0;
  bool stopping_ = false;
};

// A forwarding program with several calls at a time, each of a request's size and time.
class ForwardingProgram {
 public:
  ForwardingProgram(StorageQueue& queue, std::uint64_t application, int calls, Duration delay)
      : queue_(queue), application_(application), delay_(delay) {
    queue_.wake_forwarding_with([this] { wake(); });
    for (int i = 0; i < calls; ++i) ask();
    thread_ = std::thread([this] { run(); });
  }
  ~ForwardingProgram() {
    stopping_ = true;
    wake();
    thread_.join();
    queue_.wake_forwarding_with({});
    queue_.drop_calls();
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void ask() {
    request_scheduler::IoRequest request;
    request.ticket = ++last_;
    request.file = last_;
    request.writes = true;
    request.extents.push_back({0, request_bytes});
    request.application = application_;
    request.arrival = node_now();
    EXPECT_TRUE(queue_.add(std::move(request)));
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    come_.notify_one();
  }
  void run() {
    while (!stopping_) {
      const auto next = queue_.take();
      if (!next.batch) {
        std::unique_lock lock(mutex_);
        come_.wait(lock, [this] { return is_woken_; });
        is_woken_ = false;
        continue;
      }
      std::this_thread::sleep_for(delay_);
      bytes_ += request_bytes;
      ask();  // the program's next call
      queue_.done(next.batch->number);
    }
  }

  StorageQueue& queue_;
  const std::uint64_t application_;
  const Duration delay_;
  std::uint64_t last_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable come_;
  bool is_woken_ = false;
  std::thread thread_;
};

constexpr Duration request_time = std::chrono::microseconds{200};
constexpr std::int64_t measured_bytes = 2400 * request_bytes;  // tokens are random

class SharesOfTheEngine : public OrderedEngine, public ::testing::WithParamInterface<const char*> {};

TEST_P(SharesOfTheEngine, ASmallApplicationBesideALargeOne) {
  start(GetParam(), 1, request_time);
  const FilePtr small = file("small"), large = file("large");
  for (SessionId i = 0; i < 16; ++i) keep_sending(large, large_application, 200 + i);
  for (SessionId i = 0; i < 4; ++i) keep_sending(small, small_application, 100 + i);
  run_until([&] { return bytes_[small_application] + bytes_[large_application] > measured_bytes; });
  const bool is_fair = std::string{GetParam()} != "fifo";
  EXPECT_NEAR(part_of_small(), is_fair ? 0.5 : 0.2, is_fair ? 0.12 : 0.05);
  run_until_idle();
}

// Under fifo, each kind has slots of its own.
class SharesOfBothKinds : public SharesOfTheEngine {};

TEST_P(SharesOfBothKinds, ASmallCollectiveOneBesideALargeForwardedOne) {
  start(GetParam(), 1, request_time);
  ForwardingProgram large{*queue_, large_application, 32, request_time};
  const FilePtr small = file("small");
  for (SessionId i = 0; i < 4; ++i) keep_sending(small, small_application, 100 + i);
  run_until([&] { return bytes_[small_application] + large.bytes() > measured_bytes; });
  bytes_[large_application] = large.bytes();
  EXPECT_NEAR(part_of_small(), 0.5, 0.12);
  run_until_idle();
}

TEST_P(SharesOfBothKinds, ASmallForwardedOneBesideALargeCollectiveOne) {
  start(GetParam(), 1, request_time);
  const FilePtr large = file("large");
  for (SessionId i = 0; i < 16; ++i) keep_sending(large, large_application, 200 + i);
  ForwardingProgram small{*queue_, small_application, 4, request_time};
  const std::int64_t before = bytes_[large_application];
  run_until([&] { return small.bytes() + bytes_[large_application] - before > measured_bytes; });
  bytes_[large_application] -= before;
  bytes_[small_application] = small.bytes();
  EXPECT_NEAR(part_of_small(), 0.5, 0.12);
  run_until_idle();
}

INSTANTIATE_TEST_SUITE_P(Each, SharesOfTheEngine, ::testing::Values("fifo", "job-fair", "wfq"));
INSTANTIATE_TEST_SUITE_P(Each, SharesOfBothKinds, ::testing::Values("job-fair", "wfq"));

// The file system may take long to say where the data of a file are.
TEST_F(OrderedEngine, AsksTheFileSystemInAnotherThreadThanTheLoop) {
  std::atomic<int> questions = 0;
  const std::thread::id loop = std::this_thread::get_id();
  start("twins", 2, {}, [&](int) -> std::optional<file_system::FileStripes> {
    EXPECT_NE(std::this_thread::get_id(), loop);
    ++questions;
    return file_system::FileStripes{file_system::ServerKind::ost, {{0, std::int64_t{64} << 20, 1 << 20, {3, 4}}}};
  });
  const FilePtr striped = file("striped");
  keep_sending(striped, small_application, 100);
  run_until([&] { return answers_ >= 20; });
  run_until_idle();
  EXPECT_EQ(questions, 1);
  const FileKey key = key_of(striped->identity.first, striped->identity.second);
  EXPECT_EQ(queue_->data_servers().known_at(key, 1 << 20), 4);
}

// One request of each of two applications waits for the same file.
class MergingOfTheEngine : public OrderedEngine, public ::testing::WithParamInterface<const char*> {};

TEST_P(MergingOfTheEngine, JoinsApplicationsUnderFifoOnly) {
  start(GetParam(), 1, std::chrono::milliseconds{50});
  const FilePtr busy = file("busy"), shared = file("shared");
  submit(busy, small_application, 1);
  engine_->advance(node_now());
  submit(shared, small_application, 1);
  submit(shared, large_application, 2);
  run_until_idle();
  const bool joins = std::string{GetParam()} == "fifo";
  EXPECT_NE(engine_->state().find(joins ? "batches 2\n" : "batches 3\n"), std::string::npos) << engine_->state();
}

INSTANTIATE_TEST_SUITE_P(Each, MergingOfTheEngine, ::testing::Values("fifo", "wfq"));

TEST_F(OrderedEngine, AnswersEachRequestWhileSchedulersChange) {
  start("fifo", 2, std::chrono::microseconds{50});
  ForwardingProgram program{*queue_, small_application, 4, std::chrono::microseconds{50}};
  const FilePtr first = file("first"), second = file("second");
  for (SessionId i = 0; i < 4; ++i) keep_sending(first, large_application, 100 + i);
  for (SessionId i = 0; i < 4; ++i) keep_sending(second, small_application, 200 + i);
  std::atomic<bool> is_over = false;
  std::thread operator_thread([&] {
    const auto names = request_scheduler::algorithm_names();
    for (std::size_t i = 0; !is_over; ++i) {
      EXPECT_TRUE(queue_->use({std::string{names[i % names.size()]}}).ok());
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  });
  const std::int64_t forwarded = program.bytes();
  run_until([&] { return answers_ > 2000 && program.bytes() > forwarded + 100 * request_bytes; });
  run_until_idle();
  is_over = true;
  operator_thread.join();
  EXPECT_EQ(answers_, last_request_);
  for (const auto& [session, error] : errors_) EXPECT_EQ(error, 0);
}

// Takes the only slot of the queue by a forwarded call. Returns its batch.
std::uint64_t take_slot(StorageQueue& queue) {
  request_scheduler::IoRequest request;
  request.ticket = 1;
  request.extents.push_back({0, 1});
  EXPECT_TRUE(queue.add(std::move(request)));
  const auto next = queue.take();
  EXPECT_TRUE(next.batch);
  return next.batch->number;
}

TEST_F(OrderedEngine, RequestsOfAClientThatHasGoneLeaveTheQueue) {
  start("wfq", 1);
  const std::uint64_t call = take_slot(*queue_);
  const FilePtr one = file("one");
  submit(one, small_application, 1);
  engine_->advance(node_now());
  EXPECT_EQ(answers_, 0U);
  engine_->gone(1);
  EXPECT_EQ(errors_.at(1), ECONNRESET);
  EXPECT_TRUE(engine_->idle());
  queue_->done(call);
  EXPECT_TRUE(queue_->granted().tickets.empty());
  take_slot(*queue_);
}

TEST_F(OrderedEngine, RequestsOfAClientThatHasGoneTakeNoOthersAlong) {
  start("wfq", 1);
  const std::uint64_t call = take_slot(*queue_);
  const FilePtr one = file("one");
  submit(one, small_application, 1);
  submit(one, small_application, 2);
  engine_->advance(node_now());
  engine_->gone(1);
  queue_->done(call);
  run_until_idle();
  EXPECT_EQ(errors_.at(1), ECONNRESET);
  EXPECT_EQ(errors_.at(2), 0);
}

// A thread of forwarding may wait for what the engine holds while it has the last slot.
TEST_F(OrderedEngine, StoresWithoutASlotWhatAnotherProcessWaitsFor) {
  held_ = transport::HeldWrites::in(root_, "s1").value();
  start("wfq", 1);
  take_slot(*queue_);
  const FilePtr one = file("one");
  submit(one, small_application, 1, std::make_shared<FileOpening>(FileOpening{.session = 1, .handle = 1}));
  EXPECT_EQ(answers_, 1U) << "it is answered early";
  engine_->advance(node_now());
  EXPECT_FALSE(engine_->idle()) << "no slot is free";
  transport::HeldView view;
  view.attach(root_);
  ASSERT_TRUE(view.any());
  auto waits =
      std::async(std::launch::async, [&] { return view.await(key_of(one->identity.first, one->identity.second)); });
  run_until([&] { return waits.wait_for(Duration::zero()) == std::future_status::ready; });
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(std::filesystem::file_size(root_ + "/one"), static_cast<std::uintmax_t>(request_bytes));
}

}  // namespace
}  // namespace hocket::server
