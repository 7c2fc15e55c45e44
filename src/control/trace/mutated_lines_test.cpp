// Lines of a trace with faults in them: a trace may come from anybody.
#include <gtest/gtest.h>

#include "base/mutated_testing.hpp"
#include "base/utf8.hpp"
#include "event/random_event.hpp"
#include "trace/line.hpp"

namespace hocket::trace {
namespace {

TEST(MutatedLines, AreRefusedOrGiveARecordThatCanBeWritten) {
  event::RandomEvents random{1};
  Mutations mutations{2};
  int parsed = 0;
  int refused = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    std::string line;
    append_line(Direction::in, random.next(), line);
    line.pop_back();
    const auto record = parse_line(mutations.mutated(line));
    if (!record) {
      EXPECT_EQ(printable(record.error().text), record.error().text) << "an error is one line for a log";
      ++refused;
      continue;
    }
    ++parsed;
    std::string again;
    append_line(record.value().direction, record.value().event, again);
    again.pop_back();
    EXPECT_TRUE(parse_line(again).ok()) << again;
  }
  EXPECT_GT(parsed, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace hocket::trace
