#include "io_client/joining.hpp"

#include <algorithm>
#include <cerrno>

namespace hocket::io_client {

Duration JoinAttempts::slice(Time now) const {
  return std::clamp<Duration>(deadline_ - now, std::chrono::milliseconds{1}, join_slice);
}

JoinStep JoinAttempts::after(int error, Time now) {
  if (error == 0) return JoinStep::joined;
  const bool absent = error == ENXIO || error == ECONNRESET || error == ESHUTDOWN;
  // ECANCELED: another process of the group has gone, and may come again; or the server is ending, and will close its
  // connections. Other errors stay, however often the attempt is repeated.
  if (!absent && error != ETIMEDOUT && error != ECANCELED) return JoinStep::failed;
  absent_until_ = absent ? std::min(absent_until_, now + most_absence) : Time::max();
  if (now >= std::min(deadline_, absent_until_)) return absent ? JoinStep::no_server : JoinStep::late;
  return error == ETIMEDOUT ? JoinStep::again : JoinStep::pause;
}

}  // namespace hocket::io_client
