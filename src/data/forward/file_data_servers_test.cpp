#include "forward/file_data_servers.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hocket::forward {
namespace {

using file_system::FileStripes;
using file_system::ServerKind;

constexpr std::int64_t mib = 1 << 20;

// Stands for the file system: the descriptor is the file, and each question is noted.
struct AskedFiles {
  std::vector<int> questions;
  std::vector<FileStripes> answers;  // of the questions, in their order; then none

  FileDataServers::ReadStripes reader() {
    return [this](int descriptor) -> std::optional<FileStripes> {
      questions.push_back(descriptor);
      if (questions.size() > answers.size()) return std::nullopt;
      return answers[questions.size() - 1];
    };
  }
};

TEST(FileDataServers, AsksOnceForEachFile) {
  AskedFiles asked{{}, {{ServerKind::ost, {{0, 100 * mib, mib, {3, 11}}}}, {ServerKind::ost, {{0, 9, 0, {5}}}}}};
  FileDataServers servers(asked.reader());
  EXPECT_EQ(servers.known_at(1, 0), -1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(servers.at(1, 70, i * mib), i % 2 == 0 ? 3 : 11);
  EXPECT_EQ(servers.at(2, 71, 0), 5);
  EXPECT_EQ(servers.known_at(1, mib), 11);
  EXPECT_EQ(asked.questions, (std::vector{70, 71}));
  servers.forget();
  EXPECT_EQ(servers.at(1, 72, 0), -1);
  EXPECT_EQ(asked.questions, (std::vector{70, 71, 72})) << "the file may have been moved";
}

TEST(FileDataServers, AsksAgainForAnExtentThatHadNoneYet) {
  const FileStripes begins{ServerKind::ost, {{0, mib, mib, {3}}, {mib, 9 * mib, 0, {}}}};
  const FileStripes grown{ServerKind::ost, {{0, mib, mib, {3}}, {mib, 9 * mib, mib, {7}}}};
  AskedFiles asked{{}, {begins, begins, grown}};
  FileDataServers servers(asked.reader());
  EXPECT_EQ(servers.at(1, 70, 0), 3);
  EXPECT_EQ(servers.at(1, 70, mib), -1);
  EXPECT_EQ(servers.at(1, 70, 0), 3);
  EXPECT_EQ(servers.at(1, 70, mib), -1) << "no power of two";
  EXPECT_EQ(servers.at(1, 70, mib), 7);
  EXPECT_EQ(servers.at(1, 70, mib), 7);
  EXPECT_EQ(asked.questions.size(), 3U);
}

TEST(FileDataServers, SeldomAsksForAFileThatHasNone) {
  AskedFiles asked;
  FileDataServers servers(asked.reader());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(servers.at(1, 70, 0), -1);
  EXPECT_EQ(asked.questions.size(), 10U);
  AskedFiles on_metadata{{}, {{ServerKind::ost, {{0, 9, 0, {}, true}}}}};
  FileDataServers others(on_metadata.reader());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(others.at(1, 70, 0), -1);
  EXPECT_EQ(on_metadata.questions.size(), 1U);
}

TEST(FileDataServers, AreReadByOneThread) {
  FileDataServers* all = nullptr;
  int questions = 0;
  FileDataServers servers([&](int) -> std::optional<FileStripes> {
    ++questions;
    EXPECT_EQ(all->at(1, 71, 0), -1) << "as another thread would get it";
    return FileStripes{ServerKind::ost, {{0, mib, mib, {3}}}};
  });
  all = &servers;
  EXPECT_EQ(servers.at(1, 70, 0), 3);
  EXPECT_EQ(questions, 1);
}

TEST(FileDataServers, AreNotKnownWithoutAFileSystemThatTells) {
  FileDataServers servers({});
  EXPECT_EQ(servers.at(1, 70, 0), -1);
}

}  // namespace
}  // namespace hocket::forward
