#include "wire/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <msgpack.hpp>

#include "event/random_event.hpp"

namespace hocket::wire {
namespace {

using event::Event;

// Returns the payload of the only frame in `bytes`.
std::string payload_of(const std::string& bytes) { return bytes.size() < 4 ? "" : bytes.substr(4); }

// Builds a payload by hand, from keys and values of any type.
class Map {
 public:
  template <class T>
  Map& add(const std::string& key, const T& value) {
    msgpack::pack(body_, key);
    msgpack::pack(body_, value);
    ++size_;
    return *this;
  }
  std::string bytes() const {
    msgpack::sbuffer all;
    msgpack::packer<msgpack::sbuffer> packer{all};
    packer.pack_map(size_);
    all.write(body_.data(), body_.size());
    return {all.data(), all.size()};
  }

 private:
  msgpack::sbuffer body_;
  std::uint32_t size_ = 0;
};

TEST(Frame, EveryEventComesBackAsItWasSent) {
  event::RandomEvents random{1};
  for (int i = 0; i < 20000; ++i) {
    Event e = random.next();
    std::string bytes;
    if (!encode(e, 7, bytes)) {
      EXPECT_TRUE(bytes.empty());
      continue;
    }
    const auto message = decode(payload_of(bytes));
    ASSERT_TRUE(message.ok()) << i << " " << type_name(e.body) << ": " << message.error().text;
    if (std::holds_alternative<event::Application>(e.body)) e.origin.application.clear();  // its own field has that key
    EXPECT_TRUE(same(message.value().event, e)) << i << " " << type_name(e.body);
  }
}

TEST(Frame, WithoutStampsCarriesTheBodyAlone) {
  std::string bytes;
  ASSERT_TRUE(encode(event::Body{event::RenewIo{RequestId{9}}}, bytes).ok());
  const auto message = decode(payload_of(bytes));
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message.value().subscription, 0);
  EXPECT_EQ(message.value().event.origin.member, MemberId{});
  EXPECT_EQ(std::get<event::RenewIo>(message.value().event.body).request, RequestId{9});
}

TEST(Frame, IsReadableWithAnotherMessagePack) {
  std::string bytes;
  ASSERT_TRUE(encode(event::Body{event::GrantIo{RequestId{3}, Duration{250}, "dev:8:1"}}, bytes).ok());
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]), bytes.size() - 4);
  const auto handle = msgpack::unpack(bytes.data() + 4, bytes.size() - 4);
  const auto map = handle.get().as<std::map<std::string, msgpack::object>>();
  EXPECT_EQ(map.at("v").as<std::int64_t>(), protocol_version);
  EXPECT_EQ(map.at("type").as<std::string>(), "GRANT_IO");
  EXPECT_EQ(map.at("request").as<int>(), 3);
  EXPECT_EQ(map.at("waited_ns").as<int>(), 250);
  EXPECT_EQ(map.at("target").as<std::string>(), "dev:8:1");
}

TEST(Frame, IgnoresUnknownKeysAndKeepsDefaultsOfMissingOnes) {
  const auto message = decode(Map{}
                                  .add("later", std::vector<std::map<std::string, int>>{{{"a", 1}}})
                                  .add("request", 5)
                                  .add("type", "START_IO")
                                  .add("v", protocol_version)
                                  .bytes());
  ASSERT_TRUE(message.ok()) << message.error().text;
  const auto& start = std::get<event::StartIo>(message.value().event.body);
  EXPECT_EQ(start.request, RequestId{5});
  EXPECT_EQ(start.bytes, 0);
}

struct Refused {
  const char* name;
  std::string payload;
  const char* says;
};

class FrameRefused : public testing::TestWithParam<Refused> {};

TEST_P(FrameRefused, SaysWhy) {
  const auto message = decode(GetParam().payload);
  ASSERT_FALSE(message.ok());
  EXPECT_NE(message.error().text.find(GetParam().says), std::string::npos) << message.error().text;
}

using Texts = std::map<std::string, std::string>;

INSTANTIATE_TEST_SUITE_P(
    Frames, FrameRefused,
    testing::Values(
        Refused{"empty", "", "cut short"}, Refused{"no_map", "\x01", "not a map"},
        Refused{"no_version", Map{}.add("type", "TICK").bytes(), "version is 0"},
        Refused{"earlier_version", Map{}.add("v", 1).add("type", "TICK").bytes(), "version is 1"},
        Refused{"later_version", Map{}.add("v", 3).add("type", "TICK").bytes(), "version is 3"},
        Refused{"text_for_a_number",
                Map{}.add("v", protocol_version).add("type", "START_IO").add("bytes", "many").bytes(), "'bytes'"},
        Refused{"number_for_a_text", Map{}.add("v", protocol_version).add("type", "START_IO").add("target", 3).bytes(),
                "'target'"},
        Refused{"negative_id", Map{}.add("v", protocol_version).add("type", "RENEW_IO").add("request", -1).bytes(),
                "'request'"},
        Refused{"too_large", Map{}.add("v", protocol_version).add("type", "BYE").add("io_ns", ~0ULL).bytes(),
                "'io_ns'"},
        Refused{"list_for_a_text",
                Map{}.add("v", protocol_version).add("type", "LOST").add("reason", std::vector<int>{1}).bytes(),
                "'reason'"},
        Refused{"number_for_a_reason",
                Map{}.add("v", protocol_version).add("type", "DECISION").add("reason", 3).bytes(), "'reason'"},
        Refused{"list_in_a_reason",
                Map{}
                    .add("v", protocol_version)
                    .add("type", "DECISION")
                    .add("reason", std::map<std::string, std::vector<int>>{{"kind", {1}}})
                    .bytes(),
                "'reason' has a value that is no number or text"},
        Refused{"unknown_type", Map{}.add("v", protocol_version).add("type", "STRAT_IO").bytes(),
                "'STRAT_IO' is unknown"},
        Refused{"user_event_without_type", Map{}.add("v", protocol_version).add("properties", Texts{}).bytes(),
                "needs a type name"},
        Refused{"user_event_named_user",
                Map{}.add("v", protocol_version).add("type", "USER").add("properties", Texts{}).bytes(),
                "one of hocket's own"},
        Refused{
            "forged_origin",
            Map{}.add("v", protocol_version).add("type", "X").add("properties", Texts{{"application", "a"}}).bytes(),
            "'application' of 'X' is stamped"},
        Refused{"nested_property",
                Map{}
                    .add("v", protocol_version)
                    .add("type", "X")
                    .add("properties", std::map<std::string, Texts>{{"a", {}}})
                    .bytes(),
                "property 'a' of 'X'"},
        Refused{"bytes_behind", Map{}.add("v", protocol_version).add("type", "TICK").bytes() + "x", "bytes follow"},
        Refused{"nested_too_deeply", "\x81\xa1k" + std::string(40, '\x91'), "too deeply"},
        Refused{"huge_map", "\xdf\xff\xff\xff\xff", "more than 256"},
        Refused{"huge_text", "\x81\xdb\xff\xff\xff\xff", "cut short"},
        Refused{"number_as_key", "\x81\x01\x01", "a key is not a text"}),
    [](const auto& case_) { return case_.param.name; });

TEST(Frame, OfAnEventThatIsTooLongIsRefusedBeforeItIsSent) {
  std::string bytes = "kept";
  const Status status = encode(event::Body{event::Lost{std::string(70000, 'x')}}, bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("LOST"), std::string::npos);
  EXPECT_EQ(bytes, "kept");
}

// The coordinator must see the same texts that the trace stores and that tools in other languages can read.
TEST(Frame, GivesTextsThatAreUtf8) {
  const auto texts = [](const char* target) {
    const auto message =
        decode(Map{}.add("v", protocol_version).add("type", "START_IO").add("target", std::string{target}).bytes());
    return std::get<event::StartIo>(message.value().event.body).target;
  };
  EXPECT_EQ(texts("/scratch/gr\xc3\xb6\xc3\x9f"
                  "e"),
            "/scratch/gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(texts("/scratch/gr\xf6\xdf"
                  "e"),
            "/scratch/gr\\xf6\\xdf"
            "e");
  EXPECT_NE(texts("\xff"), texts("\xfe"));
  EXPECT_EQ(texts("\xed\xa0\x80 \xc0\x80 \xf5"), "\\xed\\xa0\\x80 \\xc0\\x80 \\xf5");

  const auto user =
      decode(Map{}.add("v", protocol_version).add("type", "N\xff").add("properties", Texts{{"\xfe", "\xfd"}}).bytes());
  const auto& body = std::get<event::User>(user.value().event.body);
  EXPECT_EQ(body.type, "N\\xff");
  EXPECT_EQ(body.properties, (event::Properties{{"\\xfe", std::string{"\\xfd"}}}));
}

// Decodes random bytes, truncated frames and frames with changed bytes: each is decoded or refused. Sanitizers find the
// rest.
TEST(FrameFuzz, NeverDoesMoreThanRefuse) {
  event::RandomEvents random{2};
  std::size_t refused = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string bytes;
    if (i % 3 == 0) {
      for (std::uint64_t n = random.below(200); n > 0; --n) bytes += static_cast<char>(random.below(256));
    } else {
      if (!encode(random.next(), 1, bytes)) continue;
      bytes = payload_of(bytes);
      if (i % 3 == 1) bytes.resize(random.below(bytes.size()));
      for (std::uint64_t n = i % 3 == 2 ? 1 + random.below(8) : 0; n > 0; --n) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      }
    }
    // The buffer has exactly that size, so that sanitizers detect a read past its end.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const auto message = decode({exact.data(), exact.size()});
    if (message) {
      std::string again;
      (void)encode(message.value().event, 1, again);
    } else {
      ++refused;
      EXPECT_LT(message.error().text.size(), 500U);
    }
  }
  EXPECT_GT(refused, 40000U);
}

TEST(Splitter, CutsTheSameFramesHoweverTheBytesArrive) {
  event::RandomEvents random{3};
  for (int round = 0; round < 300; ++round) {
    std::string stream;
    std::vector<std::string> sent;
    for (std::uint64_t n = random.below(20); n > 0; --n) {
      std::string frame;
      if (!encode(random.next(), 1, frame)) continue;
      sent.push_back(payload_of(frame));
      stream += frame;
    }
    std::vector<std::string> got;
    Splitter splitter;
    for (std::size_t at = 0; at < stream.size();) {
      const auto space = splitter.space();
      const std::size_t size = std::min({space.size, stream.size() - at, std::size_t{1} + random.below(3000)});
      std::memcpy(space.data, stream.data() + at, size);
      splitter.filled(size);
      at += size;
      while (true) {
        const auto payload = splitter.next();
        ASSERT_TRUE(payload.ok());
        if (!payload.value()) break;
        got.emplace_back(*payload.value());
      }
    }
    EXPECT_EQ(got, sent);
  }
}

TEST(Splitter, RefusesLengthsOutOfBounds) {
  for (const std::uint32_t length : {0U, 65537U, 0xffffffffU}) {
    Splitter splitter;
    const auto space = splitter.space();
    for (std::size_t i = 0; i < 4; ++i) space.data[i] = static_cast<char>(length >> (8 * i) & 0xffU);
    splitter.filled(4);
    const auto payload = splitter.next();
    ASSERT_FALSE(payload.ok());
    EXPECT_NE(payload.error().text.find(std::to_string(length)), std::string::npos);
  }
}

TEST(Payloads, AreTakenFromBytesThatStayWhereTheyAre) {
  std::string bytes;
  ASSERT_TRUE(encode(event::RenewIo{RequestId{1}}, bytes).ok());
  const std::size_t first = bytes.size();
  ASSERT_TRUE(encode(event::RenewIo{RequestId{2}}, bytes).ok());
  std::string_view rest = std::string_view{bytes}.substr(0, bytes.size() - 1);
  const auto payload = take_payload(rest);
  ASSERT_TRUE(payload.ok() && payload.value());
  EXPECT_EQ(payload.value()->data(), bytes.data() + 4);
  EXPECT_EQ(payload.value()->size(), first - 4);
  const auto incomplete = take_payload(rest);
  ASSERT_TRUE(incomplete.ok());
  EXPECT_FALSE(incomplete.value());
  EXPECT_EQ(rest.data(), bytes.data() + first) << "what is incomplete stays";
  std::string_view wrong{"\xff\xff\xff\xff", 4};
  EXPECT_FALSE(take_payload(wrong).ok());
}

}  // namespace
}  // namespace hocket::wire
