#include "daemon/users.hpp"

#include <grp.h>

namespace hocket::daemon {

Result<bus::Users> users_of(const config::DaemonSettings& settings) {
  bus::Users users;
  users.all = settings.users == "all";
  if (settings.operators.empty()) return users;
  const group* const found = getgrnam(settings.operators.c_str());
  if (found == nullptr) return Error{"there is no group '" + settings.operators + "' (daemon.operators)"};
  users.operators = found->gr_gid;
  return users;
}

}  // namespace hocket::daemon
