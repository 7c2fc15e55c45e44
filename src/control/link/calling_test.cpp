// An agent whose name server does not answer goes on serving its members.
#include "link/calling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "base/clock.hpp"

namespace hocket::link {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string of_cluster(32, 'k');

class CallingTest : public ::testing::Test {
 protected:
  using Found = hocket::Result<std::vector<Endpoint>>;

  CallingTest() {
    // The threads may run longer than the test.
    const Calling::Resolve answer = [asked = asked_,
                                     wait = may_answer_.get_future().share()](const std::string&) -> Found {
      ++*asked;
      wait.wait();
      return Error{"its host is not found"};
    };
    tls_ = std::move(Tls::with_key(of_cluster)).value();
    calling_.emplace("leader:1", *tls_, Introduction{}, answer);
  }
  ~CallingTest() override { answer(); }

  void answer() {
    if (!std::exchange(is_answered_, true)) may_answer_.set_value();
  }

  std::promise<void> may_answer_;
  bool is_answered_ = false;
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
  std::unique_ptr<Tls> tls_;
  std::optional<Calling> calling_;
};

TEST_F(CallingTest, DoesNotWaitForNameServers) {
  const Time now = node_now();
  EXPECT_EQ(calling_->begin(now), Calling::Result::undecided);
  EXPECT_TRUE(calling_->is_under_way());
  EXPECT_EQ(calling_->fd(), -1);
  EXPECT_EQ(calling_->go_on(now + 1s), Calling::Result::undecided);
  EXPECT_LT(calling_->deadline(), now + 2s) << "it looks again soon";
  EXPECT_EQ(calling_->go_on(now + 3s), Calling::Result::unanswered);
  EXPECT_THAT(calling_->why(), HasSubstr("its name server did not answer within 2 s"));
  EXPECT_FALSE(calling_->is_under_way());
}

TEST_F(CallingTest, AsksNameServersAgainWhenTheyHaveAnswered) {
  const Time now = node_now();
  EXPECT_EQ(calling_->begin(now), Calling::Result::undecided);
  EXPECT_EQ(calling_->go_on(now + 3s), Calling::Result::unanswered);
  EXPECT_EQ(calling_->begin(now + 4s), Calling::Result::undecided);
  while (*asked_ == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(*asked_, 1) << "the earlier question still waits";
  answer();
  Calling::Result result = Calling::Result::undecided;
  for (const Time until = node_now() + 60s; result == Calling::Result::undecided && node_now() < until;)
    result = calling_->go_on(now + 5s);
  EXPECT_EQ(result, Calling::Result::unanswered);
  EXPECT_THAT(calling_->why(), HasSubstr("its host is not found"));
}

}  // namespace
}  // namespace hocket::link
