// TLS 1.3 over a TCP connection, with a pre-shared key in place of certificates: who has the key is a node of the
// cluster. Session keys are agreed anew for each connection, so a recorded one stays secret if the key becomes known.
//
// MUNGE takes the place of the key. The certificate says nothing then: anybody can connect. Both ends then send
// credentials for the connection's `binding`, which no other connection has (munge.hpp).
//
// Sockets do not block. The process must ignore SIGPIPE. Nothing throws; not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "link/munge.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace hocket::link {

// One end of a connection. An error of any function means that the connection has ended.
class TlsStream {
 public:
  // Continues the greeting. Returns true once it is complete; before that, nothing can be read or written.
  Result<bool> greet();
  // Reads up to `size` bytes. Returns their number; 0: nothing has come.
  Result<std::size_t> read(char* data, std::size_t size);
  // Writes up to `size` bytes, at least 1. Returns their number; 0: there is no room now.
  Result<std::size_t> write(const char* data, std::size_t size);
  // Bytes were taken from the socket that `read` has not returned. They may be a part of what it can return only later.
  bool has_unread() const;
  // Returns a text that both ends of this connection have, and nobody else; "" before the greeting is complete.
  std::string binding() const;
  // The last call waits until the socket is writable.
  bool wants_room() const { return wants_room_; }
  // The greeting has failed although the other end was there: it has another key, or none.
  bool is_rejected() const { return is_rejected_; }
  int fd() const { return socket_.get(); }

 private:
  friend class Tls;
  struct Free {
    void operator()(ssl_st* one) const;
  };
  TlsStream(Fd socket, ssl_st* stream, bool has_key) : socket_(std::move(socket)), stream_(stream), has_key_(has_key) {}
  // Returns 0 if the call that returned `status` is to be repeated later.
  Result<std::size_t> what_failed(int status);

  Fd socket_;
  std::unique_ptr<ssl_st, Free> stream_;
  bool has_key_;
  bool wants_room_ = false;
  bool greeted_ = false;
  bool is_rejected_ = false;
};

// A Tls is what all connections of a process have in common. It must outlive them.
class Tls {
 public:
  static Result<std::unique_ptr<Tls>> with_key(std::string key);
  static Result<std::unique_ptr<Tls>> with_munge(std::shared_ptr<const Munge> munge);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Not nullptr: both ends must vouch for themselves by it.
  const std::shared_ptr<const Munge>& munge() const { return munge_; }

  // Takes over a connected, non-blocking socket: as the end that has connected, or as the other one.
  Result<TlsStream> connected(Fd socket) const;
  Result<TlsStream> accepted(Fd socket) const;

 private:
  Tls(std::string key, std::shared_ptr<const Munge> munge) : key_(std::move(key)), munge_(std::move(munge)) {}
  static Result<std::unique_ptr<Tls>> make(std::unique_ptr<Tls> tls);
  Result<TlsStream> make(Fd socket, bool connects) const;

  std::string key_;
  std::shared_ptr<const Munge> munge_;
  ssl_ctx_st* context_ = nullptr;
};

}  // namespace hocket::link
