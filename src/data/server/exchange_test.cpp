// Tests applications that exchange data sets through a server, over real sockets as in server_test.cpp.
#include "server/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "server/testing.hpp"

namespace hocket::server {
namespace {

using testing::bytes_of;
using testing::Handle;
using testing::limit;
using testing::Link;
using testing::serialised;
using testing::strided;
using transport::DataSet;
using transport::ListPlace;
using transport::OffsetPlace;
using transport::ServerLink;
using transport::ViewPlace;

// Result of a join; error < 0: no answer yet.
struct Got {
  int error = -1;
  Handle handle = 0;
  std::int64_t version = 0;
  std::int64_t bytes = 0;
};

DataSet written(std::uint64_t group, int readers = 1, int participants = 1) {
  return {"field", "writer", true, group, participants, readers, limit};
}
DataSet to_read(std::uint64_t group, std::string_view application = "reader", int participants = 1) {
  return {"field", application, false, group, participants, 0, limit};
}

class Exchanging : public testing::Served {
 protected:
  static std::shared_ptr<Got> ask(ServerLink& link, const DataSet& what) {
    auto got = std::make_shared<Got>();
    link.join(what, [got](int error, Handle handle, std::int64_t version, std::int64_t bytes) {
      *got = {error, handle, version, bytes};
    });
    link.poll();
    return got;
  }
  static Got join_now(ServerLink& link, const DataSet& what) {
    const auto got = ask(link, what);
    finish(link);
    return *got;
  }
  // Waits until the server has received all earlier requests.
  void settle() {
    const Link link = connect();
    told(*link, "data_sets");
  }

  static void publish(ServerLink& link, std::uint64_t group, const std::string& data, int readers = 1) {
    const Got got = join_now(link, written(group, readers));
    EXPECT_EQ(got.error, 0);
    EXPECT_EQ(write_now(link, got.handle, OffsetPlace{0}, bytes_of(data)), 0);
    EXPECT_EQ(close_now(link, got.handle), 0);
  }
  static std::string contents_of(ServerLink& link, const Got& got) {
    std::string into(static_cast<std::size_t>(got.bytes), '.');
    EXPECT_EQ(read_now(link, got.handle, OffsetPlace{0}, bytes_of(into)), 0);
    return into;
  }
};

// Returns the error of a request, and the bytes of its answer in `got`.
int find_now(ServerLink& link, std::string_view name, std::int64_t* got) {
  int result = -1;
  link.find(name, [&](int error, std::int64_t bytes) {
    result = error;
    *got = bytes;
  });
  while (result == -1 && !link.failed()) link.poll();
  return result;
}
int adopt_now(ServerLink& link, std::string_view moved) {
  int result = -1;
  link.adopt(moved, [&](int error, std::int64_t) { result = error; });
  while (result == -1 && !link.failed()) link.poll();
  return result;
}

TEST_F(Exchanging, AServerSaysIfItIsTheHome) {
  start();
  const Link link = connect();
  std::int64_t is_home = -1;
  EXPECT_EQ(find_now(*link, "field", &is_home), 0);
  EXPECT_EQ(is_home, 0);
  publish(*link, 1, "data");
  EXPECT_EQ(find_now(*link, "field", &is_home), 0);
  EXPECT_EQ(is_home, 1);
  EXPECT_EQ(find_now(*link, "", &is_home), 0);
  EXPECT_EQ(is_home, 0);
}

TEST_F(Exchanging, ADataSetIsAdoptedWithTheCopiesOfOneClient) {
  start();
  const Link old_home = connect(), other = connect(), reader = connect();
  DataSet copy = written(9);
  copy.name = "77";
  copy.moves = true;
  DataSet read = copy;
  read.writes = false;
  EXPECT_EQ(join_now(*old_home, read).error, EINVAL) << "copies are only written";
  copy.participants = 2;
  EXPECT_EQ(join_now(*old_home, copy).error, EINVAL);
  copy.participants = 1;
  const Got got = join_now(*old_home, copy);
  ASSERT_EQ(got.error, 0);
  EXPECT_EQ(write_now(*old_home, got.handle, OffsetPlace{0}, bytes_of(std::string("data"))), 0);
  EXPECT_EQ(close_now(*old_home, got.handle), 0);
  for (const char* wrong : {"", "field", "field\nnonsense\n", "field\nlast 1\nversion 2 77 1 0\n"})
    EXPECT_EQ(adopt_now(*old_home, wrong), std::string_view{wrong} == "field" ? 0 : EINVAL) << wrong;
  const std::string moved = "field\nlast 5\nread 4 reader\nversion 5 77 1 0\n";
  EXPECT_EQ(adopt_now(*other, moved), ESTALE) << "another client's copy";
  EXPECT_EQ(adopt_now(*old_home, moved), 0);
  EXPECT_EQ(adopt_now(*old_home, moved), ESTALE) << "a copy is adopted once";
  const Got version = join_now(*reader, to_read(2));
  EXPECT_EQ(version.version, 5);
  EXPECT_EQ(contents_of(*reader, version), "data");
  EXPECT_EQ(close_now(*reader, version.handle), 0);
  EXPECT_EQ(told(*reader, "exchange_bytes"), 0);
}

TEST_F(Exchanging, CopiesThatNobodyAdoptsEndWithTheirClient) {
  start();
  DataSet copy = written(9);
  copy.name = "77";
  copy.moves = true;
  {
    const Link old_home = connect();
    const Got got = join_now(*old_home, copy);
    EXPECT_EQ(write_now(*old_home, got.handle, OffsetPlace{0}, bytes_of(std::string("data"))), 0);
    EXPECT_EQ(close_now(*old_home, got.handle), 0);
    EXPECT_EQ(told(*old_home, "exchange_bytes"), 4);
  }
  const Link link = connect();
  const Time deadline = node_now() + limit;
  while (told(*link, "exchange_bytes") != 0) ASSERT_LT(node_now(), deadline);
}

TEST_F(Exchanging, WhatOneWritesTheOtherReads) {
  start({.write_behind = true});
  const Link writer = connect();
  const Link reader = connect();
  const Got made = join_now(*writer, written(1));
  ASSERT_EQ(made.error, 0);
  EXPECT_EQ(made.version, 1);
  EXPECT_EQ(made.bytes, 0);
  EXPECT_FALSE(writer->writes_behind(made.handle));
  std::string text = "data of the writer";
  EXPECT_EQ(write_now(*writer, made.handle, OffsetPlace{0}, bytes_of(text)), 0);
  EXPECT_EQ(read_now(*writer, made.handle, OffsetPlace{0}, bytes_of(text)), EBADF);
  EXPECT_EQ(sync_now(*writer, made.handle), 0);
  EXPECT_EQ(told(*writer, "data_sets"), 1);
  EXPECT_EQ(told(*writer, "exchange_bytes"), 18);
  EXPECT_EQ(told(*writer, "exchange_limit"), 1 << 30);
  EXPECT_EQ(close_now(*writer, made.handle), 0);

  const Got got = join_now(*reader, to_read(2));
  ASSERT_EQ(got.error, 0);
  EXPECT_EQ(got.version, 1);
  EXPECT_EQ(got.bytes, 18);
  EXPECT_EQ(contents_of(*reader, got), "data of the writer");
  EXPECT_EQ(write_now(*reader, got.handle, OffsetPlace{0}, bytes_of(std::string("no"))), EBADF);
  EXPECT_EQ(close_now(*reader, got.handle), 0);
  EXPECT_EQ(told(*reader, "data_sets"), 0);
  EXPECT_EQ(told(*reader, "exchange_bytes"), 0);
  EXPECT_EQ(close_now(*reader, got.handle), EBADF);
}

TEST_F(Exchanging, AReaderWaitsForTheWriter) {
  start();
  const Link writer = connect();
  const Link reader = connect();
  const auto got = ask(*reader, to_read(2));
  publish(*writer, 1, "late");
  finish(*reader);
  ASSERT_EQ(got->error, 0);
  EXPECT_EQ(contents_of(*reader, *got), "late");
}

TEST_F(Exchanging, AGroupSharesAVersion) {
  start();
  const Link one = connect(), other = connect();
  const auto first = ask(*one, written(1, 1, 2));
  settle();
  EXPECT_EQ(first->error, -1) << "of a group that is not complete";
  const Got second = join_now(*other, written(1, 1, 2));
  finish(*one);
  ASSERT_EQ(first->error, 0);
  ASSERT_EQ(second.error, 0);
  EXPECT_EQ(write_now(*one, first->handle, OffsetPlace{0}, bytes_of(std::string("one "))), 0);
  EXPECT_EQ(write_now(*other, second.handle, OffsetPlace{4}, bytes_of(std::string("other"))), 0);
  EXPECT_EQ(close_now(*one, first->handle), 0);

  const Link reader = connect(), its_other = connect();
  const auto got = ask(*reader, to_read(2, "reader", 2));
  const auto its = ask(*its_other, to_read(2, "reader", 2));
  settle();
  EXPECT_EQ(got->error, -1) << "one has not closed";
  EXPECT_EQ(close_now(*other, second.handle), 0);
  finish(*reader);
  finish(*its_other);
  EXPECT_EQ(contents_of(*reader, *got), "one other");
  EXPECT_EQ(close_now(*reader, got->handle), 0);
  EXPECT_EQ(contents_of(*its_other, *its), "one other");
  EXPECT_EQ(close_now(*its_other, its->handle), 0);
  EXPECT_EQ(told(*reader, "data_sets"), 0);
}

TEST_F(Exchanging, VersionsComeInTheirOrderAndAWriterDoesNotRunAhead) {
  start();
  const Link writer = connect();
  const Link reader = connect();
  publish(*writer, 1, "version 1");
  publish(*writer, 2, "version 2");
  auto next = ask(*writer, written(3));
  for (int i = 1; i <= 20; ++i) {
    settle();
    EXPECT_EQ(next->error, -1) << "two versions wait";
    const Got got = join_now(*reader, to_read(100 + i));
    EXPECT_EQ(got.version, i);
    EXPECT_EQ(contents_of(*reader, got), "version " + std::to_string(i));
    EXPECT_EQ(close_now(*reader, got.handle), 0);
    finish(*writer);
    ASSERT_EQ(next->error, 0);
    EXPECT_EQ(write_now(*writer, next->handle, OffsetPlace{0}, bytes_of("version " + std::to_string(next->version))),
              0);
    EXPECT_EQ(close_now(*writer, next->handle), 0);
    next = ask(*writer, written(3 + i));
  }
}

TEST_F(Exchanging, EachOfTwoReadersGetsAVersionAndThenItIsForgotten) {
  start();
  const Link writer = connect();
  const Link reader = connect();
  publish(*writer, 1, "for two", 2);
  for (const char* application : {"a", "b"}) {
    EXPECT_EQ(told(*reader, "data_sets"), 1);
    const Got got = join_now(*reader, to_read(2, application));
    EXPECT_EQ(contents_of(*reader, got), "for two");
    EXPECT_EQ(close_now(*reader, got.handle), 0);
  }
  EXPECT_EQ(told(*reader, "data_sets"), 0);
}

TEST_F(Exchanging, WithoutDeclaredReadersTheNewestStays) {
  start();
  const Link writer = connect();
  const Link reader = connect();
  publish(*writer, 1, "old", 0);
  const Got old = join_now(*reader, to_read(2, "a"));
  for (int i = 0; i < 3; ++i) publish(*writer, 3, "new", 0);
  EXPECT_EQ(told(*reader, "data_sets"), 2);
  EXPECT_EQ(contents_of(*reader, old), "old");
  EXPECT_EQ(close_now(*reader, old.handle), 0);
  for (const char* application : {"a", "b", "c"}) {
    const Got got = join_now(*reader, to_read(2, application));
    EXPECT_EQ(got.version, 4);
    EXPECT_EQ(contents_of(*reader, got), "new");
    EXPECT_EQ(close_now(*reader, got.handle), 0);
  }
  EXPECT_EQ(told(*reader, "data_sets"), 1);
}

TEST_F(Exchanging, ViewsListsAndCollectiveOperationsAreAsOfFiles) {
  start();
  constexpr int clients = 2;
  constexpr std::int64_t block = 4096, blocks = 64;
  const std::vector<layout::MappedExtent> segments{{0, 3, 2}, {2, block * blocks - 1, 1}};
  std::vector<Link> links;
  std::vector<std::shared_ptr<Got>> got;
  for (int i = 0; i < clients; ++i) {
    links.push_back(connect());
    got.push_back(ask(*links.back(), written(1, 1, clients)));
  }
  for (const Link& link : links) finish(*link);
  const std::string data[] = {std::string(block * blocks / 2, 'A'), std::string(block * blocks / 2, 'B')};
  for (std::size_t i = 0; i < clients; ++i) {
    const Handle handle = got[i]->handle;
    links[i]->view(handle, 0, serialised(strided(static_cast<std::int64_t>(i) * block, block, clients * block)));
    links[i]->write(handle, ViewPlace{0, {0, block * blocks / 2}}, 7, bytes_of(data[i]),
                    [](int error, std::int64_t bytes) {
                      EXPECT_EQ(error, 0);
                      EXPECT_EQ(bytes, block * blocks / 2);
                    });
    links[i]->end(handle, 7, clients);
    links[i]->poll();
  }
  for (const Link& link : links) finish(*link);
  EXPECT_EQ(write_now(*links[0], got[0]->handle, ListPlace{segments}, bytes_of(std::string("xyz"))), 0);
  for (std::size_t i = 0; i < clients; ++i) EXPECT_EQ(close_now(*links[i], got[i]->handle), 0);
  std::string expected;
  for (int i = 0; i < blocks; ++i) expected += std::string(block, i % 2 == 0 ? 'A' : 'B');
  expected.replace(3, 2, "xy").replace(block * blocks - 1, 1, "z");

  const Got read = join_now(*links[0], to_read(2));
  ASSERT_EQ(read.bytes, block * blocks);
  EXPECT_TRUE(contents_of(*links[0], read) == expected);
  std::string three(3, '.');
  EXPECT_EQ(read_now(*links[0], read.handle, ListPlace{segments}, bytes_of(three)), 0);
  EXPECT_EQ(three, "xyz");
  links[0]->view(read.handle, 0, serialised(strided(block - 1, 2, clients * block)));
  std::string seams(4, '.');
  EXPECT_EQ(read_now(*links[0], read.handle, ViewPlace{0, {0, 4}}, bytes_of(seams)), 0);
  EXPECT_EQ(seams, "ABAB");
}

// ---- what goes wrong -----------------------------------------------------------------------------------------------

TEST_F(Exchanging, AWriterThatDiesLeavesNothing) {
  start();
  const Link reader = connect();
  const Link living = connect();
  auto dying = connect();
  const auto got = ask(*reader, to_read(2));
  const auto its = ask(*dying, written(1, 1, 2));
  const Got other = join_now(*living, written(1, 1, 2));
  finish(*dying);
  EXPECT_EQ(write_now(*dying, its->handle, OffsetPlace{0}, bytes_of(std::string("half"))), 0);
  dying.reset();
  drive(*living, [&] { return told(*living, "clients") == 2; });
  EXPECT_EQ(told(*living, "exchange_bytes"), 0);
  EXPECT_EQ(write_now(*living, other.handle, OffsetPlace{4}, bytes_of(std::string("more"))), ECANCELED);
  EXPECT_EQ(close_now(*living, other.handle), ECANCELED);
  publish(*living, 3, "whole");
  finish(*reader);
  EXPECT_EQ(got->version, 1);
  EXPECT_EQ(contents_of(*reader, *got), "whole");
}

TEST_F(Exchanging, WhoWaitsWithOneThatDiesIsToldSo) {
  start();
  const Link living = connect();
  auto dying = connect();
  const auto got = ask(*living, to_read(1, "reader", 2));
  ask(*dying, to_read(1, "reader", 2));
  settle();
  dying.reset();
  finish(*living);
  EXPECT_EQ(got->error, ECANCELED);
}

TEST_F(Exchanging, WhatADeadReaderHadIsReadAgain) {
  start();
  const Link link = connect();
  publish(*link, 1, "once");
  {
    const Link dying = connect();
    EXPECT_EQ(contents_of(*dying, join_now(*dying, to_read(2))), "once");
  }
  const Got got = join_now(*link, to_read(3));  // waits until the server notices the disconnection
  EXPECT_EQ(got.version, 1);
  EXPECT_EQ(contents_of(*link, got), "once");
  EXPECT_EQ(close_now(*link, got.handle), 0);
  EXPECT_EQ(told(*link, "data_sets"), 0);
}

TEST_F(Exchanging, AWriteThatFailsSpoilsTheVersion) {
  start({.engine = {.injection = {.error = EIO, .after = 2}}});
  const Link link = connect();
  const Got got = join_now(*link, written(1));
  EXPECT_EQ(write_now(*link, got.handle, OffsetPlace{0}, bytes_of(std::string("good"))), 0);
  EXPECT_EQ(write_now(*link, got.handle, OffsetPlace{4}, bytes_of(std::string("lost"))), EIO);
  EXPECT_EQ(close_now(*link, got.handle), ECANCELED);
  EXPECT_EQ(told(*link, "data_sets"), 0);
}

TEST_F(Exchanging, PatienceEnds) {
  start();
  const Link link = connect();
  DataSet what = to_read(1);
  what.patience = std::chrono::milliseconds{20};
  const Time asked = node_now();
  EXPECT_EQ(join_now(*link, what).error, ETIMEDOUT);
  EXPECT_GE(node_now() - asked, what.patience);
  what.patience = {};
  EXPECT_EQ(join_now(*link, what).error, ETIMEDOUT);
  publish(*link, 2, "there");
  EXPECT_EQ(join_now(*link, what).error, 0) << "without any patience, of what is there";
}

TEST_F(Exchanging, WhatIsTooLargeIsNeverShown) {
  start({.exchange = {.most_bytes = 1 << 20}});
  const Link link = connect();
  const Got got = join_now(*link, written(1));
  std::string much(3 << 20, 'm');
  EXPECT_EQ(write_now(*link, got.handle, OffsetPlace{0}, bytes_of(much)), ENOSPC);
  EXPECT_EQ(write_now(*link, got.handle, OffsetPlace{0}, bytes_of(std::string("x"))), ECANCELED);
  EXPECT_EQ(told(*link, "exchange_bytes"), 0);
  EXPECT_EQ(close_now(*link, got.handle), ECANCELED);
  DataSet what = to_read(2);
  what.patience = {};
  EXPECT_EQ(join_now(*link, what).error, ETIMEDOUT);
  EXPECT_EQ(told(*link, "data_sets"), 0);
  publish(*link, 3, std::string(1 << 20, 'f'));
}

TEST_F(Exchanging, AServerMayKeepNone) {
  start({.exchange = {.most_bytes = 0}});
  const Link link = connect();
  EXPECT_EQ(join_now(*link, written(1)).error, ENOSPC);
}

TEST_F(Exchanging, WithoutMemoryForAVersionAllOfItsGroupAreToldSo) {
  start();
  const Link one = connect(), other = connect();
  const auto first = ask(*one, written(1, 1, 2));
  settle();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(Fd{dup(file_.get())}.get());  // the next free descriptor
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Got second = join_now(*other, written(1, 1, 2));
  finish(*one);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(first->error, ENOSPC);
  EXPECT_EQ(second.error, ENOSPC);
  EXPECT_EQ(told(*one, "data_sets"), 0);
  publish(*one, 2, "later");
}

TEST_F(Exchanging, WhoWaitsWhenTheServerStopsIsToldSo) {
  start();
  const Link link = connect();
  const Link other = connect();
  const auto got = ask(*link, to_read(1));
  const auto its = ask(*other, written(2, 1, 2));
  settle();
  stop();
  finish(*link);
  finish(*other);
  EXPECT_EQ(got->error, ECANCELED);
  EXPECT_EQ(its->error, ECANCELED);
}

TEST_F(Exchanging, JoinsThatMeanNothingAreRefused) {
  start();
  const Link link = connect();
  const auto refused = [&](const std::function<void(DataSet&)>& spoil) {
    DataSet what = written(1);
    spoil(what);
    EXPECT_EQ(join_now(*link, what).error, EINVAL);
  };
  const std::string long_name(256, 'n'), longer(200'000, 'n');
  refused([](DataSet& what) { what.name = ""; });
  refused([&](DataSet& what) { what.name = long_name; });
  refused([&](DataSet& what) { what.name = longer; });
  refused([](DataSet& what) { what.name = "two\nlines"; });
  refused([](DataSet& what) { what.name = "bell\a"; });
  refused([](DataSet& what) { what.application = ""; });
  refused([&](DataSet& what) { what.application = longer; });
  refused([](DataSet& what) { what.participants = 0; });
  refused([](DataSet& what) { what.participants = -1; });
  refused([](DataSet& what) { what.readers = 1'000'000; });
  EXPECT_EQ(told(*link, "data_sets"), 0);
  open_file(*link, testing::read_write, "hocket:/field", ENOENT);
  publish(*link, 1, "still good");
}

TEST_F(Exchanging, WhoBreaksTheProtocolIsCutOffAlone) {
  start();
  const Link good = connect();
  const Link bad = connect();
  DataSet what = written(1);
  what.readers = -1;
  EXPECT_EQ(join_now(*bad, what).error, ECONNRESET);
  publish(*good, 1, "good");
}

TEST_F(Exchanging, AHandleThatIsClosedAtOnceIsClosedAfterItsWrites) {
  start({.engine = {.injection = {.delay = std::chrono::milliseconds{20}}}});
  const Link writer = connect();
  const Link reader = connect();
  const auto got = ask(*reader, to_read(2));
  const Got made = join_now(*writer, written(1));
  const std::string data(2 << 20, 'd');
  int error = -1;
  writer->write(made.handle, OffsetPlace{0}, 0, bytes_of(data), [&](int its, std::int64_t) { error = its; });
  EXPECT_EQ(close_now(*writer, made.handle), 0);
  EXPECT_EQ(error, 0);
  finish(*reader);
  EXPECT_TRUE(contents_of(*reader, *got) == data);
}

}  // namespace
}  // namespace hocket::server
