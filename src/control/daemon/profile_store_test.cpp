#include "daemon/profile_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hocket::daemon {
namespace {

using ::testing::HasSubstr;

// The SHA-256 of "abc" comes from FIPS 180-2, appendix B.1.
constexpr const char* abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class ProfileStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory = std::filesystem::temp_directory_path() / ("hocket-profiles-" + std::to_string(getpid()));
    std::filesystem::create_directory(directory);
    program = directory / "jacobi";
    std::ofstream{program} << "abc";
    store = directory / "profiles.db";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  void make(const std::string& rows, const std::string& schema = "1") const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(store.c_str(), &db), SQLITE_OK);
    const std::string sql =
        "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT); INSERT INTO meta VALUES('schema', '" + schema +
        "');"
        "CREATE TABLE point(program TEXT, fingerprint TEXT, mpi TEXT, processes INTEGER, iteration_s REAL, "
        "iteration_spread_s REAL, io_s REAL, io_spread_s REAL, samples INTEGER, flop_per_iteration REAL, "
        "measured_unix_s REAL, arguments TEXT, PRIMARY KEY(program, fingerprint, processes));" +
        rows;
    char* wrong = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &wrong), SQLITE_OK) << wrong;
    sqlite3_close(db);
  }
  void execute(const char* sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(store.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  static std::string row(const std::string& fingerprint, int processes, const std::string& iteration_s) {
    return "INSERT INTO point VALUES('jacobi', '" + fingerprint + "', 'mpich', " + std::to_string(processes) + ", " +
           iteration_s + ", 0.1, 2.5, 0.2, 3, 1e9, 0, '');";
  }
  auto find() const { return ProfileStore{store}.find(program, AppId{7}); }

  std::filesystem::path directory, program, store;
};

TEST_F(ProfileStoreTest, TellsCommunicationWhereItIsKnown) {
  make(row(abc, 8, "0.5"));
  ASSERT_EQ(find().value().size(), 1u);
  EXPECT_EQ(find().value()[0].comm_s, -1) << "an older store";
  execute("ALTER TABLE point ADD COLUMN comm_s REAL DEFAULT -1; UPDATE point SET comm_s = 0.125");
  EXPECT_EQ(find().value()[0].comm_s, 0.125);
  execute("UPDATE point SET comm_s = 0.75");
  EXPECT_NE(find().error().text.find("comm_s is 0.75: it must be a part of iteration_s"), std::string::npos);
}

TEST_F(ProfileStoreTest, FindsThePointsOfTheSameProgram) {
  make(row(abc, 8, "0.5") + row(abc, 4, "1.0") + row("other", 2, "9.0"));
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found.value().size(), 2u);
  EXPECT_EQ(found.value()[0].processes, 4);
  EXPECT_EQ(found.value()[0].app, AppId{7});
  EXPECT_EQ(found.value()[1].iteration_s, 0.5);
  EXPECT_EQ(found.value()[1].io_s, 2.5);
  EXPECT_EQ(found.value()[1].flop_per_iteration, 1e9);
}

TEST_F(ProfileStoreTest, AnotherProgramUnderTheSameNameIsNotTakenForIt) {
  make(row(abc, 4, "1.0"));
  std::ofstream{program} << "abcd";
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found.value().empty());
}

TEST_F(ProfileStoreTest, NoStoreIsNoError) {
  EXPECT_TRUE(find().value().empty());
  EXPECT_TRUE(ProfileStore{""}.find(program, AppId{1}).value().empty());
}

TEST_F(ProfileStoreTest, SaysWhatIsWrongWithAStore) {
  std::ofstream{store} << "this is no database, whatever it is called; it only has to be long enough to be one";
  EXPECT_THAT(find().error().text, HasSubstr("profiles.db: file is not a database"));
  std::filesystem::remove(store);
  make(row(abc, 4, "-1.0"));
  EXPECT_THAT(find().error().text, HasSubstr("program 'jacobi', 4 processes: iteration_s is -1: it must be above 0"));
  std::filesystem::remove(store);
  make("", "9");
  EXPECT_THAT(find().error().text, HasSubstr("its schema is '9', and this hocketd reads '1'"));
}

std::vector<event::Profile> measured() {
  return {{AppId{3}, 8, 0.5, 0.01, 2.5, 0.1, 4, 1e9}, {AppId{3}, 12, 0.35, 0.01, 2.5, 0.1, 4, 1e9}};
}

TEST_F(ProfileStoreTest, RemembersWhatWasMeasured) {
  store = directory / "made" / "profiles.db";
  const Status put = ProfileStore{store}.put(program, "mpich", measured(), 1'700'000'000);
  ASSERT_TRUE(put) << put.error().text;
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found.value().size(), 2u);
  EXPECT_EQ(found.value()[0].processes, 8);
  EXPECT_EQ(found.value()[1].iteration_s, 0.35);
  EXPECT_EQ(found.value()[1].samples, 4);
  std::vector<event::Profile> again{{AppId{4}, 12, 0.3, 0.01, 2.5, 0.1, 8, 1e9}};
  ASSERT_TRUE(ProfileStore{store}.put(program, "mpich", again, 1'700'000'001));
  EXPECT_EQ(find().value().size(), 2u);
  EXPECT_EQ(find().value()[1].iteration_s, 0.3);
}

// The stores of `hocket profile` have one column more than older ones.
TEST_F(ProfileStoreTest, RemembersCommunicationInAStoreWhoeverMadeIt) {
  std::vector<event::Profile> points = measured();
  points[0].comm_s = 0.125;
  for (const bool is_old : {true, false}) {
    std::filesystem::remove(store);
    make(row(abc, 4, "1.0"));
    if (!is_old) execute("ALTER TABLE point ADD COLUMN comm_s REAL DEFAULT -1; UPDATE point SET comm_s = 0.25");
    const Status put = ProfileStore{store}.put(program, "mpich", points, 0);
    ASSERT_TRUE(put) << put.error().text;
    ASSERT_EQ(find().value().size(), 3u) << "beside those that it had";
    EXPECT_EQ(find().value()[0].comm_s, is_old ? -1 : 0.25);
    EXPECT_EQ(find().value()[1].comm_s, 0.125);
    EXPECT_EQ(find().value()[2].comm_s, -1) << "not known";
  }
  std::filesystem::remove(store);
  ASSERT_TRUE(ProfileStore{store}.put(program, "mpich", points, 0));
  EXPECT_EQ(find().value()[0].comm_s, 0.125) << "in one of its own";
}

TEST_F(ProfileStoreTest, WritesNothingIntoAStoreOfAnotherSchema) {
  make("", "2");
  const Status put = ProfileStore{store}.put(program, "mpich", measured(), 0);
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().text, HasSubstr("its schema is '2'"));
  EXPECT_TRUE(ProfileStore{""}.put(program, "mpich", measured(), 0)) << "no store, nothing to remember";
}

}  // namespace
}  // namespace hocket::daemon
