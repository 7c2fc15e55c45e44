// Authentication over TCP: a client may connect if it proves that it knows the run's secret, without sending the
// secret.
//
// The server sends a nonce. The client answers with its own nonce and a keyed hash of both, and the server proves
// itself in the same way. Nonces belong to one connection, so recorded proofs are worthless. The hash is HMAC-SHA-256
// (RFC 2104, FIPS 180-4): simple, fast enough for one use per connection, and available in every language, so that
// tests and tools can speak the protocol. Later frames are neither encrypted nor signed: the network is trusted as
// MPI trusts it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hocket::transport {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);

inline constexpr std::size_t nonce_bytes = 32;
inline constexpr std::size_t tag_bytes = 32;

// Return random bytes and a random number from the kernel (getrandom).
std::string new_nonce();
std::uint64_t new_number();

enum class Side : std::uint8_t { client, server };
// Returns the proof that the side sends. Both nonces must have `nonce_bytes` bytes.
std::string tag_of(Side side, std::string_view secret, std::string_view server_nonce, std::string_view client_nonce);
// Compares in constant time, so that the time tells nothing about a wrong proof.
bool same_tag(std::string_view a, std::string_view b);

// ---- where the secret is -------------------------------------------------------------------------------------------

// Returns the path of the secret in a runtime directory: servers/secret.
std::string secret_path(const std::string& runtime_directory);
// Reads the secret. Fails if the file is missing or shorter than 32 bytes, belongs to neither this user nor root, or
// has any permission for group or others.
Result<std::string> read_secret(const std::string& path);
// Returns the secret of the runtime directory that contains hocketd's socket; "" if it cannot be read.
std::string secret_beside(const std::string& socket);
// Reads the secret, and creates it first if it does not exist. Processes that do so at once get the same one. Fails
// like read_secret(), or if the directory is not writable.
Result<std::string> read_or_make_secret(const std::string& path);

}  // namespace hocket::transport
