#include "transport/greeting.hpp"

#include <poll.h>

namespace hocket::transport {
namespace {

// Waits for the next frame. Fails if it has another type or a payload.
Status next_frame(Stream& stream, Type type, Time deadline) {
  while (true) {
    switch (stream.receive()) {
      case Stream::Got::frame:
        if (stream.header().type == type) return success();
        return Error{"the server does not speak the protocol of hocket-server"};
      case Stream::Got::announced: return Error{"the server does not speak the protocol of hocket-server"};
      case Stream::Got::ended: return Error{"the server ended the connection: " + stream.reason()};
      case Stream::Got::nothing:
        if (!wait_for(stream.descriptor(), POLLIN, deadline)) return Error{"the server did not answer in time"};
    }
  }
}

// Sends everything that is queued. Fails when the deadline has come.
Status send_all(Stream& stream, Time deadline) {
  while (stream.has_unsent()) {
    stream.flush();
    if (stream.ended()) return Error{"the server ended the connection: " + stream.reason()};
    if (stream.has_unsent() && !wait_for(stream.descriptor(), POLLOUT, deadline)) {
      return Error{"the server accepted no data for too long"};
    }
  }
  return success();
}

}  // namespace

Status greet(Stream& stream, const Address& address, std::string_view secret, Time deadline) {
  const bool local = address.local;
  if (const Status came = next_frame(stream, Type::challenge, deadline); !came) return came;
  const std::string server_nonce{stream.meta()};
  // A TCP port may belong to any user. So the server must prove itself, even if it requests no proof of the client.
  if (!local && (secret.empty() || server_nonce.size() != nonce_bytes)) {
    return Error{"the server cannot be trusted without the secret; give this process the servers' secret"};
  }
  if (!local && address.instance.empty()) {
    return Error{"the address " + text_of(address) + " names no instance of a server; use tcp:HOST:PORT#INSTANCE as " +
                 "hocket-server prints it"};
  }
  const Credentials credentials{std::string{local ? "" : secret}, identity_of(address)};
  const std::string nonce = new_nonce();
  // On a Unix socket the tag is no proof, but says which server is meant.
  const bool says_whom = !local || (!credentials.server.empty() && server_nonce.size() == nonce_bytes);
  Header header;
  header.type = Type::prove;
  stream.send(header, says_whom ? nonce + tag_of(Purpose::client_proof, credentials, server_nonce, nonce) : "");
  if (const Status sent = send_all(stream, deadline); !sent) return sent;
  if (const Status came = next_frame(stream, Type::welcome, deadline); !came) {
    return Error{came.error().text +
                 (!says_whom ? ""
                  : local    ? "; another server listens at " + address.host
                             : "; is the secret the servers' own? If it is, another server listens there")};
  }
  if (local) return success();
  if (!same_tag(stream.meta(), tag_of(Purpose::server_proof, credentials, server_nonce, nonce))) {
    return Error{"the server does not know the secret, or is another one than " + credentials.server +
                 "; it is not used"};
  }
  stream.authenticate(connection_hash(Purpose::server_frames, credentials, server_nonce, nonce),
                      connection_hash(Purpose::client_frames, credentials, server_nonce, nonce));
  return success();
}

Greeting::Greeting(Stream& stream, Credentials credentials)
    : credentials_(std::move(credentials)), nonce_(new_nonce()) {
  // Before a client is authenticated, it can make the server allocate no more than this.
  constexpr std::uint32_t most_of_a_stranger = nonce_bytes + tag_bytes;
  stream.limit_meta(most_of_a_stranger);
  Header header;
  header.type = Type::challenge;
  header.flags = credentials_.secret.empty() ? 0 : flag::proof_wanted;
  stream.send(header, nonce_);
}

Status Greeting::take(Stream& stream) {
  if (stream.header().type != Type::prove) return Error{"did not identify itself"};
  const bool local = credentials_.secret.empty();
  std::string nonce;
  std::string tag;
  const std::string_view meta = stream.meta();
  // A client of a Unix socket may not know which server it means, as tools that were given the path do not.
  if (!local || !meta.empty()) {
    if (meta.size() != nonce_bytes + tag_bytes) return Error{"did not prove that it knows the secret"};
    nonce = meta.substr(0, nonce_bytes);
    if (!same_tag(meta.substr(nonce_bytes), tag_of(Purpose::client_proof, credentials_, nonce_, nonce)))
      return Error{local ? "means another server" : "does not know the secret, or means another server"};
  }
  if (!local) tag = tag_of(Purpose::server_proof, credentials_, nonce_, nonce);
  stream.limit_meta(most_meta);
  Header header;
  header.type = Type::welcome;
  stream.send(header, std::move(tag));
  if (!local) {
    stream.authenticate(connection_hash(Purpose::client_frames, credentials_, nonce_, nonce),
                        connection_hash(Purpose::server_frames, credentials_, nonce_, nonce));
  }
  return success();
}

}  // namespace hocket::transport
