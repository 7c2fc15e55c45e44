// Random applications that use parts of two targets. The simple model knows the names that each request gave, and
// checks after each event: nobody waits for parts that are free, an exclusive policy grants no part twice, and all of
// it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"
#include "event/part_names.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::set<std::string>;  // of parts; none: the whole target

bool meet(const Names& a, const Names& b) {
  if (a.empty() || b.empty()) return true;
  return std::ranges::any_of(a, [&](const std::string& one) { return b.contains(one); });
}

struct Run {
  const policy::Policy& policy;
  bool nested;     // members begin a second operation within the first
  bool exclusive;  // the policy lets nobody interfere
};

// Plays random members until each has done its operations.
class Play {
 public:
  Play(const Run& run, unsigned seed) : run_(run), random_(seed), coordinator_(settings_of(run)) {
    const std::size_t members = 2 + draw(5);
    for (std::uint64_t id = 1; id <= members; ++id) {
      const std::uint64_t job = id == members && draw(3) == 0 ? id - 1 : id;  // the last two may be one application
      pass(id, event::Hello{"job" + std::to_string(job), "app", "/bin/app", "mpich", "0.1", 9, 4});
      members_[id].app = job;
      members_[id].left = 1 + draw(5);
      due_.emplace(now_ + milliseconds{draw(50)}, id);
    }
  }

  void to_the_end() {
    while (!due_.empty() || !requests_.empty()) {
      ASSERT_LT(++events_, 20'000U) << "it does not end: " << requests_.size() << " requests are left";
      const auto deadline = coordinator_.deadline();
      if (!due_.empty() && (!deadline || due_.begin()->first <= *deadline)) {
        const auto [at, member] = *due_.begin();
        due_.erase(due_.begin());
        now_ = std::max(now_, at);
        act(member);
      } else {
        ASSERT_TRUE(deadline) << "requests wait, and nothing is due";
        now_ = std::max(now_, *deadline);
        pass(0, event::Tick{});
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::size_t waited() const { return waited_; }
  std::size_t at_once() const { return at_once_; }
  std::size_t broken() const { return broken_; }

 private:
  struct Request {
    std::uint64_t app = 0;
    std::string target;
    Names parts;
    bool granted = false;
    bool beside = false;  // it was granted to break a deadlock
    std::uint64_t arrival = 0;
  };
  struct Member {
    std::uint64_t app = 0;
    std::size_t left = 0;
    std::uint64_t last = 0;
    std::vector<std::uint64_t> open;  // requests, the innermost last
    bool pauses = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  static CoordinatorSettings settings_of(const Run& run) {
    return {{&run.policy}, seconds{1000}, milliseconds{20}, seconds{3}, seconds{1}};
  }
  std::size_t draw(std::size_t below) { return std::uniform_int_distribution<std::size_t>{0, below - 1}(random_); }

  // The member's next step: it answers a pause, ends its innermost granted operation, or begins one.
  void act(std::uint64_t id) {
    Member& member = members_[id];
    if (member.open.empty()) return begin(id);
    const std::uint64_t last = member.open.back();
    const auto request = requests_.find({id, last});
    ASSERT_NE(request, requests_.end());
    if (!request->second.granted) return;  // it acts when the grant comes
    if (member.pauses && member.open.size() == 1 && draw(2) == 0) {
      member.pauses = false;
      request->second.granted = false;
      return pass(id, event::PausedIo{RequestId{last}, 0});
    }
    if (run_.nested && member.open.size() == 1 && draw(2) == 0) return begin(id);
    member.open.pop_back();
    member.pauses = false;
    requests_.erase(request);
    due_.emplace(now_ + milliseconds{draw(60)}, id);
    pass(id, event::FinishIo{RequestId{last}, {}, 0, draw(2) == 0});
  }

  void begin(std::uint64_t id) {
    Member& member = members_[id];
    if (member.open.empty() && member.left-- == 0) {
      member.left = 0;
      return;
    }
    Request request{member.app, "t" + std::to_string(draw(4) / 3), {}, false, false, ++arrivals_};
    const std::size_t names = draw(4);
    for (std::size_t i = 0; i < names; ++i) request.parts.insert("ost" + std::to_string(draw(5)));
    event::StartIo start{RequestId{++member.last}, request.target, "/f", "MPI_File_write_all", 10};
    start.parts = event::text_of_parts({request.parts.begin(), request.parts.end()});
    requests_[{id, member.last}] = request;
    member.open.push_back(member.last);
    pass(id, start);
    if (requests_[{id, member.last}].granted)
      ++at_once_;
    else
      ++waited_;
  }

  void pass(std::uint64_t member, event::Body body) {
    for (const Command& command : coordinator_.handle({now_, {"node", {}, MemberId{member}}, std::move(body)})) {
      const std::uint64_t to = command.to.value;
      if (const auto* grant = std::get_if<event::GrantIo>(&command.body)) granted(to, grant->request.value);
      if (std::holds_alternative<event::PauseIo>(command.body)) members_[to].pauses = true;
      if (const auto* decision = std::get_if<event::Decision>(&command.body);
          decision && decision->action == "deadlock")
        ++broken_;
      ASSERT_FALSE(std::holds_alternative<event::Refused>(command.body));
    }
    // A deadlock that was broken lets applications interfere from then on.
    if (run_.exclusive && broken_ == 0 && !run_.nested) check_exclusive();
    check_waits();
  }

  void granted(std::uint64_t member, std::uint64_t id) {
    const auto found = requests_.find({member, id});
    ASSERT_NE(found, requests_.end());
    if (std::exchange(found->second.granted, true)) return;  // a new bandwidth share
    due_.emplace(now_ + milliseconds{1 + draw(200)}, member);
  }

  void check_exclusive() {
    for (const auto& [key, one] : requests_) {
      for (const auto& [other_key, other] : requests_) {
        if (!one.granted || !other.granted || one.app == other.app || one.target != other.target) continue;
        EXPECT_FALSE(meet(one.parts, other.parts)) << "granted to two at once";
      }
    }
  }

  // A request that waits meets a holder's parts, or a request that waits and does. The holders are the coordinator's,
  // because idle holds are not modelled.
  void check_waits() {
    for (const auto& [key, one] : requests_) {
      if (one.granted) continue;
      const model::Target* target = coordinator_.cluster().find_target(one.target);
      ASSERT_NE(target, nullptr);
      std::vector<Names> held;
      bool stops = false;  // an application that has to stop on the target gets nothing there before
      for (const model::Holder& holder : target->holders) {
        stops |= holder.pausing && holder.application->id.value == one.app;
        const auto names = target->part_numbers.names_of(holder.parts);
        held.emplace_back(names.begin(), names.end());
      }
      EXPECT_TRUE(stops || waits_for_holder(one, held))
          << "request " << key.second << " of " << key.first << " at " << to_ns(now_) << " waits for free parts, under "
          << run_.policy.name;
    }
  }

  bool waits_for_holder(const Request& request, const std::vector<Names>& held) const {
    std::vector<const Request*> reached{&request};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (std::ranges::any_of(held, [&](const Names& names) { return meet(names, reached[i]->parts); })) return true;
      for (const auto& [key, other] : requests_) {
        const bool is_new = std::ranges::find(reached, &other) == reached.end();
        if (is_new && !other.granted && other.target == request.target && meet(other.parts, reached[i]->parts))
          reached.push_back(&other);
      }
    }
    return false;
  }

  const Run run_;
  std::mt19937 random_;
  Coordinator coordinator_;
  Time now_ = time_from_ns(1);
  std::map<std::uint64_t, Member> members_;
  std::map<Key, Request> requests_;
  std::multimap<Time, std::uint64_t> due_;
  std::uint64_t arrivals_ = 0;
  std::size_t events_ = 0;
  std::size_t waited_ = 0;
  std::size_t at_once_ = 0;
  std::size_t broken_ = 0;
};

void play_many(const Run& run) {
  std::size_t waited = 0;
  std::size_t at_once = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string{run.policy.name});
    Play play{run, seed};
    play.to_the_end();
    if (::testing::Test::HasFailure()) return;
    waited += play.waited();
    at_once += play.at_once();
  }
  EXPECT_GT(at_once, 1000U);
  if (run.exclusive) {
    EXPECT_GT(waited, 1000U);
  }
}

TEST(PartsProperty, ExclusivePolicyGrantsNoPartTwice) { play_many({policy::fcfs, false, true}); }
TEST(PartsProperty, NestedOperationsEnd) { play_many({policy::fcfs, true, true}); }
TEST(PartsProperty, PreemptedOperationsEnd) {
  play_many({policy::interrupt, false, true});
  play_many({policy::interrupt, true, false});
}
TEST(PartsProperty, PlannedOperationsEnd) {
  play_many({policy::dynamic, false, false});
  play_many({policy::cost, false, false});
  play_many({policy::cost, true, false});
}
TEST(PartsProperty, SetsAndInterferenceEnd) {
  play_many({policy::set_10, false, false});
  play_many({policy::interfere, false, false});
}

}  // namespace
}  // namespace hocket::coordinator
