// Data sets in this server's memory. Each version is an anonymous file (memfd_create), so the engine reads, writes
// and orders it like any other file. `DataSets` decides which client gets which version. One thread.
//
// A version of more than one stripe is striped over several servers (layout/stripes.hpp). This one is its home, and has
// the others keep parts (leases.hpp); or it keeps a part of another home's version (parts.hpp). The servers of a
// version are decided before any stripe but the first is written:
//
//   undecided ── a writer asks where the stripes are ──► asking ── all servers have answered ──► decided
//   undecided ── a writer writes behind the first stripe, a reader opens it ──► decided: the home has all
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "event/event.hpp"
#include "server/data_sets.hpp"
#include "server/engine.hpp"
#include "server/leases.hpp"
#include "server/mover.hpp"
#include "server/parts.hpp"
#include "transport/frame.hpp"

namespace hocket::server {

// The servers that keep data sets, while some are drained (event::MoveDataSets).
struct DataSetServers {
  std::int64_t epoch = 0;
  event::ServerMap staying;
  std::set<std::string> drained;  // names
};

// Returns no value if the message names no drained server, or cannot be read.
std::optional<DataSetServers> servers_of(const event::MoveDataSets& move);

// Connects the pure `DataSets` with memory and with the engine's answers.
class DataSetExchange {
 public:
  // The answer to a client that asked to join. If `file` is set, one of its handles belongs to the client.
  struct JoinAnswer {
    Asker to;
    int error = 0;
    FilePtr file{};
    bool writes = false;
    std::uint32_t version = 0;  // number of the version in its name
    std::int64_t bytes = 0;     // size of a version that is read; 0 for one that is to be written
  };
  // The answer to a client that asked where the stripes of a version are (ServerLink::locate).
  struct LocateAnswer {
    Asker to;
    int error = 0;
    std::uint64_t number = 0;
    std::string servers{};
  };
  // Functions that are called when a request is answered, also inside the functions below.
  struct ExchangeCalls {
    std::function<void(const JoinAnswer&)> joined;
    std::function<void(const LocateAnswer&)> located;
    std::function<void(const std::string&)> log;
  };
  // The engine must outlive it. `secret_file` as in PartLeases.
  DataSetExchange(const DataSets::DataSetSettings& settings, Engine& engine, std::string secret_file,
                  ExchangeCalls calls);
  ~DataSetExchange();

  // Handles a frame of Type::join or Type::locate. The answer comes through the calls, at once or later.
  void join(Asker asker, const transport::Header& header, std::string_view meta, Time now);
  // `writes`: the client writes the version, so that it may decide where the stripes are.
  void locate(Asker joined, bool writes, Asker locate, std::string_view servers, Time now);
  // Reserves memory before a write: the client whose join request was `joined`, or which has opened part `number`, will
  // write bytes before `end`. Returns a number of errno if it must not; 0 otherwise.
  int grow(Asker joined, std::int64_t end);
  int grow_part(std::uint64_t number, std::int64_t end);
  // Notes that the client has asked to close its version, or its handle of a part. `close` names the engine's answer
  // that says that all earlier requests of the client have been carried out; `end` is that of the frame.
  void closes(Asker joined, Asker close, const FilePtr& file, std::int64_t end);
  void closes_part(Asker close, const FilePtr& file);
  // Checks every answer of the engine. If it is the answer to a close, the version is closed, and the answer gets the
  // data set's error. ECANCELED from a part: what was written to it is lost.
  void finish(Answer& answer);
  // Removes a client that has disconnected. Call it before Engine::gone; the caller gives the client's handles back.
  void gone(SessionId session);

  // Begins to keep a part (DataSetParts::keep). ECANCELED: the server ends.
  DataSetParts::Opened keep(const transport::KeptPart& part, SessionId home);
  DataSetParts& parts() { return parts_; }
  // Gives memory of parts back.
  void give(std::int64_t bytes) {
    if (bytes > 0) carry_out(sets_.give(bytes));
  }
  // Exchanges messages with the servers that keep parts of versions, and moves data sets. Call it after each round of
  // the loop, at least every second, and when the descriptor is readable.
  void attend(Time now);
  int descriptor() const { return epoll_.get(); }

  // Begins or ends to move data sets: a drained server moves all, each as soon as no client has it open. Other homes
  // write those anew that have parts at a drained server. No value: nothing is known of drained servers. `own_name` is
  // that of this server. `report` is called if this server is drained, when what it keeps has changed.
  using LeftReport = std::function<void(const event::DataSetsLeft&)>;
  void take_servers(std::optional<DataSetServers> servers, const std::string& own_name, LeftReport report);
  // Says if this server is the home of the name. ESHUTDOWN: it is not, and cannot become it (ServerLink::find).
  struct FoundHome {
    int error = 0;
    bool is_home = false;
  };
  FoundHome find(const std::string& name) const;
  // Adopts a data set that moves here (DataSets::adopt). Returns an errno.
  int adopt(SessionId mover, std::string_view moved);

  // Refuses the clients whose time limit is over (ETIMEDOUT).
  void expire(Time now) { carry_out(sets_.expire(now)); }
  std::optional<Time> next_deadline() const { return sets_.next_deadline(); }
  // Refuses all clients that wait or will come (ECANCELED), because the server ends.
  void wind_up();
  // True if a client has a version open, if a part of another home's version is kept, or if a drained server moves its
  // data sets.
  bool is_in_use() const { return sets_.members() > 0 || parts_.count() > 0 || moves_.under_way || can_move_more(); }
  // Logs what is lost when this server ends.
  void say_what_is_lost() const;
  // Returns the counters as lines of "key value".
  std::string state() const;

 private:
  enum class StripingStage : std::uint8_t { undecided, asking, decided };
  // A version whose home this server is.
  struct HeldVersion {
    FilePtr file;  // nullptr: no memory file could be made
    StripingStage stage = StripingStage::undecided;
    std::uint64_t number = 0;    // of its parts; 0: it has none
    std::string servers{};       // that have its stripes, as a map's text; "": this one has all
    MappedServers striped{};     // the same
    std::vector<Asker> waiting;  // clients that asked where the stripes are
  };
  // A close that the engine has not answered yet.
  struct Closing {
    std::optional<DataSets::GroupMember> member;  // nothing: of a part
    FilePtr file;
    std::int64_t end = 0;
  };

  // What moves, and why something did not.
  struct DataSetMoves {
    std::optional<DataSetServers> servers;
    std::string own_name;
    LeftReport report;
    struct FailedMove {
      Time again;
      std::string why;
    };
    std::map<std::string, FailedMove> failed;  // by name
    bool under_way = false;
    Time looked{};  // at what is left
    std::optional<event::DataSetsLeft> told;
    std::atomic<bool> gives_up = false;
    std::unique_ptr<Workers> thread;  // made by the first move
  };
  bool is_drained() const { return sets_.is_drained(); }
  bool can_move_more() const;
  bool must_move(const DataSets::MovableName& name) const;
  void move_next(Time now);
  void begin_move(const std::string& name);
  void end_move(const std::string& name, const std::string& why, bool has_new_home);
  event::DataSetsLeft left() const;
  void report_left(Time now);

  void carry_out(DataSets::DataSetOutcomes outcomes);
  HeldVersion& version_of(DataSets::VersionId id);
  void drop(DataSets::VersionId version);
  void decide(HeldVersion& version);
  void kept(std::uint64_t number, const PartLeases::MappedServers& servers);
  void lost(const event::ServerMap::MappedServer& server, const std::vector<std::uint64_t>& numbers);

  bool ends_ = false;
  DataSets sets_;
  Files& files_;
  DataSetParts parts_;
  const ExchangeCalls calls_;
  std::map<DataSets::VersionId, HeldVersion> versions_;
  std::map<std::uint64_t, DataSets::VersionId> striped_;  // by number of the parts
  PartLeases leases_;
  Fd epoll_;  // the leases, and the thread that moves
  Time now_{};
  DataSetMoves moves_;
  std::map<std::pair<SessionId, std::uint64_t>, Closing> closing_;  // by session and request of the close
};

}  // namespace hocket::server
