#include "server/strangers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace hocket::server {
namespace {

TEST(Strangers, APeerThatOnlyConnectsDisplacesItsOwn) {
  Strangers strangers;
  EXPECT_EQ(strangers.add(1, "victim"), std::nullopt);
  for (Strangers::Number number = 2; number < 2 + Strangers::most_of_a_peer; ++number)
    EXPECT_EQ(strangers.add(number, "flood"), std::nullopt);
  for (Strangers::Number number = 0; number < 1000; ++number) {
    const auto gone = strangers.add(1000 + number, "flood");
    ASSERT_TRUE(gone);
    EXPECT_NE(*gone, 1);
    strangers.remove(*gone);
  }
  EXPECT_TRUE(strangers.contains(1));
  EXPECT_EQ(strangers.size(), Strangers::most_of_a_peer + 1);
}

// Whatever connects and leaves, the numbers are bounded, the newest is admitted, and what goes is of a peer that has no
// fewer than any other.
TEST(Strangers, AreBounded) {
  std::mt19937_64 random{7};
  for (int run = 0; run < 20; ++run) {
    Strangers strangers;
    std::map<std::string, std::set<Strangers::Number>> model;
    std::size_t all = 0;
    for (Strangers::Number number = 1; number <= 4000; ++number) {
      const std::string peer = std::to_string(random() % (1 + random() % 6));
      const auto gone = strangers.add(number, peer);
      model[peer].insert(number);
      ++all;
      const bool too_many = all > Strangers::most || model[peer].size() > Strangers::most_of_a_peer;
      ASSERT_EQ(gone.has_value(), too_many);
      if (gone) {
        EXPECT_NE(*gone, number);
        strangers.remove(*gone);
        for (auto& [name, numbers] : model) {
          if (!numbers.contains(*gone)) continue;
          EXPECT_EQ(*numbers.begin(), *gone) << "the oldest goes";
          for (const auto& [other, others] : model) EXPECT_LE(others.size(), numbers.size());
          numbers.erase(*gone);
        }
        --all;
      } else if (random() % 9 == 0) {
        const Strangers::Number old = 1 + random() % number;
        strangers.remove(old);
        for (auto& [name, numbers] : model) all -= numbers.erase(old);
      }
      ASSERT_EQ(strangers.size(), all);
      ASSERT_LE(all, Strangers::most);
    }
  }
}

TEST(LineLimit, SaysWhatItLeftOut) {
  LineLimit line_limit;
  const Time start = Time{} + std::chrono::hours{1};
  for (int i = 0; i < LineLimit::most; ++i) EXPECT_EQ(line_limit.pass("refused", start), "refused");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(line_limit.pass("refused", start + std::chrono::seconds{59}), std::nullopt);
  EXPECT_EQ(line_limit.pass("refused", start + std::chrono::seconds{60}),
            "refused (1000 such lines were left out before)");
  EXPECT_EQ(line_limit.pass("refused", start + std::chrono::seconds{61}), "refused");
}

}  // namespace
}  // namespace hocket::server
