// Statistical tokens with opportunity fairness (ThemisIO; Karrels, Huang, Kan, Arora, Wang, Katz, Gropp, Zhang:
// Fine-grained Policy-driven I/O Sharing for Burst Buffers, SC23): a sharing rule gives each application a part of
// [0, 1). For each access, a random number chooses the application. Parts of applications without requests go to the
// others, so the server never idles while a request waits, and a server that is not saturated delays nobody.
//
//   job-fair        applications have equal parts
//   size-fair       parts as the numbers of processes
//   user-fair       users have equal parts; the requests of a user are carried out in the order of arrival
//   user-job-fair   users have equal parts, and in each the applications of the user
//   user-size-fair  the same, by numbers of processes within a user
//
// Decided here:
// - Parts are of bytes, not of requests: the chance of an application is divided by the cost of its oldest request, its
//   bytes and `request_cost`. These are the compensation tickets of lottery scheduling (Waldspurger and Weihl, OSDI
//   1994, section 3.4). ThemisIO's source balances processing time with its time-sharing queue; a pure scheduler has no
//   times of service.
// - An unused part of an application goes to those of the same user first.
// - Requests are not merged, since those of other applications would come along for nothing.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/splitmix.hpp"
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

// The levels at which a rule divides: among users, then among what is one queue.
struct SharingRule {
  bool between_users;  // users have equal parts
  bool within_users;   // a queue is an application, else a user
  bool by_size;        // queues by their processes, else equally
};

class StatisticalTokens final : public Algorithm {
 public:
  StatisticalTokens(const SchedulerSettings& settings, SharingRule rule)
      : request_cost_(settings.request_cost), random_state_(settings.seed * splitmix_step), rule_(rule) {}

  void added(PendingRequest& request) override {
    const std::uint64_t key = rule_.within_users ? request.request.application : request.request.user;
    const auto [place, is_new] = places_.try_emplace(key, holders_.size());
    if (is_new) holders_.push_back({key, request.request.user, 0, &sums_[request.request.user], {}, 0});
    TokenHolder& holder = holders_[place->second];
    // The newest request knows how many processes there are now. An application may have requests waiting for ever.
    const double size = rule_.by_size ? request.request.processes : 1;
    *holder.sum += size - holder.size;
    holder.size = size;
    request.mark = key;
    holder.waiting.insert(&request);
    set_chance(holder);
  }

  void removed(PendingRequest& request, Departure) override {
    const auto place = places_.find(request.mark);
    TokenHolder& holder = holders_[place->second];
    holder.waiting.erase(&request);
    if (!holder.waiting.empty()) return set_chance(holder);
    *holder.sum -= holder.size;
    if (*holder.sum <= 0) sums_.erase(holder.user);
    if (&holder != &holders_.back()) {
      places_[holders_.back().key] = place->second;
      std::swap(holder, holders_.back());
    }
    places_.erase(place);
    holders_.pop_back();
  }

  ScheduleChoice choose(const ByAge&, Time) override {
    double all = 0;
    for (const TokenHolder& holder : holders_) all += part(holder);
    random_state_ += splitmix_step;
    const double random = static_cast<double>(splitmix(random_state_) >> 11U) * 0x1p-53;  // in [0, 1)
    double left = random * all;
    for (const TokenHolder& holder : holders_) {
      left -= part(holder);
      if (left < 0) return {*holder.waiting.begin()};
    }
    return {*holders_.back().waiting.begin()};  // rounding
  }

 private:
  // Holds tokens: an application, or a user, that has waiting requests.
  struct TokenHolder {
    std::uint64_t key = 0;
    std::uint64_t user = 0;
    double size = 1;
    double* sum = nullptr;  // of the sizes of the user's holders
    ByAge waiting;
    double chance = 0;  // size divided by the cost of the oldest request
  };

  void set_chance(TokenHolder& holder) const {
    const auto bytes = static_cast<double>((*holder.waiting.begin())->bytes() + request_cost_);
    holder.chance = holder.size / std::max(bytes, 1.0);
  }
  double part(const TokenHolder& holder) const {
    return rule_.between_users ? holder.chance / *holder.sum : holder.chance;
  }

  std::int64_t request_cost_;
  std::uint64_t random_state_;
  SharingRule rule_;
  std::vector<TokenHolder> holders_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // index in `holders_` by key
  std::unordered_map<std::uint64_t, double> sums_;         // sizes by user
};

}  // namespace

std::unique_ptr<Algorithm> make_job_fair(const SchedulerSettings& settings) {
  return std::make_unique<StatisticalTokens>(settings, SharingRule{false, true, false});
}
std::unique_ptr<Algorithm> make_user_fair(const SchedulerSettings& settings) {
  return std::make_unique<StatisticalTokens>(settings, SharingRule{true, false, false});
}
std::unique_ptr<Algorithm> make_size_fair(const SchedulerSettings& settings) {
  return std::make_unique<StatisticalTokens>(settings, SharingRule{false, true, true});
}
std::unique_ptr<Algorithm> make_user_job_fair(const SchedulerSettings& settings) {
  return std::make_unique<StatisticalTokens>(settings, SharingRule{true, true, false});
}
std::unique_ptr<Algorithm> make_user_size_fair(const SchedulerSettings& settings) {
  return std::make_unique<StatisticalTokens>(settings, SharingRule{true, true, true});
}

}  // namespace hocket::request_scheduler
