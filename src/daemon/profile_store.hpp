// The store of measured profiles (SQLite 3; `hocket profile` writes it, and hocketd adds what it measured of programs
// that have none): what is known of the times of a program by its number of processes (CLARISSE+FlexMPI, section 4.1,
// off-line prediction).
//
// Table `point`: one row for each program, fingerprint (SHA-256 of the executable's bytes, so that another program of
// the same name is not taken for it) and number of processes. Opened for each look-up and each write: others may write
// it too. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

// Where the store is: what the setting says, else under $XDG_DATA_HOME or ~/.local/share; "": there is none.
std::string profile_store_path(const std::string& setting);

// SHA-256 of the bytes of a file, in lower-case hexadecimals.
Result<std::string> fingerprint_of(const std::string& path);

class ProfileStore {
 public:
  // "": no store, nothing is ever found.
  explicit ProfileStore(std::string path) : path_(std::move(path)) {}

  // The points of the program whose executable is at that path, by processes, with `app` in each; none where the store
  // does not exist or does not know it. The error says in one line why the store could not be read, or which of its
  // values cannot be.
  Result<std::vector<event::Profile>> find(const std::string& executable, AppId app);
  // Remembers points that were measured in a run, all or none; those of the same sizes are replaced. The store is made
  // where there is none. Does not wait for the disk: the daemon has applications to answer.
  Status put(const std::string& executable, const std::string& mpi, const std::vector<event::Profile>& points,
             std::int64_t measured_unix_s);

 private:
  // Read again only when it has changed: programs may be large.
  struct Fingerprint {
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::string sha256;
  };
  Result<std::string> fingerprint(const std::string& executable);

  std::string path_;
  std::map<std::string, Fingerprint> fingerprints_;  // by path
};

}  // namespace hocket::daemon
