// Uses the profile store in a thread of its own. A program of 1 GiB takes seconds to fingerprint, and a store may be on
// a slow file system: nobody shall wait for a grant meanwhile.
//
// The owner's thread calls all functions. The thread is started with the first job.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "daemon/profile_store.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

class ProfileWorker {
 public:
  // The result of a `find`, `put`, or `fingerprint`.
  struct ProfileAnswer {
    AppId app;            // of a `find` or `fingerprint`; 0: of a `put`
    std::string program;  // path of the executable
    std::vector<event::Profile> points;
    std::string error;     // why the store is unusable, in one line; "": it is not
    std::string sha256{};  // of a `fingerprint`; "": the program cannot be read
  };

  // `path`: of the store; "": there is none, and nothing is found or stored.
  explicit ProfileWorker(std::string path);
  // Drops what is still to be looked up, and waits for what is under way or to be stored.
  ~ProfileWorker();
  ProfileWorker(const ProfileWorker&) = delete;
  ProfileWorker& operator=(const ProfileWorker&) = delete;

  const std::string& path() const { return path_; }
  // Looks a program up. `sha256`: its fingerprint, if another node has told it; "": it is read here. An answer follows.
  void find(const std::string& executable, AppId app, const std::string& sha256 = {});
  // Stores what was measured (ProfileStore::put). `sha256` as above. An answer follows.
  void put(const std::string& executable, const std::string& mpi, std::vector<event::Profile> points,
           std::int64_t measured_unix_s, const std::string& sha256 = {});
  // Computes the fingerprint of a program of this node. An answer follows, also without a store.
  void fingerprint(const std::string& executable, AppId app);

  // Returns a descriptor that is readable when there are answers: call `take` then.
  int descriptor() const { return answered_.get(); }
  // Returns the answers that have come since the last call, in the order of the jobs.
  std::vector<ProfileAnswer> take();

 private:
  struct Job {
    bool stores = false;
    std::function<ProfileAnswer(ProfileStore&)> run;
  };

  void submit(Job job);
  void work();

  const std::string path_;
  Fd answered_;  // eventfd
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Job> jobs_;
  std::vector<ProfileAnswer> answers_;
  bool leaving_ = false;
  std::thread thread_;
};

}  // namespace hocket::daemon
