// Members of an application do the same I/O twice: once with a grant of each operation, and once under delegations,
// where it is reported in batches of random lengths. The coordinator learns the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Happened {
  Time at;
  std::uint64_t member;
  event::Body body;
};

// Random I/O of some members: phases of operations, which overlap between members, and times of computing. IO_PHASE of
// member 1 follows each phase.
class RandomIo {
 public:
  explicit RandomIo(std::uint64_t seed) : random_(seed), members_(1 + random_() % 3) {
    // Each member gets its delegation, one after the other, a second after the first operation.
    operation(1, Time{} + seconds{1}, some(10));
    for (std::uint64_t member = 1; member <= members_; ++member)
      operation(member, Time{} + seconds{2 + member}, some(10));
    Time phase = Time{} + seconds{10};
    for (int i = 0; i < 8; ++i) phase = add_phase(phase) + seconds{1} + some(500);
    const auto earlier = [](const Happened& one, const Happened& other) { return one.at < other.at; };
    std::stable_sort(all.begin(), all.end(), earlier);
    number();
  }

  std::uint64_t members() const { return members_; }
  std::vector<Happened> all;

 private:
  // Returns any number of nanoseconds, so that hardly any two events come at the same time.
  Duration some(std::uint64_t most_ms) { return Duration{1 + random_() % (most_ms * 1'000'000)}; }

  void operation(std::uint64_t member, Time at, Duration length) {
    const auto bytes = static_cast<std::int64_t>(1'000'000 + random_() % 1'000);
    all.push_back({at, member, event::StartIo{{}, "disk", "/f", "MPI_File_write", bytes}});
    all.push_back({at + length, member, event::FinishIo{{}, length, bytes}});
  }
  // IO_PHASE comes when everything has ended, so that a phase of one member is not that of another one.
  Time add_phase(Time start) {
    Time end = start;
    for (std::uint64_t member = 1; member <= members_; ++member) {
      Time at = start + some(20);
      for (std::uint64_t n = 1 + random_() % 6; n > 0; --n) {
        const Duration length = milliseconds{20} + some(60);
        operation(member, at, length);
        end = std::max(end, at + length);
        at += length + some(30);
      }
    }
    event::IoPhase phase;
    phase.index = phases_++;
    phase.start = start;
    phase.end = end;
    phase.io = end - start;
    phase.bytes_written = 1'000'000;
    phase.target = "disk";
    end += milliseconds{5};
    all.push_back({end, 1, phase});
    return end;
  }
  // Numbers the requests of each member. An operation follows the end of the member's last one.
  void number() {
    std::vector<std::uint64_t> last(members_ + 1);
    for (Happened& one : all) {
      if (auto* start = std::get_if<event::StartIo>(&one.body)) start->request = RequestId{++last[one.member]};
      if (auto* finish = std::get_if<event::FinishIo>(&one.body)) finish->request = RequestId{last[one.member]};
    }
  }

  std::mt19937_64 random_;
  std::uint64_t members_;
  std::int64_t phases_ = 0;
};

// A coordinator, and the members' halves of the protocol.
class MemberRun {
 public:
  MemberRun(Duration delegate_after, const RandomIo& io, std::uint64_t seed)
      : random_(seed),
        coordinator_(settings(delegate_after)),
        batches_(io.members() + 1),
        delegation_(io.members() + 1) {
    for (std::uint64_t member = 1; member <= io.members(); ++member) {
      event::Hello hello{"job", "a", "/bin/a", "mpich", "0.1", 1, member == 1 ? 4 : 0};
      hello.delegations = true;
      send(Time{}, member, hello);
    }
    for (const Happened& one : io.all) {
      send_batches(one.at);
      if (delegation_[one.member])
        add(one);
      else
        send(one.at, one.member, one.body);
    }
    send_batches(io.all.back().at + seconds{1});
    send(io.all.back().at + seconds{2}, 0, event::Tick{});
  }

  int delegated = 0;  // operations without a grant
  const model::Application& application() const { return coordinator_.cluster().applications().begin()->second; }
  event::Application row(Time now) const { return coordinator_.describe(application(), now); }

 private:
  struct Batch {
    std::vector<Happened> events;
    Time due{};
  };

  static CoordinatorSettings settings(Duration delegate_after) {
    CoordinatorSettings settings = testing::usual_settings();
    settings.delegate_after = delegate_after;
    return settings;
  }
  void send(Time at, std::uint64_t member, event::Body body) {
    if (const auto deadline = coordinator_.deadline(); deadline && *deadline < at)
      coordinator_.handle({*deadline, {}, event::Tick{}});
    for (const Command& command : coordinator_.handle({at, {"n", "", MemberId{member}}, std::move(body)})) {
      const auto* grant = std::get_if<event::GrantIo>(&command.body);
      if (grant != nullptr && grant->delegated) delegation_[command.to.value] = grant->request;
    }
  }
  void add(const Happened& one) {
    Batch& batch = batches_[one.member];
    if (batch.events.empty()) batch.due = one.at + Duration{1 + random_() % 200'000'000};
    batch.events.push_back(one);
    const auto* finish = std::get_if<event::FinishIo>(&one.body);
    // The operation whose grant brought the delegation ends as any other.
    if (finish != nullptr && finish->request == delegation_[one.member]) {
      batch.events.pop_back();
      send(one.at, one.member, one.body);
    }
  }
  void send_batches(Time now) {
    while (true) {
      Batch* first = nullptr;
      for (Batch& batch : batches_) {
        if (!batch.events.empty() && batch.due < now && (first == nullptr || batch.due < first->due)) first = &batch;
      }
      if (first == nullptr) return;
      const std::vector<Happened> events = std::exchange(first->events, {});
      for (const Happened& one : events) send(first->due, one.member, aged(one, first->due));
    }
  }
  event::Body aged(const Happened& one, Time now) {
    event::Body body = one.body;
    if (auto* start = std::get_if<event::StartIo>(&body)) {
      start->ago = now - one.at;
      start->delegation = delegation_[one.member];
      ++delegated;
    }
    if (auto* finish = std::get_if<event::FinishIo>(&body)) finish->ago = now - one.at;
    if (auto* phase = std::get_if<event::IoPhase>(&body)) phase->ago = now - one.at;
    return body;
  }

  std::mt19937_64 random_;
  Coordinator coordinator_;
  std::vector<Batch> batches_;         // by member
  std::vector<RequestId> delegation_;  // by member; none: it has none
};

TEST(Delegations, LetTheCoordinatorLearnTheSame) {
  int delegated = 0;
  int phases = 0;  // runs in which the length of an I/O phase was learnt
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomIo io{seed};
    const MemberRun granted{Duration{}, io, seed};
    const MemberRun batched{seconds{1}, io, seed};
    delegated += batched.delegated;
    const Time end = io.all.back().at + seconds{3};
    const event::Application alone = granted.row(end);
    const event::Application under = batched.row(end);
    EXPECT_EQ(alone.delegated, "");
    EXPECT_EQ(under.delegated, "disk");
    EXPECT_EQ(alone.state, under.state);
    EXPECT_EQ(alone.since, under.since);
    EXPECT_EQ(alone.phases, under.phases);
    EXPECT_EQ(alone.period, under.period);
    EXPECT_EQ(alone.duration, under.duration);
    EXPECT_EQ(alone.io, under.io);
    EXPECT_EQ(alone.wait, under.wait);
    EXPECT_EQ(alone.next_start, under.next_start);
    EXPECT_EQ(alone.bytes_written, under.bytes_written);
    const model::AccessHistory& one = granted.application().accesses;
    const model::AccessHistory& other = batched.application().accesses;
    EXPECT_EQ(one.last_end(), other.last_end());
    EXPECT_EQ(one.follows(), other.follows());
    ASSERT_EQ(one.gap().has_value(), other.gap().has_value());
    EXPECT_DOUBLE_EQ(one.gap() ? one.gap()->mean_s : 0, other.gap() ? other.gap()->mean_s : 0);
    ASSERT_TRUE(one.access(0, 1'000'000) && other.access(0, 1'000'000));
    EXPECT_DOUBLE_EQ(one.access(0, 1'000'000)->seconds, other.access(0, 1'000'000)->seconds);
    ASSERT_EQ(one.phase(0).has_value(), other.phase(0).has_value());
    if (!one.phase(0)) continue;
    ++phases;
    EXPECT_DOUBLE_EQ(one.phase(0)->size_s, other.phase(0)->size_s);
    EXPECT_DOUBLE_EQ(one.phase(0)->computing_s, other.phase(0)->computing_s);
  }
  EXPECT_GT(delegated, 10'000);
  EXPECT_GT(phases, 50);
}

}  // namespace
}  // namespace hocket::coordinator
