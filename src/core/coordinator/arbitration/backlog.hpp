// The Backlog keeps events that members sent in batches, until they can be handled in the order in which they happened.
// The batches of several members of one application overlap in time: handled as they come, the I/O of two members
// would seem to follow each other.
//
// Pure, not thread-safe. A call costs the logarithm of the number of events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/batches.hpp"
#include "base/ids.hpp"
#include "event/event.hpp"

namespace hocket::coordinator {

class Backlog {
 public:
  // Most events of an application. The caller handles them all when there are more.
  static constexpr std::size_t most_of_one = 65'536;

  // Adds an event of the application that happened at `then`.
  void add(AppId app, Time then, const event::Event& event) {
    const std::uint64_t number = ++added_;
    by_app_.try_emplace({app, then, number}, event);
    by_time_.emplace(then, number, app);
    EventCount& count = counts_[app];
    ++count.events;
    count.returns += std::holds_alternative<event::ReturnIo>(event.body) ? 1 : 0;
  }
  // Removes and returns the earliest event that happened so long ago that everything before it is known.
  std::optional<event::Event> next_due(Time now) {
    if (by_time_.empty() || std::get<Time>(*by_time_.begin()) + all_known_after > now) return std::nullopt;
    const auto [then, number, app] = *by_time_.begin();
    return take(by_app_.find({app, then, number}));
  }
  // Removes and returns the earliest event of the application.
  std::optional<event::Event> next_of(AppId app) {
    const auto first = by_app_.lower_bound({app, Time::min(), 0});
    if (first == by_app_.end() || std::get<AppId>(first->first) != app) return std::nullopt;
    return take(first);
  }
  // Numbers of events, and of RETURN_IO among them.
  struct EventCount {
    std::size_t events = 0;
    std::int64_t returns = 0;
  };
  bool empty() const { return by_time_.empty(); }
  EventCount count_of(AppId app) const {
    const auto found = counts_.find(app);
    return found == counts_.end() ? EventCount{} : found->second;
  }
  // Returns when `next_due` will return an event.
  std::optional<Time> deadline() const {
    if (by_time_.empty()) return std::nullopt;
    return std::get<Time>(*by_time_.begin()) + all_known_after;
  }

 private:
  using ByApp = std::map<std::tuple<AppId, Time, std::uint64_t>, event::Event>;

  event::Event take(ByApp::iterator place) {
    const auto [app, then, number] = place->first;
    event::Event event = std::move(place->second);
    by_time_.erase({then, number, app});
    by_app_.erase(place);
    EventCount& count = counts_[app];
    count.returns -= std::holds_alternative<event::ReturnIo>(event.body) ? 1 : 0;
    if (--count.events == 0) counts_.erase(app);
    return event;
  }

  ByApp by_app_;
  std::set<std::tuple<Time, std::uint64_t, AppId>> by_time_;
  std::map<AppId, EventCount> counts_;
  std::uint64_t added_ = 0;
};

}  // namespace hocket::coordinator
