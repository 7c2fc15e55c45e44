#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "event/random_event.hpp"
#include "trace/reader.hpp"
#include "trace/writer.hpp"

namespace hocket::trace {
namespace {

using event::Event;
using testing::HasSubstr;

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-trace-XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/t.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Writer create() {
    auto writer = Writer::create(path_, header, [this](const std::string& text) { broken_.push_back(text); });
    EXPECT_TRUE(writer.ok());
    return std::move(writer).value();
  }
  Reader open() {
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader.ok()) << (reader ? "" : reader.error().text);
    return std::move(reader).value();
  }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream{path_}.rdbuf();
    return all.str();
  }
  void write(const std::string& text) const { std::ofstream{path_} << text; }

  const TraceHeader header{"0.1.0", "node1", 5, time_from_ns(7), {{"policy", std::string{"fcfs"}}, {"lease_s", 10.0}}};
  std::string directory_;
  std::string path_;
  std::vector<std::string> broken_;
};

TEST_F(Trace, HasTheFormThatIsDocumented) {
  {
    Writer writer = create();
    const event::Origin origin{"node1", "a", MemberId{2}};
    writer.add(Direction::in, {time_from_ns(8), origin, event::RenewIo{RequestId{3}}});
    writer.add(Direction::out, {time_from_ns(8), origin, event::GrantIo{RequestId{3}, Duration{1}, "dev:8:1"}});
    writer.add(Direction::in, {time_from_ns(9), {}, event::User{"X", {{"a", 1.0}, {"b", true}}}});
  }
  EXPECT_EQ(text(),
            R"({"hocket_trace": 2, "version": "0.1.0", "node": "node1", "start_unix_ns": 5, "start_ns": 7, )"
            R"("settings": {"policy": "fcfs", "lease_s": 10.0}})"
            "\n"
            R"({"in": "RENEW_IO", "time_ns": 8, "node": "node1", "application": "a", "member": 2, "request": 3, )"
            R"("bytes": 0})"
            "\n"
            R"({"out": "GRANT_IO", "time_ns": 8, "application": "a", "member": 2, "request": 3, "waited_ns": 1, )"
            R"("target": "dev:8:1", "share": 1.0, "delegated": false})"
            "\n"
            R"({"in": "X", "time_ns": 9, "node": "", "application": "", "member": 0, )"
            R"("properties": {"a": 1.0, "b": true}})"
            "\n");
}

TEST_F(Trace, ContinuesInAnotherFileBetweenTwoFlushes) {
  constexpr std::int64_t part_bytes = 300;
  std::string last;
  {
    auto writer = Writer::create(path_, header, [this](const std::string& text) { broken_.push_back(text); },
                                 {.part_bytes = part_bytes});
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 1; i <= 9; ++i) {
      writer.value().add(Direction::in, {time_from_ns(8), {}, event::RenewIo{RequestId{i}}});
      if (i % 3 == 0) writer.value().flush();
    }
    last = writer.value().path();
  }
  EXPECT_THAT(broken_, testing::IsEmpty());
  std::string before;
  std::string next = path_.substr(path_.rfind('/') + 1);
  const std::string folder = path_.substr(0, path_.rfind('/') + 1);
  std::string path;
  std::uint64_t request = 0;
  while (!next.empty()) {
    path = folder + next;
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.error().text;
    EXPECT_EQ(reader.value().header().continues, before);
    EXPECT_EQ(reader.value().header().settings, header.settings);
    for (auto record = reader.value().next(); record.value(); record = reader.value().next())
      EXPECT_EQ(std::get<event::RenewIo>(record.value()->event.body).request, RequestId{++request});
    before = next;
    next = reader.value().continued_by();
  }
  EXPECT_EQ(request, 9);
  EXPECT_EQ(path, last);
  EXPECT_TRUE(path.ends_with(".3.jsonl")) << path;
}

TEST_F(Trace, LosesItsOldestPartsWhereItIsLimited) {
  constexpr TraceSizes sizes{.part_bytes = 1000, .most_bytes = 5000};
  const std::string stem = path_.substr(0, path_.size() - std::string_view{".jsonl"}.size());
  const auto name_of = [&](int part) { return part == 0 ? path_ : stem + "." + std::to_string(part) + ".jsonl"; };
  int newest = 0;
  {
    auto writer = Writer::create(
        path_, header, [this](const std::string& text) { broken_.push_back(text); }, sizes);
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 1; i <= 200; ++i) {
      writer.value().add(Direction::in, {time_from_ns(8), {}, event::RenewIo{RequestId{i}}});
      writer.value().flush();
      std::uintmax_t bytes = 0;
      for (int part = 0; part < 40; ++part) {
        if (std::filesystem::exists(name_of(part))) bytes += std::filesystem::file_size(name_of(part));
      }
      constexpr std::uintmax_t a_line = 200;  // a part grows beyond its size by one flush and its last line
      ASSERT_LE(bytes, static_cast<std::uintmax_t>(sizes.most_bytes) + 2 * a_line);
    }
    while (name_of(newest) != writer.value().path()) ++newest;
  }
  EXPECT_THAT(broken_, testing::IsEmpty());
  ASSERT_GT(newest, 6);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(name_of(newest - 5)));
  for (int part = newest - 3; part <= newest; ++part) {
    ASSERT_TRUE(std::filesystem::exists(name_of(part))) << part;
    const auto reader = Reader::open(name_of(part));
    ASSERT_TRUE(reader.ok()) << reader.error().text;
    EXPECT_EQ(reader.value().header().continues, std::filesystem::path(name_of(part - 1)).filename());
    std::filesystem::remove(name_of(part));
  }
}

TEST_F(Trace, ContinuesInAnotherFileWhenAPartIsOld) {
  auto writer = Writer::create(path_, header, {}, {.part_age = std::chrono::hours{1}});
  ASSERT_TRUE(writer.ok());
  const auto add = [&](std::int64_t minutes) {
    writer.value().add(Direction::in, {time_from_ns(5) + std::chrono::minutes{minutes}, {}, event::Tick{}});
    writer.value().flush();
  };
  for (const int minutes : {1000, 1059}) add(minutes);
  EXPECT_EQ(writer.value().path(), path_) << "the age counts from the first event";
  add(1060);
  EXPECT_TRUE(writer.value().path().ends_with(".1.jsonl"));
  add(2000);
  EXPECT_TRUE(writer.value().path().ends_with(".1.jsonl")) << "nothing is in it yet but this event";
}

TEST_F(Trace, CompressesItsEndedParts) {
  constexpr std::int64_t part_bytes = 10'000;
  constexpr std::uint64_t records = 1000;
  const auto is_there = [&](const std::string& name) { return std::filesystem::exists(directory_ + "/" + name); };
  {
    auto writer = Writer::create(path_, header, [this](const std::string& text) { broken_.push_back(text); },
                                 {.part_bytes = part_bytes, .compress = true});
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 1; i <= records; ++i) {
      writer.value().add(Direction::in, {time_from_ns(8), {}, event::RenewIo{RequestId{i}}});
      if (i % 10 == 0) writer.value().flush();
    }
    for (int waits = 0; waits < 2000 && is_there("t.3.jsonl"); ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  EXPECT_TRUE(is_there("t.3.jsonl.gz"));
  EXPECT_FALSE(is_there("t.3.jsonl"));
  EXPECT_LT(std::filesystem::file_size(directory_ + "/t.3.jsonl.gz"), part_bytes / 3);
  EXPECT_EQ(std::filesystem::status(directory_ + "/t.3.jsonl.gz").permissions(), std::filesystem::perms{0600});
  // A writer that ends may leave the last parts as they are; a reader takes both.
  std::uint64_t request = 0;
  for (std::string next = "t.jsonl"; !next.empty();) {
    EXPECT_NE(is_there(next), is_there(next + ".gz")) << next;
    EXPECT_FALSE(is_there(next + ".gz.tmp"));
    auto reader = Reader::open(directory_ + "/" + next);
    ASSERT_TRUE(reader.ok()) << reader.error().text;
    for (auto record = reader.value().next(); record.value(); record = reader.value().next())
      EXPECT_EQ(std::get<event::RenewIo>(record.value()->event.body).request, RequestId{++request});
    next = reader.value().continued_by();
  }
  EXPECT_EQ(request, records);
  EXPECT_THAT(broken_, testing::IsEmpty());
}

TEST_F(Trace, LosesItsOldestCompressedParts) {
  const auto bytes_there = [&] {
    std::uintmax_t bytes = 0;
    for (const auto& one : std::filesystem::directory_iterator{directory_}) {
      std::error_code gone;  // the worker renames and removes files meanwhile
      const std::uintmax_t size = one.file_size(gone);
      bytes += gone ? 0 : size;
    }
    return bytes;
  };
  auto writer = Writer::create(path_, header, {}, {.part_bytes = 10'000, .most_bytes = 30'000, .compress = true});
  ASSERT_TRUE(writer.ok());
  for (std::uint64_t i = 1; i <= 5000; ++i) {
    writer.value().add(Direction::in, {time_from_ns(8), {}, event::RenewIo{RequestId{i}}});
    if (i % 10 == 0) writer.value().flush();
  }
  for (int waits = 0; waits < 2000 && bytes_there() > 30'000; ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  EXPECT_LE(bytes_there(), 30'000U);
  EXPECT_FALSE(std::filesystem::exists(path_) || std::filesystem::exists(path_ + ".gz"));
  std::size_t parts = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{directory_}) ++parts;
  EXPECT_GT(parts, 5U) << "compressed, more of them fit";
}

TEST_F(Trace, SaysThatACompressedPartIsDamaged) {
  {
    Writer writer = create();
    for (int i = 0; i < 1000; ++i) writer.add(Direction::in, {time_from_ns(i), {}, event::Tick{}});
  }
  const std::string whole = text();
  const std::string compressed = path_ + ".gz";
  {
    const GzipFile file{gzopen(compressed.c_str(), "wb")};
    ASSERT_EQ(gzwrite(file.get(), whole.data(), static_cast<unsigned>(whole.size())), static_cast<int>(whole.size()));
  }
  std::filesystem::remove(path_);
  std::filesystem::resize_file(compressed, std::filesystem::file_size(compressed) - 10);
  Reader reader = open();
  auto record = reader.next();
  while (record && record.value()) record = reader.next();
  ASSERT_FALSE(record.ok());
  EXPECT_THAT(record.error().text, HasSubstr(compressed + ", line "));
  EXPECT_THAT(record.error().text, HasSubstr("the file is damaged after this line: "));
}

TEST_F(Trace, GivesBackWhatWasWritten) {
  event::RandomEvents random{11};
  std::vector<Record> written;
  {
    Writer writer = create();
    for (int i = 0; i < 10000; ++i) {
      Record r{random.below(2) == 0 ? Direction::in : Direction::out, random.next()};
      writer.add(r.direction, r.event);
      written.push_back(std::move(r));
    }
  }
  Reader reader = open();
  EXPECT_EQ(reader.header().settings, header.settings);
  EXPECT_EQ(reader.header().start, header.start);
  for (Record& expected : written) {
    auto record = reader.next();
    ASSERT_TRUE(record.ok()) << record.error().text;
    ASSERT_TRUE(record.value().has_value());
    ASSERT_EQ(record.value()->direction, expected.direction);
    if (expected.direction == Direction::out) expected.event.origin.node.clear();
    // The field `application` of an APPLICATION takes the place of the origin's.
    if (std::holds_alternative<event::Application>(expected.event.body)) continue;
    EXPECT_TRUE(same(record.value()->event, expected.event)) << "line " << reader.line();
  }
  EXPECT_FALSE(reader.next().value().has_value());
  EXPECT_FALSE(reader.was_cut_short());
}

TEST_F(Trace, KeepsAnyTextReadable) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  all += "ü\u20ac\U0001F3B5\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xe2\x82";
  std::string line;
  append_line(Direction::in, {{}, {}, event::Lost{all}}, line);
  const auto record = parse_line(line.substr(0, line.size() - 1));
  ASSERT_TRUE(record.ok()) << record.error().text;
  const std::string& read = std::get<event::Lost>(record.value().event.body).reason;
  EXPECT_EQ(read.substr(0, 128), all.substr(0, 128));
  EXPECT_THAT(read, HasSubstr("ü\u20ac\U0001F3B5"));
  std::string again;
  append_line(Direction::in, record.value().event, again);
  EXPECT_EQ(again, line);
}

TEST_F(Trace, WritesNumbersThatAreNoneAsNull) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  std::string line;
  append_line(Direction::in, {{}, {}, event::User{"X", {{"a", nan}, {"b", -infinite}}}}, line);
  EXPECT_THAT(line, HasSubstr(R"("properties": {"a": null, "b": null})"));
  const auto record = parse_line(line.substr(0, line.size() - 1));
  ASSERT_TRUE(record.ok());
  const auto& properties = std::get<event::User>(record.value().event.body).properties;
  EXPECT_TRUE(std::isnan(std::get<double>(properties[0].second)));
}

TEST_F(Trace, EndsAtALastLineThatWasCutShort) {
  const std::string head = "{\"hocket_trace\": 1}\n{\"in\": \"TICK\", \"time_ns\": 1}\n";
  const std::string last = "{\"in\": \"TICK\", \"time_ns\": 2}";
  for (std::size_t length = 1; length < last.size(); ++length) {
    write(head + last.substr(0, length));
    Reader reader = open();
    EXPECT_TRUE(reader.next().value().has_value());
    const auto record = reader.next();
    ASSERT_TRUE(record.ok()) << record.error().text;
    EXPECT_FALSE(record.value().has_value());
    EXPECT_TRUE(reader.was_cut_short());
  }
}

TEST_F(Trace, NamesFileAndLineOfWhatIsWrong) {
  const std::string head = "{\"hocket_trace\": 1}\n{\"in\": \"TICK\", \"time_ns\": 1}\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"nonsense", "no JSON object"},
      {"{}", "neither 'in' nor 'out'"},
      {"{\"in\": \"RENEW_IO\", \"request\": \"x\"}", "'request' of RENEW_IO"},
      {"{\"in\": \"RENEW_IO\", \"request\": -1}", "'request' of RENEW_IO"},
      {"{\"in\": \"BYE\", \"io_ns\": 1e99}", "'io_ns' of BYE"}};
  for (const auto& [line, says] : cases) {
    write(head + line + "\n" + head);
    Reader reader = open();
    EXPECT_TRUE(reader.next().ok());
    const auto record = reader.next();
    ASSERT_FALSE(record.ok()) << line;
    EXPECT_THAT(record.error().text, HasSubstr(path_ + ", line 3: "));
    EXPECT_THAT(record.error().text, HasSubstr(says));
  }
}

TEST_F(Trace, RefusesWhatIsNoTraceOrOfAnotherVersion) {
  EXPECT_THAT(Reader::open(path_).error().text, HasSubstr("No such file"));
  write("");
  EXPECT_THAT(Reader::open(path_).error().text, HasSubstr("line 1: not a trace"));
  write("[1]\n");
  EXPECT_THAT(Reader::open(path_).error().text, HasSubstr("line 1: not a trace"));
  write("{\"hocket_trace\": 3}\n");
  EXPECT_THAT(Reader::open(path_).error().text, HasSubstr("version 3; this hocket reads versions 1 to 2"));
  write("{\"hocket_trace\": 0}\n");
  EXPECT_THAT(Reader::open(path_).error().text, HasSubstr("version 0; this hocket"));
}

TEST_F(Trace, ReadsTheVersionBefore) {
  write(
      "{\"hocket_trace\": 1}\n"
      "{\"out\": \"OUTCOME\", \"decision\": 3, \"quantity\": \"I/O period\", \"text\": \"as predicted\"}\n");
  Reader reader = open();
  EXPECT_EQ(reader.header().format, 1);
  const auto record = reader.next();
  ASSERT_TRUE(record.ok() && record.value());
  const auto& outcome = std::get<event::Outcome>(record.value()->event.body);
  EXPECT_EQ(outcome.text, "as predicted");
  EXPECT_EQ(outcome.quantity, event::quantity::period);
  EXPECT_THAT(record.value()->missing, testing::IsSupersetOf({"predicted_s", "uncertainty_s", "how"}));
  EXPECT_THAT(record.value()->missing, testing::Not(testing::Contains("decision")));
}

TEST_F(Trace, FactsLeaveOutWordsAndWhatTheOtherTraceLacks) {
  event::Decision decision;
  decision.number = 7;
  decision.text = "because it helps";
  decision.reason = event::EqualPart{8, 4, true};
  const event::Event command{{}, {}, decision};
  std::string facts;
  append_facts(command, {}, facts);
  EXPECT_THAT(facts,
              HasSubstr(R"("reason": {"kind": "equal-part", "cores": 8, "applications": 4, "bounded": true}, )"));
  EXPECT_THAT(facts, testing::Not(HasSubstr("text")));
  std::string fewer;
  append_facts(command, {"reason", "obstacle", "wanted"}, fewer);
  EXPECT_THAT(fewer, testing::EndsWith("\"period_after_ns\": 0}"));
}

TEST_F(Trace, IsDueWithinItsDelay) {
  Writer writer = create();
  EXPECT_FALSE(writer.due().has_value());
  writer.add(Direction::in, {time_from_ns(100), {}, event::Tick{}});
  writer.add(Direction::in, {time_from_ns(200), {}, event::Tick{}});
  EXPECT_EQ(writer.due(), time_from_ns(100) + Writer::longest_delay);
  writer.flush();
  EXPECT_FALSE(writer.due().has_value());
  EXPECT_THAT(text(), HasSubstr("TICK"));
  for (std::size_t i = 0; i < Writer::most_pending; ++i)
    writer.add(Direction::in, {time_from_ns(300), {}, event::Tick{}});
  EXPECT_EQ(writer.due(), time_from_ns(300));
}

TEST_F(Trace, TellsOnceThatTheDiskIsFull) {
  auto writer = Writer::create("/dev/full", header, [this](const std::string& text) { broken_.push_back(text); });
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 3; ++i) {
    writer.value().add(Direction::in, {{}, {}, event::Tick{}});
    writer.value().flush();
  }
  EXPECT_TRUE(writer.value().is_broken());
  ASSERT_EQ(broken_.size(), 1U);
  EXPECT_THAT(broken_[0], HasSubstr("/dev/full can no longer be written: No space left on device"));
  EXPECT_FALSE(Writer::create(directory_ + "/no/t.jsonl", header, {}).ok());
}

}  // namespace
}  // namespace hocket::trace
