// Which file a descriptor holds, whatever its path is now. A server compares its own file with that of the client,
// because a path may name another file by the time that the server opens it.
#pragma once

#include <cstdint>

namespace hocket::transport {

// The numbers that the kernel gives a file. They stay its own as long as somebody has it open.
struct FileIdentity {
  std::uint64_t device = 0;  // 0: unknown, since another node may number its devices otherwise
  std::uint64_t inode = 0;   // 0: any file
  std::int64_t born_ns = 0;  // time of creation since 1970; 0: the file system does not say

  bool operator==(const FileIdentity&) const = default;
};

// Returns the identity of an open file; one that no file has if the system refuses to say.
FileIdentity identity_of(int descriptor);

// True if a file with the identity `own` is the one that a client asks for. What is unknown of either is not compared.
bool is_wanted(const FileIdentity& own, const FileIdentity& wanted);

}  // namespace hocket::transport
