// Many members in one process, which put load on a hocketd: as the agents of other nodes would pass them on, or each
// with a Unix socket of its own. Each member uses a target of its own, so no request waits for another one.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/time.hpp"
#include "link/link.hpp"

namespace bench {

class Load {
 public:
  virtual ~Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Sends HELLO for all members, and waits until each has received WELCOME.
  void join();
  // Each member asks again as soon as it is granted. `saturate` begins with that, and returns after `time`; `grants` is
  // the number so far.
  void saturate(hocket::Duration time);
  std::int64_t grants() const { return grants_; }
  // Members ask in turn, `per_s` of them a second. Returns the microseconds from each START_IO to its GRANT_IO.
  std::vector<double> pace(double per_s, hocket::Duration time);
  // Nobody asks for anything.
  void rest(hocket::Duration time);

 protected:
  explicit Load(std::size_t members) : members_(members) {}
  // Sends bytes of a member's socket, not later than at the next `wait`.
  virtual void say(std::size_t member, std::string_view bytes) = 0;
  // Waits for answers, for `most` at most, and gives them to `hear`.
  virtual void wait(hocket::Duration most) = 0;
  void hear(std::size_t member, std::string_view bytes);

  // Waits for descriptors; `ready` has as many as returned.
  int wait_for_ready(hocket::Duration most);
  void watch(int fd, std::uint64_t key);
  std::array<epoll_event, 64> ready{};

 private:
  struct Member {
    std::uint64_t request = 0;
    hocket::Time asked{};
    bool waits = false;
  };
  void take_grant(std::size_t number);
  // Appends START_IO, and counts the member as waiting.
  void start(std::size_t number, std::string& out);

  std::vector<Member> members_;
  std::size_t welcomed_ = 0;
  std::int64_t grants_ = 0;
  bool saturates_ = false;
  std::vector<double> waits_us_;
  std::string out_;
  hocket::Fd epoll_{epoll_create1(EPOLL_CLOEXEC)};
};

// The agents of `agents` nodes, with `each` members on each of them, linked to the leader at HOST:PORT.
class AgentsLoad final : public Load {
 public:
  AgentsLoad(const std::string& leader, const std::string& key, std::size_t agents, std::size_t each);

 private:
  struct Agent {
    hocket::link::Link link;
    bool has_unsent = false;
    bool has_opened = false;
  };
  void say(std::size_t member, std::string_view bytes) override;
  void wait(hocket::Duration most) override;
  void link_one(const std::string& leader, std::size_t number);
  void serve(std::size_t number, hocket::Time now);
  hocket::Status handle(std::size_t number, const hocket::link::LinkMessage& message);
  void flush(std::size_t number);
  void keep_alive(hocket::Time now);

  std::unique_ptr<hocket::link::Tls> tls_;
  std::size_t each_;
  std::deque<Agent> agents_;
  std::size_t linked_ = 0;
  std::vector<std::size_t> unsent_;
  hocket::Time look_at_beats_{};
};

// Members of the daemon's own node.
class SocketsLoad final : public Load {
 public:
  SocketsLoad(const std::string& socket, std::size_t members);

 private:
  void say(std::size_t member, std::string_view bytes) override;
  void wait(hocket::Duration most) override;

  std::vector<hocket::Fd> sockets_;
};

}  // namespace bench
