// Waiting room of processes that shall join the application (spawn strategy *join*): they sleep until rank 0 accepts
// them.
//
// MPI_Comm_connect would use a core until the application accepts, has no time limit, and MPICH loses connections that
// arrive while it accepts one. So a new process waits at a Unix socket of rank 0, and calls MPI_Comm_connect when it is
// told to. A process that is no longer wanted reads the end of the stream. The socket lies in hocketd's runtime
// directory, which belongs to its user alone.
#pragma once

#include <string>

#include "base/kept_descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "bus/local_socket.hpp"

namespace hocket::runtime {

// Rank 0's end: the listening socket, which the destructor removes. Not thread-safe.
class Door {
 public:
  // Listens at a socket beside hocketd's.
  static Result<Door> open(const std::string& hocketd_socket);
  Door(Door&&) = default;
  Door& operator=(Door&& other) noexcept;
  ~Door();

  const std::string& path() const { return path_; }
  // Tells the next waiting process to connect, and waits for its answer. Error: no process waits (any more) within
  // `limit`, or it belongs to another user. Blocks for up to twice `limit`.
  Status let_in(Duration limit);

 private:
  Door(std::string path, bus::Fd socket) : path_(std::move(path)), socket_(socket.release()) {}

  std::string path_;
  KeptFd socket_;
  KeptFd last_;  // kept open until the next one: closing it would dismiss the process
};

// A new process's end.
class Waiter {
 public:
  // Connects to the door at `path`, within 5 s.
  static Result<Waiter> at(const std::string& path);
  // Blocks until rank 0 says to connect, and answers. Returns false if the process is no longer wanted.
  bool wait();

 private:
  explicit Waiter(bus::Fd socket) : socket_(std::move(socket)) {}
  bus::Fd socket_;
};

}  // namespace hocket::runtime
