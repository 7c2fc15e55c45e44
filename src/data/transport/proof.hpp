// Authentication over TCP: a client may connect if it proves that it knows the run's secret, without sending the
// secret.
//
// The server sends a nonce. The client answers with its own nonce and a keyed hash of both and of the server's
// identity, and the server proves itself in the same way. Nonces belong to one connection, so recorded proofs are
// worthless. The identity is that of the address which the client meant to reach. So a stranger who has bound the port
// of a server that died cannot relay the greeting to another one: there, it names the wrong server. The hash is
// HMAC-SHA-256 (RFC 2104, FIPS 180-4): simple, fast enough for a few uses per connection, and available in every
// language, so that tests and tools can speak the protocol.
//
// Further hashes of the same are the session keys, one for each direction, that authenticate later frames
// (frame_tag.hpp). A stranger on the way can read these frames, since they are not encrypted, and end the connection.
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
// Returns a random number of 16 hexadecimal digits, which identifies one run of a server.
std::string new_instance();

// What both ends of a TCP connection must know alike. Both are empty for a Unix socket.
struct Credentials {
  std::string secret;
  std::string server;  // identity_of() the address that the client means (address.hpp)
};

// What a hash of a connection is for. The letters are part of the protocol.
enum class Purpose : char { client_proof = 'c', server_proof = 's', client_frames = 'C', server_frames = 'S' };
// Returns the hash for one purpose of one connection. Both nonces must have `nonce_bytes` bytes.
Digest connection_hash(Purpose purpose, const Credentials& credentials, std::string_view server_nonce,
                       std::string_view client_nonce);
// Returns such a hash as text, to be sent.
std::string tag_of(Purpose purpose, const Credentials& credentials, std::string_view server_nonce,
                   std::string_view client_nonce);
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
