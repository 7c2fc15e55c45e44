// The I/O servers of a file (CLARISSE, section IV-A): which servers it uses, by a server map that all ranks of the
// file adopt at the same access, and the accesses through them. Also the servers of a data set. Used by the thread
// that performs an access of the file, one at a time; errors are errno values.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/exchange.hpp"
#include "event/server_map.hpp"
#include "io_client/served_file.hpp"
#include "io_client/striped_set.hpp"
#include "io_client/transfer.hpp"

namespace hocket::runtime::collective {

using io_client::ServedFile;

// The servers that a file uses now. The functions marked collective must be called by all ranks of the file alike.
class FileServers {
 public:
  FileServers() = default;
  ~FileServers() { close(files_); }
  FileServers(const FileServers&) = delete;
  FileServers& operator=(const FileServers&) = delete;

  // True if accesses go through servers.
  bool used() const { return !files_.empty(); }
  // True if some server in use answers writes before they are in the file. The same in all ranks.
  bool writes_behind() const { return behind_ && used(); }
  // True if servers may hold data of a collective write that the file system does not have. Any thread may ask.
  bool holds() const { return holds_; }
  // True if servers have not said yet that they have stored all that this rank wrote.
  bool holds_own_writes();
  int count() const { return static_cast<int>(files_.size()); }
  // True if the server whose name has this hash is in use (fnv1a).
  bool uses(std::uint64_t server) const { return io_client::is_among(files_, server); }
  // True if a server of the file was lost that may still write what this rank sent. Then no rank may access the file:
  // older data could overwrite newer ones. The caller agrees on it.
  bool must_wait();
  // True if some rank must wait. The ranks agree on it when an access begins (`block`), and when servers are left out.
  void block(bool waits) { blocked_ = waits; }
  bool is_blocked() const { return blocked_; }
  // Returns the epoch of the map in use; 0 if none is.
  std::int64_t epoch() const { return map_ ? map_->epoch : 0; }

  // Returns the length in bytes of the text of a map that has come since the last adopt(); -1 if none has. In rank 0
  // only.
  std::int64_t news();
  // Returns what a policy sets of the collective I/O, by the map of the last news(). In rank 0 only.
  const event::Tuning& tuning() const { return offered_->tuning; }
  // True if a map is in use with another limit on the number of servers than `most`.
  bool is_limited_otherwise(std::int64_t most) const { return map_ && most != most_; }

  // Adopts rank 0's map: opens the file at the servers whose directory holds it, at most `most` of them; if one of them
  // writes behind, at all of them unless `most` is 0. Servers that some rank cannot use, or at which the path names
  // another file, are left out in all ranks. If bytes get other servers, what the servers hold is stored first.
  // `map_bytes` is rank 0's news(), the same in all ranks; -1 keeps the map. Collective.
  // `applicant` says in rank 0 for whom servers that write behind ask for turns (transport::OpenMode).
  void adopt(Team& team, const std::string& path, int mode, std::int64_t map_bytes, std::int64_t most,
             const std::string& applicant);

  // Performs the access through all servers, in windows of the file of at most `window` bytes; `how` has the view and
  // the method. Collective. Returns one errno of all ranks, or 0. No value if servers were lost on the way: they are
  // left out from then on, and the access must be repeated; EIO if one of them may still write. `brake` is given if the
  // access may be suspended between two rounds; its aggregators are the ranks with data.
  std::optional<int> access(Team& team, const Local& local, std::int64_t window, io_client::Terms how, Brake* brake);
  // Waits until the file system has what the servers hold of the file, of all ranks. Losses are kept for sync(). Local.
  void store();

  // A version of a data set, whose servers no map changes.
  struct OpenedVersion {
    ServedFile home;
    std::vector<event::ServerMap::MappedServer> servers;  // over which the version is striped if this rank decides it
    bool writes = false;
    std::uint64_t operation = 0;  // number that the ranks which opened it together have in common
  };
  void use(OpenedVersion version);
  // Opens the parts of the version at other servers if an access of these bytes of it needs them. A part that cannot be
  // opened is lost. Local. Returns errno.
  int reach_parts(Extent file, io_client::WaitStrategy&& how);
  // Closes the connections without CLOSE, by which the home knows that the version is incomplete.
  void drop() { files_.clear(); }
  // Performs an independent access of this rank, in requests of at most `window` bytes of the file. Returns errno;
  // EIO if the server was lost.
  int access_own(const Local& local, std::int64_t window, const io_client::Terms& how);
  // Closes the data set at its servers; `end` is the end of what this rank knows to be written. Returns 0 if readers
  // will see what was written, else errno. Local.
  int leave(std::int64_t end);

  // Makes the servers flush the file to the storage. Returns 0, or the errno of data written by this rank that are not
  // there: each loss is returned once. Local; the caller agrees on the error.
  int sync(const Team& team);
  // Closes the file at its servers. Returns what sync() does.
  int finish();
  // True if the ranks must agree on an error of finish(): a server map was adopted. The same in all ranks.
  bool may_have_written() const { return map_.has_value(); }

 private:
  layout::Striping striping();
  void close(std::vector<ServedFile>& files);
  bool receive(const Team& team, std::int64_t map_bytes, const std::string& applicant);
  void note_loss(ServedFile& file);
  void reach();
  // Opens the file at the servers that do not have it open yet, and leaves out those that some rank cannot use. If
  // bytes get other servers, what servers hold is stored first. Collective.
  void place(Team& team);
  // Leaves out, in all ranks, the servers that some rank cannot use. `error` becomes one error of all ranks: EIO if one
  // of them may still write. Returns false if all servers are usable. Collective.
  bool leave_out(Team& team, int& error);

  std::shared_ptr<const event::ServerMap> offered_, seen_;  // rank 0: the map of the last news(), and the map in use
  std::optional<event::ServerMap> map_;                     // in use
  std::int64_t most_ = 0;                                   // limit on the number of servers
  std::vector<ServedFile> files_;                           // in the canonical order; of a data set, the home first
  io_client::FileStriping striping_;
  std::vector<event::ServerMap::MappedServer> wanted_;  // servers of the data set (OpenedVersion)
  bool writes_ = false;                                 // the data set
  bool knows_parts_ = false;                            // files_ has all servers of the version
  bool behind_ = false;
  std::atomic<bool> holds_ = false;
  std::string path_;                 // absolute
  std::string applicant_;            // the same in all ranks
  int mode_ = 0;                     // of MPI_File_open
  std::uint64_t operation_ = 0;      // number of the last collective operation
  int loss_ = 0;                     // errno of written data that are lost, which no sync has returned yet
  bool blocked_ = false;             // some rank must wait, the same in all
  std::vector<ServedFile> parting_;  // lost servers that may still write what this rank sent
};

}  // namespace hocket::runtime::collective
