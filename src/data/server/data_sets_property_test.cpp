// Property test: clients of data sets act at random, and the test checks every outcome against the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>

#include "server/data_sets.hpp"
#include "server/times_testing.hpp"

namespace hocket::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using GroupMember = DataSets::GroupMember;
using testing::at;
using OutcomeKind = DataSets::DataSetOutcome::OutcomeKind;

// Acts at random, and records what each client was answered.
class RandomClients {
 public:
  explicit RandomClients(std::uint64_t seed) : random_(seed), sets_({.most_bytes = most_bytes, .most_names = 3}) {}

  void run() {
    for (int step = 0; step < 300 && !::testing::Test::HasFailure(); ++step) {
      now_ += static_cast<std::int64_t>(random_() % 3);
      act();
      check();
    }
    for (std::uint64_t client = 0; client < clients; ++client) go(client);
    EXPECT_EQ(sets_.members(), 0U);
    EXPECT_EQ(sets_.next_deadline(), std::nullopt);
    EXPECT_EQ(sets_.versions(), published_.size());
    std::int64_t bytes = 0;
    for (const auto& [id, version] : published_) bytes += version.bytes;
    EXPECT_EQ(sets_.bytes(), bytes);
  }
  std::size_t served() const { return served_; }
  std::size_t read() const { return read_; }

 private:
  static constexpr std::uint64_t clients = 12;
  static constexpr std::int64_t most_bytes = 100;

  struct Group {
    DataSets::JoinRequest what;
    std::set<GroupMember> members;  // members that have not closed
    std::int64_t joined = 0;
    DataSets::VersionId version = 0;
    bool failed = false;
  };
  using GroupPtr = std::shared_ptr<Group>;
  struct Opening {
    GroupPtr group;
    Time deadline;
    bool open = false;
  };
  struct Version {
    std::string name;
    std::uint32_t number = 0;
    std::int64_t bytes = 0;
    std::int64_t readers = 0;
    std::set<std::string> reading;
    std::set<std::string> read;
    int held = 0;
  };

  void act() {
    const std::uint64_t client = random_() % clients;
    switch (random_() % 16) {
      case 0: return go(client);
      case 1: return expire();
      case 2:
      case 3:
      case 4:
      case 5:
      case 6: return join(client);
      default: break;
    }
    const auto own = openings_.lower_bound({client, 0});
    if (own == openings_.end() || own->first.client != client || !own->second.open) return;
    if (own->second.group->what.writes && random_() % 2 == 0) {
      grow(own->first, *own->second.group);
    } else {
      close(own->first);
    }
  }

  void expire() {
    take(sets_.expire(at(now_)));
    EXPECT_GT(sets_.next_deadline().value_or(Time::max()), at(now_)) << "who waits for longer than he would";
  }

  void join(std::uint64_t client) {
    const GroupMember member{client, ++last_};
    GroupPtr group = gathering_;
    if (!group) {
      group = std::make_shared<Group>();
      group->what = {random_() % 3 == 0 ? "x" : "y",
                     "program" + std::to_string(random_() % 5),
                     ++last_,
                     random_() % 2 == 0,
                     1 + static_cast<std::int64_t>(random_() % 3),
                     0,
                     milliseconds{random_() % 40}};
      if (group->what.writes) group->what.readers = static_cast<std::int64_t>(random_() % 3);
    }
    const bool twice = std::any_of(group->members.begin(), group->members.end(),
                                   [&](const GroupMember& other) { return other.client == client; });
    const Time deadline = at(now_) + group->what.patience;
    if (twice) {
      const DataSets::DataSetOutcome refused{OutcomeKind::refused, member, EINVAL, 0, false, 0, 0};
      EXPECT_THAT(sets_.join(member, group->what, at(now_)), ElementsAre(refused));
      return;
    }
    openings_[member] = {group, deadline, false};
    group->members.insert(member);
    ++group->joined;
    gathering_ = group->joined < group->what.participants ? group : nullptr;
    take(sets_.join(member, group->what, at(now_)));
  }

  void grow(GroupMember member, Group& group) {
    const auto end = static_cast<std::int64_t>(random_() % 70);
    const std::int64_t before = sets_.bytes();
    const DataSets::Answered answered = sets_.grow(member, end);
    if (group.failed) {
      EXPECT_EQ(answered.error, ECANCELED);
    } else {
      Version& version = writing_.at(group.version);
      const std::int64_t more = std::max<std::int64_t>(end - version.bytes, 0);
      EXPECT_EQ(answered.error, before + more > most_bytes ? ENOSPC : 0);
      if (answered.error == 0) version.bytes += more;
      if (answered.error != 0) fail(group);
    }
    take(answered.outcomes);
  }

  void close(GroupMember member) {
    const GroupPtr group = openings_.at(member).group;
    const bool intact = random_() % 10 != 0;
    if (!intact) fail(*group);
    const DataSets::Answered answered = sets_.close(member, intact);
    EXPECT_EQ(answered.error, group->failed ? ECANCELED : 0);
    leave(member);
    take(answered.outcomes);
  }

  void go(std::uint64_t client) {
    std::vector<GroupMember> own;
    for (const auto& [member, opening] : openings_) {
      if (member.client == client) own.push_back(member);
    }
    for (const GroupMember& member : own) {
      const GroupPtr group = openings_.at(member).group;
      if (gathering_ == group) gathering_ = nullptr;
      if (openings_.at(member).open) {
        fail(*group);
      } else {
        for (const GroupMember& other : group->members) {
          if (other != member) canceled_.insert(other);
        }
      }
      leave(member);
    }
    take(sets_.gone(client));
    EXPECT_THAT(canceled_, IsEmpty()) << "who is told that a member has gone";
  }

  void fail(Group& group) {
    if (std::exchange(group.failed, true)) return;
    if (group.what.writes) {
      dropped_.insert(group.version);
    } else {
      Version& version = published_.at(group.version);
      version.reading.erase(group.what.application);
    }
  }

  void leave(GroupMember member) {
    const Opening opening = openings_.at(member);
    openings_.erase(member);
    Group& group = *opening.group;
    group.members.erase(member);
    if (!opening.open || !group.members.empty()) return;
    if (!group.what.writes) {
      Version& version = published_.at(group.version);
      --version.held;
      if (group.failed) return;
      version.reading.erase(group.what.application);
      EXPECT_TRUE(version.read.insert(group.what.application).second) << "read twice";
      last_read_[{group.what.name, group.what.application}] = version.number;
      ++read_;
    } else if (!group.failed) {
      const auto moved = writing_.extract(group.version);
      EXPECT_GT(moved.mapped().number, newest_[moved.mapped().name]);
      newest_[moved.mapped().name] = moved.mapped().number;
      published_.emplace(group.version, moved.mapped());
    }
  }

  void take(const DataSets::DataSetOutcomes& outcomes) {
    for (const DataSets::DataSetOutcome& one : outcomes) {
      switch (one.kind) {
        case OutcomeKind::served: serve(one); break;
        case OutcomeKind::refused: refuse(one); break;
        case OutcomeKind::forgotten: forget(one); break;
      }
    }
    EXPECT_THAT(dropped_, IsEmpty()) << "memory that was not given back";
  }

  void serve(const DataSets::DataSetOutcome& one) {
    Opening& opening = openings_.at(one.member);
    Group& group = *opening.group;
    EXPECT_FALSE(std::exchange(opening.open, true)) << "answered twice";
    EXPECT_EQ(group.joined, group.what.participants);
    EXPECT_EQ(one.writes, group.what.writes);
    const DataSets::VersionId before = std::exchange(group.version, one.version);
    if (before != 0) {
      EXPECT_EQ(before, one.version) << "members of a group have different versions";
      return;
    }
    ++served_;
    const std::string& name = group.what.name;
    if (group.what.writes) {
      EXPECT_TRUE(std::none_of(writing_.begin(), writing_.end(), [&](const auto& w) { return w.second.name == name; }));
      const auto unread = std::count_if(published_.begin(), published_.end(),
                                        [&](const auto& p) { return p.second.name == name && p.second.readers > 0; });
      EXPECT_LT(unread, 2);
      EXPECT_EQ(one.number, newest_[name] + 1);
      writing_[one.version] = {name, one.number, 0, group.what.readers, {}, {}, 0};
      return;
    }
    Version& version = published_.at(one.version);
    EXPECT_EQ(version.name, name);
    EXPECT_EQ(version.number, one.number);
    EXPECT_EQ(version.bytes, one.bytes);
    EXPECT_FALSE(is_reading(group.what)) << "two at a time";
    version.reading.insert(group.what.application);
    ++version.held;
    if (version.readers > 0) {
      EXPECT_LE(static_cast<std::int64_t>(version.read.size() + version.reading.size()), version.readers);
    }
    const std::uint32_t last = last_read_[{name, group.what.application}];
    EXPECT_GT(one.number, last) << "not in their order";
  }

  void refuse(const DataSets::DataSetOutcome& one) {
    const Opening& opening = openings_.at(one.member);
    EXPECT_FALSE(opening.open);
    if (one.error == ECANCELED) {
      EXPECT_EQ(canceled_.erase(one.member), 1U);
    } else {
      EXPECT_EQ(one.error, ETIMEDOUT);
    }
    if (gathering_ == opening.group) gathering_ = nullptr;
    leave(one.member);
  }

  void forget(const DataSets::DataSetOutcome& one) {
    if (dropped_.erase(one.version) != 0) {
      writing_.erase(one.version);
      return;
    }
    const Version& version = published_.at(one.version);
    EXPECT_EQ(version.held, 0) << "a version that is read";
    EXPECT_TRUE(version.readers > 0 ? static_cast<std::int64_t>(version.read.size()) == version.readers
                                    : version.number < newest_[version.name] || wants_to_write(version.name));
    published_.erase(one.version);
  }

  // True if a complete group waits for room for a version of the name.
  bool wants_to_write(const std::string& name) const {
    return std::any_of(openings_.begin(), openings_.end(), [&](const auto& one) {
      const Group& group = *one.second.group;
      const bool is_complete = group.joined == group.what.participants;
      return !one.second.open && is_complete && group.what.writes && group.what.name == name;
    });
  }

  bool is_reading(const DataSets::JoinRequest& what) const {
    return std::any_of(published_.begin(), published_.end(), [&](const auto& one) {
      return one.second.name == what.name && one.second.reading.contains(what.application);
    });
  }

  // True if a complete group that waits could have been served.
  bool waits_in_vain(const DataSets::JoinRequest& what) {
    if (what.writes) return published_.empty() && writing_.empty();
    const std::uint32_t last = last_read_[{what.name, what.application}];
    return !is_reading(what) && std::any_of(published_.begin(), published_.end(), [&](const auto& one) {
      const Version& version = one.second;
      const auto given = static_cast<std::int64_t>(version.read.size() + version.reading.size());
      return version.name == what.name && version.number > last && (version.readers == 0 || given < version.readers);
    });
  }

  void check() {
    EXPECT_LE(sets_.bytes(), most_bytes);
    EXPECT_EQ(sets_.members(), openings_.size());
    EXPECT_EQ(sets_.versions(), published_.size() + writing_.size());
    std::optional<Time> earliest;
    for (const auto& [member, opening] : openings_) {
      if (opening.open) continue;
      earliest = std::min(earliest.value_or(Time::max()), opening.deadline);
      const Group& group = *opening.group;
      const bool is_complete = group.joined == group.what.participants;
      EXPECT_FALSE(is_complete && waits_in_vain(group.what)) << "client " << member.client;
    }
    EXPECT_EQ(sets_.next_deadline(), earliest);
  }

  std::mt19937_64 random_;
  DataSets sets_;
  std::int64_t now_ = 0;
  std::uint64_t last_ = 0;
  GroupPtr gathering_;  // not all of its clients have joined
  std::map<GroupMember, Opening> openings_;
  std::map<DataSets::VersionId, Version> writing_;
  std::map<DataSets::VersionId, Version> published_;
  std::set<DataSets::VersionId> dropped_;  // clients not answered yet
  std::set<GroupMember> canceled_;         // not answered yet
  std::map<std::string, std::uint32_t> newest_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> last_read_;
  std::size_t served_ = 0;
  std::size_t read_ = 0;
};

TEST(DataSets, KeepTheirRulesWhateverClientsDo) {
  std::size_t served = 0, read = 0;
  for (std::uint64_t seed = 0; seed < 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomClients clients{seed};
    clients.run();
    served += clients.served();
    read += clients.read();
  }
  EXPECT_GT(served, 30'000U);
  EXPECT_GT(read, 3'000U);
}

}  // namespace
}  // namespace hocket::server
