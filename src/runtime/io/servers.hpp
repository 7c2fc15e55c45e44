// The I/O servers of a file (CLARISSE, section IV-A): which, by a server map that all ranks of the file use from the
// same access on, and accesses through them.
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

// The file as one server has it open for this rank.
class Served {
 public:
  // Connects, for a bounded time; `lost()` where there is no server. Then one of the two is asked for.
  explicit Served(const event::ServerMap::Server& server);
  void open(const std::string& path, int mode);
  void join(const transport::DataSet& what);

  const event::ServerMap::Server& server() const { return server_; }
  // Nothing more comes of it.
  bool lost() const { return lost_; }
  void lose() { lost_ = true; }
  // It answers writes before they are in the file.
  bool writes_behind() const { return link_ && link_->writes_behind(opened_->handle); }
  // Whether it cannot be used; known when nothing is pending.
  bool failed() const { return lost_ || opened_->error != 0; }
  std::size_t pending() const { return lost_ ? 0 : link_->pending(); }
  // True: something moved.
  bool poll();
  transport::ServerLink& link() { return *link_; }
  transport::ServerLink::Handle handle() const { return opened_->handle; }
  // Of what was asked for last: open, join or close. Known when nothing is pending.
  int error() const { return opened_->error; }
  // Of a data set: its length where it is read.
  std::int64_t bytes() const { return opened_->bytes; }
  // Tells it the view, if it has another.
  void show(const std::string& serialised);
  void close();

 private:
  struct Opened {
    int error = 0;
    transport::ServerLink::Handle handle = 0;
    std::int64_t bytes = 0;
  };

  event::ServerMap::Server server_;
  std::unique_ptr<transport::ServerLink> link_;
  std::shared_ptr<Opened> opened_ = std::make_shared<Opened>();
  std::string view_;
  bool lost_ = false;
};

// Until nothing is pending, or nothing comes any more from those from whom something is due, who are lost then. Others'
// messages go on meanwhile: they may be on their way here through a receive from us. `comm` may be none.
void await_answers(std::span<Served> served, MPI_Comm comm);

class Servers {
 public:
  Servers() = default;
  ~Servers() { close(served_); }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  bool used() const { return !served_.empty(); }
  int count() const { return static_cast<int>(served_.size()); }
  // Of the map in use; 0: none is.
  std::int64_t epoch() const { return map_ ? map_->epoch : 0; }

  // In rank 0: bytes of the text of a map that has come since the last; -1: none has.
  std::int64_t news();
  // Whether a map is in use, under another limit than this.
  bool is_limited_otherwise(std::int64_t most) const { return map_ && most != most_; }

  // Uses rank 0's map from here on: opens the file at the servers of its directory, at most `most` of them. Those that
  // not all ranks can use are left out. `map_bytes`: rank 0's news(), in all ranks; -1: the same map as before.
  // Collective.
  void adopt(Team& team, const std::string& path, int mode, std::int64_t map_bytes, std::int64_t most);

  // Does the access through all servers; `serialised`: the view. Collective. The error of all ranks, or 0; nothing
  // where servers were lost on the way: they are left out from here on, and nothing can be said of the access.
  // `brake`: of the ranks with data, where the access may be stopped between two rounds; else nullptr.
  std::optional<int> access(Team& team, const Local& local, const Grid& grid, const std::string& serialised,
                            Brake* brake);

  // Of a data set: its server, which no map changes any more; `operation`: a number that those who opened it together
  // have in common.
  void use(Served home, std::uint64_t operation) {
    served_.push_back(std::move(home));
    operation_ = operation;
  }
  // Ends the connection without a word: the server knows by that that something went wrong.
  void drop() { served_.clear(); }
  // As `access`, of this rank alone, in requests of `window` bytes; an error, EIO where the server was lost.
  int access_own(const Local& local, std::int64_t window, const std::string& serialised);
  // Local: what was written is for all to read, or is not (errno).
  int leave();

  // What the servers hold is on the storage, or is not (errno). Local.
  int sync(const Team& team);

 private:
  void close(std::vector<Served>& served);
  bool receive(const Team& team, std::int64_t map_bytes);
  void reach(const std::string& path, int mode);
  // Leaves out those that any rank cannot use; one of the errors. False: all can be used.
  bool leave_out(Team& team, int& error);

  std::shared_ptr<const event::ServerMap> offered_, seen_;  // in rank 0: by news(); and that in use
  std::optional<event::ServerMap> map_;                     // in use
  std::int64_t most_ = 0;
  std::vector<Served> served_;
  std::uint64_t operation_ = 0;
  bool written_ = false;      // since the last sync
  bool behind_lost_ = false;  // a server was lost that may have held what it had answered
};

}  // namespace hocket::runtime::io
