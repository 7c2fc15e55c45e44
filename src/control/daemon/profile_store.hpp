// The store of measured profiles: the times of programs by number of processes (CLARISSE+FlexMPI, section 4.1,
// off-line prediction). It is an SQLite 3 file. `hocket profile` writes it, and hocketd adds what it measured of
// programs without a profile.
//
// Table `point` has one row for each program, fingerprint and number of processes. The fingerprint is the SHA-256 of
// the executable, so another program of the same name is not mistaken for it. The file is opened for each access,
// because other processes write it too. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

// Returns the path of the store: the setting, else a path under $XDG_DATA_HOME or ~/.local/share. "" means no store;
// the setting "none" asks for that.
std::string profile_store_path(const std::string& setting);

// Returns the SHA-256 of a file's bytes in lower-case hexadecimal.
Result<std::string> fingerprint_of(const std::string& path);

// Access to one store. It caches fingerprints, up to a fixed number.
class ProfileStore {
 public:
  // An empty path means no store: nothing is found or written.
  explicit ProfileStore(std::string path) : path_(std::move(path)) {}

  // Returns the points of the program with this executable, by ascending processes, with `app` in each. Returns none
  // if the store does not exist or does not know the program. The error says in one line why the store, or a value,
  // is unusable. `sha256`: the fingerprint of the executable, if it is on another node; "": it is read here.
  Result<std::vector<event::Profile>> find(const std::string& executable, AppId app, const std::string& sha256 = {});
  // Stores points that were measured in a run, all or none. Points of the same size are replaced. Creates the store
  // if there is none. Does not wait for the disk, because the daemon has applications to answer.
  Status put(const std::string& executable, const std::string& mpi, const std::vector<event::Profile>& points,
             std::int64_t measured_unix_s, const std::string& sha256 = {});
  // Returns the fingerprint of an executable of this node.
  Result<std::string> fingerprint(const std::string& executable);

 private:
  // A cached fingerprint. It is computed again only if size or time of the file change: programs may be large.
  struct Fingerprint {
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::string sha256;
  };

  std::string path_;
  std::map<std::string, Fingerprint> fingerprints_;  // key: path of the executable
};

}  // namespace hocket::daemon
