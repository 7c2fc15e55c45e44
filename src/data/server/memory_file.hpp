// Anonymous files in memory, in which this server keeps its bytes of data sets.
#pragma once

#include <cstdint>
#include <utility>

#include "server/files.hpp"

namespace hocket::server {

// Makes an anonymous file, with a descriptor for each direction. Both are invalid if the system refuses.
std::pair<Fd, Fd> make_memory();
// Makes the file at least that long: bytes that nobody wrote are zeros, and take no memory.
void extend_memory(const ServerFile& file, std::int64_t length);
// Frees the memory at once, even if late clients have the file open or requests are under way. A seal prevents these
// from making the file longer again.
void free_memory(ServerFile& file);

}  // namespace hocket::server
