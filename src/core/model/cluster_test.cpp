#include "model/cluster.hpp"

#include <gtest/gtest.h>

namespace hocket::model {
namespace {

event::Origin member(std::uint64_t id) { return {"node1", "", MemberId{id}}; }

event::Hello hello(const std::string& job, const std::string& name, std::int64_t processes = 4) {
  return {job, name, "/bin/" + name, "mpich", "0.1", 4242, processes};
}

TEST(Cluster, MembersOfAJobAreOneApplication) {
  Cluster cluster;
  const Member& first = cluster.join(member(1), hello("job-a", "jacobi"), Time{});
  const Member& second = cluster.join(member(2), hello("job-a", "jacobi", 2), Time{});
  EXPECT_EQ(first.application, second.application);
  EXPECT_EQ(first.application->id, AppId{1});
  EXPECT_EQ(first.application->name, "jacobi");
  EXPECT_EQ(first.application->processes, 6);
  EXPECT_EQ(first.application->node, "node1");
  EXPECT_EQ(first.application->pid, 4242);
  EXPECT_EQ(cluster.applications().size(), 1u);
}

TEST(Cluster, MembersWithoutAJobAreApplicationsOfTheirOwn) {
  Cluster cluster;
  cluster.join(member(1), hello("", "a"), Time{});
  cluster.join(member(2), hello("", "a"), Time{});
  EXPECT_EQ(cluster.applications().size(), 2u);
}

TEST(Cluster, AnApplicationGoesWithItsLastMember) {
  Cluster cluster;
  cluster.join(member(1), hello("job-a", "jacobi"), Time{});
  cluster.join(member(2), hello("job-a", "jacobi", 2), Time{});
  cluster.leave(*cluster.find(MemberId{1}));
  EXPECT_EQ(cluster.find(MemberId{1}), nullptr);
  ASSERT_NE(cluster.find(AppId{1}), nullptr);
  EXPECT_EQ(cluster.find(AppId{1})->processes, 2);
  cluster.leave(*cluster.find(MemberId{2}));
  EXPECT_EQ(cluster.find(AppId{1}), nullptr);
  EXPECT_EQ(cluster.join(member(3), hello("job-a", "jacobi"), Time{}).application->id, AppId{2})
      << "ids are not reused";
}

TEST(Cluster, NamesAreUniqueAndReturn) {
  Cluster cluster;
  const auto name = [&](std::uint64_t id, const std::string& asked) {
    return cluster.join(member(id), hello("job" + std::to_string(id), asked), Time{}).application->name;
  };
  EXPECT_EQ(name(1, "jacobi"), "jacobi");
  EXPECT_EQ(name(2, "jacobi"), "jacobi-2");
  EXPECT_EQ(name(3, "jacobi"), "jacobi-3");
  EXPECT_EQ(name(4, "jacobi-4"), "jacobi-4") << "asked for as it is";
  EXPECT_EQ(name(5, "jacobi"), "jacobi-5");
  cluster.leave(*cluster.find(MemberId{1}));
  cluster.leave(*cluster.find(MemberId{2}));
  EXPECT_EQ(name(6, "jacobi"), "jacobi");
  EXPECT_EQ(name(7, "jacobi"), "jacobi-2");
  EXPECT_EQ(name(8, "jacobi"), "jacobi-6");
}

TEST(Cluster, AnApplicationWithoutANameGoesByItsProgram) {
  Cluster cluster;
  event::Hello unnamed = hello("job", "");
  unnamed.program = "/opt/codes/cg";
  EXPECT_EQ(cluster.join(member(1), unnamed, Time{}).application->name, "cg");
  unnamed = {"other", "", "", "openmpi", "", 0, 1};
  EXPECT_EQ(cluster.join(member(2), unnamed, Time{}).application->name, "application");
}

TEST(Cluster, BearsAnyNumberOfProcesses) {
  Cluster cluster;
  cluster.join(member(1), hello("job", "a", -5), Time{});
  cluster.join(member(2), hello("job", "a", INT64_MAX), Time{});
  cluster.join(member(3), hello("job", "a", INT64_MAX), Time{});
  EXPECT_GT(cluster.find(AppId{1})->processes, 0);
}

TEST(Application, SumsWhatIsReportedAsFarAsItCanBe) {
  Application application;
  Member member;
  event::IoPhase phase;
  phase.start = time_from_ns(1000);
  phase.end = time_from_ns(3000);
  phase.io = Duration{500};
  phase.wait = Duration{700};
  phase.cpu = Duration{900};
  phase.bytes_written = 4096;
  application.add_phase(phase, time_from_ns(3000), &member);
  phase.io = Duration{INT64_MAX};
  phase.wait = Duration{INT64_MIN};
  phase.start = time_from_ns(4000);
  phase.end = time_from_ns(INT64_MAX);
  phase.bytes_written = INT64_MAX;
  application.add_phase(phase, time_from_ns(5000), &member);
  EXPECT_EQ(application.totals.io, Duration{1500});
  EXPECT_EQ(application.totals.wait, Duration{700});
  EXPECT_EQ(member.cpu, Duration{1800});
  EXPECT_EQ(application.totals.bytes_written, INT64_MAX);
  EXPECT_EQ(application.history.last()->end, time_from_ns(5000));
}

TEST(Application, ActivityFollowsItsRequests) {
  Application application;
  application.count_requests(+1, 0, time_from_ns(10));
  EXPECT_EQ(application.activity, Activity::waiting);
  application.count_requests(-1, +1, time_from_ns(20));
  EXPECT_EQ(application.activity, Activity::io);
  application.count_requests(+1, 0, time_from_ns(30));
  EXPECT_EQ(application.since, time_from_ns(20)) << "one operation more is no new state";
  application.count_requests(-1, -1, time_from_ns(40));
  EXPECT_EQ(name_of(application.activity), "computing");
  EXPECT_EQ(application.since, time_from_ns(40));
}

}  // namespace
}  // namespace hocket::model
