#include "sim/scenario_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "sim/scenario_testing.hpp"

namespace hocket::sim {
namespace {

using testing::read;

const std::string good_scenario = R"(name = "good"
[platform]
nodes = 4
cores_per_node = 36
[[targets]]
name = "gpfs"
bandwidth_bytes_per_s = 2.6e9
[reconfiguration]
fixed_s = 2
[[applications]]
name = "A"
processes = 64
iterations = 4000
iterations_per_phase = 100
curve = [[32, 1.35], [64, 0.68]]
io_bytes = 11.9e9
[coordinator]
policy = "fcfs"
)";

TEST(ScenarioReaderTest, ReadsWhatItIsGiven) {
  const auto plan = read(good_scenario);
  ASSERT_TRUE(plan) << plan.error().text;
  const Scenario& scenario = plan.value().scenario;
  EXPECT_EQ(scenario.name, "good");
  EXPECT_EQ(scenario.reconfiguration.fixed_s, 2);
  ASSERT_EQ(scenario.applications.size(), 1U);
  EXPECT_EQ(scenario.applications[0].target, "gpfs");
  EXPECT_EQ(scenario.applications[0].curve.points().size(), 2U);
  EXPECT_EQ(plan.value().settings.cores, 144);
}

TEST(ScenarioReaderTest, ReadsThePartsOfATarget) {
  std::string text = good_scenario;
  text.replace(text.find("2.6e9"), 5, "2.6e9\nparts = [\"ost0\", \"ost1\", \"ost2\"]");
  text.replace(text.find("processes = 64"), 14, "processes = 64\nparts = [\"ost2\", \"ost0\"]");
  const auto plan = read(text);
  ASSERT_TRUE(plan) << plan.error().text;
  const Scenario& scenario = plan.value().scenario;
  EXPECT_EQ(scenario.targets.at(0).parts.size(), 3U);
  EXPECT_EQ(scenario.applications.at(0).part_numbers, (std::vector<std::size_t>{2, 0}));
}

TEST(ScenarioReaderTest, ReadsHowLongAnApplicationWaitsForCores) {
  EXPECT_EQ(read(good_scenario).value().scenario.applications.at(0).wait_for_cores_s, 0) << "it begins at once";
  std::string text = good_scenario;
  text.replace(text.find("processes = 64"), 14, "processes = 64\nwait_for_cores_s = 60");
  EXPECT_EQ(read(text).value().scenario.applications.at(0).wait_for_cores_s, 60);
  text.replace(text.find("wait_for_cores_s = 60"), 21, "wait_for_cores_s = 4000");
  const auto wrong = read(text);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("wait_for_cores_s"), std::string::npos) << wrong.error().text;
}

TEST(ScenarioReaderTest, ReadsWhereAnApplicationCanBeInterruptedAndHowATargetIsShared) {
  const ApplicationSpec usual = read(good_scenario).value().scenario.applications.at(0);
  EXPECT_EQ(usual.files, 1);
  EXPECT_EQ(usual.grain, Grain::round);
  EXPECT_EQ(usual.round_bytes, 0);
  std::string text = good_scenario;
  text.replace(text.find("processes = 64"), 14,
               "processes = 64\nfiles = 4\ngrain = \"file\"\nround_bytes = 16e6\nio_bandwidth_bytes_per_s = 1e9");
  text.replace(text.find("2.6e9"), 5,
               "2.6e9\nsharing = \"proportional\"\nwrite_cache_bytes = 1e9\nwrite_cache_bytes_per_s = 5e9");
  const auto plan = read(text);
  ASSERT_TRUE(plan) << plan.error().text;
  const ApplicationSpec& spec = plan.value().scenario.applications.at(0);
  EXPECT_EQ(spec.files, 4);
  EXPECT_EQ(spec.grain, Grain::file);
  EXPECT_EQ(spec.round_bytes, 16e6);
  EXPECT_EQ(plan.value().scenario.targets.at(0).sharing, BandwidthSharing::proportional);
  EXPECT_EQ(plan.value().scenario.targets.at(0).cache.bytes, 1e9);
  EXPECT_EQ(plan.value().scenario.targets.at(0).most_bandwidth(), 5e9);
}

TEST(ScenarioReaderTest, ReadsTheIoPhasesOfAPeriod) {
  const ApplicationSpec usual = read(good_scenario).value().scenario.applications.at(0);
  EXPECT_TRUE(usual.phases.empty());
  EXPECT_EQ(usual.phase_gap_s, 0);
  EXPECT_EQ(usual.announces, Announces::exact);
  std::string text = good_scenario;
  text.replace(text.find("io_bytes = 11.9e9"), 17, R"(announces = "wrong"
grain = "operation"
writers = 4
cache_bytes_per_s = 3e9
gap_jitter = 0.2
phases = [
  { after = 0.5, io_bytes = { uniform = [1e8, 2e8] }, operations = 4, operation_gap_s = 0.02 },
  { gap_s = 0.1, io_bytes = { uniform = [1e8, 2e8] }, kind = "read", cached = true },
  { after = 1, io_bytes = 1e8, target = "scratch" },
])");
  text.replace(text.find("[reconfiguration]"), 0, "[[targets]]\nname = \"scratch\"\nbandwidth_bytes_per_s = 1e9\n");
  const auto plan = read(text);
  ASSERT_TRUE(plan) << plan.error().text;
  const ApplicationSpec& spec = plan.value().scenario.applications.at(0);
  EXPECT_EQ(spec.announces, Announces::wrong);
  EXPECT_EQ(spec.grain, Grain::operation);
  EXPECT_EQ(spec.writers, 4);
  EXPECT_EQ(spec.phase_gap_s, 0.1);
  ASSERT_EQ(spec.phases.size(), 3U);
  EXPECT_EQ(spec.phases[0].after, 0.5);
  EXPECT_EQ(spec.phases[0].operations, 4);
  EXPECT_EQ(spec.phases[0].operation_gap_s, 0.02);
  EXPECT_FALSE(spec.phases[0].reads);
  EXPECT_EQ(spec.phases[1].after, 0.5);
  EXPECT_EQ(spec.phases[1].gap_s, 0.1);
  EXPECT_TRUE(spec.phases[1].reads && spec.phases[1].cached);
  EXPECT_NE(spec.phases[0].bytes, spec.phases[1].bytes);
  EXPECT_EQ(spec.phases[1].target, "gpfs");
  EXPECT_EQ(spec.phases[2].target_index, 1U);
}

TEST(ScenarioReaderTest, DrawsTheValuesOfCopiesFromTheSeed) {
  std::string text = good_scenario;
  text.replace(text.find("processes = 64"), 14,
               "count = 50\nprocesses = { power_of_two = [16, 128] }\nstart_s = { uniform = [0, 100] }\n"
               "data_bytes = { lognormal = [1e9, 0.5] }");
  const auto plan = read(text);
  ASSERT_TRUE(plan) << plan.error().text;
  const auto& applications = plan.value().scenario.applications;
  ASSERT_EQ(applications.size(), 50U);
  EXPECT_EQ(applications[0].name, "A");
  EXPECT_EQ(applications[1].name, "A.2");
  std::set<std::int64_t> sizes;
  std::set<double> starts;
  for (const auto& a : applications) {
    sizes.insert(a.processes);
    starts.insert(a.start_s);
    EXPECT_LE(a.start_s, 100);
    EXPECT_GT(a.data_bytes, 0);
  }
  EXPECT_EQ(sizes, (std::set<std::int64_t>{16, 32, 64, 128}));
  EXPECT_EQ(starts.size(), 50U);
}

struct Invalid {
  const char* name;
  const char* replace;  // text of the good scenario that is replaced
  const char* by;
  const char* error;  // part of the error
};

class InvalidScenarios : public ::testing::TestWithParam<Invalid> {};

TEST_P(InvalidScenarios, AreRefusedInOneLineThatNamesFileKeyAndValue) {
  std::string text = good_scenario;
  const std::string replace = GetParam().replace;
  ASSERT_NE(text.find(replace), std::string::npos);
  text.replace(text.find(replace), replace.size(), GetParam().by);
  const auto plan = read(text);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text.find(".toml:"), std::string::npos) << plan.error().text;
  EXPECT_NE(plan.error().text.find(GetParam().error), std::string::npos) << plan.error().text;
  EXPECT_EQ(plan.error().text.find('\n'), std::string::npos);
}

constexpr Invalid invalid[] = {
    {"SyntaxError", "nodes = 4", "nodes = = 4", "toml:3"},
    {"UnknownKey", "iterations_per_phase", "iteration_per_phase", "iterations_per_phase"},
    {"UnknownTable", "[reconfiguration]", "[reconfigration]", "did you mean 'reconfiguration'?"},
    {"UnknownCoordinatorKey", "policy = \"fcfs\"", "polcy = \"fcfs\"", "coordinator.policy"},
    {"UnknownPolicy", "policy = \"fcfs\"", "policy = \"fcsf\"", "fcfs"},
    {"MissingName", "name = \"good\"", "", "name: is missing"},
    {"MissingProcesses", "processes = 64", "", "processes: is missing"},
    {"MissingIterations", "iterations = 4000", "", "iterations: is missing"},
    {"MissingCurve", "curve = [[32, 1.35], [64, 0.68]]", "", "curve: give either"},
    {"NoTargets", "[[targets]]", "[[target]]", "targets"},
    {"NegativeBytes", "io_bytes = 11.9e9", "io_bytes = -1", "io_bytes = -1: give 0 to"},
    {"NegativeTime", "fixed_s = 2", "fixed_s = -2", "fixed_s = -2"},
    {"NoBandwidth", "2.6e9", "0", "bandwidth_bytes_per_s = 0"},
    {"NotANumber", "processes = 64", "processes = \"64\"", "processes = '64'"},
    {"PartOfAProcess", "processes = 64", "processes = 6.4", "whole number"},
    {"InfiniteTime", "fixed_s = 2", "fixed_s = inf", "fixed_s = inf"},
    {"NoTime", "fixed_s = 2", "fixed_s = nan", "fixed_s = nan"},
    {"MoreProcessesThanCores", "processes = 64", "processes = 145", "give 1 to 144"},
    {"NoProcesses", "processes = 64", "processes = 0", "processes = 0"},
    {"AbsurdIterations", "iterations = 4000", "iterations = 1000000000000", "iterations = "},
    {"AbsurdTime", "curve = [[32, 1.35], [64, 0.68]]", "curve = [[64, 1e6]]", "it would compute for 4e+09 s"},
    {"RisingCurve", "[64, 0.68]", "[64, 1.36]", "must not rise"},
    {"UnorderedCurve", "[64, 0.68]", "[16, 2.68]", "ascending"},
    {"ZeroInCurve", "[64, 0.68]", "[64, 0]", "curve = "},
    {"NegativeInCurve", "[64, 0.68]", "[64, -0.68]", "curve = "},
    {"HalfAPoint", "[64, 0.68]", "[64]", "is no point"},
    {"EmptyCurve", "[[32, 1.35], [64, 0.68]]", "[]", "at least one"},
    {"CurveTwice", "processes = 64", "processes = 64\niteration_s = 1", "give either"},
    {"NoSuchTarget", "processes = 64", "processes = 64\ntarget = \"gpsf\"", "did you mean 'gpfs'?"},
    {"NoPhase", "iterations_per_phase = 100", "iterations_per_phase = 5000", "iterations_per_phase = 5000"},
    {"NoChance", "processes = 64", "processes = 64\ndeath = 1.5", "death = 1.5"},
    {"NoProfile", "processes = 64", "processes = 64\nprofile = \"exat\"", "did you mean 'exact'?"},
    {"NoFiles", "processes = 64", "processes = 64\nfiles = 0", "files = 0"},
    {"NoGrain", "processes = 64", "processes = 64\ngrain = \"rond\"", "did you mean 'round'?"},
    {"NoRound", "processes = 64", "processes = 64\nround_bytes = -1", "round_bytes = -1"},
    {"NoAnnouncement", "processes = 64", "processes = 64\nannounces = \"exakt\"", "did you mean 'exact'?"},
    {"NoPhases", "io_bytes = 11.9e9", "phases = []", "phases"},
    {"PhasesAndBytes", "processes = 64", "processes = 64\nphases = [{ io_bytes = 1 }]", "io_bytes = 11900000000"},
    {"PhaseWithoutBytes", "io_bytes = 11.9e9", "phases = [{ after = 1 }]", "phase 1 of application 'A': io_bytes"},
    {"PhaseOutOfOrder", "io_bytes = 11.9e9", "phases = [{ io_bytes = 1 }, { io_bytes = 1, after = 0.5 }]",
     "phase 2 of application 'A': after = 0.5"},
    {"PhaseOfNoKind", "io_bytes = 11.9e9", "phases = [{ io_bytes = 1, kind = \"writ\" }]", "did you mean 'write'?"},
    {"PhaseWithUnknownKey", "io_bytes = 11.9e9", "phases = [{ io_bytes = 1, opeations = 2 }]", "'operations'?"},
    {"PhaseAtNoTarget", "io_bytes = 11.9e9", "phases = [{ io_bytes = 1, target = \"gpsf\" }]", "'gpfs'?"},
    {"NoParts", "2.6e9", "2.6e9\nparts = []", "at least one"},
    {"PartTwice", "2.6e9", "2.6e9\nparts = [\"a\", \"a\"]", "there twice"},
    {"PartWithoutName", "2.6e9", "2.6e9\nparts = [\"\"]", "a name is empty"},
    {"NoSuchPart", "processes = 64", "processes = 64\nparts = [\"ost9\"]", "target 'gpfs' has no part 'ost9'"},
    {"NoPolicy", "2.6e9", "2.6e9\npolicy = \"fcsf\"", "did you mean 'fcfs'?"},
    {"NotForOneTarget", "2.6e9", "2.6e9\npolicy = \"phase-shift\"", "decides about cores"},
    {"NoSharing", "2.6e9", "2.6e9\nsharing = \"proportionate\"", "did you mean 'proportional'?"},
    {"CacheWithoutRate", "2.6e9", "2.6e9\nwrite_cache_bytes = 1e9", "or neither"},
    {"CacheSlowerThanItsDisks", "2.6e9", "2.6e9\nwrite_cache_bytes = 1e9\nwrite_cache_bytes_per_s = 1e9",
     "slower than its disks"},
    {"ReadsFromAWriteCache", "2.6e9",
     "2.6e9\nwrite_cache_bytes = 1e9\nwrite_cache_bytes_per_s = 5e9\n[[applications]]\nname = \"R\"\nprocesses = 1\n"
     "iterations = 1\niterations_per_phase = 1\niteration_s = 1\nphases = [{ io_bytes = 1, kind = \"read\" }]",
     "only writes"},
    {"UnknownDistribution", "processes = 64", "processes = { uniforn = [1, 2] }", "did you mean 'uniform'?"},
    {"EmptyRange", "processes = 64", "processes = { uniform = [9, 2] }", "give [least, most]"},
    {"NoPowerOfTwo", "processes = 64", "processes = { power_of_two = [9, 15] }", "no power of two"},
    {"DistributionOfThePlatform", "nodes = 4", "nodes = { uniform = [1, 2] }", "only applications"},
    {"TwoOfOneName", "[coordinator]",
     "[[applications]]\nname = \"A\"\nprocesses = 1\niterations = 1\niterations_per_phase = 1\ncurve = [[1, "
     "1]]\n[coordinator]",
     "already"},
};

INSTANTIATE_TEST_SUITE_P(Table, InvalidScenarios, ::testing::ValuesIn(invalid),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST(ScenarioReaderTest, AMissingFileIsNamed) {
  const auto plan = read_scenario("/nowhere/s.toml");
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text.find("/nowhere/s.toml: there is no such file"), std::string::npos);
}

}  // namespace
}  // namespace hocket::sim
