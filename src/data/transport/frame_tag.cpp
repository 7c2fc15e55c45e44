#include "transport/frame_tag.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "transport/bytes.hpp"

namespace hocket::transport {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t low_44 = (std::uint64_t{1} << 44U) - 1;
constexpr std::uint64_t low_42 = (std::uint64_t{1} << 42U) - 1;

// Reads a little-endian number. The copy becomes one load.
std::uint64_t load(const void* at) {
  std::uint64_t number = 0;
  std::memcpy(&number, at, sizeof number);
  if constexpr (std::endian::native == std::endian::big) number = __builtin_bswap64(number);
  return number;
}

// Sums of products, before the carries are propagated.
struct Products {
  Wide d0 = 0, d1 = 0, d2 = 0;

  // Adds the product of the limbs and the factor. Limbs are below 2^46 and factors below 2^50, so the sums of four
  // products are below 2^100.
  template <class Factor>
  void add(std::uint64_t h0, std::uint64_t h1, std::uint64_t h2, const Factor& by) {
    d0 += Wide{h0} * by.r0 + Wide{h1} * by.s2 + Wide{h2} * by.s1;
    d1 += Wide{h0} * by.r1 + Wide{h1} * by.r0 + Wide{h2} * by.s2;
    d2 += Wide{h0} * by.r2 + Wide{h1} * by.r1 + Wide{h2} * by.r0;
  }

  // Returns limbs that are congruent modulo 2^130 - 5: the first and the last fit their bits, the second is below 2^45.
  std::array<std::uint64_t, 3> reduced() const {
    auto carry = static_cast<std::uint64_t>(d0 >> 44U);
    std::uint64_t h0 = static_cast<std::uint64_t>(d0) & low_44;
    const Wide second = d1 + carry;
    carry = static_cast<std::uint64_t>(second >> 44U);
    std::uint64_t h1 = static_cast<std::uint64_t>(second) & low_44;
    const Wide third = d2 + carry;
    carry = static_cast<std::uint64_t>(third >> 42U);
    const std::uint64_t h2 = static_cast<std::uint64_t>(third) & low_42;
    h0 += carry * 5;
    h1 += h0 >> 44U;
    return {h0 & low_44, h1, h2};
  }
};

// Returns the limbs of a block of 16 bytes. `top` is bit 128, the 1 that follows a whole block.
std::array<std::uint64_t, 3> limbs_of(const std::byte* block, std::uint64_t top) {
  const std::uint64_t low = load(block);
  const std::uint64_t high = load(block + 8);
  return {low & low_44, (low >> 44U | high << 20U) & low_44, high >> 24U | top << 40U};
}

void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b;
  d = std::rotl(d ^ a, 16);
  c += d;
  b = std::rotl(b ^ c, 12);
  a += b;
  d = std::rotl(d ^ a, 8);
  c += d;
  b = std::rotl(b ^ c, 7);
}

}  // namespace

// ---- Poly1305 ------------------------------------------------------------------------------------------------------

Poly1305::Factor Poly1305::factor_of(const Limbs& number) {
  constexpr std::uint64_t folded = 20;
  return {number[0], number[1], number[2], number[1] * folded, number[2] * folded};
}

// The RFC clears 22 bits of r. The masks are those bits, divided into limbs.
Poly1305::Poly1305(const FrameKey& key) {
  const std::uint64_t low = load(key.data());
  const std::uint64_t high = load(key.data() + 8);
  const Limbs r{low & 0xffc0fffffffU, (low >> 44U | high << 20U) & 0xfffffc0ffffU, high >> 24U & 0x00ffffffc0fU};
  pad_ = {load(key.data() + 16), load(key.data() + 24)};
  powers_[0] = factor_of(r);
  Limbs power = r;
  for (std::size_t i = 1; i < powers_.size(); ++i) {
    Products products;
    products.add(power[0], power[1], power[2], powers_[0]);
    power = products.reduced();
    powers_[i] = factor_of(power);
  }
}

void Poly1305::take_block(const Limbs& block) {
  Products products;
  products.add(sum_[0] + block[0], sum_[1] + block[1], sum_[2] + block[2], powers_[0]);
  sum_ = products.reduced();
}

// Takes whole blocks. Four at a time are ((((h + a) r + b) r + c) r + d) r = (h + a) r⁴ + b r³ + c r² + d r: the
// products of a step do not depend on each other, and carries are propagated once.
void Poly1305::take_blocks(const std::byte* at, std::size_t count) {
  Limbs sum = sum_;
  for (; count >= parallel; count -= parallel, at += parallel * block_bytes) {
    const Limbs a = limbs_of(at, 1);
    const Limbs b = limbs_of(at + block_bytes, 1);
    const Limbs c = limbs_of(at + 2 * block_bytes, 1);
    const Limbs d = limbs_of(at + 3 * block_bytes, 1);
    Products products;
    products.add(b[0], b[1], b[2], powers_[2]);
    products.add(c[0], c[1], c[2], powers_[1]);
    products.add(d[0], d[1], d[2], powers_[0]);
    products.add(sum[0] + a[0], sum[1] + a[1], sum[2] + a[2], powers_[3]);
    sum = products.reduced();
  }
  sum_ = sum;
  for (; count > 0; --count, at += block_bytes) take_block(limbs_of(at, 1));
}

void Poly1305::update(std::span<const std::byte> part) {
  if (rest_bytes_ > 0) {
    const std::size_t count = std::min(part.size(), block_bytes - rest_bytes_);
    std::copy_n(part.begin(), count, rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_));
    rest_bytes_ += count;
    part = part.subspan(count);
    if (rest_bytes_ < block_bytes) return;
    take_block(limbs_of(rest_.data(), 1));
    rest_bytes_ = 0;
  }
  take_blocks(part.data(), part.size() / block_bytes);
  const auto rest = part.last(part.size() % block_bytes);
  std::copy(rest.begin(), rest.end(), rest_.begin());
  rest_bytes_ = rest.size();
}

FrameTag Poly1305::finish() {
  if (rest_bytes_ > 0) {
    // A shorter block ends with a 1 in the byte behind it, and zeros.
    std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_), rest_.end(), std::byte{0});
    rest_[rest_bytes_] = std::byte{1};
    take_block(limbs_of(rest_.data(), 0));
  }
  auto [h0, h1, h2] = sum_;
  // Twice: the first carries may make the upper limbs overflow. If they overflow again, the lowest limb is small.
  for (int i = 0; i < 2; ++i) {
    h1 += h0 >> 44U;
    h0 &= low_44;
    h2 += h1 >> 44U;
    h1 &= low_44;
    h0 += (h2 >> 42U) * 5;
    h2 &= low_42;
  }
  // g = h - (2^130 - 5) if that is not negative. The choice is made without a branch.
  std::uint64_t g0 = h0 + 5;
  std::uint64_t g1 = h1 + (g0 >> 44U);
  const std::uint64_t g2 = h2 + (g1 >> 44U);
  g0 &= low_44;
  g1 &= low_44;
  const std::uint64_t use_g = std::uint64_t{0} - (g2 >> 42U);
  h0 = (h0 & ~use_g) | (g0 & use_g);
  h1 = (h1 & ~use_g) | (g1 & use_g);
  h2 = (h2 & ~use_g) | (g2 & low_42 & use_g);
  const Wide low = Wide{h0 | h1 << 44U} + pad_[0];
  const std::uint64_t high = (h1 >> 20U | h2 << 24U) + pad_[1] + static_cast<std::uint64_t>(low >> 64U);
  FrameTag tag;
  char* out = put(reinterpret_cast<char*>(tag.data()), static_cast<std::uint64_t>(low));
  put(out, high);
  return tag;
}

// ---- ChaCha20 ------------------------------------------------------------------------------------------------------

std::array<unsigned char, 64> chacha20_block(const FrameKey& key, std::uint32_t counter,
                                             const std::array<std::uint32_t, 3>& nonce) {
  std::array<std::uint32_t, 16> start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  const char* in = reinterpret_cast<const char*>(key.data());
  for (std::size_t i = 4; i < 12; ++i) start[i] = get<std::uint32_t>(in);
  start[12] = counter;
  std::copy(nonce.begin(), nonce.end(), start.begin() + 13);
  std::array<std::uint32_t, 16> x = start;
  for (int twice = 0; twice < 10; ++twice) {
    for (std::size_t i = 0; i < 4; ++i) quarter_round(x[i], x[i + 4], x[i + 8], x[i + 12]);
    for (std::size_t i = 0; i < 4; ++i) {
      quarter_round(x[i], x[(i + 1) % 4 + 4], x[(i + 2) % 4 + 8], x[(i + 3) % 4 + 12]);
    }
  }
  std::array<unsigned char, 64> block;
  char* out = reinterpret_cast<char*>(block.data());
  for (std::size_t i = 0; i < x.size(); ++i) out = put(out, x[i] + start[i]);
  return block;
}

Poly1305 tag_of_frame(const FrameKey& key, std::uint64_t sequence) {
  const auto block =
      chacha20_block(key, 0, {0, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32U)});
  FrameKey once;
  std::copy_n(block.begin(), once.size(), once.begin());
  return Poly1305{once};
}

bool is_same(const FrameTag& a, const FrameTag& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace hocket::transport
