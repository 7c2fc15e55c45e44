// Frames with faults in them: the bytes of any process that may open the socket of hocketd.
#include <gtest/gtest.h>

#include "base/mutated_testing.hpp"
#include "base/utf8.hpp"
#include "event/random_event.hpp"
#include "wire/frame.hpp"

namespace hocket::wire {
namespace {

TEST(MutatedFrames, AreRefusedOrGiveAnEventThatCanBeSent) {
  event::RandomEvents random{1};
  Mutations mutations{2};
  int decoded = 0;
  int refused = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    std::string frame;
    if (!encode(random.next(), 7, frame)) continue;
    const auto message = decode(mutations.mutated(std::string_view{frame}.substr(4)));
    if (!message) {
      EXPECT_EQ(printable(message.error().text), message.error().text) << "an error is one line for a log";
      ++refused;
      continue;
    }
    ++decoded;
    std::string again;
    if (!encode(message.value().event, 7, again)) continue;
    EXPECT_TRUE(decode(std::string_view{again}.substr(4)).ok());
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(refused, 0);
}

TEST(MutatedFrames, NeverMakeASplitterReturnMoreThanItGot) {
  event::RandomEvents random{3};
  Mutations mutations{4};
  for (int i = 0; i < Mutations::count(); ++i) {
    std::string frames;
    for (int n = 0; n < 3; ++n) static_cast<void>(encode(random.next(), n, frames));
    frames = mutations.mutated(frames);
    Splitter splitter;
    std::size_t given = 0;
    std::size_t got = 0;
    bool ends = false;
    while (given < frames.size() && !ends) {
      const std::size_t part = std::min<std::size_t>(1 + mutations.below(200), frames.size() - given);
      const Splitter::Space space = splitter.space();
      const std::size_t read = std::min(part, space.size);
      std::copy_n(frames.data() + given, read, space.data);
      splitter.filled(read);
      given += read;
      for (;;) {
        const auto payload = splitter.next();
        ends = !payload;
        if (ends || !payload.value()) break;
        got += 4 + payload.value()->size();
      }
    }
    EXPECT_LE(got, given);
  }
}

}  // namespace
}  // namespace hocket::wire
