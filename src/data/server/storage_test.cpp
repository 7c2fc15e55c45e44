#include "server/storage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace hocket::server {
namespace {

class Storage : public ::testing::Test {
 protected:
  Storage() : scratch_(64) {
    std::string name = "/tmp/hocket-storage-XXXXXX";
    root_ = mkdtemp(name.data());
    directory_ = Fd{open(root_.c_str(), O_PATH | O_DIRECTORY)};
    file_ = Fd{open((root_ + "/file").c_str(), O_RDWR | O_CREAT, 0600)};
  }
  ~Storage() override {
    const int done = std::system(("rm -rf " + root_).c_str());
    EXPECT_EQ(done, 0);
  }

  std::string contents() const {
    std::string text(4096, '\0');
    const ssize_t n = pread(file_.get(), text.data(), text.size(), 0);
    return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }

  // Carries out all requests of the scheduler. Returns the outcomes by ticket, from 1 on.
  std::vector<AccessOutcome> drain(Scheduler& scheduler, std::vector<std::string>& data) {
    std::vector<AccessOutcome> outcomes(data.size());
    while (auto batch = scheduler.next()) {
      std::vector<std::byte*> memory;
      for (const std::uint64_t ticket : batch->tickets) {
        memory.push_back(reinterpret_cast<std::byte*>(data[ticket - 1].data()));
      }
      const auto done = carry_out(*batch, memory, file_.get(), scratch_);
      for (std::size_t i = 0; i < done.size(); ++i) outcomes[batch->tickets[i] - 1] = done[i];
      scheduler.done(*batch);
    }
    return outcomes;
  }

  std::string root_;
  Fd directory_;
  Fd file_;
  std::vector<std::byte> scratch_;  // small, so that an extent needs several buffers
};

TEST_F(Storage, OpensNothingOutsideOfTheDirectory) {
  ASSERT_EQ(symlink("/etc/passwd", (root_ + "/out").c_str()), 0);
  ASSERT_EQ(symlink("file", (root_ + "/in").c_str()), 0);
  ASSERT_EQ(mkdir((root_ + "/below").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  const auto error = [&](const char* path) { return open_beneath(directory_.get(), path, O_RDONLY).error; };
  EXPECT_EQ(error("file"), 0);
  EXPECT_EQ(error("in"), 0);
  EXPECT_EQ(error("below/../file"), 0);
  EXPECT_EQ(error("out"), EXDEV);
  EXPECT_EQ(error("../file"), EXDEV);
  EXPECT_EQ(error("/etc/passwd"), EXDEV);
  EXPECT_EQ(error("below/../../x"), EXDEV);
  EXPECT_EQ(error("none"), ENOENT);
  EXPECT_EQ(error("below"), EINVAL);
  EXPECT_EQ(error("fifo"), EINVAL);
}

TEST_F(Storage, AReadGivesWhatIsBeforeTheEndOfTheFile) {
  ASSERT_EQ(pwrite(file_.get(), "0123456789", 10, 0), 10);
  Scheduler scheduler{{}};
  std::vector<std::string> data{"....", "......", "...."};
  scheduler.add({1, 1, false, {{0, 4}}});
  scheduler.add({2, 1, false, {{2, 2}, {8, 4}}});
  scheduler.add({3, 1, false, {{100, 4}}});
  const auto outcomes = drain(scheduler, data);
  EXPECT_EQ(data, (std::vector<std::string>{"0123", "2389..", "...."}));
  EXPECT_EQ(outcomes[0].bytes, 4);
  EXPECT_EQ(outcomes[1].bytes, 4);
  EXPECT_EQ(outcomes[2].bytes, 0);
  for (const AccessOutcome& outcome : outcomes) EXPECT_EQ(outcome.error, 0);
}

// A limit on the file size stands in for a full disk: writes fail at a known offset.
TEST_F(Storage, AnErrorConcernsThoseWhoseBytesItIsAbout) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limited{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  Scheduler scheduler{{}};
  std::vector<std::string> data{std::string(90, 'a'), std::string(20, 'b'), std::string(20, 'c'), std::string(10, 'd')};
  scheduler.add({1, 1, true, {{0, 90}}});
  scheduler.add({2, 1, true, {{90, 20}}});
  scheduler.add({3, 1, true, {{110, 20}}});
  scheduler.add({4, 1, true, {{10'000, 10}}});
  const auto outcomes = drain(scheduler, data);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(outcomes[0].error, 0);
  EXPECT_EQ(outcomes[0].bytes, 90);
  EXPECT_EQ(outcomes[1].error, EFBIG);
  EXPECT_EQ(outcomes[2].error, EFBIG);
  EXPECT_EQ(outcomes[3].error, EFBIG);
  EXPECT_EQ(contents().substr(0, 100), std::string(90, 'a') + std::string(10, 'b'));
}

TEST_F(Storage, RandomBatchesLeaveTheBytesOfAModel) {
  std::mt19937_64 random{11};
  ASSERT_EQ(ftruncate(file_.get(), 3000), 0);  // else reads at the end would depend on the order
  for (int round = 0; round < 200; ++round) {
    Scheduler scheduler{{.merges = round % 4 != 0, .most_read_gap = 5}};
    std::string model = contents();
    std::vector<std::string> data;
    std::vector<std::string> expected;
    for (std::uint64_t ticket = 1; ticket <= 30; ++ticket) {
      FileRequest request{ticket, 1, random() % 2 == 0, {}};
      std::int64_t at = static_cast<std::int64_t>(random() % 900);
      std::string own;
      std::string wanted;
      for (std::uint64_t runs = 1 + random() % 5; runs > 0; --runs) {
        const auto length = static_cast<std::int64_t>(1 + random() % (random() % 10 == 0 ? 200 : 9));
        request.runs.push_back({at, length});
        for (std::int64_t i = at; i < at + length; ++i) {
          const auto place = static_cast<std::size_t>(i);
          own.push_back(request.writes ? static_cast<char>('a' + random() % 26) : '.');
          if (request.writes) {
            if (model.size() <= place) model.resize(place + 1, '\0');
            model[place] = own.back();
          }
          wanted.push_back(request.writes ? own.back() : place < model.size() ? model[place] : '.');
        }
        at += length + 1 + static_cast<std::int64_t>(random() % 12);
      }
      data.push_back(own);
      expected.push_back(wanted);
      scheduler.add(request);
    }
    for (const AccessOutcome& outcome : drain(scheduler, data)) ASSERT_EQ(outcome.error, 0);
    ASSERT_EQ(contents(), model) << "round " << round;
    ASSERT_EQ(data, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace hocket::server
