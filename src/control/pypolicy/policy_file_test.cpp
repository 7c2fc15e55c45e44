#include "pypolicy/policy_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/clock.hpp"

// The interpreter stays loaded until the process ends, and with it everything that it, its libraries and the policies
// allocated. The sources of these allocations cannot be told apart, as they are built without frame pointers. So this
// program does not look for leaks.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "detect_leaks=0"; }

namespace hocket::pypolicy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Time now = time_from_ns(5'000'000'000);

// A state with two malleable applications on ten cores, and one request each for a target.
class PolicyFiles : public testing::Test {
 protected:
  PolicyFiles() {
    for (const char* name : {"a", "b"}) {
      const MemberId member{applications_.size() + 1};
      event::Hello hello;
      hello.job = hello.application = name;
      hello.processes = 2;
      model::Application& application = *cluster_.join({"node", "", member}, hello, now).application;
      application.malleability.malleable = true;
      application.malleability.processes = 2;
      cores_.claim(application.id, 2, "node");
      applications_.push_back(&application);
      model::Request request;
      request.id = RequestId{7};
      request.member = member;
      request.application = application.id;
      request.bytes = 100 * static_cast<std::int64_t>(applications_.size());
      target_.waiting.push_back(request);
    }
    target_.name = "disk";
    EXPECT_TRUE(applications_[0]->curve.add({2, 4.0, 0, 1.0, 0, 1}).ok());
    EXPECT_TRUE(applications_[0]->curve.add({4, 2.0, 0, 1.0, 0, 1}).ok());
  }

  Result<PolicyFile> loaded(const std::string& text) {
    std::ofstream(path_) << text;
    said_.clear();
    return load(path_, "", [this](std::string_view line) { said_.emplace_back(line); });
  }

  std::string refusal(const std::string& text) {
    const auto result = loaded(text);
    EXPECT_FALSE(result.ok()) << text;
    return result.ok() ? "" : result.error().text;
  }

  // Returns the decision of a sharing policy with this body of decide, about the first application.
  policy::CoreDecision decided(const std::string& body) {
    const auto file = loaded("NAME = 'mine'\nKIND = 'sharing'\ndef decide(view, event):\n" + body);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().text);
    if (!file) return {};
    return file.value().policy.core->decide({cluster_, cores_, settings_, now}, event_, applications_[0]->id);
  }

  std::vector<MemberId> granted(const std::string& body) {
    const auto file = loaded("NAME = 'mine'\nKIND = 'access'\ndef decide(view, event):\n" + body);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().text);
    std::vector<MemberId> members;
    if (!file) return members;
    const policy::View view{cluster_, target_, now, access_settings_};
    for (const policy::Grant& grant : file.value().policy.access->decide(view, event_).grants)
      members.push_back(grant.member);
    return members;
  }

  // Returns what a servers policy with this body of decide changes. There are the servers s1 and s2.
  std::vector<policy::ServerChange> changed(const std::string& body) {
    const auto file = loaded("NAME = 'mine'\nKIND = 'servers'\ndef decide(view, event):\n" + body);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().text);
    if (!file) return {};
    using std::chrono::milliseconds;
    policy::ServerStatus servers[] = {{"s1", MemberId{3}, "up", "/scratch", "", "", true, 3, 4, 5, 6, milliseconds{500},
                                       milliseconds{250}, model::SlowServers::Finding{}},
                                      {"s2", MemberId{4}, "up", "/scratch", "", ""}};
    servers[1].weight = 3;
    servers[0].scheduler = "wfq";
    servers[0].forward_queue = 9;
    const policy::AssignedServers assigned[] = {{applications_[1]->id, {"s1", "s2"}, true, 7, 6}};
    const policy::TunedApplication tuned[] = {{applications_[1]->id, {2, 4096, ""}, {3, 4096, "list"}, "aggregators"}};
    return file.value().policy.servers->decide({cluster_, servers, assigned, tuned, now}, event_).changes;
  }

  std::string at_line(int line) const { return path_ + ":" + std::to_string(line) + ": "; }

  model::Cluster cluster_;
  model::Cores cores_{{{"node", 10}}};
  model::Target target_;
  policy::CoreSettings settings_;
  policy::AccessSettings access_settings_;
  event::Event event_{now, {"node", "a", MemberId{1}}, event::IoPhase{}};
  std::vector<model::Application*> applications_;
  const std::string path_ =
      testing::TempDir() + "policy_file_test-" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".py";
  std::vector<std::string> said_;
};

TEST_F(PolicyFiles, BecomeRecordsLikeThoseThatAreBuiltIn) {
  const auto file =
      loaded("'''One line.\nMore.'''\nNAME = 'my-own'\nKIND = 'interference'\ndef decide(view, event): pass\n");
  ASSERT_TRUE(file.ok()) << file.error().text;
  const policy::Loaded& policy = file.value().policy;
  ASSERT_TRUE(policy.core);
  EXPECT_FALSE(policy.access);
  EXPECT_EQ(policy.core->name, "my-own");
  EXPECT_EQ(policy.core->summary, "One line.");
  EXPECT_EQ(policy.core->kind, policy::CoreKind::interference);
  EXPECT_EQ(file.value().sha256.size(), 64);
  EXPECT_EQ(policy::text_of(policy::with({}, policy)), "interfere+my-own");
  const auto combined = policy::parse_combination("fcfs+my-own+fair", policy);
  ASSERT_TRUE(combined.ok());
  EXPECT_EQ(combined.value().interference, policy.core);
  EXPECT_THAT(policy::parse_combination("my-owm", policy).error().text, HasSubstr("did you mean 'my-own'?"));
}

TEST_F(PolicyFiles, ThatCannotBeUsedAreRefusedWithTheirLine) {
  EXPECT_THAT(load("/no/such.py", "", {}).error().text, StartsWith("/no/such.py: cannot be read"));
  EXPECT_THAT(refusal("x = 1\ndef decide(:\n"), StartsWith(at_line(2) + "SyntaxError"));
  EXPECT_THAT(refusal("x = 1\n\nx.y\n"), StartsWith(at_line(3) + "AttributeError"));
  EXPECT_THAT(refusal("import sys\nsys.exit(3)\n"), StartsWith(at_line(2) + "SystemExit: 3"));
  EXPECT_THAT(refusal("KIND = 'sharing'\ndef decide(v, e): pass\n"), HasSubstr("it defines no NAME"));
  EXPECT_THAT(refusal("NAME = 'fcfs'\nKIND = 'access'\ndef decide(v, e): pass\n"), HasSubstr("which is built in"));
  EXPECT_THAT(refusal("NAME = 'm'\nKIND = 'acces'\ndef decide(v, e): pass\n"), HasSubstr("KIND is 'acces'"));
  EXPECT_THAT(refusal("NAME = 'm'\nKIND = 'access'\n"), HasSubstr("no function decide(view, event)"));
}

TEST_F(PolicyFiles, DoNotRunUnlessTheirDigestIsTheExpectedOne) {
  const std::string ran = path_ + ".ran";
  std::remove(ran.c_str());
  const std::string text = "NAME = 'm'\nKIND = 'access'\ndef decide(v, e): pass\nopen('" + ran + "', 'w').close()\n";
  std::ofstream(path_) << text;
  const std::string wrong(64, '0');
  EXPECT_THAT(load(path_, wrong, {}).error().text, HasSubstr(", not " + wrong + ": it was changed since"));
  EXPECT_FALSE(std::filesystem::exists(ran)) << "the file ran before its SHA-256 was compared";
  const auto any = load(path_, "", {});
  ASSERT_TRUE(any.ok()) << any.error().text;
  EXPECT_TRUE(load(path_, any.value().sha256, {}).ok());
  EXPECT_TRUE(std::filesystem::exists(ran));
  EXPECT_THAT(refusal(text + std::string(1, '\0') + "x = 1\n"), HasSubstr("it contains a zero byte"));
}

TEST_F(PolicyFiles, ThatOtherUsersCanChangeAreRefused) {
  using std::filesystem::perms;
  const std::string text = "NAME = 'm'\nKIND = 'access'\ndef decide(v, e): pass\n";
  ASSERT_TRUE(loaded(text).ok());
  for (const perms writers : {perms::group_write, perms::others_write}) {
    std::filesystem::permissions(path_, writers, std::filesystem::perm_options::add);
    EXPECT_THAT(refusal(text), StartsWith(path_ + ": it may be written by other users (mode 06"));
    std::filesystem::permissions(path_, writers, std::filesystem::perm_options::remove);
  }
  const std::filesystem::path directory = path_ + ".d";
  std::filesystem::create_directories(directory / "inner");
  const std::string inside = directory / "inner" / "policy.py";
  const std::string link = path_ + ".link";
  std::ofstream(inside) << text;
  std::filesystem::remove(link);
  std::filesystem::create_symlink(inside, link);
  EXPECT_TRUE(load(link, "", {}).ok());
  std::filesystem::permissions(directory, perms::others_write, std::filesystem::perm_options::add);
  const std::string why = directory.string() + " may be written by other users (mode 0757)";
  EXPECT_THAT(load(inside, "", {}).error().text, StartsWith(inside + ": " + why));
  EXPECT_THAT(load(link, "", {}).error().text, StartsWith(link + ": " + why)) << "the directories of the link's target";
  std::filesystem::permissions(directory, perms::sticky_bit, std::filesystem::perm_options::add);
  EXPECT_TRUE(load(inside, "", {}).ok()) << "in a sticky directory others cannot replace an entry";
  std::filesystem::remove_all(directory);
  EXPECT_THAT(load("/dev/null", "", {}).error().text, HasSubstr("/dev/null: "));
}

TEST_F(PolicyFiles, OfAnotherUserAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_TRUE(loaded("NAME = 'm'\nKIND = 'access'\ndef decide(v, e): pass\n").ok());
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(load(path_, "", {}).error().text, StartsWith(path_ + ": it belongs to user 65534"));
  std::remove(path_.c_str());
}

TEST_F(PolicyFiles, SeeTheState) {
  const auto decision = decided(
      "  a, b = view.applications\n"
      "  assert view.subject.name == a.name == 'a' and view.target is None\n"
      "  assert (view.now_s, view.cores, view.cores_free) == (5.0, 10, 6)\n"
      "  assert event.type == 'IO_PHASE' and event.application == 'a' and event.io_ns == 0\n"
      "  assert repr(event).startswith('hocket.IO_PHASE(type=') and not hasattr(event, 'request')\n"
      "  assert a.processes == 2 and a.malleable and a.period_s == 0 and a.next_phases(2) == ()\n"
      "  assert [p.processes for p in a.curve] == [2, 4] and a.iteration_s_at(4) == 2.0\n"
      "  assert b.curve == () and b.iteration_s_at(4) is None and b.pace_at(3) is None\n"
      "  for change in (lambda: setattr(a, 'processes', 9), lambda: setattr(event, 'io_ns', 1), lambda: "
      "a.pace_at(0)):\n"
      "    try: change()\n"
      "    except (AttributeError, ValueError): pass\n"
      "    else: assert False, 'it could be changed'\n"
      "  return []\n");
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(decision.changes, IsEmpty());
}

TEST_F(PolicyFiles, SeeEventsOfEachTypeWithItsOwnFields) {
  event_.body = event::StartIo{RequestId{3}, "disk", "f", "MPI_File_write_all", 7};
  decided("  assert (event.type, event.request, event.target, event.bytes) == ('START_IO', 3, 'disk', 7)\n");
  EXPECT_THAT(said_, IsEmpty());
  event_.body = event::Tick{};
  decided("  assert event.type == 'TICK' and event.time_ns == 5 * 10**9 and not hasattr(event, 'bytes')\n");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PolicyFiles, CommandByListsOfDicts) {
  const auto decision = decided(
      "  a, b = view.applications\n"
      "  return [{'resize': a, 'processes': 4, 'return_at_iteration': 30, 'because_of': 'b', 'conflict_s': 6.5,\n"
      "           'text': 'Ä'}, {'leave': b, 'text': 'no room'}]\n");
  EXPECT_THAT(said_, IsEmpty());
  ASSERT_EQ(decision.changes.size(), 1);
  const policy::CoreChange& change = decision.changes[0];
  EXPECT_EQ(change.application, applications_[0]->id);
  EXPECT_EQ(change.because_of, applications_[1]->id);
  EXPECT_EQ(change.processes, 4);
  EXPECT_EQ(change.return_at_iteration, 30);
  EXPECT_EQ(change.conflict, time_from_ns(6'500'000'000));
  EXPECT_EQ(change.text, "Ä");
  ASSERT_EQ(decision.left_alone.size(), 1);
  EXPECT_EQ(decision.left_alone[0].text, "no room");
}

TEST_F(PolicyFiles, WrongCommandsChangeNothing) {
  const std::pair<const char*, const char*> wrong[] = {
      {"  return 3\n", "decide returned 3, not a list of commands"},
      {"  return [3]\n", "command 1 of what decide returned: it is 3, not a dict"},
      {"  return [{}]\n", "it has no key 'resize' or 'leave'"},
      {"  return [{'resize': 'c', 'processes': 3}]\n", "'resize' is 'c', which is not an application of the view"},
      {"  return [{'resize': 'a'}]\n", "it has no 'processes'"},
      {"  return [{'resize': 'a', 'processes': 0}]\n", "'processes' is 0: give a whole number, at least 1"},
      {"  return [{'resize': 'a', 'processes': 2.5}]\n", "'processes' is 2.5: give a whole number"},
      {"  return [{'resize': 'a', 'proceses': 3}]\n", "unknown key 'proceses': did you mean 'processes'?"},
      {"  return [{'resize': 'a', 'processes': 3, 'overlap_s': float('nan')}]\n", "'overlap_s' is nan: give seconds"},
      {"  return [{'resize': 'a', 'processes': 3}] * 2\n", "command 2 of what decide returned: 'a' is resized twice"},
  };
  for (const auto& [body, why] : wrong) {
    const auto decision = decided(body);
    EXPECT_THAT(decision.changes, IsEmpty()) << body;
    ASSERT_EQ(said_.size(), 1) << body;
    EXPECT_THAT(said_[0], StartsWith(at_line(3))) << body;
    EXPECT_THAT(said_[0], HasSubstr(why)) << body;
  }
}

TEST_F(PolicyFiles, AnExceptionIsOneLineAndChangesNothing) {
  const auto decision = decided("  x = 1\n  raise ValueError('two\\nlines')\n");
  EXPECT_THAT(decision.changes, IsEmpty());
  EXPECT_THAT(said_, ElementsAre(at_line(5) + "ValueError: two"));
}

TEST_F(PolicyFiles, TheSameMistakeIsSaidOnce) {
  ASSERT_TRUE(loaded("NAME = 'm'\nKIND = 'sharing'\ndef decide(v, e): return e.x\n").ok());
  const auto file = loaded("NAME = 'm'\nKIND = 'sharing'\ndef decide(v, e):\n  return e.x\n");
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(file.value().policy.core->decide({cluster_, cores_, settings_, now}, event_, {}).changes, IsEmpty());
  EXPECT_THAT(said_, ElementsAre(at_line(4) + "AttributeError: 'hocket.IO_PHASE' object has no attribute 'x'"));
}

TEST_F(PolicyFiles, ACallThatTakesTooLongIsEnded) {
  for (const char* body : {"  while True: pass\n", "  import time\n  time.sleep(60)\n",
                           "  while True:\n    try:\n      while True: pass\n    except Exception: pass\n"}) {
    const Time begun = node_now();
    EXPECT_THAT(decided(body).changes, IsEmpty()) << body;
    EXPECT_LT(node_now() - begun, std::chrono::seconds{20}) << body;
    ASSERT_EQ(said_.size(), 1) << body;
    EXPECT_THAT(said_[0], HasSubstr("TooSlow: it took longer than 0.5 s")) << body;
  }
  EXPECT_EQ(decided("  return [{'resize': 'a', 'processes': 4}]\n").changes.size(), 1) << "the next one is not hit";
}

TEST_F(PolicyFiles, GrantAccess) {
  EXPECT_THAT(granted("  assert view.target.name == 'disk'\n"
                      "  return [{'grant': max(view.target.waiting, key=lambda r: r.bytes)}]\n"),
              ElementsAre(MemberId{2}));
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(granted("  assert not view.target.pausing and view.target.left_s == ()\n"
                      "  assert all(r.left_s > 0 and not r.paused for r in view.target.waiting)\n"
                      "  return []\n"),
              IsEmpty());
  EXPECT_THAT(granted("  return None\n"), IsEmpty());
}

TEST_F(PolicyFiles, SeeWhatWasPrepared) {
  const char* body =
      "  a = view.applications[0]\n"
      "  assert (a.files, a.rounds, a.bytes_per_round, a.info) == (4, 5, 20, 'files=4\\nnote=x\\n'), a\n"
      "  assert view.target.stop_s == ((0,) if view.target.holders else ()), view.target.stop_s\n"
      "  return []\n";
  model::demand(*applications_[0], {RequestId{1}, "disk", {}, {}, 0, 400, "files=4\nnote=x\n", 4, 5, 20}, now);
  EXPECT_THAT(granted(body), IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
  target_.holders.push_back({applications_[0], &target_, 0});
  EXPECT_THAT(granted(body), IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PolicyFiles, SeeThePartsOfTheTarget) {
  target_.holders.push_back({applications_[0], &target_, 1});
  target_.holders.back().parts = target_.part_numbers.set_of({"ost1"}).value();
  target_.waiting.front().parts = target_.part_numbers.set_of({"ost2", "ost3"}).value();
  EXPECT_THAT(granted("  target = view.target\n"
                      "  assert (target.parts, target.holder_parts) == ((), (('ost1',),)), target\n"
                      "  assert [r.parts for r in target.waiting] == [('ost2', 'ost3'), ()], target\n"
                      "  return []\n"),
              IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
  const auto file = loaded(
      "NAME = 'mine'\nKIND = 'access'\ndef decide(view, event):\n"
      "  assert view.target.parts == ('ost3',) and view.target.holders == (), view.target\n"
      "  return [{'grant': view.target.waiting[0]}]\n");
  ASSERT_TRUE(file.ok()) << file.error().text;
  const policy::View view{cluster_, target_, now, access_settings_, target_.part_numbers.set_of({"ost3"}).value()};
  EXPECT_EQ(file.value().policy.access->decide(view, event_).grants.size(), 1U);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PolicyFiles, InterruptWhoHasTheTarget) {
  target_.holders.push_back({applications_[0], &target_, 1});
  const auto file = loaded(
      "NAME = 'mine'\nKIND = 'access'\ndef decide(view, event):\n"
      "  return [{'interrupt': holder} for holder, left in zip(view.target.holders, view.target.left_s) if left > "
      "0]\n");
  ASSERT_TRUE(file.ok()) << file.error().text;
  const policy::View view{cluster_, target_, now, access_settings_};
  EXPECT_EQ(file.value().policy.access->decide(view, event_).interruptions, std::vector{applications_[0]->id});
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PolicyFiles, AMistakeAboutAccessLeavesItToFirstComeFirstServed) {
  for (const char* body :
       {"  raise ValueError\n", "  return [{'grant': 3}]\n", "  return [{'grant': view.target.waiting[1]}] * 2\n",
        "  return [{'interrupt': view.applications[0]}]\n", "  return [{'interrupt': 3}]\n"}) {
    EXPECT_THAT(granted(body), ElementsAre(MemberId{1})) << body;
    EXPECT_EQ(said_.size(), 1) << body;
  }
}

// ---- I/O servers ---------------------------------------------------------------------------------------------------

TEST_F(PolicyFiles, SeeServersAndCommandThem) {
  const auto changes = changed(
      "  assert (view.now_s, [a.name for a in view.applications]) == (5.0, ['a', 'b'])\n"
      "  s1, s2 = view.servers\n"
      "  assert (s1.name, s1.state, s1.directory, s1.write_behind, s1.queue) == ('s1', 'up', '/scratch', True, 3)\n"
      "  assert (s1.held_bytes, s1.operations_per_s, s1.bytes_per_s) == (4, 5.0, 6.0)\n"
      "  assert (s1.busy_s, s1.service_s, s1.slow, s2.slow) == (0.5, 0.25, True, False)\n"
      "  given, = view.assigned\n"
      "  assert (given.application.name, given.servers) == ('b', ('s1', 's2'))\n"
      "  assert (given.by_hand, given.epoch, given.adopted) == (True, 7, 6)\n"
      "  assert (s1.weight, s2.weight) == (8, 3)\n"
      "  assert (s1.scheduler, s1.forward_queue, s2.scheduler) == ('wfq', 9, '')\n"
      "  tuned, = view.tuned\n"
      "  assert (tuned.application.name, tuned.aggregators, tuned.buffer_bytes, tuned.method) == ('b', 2, 4096, '')\n"
      "  assert (tuned.used_aggregators, tuned.used_buffer_bytes, tuned.used_method) == (3, 4096, 'list')\n"
      "  assert tuned.hinted == 'aggregators'\n"
      "  return [{'assign': 'a', 'servers': [s2, 'gone']}, {'assign': given.application, 'servers': ()},\n"
      "          {'set_aside': s1}, {'drain': 's2', 'text': 'why'}, {'add': 'gone'},\n"
      "          {'weigh': s2, 'weight': 10 ** 30}, {'weigh': 's1', 'weight': -1, 'text': 'why'}, {'tune': 'b'},\n"
      "          {'tune': 'a', 'aggregators': 0, 'buffer_bytes': -10 ** 30, 'method': 'x', 'text': 'why'}]\n");
  EXPECT_THAT(said_, IsEmpty());
  ASSERT_EQ(changes.size(), 9);
  using Action = policy::ServerChange::Action;
  EXPECT_EQ(changes[0].action, Action::assign);
  EXPECT_EQ(changes[0].application, applications_[0]->id);
  EXPECT_THAT(changes[0].servers, ElementsAre("s2", "gone"));
  EXPECT_EQ(changes[1].application, applications_[1]->id);
  EXPECT_THAT(changes[1].servers, IsEmpty());
  EXPECT_EQ(changes[2].action, Action::set_aside);
  EXPECT_EQ(changes[2].server, "s1");
  EXPECT_EQ(changes[3].action, Action::drain);
  EXPECT_EQ(changes[3].server, "s2");
  EXPECT_EQ(changes[3].text, "why");
  EXPECT_EQ(changes[4].action, Action::add);
  EXPECT_EQ(changes[4].server, "gone") << "the coordinator says that it is";
  EXPECT_EQ(changes[5].action, Action::weigh);
  EXPECT_EQ(changes[5].server, "s2");
  EXPECT_EQ(changes[5].weight, std::numeric_limits<std::int64_t>::max()) << "the coordinator says that it is too much";
  EXPECT_EQ(changes[6].weight, -1);
  EXPECT_EQ(changes[7].action, Action::tune);
  EXPECT_EQ(changes[7].application, applications_[1]->id);
  EXPECT_TRUE(!changes[7].aggregators && !changes[7].buffer_bytes && !changes[7].method);
  EXPECT_EQ(changes[8].aggregators, 0);
  EXPECT_EQ(changes[8].buffer_bytes, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(changes[8].method, "x");
  EXPECT_EQ(changes[8].text, "why");
}

TEST_F(PolicyFiles, ScheduleForwardedCallsAndWeighApplications) {
  const auto changes = changed(
      "  return [{'schedule': view.servers[0], 'scheduler': 'wfq', 'text': 'why'},\n"
      "          {'weigh_application': view.applications[1], 'weight': 3}, {'weigh_application': 'a', 'weight': 0}]\n");
  EXPECT_THAT(said_, IsEmpty());
  ASSERT_EQ(changes.size(), 3);
  using Action = policy::ServerChange::Action;
  EXPECT_EQ(changes[0].action, Action::schedule);
  EXPECT_EQ(changes[0].server, "s1");
  EXPECT_EQ(changes[0].scheduler, "wfq");
  EXPECT_EQ(changes[0].text, "why");
  EXPECT_EQ(changes[1].action, Action::weigh_application);
  EXPECT_EQ(changes[1].application, applications_[1]->id);
  EXPECT_EQ(changes[1].weight, 3);
  EXPECT_EQ(changes[2].weight, 0) << "the coordinator says that it is too little";
}

TEST_F(PolicyFiles, AMistakeAboutServersChangesNothing) {
  const std::pair<const char*, const char*> wrong[] = {
      {"  raise ValueError('no')\n", "ValueError: no"},
      {"  while True: pass\n", "TooSlow: it took longer than 0.5 s"},
      {"  return [{'drain': 3}]\n", "'drain' is 3, which is not a server or its name"},
      {"  return [{'drain': view.applications[0]}]\n", "which is not a server or its name"},
      {"  return [{'resize': 'a', 'processes': 3}]\n", "unknown key 'resize'"},
      {"  return [{'drain': 's1', 'servers': []}]\n", "'servers' belongs to 'assign'"},
      {"  return [{'assign': 'c', 'servers': []}]\n", "'assign' is 'c', which is not an application of the view"},
      {"  return [{'assign': None, 'servers': []}]\n", "'assign' is None, which is not an application of the view"},
      {"  return [{'assign': 'a'}]\n", "it has no 'servers'"},
      {"  return [{'assign': 'a', 'servers': 's1'}]\n", "'servers' is 's1': give a list of servers or their names"},
      {"  return [{'assign': 'a', 'servers': [None]}]\n", "'servers' has None, which is not a server"},
      {"  return [{'drain': 's1', 'add': 's1'}]\n", "unknown key 'drain'"},
      {"  return [{'weigh': 's1'}]\n", "it has no 'weight'"},
      {"  return [{'weigh': 's1', 'weight': 0.5}]\n", "'weight' is 0.5: give a whole number"},
      {"  return [{'weigh': None, 'weight': 3}]\n", "'weigh' is None, which is not a server or its name"},
      {"  return [{'add': 's1', 'weight': 3}]\n", "'weight' belongs to 'weigh' or 'weigh_application'"},
      {"  return [{'weigh_application': 'a'}]\n", "it has no 'weight'"},
      {"  return [{'weigh_application': 's1', 'weight': 3}]\n", "which is not an application of the view"},
      {"  return [{'schedule': 's1'}]\n", "it has no 'scheduler'"},
      {"  return [{'schedule': 's1', 'scheduler': 3}]\n", "'scheduler' is 3: give a text"},
      {"  return [{'add': 's1', 'scheduler': 'wfq'}]\n", "'scheduler' belongs to 'schedule'"},
      {"  return [{'tune': 'c'}]\n", "'tune' is 'c', which is not an application of the view"},
      {"  return [{'tune': 'a', 'aggregators': None}]\n", "'aggregators' is None: give a whole number"},
      {"  return [{'tune': 'a', 'method': 3}]\n", "'method' is 3: give a text"},
      {"  return [{'tune': 'a', 'aggregator': 3}]\n", "unknown key 'aggregator'"},
      {"  return [{'tune': 'a', 'servers': []}]\n", "'servers' belongs to 'assign'"},
  };
  for (const auto& [body, why] : wrong) {
    EXPECT_THAT(changed(body), IsEmpty()) << body;
    ASSERT_EQ(said_.size(), 1) << body;
    EXPECT_THAT(said_[0], HasSubstr(why)) << body;
  }
}

TEST_F(PolicyFiles, AViewThatWasKeptIsOver) {
  EXPECT_THAT(decided("  global kept\n  kept = view\n  return []\n").changes, IsEmpty());
  const auto file = loaded(
      "NAME = 'm'\nKIND = 'sharing'\nkept = []\ndef decide(view, event):\n"
      "  if kept: return kept[0]()\n  import functools\n"
      "  kept.append(functools.partial(view.applications[0].pace_at, 3))\n");
  const policy::CoreView view{cluster_, cores_, settings_, now};
  file.value().policy.core->decide(view, event_, {});
  EXPECT_THAT(said_, IsEmpty());
  // The application leaves before the second call, so the new view lacks it.
  model::Cluster other;
  file.value().policy.core->decide({other, cores_, settings_, now}, event_, {});
  ASSERT_EQ(said_.size(), 1);
  EXPECT_THAT(said_[0], HasSubstr("RuntimeError: the view is valid only until decide returns"));
}

TEST_F(PolicyFiles, SetsHaveTheSameOrderInEveryRun) {
  const auto decision = decided("  return [{'leave': 'a', 'text': ' '.join({'x', 'yy', 'zzz', 'wwww'})}]\n");
  ASSERT_EQ(decision.left_alone.size(), 1);
  EXPECT_EQ(decided("  import sys\n  return [{'leave': 'a', 'text': str(sys.flags.hash_randomization)}]\n")
                .left_alone[0]
                .text,
            "0");
}

}  // namespace
}  // namespace hocket::pypolicy
