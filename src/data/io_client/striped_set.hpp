// One version of a data set, as this process has it open at its servers (CLARISSE, section III-C). The first file is
// that of the home, which knows the other servers. Functions return errno values; the files must not be empty.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "event/server_map.hpp"
#include "io_client/waiting.hpp"

namespace hocket::io_client {

// True if an access of these bytes of the data set needs more than the home. Small data sets stay there.
bool needs_parts(layout::Extent file);

// Asks the home where the stripes are, and opens the parts at the other servers: one file each follows the home's.
// `wanted` are the servers over which this process would stripe the version, the home first. A file that cannot be
// opened is lost: the version is lost for this process, and the result is ECONNRESET. Blocks: connects within 2 s to
// each server.
int open_parts(std::vector<ServedFile>& files, const std::vector<event::ServerMap::MappedServer>& wanted,
               std::string_view secret, bool writes, WaitStrategy&& how);

// Closes all parts, then the version at its home, which learns that this process has written bytes up to `end`. If a
// part is not complete, the connection to the home ends without a close, so that it drops what was written. ECANCELED:
// readers will not see the version, or it counts as unread. ECONNRESET: a server was lost.
int close_version(std::span<ServedFile> files, std::int64_t end, WaitStrategy&& how);

}  // namespace hocket::io_client
