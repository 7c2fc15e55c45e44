// Who may connect over TCP: whoever proves that he knows the run's secret, without sending it.
//
// The server sends a nonce, the client answers with its own and a keyed hash of both, and the server proves itself the
// same way. Nonces are of one connection, so what was recorded of another proves nothing. The hash is HMAC-SHA-256 (RFC
// 2104, FIPS 180-4): plain, as fast as one connection needs, and at hand in every language, so that tests and tools can
// speak the protocol. What follows is neither encrypted nor signed: the network is trusted as MPI trusts it.
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

// Random bytes of the kernel's.
std::string new_nonce();
std::uint64_t new_number();

enum class Side : std::uint8_t { client, server };
// What the side sends as its proof. Precondition: the nonces have nonce_bytes each.
std::string tag_of(Side side, std::string_view secret, std::string_view server_nonce, std::string_view client_nonce);
// Compares in a time that tells nothing.
bool same_tag(std::string_view a, std::string_view b);

// ---- where the secret is -------------------------------------------------------------------------------------------

// The file in a runtime directory: servers/secret.
std::string secret_path(const std::string& runtime_directory);
// Fails where it is not there, or is another user's or open to others (it must have mode 0600).
Result<std::string> read_secret(const std::string& path);
// That of the runtime directory in which a hocketd has its socket; "" where there is none.
std::string secret_beside(const std::string& socket);
// Reads it, and makes it where there is none; two who do so at once get the same. Fails as read_secret().
Result<std::string> read_or_make_secret(const std::string& path);

}  // namespace hocket::transport
