// Data sets in this server's memory. Each version is an anonymous file (memfd_create), so the engine reads, writes
// and orders it like any other file. `DataSets` decides which client gets which version. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/data_sets.hpp"
#include "server/engine.hpp"
#include "transport/frame.hpp"

namespace hocket::server {

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
  // `files` must outlive it. It calls `joined` when a client's request to join is served or refused, also inside the
  // functions below.
  DataSetExchange(const DataSets::DataSetSettings& settings, Files& files,
                  std::function<void(const JoinAnswer&)> joined)
      : sets_(settings), files_(files), joined_(std::move(joined)) {}

  // Handles a frame of Type::join. The answer comes through `joined`, at once or later.
  void join(Asker asker, const transport::Header& header, std::string_view meta, Time now);
  // Reserves memory before a write: the client whose join request was `joined` will write bytes before `end`. Returns
  // a number of errno if it must not; 0 otherwise.
  int grow(Asker joined, std::int64_t end);
  // Notes that the client has asked to close its version. `close` names the engine's answer that says that all
  // earlier requests of the client have been carried out.
  void closes(Asker joined, Asker close, const FilePtr& file);
  // Checks every answer of the engine. If it is the answer to a close, the version is closed, and the answer gets the
  // data set's error.
  void finish(Answer& answer);
  // Removes a client that has disconnected. Call it before Engine::gone; the caller gives the client's handles back.
  void gone(SessionId session);

  // Refuses the clients whose time limit is over (ETIMEDOUT).
  void expire(Time now) { carry_out(sets_.expire(now)); }
  std::optional<Time> next_deadline() const { return sets_.next_deadline(); }
  // Refuses all clients that still wait (ECANCELED).
  void cancel() { carry_out(sets_.cancel()); }
  // Returns the counters as lines of "key value".
  std::string state() const;

 private:
  void carry_out(DataSets::DataSetOutcomes outcomes);
  FilePtr file_of(DataSets::VersionId version);
  void drop(DataSets::VersionId version);

  DataSets sets_;
  Files& files_;
  std::function<void(const JoinAnswer&)> joined_;
  std::map<DataSets::VersionId, FilePtr> versions_;  // nullptr: no memory file could be made
  // A close that the engine has not answered yet.
  struct Closing {
    DataSets::GroupMember member;
    FilePtr file;
  };
  std::map<std::pair<SessionId, std::uint64_t>, Closing> closing_;  // by session and request of the close
};

}  // namespace hocket::server
