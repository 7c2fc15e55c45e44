#include "server/data_sets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "server/times_testing.hpp"

namespace hocket::server {
namespace {

using std::chrono::seconds;
using testing::at;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using OutcomeKind = DataSets::DataSetOutcome::OutcomeKind;

// Writes outcomes as texts: "7 gets 2", "7: 110" (client and version, client and errno), "v3 forgotten".
std::vector<std::string> words(const DataSets::DataSetOutcomes& outcomes) {
  std::vector<std::string> said;
  for (const DataSets::DataSetOutcome& one : outcomes) {
    const std::string client = std::to_string(one.member.client);
    switch (one.kind) {
      case OutcomeKind::served: said.push_back(client + " gets " + std::to_string(one.number)); break;
      case OutcomeKind::refused: said.push_back(client + ": " + std::to_string(one.error)); break;
      case OutcomeKind::forgotten: said.push_back("v" + std::to_string(one.version) + " forgotten"); break;
    }
  }
  return said;
}

// Data sets in which a group has its first client's number, and a client one opening at a time.
struct Sets {
  DataSets sets{{.most_bytes = 100}};
  std::int64_t now = 0;

  DataSets::JoinRequest what(std::uint64_t group, std::string application, std::int64_t readers) const {
    return {"field", std::move(application), group, false, 1, readers, seconds{1}};
  }
  std::vector<std::string> join(std::uint64_t client, const DataSets::JoinRequest& joining) {
    return words(sets.join({client, 0}, joining, at(now)));
  }
  std::vector<std::string> write(std::uint64_t client, std::int64_t readers = 1) {
    DataSets::JoinRequest joining = what(client, "writer", readers);
    joining.writes = true;
    return join(client, joining);
  }
  std::vector<std::string> read(std::uint64_t client, std::string application = "reader") {
    return join(client, what(client, std::move(application), 0));
  }
  int grow(std::uint64_t client, std::int64_t end) { return sets.grow({client, 0}, end).error; }
  std::vector<std::string> close(std::uint64_t client, int expected = 0) {
    const DataSets::Answered answered = sets.close({client, 0}, true);
    EXPECT_EQ(answered.error, expected) << "close of client " << client;
    return words(answered.outcomes);
  }
  std::vector<std::string> gone(std::uint64_t client) { return words(sets.gone(client)); }
  // Writes and publishes a whole version.
  void publish(std::uint64_t client, std::int64_t readers = 1, std::int64_t bytes = 10) {
    write(client, readers);
    EXPECT_EQ(grow(client, bytes), 0);
    close(client);
  }
};

std::string error(std::uint64_t client, int number) { return std::to_string(client) + ": " + std::to_string(number); }

// ---- one writer, one reader ----------------------------------------------------------------------------------------

TEST(DataSets, AVersionIsThereWhenItsWriterHasClosed) {
  Sets s;
  EXPECT_THAT(s.write(1), ElementsAre("1 gets 1"));
  EXPECT_EQ(s.grow(1, 40), 0);
  EXPECT_EQ(s.grow(1, 20), 0);
  EXPECT_EQ(s.sets.bytes(), 40);
  EXPECT_THAT(s.read(2), IsEmpty());
  EXPECT_THAT(s.close(1), ElementsAre("2 gets 1"));
  EXPECT_EQ(s.grow(2, 50), EBADF) << "by one that reads";
  EXPECT_THAT(s.close(2), ElementsAre("v1 forgotten"));
  EXPECT_EQ(s.sets.bytes(), 0);
  EXPECT_THAT(s.write(1), ElementsAre("1 gets 2"));
}

TEST(DataSets, AWriterWaitsForReadersThatAreTwoBehind) {
  Sets s;
  s.publish(1);
  s.publish(1);
  EXPECT_THAT(s.write(1), IsEmpty());
  EXPECT_THAT(s.write(3), IsEmpty());
  EXPECT_THAT(s.read(2), ElementsAre("2 gets 1"));
  EXPECT_THAT(s.close(2), ElementsAre("v1 forgotten", "1 gets 3"));
  EXPECT_THAT(s.close(1), IsEmpty());
  EXPECT_THAT(s.read(2), ElementsAre("2 gets 2"));
  EXPECT_THAT(s.close(2), ElementsAre("v2 forgotten", "3 gets 4"));
}

TEST(DataSets, WhoHasWaitedLongEnoughIsToldSo) {
  Sets s;
  EXPECT_EQ(s.sets.next_deadline(), std::nullopt);
  s.read(1);
  s.now = 100;
  DataSets::JoinRequest patient = s.what(2, "other", 0);
  patient.patience = std::chrono::hours{100};
  s.join(2, patient);
  EXPECT_EQ(s.sets.next_deadline(), at(1000));
  EXPECT_THAT(words(s.sets.expire(at(999))), IsEmpty());
  EXPECT_THAT(words(s.sets.expire(at(1000))), ElementsAre(error(1, ETIMEDOUT)));
  EXPECT_EQ(s.sets.next_deadline(), at(100) + std::chrono::hours{1});
  EXPECT_THAT(words(s.sets.cancel()), ElementsAre(error(2, ECANCELED)));
  EXPECT_EQ(s.sets.members() + s.sets.names(), 0U);
}

// ---- groups --------------------------------------------------------------------------------------------------------

TEST(DataSets, AGroupIsServedWhenAllOfItHaveJoined) {
  Sets s;
  DataSets::JoinRequest both = s.what(9, "writer", 1);
  both.participants = 2;
  both.writes = true;
  EXPECT_THAT(s.join(1, both), IsEmpty());
  EXPECT_THAT(words(s.sets.join({1, 5}, both, at(0))), ElementsAre(error(1, EINVAL))) << "twice in a group";
  DataSets::JoinRequest other = both;
  other.participants = 3;
  EXPECT_THAT(s.join(2, other), ElementsAre(error(2, EINVAL)));
  other = both;
  other.readers = 2;
  EXPECT_THAT(s.join(2, other), ElementsAre(error(2, EINVAL)));
  EXPECT_THAT(s.join(2, both), ElementsAre("1 gets 1", "2 gets 1"));
  EXPECT_THAT(s.join(3, both), ElementsAre(error(3, EINVAL))) << "it is complete";
  s.read(4);
  EXPECT_THAT(s.close(1), IsEmpty());
  EXPECT_THAT(s.close(2), ElementsAre("4 gets 1"));
}

TEST(DataSets, AVersionOfWhichAWriterHasGoneIsDropped) {
  Sets s;
  DataSets::JoinRequest both = s.what(9, "writer", 1);
  both.participants = 2;
  both.writes = true;
  s.join(1, both);
  EXPECT_THAT(s.gone(1), IsEmpty());
  s.join(1, both);
  EXPECT_THAT(s.gone(7), IsEmpty());
  s.join(2, both);
  EXPECT_EQ(s.grow(2, 50), 0);
  s.read(4);
  EXPECT_THAT(s.gone(1), ElementsAre("v1 forgotten"));
  EXPECT_EQ(s.sets.bytes(), 0);
  EXPECT_EQ(s.grow(2, 60), ECANCELED);
  EXPECT_THAT(s.write(3), ElementsAre("3 gets 1")) << "the number is used again";
  EXPECT_THAT(s.close(2, ECANCELED), IsEmpty());
  EXPECT_THAT(s.close(3), ElementsAre("4 gets 1"));
}

TEST(DataSets, AGroupThatWaitsEndsWithItsMember) {
  Sets s;
  DataSets::JoinRequest both = s.what(9, "reader", 0);
  both.participants = 2;
  s.join(1, both);
  s.join(2, both);
  EXPECT_THAT(s.gone(2), ElementsAre(error(1, ECANCELED)));
  EXPECT_EQ(s.sets.members(), 0U);
}

TEST(DataSets, WhoGoesHasNotReadTheVersion) {
  Sets s;
  s.publish(1);
  DataSets::JoinRequest both = s.what(9, "reader", 0);
  both.participants = 2;
  s.join(2, both);
  EXPECT_THAT(s.join(3, both), ElementsAre("2 gets 1", "3 gets 1"));
  EXPECT_THAT(s.read(4), IsEmpty()) << "the application reads this version";
  EXPECT_THAT(s.gone(3), ElementsAre("4 gets 1"));
  EXPECT_THAT(s.close(4), IsEmpty()) << "client 2 has still something to look at";
  EXPECT_EQ(s.sets.bytes(), 10);
  EXPECT_THAT(s.close(2, ECANCELED), ElementsAre("v1 forgotten"));
}

// ---- readers -------------------------------------------------------------------------------------------------------

TEST(DataSets, AVersionIsForAsManyApplicationsAsWereDeclared) {
  Sets s;
  s.publish(1, 2);
  EXPECT_THAT(s.read(2, "a"), ElementsAre("2 gets 1"));
  EXPECT_THAT(s.read(3, "b"), ElementsAre("3 gets 1"));
  EXPECT_THAT(s.read(4, "c"), IsEmpty());
  EXPECT_THAT(s.close(2), IsEmpty());
  EXPECT_THAT(s.read(5, "a"), IsEmpty()) << "once for each application";
  EXPECT_THAT(s.gone(3), ElementsAre("4 gets 1"));
  EXPECT_THAT(s.close(4), ElementsAre("v1 forgotten"));
}

TEST(DataSets, WithoutDeclaredReadersTheNewestIsThere) {
  Sets s;
  for (int i = 0; i < 4; ++i) s.publish(1, 0);
  EXPECT_EQ(s.sets.versions(), 1U);
  EXPECT_THAT(s.read(2, "a"), ElementsAre("2 gets 4"));
  s.publish(1, 0);
  s.publish(1, 0);
  EXPECT_EQ(s.sets.versions(), 2U) << "one that is read, and the newest";
  EXPECT_THAT(s.read(3, "b"), ElementsAre("3 gets 6"));
  EXPECT_THAT(s.close(2), ElementsAre("v4 forgotten"));
  EXPECT_THAT(s.read(2, "a"), ElementsAre("2 gets 6"));
  s.close(2);
  s.close(3);
  EXPECT_EQ(s.sets.versions(), 1U);
  EXPECT_THAT(s.read(2, "a"), IsEmpty());
}

// ---- memory --------------------------------------------------------------------------------------------------------

TEST(DataSets, AVersionThatDoesNotFitIsNeverShown) {
  Sets s;
  s.write(1);
  s.read(2);
  s.write(3);
  EXPECT_EQ(s.grow(1, 100), 0);
  const DataSets::Answered answered = s.sets.grow({1, 0}, 101);
  EXPECT_EQ(answered.error, ENOSPC);
  EXPECT_THAT(words(answered.outcomes), ElementsAre("v1 forgotten", "3 gets 1"));
  EXPECT_EQ(s.sets.bytes(), 0);
  EXPECT_EQ(s.grow(1, 1), ECANCELED);
  EXPECT_THAT(s.close(1, ECANCELED), IsEmpty());
  DataSets none{{.most_bytes = 0}};
  EXPECT_THAT(words(none.join({1, 0}, {"field", "writer", 1, true, 1, 1, {}}, at(0))), ElementsAre(error(1, ENOSPC)));
}

TEST(DataSets, AWriterWaitsForRoomForAVersionAsTheyWere) {
  Sets s;
  s.publish(1, 1, 60);
  EXPECT_THAT(s.write(1), IsEmpty());
  EXPECT_THAT(s.read(2), ElementsAre("2 gets 1"));
  EXPECT_THAT(s.close(2), ElementsAre("v1 forgotten", "1 gets 2"));
  // The version that is being written counts with the size of the previous one.
  DataSets::JoinRequest other = s.what(3, "writer", 0);
  other.name = "other";
  other.writes = true;
  EXPECT_THAT(s.join(3, other), ElementsAre("3 gets 1"));
  EXPECT_EQ(s.grow(3, 50), 0);
  s.close(3);
  other.group = 4;
  EXPECT_THAT(s.join(4, other), IsEmpty());
  EXPECT_THAT(s.gone(1), ElementsAre("v2 forgotten", "4 gets 2"));
}

TEST(DataSets, OnlySoManyNamesAreRemembered) {
  DataSets sets{{.most_names = 3}};
  const auto open = [&](std::uint64_t client, const std::string& name, bool writes) {
    return words(sets.join({client, 0}, {name, "program", client, writes, 1, 1, seconds{1}}, at(0)));
  };
  open(1, "a", true);
  sets.close({1, 0}, true);  // stays: a reader was declared
  open(2, "b", true);
  sets.close({2, 0}, true);
  open(2, "b", false);
  sets.close({2, 0}, true);  // only its number is remembered
  EXPECT_THAT(open(3, "c", false), IsEmpty());
  EXPECT_THAT(open(4, "d", true), ElementsAre("4 gets 1"));
  EXPECT_EQ(sets.names(), 3U);
  EXPECT_THAT(open(5, "e", true), ElementsAre(error(5, ENOSPC)));
  sets.gone(3);
  EXPECT_THAT(open(5, "b", true), ElementsAre("5 gets 1"));
}

TEST(DataSets, OnlySoManyApplicationsAreRemembered) {
  Sets s;
  s.sets = DataSets{{.most_applications = 2}};
  s.publish(1, 2);
  s.read(2, "a");
  s.close(2);
  for (const char* other : {"b", "c"}) {
    s.publish(1, 0);
    s.read(3, other);
    s.close(3);
  }
  EXPECT_THAT(s.read(2, "a"), ElementsAre("2 gets 3")) << "the newest, as for one that is new; not the first again";
}

TEST(DataSets, NamesAndNumbersAreLookedAt) {
  const DataSets::JoinRequest good{"field", "program", 1, true, 1, 1, {}};
  const auto refuses = [&](const std::function<void(DataSets::JoinRequest&)>& spoil) {
    DataSets sets{{}};
    DataSets::JoinRequest what = good;
    spoil(what);
    EXPECT_THAT(words(sets.join({1, 0}, what, at(0))), ElementsAre(error(1, EINVAL)));
    EXPECT_EQ(sets.members() + sets.names(), 0U);
  };
  refuses([](auto& what) { what.name = ""; });
  refuses([](auto& what) { what.name = std::string(256, 'x'); });
  refuses([](auto& what) { what.name = "a\tb"; });
  refuses([](auto& what) { what.application = ""; });
  refuses([](auto& what) { what.application = "a\nb"; });
  refuses([](auto& what) { what.participants = 0; });
  refuses([](auto& what) { what.participants = std::int64_t{1} << 31; });
  refuses([](auto& what) { what.readers = -1; });
  refuses([](auto& what) { what.readers = 1025; });
  DataSets sets{{}};
  EXPECT_THAT(words(sets.join({1, 0}, good, at(0))), ElementsAre("1 gets 1"));
  EXPECT_THAT(words(sets.join({1, 0}, good, at(0))), ElementsAre(error(1, EINVAL))) << "the client's own number";
}

// ---- versions with parts at other servers
// ----------------------------------------------------------------------------

TEST(DataSets, CountTheirOwnStripesAndPartsOfOthers) {
  constexpr std::int64_t mib = 1 << 20;
  Sets sets;
  sets.sets = DataSets{{.most_bytes = 3 * mib}};
  sets.write(1);
  sets.sets.stripe(sets.sets.version_of({1, 0}), 2);
  EXPECT_EQ(sets.grow(1, 3 * mib), 0);
  EXPECT_EQ(sets.sets.bytes(), 2 * mib);
  EXPECT_TRUE(sets.sets.take(mib));
  EXPECT_FALSE(sets.sets.take(1));
  EXPECT_EQ(sets.sets.close({1, 0}, true, 4 * mib).error, 0);
  const DataSets::DataSetOutcomes told = sets.sets.join({2, 0}, sets.what(2, "reader", 0), at(0));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].bytes, 4 * mib) << "the length, wherever the bytes are";
  EXPECT_THAT(sets.close(2), ElementsAre("v1 forgotten"));
  EXPECT_EQ(sets.sets.bytes(), mib);
  sets.sets.give(mib);
  EXPECT_EQ(sets.sets.bytes(), 0);
}

TEST(DataSets, TellEachReaderOnceThatAVersionIsLost) {
  Sets sets;
  sets.publish(1, 2);
  sets.publish(2, 2);
  EXPECT_THAT(words(sets.sets.lose(1)), ElementsAre("v1 forgotten"));
  EXPECT_THAT(words(sets.sets.lose(1)), IsEmpty());
  EXPECT_EQ(sets.sets.bytes(), 10);
  EXPECT_THAT(sets.read(3, "a"), ElementsAre(error(3, ENODATA)));
  EXPECT_THAT(sets.read(4, "a"), ElementsAre("4 gets 2"));
  EXPECT_THAT(sets.read(5, "b"), ElementsAre(error(5, ENODATA)));
  EXPECT_EQ(sets.sets.versions(), 1U);
}

TEST(DataSets, LeaveALostVersionToThoseWhoReadIt) {
  Sets sets;
  sets.publish(1);
  EXPECT_THAT(sets.read(2), ElementsAre("2 gets 1"));
  EXPECT_THAT(words(sets.sets.lose(1)), IsEmpty()) << "their bytes stay";
  EXPECT_EQ(sets.sets.bytes(), 10);
  EXPECT_THAT(sets.gone(2), ElementsAre("v1 forgotten"));
  EXPECT_THAT(sets.read(3), ElementsAre(error(3, ENODATA)));
  EXPECT_EQ(sets.sets.versions(), 0U);
}

TEST(DataSets, DropAVersionThatIsWrittenAndLost) {
  Sets sets;
  sets.write(1);
  EXPECT_EQ(sets.grow(1, 10), 0);
  EXPECT_THAT(sets.write(2), IsEmpty());
  EXPECT_THAT(words(sets.sets.lose(1)), ElementsAre("v1 forgotten", "2 gets 1"));
  EXPECT_EQ(sets.grow(1, 20), ECANCELED);
  sets.close(1, ECANCELED);
}

}  // namespace
}  // namespace hocket::server
