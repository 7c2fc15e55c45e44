// A client's connection, as the server's loop sees it.
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

struct Handle {
  FilePtr file;
  bool reads = false;
  bool writes = false;
  bool write_behind = false;
  std::uint64_t since = 0;            // ticket at which it was opened
  std::optional<std::uint64_t> join;  // of a data set: the request by which it was opened
  struct View {
    layout::View view;
    std::size_t bytes = 0;  // of its serialised form
  };
  std::map<std::uint32_t, View> views;
};

struct Session {
  Session(SessionId its_number, Fd socket, std::string secret, Time now)
      : number(its_number),
        stream(std::move(socket)),
        greeting(std::in_place, stream, std::move(secret)),
        came(now),
        moved(now) {}

  SessionId number;
  transport::Stream stream;
  std::optional<transport::Greeting> greeting;  // until the client has said who it is
  Time came;
  Time moved;  // when it sent or took something last
  std::shared_ptr<transport::Segment> segment;
  std::map<std::uint64_t, Handle> handles;
  std::uint64_t last_handle = 0;
  std::size_t view_bytes = 0;  // serialised, of all its views
  Buffer incoming;             // the payload that is being taken in
  // A frame that is there but cannot be taken before there is memory.
  std::optional<transport::Stream::Got> stalled;
  std::size_t unanswered = 0;  // requests
  bool more = false;           // it may have said more than was taken in
  std::uint32_t interest = 0;  // of epoll, now
  std::string doom;            // why it ends; "": it does not
};

}  // namespace hocket::server
