// MUNGE says who runs the other end of a link: a credential that munged makes for a payload says which user has asked
// for it, to whom has the same MUNGE key. libmunge is loaded when needed, so hocket runs without it.
//
// Calls wait for munged, some milliseconds or up to seconds if it hangs. Nothing throws; thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hocket::link {

// A credential says whose process has made it, and carries a payload.
struct Vouched {
  uid_t user = 0;
  std::string payload;
};

class Munge {
 public:
  // `socket`: of munged; "": libmunge's own. Fails if libmunge cannot be loaded.
  static Result<std::shared_ptr<const Munge>> load(std::string socket);

  // Returns a credential for this process's user. It is valid for `valid_s` seconds, by the clocks of both nodes.
  Result<std::string> make(std::string_view payload, int valid_s = 60) const;
  // Opens a credential. Fails if it is expired, was opened before, or was made with another MUNGE key.
  Result<Vouched> open(const std::string& credential) const;

 private:
  struct Library;
  Munge(std::shared_ptr<const Library> library, std::string socket)
      : library_(std::move(library)), socket_(std::move(socket)) {}

  std::shared_ptr<const Library> library_;
  std::string socket_;
};

// The payloads of the two ends of a connection with that binding (TlsStream). Neither passes for the other's, nor for
// that of another connection.
inline std::string payload_of_agent(const std::string& binding) { return "hocket agent " + binding; }
inline std::string payload_of_leader(const std::string& binding) { return "hocket leader " + binding; }

// Opens the credential and returns success if it is for exactly this payload, by this process's user or root.
Status check_credential(const Munge& munge, const std::string& credential, std::string_view payload);

}  // namespace hocket::link
