#include "coordinator/arbitration/backlog.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;

constexpr AppId one_app{1};
constexpr AppId other_app{2};

Time at_ms(std::int64_t ms) { return Time{} + milliseconds{ms}; }

event::Event finish_of(std::uint64_t request) { return {at_ms(1'000), {}, event::FinishIo{RequestId{request}}}; }

std::uint64_t request_of(const std::optional<event::Event>& event) {
  return event ? std::get<event::FinishIo>(event->body).request.value : 0;
}

TEST(Backlog, GivesOutInTheOrderOfTime) {
  Backlog backlog;
  backlog.add(one_app, at_ms(30), finish_of(3));
  backlog.add(other_app, at_ms(20), finish_of(2));
  backlog.add(one_app, at_ms(10), finish_of(1));
  backlog.add(one_app, at_ms(30), finish_of(4));
  EXPECT_EQ(backlog.deadline(), at_ms(10) + all_known_after);
  EXPECT_FALSE(backlog.next_due(at_ms(9) + all_known_after));
  std::vector<std::uint64_t> order;
  while (const auto next = backlog.next_due(at_ms(30) + all_known_after)) order.push_back(request_of(next));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3, 4})) << "of equal times, the one that came first";
  EXPECT_TRUE(backlog.empty());
  EXPECT_FALSE(backlog.deadline());
}

TEST(Backlog, GivesOutWhatAnApplicationHas) {
  Backlog backlog;
  backlog.add(other_app, at_ms(5), finish_of(9));
  backlog.add(one_app, at_ms(20), finish_of(2));
  backlog.add(one_app, at_ms(10), finish_of(1));
  EXPECT_EQ(backlog.count_of(one_app).events, 2U);
  EXPECT_EQ(request_of(backlog.next_of(one_app)), 1U);
  EXPECT_EQ(request_of(backlog.next_of(one_app)), 2U);
  EXPECT_FALSE(backlog.next_of(one_app));
  EXPECT_EQ(backlog.count_of(one_app).events, 0U);
  EXPECT_EQ(request_of(backlog.next_of(other_app)), 9U);
}

TEST(Backlog, CountsAnswersToRecalls) {
  Backlog backlog;
  backlog.add(one_app, at_ms(10), finish_of(1));
  backlog.add(one_app, at_ms(20), {at_ms(20), {}, event::ReturnIo{RequestId{1}}});
  EXPECT_EQ(backlog.count_of(one_app).returns, 1);
  EXPECT_TRUE(backlog.next_of(one_app));
  EXPECT_EQ(backlog.count_of(one_app).returns, 1);
  EXPECT_TRUE(backlog.next_of(one_app));
  EXPECT_EQ(backlog.count_of(one_app).returns, 0);
}

}  // namespace
}  // namespace hocket::coordinator
