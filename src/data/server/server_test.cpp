#include "server/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <future>
#include <random>
#include <set>

#include "server/testing.hpp"
#include "transport/held_view.hpp"

namespace hocket::server {
namespace {

using testing::bytes_of;
using testing::Handle;
using ::testing::HasSubstr;
using testing::limit;
using testing::Link;
using testing::read_write;
using testing::serialised;
using testing::Served;
using testing::strided;
using transport::ListPlace;
using transport::OffsetPlace;
using transport::ServerLink;
using transport::ViewPlace;

// ---- one client ----------------------------------------------------------------------------------------------------

TEST_F(Served, DataAreWhereTheyWerePutInEachWayOfSayingIt) {
  start();
  const Link link = connect();
  const Handle handle = open_file(*link);
  std::int64_t got = 0;
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{2}, bytes_of(std::string("abcd")), &got), 0);
  EXPECT_EQ(got, 4);
  const std::vector<layout::MappedExtent> segments{{0, 8, 2}, {2, 12, 1}};
  EXPECT_EQ(write_now(*link, handle, ListPlace{segments}, bytes_of(std::string("xyz"))), 0);
  link->view(handle, 3, serialised(strided(1, 1, 3)));
  EXPECT_EQ(write_now(*link, handle, ViewPlace{3, {1, 4}}, bytes_of(std::string("123"))), 0);
  EXPECT_EQ(contents(), std::string("\0\0ab1d\0"
                                    "2xy3\0z",
                                    13));
  std::string read(3, '.');
  EXPECT_EQ(read_now(*link, handle, ViewPlace{3, {1, 4}}, bytes_of(read)), 0);
  EXPECT_EQ(read, "123");
  EXPECT_EQ(read_now(*link, handle, ListPlace{segments}, bytes_of(read)), 0);
  EXPECT_EQ(read, "xyz");
  EXPECT_EQ(close_now(*link, handle), 0);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("no"))), EBADF);
}

TEST_F(Served, AReadEndsWithTheFile) {
  start();
  ASSERT_EQ(pwrite(file_.get(), "0123456789", 10, 0), 10);
  const Link link = connect();
  const Handle handle = open_file(*link);
  std::string into(8, '.');
  std::int64_t got = 0;
  EXPECT_EQ(read_now(*link, handle, OffsetPlace{6}, bytes_of(into), &got), 0);
  EXPECT_EQ(got, 4);
  EXPECT_EQ(into, "6789....");
  EXPECT_EQ(read_now(*link, handle, OffsetPlace{100}, bytes_of(into), &got), 0);
  EXPECT_EQ(got, 0);
}

TEST_F(Served, WhatIsNotAllowedIsToldAndHarmsNobody) {
  start();
  const Link link = connect();
  open_file(*link, read_write, "none", ENOENT);
  open_file(*link, read_write, "../sock", EXDEV);
  open_file(*link, read_write, "/etc/passwd", EXDEV);
  open_file(*link, read_write, ".", EINVAL);
  open_file(*link, {}, "file", EINVAL);
  const Handle reading = open_file(*link, {.reads = true}, root_ + "/data/file");
  const Handle writing = open_file(*link, {.writes = true});
  std::string text = "text";
  EXPECT_EQ(write_now(*link, reading, OffsetPlace{0}, bytes_of(text)), EBADF);
  EXPECT_EQ(read_now(*link, writing, OffsetPlace{0}, bytes_of(text)), EBADF);
  EXPECT_EQ(write_now(*link, writing, ViewPlace{1, {0, 4}}, bytes_of(text)), EINVAL);
  EXPECT_EQ(write_now(*link, 99, OffsetPlace{0}, bytes_of(text)), EBADF);
  EXPECT_EQ(sync_now(*link, 99), EBADF);
  EXPECT_FALSE(link->failed());
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(write_now(*link, writing, OffsetPlace{0}, bytes_of(text)), 0);
  EXPECT_EQ(told(*link, "queue"), 0);
  EXPECT_EQ(told(*link, "held_bytes"), 0);
}

TEST_F(Served, AProgramMayHaveManyFilesOpen) {
  start();
  const Link link = connect();
  std::set<Handle> handles;
  for (int i = 0; i < 5000; ++i) handles.insert(open_file(*link));
  EXPECT_EQ(handles.size(), 5000U);
  for (const Handle handle : {*handles.begin(), *handles.rbegin()})
    EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("text"))), 0);
}

TEST_F(Served, LargeRequestsAndManyRunsAreDivided) {
  start();
  const Link link = connect();
  const Handle handle = open_file(*link);
  std::string data(5 << 20, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 4096);
  std::int64_t got = 0;
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{1}, bytes_of(data), &got), 0);
  EXPECT_EQ(got, static_cast<std::int64_t>(data.size()));
  EXPECT_TRUE(contents().substr(1) == data);
  // Single bytes have many more runs than one frame may have.
  link->view(handle, 0, serialised(strided(0, 1, 2)));
  const std::string ones(100'000, '1');
  EXPECT_EQ(write_now(*link, handle, ViewPlace{0, {0, 100'000}}, bytes_of(ones), &got), 0);
  EXPECT_EQ(got, 100'000);
  std::vector<layout::MappedExtent> segments;
  for (std::int64_t i = 0; i < 50'000; ++i) segments.push_back({i, 2 * i, 1});
  std::string into(50'000, '.');
  EXPECT_EQ(read_now(*link, handle, ListPlace{segments}, bytes_of(into), &got), 0);
  EXPECT_EQ(into, ones.substr(0, 50'000));
  EXPECT_EQ(contents()[3], data[2]);
}

// An irregular view of single bytes, which takes more memory than a session of the server below has.
layout::FileView table_of_runs(std::int64_t runs) {
  std::mt19937_64 random{3};
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < runs; ++i) {
    at.push_back((at.empty() ? 0 : at.back()) + 2 + static_cast<std::int64_t>(random() % 5));
  }
  const auto type = layout::hindexed_block(1, at, layout::contiguous_bytes(1).value());
  return layout::FileView::make(0, layout::resized(0, at.back() + 2, type.value()).value()).value();
}

TEST_F(Served, AViewForWhichThereIsNoMemoryIsReplacedByLists) {
  HocketServer::ServerSettings settings;
  settings.engine.buffer_bytes = 8 << 20;
  start(settings);
  constexpr std::int64_t runs = 70'000;
  const layout::FileView view = table_of_runs(runs);
  ASSERT_GT(view.memory_bytes(), settings.engine.buffer_bytes / 16);
  ASSERT_LT(serialised(view).size(), ServerLink::most_view_bytes);
  const Link link = connect();
  const Handle handle = open_file(*link);
  link->view(handle, 0, serialised(view));
  std::string data(runs, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>('a' + i % 26);
  // Requests before and after the refusal is known, from plain and from shared memory, in an operation and alone.
  std::vector<int> errors;
  const auto note = [&errors](int error, std::int64_t) { errors.push_back(error); };
  transport::Staged staged = link->stage(runs / 2);
  ASSERT_TRUE(staged.is_shared());
  std::memcpy(staged.bytes().data(), data.data(), runs / 2);
  link->write(handle, ViewPlace{0, {0, runs / 2}}, 7, staged.bytes(), note);
  link->write(handle, ViewPlace{0, {runs / 2, runs}}, 7, bytes_of(data).subspan(runs / 2), note);
  link->end(handle, 7, 1);
  finish(*link);
  EXPECT_THAT(errors, ::testing::ElementsAre(0, 0));
  std::int64_t got = 0;
  std::string into(runs, '.');
  EXPECT_EQ(read_now(*link, handle, ViewPlace{0, {0, runs}}, bytes_of(into), &got), 0);
  EXPECT_EQ(got, runs);
  EXPECT_TRUE(into == data);
  for (const std::int64_t byte : {std::int64_t{0}, runs / 2, runs - 1}) {
    EXPECT_EQ(contents()[static_cast<std::size_t>(view.offset(byte))], data[static_cast<std::size_t>(byte)]);
  }
  // A smaller view in its place is accepted.
  link->view(handle, 0, serialised(strided(1, 1, 3)));
  EXPECT_EQ(write_now(*link, handle, ViewPlace{0, {0, 3}}, bytes_of(std::string("123"))), 0);
  EXPECT_EQ(contents()[4], '2');
  EXPECT_EQ(write_now(*link, handle, ViewPlace{1, {0, 3}}, bytes_of(std::string("123"))), EINVAL);
}

TEST_F(Served, StagedMemoryIsSharedOnOneNode) {
  start();
  const Link link = connect();
  const Handle handle = open_file(*link);
  EXPECT_TRUE(link->shares_memory());
  transport::Staged staged = link->stage(3 << 20);
  ASSERT_TRUE(staged.is_shared());
  EXPECT_FALSE(link->stage(65 << 20).is_shared());  // more than the segment has
  std::memset(staged.bytes().data(), 's', staged.bytes().size());
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, staged.bytes()), 0);
  EXPECT_TRUE(contents() == std::string(3 << 20, 's'));
  std::memset(staged.bytes().data(), '.', staged.bytes().size());
  std::int64_t got = 0;
  EXPECT_EQ(read_now(*link, handle, OffsetPlace{1}, staged.bytes(), &got), 0);
  EXPECT_EQ(got, (3 << 20) - 1);
  EXPECT_EQ(static_cast<char>(staged.bytes()[12345]), 's');
  EXPECT_EQ(told(*link, "held_bytes"), 0);
}

// Checks that many overlapping requests of one client act as if each were carried out when it was sent.
TEST_F(Served, RequestsOfOneClientTakeEffectInTheirOrder) {
  start({.engine = {.buffer_bytes = 8 << 20, .threads = 3}});
  const Link link = connect();
  const Handle handle = open_file(*link);
  std::mt19937_64 random{21};
  constexpr std::size_t file_bytes = 3000;
  std::string model(file_bytes, '\0');
  ASSERT_EQ(ftruncate(file_.get(), file_bytes), 0);
  link->view(handle, 0, serialised(strided(3, 5, 11)));
  struct Asked {
    std::string data, expected;
    std::vector<layout::MappedExtent> segments;
  };
  std::deque<Asked> asked;
  for (int i = 0; i < 1'000; ++i) {
    Asked& one = asked.emplace_back();
    transport::FilePlace place;
    if (random() % 2 == 0) {
      const auto first = static_cast<std::int64_t>(random() % 1000);
      const layout::Extent data{first, first + 1 + static_cast<std::int64_t>(random() % 60)};
      place = ViewPlace{0, data};
      layout::Segments walk = strided(3, 5, 11).segments(data);
      while (const auto segment = walk.next()) one.segments.push_back(*segment);
    } else {
      std::int64_t at = static_cast<std::int64_t>(random() % 2000);
      for (std::uint64_t runs = 1 + random() % 4; runs > 0; --runs) {
        one.segments.push_back({0, at, 1 + static_cast<std::int64_t>(random() % 90)});
        at = one.segments.back().at + one.segments.back().length + static_cast<std::int64_t>(random() % 30);
      }
      place = ListPlace{one.segments};
    }
    const bool writes = random() % 2 == 0;
    for (const layout::MappedExtent& segment : one.segments) {
      for (std::int64_t k = segment.at; k < segment.at + segment.length; ++k) {
        const auto byte = static_cast<std::size_t>(k);
        if (writes) model[byte] = static_cast<char>('a' + random() % 26);
        one.expected.push_back(model[byte]);
      }
    }
    one.data = writes ? one.expected : std::string(one.expected.size(), '.');
    const auto done = [](int error, std::int64_t) { EXPECT_EQ(error, 0); };
    const std::uint64_t operation = random() % 3;
    if (writes) {
      link->write(handle, place, operation, bytes_of(one.data), done);
    } else {
      link->read(handle, place, operation, bytes_of(one.data), done);
    }
    if (random() % 50 == 0) link->end(handle, operation + 1, 1);
    link->poll();
  }
  finish(*link);
  for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(asked[i].data, asked[i].expected) << "request " << i;
  EXPECT_EQ(contents(), model);
}

// ---- several clients -----------------------------------------------------------------------------------------------

TEST_F(Served, ACollectiveOperationIsWrittenAsOne) {
  start();
  constexpr int clients = 4;
  constexpr std::int64_t block = 4096;
  constexpr std::int64_t blocks = 16;
  std::vector<Link> links;
  std::vector<Handle> handles;
  std::vector<std::string> data;
  for (int i = 0; i < clients; ++i) {
    links.push_back(connect());
    handles.push_back(open_file(*links.back()));
    links.back()->view(handles.back(), 0, serialised(strided(i * block, block, clients * block)));
    data.emplace_back(blocks * block, static_cast<char>('A' + i));
  }
  const std::int64_t before = told(*links[0], "batches");
  for (int i = 0; i < clients; ++i) {
    const auto place = static_cast<std::size_t>(i);
    links[place]->write(handles[place], ViewPlace{0, {0, blocks * block}}, 7, bytes_of(data[place]),
                        [](int error, std::int64_t bytes) {
                          EXPECT_EQ(error, 0);
                          EXPECT_EQ(bytes, blocks * block);
                        });
    links[place]->end(handles[place], 7, clients);
    links[place]->poll();
  }
  for (const Link& link : links) finish(*link);
  std::string expected;
  for (std::int64_t i = 0; i < blocks * clients; ++i)
    expected += std::string(block, static_cast<char>('A' + i % clients));
  EXPECT_EQ(contents(), expected);
  // A client that is stopped for longer than requests are held causes further batches.
  EXPECT_LE(told(*links[0], "batches") - before, clients);
  EXPECT_EQ(told(*links[0], "operations"), clients);
}

TEST_F(Served, WhoDiesInAnOperationIsNotWaitedFor) {
  start();
  const Link living = connect();
  const Handle handle = open_file(*living);
  const std::string dead = "dead";
  const std::string live = "live";
  {
    const Link dying = connect();
    const Handle its = open_file(*dying);
    dying->write(its, OffsetPlace{100}, 5, bytes_of(dead), [](int, std::int64_t) {});
    dying->poll();
  }
  int error = -1;
  living->write(handle, OffsetPlace{0}, 5, bytes_of(live), [&](int its_error, std::int64_t) { error = its_error; });
  living->end(handle, 5, 2);
  finish(*living);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(contents().substr(0, 4), "live");
  drive(*living, [&] { return told(*living, "clients") == 1; });
  drive(*living, [&] { return told(*living, "queue") == 0; });
  EXPECT_EQ(told(*living, "files"), 1);
}

TEST_F(Served, WhatIsQueuedOfWhoHasGoneIsDropped) {
  start({.engine = {.threads = 1, .merges = false, .injection = {.delay = std::chrono::seconds{2}}}});
  const Link living = connect();
  const std::string data = "x";
  {
    const Link dying = connect();
    const Handle its = open_file(*dying);
    for (int i = 0; i < 4; ++i) dying->write(its, OffsetPlace{i * 10}, 0, bytes_of(data), [](int, std::int64_t) {});
    dying->poll();
    drive(*living, [&] { return told(*living, "queue") >= 3; });
  }
  drive(*living, [&] { return told(*living, "queue") == 0; });
  EXPECT_LT(contents().size(), 31U);  // except for the write under way
}

TEST_F(Served, MoreDataThanThereIsMemoryAreTakenInTurn) {
  start({.engine = {.buffer_bytes = 8 << 20}});
  constexpr int clients = 3;
  constexpr std::size_t each = 24 << 20;
  std::vector<Link> links;
  std::string data(each, '\0');
  for (std::size_t i = 0; i < each; ++i) data[i] = static_cast<char>(i * 31 + i / 1000);
  for (int i = 0; i < clients; ++i) {
    links.push_back(connect());
    const Handle handle = open_file(*links.back());
    // The server holds these for an end that never comes, until it needs the memory.
    links.back()->write(handle, OffsetPlace{static_cast<std::int64_t>(each) * i}, 3, bytes_of(data),
                        [](int error, std::int64_t) { EXPECT_EQ(error, 0); });
  }
  bool done = false;
  while (!done) {
    done = true;
    for (const Link& link : links) {
      link->poll();
      ASSERT_FALSE(link->failed()) << link->failure_text();
      done = done && link->pending() == 0;
    }
    EXPECT_LE(load_.held_bytes.load(), 8 << 20);
  }
  EXPECT_TRUE(contents() == data + data + data);
  // All clients read the data back at once.
  std::vector<std::string> read(clients, std::string(each, '.'));
  for (int i = 0; i < clients; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const Handle handle = open_file(*links[place]);
    links[place]->read(handle, OffsetPlace{static_cast<std::int64_t>(each) * i}, 0, bytes_of(read[place]),
                       [](int error, std::int64_t) { EXPECT_EQ(error, 0); });
  }
  for (done = false; !done;) {
    done = true;
    for (const Link& link : links) {
      link->poll();
      done = done && link->pending() == 0;
    }
  }
  for (const std::string& one : read) EXPECT_TRUE(one == data);
  EXPECT_EQ(told(*links[0], "held_bytes"), 0);
}

// ---- what goes wrong -----------------------------------------------------------------------------------------------

TEST_F(Served, AnErrorGoesToItsRequestsAndNoOthers) {
  start({.engine = {.injection = {.error = ENOSPC, .after = 2}}});
  const Link link = connect();
  const Handle handle = open_file(*link);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("good"))), 0);
  std::int64_t got = -1;
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{4}, bytes_of(std::string("lost")), &got), ENOSPC);
  EXPECT_EQ(got, 0);
  EXPECT_EQ(sync_now(*link, handle), 0);  // an error that was reported is not repeated
  EXPECT_EQ(close_now(*link, handle), 0);
  EXPECT_EQ(contents(), "good");
}

TEST_F(Served, WhatWasWrittenBehindAndLostIsToldBySyncAndClose) {
  start({.engine = {.injection = {.error = EIO, .after = 2}}});
  const Link link = connect();
  const Handle handle = open_file(*link, {.writes = true, .write_behind = true});
  EXPECT_TRUE(link->writes_behind(handle));
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("good"))), 0);
  EXPECT_EQ(sync_now(*link, handle), 0);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{4}, bytes_of(std::string("lost"))), 0);
  const Handle other = open_file(*link);
  EXPECT_EQ(sync_now(*link, handle), EIO);
  EXPECT_EQ(sync_now(*link, handle), 0) << "told once";
  EXPECT_EQ(close_now(*link, handle), 0);
  EXPECT_EQ(close_now(*link, other), 0) << "opened later";
  const Handle later = open_file(*link);
  EXPECT_FALSE(link->writes_behind(later));
  EXPECT_EQ(close_now(*link, later), 0);  // the error belongs to the other opening
}

TEST_F(Served, EachOpeningLearnsOfALostWriteOnce) {
  start({.engine = {.injection = {.error = ENOSPC, .after = 1}}, .write_behind = true});
  const Link writer = connect(), reader = connect();
  const Handle handle = open_file(*writer), sees = open_file(*reader, {.reads = true}), closes = open_file(*reader);
  EXPECT_EQ(write_now(*writer, handle, OffsetPlace{0}, bytes_of(std::string("lost"))), 0);
  EXPECT_EQ(sync_now(*reader, sees), ENOSPC);
  EXPECT_EQ(sync_now(*reader, sees), 0);
  EXPECT_EQ(close_now(*reader, closes), ENOSPC);
  EXPECT_EQ(close_now(*reader, sees), 0);
  EXPECT_EQ(close_now(*writer, handle), ENOSPC);
}

TEST_F(Served, TheServerSaysWhenWhatItAnsweredEarlyIsInTheFile) {
  start({.write_behind = true});
  const Link link = connect();
  const Handle handle = open_file(*link);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("data"))), 0);
  drive(*link, [&] { return link->early(handle).stored == 4; });
  EXPECT_EQ(contents(), "data");
  const transport::EarlyAnswers before = link->early(handle);
  EXPECT_EQ(before.answered, 4);
  EXPECT_EQ(before.error, 0);
  EXPECT_FALSE(before.in_order);
  stop();
  drive(*link, [&] { return link->failed(); });
  EXPECT_TRUE(link->early(handle).in_order) << "known after the server's end";
}

TEST_F(Served, AServerThatEndsSaysWhatItCouldNotStore) {
  start({.engine = {.injection = {.error = ENOSPC, .after = 2}}, .write_behind = true});
  const Link link = connect();
  const Handle handle = open_file(*link);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("good"))), 0);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{4}, bytes_of(std::string("lost"))), 0);
  stop();
  // A request that cannot be sent any more does not hide what the server sent before.
  link->write(handle, OffsetPlace{8}, 0, bytes_of(std::string("late")), [](int, std::int64_t) {});
  drive(*link, [&] { return link->failed(); });
  const transport::EarlyAnswers after = link->early(handle);
  EXPECT_EQ(after.answered, 8);
  EXPECT_EQ(after.stored, 8);
  EXPECT_EQ(after.error, ENOSPC);
  EXPECT_TRUE(after.in_order);
}

TEST_F(Served, APathThatNamesAnotherFileIsRefused) {
  start();
  const transport::FileIdentity own = transport::identity_of(file_.get());
  ASSERT_EQ(rename((root_ + "/data/file").c_str(), (root_ + "/data/moved").c_str()), 0);
  const Fd stranger{open((root_ + "/data/file").c_str(), O_RDWR | O_CREAT, 0600)};
  auto tcp = ServerLink::connect(tcp_, "the secret of this run", limit);
  ASSERT_TRUE(tcp.ok()) << tcp.error().text;
  const Link local = connect();
  for (ServerLink* link : {local.get(), tcp.value().get()}) {
    open_file(*link, read_write, "file", ESTALE, own);
    open_file(*link, {.reads = true}, "file", ESTALE, own);
    open_file(*link, {.writes = true}, "file", ESTALE, own);
    const Handle handle = open_file(*link, read_write, "moved", 0, own);
    EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string("ours"))), 0);
  }
  EXPECT_EQ(contents(), "ours");
  // Device numbers are those of a node.
  open_file(*local, read_write, "moved", ESTALE, {own.device + 1, own.inode, own.born_ns});
  open_file(*tcp.value(), read_write, "moved", 0, {own.device + 1, own.inode, own.born_ns});
}

TEST_F(Served, WhatIsWrittenBehindIsTheServersOwnAtOnce) {
  start({.write_behind = true});
  const Link link = connect();
  const Handle handle = open_file(*link);
  transport::Staged staged = link->stage(4096);
  std::memset(staged.bytes().data(), 'a', 4096);
  int error = -1;
  link->write(handle, OffsetPlace{0}, 9, staged.bytes(), [&](int its_error, std::int64_t) { error = its_error; });
  drive(*link, [&] { return error == 0; });
  std::memset(staged.bytes().data(), 'b', 4096);  // the memory may be reused after the answer
  EXPECT_EQ(sync_now(*link, handle), 0);
  EXPECT_EQ(contents(), std::string(4096, 'a'));
}

TEST_F(Served, ANewMapIsInUseWhenWhatWasAnsweredEarlyIsInTheFile) {
  using namespace std::chrono_literals;
  start({.engine = {.injection = {.delay = 100ms}}, .write_behind = true});
  const Link link = connect();
  const Handle handle = open_file(*link);
  int answered = 0;
  const std::string data = "data";
  for (int i = 0; i < 3; ++i)
    link->write(handle, OffsetPlace{0}, 0, bytes_of(data), [&](int error, std::int64_t) { answered += error == 0; });
  drive(*link, [&] { return answered == 3; });
  std::promise<std::string> stored;
  server_->take_map(event::ServerMap{2, {}}, [&] { stored.set_value(contents()); });
  EXPECT_EQ(stored.get_future().get(), data);
  EXPECT_EQ(told(*link, "queue"), 0);
  std::promise<void> idle;
  server_->take_map(std::nullopt, [&] { idle.set_value(); });
  EXPECT_EQ(idle.get_future().wait_for(limit), std::future_status::ready) << "nothing is to be stored";
}

// Waits until the server closes the connection that a client has given up.
void await_end(transport::Parting& parting) {
  const Time deadline = node_now() + limit;
  while (!parting.is_over()) {
    ASSERT_LT(node_now(), deadline) << "the server has not closed the connection";
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
}

TEST_F(Served, AConnectionEndsWhenNothingOfItIsUnderWay) {
  using namespace std::chrono_literals;
  for (const bool behind : {false, true}) {
    SCOPED_TRACE(behind ? "written behind" : "written through");
    start({.engine = {.threads = 1, .injection = {.delay = 200ms}}, .write_behind = behind});
    const Link link = connect();
    const Link watching = connect();
    const Handle handle = open_file(*link);
    const std::string begun = "begun", waits = "waits";
    int answered = 0;
    for (const std::string* text : {&begun, &waits})
      link->write(handle, OffsetPlace{0}, 0, bytes_of(*text), [&](int, std::int64_t) { ++answered; });
    link->poll();
    drive(*watching, [&] { return told(*watching, "queue") == 2; });
    if (behind) drive(*link, [&] { return answered == 2; });
    EXPECT_TRUE(link->owes_writes());
    transport::Parting parting = link->part();
    EXPECT_FALSE(parting.is_over());
    await_end(parting);
    EXPECT_EQ(contents(), behind ? waits : begun) << "a write that had not begun is dropped, unless it was answered";
    EXPECT_EQ(told(*watching, "queue"), 0);
    stop();
    ASSERT_EQ(ftruncate(file_.get(), 0), 0);
  }
}

TEST_F(Served, NothingIsOwedWithoutWrites) {
  start({});
  const Link link = connect();
  const Handle handle = open_file(*link);
  const std::string text = "text";
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(text)), 0);
  std::string got(4, ' ');
  link->read(handle, OffsetPlace{0}, 0, std::as_writable_bytes(std::span{got}), [](int, std::int64_t) {});
  EXPECT_FALSE(link->owes_writes());
  EXPECT_TRUE(link->part().is_over());
}

TEST_F(Served, AServerThatHasEndedOwesNothing) {
  start({});
  const Link link = connect();
  const Handle handle = open_file(*link);
  stop();
  const std::string text = "text";
  link->write(handle, OffsetPlace{0}, 0, bytes_of(text), [](int, std::int64_t) {});
  EXPECT_TRUE(link->owes_writes());
  drive(*link, [&] { return link->failed(); });
  EXPECT_FALSE(link->owes_writes()) << "the server has closed the connection";
}

TEST_F(Served, AClientThatWaitsSeesThatTheServerRuns) {
  using namespace std::chrono_literals;
  start({.engine = {.injection = {.delay = 6s}}});
  const Link link = connect();
  const Handle handle = open_file(*link);
  const std::string text = "text";
  int answered = 0;
  link->write(handle, OffsetPlace{0}, 0, bytes_of(text), [&](int, std::int64_t) { ++answered; });
  drive(*link, [&] { return link->take_sign_of_life(); });
  EXPECT_EQ(answered, 0);
}

// Starts a server that writes behind and takes long for each write.
struct ServedBehind : Served {
  ServedBehind() {
    start({.engine = {.injection = {.delay = std::chrono::milliseconds{100}}}, .name = "s1", .write_behind = true});
  }

  // Writes, and returns true if the answer came before the data were in the file.
  bool is_held(ServerLink& link, Handle handle, std::int64_t at, const std::string& data) {
    const std::int64_t before = link.early(handle).answered;
    EXPECT_EQ(write_now(link, handle, OffsetPlace{at}, bytes_of(data)), 0);
    const bool held = link.early(handle).answered > before;
    EXPECT_TRUE(held || contents().substr(static_cast<std::size_t>(at), data.size()) == data);
    return held;
  }
  void take_map(std::optional<event::ServerMap> map) {
    std::promise<void> stored;
    server_->take_map(std::move(map), [&] { stored.set_value(); });
    ASSERT_EQ(stored.get_future().wait_for(limit), std::future_status::ready);
  }
  event::ServerMap map_of(const std::vector<std::string>& names) const {
    event::ServerMap map{1, {}};
    for (const std::string& name : names) map.servers.push_back({name, root_, "unix:/x"});
    return map;
  }
};

TEST_F(ServedBehind, AnOpeningUnderAnotherPlacementFindsEverythingStored) {
  const Link one = connect(), other = connect();
  const Handle first = open_file(*one);
  EXPECT_TRUE(is_held(*one, first, 0, "aaaa"));
  const Handle same = open_file(*other);
  EXPECT_EQ(contents(), "") << "a byte has one server for both";
  const Handle differs = open_file(*other, {.reads = true, .placement = 7});
  EXPECT_EQ(contents(), "aaaa");
  EXPECT_FALSE(is_held(*one, first, 0, "bbbb"));
  EXPECT_FALSE(is_held(*other, same, 2, "cc"));
  EXPECT_EQ(close_now(*other, differs), 0);
  EXPECT_TRUE(is_held(*one, first, 0, "dddd"));
}

TEST_F(ServedBehind, HoldsOnlyForThePlacementOfTheMap) {
  const event::Placement two = event::placement_of(std::vector<std::string>{"s1", "s2"});
  const Link link = connect();
  const Handle alone = open_file(*link);
  EXPECT_TRUE(is_held(*link, alone, 0, "a"));
  take_map(map_of({"s2", "s1"}));
  EXPECT_FALSE(is_held(*link, alone, 0, "b"));
  EXPECT_EQ(close_now(*link, alone), 0);
  const Handle handle = open_file(*link, {.reads = true, .writes = true, .placement = two});
  EXPECT_TRUE(is_held(*link, handle, 0, "c"));
  take_map(map_of({"s1", "s2", "s3"}));
  EXPECT_FALSE(is_held(*link, handle, 0, "d")) << "others have another map";
  take_map(map_of({"s2", "s3"}));
  EXPECT_FALSE(is_held(*link, handle, 0, "e")) << "this server is not in use";
  take_map(map_of({"s1", "s2"}));
  EXPECT_TRUE(is_held(*link, handle, 0, "f"));
  take_map(std::nullopt);
  EXPECT_FALSE(is_held(*link, handle, 0, "g")) << "hocketd may give others a new map";
}

// A server whose table other processes of the node see.
struct ServedInView : Served {
  ServedInView() {
    auto held = transport::HeldWrites::in(root_, "s1");
    EXPECT_TRUE(held) << held.error().text;
    held_ = std::move(held).value();
    start({.engine = {.injection = {.delay = std::chrono::milliseconds{100}}, .held = held_.get()},
           .name = "s1",
           .write_behind = true});
    view_.attach(root_);
    struct stat status {};
    fstat(file_.get(), &status);
    key_ = key_of(status.st_dev, status.st_ino);
  }
  ~ServedInView() override { stop(); }

  std::unique_ptr<transport::HeldWrites> held_;
  transport::HeldView view_;
  FileKey key_ = no_file;
};

TEST_F(ServedInView, OtherProcessesWaitForWhatItHolds) {
  const Link link = connect();
  const Handle handle = open_file(*link);
  std::string all;
  for (const std::string part : {"one", "two", "three"}) {
    EXPECT_EQ(write_now(*link, handle, OffsetPlace{static_cast<std::int64_t>(all.size())}, bytes_of(part)), 0);
    all += part;
    EXPECT_TRUE(view_.any() || contents() == all);
    EXPECT_TRUE(view_.await(key_));
    EXPECT_EQ(contents(), all);
  }
  EXPECT_GT(link->early(handle).answered, 0);
  EXPECT_EQ(sync_now(*link, handle), 0);
  EXPECT_FALSE(view_.any());
}

TEST_F(ServedInView, WhatOthersCannotSeeIsNotHeld) {
  while (held_->enter(key_, 1) != nullptr) {  // until its bucket is full
  }
  const Link link = connect();
  const Handle handle = open_file(*link);
  EXPECT_EQ(write_now(*link, handle, OffsetPlace{0}, bytes_of(std::string{"data"})), 0);
  EXPECT_EQ(contents(), "data");
  EXPECT_EQ(link->early(handle).answered, 0);
}

TEST_F(ServedBehind, StoresWhatAllClientsWroteWhenAsked) {
  const Link one = connect(), other = connect();
  const Handle first = open_file(*one), second = open_file(*other, {.reads = true});
  EXPECT_TRUE(is_held(*one, first, 0, "abc"));
  int error = -1;
  other->store(second, event::one_server, [&](int its_error, std::int64_t) { error = its_error; });
  finish(*other);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(contents(), "abc");
}

TEST_F(Served, AServerThatStopsHasWrittenWhatItAnswered) {
  start({.write_behind = true});
  const Link link = connect();
  const Handle handle = open_file(*link);
  int done = 0;
  const std::string data = "data";
  for (int i = 0; i < 50; ++i) {
    link->write(handle, OffsetPlace{i * 4}, 4, bytes_of(data), [&](int error, std::int64_t) { done += error == 0; });
  }
  drive(*link, [&] { return done == 50; });
  stop();
  EXPECT_EQ(contents().size(), 200U);
  finish(*link);
  drive(*link, [&] { return link->failed(); });
  int error = 0;
  link->write(handle, OffsetPlace{0}, 0, bytes_of(data), [&](int its_error, std::int64_t) { error = its_error; });
  finish(*link);
  EXPECT_NE(error, 0);
}

TEST_F(Served, WhoStandsStillWithMemoryOfOthersIsCutOff) {
  start({.engine = {.buffer_bytes = 8 << 20}, .patience = std::chrono::milliseconds{100}});
  ASSERT_EQ(ftruncate(file_.get(), 64 << 20), 0);
  const Link lazy = connect();
  const Handle its = open_file(*lazy);
  std::string much(64 << 20, '.');
  int error = 0;
  lazy->read(its, OffsetPlace{0}, 0, bytes_of(much), [&](int its_error, std::int64_t) { error = its_error; });
  lazy->poll();  // and never again: soon it occupies all memory for reads
  const Link other = connect();
  const Handle handle = open_file(*other);
  std::string into(16 << 20, '.');
  EXPECT_EQ(read_now(*other, handle, OffsetPlace{0}, bytes_of(into)), 0);
  EXPECT_TRUE(into == std::string(16 << 20, '\0'));
  finish(*lazy);
  EXPECT_NE(error, 0);
  stop();
  EXPECT_THAT(log_, HasSubstr("made no progress while others waited for its memory"));
}

TEST_F(Served, OverTcpTheSecretIsNeeded) {
  start();
  const auto good = ServerLink::connect("unix:/nowhere.sock " + tcp_, "the secret of this run", limit);
  ASSERT_TRUE(good.ok()) << good.error().text;
  const Handle handle = open_file(*good.value());
  EXPECT_FALSE(good.value()->shares_memory());
  EXPECT_FALSE(good.value()->stage(4096).is_shared());
  EXPECT_EQ(write_now(*good.value(), handle, OffsetPlace{0}, bytes_of(std::string("over the network"))), 0);
  EXPECT_EQ(contents(), "over the network");
  const auto bad = ServerLink::connect(tcp_, "another secret of another run", limit);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().text, HasSubstr("is the secret the servers' own?"));
  EXPECT_FALSE(ServerLink::connect(tcp_, "", limit).ok());
  EXPECT_EQ(told(*good.value(), "clients"), 1);
}

}  // namespace
}  // namespace hocket::server
