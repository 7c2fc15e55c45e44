// Authentication at the beginning of a connection. proof.hpp describes what is proved, frame.hpp the frames.
#pragma once

#include <string_view>

#include "base/time.hpp"
#include "transport/address.hpp"
#include "transport/proof.hpp"
#include "transport/stream.hpp"

namespace hocket::transport {

// Runs the client's part on a new connection to the address, and waits until the deadline at most. The kernel has
// identified the peer of a Unix socket already. Over TCP, the stream authenticates all frames that follow.
Status greet(Stream& stream, const Address& address, std::string_view secret, Time deadline);

// The server's part, one step at a time, so that the server's loop never waits for a client.
class Greeting {
 public:
  // Queues the challenge. The credentials are those of the listener.
  Greeting(Stream& stream, Credentials credentials);
  // Checks the client's proof, which is the stream's current frame, and queues the welcome. Over TCP, the stream
  // authenticates all frames that follow. Fails if the proof is wrong.
  Status take(Stream& stream);

 private:
  Credentials credentials_;
  std::string nonce_;  // that the server sent
};

}  // namespace hocket::transport
