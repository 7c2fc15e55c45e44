// The server's loop: clients come, say who they are, send requests; answers go back.
//
// Back-pressure: a client whose data there is no room for, who has too many requests unanswered, or who does not read
// his answers, is not read from; what he sends stays with him and in the kernel. Who breaks the protocol is cut off,
// and nobody else notices. One thread runs it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/exchange.hpp"
#include "server/session.hpp"

namespace hocket::server {

class Server {
 public:
  struct Settings {
    Engine::Settings engine{};
    DataSets::Settings exchange{};
    std::string name{};
    bool write_behind = false;  // for whoever opens a file
    // How long a client may keep others from memory by neither sending the rest of his data nor taking his answers.
    Duration patience = std::chrono::seconds{10};
  };
  using Log = std::function<void(const std::string&)>;

  // `load` must outlive it.
  static Result<std::unique_ptr<Server>> make(const Settings& settings, const std::string& directory, Load& load,
                                              Log log);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes clients from a socket that listens. `secret`: that they must prove to know; none over a Unix socket, where
  // they must be this user's, or root's.
  void listen(Fd socket, std::string secret);

  // Until `stop` is readable: then everything that was taken in is carried out and answered, and it returns.
  void run(int stop);

  const std::string& directory() { return engine_.files().directory(); }

 private:
  struct Listener {
    Fd socket;
    std::string secret;
  };

  Server(const Settings& settings, Files files, Load& load, Log log);

  void watch(int descriptor, std::uint64_t key, std::uint32_t events, bool is_new);
  void watch_listeners(std::uint32_t events);
  int timeout_ms();
  void wait();
  void hang_up(std::uint64_t key);
  void bury_the_gone(Time since);
  void handle(std::uint64_t key, std::uint32_t events);
  void accept_from(Listener& listener);
  bool may_connect(const Fd& socket, const Listener& listener);
  void settle_down();

  // Of a session.
  void take_in(Session& session);
  bool take(Session& session, transport::Stream::Got got);
  bool take_frame(Session& session);
  bool stall(Session& session, transport::Stream::Got got);
  bool must_queue(bool reads) const;
  void retry_stalled();
  void cut_off_the_stuck();
  bool is_paused(const Session& session) const;
  void update_interest(Session& session);
  void doom(Session& session, std::string reason);
  void bury();

  void on_share(Session& session);
  void on_open(Session& session);
  void on_join(Session& session);
  void on_view(Session& session);
  bool on_transfer(Session& session);
  void on_end(Session& session);
  void on_barrier(Session& session);
  void on_state(Session& session);
  int prepare(Session& session, Task& task, bool& has_room);
  void answer(Answer answer);
  void answer_join(const Exchange::Joined& joined);
  void reply(Session& session, std::uint64_t request, int error, std::int64_t bytes = 0, std::uint64_t handle = 0,
             std::string text = {});

  Settings settings_;
  Log log_;
  Engine engine_;
  Exchange exchange_;
  Fd epoll_;
  std::vector<Listener> listeners_;
  std::optional<Time> accept_again_;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::deque<SessionId> stalled_;  // those that wait for memory, in their order
  std::vector<SessionId> doomed_;
  SessionId last_session_ = 0;
  std::size_t strangers_ = 0;  // that have not said who they are
  bool freed_ = false;         // there may be room for the stalled, of which no event will tell
  Time now_;
  bool stopping_ = false;
};

}  // namespace hocket::server
