#include "allocation/seating.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace hocket::allocation {
namespace {

class Seating {
 public:
  Seating(std::span<const Unseated> jobs, std::span<const std::string_view> pool)
      : jobs_(jobs), pool_(pool), load_(pool.size()), seats_(jobs.size()) {}

  std::vector<std::vector<std::string_view>> seated() {
    if (!pool_.empty()) {
      seat_those_that_share_one();
      const int most = most_jobs_of_a_server();
      for (std::size_t job = 0; job < jobs_.size(); ++job) keep(job, jobs_[job].stays ? unlimited : most);
      for (std::size_t job = 0; job < jobs_.size(); ++job) fill(job);
    }
    std::vector<std::vector<std::string_view>> names(jobs_.size());
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      std::ranges::sort(seats_[job]);
      for (const std::size_t server : seats_[job]) names[job].push_back(pool_[server]);
    }
    return names;
  }

 private:
  static constexpr int unlimited = std::numeric_limits<int>::max();

  std::size_t wanted(std::size_t job) const {
    return std::min(static_cast<std::size_t>(jobs_[job].servers), pool_.size());
  }
  bool has(std::size_t job, std::size_t server) const { return std::ranges::count(jobs_[job].has, pool_[server]) > 0; }
  void seat(std::size_t job, std::size_t server) {
    seats_[job].push_back(server);
    ++load_[server];
  }

  // The shared server is one that most of its jobs have already.
  void seat_those_that_share_one() {
    std::vector<std::size_t> sharing;
    for (std::size_t job = 0; job < jobs_.size(); ++job)
      if (jobs_[job].shares_one) sharing.push_back(job);
    if (sharing.empty()) return;
    std::vector<std::int64_t> users(pool_.size());
    for (std::size_t server = 0; server < pool_.size(); ++server)
      users[server] = std::ranges::count_if(sharing, [&](std::size_t job) { return has(job, server); });
    shared_ = static_cast<std::size_t>(std::ranges::max_element(users) - users.begin());
    for (const std::size_t job : sharing) seat(job, *shared_);
  }

  int most_jobs_of_a_server() const {
    std::size_t all = 0;
    for (std::size_t job = 0; job < jobs_.size(); ++job) all += jobs_[job].shares_one ? 0 : wanted(job);
    const std::size_t servers = std::max<std::size_t>(pool_.size() - (shared_ ? 1 : 0), 1);
    return static_cast<int>((all + servers - 1) / servers);
  }

  void keep(std::size_t job, int most) {
    for (std::size_t server = 0; server < pool_.size() && seats_[job].size() < wanted(job); ++server)
      if (server != shared_ && load_[server] < most && has(job, server)) seat(job, server);
  }

  // Adds the servers with the fewest jobs; of equal ones those that come first, and the shared one last.
  void fill(std::size_t job) {
    while (seats_[job].size() < wanted(job)) {
      std::optional<std::size_t> best;
      const auto before = [&](std::size_t a, std::size_t b) {
        return (a == shared_) != (b == shared_) ? b == shared_ : load_[a] < load_[b];
      };
      for (std::size_t server = 0; server < pool_.size(); ++server) {
        if (std::ranges::count(seats_[job], server) > 0) continue;
        if (!best || before(server, *best)) best = server;
      }
      seat(job, *best);
    }
  }

  std::span<const Unseated> jobs_;
  std::span<const std::string_view> pool_;
  std::vector<int> load_;  // jobs of each server
  std::vector<std::vector<std::size_t>> seats_;
  std::optional<std::size_t> shared_;
};

}  // namespace

std::vector<std::vector<std::string_view>> seats_of(std::span<const Unseated> jobs,
                                                    std::span<const std::string_view> pool) {
  return Seating{jobs, pool}.seated();
}

}  // namespace hocket::allocation
