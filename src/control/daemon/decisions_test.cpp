#include "daemon/decisions.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hocket::daemon {
namespace {

event::Decision decision(std::int64_t number, const std::string& application) {
  event::Decision made;
  made.number = number;
  made.decided_for = application;
  return made;
}

event::Outcome outcome(std::int64_t of) {
  event::Outcome came;
  came.decision = of;
  return came;
}

// Returns the answer as a text: "D1 O1 D2 …".
std::string answered(const Decisions& decisions, std::int64_t count, const std::string& application = "") {
  std::string text;
  for (const event::Body& body : decisions.answer({count, application})) {
    const auto* made = std::get_if<event::Decision>(&body);
    text += text.empty() ? "" : " ";
    text += made != nullptr ? "D" + std::to_string(made->number)
                            : "O" + std::to_string(std::get<event::Outcome>(body).decision);
  }
  return text;
}

TEST(Decisions, AreToldWithTheirOutcomesOldestFirst) {
  Decisions decisions;
  decisions.add(decision(1, "a"));
  decisions.add(decision(2, "b"));
  decisions.add(event::GrantIo{});
  decisions.add(outcome(1));
  decisions.add(outcome(7));  // of a decision that is not kept
  EXPECT_EQ(answered(decisions, 0), "D1 O1 D2");
  EXPECT_EQ(answered(decisions, 1), "D2");
  EXPECT_EQ(answered(decisions, 1, "a"), "D1 O1");
  EXPECT_EQ(answered(decisions, 0, "c"), "");
}

TEST(Decisions, WaitsDoNotPushOutAllOthers) {
  Decisions decisions;
  decisions.add(decision(1, "a"));
  std::int64_t number = 1;
  for (std::size_t n = 0; n < 2 * Decisions::most; ++n) {
    event::Decision wait = decision(++number, "b");
    wait.action = "wait";
    decisions.add(wait);
  }
  EXPECT_EQ(answered(decisions, 0, "a"), "D1");
  EXPECT_EQ(decisions.answer({0, "b"}).size(), Decisions::most_waits);
  EXPECT_EQ(answered(decisions, 1, "b"), "D" + std::to_string(number));
  for (std::size_t n = 0; n < Decisions::most; ++n) decisions.add(decision(++number, "c"));
  EXPECT_EQ(decisions.answer({0, ""}).size(), Decisions::most);
  EXPECT_EQ(answered(decisions, 0, "b"), "");
}

TEST(Decisions, KeepNoMoreThanTheirBound) {
  Decisions decisions;
  const auto most = static_cast<std::int64_t>(Decisions::most);
  for (std::int64_t n = 1; n <= most + 10; ++n) decisions.add(decision(n, "a"));
  for (std::size_t n = 0; n < 2 * Decisions::most_outcomes; ++n) decisions.add(outcome(most + 10));
  decisions.add(outcome(1));
  EXPECT_EQ(decisions.answer({0, ""}).size(), Decisions::most + Decisions::most_outcomes);
  EXPECT_EQ(answered(decisions, 2).substr(0, 4), "D" + std::to_string(most + 9));
}

}  // namespace
}  // namespace hocket::daemon
