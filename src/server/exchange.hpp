// The data sets in this server's memory: each version is a file that has no name (memfd_create), so that all that the
// engine does with files it does with them. Who gets which version is `DataSets`'. One thread.
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

class Exchange {
 public:
  // What a client is told that has joined. `file`: one handle of it is the client's.
  struct Joined {
    Asker to;
    int error = 0;
    FilePtr file{};
    bool writes = false;
    std::uint32_t version = 0;
    std::int64_t bytes = 0;
  };
  // `files` must outlive it. `joined` is called when it is known what becomes of a client that asked to join.
  Exchange(const DataSets::Settings& settings, Files& files, std::function<void(const Joined&)> joined)
      : sets_(settings), files_(files), joined_(std::move(joined)) {}

  // Of a frame Type::join.
  void join(Asker asker, const transport::Header& header, std::string_view meta, Time now);
  // Whoever asked to join with this is going to write bytes before `end`; an error of errno: he must not.
  int grow(Asker joined, std::int64_t end);
  // He has asked to close it: `close` is what the engine answers when all that he asked for before is carried out.
  void closes(Asker joined, Asker close, const FilePtr& file);
  // An answer of the engine's, which may be to a close: then it is the data set's.
  void finish(Answer& answer);
  // Before the engine is told so. Handles are the caller's to give back.
  void gone(SessionId session);

  void expire(Time now) { carry_out(sets_.expire(now)); }
  std::optional<Time> next_deadline() const { return sets_.next_deadline(); }
  // Nobody is to wait any more.
  void cancel() { carry_out(sets_.cancel()); }
  // "key value" lines.
  std::string state() const;

 private:
  void carry_out(DataSets::Outcomes outcomes);
  FilePtr file_of(DataSets::VersionId version);
  void drop(DataSets::VersionId version);

  DataSets sets_;
  Files& files_;
  std::function<void(const Joined&)> joined_;
  std::map<DataSets::VersionId, FilePtr> versions_;  // nullptr: it could not be made
  struct Closing {
    DataSets::Member member;
    FilePtr file;
  };
  std::map<std::pair<SessionId, std::uint64_t>, Closing> closing_;  // by who is to be answered
};

}  // namespace hocket::server
