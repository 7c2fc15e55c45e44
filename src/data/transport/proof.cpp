#include "transport/proof.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/server_files.hpp"

namespace hocket::transport {
namespace {

// ---- SHA-256, named as in FIPS 180-4, section 6.2 ------------------------------------------------------------------

constexpr std::size_t block_bytes = 64;
using HashState = std::array<std::uint32_t, 8>;

constexpr std::array<std::uint32_t, 64> k = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Updates the hash state with one block of 64 bytes.
void take_block(HashState& h, const unsigned char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    for (std::size_t i = 0; i < 4; ++i) w[t] = w[t] << 8U | block[4 * t + i];
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3U;
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10U;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  HashState v = h;
  auto& [a, b, c, d, e, f, g, last] = v;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t t1 =
        last + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[t] + w[t];
    const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    last = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  for (std::size_t i = 0; i < h.size(); ++i) h[i] += v[i];
}

// Returns the text followed by one bit 1, zeros, and the length in bits (big-endian): a whole number of blocks.
std::string padded(std::string_view text) {
  std::string bytes{text};
  bytes.push_back(static_cast<char>(0x80));
  while (bytes.size() % block_bytes != block_bytes - 8) bytes.push_back('\0');
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(text.size());
  for (unsigned shift = 64; shift > 0;) bytes.push_back(static_cast<char>(bits >> (shift -= 8) & 0xffU));
  return bytes;
}

std::string_view text_of(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

// Loops because getrandom may return fewer bytes than requested, or be interrupted by a signal.
std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t got = 0; got < count;) {
    const ssize_t n = getrandom(bytes.data() + got, count - got, 0);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return bytes;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(digits[static_cast<unsigned char>(c) >> 4U]);
    text.push_back(digits[static_cast<unsigned char>(c) & 15U]);
  }
  return text;
}

}  // namespace

Digest sha256(std::string_view text) {
  HashState h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::string bytes = padded(text);
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    take_block(h, reinterpret_cast<const unsigned char*>(bytes.data()) + at);
  }
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<unsigned char>(h[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view text) {
  std::string own{key};
  if (own.size() > block_bytes) own = text_of(sha256(key));
  own.resize(block_bytes, '\0');
  std::string inner = own;
  std::string outer = own;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  const Digest inside = sha256(inner.append(text));
  return sha256(outer.append(text_of(inside)));
}

std::string new_nonce() { return random_bytes(nonce_bytes); }

std::uint64_t new_number() {
  std::uint64_t number = 0;
  std::memcpy(&number, random_bytes(sizeof number).data(), sizeof number);
  return number;
}

std::string new_instance() { return hexadecimal(random_bytes(8)); }

// The purpose is part of the hash, so that a tag cannot be sent back as the other side's proof. All parts but the last
// have fixed lengths, so the text of one purpose and connection is that of no other.
Digest connection_hash(Purpose purpose, const Credentials& credentials, std::string_view server_nonce,
                       std::string_view client_nonce) {
  std::string text = "hocket tcp 2 ";
  text.push_back(static_cast<char>(purpose));
  text.append(server_nonce).append(client_nonce).append(credentials.server);
  return hmac_sha256(credentials.secret, text);
}

std::string tag_of(Purpose purpose, const Credentials& credentials, std::string_view server_nonce,
                   std::string_view client_nonce) {
  return std::string{text_of(connection_hash(purpose, credentials, server_nonce, client_nonce))};
}

bool same_tag(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string secret_path(const std::string& runtime_directory) { return server_files::secret(runtime_directory); }

Result<std::string> read_secret(const std::string& path) {
  const Fd file{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!file) {
    return Error{"cannot read the secret of the I/O servers in " + path + ": " + error_text(errno) +
                 "; hocket-server makes it when it starts"};
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_trusted(status.st_uid) ||
      (status.st_mode & 077U) != 0) {
    return Error{"the secret of the I/O servers in " + path +
                 " is another user's or open to others; remove it, and start the servers again"};
  }
  std::array<char, 4096> text{};
  const ssize_t n = read(file.get(), text.data(), text.size());
  constexpr ssize_t least = 32;
  if (n < least)
    return Error{"the secret of the I/O servers in " + path + " is too short; remove it, and start them again"};
  return std::string{text.data(), static_cast<std::size_t>(n)};
}

std::string secret_beside(const std::string& socket) {
  const std::size_t end = socket.rfind('/');
  if (end == std::string::npos) return {};
  const Result<std::string> read = read_secret(secret_path(socket.substr(0, end)));
  return read ? read.value() : std::string{};
}

Result<std::string> read_or_make_secret(const std::string& path) {
  // The secret is written to a file with a unique name, which is then linked to `path`. So no process reads half of
  // it, and a process that comes second uses the first one's secret.
  const std::string fresh = path + "." + hexadecimal(random_bytes(8));
  {
    const Fd file{open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    const std::string secret = hexadecimal(random_bytes(32));
    if (!file || write(file.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
      const int error = errno;
      unlink(fresh.c_str());
      return Error{"cannot write the secret of the I/O servers to " + fresh + ": " + error_text(error)};
    }
  }
  (void)!link(fresh.c_str(), path.c_str());  // read_secret() reports a failure
  unlink(fresh.c_str());
  return read_secret(path);
}

}  // namespace hocket::transport
