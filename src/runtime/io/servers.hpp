// The I/O servers of a file (CLARISSE, section IV-A): which servers it uses, by a server map that all ranks of the
// file adopt at the same access, and the accesses through them. Also the one server of a data set. Used by the thread
// that performs an access of the file, one at a time; errors are errno values.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "event/server_map.hpp"
#include "runtime/io/exchange.hpp"
#include "transport/server_link.hpp"

namespace hocket::runtime::io {

// The file as one server has it open for this rank: connection, handle and view. Requests are asynchronous, and make
// progress only in poll(), or in await_answers(). The connection closes when the object ends.
class Served {
 public:
  // Connects within 2 s; lost() is true if that failed. Afterwards call open() for a file, or join() for a data set.
  explicit Served(const event::ServerMap::Server& server);
  void open(const std::string& path, int mode);
  void join(const transport::DataSet& what);

  const event::ServerMap::Server& server() const { return server_; }
  // True if the connection has failed, or the server was given up: no further answer comes.
  bool lost() const { return lost_; }
  void lose() { lost_ = true; }
  // True if the server answers writes before they are in the file (write-behind).
  bool writes_behind() const { return link_ && link_->writes_behind(opened_->handle); }
  // True if the server cannot be used for this file. Valid when nothing is pending.
  bool failed() const { return lost_ || opened_->error != 0; }
  std::size_t pending() const { return lost_ ? 0 : link_->pending(); }
  // Sends and receives without blocking. Returns true if something moved.
  bool poll();
  transport::ServerLink& link() { return *link_; }
  transport::ServerLink::Handle handle() const { return opened_->handle; }
  // Returns the errno of the last open, join or close. Valid when nothing is pending.
  int error() const { return opened_->error; }
  // Returns the length in bytes of a data set version opened for reading.
  std::int64_t bytes() const { return opened_->bytes; }
  // Sends the view, unless the server has it already.
  void show(const std::string& serialised);
  // Asks the server to close the file; error() holds the result when nothing is pending.
  void close();

 private:
  // Answer to open, join or close. Shared with callbacks, which may run after this object has moved or ended.
  struct Opened {
    int error = 0;
    transport::ServerLink::Handle handle = 0;
    std::int64_t bytes = 0;
  };

  event::ServerMap::Server server_;
  std::unique_ptr<transport::ServerLink> link_;
  std::shared_ptr<Opened> opened_ = std::make_shared<Opened>();
  std::string view_;  // serialised; the one that the server has
  bool lost_ = false;
};

// Blocks until nothing is pending. A server from which an answer is due, but nothing at all comes for 30 s, is lost.
// Lets MPI make progress on `comm`, which may be MPI_COMM_NULL: another rank may reach its part only after a receive
// from this one.
void await_answers(std::span<Served> served, MPI_Comm comm);

// The servers that a file uses now. The functions marked collective must be called by all ranks of the file alike.
class Servers {
 public:
  Servers() = default;
  ~Servers() { close(served_); }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // True if accesses go through servers.
  bool used() const { return !served_.empty(); }
  int count() const { return static_cast<int>(served_.size()); }
  // Returns the epoch of the map in use; 0 if none is.
  std::int64_t epoch() const { return map_ ? map_->epoch : 0; }

  // Returns the length in bytes of the text of a map that has come since the last adopt(); -1 if none has. In rank 0
  // only.
  std::int64_t news();
  // True if a map is in use with another limit on the number of servers than `most`.
  bool is_limited_otherwise(std::int64_t most) const { return map_ && most != most_; }

  // Adopts rank 0's map: opens the file at the servers whose directory holds it, at most `most` of them. Servers that
  // some rank cannot use are left out in all ranks. `map_bytes` is rank 0's news(), the same in all ranks; -1 keeps
  // the map. Collective.
  void adopt(Team& team, const std::string& path, int mode, std::int64_t map_bytes, std::int64_t most);

  // Performs the access through all servers; `serialised` is the view. Collective. Returns one errno of all ranks, or
  // 0. No value if servers were lost on the way: they are left out from then on, and the access must be repeated.
  // `brake` is given if the access may be suspended between two rounds; its aggregators are the ranks with data.
  std::optional<int> access(Team& team, const Local& local, const Grid& grid, const std::string& serialised,
                            Brake* brake);

  // Uses the server of a data set, which no map changes. `operation` is a number that the ranks which opened it
  // together have in common.
  void use(Served home, std::uint64_t operation) {
    served_.push_back(std::move(home));
    operation_ = operation;
  }
  // Closes the connection without CLOSE, by which the server knows that the version is incomplete.
  void drop() { served_.clear(); }
  // Performs an independent access of this rank, in requests of at most `window` bytes of the file. Returns errno;
  // EIO if the server was lost.
  int access_own(const Local& local, std::int64_t window, const std::string& serialised);
  // Closes the data set at its server. Returns 0 if readers will see what was written, else errno. Local.
  int leave();

  // Makes the servers flush the file to the storage. Returns 0 or errno. Local; the caller agrees on the error.
  int sync(const Team& team);

 private:
  void close(std::vector<Served>& served);
  bool receive(const Team& team, std::int64_t map_bytes);
  void reach(const std::string& path, int mode);
  // Leaves out, in all ranks, the servers that some rank cannot use. `error` becomes one error of all ranks. Returns
  // false if all servers are usable. Collective.
  bool leave_out(Team& team, int& error);

  std::shared_ptr<const event::ServerMap> offered_, seen_;  // rank 0: the map of the last news(), and the map in use
  std::optional<event::ServerMap> map_;                     // in use
  std::int64_t most_ = 0;                                   // limit on the number of servers
  std::vector<Served> served_;
  std::uint64_t operation_ = 0;  // number of the last collective operation
  bool written_ = false;         // since the last sync
  bool behind_lost_ = false;     // a server was lost that may have held answered writes
};

}  // namespace hocket::runtime::io
