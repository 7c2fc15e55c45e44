// A file or data set as I/O servers have it open for this process, and the accesses through them.
//
// After a function has returned or thrown (only for lack of memory), nothing uses the caller's memory any more: a
// server that could still answer is given up. One thread at a time. Errors are errno values; 0 means success.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/access.hpp"
#include "event/server_map.hpp"
#include "transport/server_link.hpp"

namespace hocket::api {

// One server's connection and handle.
class Served {
 public:
  // Connects to a server within 2 s. Error: the reason, for people.
  static Result<Served> reach(const event::ServerMap::Server& server);

  const event::ServerMap::Server& server() const { return server_; }
  // Returns the connection. Precondition: not lost().
  transport::ServerLink& link() { return *link_; }  // precondition: not lost
  // True if the connection has ended or was given up; why() says the reason, for people.
  bool lost() const { return link_ == nullptr; }
  const std::string& why() const { return why_; }
  void lose(std::string why);

  std::size_t pending() const { return lost() ? 0 : link_->pending(); }
  // Sends and receives without blocking. Returns true if something moved.
  bool poll();
  // Sends the view, unless the server has it already.
  void show(const layout::View& view);

  transport::ServerLink::Handle handle = 0;  // of what the server has open
  bool behind = false;                       // writes behind: an answered write may not be in the file

 private:
  Served(event::ServerMap::Server server, std::unique_ptr<transport::ServerLink> link)
      : server_(std::move(server)), link_(std::move(link)) {}

  event::ServerMap::Server server_;
  std::unique_ptr<transport::ServerLink> link_;
  std::string view_;  // serialised; the one that the server has
  std::string why_;
};

// Blocks until all requests have been answered. A server is lost if its connection ends, or if it owes an answer and
// nothing has come from any server for 30 s.
void settle(std::vector<Served>& served);

// Result of an access.
struct Passed {
  bool lost = false;     // servers were lost: the access must be repeated
  int error = 0;         // first errno; 0: none
  std::int64_t got = 0;  // bytes read, from the first on
  // True if a read found data behind a missing part: the file has grown meanwhile, or a server has written behind.
  bool gap = false;
};
// Performs the access through all servers; `participants` processes take part if it is collective. Precondition: there
// is at least one server, and none is lost.
Passed pass(std::vector<Served>& served, const Access& access, int participants);

}  // namespace hocket::api
