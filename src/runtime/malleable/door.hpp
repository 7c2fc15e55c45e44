// Where processes that are to join wait, asleep, until the application takes them in (strategy join).
//
// MPI_Comm_connect would burn a core until somebody accepts, has no bound, and MPICH loses connections that come while
// it takes one in. So a newcomer waits at a Unix socket of rank 0's, and calls MPI_Comm_connect when it is told to; one
// that is not wanted any more reads the end of the stream. The socket lies in hocketd's runtime directory, which is its
// user's alone.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "bus/local_socket.hpp"

namespace hocket::runtime {

// In rank 0. Not thread-safe.
class Door {
 public:
  // Beside hocketd's socket.
  static Result<Door> open(const std::string& hocketd_socket);
  Door(Door&&) = default;
  Door& operator=(Door&& other) noexcept;
  ~Door();

  const std::string& path() const { return path_; }
  // The next that waits is told to connect, and has answered that it does. Error: none is there (any more).
  Status let_in(Duration limit);

 private:
  Door(std::string path, bus::Fd socket) : path_(std::move(path)), socket_(std::move(socket)) {}

  std::string path_;
  bus::Fd socket_;
  bus::Fd last_;  // open until the next: its end would mean that it is not wanted
};

// In a process that is to join.
class Waiter {
 public:
  static Result<Waiter> at(const std::string& path);
  // Sleeps until it is told to connect. False: it is not wanted any more.
  bool wait();

 private:
  explicit Waiter(bus::Fd socket) : socket_(std::move(socket)) {}
  bus::Fd socket_;
};

}  // namespace hocket::runtime
