// Changes the ledger at random. A simple model, which has one list of requests, one of holders and one of timers,
// checks every index after each change.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/arbitration/ledger.hpp"
#include "coordinator/arbitration/places.hpp"

namespace hocket::coordinator {
namespace {

using model::RequestState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration ledger_lease = seconds{1};
constexpr Duration keep_alive = milliseconds{300};

// A request, as the model knows it.
struct Known {
  model::Member* member = nullptr;
  RequestId id;
  model::Target* target = nullptr;
  bool granted = false;
  bool paused = false;
  bool told = false;
  Time since{};
  Time expires{};
  std::optional<Time> bound{};
};

// A holder of a target, as the model knows it.
struct Having {
  model::Application* application = nullptr;
  model::Target* target = nullptr;
  std::int64_t grants = 0;
  bool pausing = false;
  std::optional<Time> kept{};
};

class LedgerRun {
 public:
  explicit LedgerRun(std::uint64_t seed) : random_(seed) {
    for (std::uint64_t id = 1; id <= 5; ++id) {
      const std::string job = "job" + std::to_string(id % 3);  // three applications, two of them with two members
      members_.push_back(&cluster_.join({"node1", "", MemberId{id}}, {job, job, "/bin/a", "mpich", "", 1, 1}, now_));
    }
    for (const char* name : {"t0", "t1", "t2"}) targets_.push_back(&cluster_.target(name));
  }

  void step() {
    if (one_in(2)) now_ += milliseconds{pick(200)};
    switch (pick(12)) {
      case 0:
      case 1:
      case 2: return add();
      case 3:
      case 4:
      case 5: return with_queued([this](Known& one) { grant(one); });
      case 6: return with_queued([this](Known& one) { pick(3) == 0 ? withdraw(one) : bound(one); });
      case 7: return with_granted([this](Known& one) { suspend(one); });
      case 8: return with_granted([this](Known& one) { pick(2) == 0 ? end(one) : tell_or_answer(one); });
      case 9: return renew();
      case 10: return change_holder();
      default: return time_passes();
    }
  }

  void check() {
    for (const model::Target* target : targets_) check(*target);
    for (model::Member* member : members_) check(*member);
    check_due();
  }
  int longest_queue = 0;
  int revoked = 0;

 private:
  using Place = Ledger::RequestPlace;

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }
  static Place place_of(const Known& one) { return *find(*one.member, one.id); }
  Having& holder_of(const Known& one) {
    const auto same = [&](const Having& other) {
      return other.application == one.member->application && other.target == one.target;
    };
    const auto found = std::find_if(holders_.begin(), holders_.end(), same);
    if (found != holders_.end()) return *found;
    return holders_.emplace_back(Having{one.member->application, one.target});
  }

  // ---- changes

  template <class Change>
  void with(bool granted, Change change) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (requests_[i].granted == granted) fitting.push_back(i);
    if (!fitting.empty()) change(requests_[fitting[pick(fitting.size())]]);
  }
  template <class Change>
  void with_queued(Change change) {
    with(false, change);
  }
  template <class Change>
  void with_granted(Change change) {
    with(true, change);
  }
  void forget(const Known& one) { requests_.erase(requests_.begin() + (&one - requests_.data())); }

  void add() {
    Known one{members_[pick(members_.size())], RequestId{++made_}, targets_[pick(targets_.size())]};
    one.since = now_;
    model::Request request{one.id, one.member->id, one.member->application->id, one.member->application, one.target};
    const Place added = ledger_.add(*one.member, request, now_);
    EXPECT_EQ(added, place_of(one));
    requests_.push_back(one);
  }

  void withdraw(const Known& one) {
    ledger_.withdraw(*one.member, place_of(one), now_);
    forget(one);
  }

  void bound(Known& one) {
    one.bound = now_ + milliseconds{1 + pick(500)};
    ledger_.bound(place_of(one), *one.bound);
  }

  void grant(Known& one) {
    one.granted = true;
    one.paused = one.told = false;
    one.expires = now_ + ledger_lease;
    one.bound.reset();
    Having& holder = holder_of(one);
    ++holder.grants;
    holder.kept.reset();
    EXPECT_EQ(ledger_.grant(*one.member, place_of(one), now_)->grants, holder.grants);
  }

  void suspend(Known& one) {
    one.granted = false;
    one.paused = true;
    one.since = now_;
    give_up(one, ledger_.suspend(*one.member, place_of(one), now_));
  }

  void end(const Known& one) {
    const auto holder = ledger_.end(*one.member, place_of(one), now_);
    give_up(one, holder);
    forget(one);
  }

  // A holder without grants is kept for a while, or removed.
  void give_up(const Known& one, Ledger::HolderPlace place) {
    Having& holder = holder_of(one);
    --holder.grants;
    EXPECT_EQ(place->grants, holder.grants);
    if (holder.grants > 0) return;
    if (one_in(2)) {
      holder.kept = now_ + milliseconds{pick(300)};
      return Ledger::keep(place, *holder.kept);
    }
    free(holder, place);
  }
  void free(const Having& holder, Ledger::HolderPlace place) {
    ledger_.free(place);
    holders_.erase(holders_.begin() + (&holder - holders_.data()));
  }

  void tell_or_answer(Known& one) {
    if (one_in(2)) {
      EXPECT_EQ(Ledger::tell(place_of(one)), !one.told);
      one.told = true;
    } else {
      Ledger::answer(place_of(one));
      one.told = false;
    }
  }

  void renew() {
    model::Member* member = members_[pick(members_.size())];
    model::Target* target = targets_[pick(targets_.size())];
    for (Known& one : requests_)
      if (one.granted && one.member == member && one.target == target) one.expires = now_ + ledger_lease;
    ledger_.renew(*member, *target, now_);
  }

  void change_holder() {
    if (holders_.empty()) return;
    Having& holder = holders_[pick(holders_.size())];
    const auto place = *find_holder(*holder.application, *holder.target);
    if (holder.grants == 0) return free(holder, place);
    if (holder.pausing)
      Ledger::end_pause(*place);
    else
      Ledger::begin_pause(*place, now_);
    holder.pausing = !holder.pausing;
  }

  void time_passes() {
    model::Target* target = targets_[pick(targets_.size())];
    const Time wake = one_in(3) ? Time{} : now_ + milliseconds{pick(500)};
    ledger_.set_timer(*target, wake);
    timers_.erase(target->number);
    if (wake != Time{}) timers_[target->number] = wake;
    const bool waits = !target->waiting.empty();
    if (const Time due = Ledger::of(*target).remind; ledger_.remind(*target, now_)) {
      EXPECT_TRUE(waits && due <= now_);
      EXPECT_EQ(Ledger::of(*target).remind, now_ + keep_alive);
    } else {
      EXPECT_TRUE(!waits || due > now_);
    }
    now_ += milliseconds{pick(300)};
    while (const auto late = ledger_.expired(now_)) {
      ++revoked;
      const auto same = [&](const Known& one) { return one.id == (*late)->id; };
      const auto found = std::find_if(requests_.begin(), requests_.end(), same);
      ASSERT_NE(found, requests_.end());
      EXPECT_TRUE(found->granted && found->expires <= now_);
      end(*found);
    }
  }

  // ---- checks

  void check(const model::Target& target) {
    std::vector<RequestId> queue;  // ids rise in order of arrival
    std::int64_t paused = 0;
    for (const Known& one : requests_) {
      if (one.target != &target || one.granted) continue;
      queue.push_back(one.id);
      paused += one.paused ? 1 : 0;
    }
    std::sort(queue.begin(), queue.end());
    std::vector<RequestId> kept_queue;
    for (const model::Request& request : target.waiting) kept_queue.push_back(request.id);
    EXPECT_EQ(kept_queue, queue);
    EXPECT_EQ(Ledger::of(target).paused, paused);
    longest_queue = std::max(longest_queue, static_cast<int>(queue.size()));

    auto kept = target.holders.begin();
    std::size_t idle = 0;
    std::int64_t pausing = 0;
    for (const Having& one : holders_) {
      if (one.target != &target) continue;
      ASSERT_NE(kept, target.holders.end());
      EXPECT_EQ(kept->application, one.application);
      EXPECT_EQ(kept->grants, one.grants);
      EXPECT_EQ(kept->pausing, one.pausing);
      EXPECT_EQ(Ledger::of(target).kept.count({one.kept.value_or(Time{}), one.application->id}), one.kept ? 1U : 0U);
      EXPECT_TRUE(find_holder(*one.application, target));
      idle += one.kept ? 1 : 0;
      pausing += one.pausing ? 1 : 0;
      ++kept;
    }
    EXPECT_EQ(kept, target.holders.end());
    EXPECT_EQ(Ledger::of(target).kept.size(), idle);
    EXPECT_EQ(Ledger::of(target).pausing, pausing);
  }

  void check(const model::Member& member) const {
    std::size_t own = 0;
    std::int64_t waiting = 0;
    std::int64_t granted = 0;
    for (const Known& one : requests_) {
      if (one.member->application != member.application) continue;
      ++(one.granted ? granted : waiting);
      if (one.member != &member) continue;
      ++own;
      const auto found = find(member, one.id);
      ASSERT_TRUE(found);
      EXPECT_EQ((*found)->state, one.granted ? RequestState::granted : RequestState::queued);
      EXPECT_EQ((*found)->since, one.since);
      EXPECT_EQ(Ledger::of(**found).told, one.told);
      EXPECT_TRUE(!one.granted || Ledger::of(**found).expires == one.expires);
    }
    EXPECT_EQ(member.requests.size(), own);
    EXPECT_EQ(member.application->waiting, waiting);
    EXPECT_EQ(member.application->granted, granted);
    const auto of_application = [&](const Having& one) { return one.application == member.application; };
    EXPECT_EQ(member.application->held.size(),
              static_cast<std::size_t>(std::count_if(holders_.begin(), holders_.end(), of_application)));
  }

  void check_due() {
    std::optional<Time> leases;
    std::optional<std::tuple<Time, MemberId, RequestId>> bounds;
    for (const Known& one : requests_) {
      if (one.granted) leases = std::min(leases.value_or(Time::max()), one.expires);
      if (!one.bound) continue;
      const std::tuple bound{*one.bound, one.member->id, one.id};
      bounds = bounds ? std::min(*bounds, bound) : bound;
    }
    const auto expired = ledger_.expired(now_);
    ASSERT_EQ(expired.has_value(), leases && *leases <= now_);
    EXPECT_TRUE(!expired || Ledger::of(**expired).expires == *leases);
    const auto overdue = ledger_.overdue(now_);
    ASSERT_EQ(overdue.has_value(), bounds && std::get<Time>(*bounds) <= now_);
    EXPECT_TRUE(!overdue || (*overdue)->id == std::get<RequestId>(*bounds));

    std::vector<std::pair<Time, std::uint64_t>> due;
    Time next = std::min(leases.value_or(Time::max()), bounds ? std::get<Time>(*bounds) : Time::max());
    for (const auto& [number, wake] : timers_) {
      next = std::min(next, wake);
      if (wake <= now_) due.emplace_back(wake, number);
    }
    std::sort(due.begin(), due.end());
    std::vector<std::pair<Time, std::uint64_t>> visited;
    ledger_.each_due(
        now_, [&](const model::Target& target) { visited.emplace_back(Ledger::of(target).wake, target.number); });
    EXPECT_EQ(visited, due);
    EXPECT_EQ(ledger_.deadline().value_or(Time::max()), next);
  }

  std::mt19937_64 random_;
  model::Cluster cluster_;
  Ledger ledger_{ledger_lease, keep_alive};
  std::vector<model::Member*> members_;
  std::vector<model::Target*> targets_;
  std::vector<Known> requests_;
  std::vector<Having> holders_;           // in order of arrival
  std::map<std::uint64_t, Time> timers_;  // by number of the target
  std::uint64_t made_ = 0;
  Time now_ = Time{} + seconds{1};
};

TEST(Ledger, KeepsAllIndexesConsistent) {
  int longest = 0;
  int revoked = 0;
  for (std::uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LedgerRun run{seed};
    for (int i = 0; i < 300 && !HasFailure(); ++i) {
      run.step();
      run.check();
    }
    longest = std::max(longest, run.longest_queue);
    revoked += run.revoked;
  }
  EXPECT_GT(longest, 5);
  EXPECT_GT(revoked, 500);
}

}  // namespace
}  // namespace hocket::coordinator
