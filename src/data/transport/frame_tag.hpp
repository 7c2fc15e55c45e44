// Tags that authenticate the frames of a TCP connection: Poly1305 under a key that ChaCha20 derives for each frame
// (RFC 8439). Whoever does not know the session key guesses the tag of n blocks of 16 bytes with a probability of at
// most 8 n / 2^106, whatever frames he has seen. libhocket brings no library into an application, so the code is its
// own. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hocket::transport {

using FrameKey = std::array<unsigned char, 32>;
using FrameTag = std::array<unsigned char, 16>;

// Computes the tag of one message, which may come in parts. A key must serve one message only. (RFC 8439, 2.5.)
class Poly1305 {
 public:
  explicit Poly1305(const FrameKey& key);
  void update(std::span<const std::byte> part);
  // Returns the tag of all parts. The object must not be used afterwards.
  FrameTag finish();

 private:
  static constexpr std::size_t block_bytes = 16;
  static constexpr std::size_t parallel = 4;  // blocks that one step takes
  // A number below about 2^132 as sum of limbs of 44, 44 and 42 bits; sums of products of two limbs fit 128 bits.
  using Limbs = std::array<std::uint64_t, 3>;
  // A multiplier: its limbs, and 20 times the upper two, because 2^132 = 20 modulo 2^130 - 5.
  struct Factor {
    std::uint64_t r0 = 0, r1 = 0, r2 = 0, s1 = 0, s2 = 0;
  };

  static Factor factor_of(const Limbs& number);
  void take_blocks(const std::byte* at, std::size_t count);
  void take_block(const Limbs& block);

  std::array<Factor, parallel> powers_;  // r, r², r³, r⁴
  Limbs sum_{};                          // of the blocks so far: the accumulator of the RFC
  std::array<std::uint64_t, 2> pad_{};   // that is added in the end: s of the RFC
  std::array<std::byte, block_bytes> rest_{};
  std::size_t rest_bytes_ = 0;  // of a block that is not complete yet
};

// Returns a block of ChaCha20's key stream (RFC 8439, 2.3). `nonce` has its three words, the first one first.
std::array<unsigned char, 64> chacha20_block(const FrameKey& key, std::uint32_t counter,
                                             const std::array<std::uint32_t, 3>& nonce);

// Returns the computation of the tag of frame `sequence` of one direction, which has the session key `key`. The key of
// the tag depends on the frame's number, so a frame has a wrong tag at any other place. (RFC 8439, 2.6.)
Poly1305 tag_of_frame(const FrameKey& key, std::uint64_t sequence);

// Compares in constant time, so that the time tells nothing about a forged tag.
bool is_same(const FrameTag& a, const FrameTag& b);

}  // namespace hocket::transport
