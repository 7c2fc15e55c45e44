#include "coordinator/cores/starts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace hocket::coordinator {
namespace {

// The ids count down from here: applications count up, and never come near.
constexpr std::uint64_t first_id = std::numeric_limits<std::int64_t>::max();
// Time for which cores are kept for an application that may start, until its HELLO.
constexpr Duration start_limit = std::chrono::seconds{10};
constexpr Duration longest_wait = std::chrono::hours{1};
constexpr std::int64_t most_processes = std::int64_t{1} << 30;
constexpr std::size_t most_starts = 1024;

}  // namespace

void Starts::ask(const Moment& moment, const event::AskCores& asked) {
  const MemberId asker = moment.event.origin.member;
  if (asked.processes < 1 || asked.processes > most_processes || starts_.size() >= most_starts) {
    moment.commands.push_back(
        {asker, event::Refused{"ASK_CORES for " + std::to_string(asked.processes) + " processes: ask for 1 to " +
                               std::to_string(most_processes) + ", and start at most " + std::to_string(most_starts) +
                               " applications at once"}});
    return;
  }
  joined(asked.job);  // a job that asks again has one claim only
  Start start{asker, AppId{first_id - made_++}, asked.job, asked.application, asked.processes};
  start.asked = moment.now;
  start.until = moment.now + std::clamp(asked.longest, Duration{}, longest_wait);
  cores_.claim(start.id, start.processes, moment.event.origin.node);
  starts_.push_back(std::move(start));
  starts_.back().missing_at_first = missing(starts_.size() - 1);
}

// Returns the cores that the start lacks. Later ones, and those that run, do not get theirs before.
std::int64_t Starts::missing(std::size_t which) const {
  std::int64_t beyond = cores_.taken_beyond();
  for (std::size_t later = which + 1; later < starts_.size(); ++later) beyond -= starts_[later].processes;
  return std::clamp<std::int64_t>(beyond, 0, starts_[which].processes);
}

void Starts::answer(const Moment& moment, std::int64_t coming) {
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    Start& start = starts_[i];
    if (start.answered) continue;
    const std::int64_t lacks = missing(i);
    if (lacks == 0 || coming == 0 || moment.now >= start.until) {
      may_start(moment, start, lacks);
    } else if (!std::exchange(start.told, true)) {
      moment.commands.push_back({start.asker, event::CoresFor{start.job, true, lacks, {}}});
    }
  }
}

// Publishes a DECISION about a start that has waited, for people.
void Starts::may_start(const Moment& moment, Start& start, std::int64_t missing) {
  const Duration waited = moment.now - start.asked;
  moment.commands.push_back({start.asker, event::CoresFor{start.job, false, missing, waited}});
  if (start.told) {
    event::Decision record;
    record.number = ++decisions_;
    record.policy = "cores";
    record.decided_for = start.application;
    record.action = "start";
    record.to = start.processes;
    record.reason =
        event::CoresAwaited{std::max<std::int64_t>(0, start.missing_at_first - missing), missing, to_s(waited)};
    moment.commands.push_back({{}, std::move(record)});
  }
  start.answered = true;
  start.until = moment.now + start_limit;
}

void Starts::leave(MemberId member) {
  std::erase_if(starts_, [&](const Start& start) {
    const bool leaves = start.asker == member && !start.answered;
    if (leaves) cores_.release_all(start.id);
    return leaves;
  });
}

void Starts::joined(const std::string& job) {
  std::erase_if(starts_, [&](const Start& start) {
    const bool comes = start.job == job && !job.empty();
    if (comes) cores_.release_all(start.id);
    return comes;
  });
}

void Starts::expire(Time now) {
  std::erase_if(starts_, [&](const Start& start) {
    const bool ends = start.answered && start.until <= now;
    if (ends) cores_.release_all(start.id);
    return ends;
  });
}

std::optional<Time> Starts::deadline() const {
  std::optional<Time> next;
  for (const Start& start : starts_) next = std::min(next.value_or(Time::max()), start.until);
  return next;
}

}  // namespace hocket::coordinator
