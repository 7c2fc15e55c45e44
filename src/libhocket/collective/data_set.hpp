// Opens a data set: a named object that applications exchange through the memory of I/O servers (CLARISSE, section
// III-A: the virtual name space). The functions are called by the ranks of a file in MPI_File_open; file.hpp then
// performs the accesses.
#pragma once

#include <string>
#include <vector>

#include "collective/servers.hpp"

namespace hocket::runtime::collective {

// File that MPI_File_open opens in place of a data set, so that there is a file handle. Nothing reads or writes it.
inline constexpr const char* backing = "/dev/null";

// Request of the program, as stated with MPI_File_open.
struct Wish {
  std::string name;  // without the prefix hocket:/
  bool writes = false;
  std::int64_t readers = 1;  // applications that read the version, as in transport::DataSet
  Duration patience{};       // time limit for the data set to become available
};
// Reads mode and hints (`hocket_readers`, `hocket_wait`) of MPI_File_open.
Wish wish_of(std::string name, int mode, MPI_Info info);

// Result of join(): an open version, or an error.
struct JoinedDataSet {
  // Errno value, the same in all ranks, as ServerLink::join states. Also ENXIO: no server is running; ECONNRESET: it
  // was lost.
  int error = 0;
  std::string where;  // the server that was asked last, for messages to people
  std::optional<ServedFile> home;
  // Over which a version to be written is striped if it has more than one stripe; the home is the first. The same in
  // all ranks.
  std::vector<event::ServerMap::MappedServer> servers;
  // Number that the ranks have in common, for their collective operations at the server.
  std::uint64_t group = 0;
};
// Opens the next version at the data set's home, the server that rank 0's map names. Rank 0 looks at the map again
// while the version does not come. The smallest number of readers and the smallest time limit of all ranks count.
// Collective. Takes up to the time limit and some seconds, and half a minute more if a server is silent.
JoinedDataSet join(const Team& team, Wish wish);
// Returns one line for people that says why join() failed.
std::string reason_of(const JoinedDataSet& joined, const Wish& wish);

}  // namespace hocket::runtime::collective
