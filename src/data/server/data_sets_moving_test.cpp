// Tests names that move from one home to another, case by case and by clients that act at random meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <random>

#include "server/data_sets.hpp"

namespace hocket::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using GroupMember = DataSets::GroupMember;
using DataSetOutcome = DataSets::DataSetOutcome;
using OutcomeKind = DataSetOutcome::OutcomeKind;

constexpr std::uint64_t mover = 1000;  // client number of the old home at the new one

DataSets::JoinRequest request(const std::string& application, std::uint64_t group, bool writes,
                              std::int64_t readers = 1) {
  return {"x", application, group, writes, 1, writes ? readers : 0, std::chrono::hours{1}};
}

// Writes a copy of a version, as the mover does. Returns an errno.
int write_copy(DataSets& to, std::uint64_t copy, std::int64_t length) {
  static std::uint64_t joins = 0;
  const GroupMember member{mover, ++joins};
  DataSets::JoinRequest what{
      DataSets::name_of_copy(std::to_string(copy)), "hocket-server", joins, true, 1, 1, {}, true};
  const DataSets::DataSetOutcomes told = to.join(member, what, Time{});
  if (told.empty() || told.back().kind != OutcomeKind::served) return told.empty() ? EAGAIN : told.back().error;
  if (const int error = to.grow(member, length).error; error != 0) return error;
  return to.close(member, true, length).error;
}

// Moves a name. Returns the outcomes of both, or the error of the first step that failed.
struct MoveResult {
  int error = 0;
  DataSets::DataSetOutcomes old_home, new_home;
};
MoveResult move(DataSets& from, DataSets& to, const std::string& name) {
  static std::uint64_t copies = 0;
  DataSets::Moving moving = from.begin_move(name);
  MoveResult result;
  for (std::size_t i = 0; i < moving.versions.size() && result.error == 0; ++i) {
    if (moving.versions[i].id == 0) continue;
    moving.moved.versions[i].copy = ++copies;
    result.error = write_copy(to, copies, moving.versions[i].length);
  }
  if (result.error == 0) {
    DataSets::Answered adopted = to.adopt(mover, moving.moved);
    result.error = adopted.error;
    result.new_home = std::move(adopted.outcomes);
  }
  const DataSets::DataSetOutcomes gone = to.gone(mover);
  result.new_home.insert(result.new_home.end(), gone.begin(), gone.end());
  result.old_home = from.end_move(name, result.error == 0 && &from != &to);
  return result;
}

class DataSetsMoving : public ::testing::Test {
 protected:
  void publish(DataSets& sets, std::int64_t length, std::int64_t readers = 1) {
    const GroupMember member{1, ++last};
    ASSERT_EQ(sets.join(member, request("writer", last, true, readers), Time{}).back().kind, OutcomeKind::served);
    ASSERT_EQ(sets.grow(member, length).error, 0);
    ASSERT_EQ(sets.close(member, true, length).error, 0);
  }
  // Joins to read. Returns the number of the version; -errno; 0 while it waits.
  std::int64_t open(DataSets& sets, const std::string& application, GroupMember* member = nullptr) {
    const GroupMember its{2, ++last};
    if (member != nullptr) *member = its;
    const DataSets::DataSetOutcomes told = sets.join(its, request(application, last, false), Time{});
    if (told.empty()) return 0;
    const DataSetOutcome& one = told.back();
    return one.kind == OutcomeKind::served ? std::int64_t{one.number} : -std::int64_t{one.error};
  }
  std::int64_t read(DataSets& sets, const std::string& application) {
    GroupMember member;
    const std::int64_t number = open(sets, application, &member);
    if (number > 0) {
      EXPECT_EQ(sets.close(member, true).error, 0);
    }
    return number;
  }

  DataSets from{{.most_bytes = 100}}, to{{.most_bytes = 100}};
  std::uint64_t last = 0;
};

TEST_F(DataSetsMoving, ANameGoesOnAtItsNewHome) {
  publish(from, 10, 2);
  EXPECT_EQ(read(from, "a"), 1);
  publish(from, 20);
  EXPECT_TRUE(from.is_home_of("x"));
  ASSERT_EQ(from.movable().size(), 1U);
  EXPECT_EQ(move(from, to, "x").error, 0);
  EXPECT_FALSE(from.is_home_of("x"));
  EXPECT_TRUE(to.is_home_of("x"));
  EXPECT_EQ(from.bytes(), 0);
  EXPECT_EQ(to.bytes(), 30);
  EXPECT_EQ(to.names(), 1U) << "the names of the copies are gone";
  EXPECT_EQ(read(to, "b"), 1);
  EXPECT_EQ(to.bytes(), 20);
  EXPECT_EQ(read(to, "a"), 2) << "it has read the first at the old home";
  EXPECT_EQ(to.versions(), 0U);
  publish(to, 1);
  EXPECT_EQ(read(to, "a"), 3) << "numbers go on";
}

TEST_F(DataSetsMoving, NothingIsServedMeanwhile) {
  publish(from, 10);
  GroupMember member;
  const DataSets::Moving moving = from.begin_move("x");
  EXPECT_THAT(from.movable(), IsEmpty());
  EXPECT_EQ(open(from, "a", &member), 0);
  const DataSets::DataSetOutcomes back = from.end_move("x", false);
  ASSERT_EQ(back.size(), 1U) << "the move failed";
  EXPECT_EQ(back[0].kind, OutcomeKind::served);
  EXPECT_THAT(from.movable(), IsEmpty()) << "it is open";
  EXPECT_TRUE(from.is_open("x"));
}

TEST_F(DataSetsMoving, WhoWaitsIsSentAway) {
  GroupMember member;
  EXPECT_EQ(open(from, "a", &member), 0);
  ASSERT_EQ(from.movable().size(), 1U);
  EXPECT_FALSE(from.movable()[0].is_known);
  EXPECT_THAT(from.end_move("x", true),
              ElementsAre(DataSetOutcome{OutcomeKind::refused, member, ESHUTDOWN, 0, false, 0, 0}));
  EXPECT_EQ(from.members(), 0U);
  EXPECT_EQ(from.names(), 0U);
  EXPECT_THAT(from.end_move("x", true), IsEmpty());
}

TEST_F(DataSetsMoving, ADrainedServerBeginsNoName) {
  publish(from, 10);
  from.drain(true);
  EXPECT_EQ(to.is_drained(), false);
  EXPECT_EQ(read(from, "a"), 1) << "it still serves what it has";
  EXPECT_EQ(open(from, "a"), -ESHUTDOWN) << "and begins nothing";
  EXPECT_EQ(move(from, to, "x").error, 0) << "the numbers move, too";
  EXPECT_EQ(open(from, "a"), -ESHUTDOWN);
  publish(to, 1);
  EXPECT_EQ(read(to, "a"), 2);
  to.drain(true);
  EXPECT_EQ(move(to, from, "x").error, ESHUTDOWN) << "the other one is drained, too";
  EXPECT_TRUE(to.is_home_of("x"));
}

TEST_F(DataSetsMoving, WithoutRoomAllIsAsBefore) {
  publish(from, 60);
  DataSets small{{.most_bytes = 50}};
  EXPECT_EQ(move(from, small, "x").error, ENOSPC);
  EXPECT_EQ(small.bytes(), 0);
  EXPECT_EQ(small.names(), 0U);
  EXPECT_EQ(read(from, "a"), 1);
}

TEST_F(DataSetsMoving, ANewHomeKeepsWhatItHas) {
  publish(from, 10);
  publish(to, 5);
  EXPECT_EQ(move(from, to, "x").error, EEXIST);
  EXPECT_EQ(to.bytes(), 5);
  EXPECT_EQ(from.bytes(), 10);
  EXPECT_EQ(read(to, "a"), 1);
  EXPECT_EQ(move(from, to, "x").error, 0) << "all has been read there";
  EXPECT_EQ(open(to, "a"), 0) << "it counts as read";
}

TEST_F(DataSetsMoving, OnlyItsOwnCopiesAreAdopted) {
  EXPECT_EQ(write_copy(to, 77, 10), 0);
  const MovedName moved{"x", 3, {}, {{3, 77, 1, 0, {}}}};
  EXPECT_EQ(to.adopt(mover + 1, moved).error, ESTALE);
  EXPECT_EQ(to.adopt(mover, {"x", 3, {}, {{3, 78, 1, 0, {}}}}).error, ESTALE);
  for (const MovedName& wrong :
       {MovedName{"", 3, {}, {}}, MovedName{"\x01y", 3, {}, {}}, MovedName{"x", 2, {}, {{3, 77, 1, 0, {}}}},
        MovedName{"x", 3, {}, {{0, 77, 1, 0, {}}}}, MovedName{"x", 3, {}, {{3, 77, 1, 0, {"a", "b"}}}},
        MovedName{"x", 3, {}, {{3, 77, 1, 0, {}}, {3, 77, 1, 0, {}}}}})
    EXPECT_EQ(to.adopt(mover, wrong).error, EINVAL) << text_of(wrong);
  EXPECT_EQ(to.bytes(), 10);
  to.gone(mover);
  EXPECT_EQ(to.bytes(), 0);
  EXPECT_EQ(to.names(), 0U);
}

TEST_F(DataSetsMoving, AHomeMayReplaceItsOwnVersions) {
  publish(from, 10);
  publish(from, 20);
  const MoveResult moved = move(from, from, "x");
  EXPECT_EQ(moved.error, 0);
  EXPECT_EQ(moved.new_home.size(), 2U) << "the old versions are forgotten";
  EXPECT_EQ(from.bytes(), 30);
  EXPECT_EQ(read(from, "a"), 1);
  EXPECT_EQ(read(from, "a"), 2);
}

TEST_F(DataSetsMoving, ReadersOfALostVersionAreToldSoAtTheNewHome) {
  publish(from, 10);
  const GroupMember writer{1, ++last};
  const DataSets::VersionId id = from.join(writer, request("writer", last, true), Time{}).back().version;
  from.close(writer, true, 5);
  EXPECT_THAT(from.lose(id), ::testing::SizeIs(1));
  EXPECT_EQ(move(from, to, "x").error, 0);
  EXPECT_EQ(read(to, "a"), 1);
  EXPECT_EQ(read(to, "a"), -ENODATA);
  EXPECT_EQ(to.versions(), 0U);
}

// Applications write and read a name while it moves to and fro. Each reads each version once, in order.
class MovingModel {
 public:
  explicit MovingModel(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) act();
    for (const std::string application : {"a", "b"}) finish_reading(application);
    std::int64_t left = 0;
    for (const auto& sets : sets_) left += static_cast<std::int64_t>(sets->versions());
    EXPECT_LE(left, 1) << "but for one that is written";
  }
  int moves() const { return moves_; }

 private:
  struct ModelOpening {
    std::size_t at = 0;
    GroupMember member;
    bool waits = false;
  };

  DataSets& home() { return *sets_[home_]; }

  void act() {
    switch (random_() % 8) {
      case 0:
      case 1: return write();
      case 2: return try_move();
      default: return read(random_() % 2 == 0 ? "a" : "b");
    }
  }

  void write() {
    if (writer_) {
      const DataSets::Answered closed = sets_[writer_->at]->close(writer_->member, true, 7);
      EXPECT_EQ(closed.error, 0);
      ++published_;
      return take(std::exchange(writer_, std::nullopt)->at, closed.outcomes);
    }
    const GroupMember member{1, ++last_};
    const auto told = home().join(member, request("w", last_, true, 2), Time{});
    if (told.empty()) {
      // There is no room yet. The client gives up.
      take(home_, home().gone(1));
      EXPECT_GE(published_ - std::min(done_["a"], done_["b"]), 2);
      return;
    }
    EXPECT_EQ(told.back().number, published_ + 1);
    writer_ = {home_, member};
  }

  void read(const std::string& application) {
    std::optional<ModelOpening>& opening = readers_[application];
    if (opening && !opening->waits) {
      const DataSets::Answered closed = sets_[opening->at]->close(opening->member, true);
      EXPECT_EQ(closed.error, 0);
      done_[application] = read_[application];
      return take(std::exchange(opening, std::nullopt)->at, closed.outcomes);
    }
    if (opening) return;
    const GroupMember member{application == "a" ? 2U : 3U, ++last_};
    opening = {home_, member, true};
    take(home_, home().join(member, request(application, last_, false), Time{}));
  }

  void take(std::size_t at, const DataSets::DataSetOutcomes& told) {
    for (const DataSetOutcome& one : told) {
      if (one.kind == OutcomeKind::forgotten) continue;
      for (auto& [application, opening] : readers_) {
        if (!opening || opening->at != at || opening->member != one.member) continue;
        if (one.kind == OutcomeKind::refused) {
          EXPECT_EQ(one.error, ESHUTDOWN);
          opening.reset();
          break;
        }
        opening->waits = false;
        EXPECT_EQ(one.number, ++read_[application]) << application << " gets each version once, in order";
      }
    }
  }

  void try_move() {
    if (home().movable().empty() || !home().is_home_of("x")) return;
    const std::size_t old = home_;
    DataSets& other = *sets_[1 - home_];
    if (random_() % 3 == 0) {  // the old home gives up before the name is adopted
      home().begin_move("x");
      EXPECT_EQ(write_copy(other, ++last_, 5), 0);
      if (random_() % 2 == 0) read("a");  // joins meanwhile
      take(1 - home_, other.gone(mover));
      EXPECT_EQ(other.bytes(), 0);
      return take(home_, home().end_move("x", false));
    }
    home().drain(true);
    const MoveResult moved = move(home(), other, "x");
    EXPECT_EQ(moved.error, 0);
    home_ = 1 - home_;
    ++moves_;
    take(old, moved.old_home);
    take(home_, moved.new_home);
    sets_[old]->drain(false);
  }

  void finish_reading(const std::string& application) {
    for (int i = 0; i < 20 && read_[application] < published_; ++i) read(application);
    if (readers_[application] && !readers_[application]->waits) read(application);
    EXPECT_EQ(read_[application], published_) << application;
  }

  std::mt19937_64 random_;
  std::unique_ptr<DataSets> sets_[2] = {std::make_unique<DataSets>(DataSets::DataSetSettings{.most_bytes = 100}),
                                        std::make_unique<DataSets>(DataSets::DataSetSettings{.most_bytes = 100})};
  std::size_t home_ = 0;
  std::uint64_t last_ = 0;
  std::int64_t published_ = 0;
  std::optional<ModelOpening> writer_;
  std::map<std::string, std::optional<ModelOpening>> readers_;
  std::map<std::string, std::int64_t> read_, done_;  // numbers of the versions that were opened, and closed
  int moves_ = 0;
};

TEST(DataSetsMovingProperties, EachReaderGetsEachVersionOnceWhereverTheyAre) {
  int moves = 0;
  for (std::uint64_t seed = 0; seed < 1000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MovingModel model{seed};
    model.run();
    moves += model.moves();
  }
  EXPECT_GT(moves, 3000);
}

}  // namespace
}  // namespace hocket::server
