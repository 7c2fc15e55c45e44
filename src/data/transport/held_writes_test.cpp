#include "transport/held_writes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/fnv.hpp"
#include "transport/held_view.hpp"

namespace hocket::transport {
namespace {

using namespace std::chrono_literals;
using HeldFile = HeldTable::HeldFile;

class HeldFilesOfServers : public ::testing::Test {
 protected:
  HeldFilesOfServers() { view.attach(directory); }
  ~HeldFilesOfServers() override { std::filesystem::remove_all(directory); }

  std::unique_ptr<HeldWrites> server(std::string_view name) {
    auto made = HeldWrites::in(directory, name);
    EXPECT_TRUE(made) << made.error().text;
    return std::move(made).value();
  }
  // Returns how long the view waits for the file.
  Duration wait(FileKey file) {
    const Time began = node_now();
    EXPECT_TRUE(view.await(file));
    return node_now() - began;
  }

  const std::string directory = [] {
    std::string name = std::filesystem::temp_directory_path() / "hocket-held-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }();
  HeldView view;
};

TEST_F(HeldFilesOfServers, AreSeenFromEnteringToLeaving) {
  EXPECT_FALSE(view.any());
  const auto one = server("s1");
  EXPECT_FALSE(view.any());
  HeldFile* const file = one->enter(7, 1);
  ASSERT_NE(file, nullptr);
  EXPECT_TRUE(view.any());
  EXPECT_LT(wait(9), 5s);  // another file
  std::thread later{[&] {
    std::this_thread::sleep_for(50ms);
    one->leave(*file);
  }};
  EXPECT_GE(wait(7), 40ms);
  later.join();
  EXPECT_FALSE(view.any());
}

TEST_F(HeldFilesOfServers, OnlyWhatWasHeldBeforeIsAwaited) {
  const auto one = server("s1");
  HeldFile* const file = one->enter(7, 1);
  HeldWrites::acknowledge(*file, 3);
  std::atomic<bool> ends = false;
  std::thread writer{[&] {
    // The server never has stored all, but stores what was held before.
    for (std::uint64_t ticket = 4; !ends; ++ticket) {
      HeldWrites::acknowledge(*file, ticket + 1);
      HeldWrites::settle(*file, ticket);
      std::this_thread::sleep_for(1ms);
    }
  }};
  EXPECT_LT(wait(7), 20s);
  ends = true;
  writer.join();
}

TEST_F(HeldFilesOfServers, AllServersOfAFileAreAwaitedButThoseThatMayHoldIt) {
  const auto one = server("s1"), other = server("s2");
  HeldFile* const first = one->enter(7, 1);
  HeldFile* const second = other->enter(7, 1);
  std::thread later{[&] {
    one->leave(*first);
    std::this_thread::sleep_for(50ms);
    other->leave(*second);
  }};
  EXPECT_GE(wait(7), 40ms);
  later.join();
  HeldFile* const third = other->enter(7, 2);
  EXPECT_TRUE(view.await(7, [](std::uint64_t name) { return name == fnv1a("s2"); }));
  other->leave(*third);
}

TEST_F(HeldFilesOfServers, AKilledServerIsNotWaitedForAndItsRowIsFree) {
  const pid_t child = fork();
  if (child == 0) {
    const auto killed = HeldWrites::in(directory, "s1");
    if (!killed || killed.value()->enter(7, 1) == nullptr) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(view.any());
  EXPECT_LT(wait(7), 20s);
  EXPECT_FALSE(view.any());
  EXPECT_LT(wait(7), 20s);
}

TEST_F(HeldFilesOfServers, ANewServerFreesWhatAKilledOneLeft) {
  if (const pid_t child = fork(); child == 0) {
    const auto killed = HeldWrites::in(directory, "s1");
    if (killed) killed.value()->enter(7, 1);
    kill(getpid(), SIGKILL);
  } else {
    waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(view.any());
  const auto next = server("s1");
  EXPECT_FALSE(view.any());
}

TEST_F(HeldFilesOfServers, AFullBucketAndTooManyServersAreRefused) {
  std::vector<std::unique_ptr<HeldWrites>> servers;
  for (std::size_t i = 0; i < HeldTable::most_servers; ++i) servers.push_back(server("s"));
  EXPECT_FALSE(HeldWrites::in(directory, "more"));
  const FileKey file = key_of(1, 2);
  std::vector<HeldFile*> entries;
  while (HeldFile* entry = servers[entries.size()]->enter(file, 1)) entries.push_back(entry);
  EXPECT_EQ(entries.size(), HeldTable::bucket_files);
  servers[3]->leave(*entries[3]);
  EXPECT_NE(servers[20]->enter(file, 1), nullptr);
}

// A real file system numbers its files one after the other.
TEST_F(HeldFilesOfServers, BucketsFillEvenly) {
  const auto one = server("s1");
  int entered = 0;
  for (ino_t inode = 1000; inode < 1512; ++inode) entered += one->enter(key_of(42, inode), 1) != nullptr;
  EXPECT_GT(entered, 500) << "of 512, half of the table";
}

TEST_F(HeldFilesOfServers, AStrangersTableIsNotUsed) {
  const std::string path = held_table_path(directory);
  std::filesystem::permissions(path, std::filesystem::perms::all);
  HeldView other;
  other.attach(directory);
  const auto one = server("s1");
  ASSERT_NE(one->enter(7, 1), nullptr);
  EXPECT_TRUE(view.any());
  EXPECT_FALSE(other.any());
}

// Servers hold and store writes at random, as a model of tickets says. Whatever the view does not wait for is stored.
TEST_F(HeldFilesOfServers, NothingHeldIsEverMissed) {
  struct ModelFile {
    HeldFile* entry = nullptr;
    std::uint64_t acknowledged = 0, settled = 0;
  };
  std::vector<std::unique_ptr<HeldWrites>> servers;
  for (const char* name : {"s1", "s2", "s3"}) servers.push_back(server(name));
  std::map<std::pair<std::size_t, FileKey>, ModelFile> model;
  std::mt19937_64 random{1};
  std::uint64_t ticket = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t who = random() % servers.size();
    const FileKey key = key_of(1, random() % 5);
    ModelFile& file = model[{who, key}];
    if (random() % 2 == 0) {
      file.acknowledged = ++ticket;
      if (file.entry == nullptr) file.settled = ticket - 1;
      if (file.entry == nullptr)
        file.entry = servers[who]->enter(key, ticket);
      else
        HeldWrites::acknowledge(*file.entry, ticket);
      ASSERT_NE(file.entry, nullptr);
    } else if (file.entry != nullptr && random() % 3 != 0) {
      file.settled = file.acknowledged - random() % 2;
      if (file.settled == file.acknowledged)
        servers[who]->leave(*std::exchange(file.entry, nullptr));
      else
        HeldWrites::settle(*file.entry, file.settled);
    }
    const auto holds = [](const auto& one) { return one.second.entry != nullptr; };
    const bool any = std::any_of(model.begin(), model.end(), holds);
    ASSERT_EQ(view.any(), any);
    bool held = false;
    for (std::size_t i = 0; i < servers.size(); ++i) held = held || model[{i, key}].entry != nullptr;
    if (held) continue;
    ASSERT_LT(wait(key), 20s);
  }
}

}  // namespace
}  // namespace hocket::transport
