#include "forward/forward_queue.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/saturating.hpp"

namespace hocket::forward {

using request_scheduler::ApplicationStatistics;
using request_scheduler::IoRequest;
using request_scheduler::NextBatch;
using request_scheduler::RequestScheduler;
using request_scheduler::SchedulerSettings;

namespace {

constexpr std::size_t most_applications = 256;  // beyond, those that came first are forgotten
constexpr std::size_t most_shares = 32;         // so that a report stays short

SchedulerSettings settings_with(SchedulerSettings settings, const SchedulerChoice& choice) {
  if (choice.data_servers != 0)
    settings.twins_servers =
        static_cast<int>(std::clamp<std::int64_t>(choice.data_servers, -1, std::numeric_limits<int>::max()));
  if (choice.stripe_bytes != 0) settings.twins_stripe = choice.stripe_bytes;
  return settings;
}

}  // namespace

Result<RequestScheduler> ForwardQueue::scheduler_for(const SchedulerChoice& choice) {
  return RequestScheduler::create(choice.name, settings_with({}, choice));
}

ForwardQueue::ForwardQueue(RequestScheduler scheduler, const SchedulerChoice& choice)
    : scheduler_(std::move(scheduler)), settings_(settings_with({}, choice)) {}

std::uint64_t ForwardQueue::number_of(const std::string& application) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = numbers_.emplace(application, last_number_ + 1);
  if (!is_new) return found->second;
  ++last_number_;
  if (numbers_.size() > most_applications) {
    const auto oldest = std::ranges::min_element(numbers_, {}, [](const auto& one) { return one.second; });
    const auto counted = scheduler_.statistics().find(oldest->second);
    if (counted != scheduler_.statistics().end()) forgotten_ += counted->second.waited;
    scheduler_.forget(oldest->second);
    numbers_.erase(oldest);
  }
  return last_number_;
}

bool ForwardQueue::add(IoRequest request) {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(scheduler_.add(std::move(request)));
}

NextBatch ForwardQueue::take(Time now) {
  const std::lock_guard lock(mutex_);
  return scheduler_.next(now);
}

bool ForwardQueue::has_more() const {
  const std::lock_guard lock(mutex_);
  return scheduler_.waiting() > 0;
}

void ForwardQueue::done(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  scheduler_.done(batch);
}

Result<ForwardQueue::Switched> ForwardQueue::use(const SchedulerChoice& choice) {
  const std::lock_guard lock(mutex_);
  const SchedulerSettings settings = settings_with(settings_, choice);
  Switched switched{scheduler_.name(), static_cast<std::int64_t>(scheduler_.waiting())};
  if (Status status = scheduler_.use(choice.name, settings); !status) return status.error();
  settings_ = settings;
  return switched;
}

std::string ForwardQueue::scheduler() const {
  const std::lock_guard lock(mutex_);
  return scheduler_.name();
}

ForwardQueue::Waiting ForwardQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  Waiting sums{static_cast<std::int64_t>(scheduler_.waiting()), forgotten_};
  for (const auto& [number, one] : scheduler_.statistics()) sums.waited = saturating_sum(sums.waited, one.waited);
  return sums;
}

std::string ForwardQueue::shares() const {
  using ApplicationShare = std::pair<const std::string*, ApplicationStatistics>;
  const std::lock_guard lock(mutex_);
  std::vector<ApplicationShare> shares;
  for (const auto& [name, number] : numbers_) {
    const auto found = scheduler_.statistics().find(number);
    if (found != scheduler_.statistics().end()) shares.emplace_back(&name, found->second);
  }
  std::ranges::stable_sort(shares, std::greater{}, [](const ApplicationShare& one) { return one.second.bytes; });
  shares.resize(std::min(shares.size(), most_shares));
  std::string text;
  for (const auto& [name, one] : shares) {
    text += std::to_string(one.requests) + " " + std::to_string(one.bytes) + " " + std::to_string(one.waited.count()) +
            " " + *name + "\n";
  }
  return text;
}

}  // namespace hocket::forward
