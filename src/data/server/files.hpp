// The files that clients have open. A file that several clients open, by whatever paths, is one `ServerFile` here: the
// engine merges and orders the requests of all of them. Used by the server's loop only; I/O threads use the
// descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "event/server_map.hpp"
#include "server/write_back.hpp"
#include "server/write_back_turn.hpp"
#include "transport/file_identity.hpp"
#include "transport/held_table.hpp"

namespace hocket::server {

// The record of one client's opening of a file about writes that were answered before they were in the file. The
// client's handle and its requests share it.
struct FileOpening {
  std::uint64_t session = 0;
  std::uint64_t handle = 0;        // the client's name for the opening
  WriteBackErrors::Mark told = 0;  // errors of the file that the client knows
  std::size_t under_way = 0;       // writes that were answered and not carried out yet
  event::Placement placement = event::one_server;
  WriteBackTurnPtr turn{};  // under which its writes are stored if nobody waits; nullptr: they are stored at once
};
using OpeningPtr = std::shared_ptr<FileOpening>;

// One open file, shared by all its handles.
struct ServerFile {
  std::uint64_t number = 0;          // unique in this server; the scheduler's name for the file
  std::pair<dev_t, ino_t> identity;  // device and inode; unset for a data set
  std::string path;                  // as first opened; for the log
  Fd readable;                       // valid once a client has opened the file to read
  Fd writable;                       // valid once a client has opened it to write
  int handles = 0;                   // openings by clients that are not closed
  // A byte has one server only while all openings, and the server map, have one placement. Only then may writes be
  // answered before they are in the file.
  std::map<event::Placement, int> placements;           // openings by placement
  event::Placement present = event::unknown_placement;  // by the server map
  std::size_t behind = 0;                               // writes that were answered and not carried out yet
  transport::HeldTable::HeldFile* held = nullptr;       // where other processes see them, while there are any
  WriteBackTurnPtr turn;  // of all of these writes; nullptr: there are none, or they are stored at once
  // Tickets of its reads and writes that were received and not carried out yet.
  std::set<std::uint64_t> outstanding;
  WriteBackErrors errors;            // of writes that had been acknowledged already, and of fdatasync
  std::uint64_t last_operation = 0;  // collective operation of the latest request; for the injection
  // State of a data set's version. `lost_write`: one of its writes failed, so it must not be published. `dropped`: it
  // has been forgotten; data written to it are lost.
  bool lost_write = false;
  bool dropped = false;
  // Over how many servers the version is striped, and which of them this one is. It has its own stripes only, at the
  // same offsets.
  std::size_t stripe_index = 0;
  std::size_t stripe_servers = 1;

  bool may_write_behind() const {
    return placements.size() == 1 && placements.begin()->first == present && present != event::unknown_placement;
  }
  // True if all requests up to and including this ticket have been carried out.
  bool settled_before(std::uint64_t ticket) const { return outstanding.empty() || *outstanding.begin() > ticket; }
};
using FilePtr = std::shared_ptr<ServerFile>;

// Opens files below one directory, and finds the ones that are open already.
class Files {
 public:
  // Makes the table for a directory, whose path is resolved to its canonical form. Fails if it is no directory.
  static Result<Files> in(const std::string& directory);

  // Opens a file, or adds a handle to one that is open. `wanted` is the file that the client has open itself. The
  // errors are those of ServerLink::open.
  struct Found {
    FilePtr file;
    int error = 0;
  };
  Found open(std::string_view path, const transport::FileIdentity& wanted, bool reads, bool writes);
  // Adds a file that belongs to no directory and that clients cannot open by path. It lives as long as its pointers.
  // `path` is for the log.
  FilePtr add(std::string path, Fd readable, Fd writable);
  // Counts the placement of an opening, until close() or forget().
  static void count(const FilePtr& file, const FileOpening& opening) { ++file->placements[opening.placement]; }
  static void forget(const FilePtr& file, const FileOpening& opening);
  // Gives one handle back.
  void close(const FilePtr& file, const FileOpening& opening);
  // Closes a file that has neither handles nor requests.
  void forget_if_unused(const FilePtr& file);

  const std::string& directory() const { return directory_; }
  // Returns all open files but those of add().
  std::vector<FilePtr> all() const;
  std::size_t count() const { return files_.size(); }

 private:
  Files(std::string directory, Fd root) : directory_(std::move(directory)), root_(std::move(root)) {}

  std::string directory_;
  Fd root_;
  std::map<std::pair<dev_t, ino_t>, FilePtr> files_;
  std::uint64_t last_ = 0;  // number of the latest file
};

}  // namespace hocket::server
