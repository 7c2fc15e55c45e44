#include "daemon/profile_worker.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hocket::daemon {
namespace {

constexpr int most_ms = 60'000;

class ProfileWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-profiles-XXXXXX";
    directory_ = mkdtemp(name.data());
    program_ = directory_ / "solver";
    std::ofstream{program_} << "abc";
    store_ = directory_ / "profiles.db";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static ProfileWorker::ProfileAnswer answer_of(ProfileWorker& worker) {
    pollfd answered{worker.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&answered, 1, most_ms), 1);
    auto answers = worker.take();
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? ProfileWorker::ProfileAnswer{} : std::move(answers.front());
  }
  static event::Profile point(std::int64_t processes, double iteration_s) {
    event::Profile point;
    point.processes = processes;
    point.iteration_s = iteration_s;
    point.samples = 3;
    return point;
  }

  std::filesystem::path directory_, program_, store_;
};

TEST_F(ProfileWorkerTest, FindsWhatItHasStored) {
  ProfileWorker worker{store_};
  worker.put(program_, "mpich", {point(2, 0.5)}, 1000);
  const auto stored = answer_of(worker);
  EXPECT_FALSE(stored.app);
  EXPECT_EQ(stored.error, "");
  worker.find(program_, AppId{7});
  const auto found = answer_of(worker);
  EXPECT_EQ(found.app, AppId{7});
  ASSERT_EQ(found.points.size(), 1U);
  EXPECT_EQ(found.points[0].app, AppId{7});
  EXPECT_EQ(found.points[0].iteration_s, 0.5);
}

TEST_F(ProfileWorkerTest, ProgramsOfOtherNodesAreKnownByTheFingerprintThatTheseTell) {
  ProfileWorker there{""};  // an agent has no store
  there.fingerprint(program_, AppId{7});
  const auto told = answer_of(there);
  EXPECT_EQ(told.app, AppId{7});
  EXPECT_EQ(told.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ProfileWorker worker{store_};
  const std::string elsewhere = "/only/on/that/node/solver";
  worker.put(elsewhere, "mpich", {point(2, 0.5)}, 1000, told.sha256);
  EXPECT_EQ(answer_of(worker).error, "");
  worker.find(elsewhere, AppId{7}, told.sha256);
  EXPECT_EQ(answer_of(worker).points.size(), 1U);
  worker.find(elsewhere, AppId{7}, std::string(64, '0'));
  EXPECT_TRUE(answer_of(worker).points.empty()) << "another program of that name";
  there.fingerprint(elsewhere, AppId{7});
  EXPECT_EQ(answer_of(there).sha256, "");
}

TEST_F(ProfileWorkerTest, KeepsNobodyWaitingWhileItReadsALargeProgram) {
  ProfileWorker worker{store_};
  worker.put(program_, "mpich", {point(2, 0.5)}, 1000);
  answer_of(worker);
  std::filesystem::resize_file(program_, std::uintmax_t{1} << 30U);
  worker.find(program_, AppId{7});
  EXPECT_TRUE(worker.take().empty()) << "1 GiB takes longer than that to read";
  EXPECT_TRUE(answer_of(worker).points.empty()) << "it is another program";
}

TEST_F(ProfileWorkerTest, StoresWhatIsLeftBeforeItEnds) {
  {
    ProfileWorker worker{store_};
    worker.find(program_, AppId{7});
    worker.put(program_, "mpich", {point(4, 0.25)}, 1000);
  }
  EXPECT_EQ(ProfileStore{store_}.find(program_, AppId{7}).value().size(), 1U);
}

TEST_F(ProfileWorkerTest, TellsWhyAStoreIsUnusable) {
  std::ofstream{store_} << "no database";
  ProfileWorker worker{store_};
  worker.find(program_, AppId{7});
  EXPECT_NE(answer_of(worker).error.find("continuing without profiles"), std::string::npos);
}

TEST_F(ProfileWorkerTest, DoesNothingWithoutAStore) {
  ProfileWorker worker{""};
  worker.find(program_, AppId{7});
  worker.put(program_, "mpich", {point(4, 0.25)}, 1000);
  pollfd answered{worker.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&answered, 1, 20), 0);
}

}  // namespace
}  // namespace hocket::daemon
