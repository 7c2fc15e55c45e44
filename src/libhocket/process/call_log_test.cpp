#include "process/call_log.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

constexpr std::size_t header_bytes = 64;

// Runs `work` in a child with a log, since a process has one log for its life. Returns the bytes of the log's file.
template <class Work>
std::vector<char> log_of(Work work) {
  std::string name = std::filesystem::temp_directory_path() / "hocket-call-log-XXXXXX";
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool begun = call_log::begin(name, node_now());
    if (begun) work();
    call_log::end(1, 4, false);
    _exit(begun ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::ifstream file(name + "/" + std::to_string(child) + ".calls", std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove_all(name);
  return bytes;
}

LoggedCall call_at(const std::vector<char>& bytes, std::size_t number) {
  LoggedCall call;
  std::memcpy(&call, bytes.data() + header_bytes + number * sizeof call, sizeof call);
  return call;
}

TEST(CallLog, HasEachCallWithItsTimesAndRoutine) {
  const std::vector<char> bytes = log_of([] {
    LoggedCall call;
    call.kind = CallKind::write;
    call.bytes = 4096;
    call.file = call_log::file_number("a");
    call_log::add("MPI_File_write_at", call_log::moment(), call);
  });
  ASSERT_EQ(bytes.size(), header_bytes + sizeof(LoggedCall));
  EXPECT_EQ(std::memcmp(bytes.data(), "hkcalls2", 8), 0);
  const LoggedCall call = call_at(bytes, 0);
  EXPECT_STREQ(call.routine.data(), "MPI_File_write_at");
  EXPECT_EQ(call.bytes, 4096);
  EXPECT_EQ(call.kind, CallKind::write);
  EXPECT_NE(call.file, 0U);
  EXPECT_LE(0, call.start_ns);
  EXPECT_LE(call.start_ns, call.end_ns);
  EXPECT_LE(call.cpu_ns, call.cpu_end_ns);
}

TEST(CallLog, LosesNoCallOfSeveralThreads) {
  constexpr int threads = 4;
  constexpr int calls = 1000;
  const std::vector<char> bytes = log_of([] {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i)
      running.emplace_back([] {
        for (int n = 0; n < calls; ++n) call_log::add("MPI_Send", call_log::moment(), {});
      });
    for (std::thread& one : running) one.join();
  });
  ASSERT_EQ(bytes.size(), header_bytes + std::size_t{threads} * calls * sizeof(LoggedCall));
  for (std::size_t n = 0; n < std::size_t{threads} * calls; ++n)
    ASSERT_STREQ(call_at(bytes, n).routine.data(), "MPI_Send") << "call " << n;
}

TEST(CallLog, KeepsNothingOfACallThatBeganBeforeIt) {
  const call_log::CallStart before = call_log::moment();
  const std::vector<char> bytes = log_of([&] { call_log::add("MPI_Send", before, {}); });
  EXPECT_EQ(bytes.size(), header_bytes);
}

TEST(CallLog, NamesOfFilesHaveTheSameNumberEverywhere) {
  EXPECT_EQ(call_log::file_number("a"), call_log::file_number("a"));
  EXPECT_NE(call_log::file_number("a"), call_log::file_number("b"));
  EXPECT_NE(call_log::file_number(""), 0U);
}

}  // namespace
}  // namespace hocket::runtime
