#include "intercept/targets.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <string>
#include <thread>
#include <vector>

namespace hocket::runtime::posix {
namespace {

TEST(Targets, AreMadeOnceForEachDevice) {
  static constinit Targets targets;
  DeviceTarget& first = targets.of(makedev(8, 1));
  DeviceTarget& second = targets.of(makedev(0, 23));
  EXPECT_EQ(first.name, target_of(makedev(8, 1)));
  EXPECT_EQ(second.name, target_of(makedev(0, 23)));
  EXPECT_EQ(first.burst, nullptr);
  EXPECT_EQ(&targets.of(makedev(8, 1)), &first);
  EXPECT_EQ(&targets.of(makedev(0, 23)), &second);
}

TEST(Targets, OfOneDeviceDifferByTheirParts) {
  static constinit Targets targets;
  const DeviceTarget& device = targets.of(makedev(8, 1), true);
  DeviceTarget& first = targets.at(device, {.names = "ost1"});
  DeviceTarget& second = targets.at(device, {.names = "ost2"});
  DeviceTarget& whole = targets.at(device, {});
  EXPECT_EQ(&targets.at(device, {.names = "ost1"}), &first);
  EXPECT_EQ(targets.find(second.place), &second);
  EXPECT_EQ(targets.find(whole.place), &whole);
  EXPECT_EQ(second.name, device.name);
  EXPECT_TRUE(targets.find(makedev(8, 1))->tells_layouts);
  EXPECT_FALSE(first.tells_layouts || whole.tells_layouts);
  for (int i = 0; i < 200; ++i) {
    const DeviceTarget& one = targets.at(device, {.names = "other" + std::to_string(i)});
    if (i > 100) {
      EXPECT_EQ(&one, &whole) << "a process looks through few sets of parts";
    }
  }
}

TEST(Targets, AreThereForThreadsAtOnce) {
  static constinit Targets targets;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (unsigned device = 0; device < 200; ++device) {
        DeviceTarget& target = targets.of(makedev(1, device));
        EXPECT_EQ(target.place, makedev(1, device));
        EXPECT_EQ(target.name, target_of(makedev(1, device)));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hocket::runtime::posix
