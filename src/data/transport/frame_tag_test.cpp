#include "transport/frame_tag.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace hocket::transport {
namespace {

// Returns the bytes of hexadecimal digits; blanks are skipped.
std::string bytes_of_hex(std::string_view text) {
  std::string digits;
  std::string bytes;
  for (const char c : text) {
    if (c != ' ') digits.push_back(c);
  }
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

template <std::size_t size>
std::array<unsigned char, size> array_of(std::string_view hex) {
  const std::string bytes = bytes_of_hex(hex);
  EXPECT_EQ(bytes.size(), size);
  std::array<unsigned char, size> array{};
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}

FrameTag tag_of(const FrameKey& key, std::string_view message) {
  Poly1305 tag{key};
  tag.update(std::as_bytes(std::span{message}));
  return tag.finish();
}

struct PublishedTag {
  const char* key;
  std::string message;
  const char* tag;
};

const std::string submission =
    "Any submission to the IETF intended by the Contributor for publication as all or part of an IETF Internet-Draft "
    "or "
    "RFC and any statement made within the context of an IETF activity is considered an \"IETF Contribution\". Such "
    "statements include oral statements in IETF sessions, as well as written and electronic communications made at any "
    "time or place, which are addressed to";
const std::string jabberwocky =
    "'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\nAll mimsy were the borogoves,\nAnd the "
    "mome "
    "raths outgrabe.";
const char* const zero_key = "0000000000000000000000000000000000000000000000000000000000000000";
const char* const hex_of_two = "0200000000000000000000000000000000000000000000000000000000000000";
const char* const hex_of_one = "0100000000000000000000000000000000000000000000000000000000000000";

// RFC 8439, section 2.5.2, and appendix A.3, test vectors 1 to 11.
const std::vector<PublishedTag> published = {
    {"85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b", "Cryptographic Forum Research Group",
     "a8061dc1305136c6c22b8baf0c0127a9"},
    {zero_key, std::string(64, '\0'), "00000000000000000000000000000000"},
    {"0000000000000000000000000000000036e5f6b5c5e06070f0efca96227a863e", submission,
     "36e5f6b5c5e06070f0efca96227a863e"},
    {"36e5f6b5c5e06070f0efca96227a863e00000000000000000000000000000000", submission,
     "f3477e7cd95417af89a6b8794c310cf0"},
    {"1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0", jabberwocky,
     "4541669a7eaaee61e708dc7cbcc5eb62"},
    {hex_of_two, bytes_of_hex("ffffffffffffffffffffffffffffffff"), "03000000000000000000000000000000"},
    {"02000000000000000000000000000000ffffffffffffffffffffffffffffffff",
     bytes_of_hex("02000000000000000000000000000000"), "03000000000000000000000000000000"},
    {hex_of_one,
     bytes_of_hex("ffffffffffffffffffffffffffffffff f0ffffffffffffffffffffffffffffff 11000000000000000000000000000000"),
     "05000000000000000000000000000000"},
    {hex_of_one,
     bytes_of_hex("ffffffffffffffffffffffffffffffff fbfefefefefefefefefefefefefefefe 01010101010101010101010101010101"),
     "00000000000000000000000000000000"},
    {hex_of_two, bytes_of_hex("fdffffffffffffffffffffffffffffff"), "faffffffffffffffffffffffffffffff"},
    {"0100000000000000040000000000000000000000000000000000000000000000",
     bytes_of_hex(
         "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000000000000000000001000000"
         "000000000000000000000000"),
     "14000000000000005500000000000000"},
    {"0100000000000000040000000000000000000000000000000000000000000000",
     bytes_of_hex("e33594d7505e43b900000000000000003394d7505e4379cd010000000000000000000000000000000000000000000000"),
     "13000000000000000000000000000000"},
};

TEST(FrameTag, OfThePublishedExamples) {
  for (const PublishedTag& example : published) {
    EXPECT_EQ(tag_of(array_of<32>(example.key), example.message), array_of<16>(example.tag)) << example.message.size();
  }
}

// RFC 8439, section 2.3.2, and 2.6.2: the key of a tag.
TEST(FrameTag, KeyStreamOfThePublishedExamples) {
  const FrameKey key = array_of<32>("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(
      chacha20_block(key, 1, {0x09000000, 0x4a000000, 0}),
      array_of<64>("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705d98b02a2"
                   "b5129cd1de164eb9cbd083e8a2503c4e"));
  const FrameKey other = array_of<32>("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
  const auto block = chacha20_block(other, 0, {0, 0x03020100, 0x07060504});
  FrameKey once;
  std::copy_n(block.begin(), once.size(), once.begin());
  EXPECT_EQ(once, array_of<32>("8ad5a08b905f81cc815040274ab29471a833b637e3fd0da508dbb8e2fdd1a646"));
}

// The model computes with digits of 8 bits, one block after the other, as the RFC describes it.
class ModelTag {
 public:
  explicit ModelTag(const FrameKey& key) {
    for (std::size_t i = 0; i < 16; ++i) r_[i] = key[i], pad_[i] = key[i + 16];
    for (const std::size_t i : {3U, 7U, 11U, 15U}) r_[i] &= 15U;
    for (const std::size_t i : {4U, 8U, 12U}) r_[i] &= 252U;
  }

  FrameTag of(std::string_view message) {
    for (std::size_t at = 0; at < message.size(); at += 16) {
      std::array<unsigned, 17> block{};
      const std::string_view part = message.substr(at, 16);
      for (std::size_t i = 0; i < part.size(); ++i) block[i] = static_cast<unsigned char>(part[i]);
      block[part.size()] = 1;
      add(block);
      multiply();
    }
    const Digits before = h_;
    std::array<unsigned, 17> minus_p{};
    minus_p[0] = 5;
    minus_p[16] = 252;
    add(minus_p);
    if ((h_[16] & 128U) != 0) h_ = before;  // it was below p
    FrameTag tag;
    unsigned carry = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      carry += h_[i] + pad_[i];
      tag[i] = static_cast<unsigned char>(carry);
      carry >>= 8U;
    }
    return tag;
  }

 private:
  using Digits = std::array<unsigned, 17>;

  void add(const Digits& number) {
    unsigned carry = 0;
    for (std::size_t i = 0; i < h_.size(); ++i) {
      carry += h_[i] + number[i];
      h_[i] = carry & 255U;
      carry >>= 8U;
    }
  }
  // 2^136 is 320 modulo 2^130 - 5.
  void multiply() {
    Digits product{};
    for (std::size_t i = 0; i < 17; ++i) {
      for (std::size_t j = 0; j <= i; ++j) product[i] += h_[j] * r_[i - j];
      for (std::size_t j = i + 1; j < 17; ++j) product[i] += 320 * h_[j] * r_[i + 17 - j];
    }
    unsigned carry = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      carry += product[i];
      h_[i] = carry & 255U;
      carry >>= 8U;
    }
    carry += product[16];
    h_[16] = carry & 3U;
    carry = 5 * (carry >> 2U);
    for (std::size_t i = 0; i < 16; ++i) {
      carry += h_[i];
      h_[i] = carry & 255U;
      carry >>= 8U;
    }
    h_[16] += carry;
  }

  Digits h_{}, r_{}, pad_{};
};

std::string random_text(std::mt19937_64& random, std::size_t size) {
  std::string text(size, '\0');
  // Bytes of all ones or zeros make carries go far.
  const auto kind = random() % 4;
  for (char& c : text) c = kind == 0 ? '\xff' : kind == 1 ? '\0' : static_cast<char>(random());
  return text;
}

TEST(FrameTagProperties, IsThatOfTheModelHoweverTheMessageIsDivided) {
  std::mt19937_64 random{7};
  for (int i = 0; i < 3000; ++i) {
    FrameKey key;
    const std::string bytes = random_text(random, key.size());
    std::copy(bytes.begin(), bytes.end(), key.begin());
    const std::string message = random_text(random, random() % 400);
    const FrameTag tag = ModelTag{key}.of(message);
    ASSERT_EQ(tag_of(key, message), tag) << "message " << i;
    Poly1305 in_parts{key};
    for (std::size_t at = 0; at < message.size();) {
      const std::size_t count = std::min<std::size_t>(random() % 90, message.size() - at);
      in_parts.update(std::as_bytes(std::span{message}.subspan(at, count)));
      at += count;
    }
    ASSERT_EQ(in_parts.finish(), tag) << "message " << i;
  }
}

TEST(FrameTagProperties, AnyBitThatChangesChangesIt) {
  std::mt19937_64 random{8};
  FrameKey key{};
  for (auto& byte : key) byte = static_cast<unsigned char>(random());
  for (const std::size_t size : {1U, 16U, 80U, 333U}) {
    std::string message = random_text(random, size);
    const FrameTag tag = tag_of(key, message);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      const auto flip = static_cast<char>(1U << bit % 8);
      message[bit / 8] = static_cast<char>(message[bit / 8] ^ flip);
      ASSERT_FALSE(is_same(tag, tag_of(key, message))) << "bit " << bit << " of " << size << " bytes";
      message[bit / 8] = static_cast<char>(message[bit / 8] ^ flip);
    }
    ASSERT_FALSE(is_same(tag, tag_of(key, message + '\0')));
    ASSERT_FALSE(is_same(tag, tag_of(key, message.substr(0, size - 1))));
    ASSERT_TRUE(is_same(tag, tag_of(key, message)));
  }
}

TEST(FrameTag, DependsOnTheFramesNumberAndTheKey) {
  const FrameKey key{1, 2, 3};
  const FrameTag tag = tag_of_frame(key, 5).finish();
  EXPECT_TRUE(is_same(tag, tag_of_frame(key, 5).finish()));
  EXPECT_FALSE(is_same(tag, tag_of_frame(key, 6).finish()));
  EXPECT_FALSE(is_same(tag, tag_of_frame(key, 5 + (std::uint64_t{1} << 32U)).finish()));
  EXPECT_FALSE(is_same(tag, tag_of_frame({1, 2, 4}, 5).finish()));
}

}  // namespace
}  // namespace hocket::transport
