// Filters and server maps with faults in them: programs send both as text.
#include <gtest/gtest.h>

#include <array>

#include "base/mutated_testing.hpp"
#include "base/utf8.hpp"
#include "event/filter.hpp"
#include "event/random_event.hpp"
#include "event/server_map.hpp"

namespace hocket::event {
namespace {

TEST(MutatedTexts, OfFiltersAreRefusedOrCanBeAsked) {
  constexpr std::array<std::string_view, 4> filters{"START_IO application=jacobi-a bytes>1000", "IO_PHASE wait_ns>=1e6",
                                                    R"(application="a b" member!=3)",
                                                    "DECISION obstacle=not-worth-it obstacle_cost_s>3"};
  RandomEvents random{1};
  Mutations mutations{2};
  for (int i = 0; i < Mutations::count(); ++i) {
    const auto filter = Filter::parse(mutations.mutated(filters[mutations.below(filters.size())]));
    if (filter) {
      static_cast<void>(filter.value().matches(random.next()));
    } else {
      EXPECT_EQ(printable(filter.error().text), filter.error().text) << "an error is one line for a log";
    }
  }
}

TEST(MutatedTexts, OfServerMapsAreRefusedOrComeBack) {
  const std::string valid =
      text_of({{"s1", "/scratch/a b", "unix:/run/s1.sock tcp:host:7000"}, {"s2", "/", "unix:/x"}});
  Mutations mutations{3};
  for (int i = 0; i < Mutations::count(); ++i) {
    const auto map = parse_server_map(4, mutations.mutated(valid));
    if (!map) {
      EXPECT_EQ(printable(map.error().text), map.error().text) << "an error is one line for a log";
      continue;
    }
    const auto again = parse_server_map(4, text_of(map.value().servers));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().servers.size(), map.value().servers.size());
  }
}

}  // namespace
}  // namespace hocket::event
