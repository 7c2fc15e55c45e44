// The server's event loop: it accepts clients, authenticates them, reads their requests and sends the answers.
//
// Flow control: the loop stops reading from a client when there is no memory for its data, when it has too many
// unanswered requests, or when it does not read its answers. What the client sends then stays in the kernel's socket
// buffers. A client that violates the protocol is disconnected; other clients are not affected. One thread runs the
// loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "event/server_map.hpp"
#include "server/exchange.hpp"
#include "server/session.hpp"
#include "server/strangers.hpp"
#include "server/turn_taker.hpp"

namespace hocket::server {

// One hocket-server. It owns its clients' sessions, the engine and the data sets.
class HocketServer {
 public:
  // Settings from the command line, and limits that tests change.
  struct ServerSettings {
    Engine::EngineSettings engine{};
    DataSets::DataSetSettings exchange{};
    std::string name{};  // reported to clients that ask for the state
    // The secret with which it reaches other servers over TCP, and that TCP clients must know from now on; "": none,
    // and clients must know that of `listen`.
    std::string secret_file{};
    bool write_behind = false;  // for all files; clients may also request it for each file
    // Asks for the turns of applications whose writes this server holds. nullptr: it stores them at once.
    TurnTaker* turns = nullptr;
    // Time limit for a client that occupies memory others wait for: within it, the client must send the rest of its
    // data or read its answers, or move 64 KiB of them. It is disconnected else.
    Duration patience = std::chrono::seconds{10};
    // Takes over the connection of a relay, whose frame is its first one. Empty: relays are disconnected.
    std::function<void(transport::Stream stream)> take_relay{};
  };
  using Log = std::function<void(const std::string&)>;

  // Makes a server for the files below `directory`. Fails if that is no directory. `load` must outlive the server;
  // `log` receives one line at a time.
  static Result<std::unique_ptr<HocketServer>> make(const ServerSettings& settings, const std::string& directory,
                                                    LoadCounters& load, Log log);
  ~HocketServer();
  HocketServer(const HocketServer&) = delete;
  HocketServer& operator=(const HocketServer&) = delete;

  // Accepts clients from a listening socket. The credentials are what TCP clients must prove to know. They are empty
  // for a Unix socket, whose clients must belong to this user or root.
  void listen(Fd socket, transport::Credentials credentials);

  // Serves clients until the descriptor `stop` is readable. It then carries out and answers everything that was
  // received, disconnects all clients, and returns. Clients that wait for a data set are refused (ECANCELED). Before,
  // it waits for those that have one open, and for the readers of parts that it keeps, for 20 s at most.
  void run(int stop);

  // Takes over a server map of hocketd; no value: the connection to hocketd has ended. `stored` is called in the loop's
  // thread when everything that this server had received before is in the files. Thread-safe; returns at once.
  //
  // hocketd must give the map to all servers, and await `stored` of each, before any client gets it: a client of the
  // new map may send a byte to another server than the one that still holds older data of it.
  void take_map(std::optional<event::ServerMap> map, std::function<void()> stored);

  // Takes over which servers keep data sets and which are drained (DataSetExchange::take_servers); no value: hocketd
  // has not said so. `report` is called in the loop's thread. Thread-safe; returns at once.
  void take_data_set_servers(std::optional<DataSetServers> servers, DataSetExchange::LeftReport report);

  // Returns the canonical path of the directory that is served.
  const std::string& directory() { return engine_.files().directory(); }

 private:
  // A listening socket and what its clients must prove to know.
  struct ClientListener {
    Fd socket;
    transport::Credentials credentials;
    bool local() const { return credentials.secret.empty(); }
  };

  HocketServer(const ServerSettings& settings, Files files, LoadCounters& load, Log log);

  void watch(int descriptor, std::uint64_t key, std::uint32_t events, bool is_new);
  void watch_listeners(std::uint32_t events);
  int timeout_ms();
  void wait();
  void hang_up(std::uint64_t key);
  void bury_the_gone(Time since);
  void handle(std::uint64_t key, std::uint32_t events);
  // Returns what a client that connects now must know.
  transport::Credentials credentials_at(const ClientListener& listener) const;
  void accept_from(ClientListener& listener);
  bool may_connect(const Fd& socket, Peer& peer);
  void log_of_stranger(std::string_view line);
  void end_greeting(ClientSession& session);
  void identify(ClientSession& session);
  void forget(const ClientSession& session) const;
  void note_progress(ClientSession& session) const;
  void beat();
  void show_life();
  void part_with_the_gone();
  void await_readers();
  void settle_down();
  void adopt_maps();
  event::Placement present_placement(const ServerFile& file);

  // Reading from sessions, and ending them.
  void take_in(ClientSession& session);
  bool take(ClientSession& session, transport::Stream::Got got);
  bool take_frame(ClientSession& session);
  bool stall(ClientSession& session, transport::Stream::Got got);
  bool must_queue(bool reads) const;
  bool is_thin(const ClientSession& session) const;
  void retry_stalled();
  void cut_off_the_stuck();
  bool is_paused(const ClientSession& session) const;
  void update_interest(ClientSession& session);
  void doom(ClientSession& session, std::string reason);
  void bury();

  // Handlers of one frame each; the frame is the stream's current one.
  void on_share(ClientSession& session);
  void on_open(ClientSession& session);
  void on_join(ClientSession& session);
  void on_find(ClientSession& session);
  void on_adopt(ClientSession& session);
  void on_locate(ClientSession& session);
  void on_part(ClientSession& session);
  void on_view(ClientSession& session);
  bool on_transfer(ClientSession& session);
  void on_end(ClientSession& session);
  void on_barrier(ClientSession& session);
  void on_state(ClientSession& session);
  void on_relay(ClientSession& session);
  int describe(ClientSession& session, Task& task);
  int give_data(ClientSession& session, Task& task, bool& has_room);
  void answer(Answer answer);
  void say_stored(const FileOpening& opening, int error, bool ends);
  void answer_join(const DataSetExchange::JoinAnswer& joined);
  void answer_locate(const DataSetExchange::LocateAnswer& located);
  void part_with(const ClientHandle& handle);
  void reply(ClientSession& session, std::uint64_t request, int error, std::int64_t bytes = 0, std::uint64_t handle = 0,
             std::string text = {});

  ServerSettings settings_;
  Log log_;
  LoadCounters& load_;
  Engine engine_;
  DataSetExchange exchange_;
  Fd epoll_;
  std::vector<ClientListener> listeners_;
  std::optional<Time> accept_again_;  // when accepting resumes after an error such as EMFILE
  std::unordered_map<SessionId, std::unique_ptr<ClientSession>> sessions_;
  // Sockets of clients that have gone, while accesses of theirs are under way (part_with_the_gone).
  std::unordered_map<SessionId, KeptFd> parting_;
  std::deque<SessionId> stalled_;  // sessions that wait for memory, in order of arrival
  std::vector<SessionId> doomed_;  // sessions that `bury` will remove
  SessionId last_session_ = 0;
  std::size_t greeting_ = 0;  // connections that have not authenticated yet
  Strangers strangers_;       // those of them over TCP
  LineLimit about_strangers_;
  // Requests so far whose places in the file came as a list of runs, and as data of a view.
  std::int64_t listed_ = 0, viewed_ = 0;
  Time shown_{};        // when clients that wait were last sent a sign of life
  bool freed_ = false;  // memory may have become free for stalled sessions, which raises no event
  Time now_;            // when the latest wait returned
  bool stopping_ = false;

  // Maps that the loop has not adopted yet.
  struct NewMap {
    std::optional<event::ServerMap> map;
    std::function<void()> stored;
  };
  Fd map_came_;  // eventfd
  std::mutex maps_mutex_;
  std::vector<NewMap> new_maps_;         // guarded by the mutex
  std::function<void()> new_servers_;    // the same: makes the exchange take them
  std::optional<event::ServerMap> map_;  // in use
  bool had_map_ = false;
};

}  // namespace hocket::server
