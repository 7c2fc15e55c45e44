#include "config/target_policies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "config/settings.hpp"
#include "file_system/ask_target.hpp"

namespace hocket::config {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto targets = parse_target_policies(text);
  return targets ? "" : targets.error().text;
}

std::string name_of_root() { return file_system::target_of_path("/"); }
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

TEST(TargetPolicies, ADeviceOfThisNodeStandsForItsFileSystem) {
  const std::string name = name_of_root();
  ASSERT_TRUE(name.starts_with("dev:")) << "this test needs / on a local file system";
  const std::string device = name.substr(0, name.find('@'));
  EXPECT_EQ(with_target_names(device + "=fcfs", {}).value(), name + "=fcfs");
  EXPECT_EQ(with_target_names("dev:4095:1=fcfs? pool=cost", {}).value(), "dev:4095:1=fcfs? pool=cost");
  EXPECT_EQ(with_target_names(device + "=fcfs /=cost", {}).error().text, "target '" + name + "' is named twice");
  EXPECT_EQ(with_target_names("/=fcfs", {{"/", "disk"}}).value(), "disk=fcfs");
  DaemonSettings settings;
  settings.target_policies = device + "=fcfs";
  EXPECT_EQ(from_trace(for_trace(settings), 2).value().target_policies, device + "=fcfs") << "an old trace keeps it";
}

}  // namespace
}  // namespace hocket::config
