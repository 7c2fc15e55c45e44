#include "transport/stream.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>

#include "transport/staging.hpp"
#include "transport/testing.hpp"

namespace hocket::transport {
namespace {

using testing::sockets;

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Header write_of(std::size_t bytes) {
  Header header;
  header.type = Type::write;
  header.bytes = static_cast<std::int64_t>(bytes);
  return header;
}

void write_raw(const Fd& socket, const Header& header, std::string_view more = {}) {
  const HeaderBytes bytes = encode(header);
  ASSERT_EQ(write(socket.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(write(socket.get(), more.data(), more.size()), static_cast<ssize_t>(more.size()));
}

constexpr FrameKey own_key{1, 2, 3};
constexpr FrameKey other_key{4, 5, 6};

// Sends random frames and receives them, with tags or without.
void exchange_random_frames(bool authenticated) {
  std::mt19937_64 random{4};
  auto [here, there] = sockets();
  Stream from{std::move(here)};
  Stream to{std::move(there)};
  if (authenticated) {
    from.authenticate(other_key, own_key);
    to.authenticate(own_key, other_key);
  }
  constexpr std::size_t frames = 400;
  std::vector<std::string> payloads;
  std::vector<std::string> metas;
  for (std::size_t i = 0; i < frames; ++i) {
    const std::size_t most = i % 20 == 0 ? 500'000 : 300;
    payloads.emplace_back(random() % most, static_cast<char>('a' + i % 26));
    metas.emplace_back(random() % (i % 7 == 0 ? 70'000 : 20), static_cast<char>('A' + i % 26));
  }
  std::size_t sent = 0;
  std::size_t received = 0;
  std::string payload;
  while (received < frames) {
    for (int some = 0; some < 5 && sent < frames; ++some, ++sent) {
      from.send(write_of(payloads[sent].size()), metas[sent], bytes_of(payloads[sent]));
    }
    from.flush();
    const Stream::Got got = to.receive();
    ASSERT_NE(got, Stream::Got::ended) << to.reason();
    if (got == Stream::Got::nothing) continue;
    if (got == Stream::Got::announced) {
      EXPECT_EQ(to.receive(), Stream::Got::announced);  // until the payload's destination is named
      payload.resize(to.header().payload);
      to.take_payload({reinterpret_cast<std::byte*>(payload.data()), payload.size()});
      continue;
    }
    EXPECT_EQ(to.header().sequence, received + 1);
    EXPECT_EQ(to.meta(), metas[received]);
    EXPECT_EQ(payload, payloads[received]);
    payload.clear();
    ++received;
  }
  EXPECT_FALSE(from.has_unsent());
}

TEST(Stream, RandomFramesArriveAsTheyWereSent) { exchange_random_frames(false); }

TEST(Stream, RandomFramesWithTagsArriveAsTheyWereSent) { exchange_random_frames(true); }

TEST(Stream, WhatWasSentBeforeTheEndIsStillGiven) {
  auto [here, there] = sockets();
  {
    Stream from{std::move(here)};
    from.send(write_of(0));
    from.flush();
  }
  Stream to{std::move(there)};
  EXPECT_EQ(to.receive(), Stream::Got::frame);
  while (to.receive() == Stream::Got::nothing) {
  }
  EXPECT_TRUE(to.ended());
  EXPECT_EQ(to.reason(), "closed by the other end");
}

TEST(Stream, ASendToAPeerThatHasGoneHidesNothingThatItSent) {
  auto [here, there] = sockets();
  Stream to{std::move(there)};
  {
    Stream from{std::move(here)};
    from.send(write_of(0));
    from.flush();
  }
  to.send(write_of(0));
  EXPECT_FALSE(to.flush());
  EXPECT_FALSE(to.has_unsent());
  EXPECT_EQ(to.receive(), Stream::Got::frame);
  while (to.receive() == Stream::Got::nothing) {
  }
  EXPECT_EQ(to.error(), EPIPE);
}

// Returns why a stream that receives this one frame ends; "" if it accepts the frame.
std::string fault(const Header& header, std::string_view more = {}, std::optional<std::uint32_t> limit = {}) {
  auto [here, there] = sockets();
  Stream to{std::move(there)};
  if (limit) to.limit_meta(*limit);
  write_raw(here, header, more);
  return to.receive() == Stream::Got::ended ? to.reason() : "";
}

TEST(Stream, AFrameOutOfItsPlaceEndsTheConnection) {
  Header header = write_of(0);
  header.sequence = 1;
  EXPECT_EQ(fault(header), "");
  header.sequence = 2;  // one frame is missing
  EXPECT_EQ(fault(header), "sent frame 2 after frame 0");
  header.sequence = 1;
  auto [here, there] = sockets();
  Stream to{std::move(there)};
  write_raw(here, header);
  write_raw(here, header);  // the same frame again
  EXPECT_EQ(to.receive(), Stream::Got::frame);
  EXPECT_EQ(to.receive(), Stream::Got::ended);
  EXPECT_EQ(to.reason(), "sent frame 1 after frame 1");
}

TEST(Stream, WhoHasNotSaidWhoHeIsSendsLittle) {
  Header header = write_of(0);
  header.sequence = 1;
  header.meta = 65;
  EXPECT_EQ(fault(header, std::string(65, 'x'), 64), "sent more than a client may that has not identified itself");
  header.meta = 0;
  header.payload = 1;
  header.bytes = 1;
  EXPECT_EQ(fault(header, "x", 64), "sent more than a client may that has not identified itself");
}

TEST(Stream, RubbishEndsTheConnection) {
  auto [here, there] = sockets();
  Stream to{std::move(there)};
  const std::string rubbish(200, 'x');
  ASSERT_EQ(write(here.get(), rubbish.data(), rubbish.size()), 200);
  EXPECT_EQ(to.receive(), Stream::Got::ended);
  EXPECT_EQ(to.reason(), "sent no frame");
  EXPECT_EQ(to.receive(), Stream::Got::ended);
  EXPECT_EQ(to.descriptor(), -1);
}

TEST(Stream, ADescriptorComesWithItsFrame) {
  auto [here, there] = sockets();
  Stream from{std::move(here)};
  Stream to{std::move(there)};
  const auto segment = SharedSegment::make(1 << 16);
  ASSERT_NE(segment, nullptr);
  from.send(write_of(0));
  from.pass_descriptor(segment->descriptor());
  from.flush();
  ASSERT_EQ(to.receive(), Stream::Got::frame);
  const auto same = SharedSegment::map(to.take_descriptor(), 1 << 16);
  ASSERT_NE(same, nullptr);
  segment->bytes()[7] = std::byte{42};
  EXPECT_EQ(same->bytes()[7], std::byte{42});
  EXPECT_FALSE(to.take_descriptor());
}

TEST(Stream, AFullSocketTakesWhatItCanAndTheRestLater) {
  auto [here, there] = sockets();
  Stream from{std::move(here)};
  Stream to{std::move(there)};
  const std::string payload(3'000, 'p');
  for (int i = 0; i < 1'000; ++i) from.send(write_of(payload.size()), {}, bytes_of(payload));
  from.flush();
  EXPECT_TRUE(from.has_unsent());
  std::string into(payload.size(), '\0');
  int received = 0;
  while (received < 1'000) {
    const Stream::Got got = to.receive();
    ASSERT_NE(got, Stream::Got::ended);
    if (got == Stream::Got::announced) to.take_payload({reinterpret_cast<std::byte*>(into.data()), into.size()});
    if (got == Stream::Got::nothing) from.flush();
    if (got == Stream::Got::frame) ++received;
  }
  EXPECT_EQ(into, payload);
}

// ---- frames with tags, and a stranger between the two ends ---------------------------------------------------------

const std::string some_meta = "five.";
const std::string some_payload = "the payload of a frame";

// Returns the bytes of frames with tags, as they are on the way. Each has the meta bytes and the payload above.
std::vector<std::string> tagged_frames(std::size_t count, const FrameKey& key = own_key) {
  auto [here, there] = sockets();
  Stream from{std::move(here)};
  from.authenticate(other_key, key);
  std::vector<std::string> frames;
  for (std::size_t i = 0; i < count; ++i) {
    from.send(write_of(some_payload.size()), some_meta, bytes_of(some_payload));
    from.flush();
    std::string bytes(1000, '\0');
    const ssize_t n = read(there.get(), bytes.data(), bytes.size());
    EXPECT_EQ(n, static_cast<ssize_t>(header_bytes + some_meta.size() + some_payload.size() + sizeof(FrameTag)));
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    frames.push_back(std::move(bytes));
  }
  return frames;
}

// What the receiver of bytes and then the end of the connection gets.
struct Received {
  int frames = 0;
  std::string reason;  // why its stream ended
};

Received receive_all(const std::vector<std::string>& sent) {
  auto [here, there] = sockets();
  for (const std::string& bytes : sent) {
    EXPECT_EQ(write(here.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  here = Fd{};
  Stream to{std::move(there)};
  to.authenticate(own_key, other_key);
  Received received;
  std::string memory(most_payload, '\0');
  while (true) {
    const Stream::Got got = to.receive();
    if (got == Stream::Got::ended) break;
    if (got == Stream::Got::announced) {
      to.take_payload({reinterpret_cast<std::byte*>(memory.data()), to.header().payload});
    }
    if (got != Stream::Got::frame) continue;
    ++received.frames;
    EXPECT_EQ(to.meta(), some_meta);
    EXPECT_EQ(memory.substr(0, to.header().payload), some_payload);
  }
  received.reason = to.reason();
  return received;
}

// Changes the number of a frame and nothing else.
std::string renumbered(std::string frame, char sequence) {
  constexpr std::size_t place = 8;
  frame[place] = sequence;
  return frame;
}

TEST(TaggedStream, AFrameOfWhichAnyBitWasChangedIsNoFrame) {
  const std::vector<std::string> frames = tagged_frames(2);
  EXPECT_EQ(receive_all(frames).frames, 2);
  for (std::size_t bit = 0; bit < 8 * frames[1].size(); ++bit) {
    std::string changed = frames[1];
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ static_cast<char>(1U << bit % 8));
    const Received received = receive_all({frames[0], changed});
    ASSERT_EQ(received.frames, 1) << "bit " << bit;
    if (bit / 8 >= header_bytes) {
      ASSERT_EQ(received.reason, "sent a frame that was altered on the way: its tag is wrong") << "bit " << bit;
    }
  }
}

TEST(TaggedStream, AFrameHasItsPlaceAndItsDirection) {
  const std::vector<std::string> frames = tagged_frames(3);
  constexpr auto wrong_tag = "sent a frame that was altered on the way: its tag is wrong";
  const auto expect = [](const std::vector<std::string>& sent, int count, const std::string& reason) {
    const Received received = receive_all(sent);
    EXPECT_EQ(received.frames, count) << reason;
    EXPECT_EQ(received.reason, reason);
  };
  expect(frames, 3, "closed by the other end");
  expect({frames[0], frames[0]}, 1, "sent frame 1 after frame 1");  // replayed
  expect({frames[0], renumbered(frames[0], 2)}, 1, wrong_tag);      // replayed
  expect({frames[0], frames[2]}, 1, "sent frame 3 after frame 1");  // one is left out
  expect({frames[0], renumbered(frames[2], 2)}, 1, wrong_tag);      // in another order
  expect({tagged_frames(1, other_key)[0]}, 0, wrong_tag);           // sent back
  expect({frames[0].substr(0, frames[0].size() - 16)}, 0, "closed by the other end");
  expect({frames[0].substr(0, frames[0].size() - 16), std::string(16, '\0')}, 0, wrong_tag);
}

}  // namespace
}  // namespace hocket::transport
