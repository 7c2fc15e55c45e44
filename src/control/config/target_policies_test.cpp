#include "config/target_policies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <fstream>

#include "config/settings.hpp"

namespace hocket::config {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto targets = parse_target_policies(text);
  return targets ? "" : targets.error().text;
}

std::string name_of_root() {
  struct stat status {};
  stat("/", &status);
  return "dev:" + std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
}

TEST(TargetPolicies, APathStandsForItsFileSystem) {
  const auto targets = parse_target_policies("/=fcfs  pool=cost?");
  ASSERT_TRUE(targets.ok()) << targets.error().text;
  ASSERT_EQ(targets.value().size(), 2U);
  EXPECT_EQ(targets.value().at(name_of_root()).policy, &policy::fcfs);
  EXPECT_FALSE(targets.value().at(name_of_root()).allows);
  EXPECT_TRUE(targets.value().at("pool").allows);
  EXPECT_EQ(text_of(targets.value()), name_of_root() + "=fcfs pool=cost?");
  EXPECT_TRUE(parse_target_policies("").value().empty());
}

TEST(TargetPolicies, ARefusalSaysWhatIsWrong) {
  EXPECT_THAT(refusal("/scratch"), HasSubstr("'/scratch' is no policy for a target: write TARGET=POLICY"));
  EXPECT_THAT(refusal("=fcfs"), HasSubstr("write TARGET=POLICY"));
  EXPECT_THAT(refusal("a="), HasSubstr("write TARGET=POLICY"));
  EXPECT_EQ(refusal("/no/such=fcfs"), "'/no/such': No such file or directory");
  EXPECT_THAT(refusal("a=fcsf"), HasSubstr("did you mean 'fcfs'"));
  EXPECT_THAT(refusal("a=phase-shift"), HasSubstr("more than a policy for access"));
  EXPECT_EQ(refusal("a=fcfs a=cost"), "target 'a' is named twice");
  const std::string longest(256, 'x');
  EXPECT_THAT(refusal("x" + longest + "=fcfs"), HasSubstr("has 257 bytes"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += std::to_string(i) + "=fcfs ";
  EXPECT_THAT(refusal(many), HasSubstr("65 targets have policies: at most 64 may"));
}

TEST(TargetPolicies, ComeFromTheFileAndGoToTheTrace) {
  const std::string path = ::testing::TempDir() + "targets.toml";
  std::ofstream(path) << "[coordinator]\ntarget_policies = \"/=fcfs\"\n";
  DaemonSettings settings;
  ASSERT_TRUE(read_file(path, settings).ok());
  EXPECT_EQ(settings.target_policies, name_of_root() + "=fcfs");
  EXPECT_EQ(for_coordinator(settings).targets.at(name_of_root()).policy, &policy::fcfs);
  EXPECT_EQ(for_trace(from_trace(for_trace(settings), 2).value()), for_trace(settings));
  std::ofstream(path) << "[coordinator]\n\ntarget_policies = \"/no/such=fcfs\"\n";
  EXPECT_EQ(read_file(path, settings).error().text,
            path + ":3: coordinator.target_policies: '/no/such': No such file or directory");
}

}  // namespace
}  // namespace hocket::config
