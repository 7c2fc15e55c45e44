#include "forward/storage_queue.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::forward {

using request_scheduler::ApplicationStatistics;
using request_scheduler::IoRequest;
using request_scheduler::NextBatch;
using request_scheduler::RequestBatch;
using request_scheduler::RequestScheduler;
using request_scheduler::SchedulerSettings;

namespace {

constexpr std::size_t most_applications = 256;   // beyond, those that came first are forgotten
constexpr std::size_t most_shares = 32;          // so that a report stays short
constexpr std::string_view unordered = "fifo";   // the scheduler under which batches are not offered
constexpr std::uint32_t offer_flag = 1U << 31U;  // keeps offers out of the queues of calls
constexpr Duration shared_for = std::chrono::seconds{1};

SchedulerSettings settings_with(SchedulerSettings settings, const SchedulerChoice& choice) {
  if (choice.data_servers != 0)
    settings.twins_servers =
        static_cast<int>(std::clamp<std::int64_t>(choice.data_servers, -1, std::numeric_limits<int>::max()));
  if (choice.stripe_bytes != 0) settings.twins_stripe = choice.stripe_bytes;
  return settings;
}

}  // namespace

Result<std::unique_ptr<StorageQueue>> StorageQueue::create(QueueSettings settings) {
  auto scheduler = RequestScheduler::create(settings.scheduler.name, settings_with({}, settings.scheduler));
  if (!scheduler) return scheduler.error();
  return std::unique_ptr<StorageQueue>{new StorageQueue(std::move(settings), std::move(scheduler).value())};
}

StorageQueue::StorageQueue(QueueSettings settings, RequestScheduler scheduler)
    : settings_(std::move(settings)),
      data_servers_(settings_.read_stripes),
      scheduler_(std::move(scheduler)),
      scheduler_settings_(settings_with({}, settings_.scheduler)),
      by_(settings_.scheduler.by),
      needs_data_servers_(scheduler_.needs_data_servers()),
      orders_batches_(scheduler_.name() != unordered),
      clients_([this](const std::string& name) { return number_of(name); }) {}

void StorageQueue::wake_forwarding_with(std::function<void()> wake) {
  const std::lock_guard lock(wake_mutex_);
  wake_forwarding_ = std::move(wake);
}

void StorageQueue::wake_engine_with(std::function<void()> wake) {
  const std::lock_guard lock(wake_mutex_);
  wake_engine_ = std::move(wake);
}

void StorageQueue::wake(bool engine, bool forwarding) const {
  if (!engine && !forwarding) return;
  const std::lock_guard lock(wake_mutex_);
  if (engine && wake_engine_) wake_engine_();
  if (forwarding && wake_forwarding_) wake_forwarding_();
}

std::uint64_t StorageQueue::number_of(const std::string& application) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = numbers_.emplace(application, last_number_ + 1);
  if (!is_new) return found->second;
  ++last_number_;
  if (application.empty()) unknown_ = last_number_;
  if (numbers_.size() > most_applications) {
    const auto age = [this](const auto& one) { return one.second == unknown_ ? last_number_ : one.second; };
    const auto oldest = std::ranges::min_element(numbers_, {}, age);
    const auto counted = scheduler_.statistics().find(oldest->second);
    if (counted != scheduler_.statistics().end()) forgotten_ += counted->second.waited;
    scheduler_.forget(oldest->second);
    batched_.erase(oldest->second);
    numbers_.erase(oldest);
  }
  return last_number_;
}

// Notes that an application has an access. Of one that is not known, nobody can say that it is another one.
void StorageQueue::note(std::uint64_t application) {
  if (application == unknown_) return;
  const std::uint64_t before = std::exchange(last_application_, application);
  if (before != 0 && before != application)
    shared_until_ns_ = (settings_.clock() + shared_for).time_since_epoch().count();
}

// ---- slots ---------------------------------------------------------------------------------------------------------

bool StorageQueue::has_slot() const {
  return under_way_ < (orders_batches_ ? slots() : std::max(settings_.forwarded, 1));
}

// True if offers are granted, or the scheduler has named a time at which it may grant some.
bool StorageQueue::has_news_for_engine() const { return !granted_.empty() || (offers_ > 0 && again_); }

bool StorageQueue::has_call() const { return !ready_.empty() || (calls_ > 0 && has_slot()); }

// Gives free slots to what the scheduler says is next. `for_call`: a thread wants one call. As many further calls are
// chosen only as batches compete for the slots, because later calls may still join those that wait.
void StorageQueue::dispatch(bool for_call) {
  again_.reset();
  while (has_slot() && ((for_call && ready_.empty()) || offers_ > 0)) {
    NextBatch next = scheduler_.next(settings_.clock());
    if (!next.batch) {
      again_ = next.again;
      return;
    }
    ++under_way_;
    RequestBatch& batch = *next.batch;
    if (const std::uint64_t ticket = batch.tickets.front(); ticket >= first_offer) {
      --offers_;
      granted_.push_back(ticket);
      batch_of_offer_.emplace(ticket, batch.number);
    } else {
      calls_ -= batch.tickets.size();
      ready_.push_back(std::move(batch));
    }
  }
}

// ---- forwarded calls -----------------------------------------------------------------------------------------------

bool StorageQueue::add(IoRequest request) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t application = request.application;
  if (!scheduler_.add(std::move(request))) return false;
  note(application);
  ++calls_;
  return true;
}

NextBatch StorageQueue::take() {
  NextBatch taken;
  bool concerns_engine = false;
  {
    const std::lock_guard lock(mutex_);
    dispatch(true);
    if (ready_.empty()) {
      concerns_engine = !granted_.empty();  // this thread asks again in time
      taken.again = again_;
    } else {
      concerns_engine = has_news_for_engine();
      taken.batch = std::move(ready_.front());
      ready_.pop_front();
    }
  }
  wake(concerns_engine, false);
  return taken;
}

// The thread of the call asks for the next one soon, so it need not be woken.
void StorageQueue::done(std::uint64_t batch) {
  bool concerns_engine = false;
  {
    const std::lock_guard lock(mutex_);
    if (scheduler_.done(batch)) --under_way_;
    if (offers_ > 0) dispatch(false);
    concerns_engine = has_news_for_engine();
  }
  wake(concerns_engine, false);
}

bool StorageQueue::has_more() const {
  const std::lock_guard lock(mutex_);
  return has_call();
}

void StorageQueue::drop_calls() {
  bool has_granted = false;
  {
    const std::lock_guard lock(mutex_);
    scheduler_.drop_if([](const IoRequest& request) { return !request.is_offer; });
    calls_ = 0;
    for (const RequestBatch& batch : std::exchange(ready_, {})) {
      scheduler_.done(batch.number);
      --under_way_;
    }
    dispatch(false);
    has_granted = !granted_.empty();
  }
  wake(has_granted, false);
}

// ---- batches -------------------------------------------------------------------------------------------------------

std::uint64_t StorageQueue::offer(IoRequest request) {
  const std::lock_guard lock(mutex_);
  request.ticket = ++last_offer_;
  request.is_offer = true;
  request.flags |= offer_flag;
  const std::uint64_t application = request.application;
  if (!scheduler_.add(std::move(request))) return 0;
  note(application);
  ++offers_;
  return last_offer_;
}

StorageQueue::Grants StorageQueue::granted() {
  Grants grants;
  bool has_call_now = false;
  {
    const std::lock_guard lock(mutex_);
    dispatch(false);
    grants.tickets.swap(granted_);
    grants.again = again_;
    has_call_now = has_call();
  }
  wake(false, has_call_now);
  return grants;
}

void StorageQueue::ended(std::uint64_t ticket) {
  bool wakes_forwarding = false;
  {
    const std::lock_guard lock(mutex_);
    const auto batch = batch_of_offer_.find(ticket);
    if (batch == batch_of_offer_.end()) return;
    scheduler_.done(batch->second);
    batch_of_offer_.erase(batch);
    --under_way_;
    // The engine asks for grants after this, and so chooses. Without offers, a thread of forwarding has to.
    wakes_forwarding = offers_ == 0 && has_call();
  }
  wake(false, wakes_forwarding);
}

void StorageQueue::withdraw(std::span<const std::uint64_t> tickets) {
  const auto is_one = [&](std::uint64_t ticket) { return std::ranges::find(tickets, ticket) != tickets.end(); };
  std::vector<std::uint64_t> had_slot;
  bool wakes_forwarding = false;
  {
    const std::lock_guard lock(mutex_);
    offers_ -= scheduler_.drop_if([&](const IoRequest& request) { return is_one(request.ticket); }).size();
    std::ranges::copy_if(granted_, std::back_inserter(had_slot), is_one);
    std::erase_if(granted_, is_one);
    wakes_forwarding = offers_ == 0 && has_call();
  }
  wake(false, wakes_forwarding);
  for (const std::uint64_t ticket : had_slot) ended(ticket);
}

void StorageQueue::drop_batches() {
  bool wakes_forwarding = false;
  {
    const std::lock_guard lock(mutex_);
    scheduler_.drop_if([](const IoRequest& request) { return request.is_offer; });
    offers_ = 0;
    granted_.clear();
    for (const auto& [ticket, batch] : std::exchange(batch_of_offer_, {})) {
      scheduler_.done(batch);
      --under_way_;
    }
    wakes_forwarding = has_call();
  }
  wake(false, wakes_forwarding);
}

void StorageQueue::count(std::span<const BatchShare> shares) {
  const std::lock_guard lock(mutex_);
  for (const BatchShare& one : shares) {
    ApplicationStatistics& sums = batched_[one.application];
    sums.requests += one.requests;
    sums.bytes = saturating_sum(sums.bytes, one.bytes);
    sums.waited = saturating_sum(sums.waited, one.waited);
  }
}

// ---- both ----------------------------------------------------------------------------------------------------------

// The engine takes its offers back when it sees that the scheduler is one under which there are none.
Result<StorageQueue::Switched> StorageQueue::use(const SchedulerChoice& choice) {
  Switched switched;
  {
    const std::lock_guard lock(mutex_);
    const SchedulerSettings settings = settings_with(scheduler_settings_, choice);
    switched = {scheduler_.name(), static_cast<std::int64_t>(scheduler_.waiting())};
    const std::string& name = choice.name.empty() ? settings_.scheduler.name : choice.name;
    if (Status status = scheduler_.use(name, settings); !status) return status.error();
    scheduler_settings_ = settings;
    by_ = choice.by;
    needs_data_servers_ = scheduler_.needs_data_servers();
    orders_batches_ = scheduler_.name() != unordered;
  }
  data_servers_.forget();
  // The earlier one may have let accesses wait for a time that means nothing now.
  wake(true, has_more());
  return switched;
}

SchedulerChoice StorageQueue::scheduler() const {
  const std::lock_guard lock(mutex_);
  return {scheduler_.name(), 0, 0, by_};
}

StorageQueue::Waiting StorageQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  Waiting sums{static_cast<std::int64_t>(calls_), forgotten_};
  for (const auto& [number, one] : scheduler_.statistics()) sums.waited = saturating_sum(sums.waited, one.waited);
  return sums;
}

// Returns what an application has had of both kinds.
ApplicationStatistics StorageQueue::sum_of(std::uint64_t application) const {
  ApplicationStatistics sum;
  const auto called = scheduler_.statistics().find(application);
  if (called != scheduler_.statistics().end()) sum = called->second;
  const auto batched = batched_.find(application);
  if (batched == batched_.end()) return sum;
  sum.requests += batched->second.requests;
  sum.bytes = saturating_sum(sum.bytes, batched->second.bytes);
  sum.waited = saturating_sum(sum.waited, batched->second.waited);
  return sum;
}

std::string StorageQueue::shares() const {
  using ApplicationShare = std::pair<const std::string*, ApplicationStatistics>;
  const std::lock_guard lock(mutex_);
  std::vector<ApplicationShare> shares;
  for (const auto& [name, number] : numbers_) {
    const ApplicationStatistics sum = sum_of(number);
    if (sum.requests > 0) shares.emplace_back(&name, sum);
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
