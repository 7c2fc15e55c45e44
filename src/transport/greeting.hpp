// The beginning of a connection: who is there (proof.hpp).
#pragma once

#include <string_view>

#include "base/time.hpp"
#include "transport/stream.hpp"

namespace hocket::transport {

// The client's part, on a fresh connection; waits until the deadline. `local`: over a Unix socket, where the kernel has
// told who is there.
Status greet(Stream& stream, bool local, std::string_view secret, Time deadline);

// The server's part, a step at a time.
class Greeting {
 public:
  // Sends the challenge. `secret`: of TCP; none over a Unix socket.
  Greeting(Stream& stream, std::string secret);
  // Takes the client's proof, the stream's frame, and sends the welcome. Fails where it proves nothing.
  Status take(Stream& stream);

 private:
  std::string secret_;
  std::string nonce_;
};

}  // namespace hocket::transport
