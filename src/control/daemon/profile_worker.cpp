#include "daemon/profile_worker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace hocket::daemon {

ProfileWorker::ProfileWorker(std::string path)
    : path_(std::move(path)), answered_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ProfileWorker::~ProfileWorker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    std::erase_if(jobs_, [](const Job& job) { return !job.stores; });
  }
  come_.notify_one();
  thread_.join();
}

void ProfileWorker::find(const std::string& executable, AppId app, const std::string& sha256) {
  if (path_.empty()) return;
  submit({false, [executable, app, sha256](ProfileStore& store) {
            ProfileAnswer answer{app, executable, {}, {}};
            auto found = store.find(executable, app, sha256);
            if (found) {
              answer.points = std::move(found).value();
            } else {
              answer.error = found.error().text;
            }
            return answer;
          }});
}

void ProfileWorker::put(const std::string& executable, const std::string& mpi, std::vector<event::Profile> points,
                        std::int64_t measured_unix_s, const std::string& sha256) {
  if (path_.empty()) return;
  submit({true, [executable, mpi, points = std::move(points), measured_unix_s, sha256](ProfileStore& store) {
            ProfileAnswer answer{{}, executable, points, {}};
            if (const Status put = store.put(executable, mpi, points, measured_unix_s, sha256); !put)
              answer.error = put.error().text;
            return answer;
          }});
}

void ProfileWorker::fingerprint(const std::string& executable, AppId app) {
  submit({false, [executable, app](ProfileStore& store) {
            const auto sha256 = store.fingerprint(executable);
            return ProfileAnswer{app, executable, {}, {}, sha256 ? sha256.value() : std::string{}};
          }});
}

void ProfileWorker::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return;  // the user has too many; the next job tries again
  }
  come_.notify_one();
}

std::vector<ProfileWorker::ProfileAnswer> ProfileWorker::take() {
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t was_readable = read(answered_.get(), &ignored, sizeof ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void ProfileWorker::work() {
  ProfileStore store{path_};
  std::unique_lock lock(mutex_);
  while (true) {
    come_.wait(lock, [this] { return leaving_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    ProfileAnswer answer = job.run(store);
    lock.lock();
    answers_.push_back(std::move(answer));
    eventfd_write(answered_.get(), 1);
  }
}

}  // namespace hocket::daemon
