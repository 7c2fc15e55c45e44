#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "spank/agreement.h"
#include "spank/program_mpi.h"
#include "spank/step_environment.h"
}

namespace hocket {
namespace {

report healthy(const std::string& node) {
  report one{};
  one.has_library = one.has_daemon = true;
  one.checksum = 7;
  node.copy(one.node, sizeof one.node - 1);
  return one;
}

report without_library(const std::string& node, const std::string& reason) {
  report one = healthy(node);
  one.has_library = false;
  reason.copy(one.reason, sizeof one.reason - 1);
  return one;
}

std::string taken(char* text) {
  const std::unique_ptr<char, decltype(&std::free)> own(text, &std::free);
  return text ? text : "(null)";
}

// ---- the agreement ----------------------------------------------------------------------------------------------

TEST(Agreement, IsReachedWhenAllNodesHaveTheSameLibrary) {
  agreement all{};
  all.nodes = 3;
  for (const char* const node : {"a", "b", "c"}) {
    EXPECT_FALSE(agreement_is_over(&all));
    const report one = healthy(node);
    agreement_take(&all, &one);
  }
  EXPECT_TRUE(agreement_is_over(&all));
  EXPECT_TRUE(agreement_answer(&all));
  EXPECT_STREQ(all.reason, "");
}

TEST(Agreement, IsRefusedByOneNode) {
  agreement all{};
  all.nodes = 3;
  for (const report& one : {healthy("a"), without_library("b", "there is none")}) agreement_take(&all, &one);
  EXPECT_TRUE(agreement_is_over(&all));  // nobody waits for the third node
  EXPECT_FALSE(agreement_answer(&all));
  EXPECT_STREQ(all.reason, "b: there is none");
}

TEST(Agreement, IsRefusedQuietlyWithoutAReasonOrADaemon) {
  agreement all{};
  all.nodes = 1;
  const report none = without_library("a", "");
  agreement_take(&all, &none);
  EXPECT_FALSE(agreement_answer(&all));
  EXPECT_STREQ(all.reason, "");

  agreement idle{};
  idle.nodes = 1;
  report alone = healthy("a");
  alone.has_daemon = false;
  agreement_take(&idle, &alone);
  EXPECT_TRUE(agreement_is_over(&idle));
  EXPECT_FALSE(agreement_answer(&idle));
  EXPECT_STREQ(idle.reason, "");
}

TEST(Agreement, IsRefusedForTwoVersions) {
  agreement all{};
  all.nodes = 2;
  report other = healthy("b");
  other.checksum = 8;
  for (const report& one : {healthy("a"), other}) agreement_take(&all, &one);
  EXPECT_FALSE(agreement_answer(&all));
  EXPECT_STREQ(all.reason, "a and b have different versions of libhocket");
}

TEST(Agreement, IsRefusedAtTheTimeLimit) {
  agreement all{};
  all.nodes = 2;
  const report one = healthy("a");
  agreement_take(&all, &one);
  EXPECT_FALSE(agreement_answer(&all));
  EXPECT_NE(std::string(all.reason).find("1 of 2 nodes did not say"), std::string::npos) << all.reason;
}

TEST(Agreement, ReadsWhatItWrites) {
  for (const report& one : {healthy("node-1"), without_library("n", "there is no /usr/lib/x y.so"), healthy("")}) {
    char line[agreement_line_bytes];
    agreement_write(&one, "0123456789abcdef", line);
    report read{};
    ASSERT_TRUE(agreement_read(line, "0123456789abcdef", &read)) << line;
    EXPECT_EQ(read.has_library, one.has_library);
    EXPECT_EQ(read.has_daemon, one.has_daemon);
    EXPECT_EQ(read.checksum, one.checksum);
    EXPECT_STREQ(read.reason, one.reason);
    EXPECT_STREQ(read.node, *one.node ? one.node : "?");
    EXPECT_FALSE(agreement_read(line, "0123456789abcdee", &read));
  }
}

TEST(Agreement, ReadsNoMutatedLineBeyondItsEnd) {
  const char* const configured = std::getenv("HOCKET_MUTATIONS");
  const int rounds = configured ? std::atoi(configured) : 20'000;
  std::mt19937 random(27);
  for (int round = 0; round < rounds; ++round) {
    const report one = without_library("node", "there is none");
    char line[agreement_line_bytes] = "";
    agreement_write(&one, "0123456789abcdef", line);
    for (int i = 0; i < 3; ++i) line[random() % 60] = static_cast<char>(random() % 256);
    report read{};
    if (agreement_read(line, "0123456789abcdef", &read)) {
      EXPECT_LT(std::string(read.node).size(), sizeof read.node);
      EXPECT_LT(std::string(read.reason).size(), sizeof read.reason);
    }
  }
}

// ---- its sockets --------------------------------------------------------------------------------------------------

std::atomic<int> lines_said = 0;
void count_lines(const char*) { ++lines_said; }

std::vector<int> ask_all(const std::string& place, const std::vector<report>& reports, int limit_s) {
  std::vector<std::future<int>> asked;
  asked.reserve(reports.size());
  for (const report& one : reports)
    asked.push_back(std::async(std::launch::async, [&place, &one, limit_s] {
      return agreement_ask("127.0.0.1", place.c_str(), &one, limit_s);
    }));
  std::vector<int> answers;
  for (auto& one : asked) answers.push_back(one.get());
  return answers;
}

TEST(AgreementOfNodes, GivesAllTheSameAnswer) {
  for (const bool agree : {true, false}) {
    lines_said = 0;
    char place[agreement_place_bytes];
    ASSERT_TRUE(agreement_begin(9, 0, 0, 5, count_lines, place));
    std::vector<report> reports(8, healthy("a"));
    reports.push_back(agree ? healthy("z") : without_library("z", "there is none"));
    EXPECT_EQ(ask_all(place, reports, 5), std::vector<int>(9, agree ? 1 : 0));
    EXPECT_EQ(lines_said, agree ? 0 : 1);
  }
}

TEST(AgreementOfNodes, DoesNotWaitForANodeThatIsSilent) {
  lines_said = 0;
  char place[agreement_place_bytes];
  ASSERT_TRUE(agreement_begin(3, 0, 0, 1, count_lines, place));
  EXPECT_EQ(ask_all(place, std::vector<report>(2, healthy("a")), 1), std::vector<int>(2, 0));
  EXPECT_EQ(lines_said, 1);
  const report late = healthy("late");
  EXPECT_EQ(agreement_ask("127.0.0.1", place, &late, 1), 0) << "the others have begun without libhocket";
}

TEST(AgreementOfNodes, TakesNoReportOfAStranger) {
  char place[agreement_place_bytes];
  ASSERT_TRUE(agreement_begin(2, 0, 0, 5, count_lines, place));
  const std::string port = std::string(place).substr(0, std::string(place).find(' '));
  const report one = healthy("a");
  EXPECT_EQ(agreement_ask("127.0.0.1", (port + " 0123456789abcdef").c_str(), &one, 1), -1);
  EXPECT_EQ(ask_all(place, std::vector<report>(2, one), 5), std::vector<int>(2, 1));
}

TEST(AgreementOfNodes, IsRefusedIfANodeWaitsNoLonger) {
  lines_said = 0;
  char place[agreement_place_bytes];
  ASSERT_TRUE(agreement_begin(2, 0, 0, 5, count_lines, place));
  char line[agreement_line_bytes];
  const report one = healthy("a");
  agreement_write(&one, std::string(place).substr(std::string(place).find(' ') + 1).c_str(), line);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(place)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(send(fd, line, std::strlen(line), 0), static_cast<ssize_t>(std::strlen(line)));
  close(fd);
  EXPECT_EQ(agreement_ask("127.0.0.1", place, &one, 5), 0);
  EXPECT_EQ(lines_said, 1);
}

TEST(AgreementOfNodes, SaysWhenNobodyListens) {
  const report one = healthy("a");
  EXPECT_EQ(agreement_ask("127.0.0.1", "1 0123456789abcdef", &one, 1), -1);
  EXPECT_EQ(agreement_ask("127.0.0.1", "", &one, 1), -1);
  EXPECT_EQ(agreement_ask("no.such.host.invalid", "1 0123456789abcdef", &one, 1), -1);
}

TEST(AgreementOfNodes, UsesThePortsThatAreAllowed) {
  char first[agreement_place_bytes];
  ASSERT_TRUE(agreement_begin(1, 0, 0, 5, count_lines, first));
  const unsigned taken_port = static_cast<unsigned>(std::atoi(first));
  char second[agreement_place_bytes];
  EXPECT_FALSE(agreement_begin(1, taken_port, taken_port, 5, count_lines, second)) << "the port is taken";
  const report one = healthy("a");
  EXPECT_EQ(agreement_ask("127.0.0.1", first, &one, 5), 1);
}

// ---- the program --------------------------------------------------------------------------------------------------

class Programs : public testing::Test {
 protected:
  Programs() {
    char name[] = "/tmp/hocket-spank-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~Programs() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << bytes;
    std::filesystem::permissions(directory_ + "/" + name, std::filesystem::perms{0755});
    return directory_ + "/" + name;
  }

  program examine(std::vector<std::string> words) {
    kept_ = std::move(words);
    std::vector<char*> pointers;
    for (std::string& word : kept_) pointers.push_back(word.data());
    return examine_program(static_cast<int>(pointers.size()), pointers.data(), directory_.c_str(), directory_.c_str());
  }

  std::string directory_;
  std::vector<std::string> kept_;
};

std::string this_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Programs, AreFoundAsExecvpDoes) {
  write("solver", this_program());
  for (const char* const word : {"solver", "./solver"}) {
    const program found = examine({word, "-x"});
    EXPECT_STREQ(found.words_name, "solver");
    EXPECT_FALSE(found.is_static);
    EXPECT_EQ(found.mpi, mpi_unknown);
  }
  EXPECT_STREQ(examine({"absent"}).words_name, "program");
  EXPECT_STREQ(examine({}).words_name, "program");
}

TEST_F(Programs, HaveTheNameOfTheScriptOfPython) {
  write("python3", this_program());
  EXPECT_STREQ(examine({"python3", "-u", "dir/solve.py", "x"}).words_name, "solve.py");
  EXPECT_STREQ(examine({"python3", "-m", "solver"}).words_name, "solver");
  EXPECT_STREQ(examine({"python3"}).words_name, "python3");
}

TEST_F(Programs, AreNamedBehindWrappersAndMayBeTools) {
  for (const char* const name : {"env", "bash", "solver", "hydra_pmi_proxy"}) write(name, this_program());
  EXPECT_STREQ(examine({"env", "A=1", "solver"}).words_name, "solver");
  EXPECT_TRUE(examine({"bash"}).is_tool);
  EXPECT_TRUE(examine({"hydra_pmi_proxy", "--x"}).is_tool);
  EXPECT_FALSE(examine({"bash", "-c", "solver"}).is_tool);
  EXPECT_FALSE(examine({"solver"}).is_tool);
}

TEST_F(Programs, MayBeBroken) {
  const std::string whole = this_program();
  std::mt19937 random(27);
  for (int round = 0; round < 300; ++round) {
    std::string broken = whole.substr(0, 4096);
    for (int i = 0; i < 8; ++i) broken[random() % 1024] = static_cast<char>(random() % 256);
    broken.resize(random() % broken.size());
    mpi_kind mpi = mpi_unknown;
    bool is_static = false;
    read_program(write("broken", broken).c_str(), &mpi, &is_static);
    checksum_of_library((directory_ + "/broken").c_str());
    EXPECT_EQ(mpi, mpi_unknown);
  }
  mpi_kind mpi = mpi_unknown;
  bool is_static = false;
  EXPECT_FALSE(read_program(directory_.c_str(), &mpi, &is_static));
  EXPECT_FALSE(read_program((directory_ + "/absent").c_str(), &mpi, &is_static));
}

TEST_F(Programs, DifferInTheirChecksums) {
  const auto sum = [&](const std::string& bytes) { return checksum_of_library(write("library", bytes).c_str()); };
  EXPECT_EQ(sum("abc"), sum("abc"));
  EXPECT_NE(sum("abc"), sum("abd"));
  EXPECT_NE(sum(""), 0U);
  EXPECT_EQ(checksum_of_library((directory_ + "/absent").c_str()), 0U);
}

TEST_F(Programs, HaveTheChecksumOfTheLinker) {
  std::string bytes = this_program();
  const std::string begin{4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
  const std::size_t at = bytes.find(begin);
  ASSERT_NE(at, std::string::npos) << "the linker makes build ids";
  const auto sum = checksum_of_library(write("library", bytes).c_str());
  EXPECT_EQ(checksum_of_library(write("library", bytes + "debug").c_str()), sum) << "not all of it is read";
  bytes[at + begin.size()] ^= 1;
  EXPECT_NE(checksum_of_library(write("library", bytes).c_str()), sum);
}

TEST(Pmi, SuggestsAnMpi) {
  EXPECT_EQ(mpi_of_pmi("pmi2"), mpi_mpich);
  EXPECT_EQ(mpi_of_pmi("pmix"), mpi_openmpi);
  EXPECT_EQ(mpi_of_pmi("pmix_v4"), mpi_openmpi);
  for (const char* const other : {"none", "", "cray_shasta"}) EXPECT_EQ(mpi_of_pmi(other), mpi_unknown);
  EXPECT_EQ(mpi_of_pmi(nullptr), mpi_unknown);
}

// ---- the environment ------------------------------------------------------------------------------------------------

TEST(StepEnvironment, NamesTheStepAsSqueueDoes) {
  const step_identity plain{.cluster = "c", .job = 1234, .step = 1, .array_job = 0, .array_task = 0, .restarts = 0};
  const step_identity array{.cluster = "c", .job = 1240, .step = 0, .array_job = 1234, .array_task = 7, .restarts = 2};
  EXPECT_EQ(taken(job_of_step(&plain)), "slurm:c:1234.1");
  EXPECT_EQ(taken(job_of_step(&array)), "slurm:c:1240.0:2");
  EXPECT_EQ(taken(name_of_step("solver", &plain)), "solver-1234.1");
  EXPECT_EQ(taken(name_of_step("my solver", &array)), "my_solver-1234_7.0");
  EXPECT_EQ(taken(name_of_step("heat.py", &plain)), "heat-1234.1");
  EXPECT_TRUE(is_job_of_step("slurm:c:1.0"));
  EXPECT_FALSE(is_job_of_step("slurm-node-17-1"));
}

TEST(StepEnvironment, ChangesNothingButItsOwnLibrary) {
  const char* const tools = "/opt/libdarshan.so:/usr/lib/hocket/libhocket-mpich.so libother.so";
  EXPECT_EQ(taken(without_libhocket(tools)), "/opt/libdarshan.so:libother.so");
  EXPECT_EQ(taken(without_libhocket("libhocket-openmpi.so")), "");
  EXPECT_EQ(taken(without_libhocket("/lib/libhocket.so")), "/lib/libhocket.so") << "that one needs no MPI";
  EXPECT_EQ(taken(libhocket_in(tools)), "/usr/lib/hocket/libhocket-mpich.so");
  EXPECT_EQ(taken(libhocket_in("/opt/libdarshan.so")), "(null)");
  EXPECT_EQ(taken(with_libhocket("/l/libhocket-mpich.so", "")), "/l/libhocket-mpich.so");
  EXPECT_EQ(taken(with_libhocket("/l/libhocket-mpich.so", "a.so:b.so")), "/l/libhocket-mpich.so:a.so:b.so");
}

}  // namespace
}  // namespace hocket
