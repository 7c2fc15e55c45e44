#include "bus/slurm_step.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hocket::bus {
namespace {

constexpr uid_t user = 1000;

TEST(SlurmStep, IsThatOfItsControlGroup) {
  const std::string first = "11:memory:/\n6:freezer:/slurm/uid_1000/job_77/step_3/task_0\n0::/user.slice\n";
  EXPECT_EQ(slurm_step_in(first, user), "77.3");
  EXPECT_EQ(slurm_step_in("4:cpuset:/slurm_n1/uid_1000/job_77/step_batch", user), "77.batch");
  EXPECT_EQ(slurm_step_in("6:freezer:/outer/slurm/uid_1000/job_77/step_0", user), "77.0");
  EXPECT_EQ(slurm_step_in("0::/system.slice/slurmstepd.scope/job_8/step_0/user/task_1\n", user), "8.0");
  EXPECT_EQ(slurm_step_in("0::/system.slice/n1_slurmstepd.scope/job_8/step_extern\n", user), "8.extern");
}

TEST(SlurmStep, IsNoneOfGroupsThatUsersMayMake) {
  EXPECT_EQ(slurm_step_in("6:freezer:/slurm/uid_1001/job_77/step_3", user), "") << "another user's job";
  EXPECT_EQ(slurm_step_in("1:name=systemd:/user.slice/slurm/uid_1000/job_7/step_0", user), "");
  EXPECT_EQ(slurm_step_in("0::/user.slice/user-1000.slice/slurmstepd.scope/job_7/step_0", user), "");
  EXPECT_EQ(slurm_step_in("0::/system.slice/mine.service/slurmstepd.scope/job_7/step_0", user), "");
  EXPECT_EQ(slurm_step_in("0::/slurm/uid_1000/job_7/step_0", user), "");
  EXPECT_EQ(slurm_step_in("6:freezer:/mine/uid_1000/job_7/step_0", user), "");
}

TEST(SlurmStep, IsNoneOfOtherTexts) {
  for (const char* text : {"", "\n\n", ":", "6:freezer", "6:freezer:", "6:freezer:/slurm/uid_1000/",
                           "6:freezer:/slurm/uid_1000/job_/step_0", "6:freezer:/slurm/uid_1000/job_7x/step_0",
                           "6:freezer:/slurm/uid_1000/job_7", "6:freezer:uid_1000/job_7/step_0",
                           "6:freezer:/uid_1000/job_7/step_0", "0::/../../job_7/step_0"})
    EXPECT_EQ(slurm_step_in(text, user), "") << text;
  EXPECT_EQ(slurm_step_in("6:freezer:/slurm/uid_1000/job_7/step_" + std::string(100, 'x'), user), "");
}

TEST(SlurmStep, OfAProcessIsReadFromItsFile) {
  EXPECT_EQ(slurm_step_of(getpid(), getuid()), slurm_step_in("", getuid())) << "tests run in no job";
  EXPECT_EQ(slurm_step_of(0, user), "");
  EXPECT_EQ(slurm_job_of("77.batch"), "77");
  EXPECT_EQ(slurm_job_of(""), "");
}

}  // namespace
}  // namespace hocket::bus
