#include "link/message.hpp"

#include <gtest/gtest.h>

#include "base/mutated_testing.hpp"
#include "wire/frame.hpp"

namespace hocket::link {
namespace {

std::string payload_of(const LinkMessage& message) {
  std::string frame;
  encode(message, frame);
  return frame.substr(4);
}

TEST(LinkMessage, ComesBackAsItWasSent) {
  Mutations random{1};
  for (int i = 0; i < 1000; ++i) {
    const auto kind = static_cast<MessageKind>(1 + random.below(11));
    const std::string bytes = random.mutated(std::string(random.below(300), 'x'));
    const LinkMessage sent{kind, random.below(~0ULL), time_from_ns(static_cast<std::int64_t>(random.below(~0ULL))),
                           bytes};
    const std::string payload = payload_of(sent);
    const auto back = decode(payload);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value().kind, sent.kind);
    EXPECT_EQ(back.value().member, sent.member);
    EXPECT_EQ(back.value().sent, sent.sent);
    EXPECT_EQ(back.value().bytes, sent.bytes);
  }
}

TEST(LinkMessage, OfTheLargestSizeIsAFrame) {
  const std::string bytes(most_bytes, 'x');
  std::string frame;
  encode({MessageKind::data, 1, {}, bytes}, frame);
  EXPECT_LE(frame.size() - 4, wire::max_payload_bytes);
}

TEST(LinkMessage, WithoutAHeadOrOfAnUnknownKindIsRefused) {
  const std::string payload = payload_of({MessageKind::taken, 1, {}, {}});
  for (std::size_t size = 0; size < payload.size(); ++size) EXPECT_FALSE(decode(payload.substr(0, size)).ok()) << size;
  for (const char kind : {'\0', '\x0c', '\xff'}) EXPECT_FALSE(decode(kind + payload.substr(1)).ok());
}

TEST(LinkMessage, HasAnEventInAnOrder) {
  std::string text;
  ASSERT_TRUE(encode(event::StopServer{"s1", "0123456789abcdef"}, text).ok());
  const auto back = body_from(text);
  ASSERT_TRUE(back.ok()) << back.error().text;
  ASSERT_TRUE(std::holds_alternative<event::StopServer>(back.value()));
  EXPECT_EQ(std::get<event::StopServer>(back.value()).instance, "0123456789abcdef");
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(body_from(text.substr(0, size)).ok()) << size;
  EXPECT_FALSE(body_from(text + "x").ok());
  const event::StopServer long_one{std::string(most_bytes, 's'), {}};
  const Status encoded = encode(long_one, text);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().text, "STOP_SERVER is too long for the link");
}

TEST(LinkMessage, SaysWhoAnAgentIs) {
  const auto back = introduction_from(text_of(Introduction{link_version, "0.1.0", "n1", "00ff", 48, 1000, true}));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().cores, 48);
  EXPECT_EQ(back.value().node, "n1");
  EXPECT_EQ(back.value().identity, "00ff");
  EXPECT_EQ(back.value().user, 1000);
  EXPECT_TRUE(back.value().serves_alone);
  const std::string start = std::to_string(link_version) + "\n0.1.0\nn1\n00ff\n";
  for (const char* rest : {"", "4", "4\n1000\n2\n", "4\nx\n1\n", "4\n1000\n1", "4\n1000\n1\n\n"})
    EXPECT_FALSE(introduction_from(start + rest).ok()) << rest;
}

TEST(LinkMessage, WithCoresThatNoNodeHasIsRefused) {
  for (const std::int64_t cores : {std::int64_t{-1}, INT64_MAX})
    EXPECT_FALSE(introduction_from(text_of(Introduction{link_version, "0.1.0", "n1", "00ff", cores})).ok()) << cores;
  EXPECT_FALSE(introduction_from(std::to_string(link_version) + "\n0.1.0\nn1\n00ff\nmany\n0\n0\n").ok());
  EXPECT_FALSE(introduction_from(std::to_string(link_version) + "\n0.1.0\nn1\n00ff\n4").ok());
}

TEST(LinkMessage, CarriesCredentials) {
  Introduction self{link_version, "0.1.0", "n1", "00ff", 4, 0, false, "MUNGE:AwQFAAA=:"};
  EXPECT_EQ(introduction_from(text_of(self)).value().credential, self.credential);
  EXPECT_EQ(admission_from(text_of(Admission{"n1~00", self.credential})).value().credential, self.credential);
  EXPECT_EQ(admission_from(text_of(Admission{"n1"})).value().node, "n1");
  const Admission of_user = admission_from(text_of(Admission{"n1", {}, 1000, true})).value();
  EXPECT_TRUE(of_user.user == 1000 && of_user.serves_alone);
  self.credential = "two words";
  EXPECT_FALSE(introduction_from(text_of(self)).ok());
  for (const char* wrong : {"", "n1", "\n", "n1\n0\n0\na b", "n1\n0\n2\n", "n1\nx\n0\n", "n1\n0\n0\n\n"})
    EXPECT_FALSE(admission_from(wrong).ok()) << wrong;
}

TEST(LinkMessage, OfAnotherVersionIsRefusedByItsNumberAlone) {
  const auto back = introduction_from("7\nwhatever that version says");
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.error().text.find("version 7"), std::string::npos) << back.error().text;
}

TEST(LinkMessage, WithANameThatALogCannotShowIsRefused) {
  for (const char* node : {"", "a b", "a\x1b[2J", "\xff"})
    EXPECT_FALSE(introduction_from(text_of(Introduction{link_version, "0.1.0", node, "00ff"})).ok()) << node;
  EXPECT_FALSE(introduction_from(text_of(Introduction{link_version, "0.1.0", std::string(257, 'n'), "1"})).ok());
}

TEST(LinkMessage, SaysWhoseProcessHasConnected) {
  const auto back = caller_from(text_of(bus::Caller{1000, 42, false, "77.batch"}));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().user, 1000U);
  EXPECT_FALSE(back.value().is_operator);
  EXPECT_TRUE(caller_from(text_of(bus::Caller{0, 1, true})).value().is_operator);
  EXPECT_EQ(back.value().process, 42);
  EXPECT_EQ(back.value().step, "77.batch");
  EXPECT_EQ(caller_from("0\n1\n1\n").value().step, "");
  for (const char* text : {"", "1", "1\n", "\n1\n0\n", "1\n2", "1\n2\n0", "1\n2\n3\n", "x\n2\n0\n", "1\n2x\n0\n",
                           "-1\n2\n0\n", "1\n2\n0\na b", "1\n2\n0\n7.0\n"})
    EXPECT_FALSE(caller_from(text).ok()) << text;
}

TEST(LinkMessage, WithACountThatIsNoneIsRefused) {
  EXPECT_EQ(count_from("262144").value(), 262144U);
  for (const char* text : {"", "-1", "1 ", "x", "99999999999999999999"}) EXPECT_FALSE(count_from(text).ok()) << text;
}

}  // namespace
}  // namespace hocket::link
