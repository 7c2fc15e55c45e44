#include "daemon/explaining.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace hocket::daemon {
namespace {

using ::testing::HasSubstr;

std::string explained(const std::string& lines) {
  std::istringstream in{lines};
  std::ostringstream out;
  const Status done = explain_lines(in, out);
  EXPECT_TRUE(done.ok()) << (done ? "" : done.error().text);
  return out.str();
}

std::string refusal(const std::string& lines) {
  std::istringstream in{lines};
  std::ostringstream out;
  const Status done = explain_lines(in, out);
  EXPECT_FALSE(done.ok()) << lines;
  return done ? "" : done.error().text;
}

TEST(Explaining, AnswersEachLineWithOne) {
  EXPECT_EQ(explained(R"({"out": "DECISION", "decided_for": "b", "because_of": "a", "action": "wait", )"
                      R"("reason": {"kind": "access", "target": "disk"}})"
                      "\n"
                      R"({"out": "OUTCOME", "quantity": "cores", "predicted_s": 4, "actual_s": 4.0, "met": true})"
                      "\n"),
            R"({"heading": "b waits for a", "sentence": "'b' waits for 'a' on disk", )"
            R"("lines": [["in its words", "'b' waits for 'a' on disk"]]})"
            "\n"
            R"({"subject": "cores", "brief": "4 came back", "sentence": "cores: 4 came back"})"
            "\n");
  EXPECT_EQ(explained(""), "");
}

TEST(Explaining, TakesWhatATraceKnowsBesides) {
  EXPECT_THAT(explained(R"({"out": "DECISION", "time_ns": 4000000000, "decided_for": "a", "action": "expand", )"
                        R"("from": 2, "to": 4, "conflict_ns": 6000000000, "overlap_ns": 500000000, )"
                        R"("zero_ns": 1000000000, "stopped_ns": [100000000, "x"], "until_ns": 6000000000})"),
              HasSubstr(R"(["predicted", "the I/O phases of a meet at 5.00 s, for 0.50 s"], )"
                        R"(["chosen", "4 processes at the next control point, for good"], )"
                        R"(["cost", "2 cores for 2.00 s; stood still 0.100 s in 1 resize"]])"));
}

TEST(Explaining, ReadsTracesOfVersion1) {
  EXPECT_EQ(explained(R"({"out": "OUTCOME", "quantity": "I/O period", "predicted_s": 2, "actual_s": 2.5, )"
                      R"("text": "the I/O period of 'a' is 2.50 s"})"),
            R"({"subject": "I/O period", "brief": "0.50 s more than predicted", "sentence": "I/O period: )"
            R"(predicted 2.00 s, came 2.50 s: 0.50 s more than predicted, outside of what was assumed: the )"
            R"(prediction was off"})"
            "\n");
  EXPECT_THAT(explained(R"({"out": "DECISION", "decided_for": "a", "action": "leave", "text": "it is too late"})"),
              HasSubstr(R"("sentence": "it is too late", "lines": [["in its words", "it is too late"]]})"));
}

TEST(Explaining, NamesTheLineThatIsNoSuchEvent) {
  const std::string good = "{\"out\": \"OUTCOME\"}\n";
  EXPECT_EQ(refusal(good + "{\"in\": \"TICK\"}\n"),
            "standard input, line 2: 'TICK' has no sentences: give a DECISION or an OUTCOME");
  EXPECT_THAT(refusal("nonsense\n"), HasSubstr("standard input, line 1: it is no JSON object"));
  EXPECT_THAT(refusal(good + good + "{\"out\": \"DECISION\", \"reason\": 3}\n"), HasSubstr("line 3: 'reason' of"));
}

}  // namespace
}  // namespace hocket::daemon
