#include "server/write_back.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hocket::server {
namespace {

TEST(WriteBackErrors, AreToldOnceToEachOpening) {
  WriteBackErrors errors;
  WriteBackErrors::Mark one = errors.mark(), other = errors.mark();
  errors.add(5);
  WriteBackErrors::Mark later = errors.mark();
  EXPECT_EQ(errors.tell(one), 5);
  EXPECT_EQ(errors.tell(one), 0);
  errors.add(28);
  EXPECT_EQ(errors.untold(other), 28) << "the latest";
  EXPECT_EQ(errors.tell(other), 28);
  EXPECT_EQ(errors.tell(one), 28);
  EXPECT_EQ(errors.tell(later), 28);
  EXPECT_EQ(errors.tell(later), 0);
}

// The model keeps a list of untold errors for each opening.
TEST(WriteBackErrorsProperties, NoOpeningMissesOrRepeatsAnError) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random{seed};
    WriteBackErrors errors;
    struct Opening {
      WriteBackErrors::Mark mark;
      std::vector<int> untold;
    };
    std::vector<Opening> openings;
    for (int step = 0; step < 200; ++step) {
      const auto draw = random() % 4;
      if (draw == 0) openings.push_back({errors.mark(), {}});
      if (draw == 1) {
        const int error = 1 + static_cast<int>(random() % 100);
        errors.add(error);
        for (Opening& opening : openings) opening.untold.push_back(error);
      }
      if (draw < 2 || openings.empty()) continue;
      Opening& opening = openings[random() % openings.size()];
      const int expected = opening.untold.empty() ? 0 : opening.untold.back();
      ASSERT_EQ(errors.untold(opening.mark), expected) << "seed " << seed;
      if (draw == 2) continue;
      ASSERT_EQ(errors.tell(opening.mark), expected) << "seed " << seed;
      opening.untold.clear();
    }
  }
}

}  // namespace
}  // namespace hocket::server
