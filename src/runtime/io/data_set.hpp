// A data set that applications exchange by name through the memory of an I/O server, as a file's ranks open it
// (CLARISSE, section III-A: the virtual name space).
#pragma once

#include <string>

#include "runtime/io/servers.hpp"

namespace hocket::runtime::io {

// What MPI_File_open opens instead of a data set, so that there is a file handle: nothing is read from it or written.
inline constexpr const char* backing = "/dev/null";

struct Wish {
  std::string name;  // without the prefix
  bool writes = false;
  std::int64_t readers = 1;  // of what is written; as transport::DataSet
  Duration patience{};
};
// By the mode and hints of MPI_File_open.
Wish wish_of(std::string name, int mode, MPI_Info info);

struct Joined {
  // Of errno, the same in all ranks: as ServerLink::join; ENXIO: there is no server; ECONNRESET: it was lost.
  int error = 0;
  std::string where;  // was it tried last, for people
  std::optional<Served> home;
  std::uint64_t group = 0;
};
// Opens the next version: at the server that is the data set's home by rank 0's map, which is looked at again while
// nothing comes. Of the ranks' numbers of readers and patiences the smallest. Collective; takes as long as the
// patience, and some seconds; half a minute more where a server is silent.
Joined join(const Team& team, Wish wish);
// Why it failed, in one line for people.
std::string reason_of(const Joined& joined, const Wish& wish);

}  // namespace hocket::runtime::io
