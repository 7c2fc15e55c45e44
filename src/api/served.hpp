// A file or data set as I/O servers have it open for this process, and accesses through them.
//
// Nothing of a caller's memory is looked at any more when a function has returned or thrown (which is for memory
// alone): a server that may still answer is lost then. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/access.hpp"
#include "event/server_map.hpp"
#include "transport/server_link.hpp"

namespace hocket::api {

class Served {
 public:
  // Connects, for 2 s at most.
  static Result<Served> reach(const event::ServerMap::Server& server);

  const event::ServerMap::Server& server() const { return server_; }
  transport::ServerLink& link() { return *link_; }  // precondition: not lost
  // Nothing more comes of it; why, for people.
  bool lost() const { return link_ == nullptr; }
  const std::string& why() const { return why_; }
  void lose(std::string why);

  std::size_t pending() const { return lost() ? 0 : link_->pending(); }
  // True: something moved.
  bool poll();
  // Tells it the view, if it has another.
  void show(const layout::View& view);

  transport::ServerLink::Handle handle = 0;  // of what it has open
  bool behind = false;                       // it may have answered what is not in the file

 private:
  Served(event::ServerMap::Server server, std::unique_ptr<transport::ServerLink> link)
      : server_(std::move(server)), link_(std::move(link)) {}

  event::ServerMap::Server server_;
  std::unique_ptr<transport::ServerLink> link_;
  std::string view_;
  std::string why_;
};

// Waits until all that was asked for has been answered. A server is lost when its connection ends, or when nothing has
// come for 30 s and it has something to say.
void settle(std::vector<Served>& served);

struct Passed {
  bool lost = false;     // servers were: nothing can be said of the access
  int error = 0;         // of errno: the first
  std::int64_t got = 0;  // bytes, of a read: from the first on
  // Of a read: there was more behind these. The file has grown meanwhile, or a server has written behind.
  bool gap = false;
};
// Does the access through all of them. Where it is collective, so many take part. Precondition: there are some, and
// none is lost.
Passed pass(std::vector<Served>& served, const Access& access, int participants);

}  // namespace hocket::api
