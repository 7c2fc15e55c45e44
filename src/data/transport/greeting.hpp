// Authentication at the beginning of a connection. proof.hpp describes what is proved, frame.hpp the frames.
#pragma once

#include <string_view>

#include "base/time.hpp"
#include "transport/stream.hpp"

namespace hocket::transport {

// Runs the client's part on a new connection, and waits until the deadline at most. `local` is true for a Unix
// socket, whose peer the kernel has identified already.
Status greet(Stream& stream, bool local, std::string_view secret, Time deadline);

// The server's part, one step at a time, so that the server's loop never waits for a client.
class Greeting {
 public:
  // Queues the challenge. `secret` is that of a TCP listener; empty for a Unix socket.
  Greeting(Stream& stream, std::string secret);
  // Checks the client's proof, which is the stream's current frame, and queues the welcome. Fails if the proof is
  // wrong.
  Status take(Stream& stream);

 private:
  std::string secret_;
  std::string nonce_;  // that the server sent
};

}  // namespace hocket::transport
