// State of one client connection: its stream, open files, views, and the frame that is being received. Only the
// server's loop uses it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "layout/view.hpp"
#include "server/engine.hpp"
#include "transport/greeting.hpp"
#include "transport/stream.hpp"

namespace hocket::server {

// One opening of a file or of a data set's version by a client.
struct ClientHandle {
  FilePtr file;
  bool reads = false;
  bool writes = false;
  bool write_behind = false;
  OpeningPtr opening;
  // For a data set: number of the join request that opened it, or number of the part. `keeps`: it is the home's lease
  // of the part.
  std::optional<std::uint64_t> join{};
  std::optional<std::uint64_t> part{};
  bool keeps = false;
  struct HandleView {
    std::optional<layout::FileView> view;  // nothing: there was no memory for it
    Reservation memory;                    // that it takes of the server's
  };
  // File views by the client's numbers; requests refer to them instead of sending offsets.
  std::map<std::uint32_t, HandleView> views{};
};

// One client, from the accepted connection until `HocketServer::bury`.
struct ClientSession {
  ClientSession(SessionId its_number, Fd socket, transport::Credentials credentials, Time now)
      : number(its_number),
        stream(std::move(socket)),
        greeting(std::in_place, stream, std::move(credentials)),
        came(now),
        moved(now) {}

  SessionId number;
  std::int64_t process = 0;                                  // of a client of this node that has connected; 0: others
  std::uint64_t user = 0;                                    // whose it is
  forward::ForwardClients::ClientProcess* client = nullptr;  // once it has authenticated; nullptr: it is not known
  transport::Stream stream;
  std::optional<transport::Greeting> greeting;        // present until the client has authenticated
  Time came;                                          // when the connection was accepted
  Time moved;                                         // when the client last made progress (note_progress)
  std::uint64_t moved_before = 0;                     // bytes of the stream until then
  std::shared_ptr<transport::SharedSegment> segment;  // memory that the client shares; nullptr: none
  std::map<std::uint64_t, ClientHandle> handles;
  std::uint64_t last_handle = 0;
  std::int64_t view_bytes = 0;  // memory of all its views
  Buffer incoming;              // receives the payload of the current write
  // Set while the current frame or payload waits for memory: the event that will be handled again.
  std::optional<transport::Stream::Got> stalled;
  std::size_t unanswered = 0;  // requests
  bool more = false;           // unread data may be left in the stream's buffer or the socket
  std::uint32_t interest = 0;  // events that epoll watches now
  std::string doom;            // reason for the disconnection; "": stays connected
};

}  // namespace hocket::server
