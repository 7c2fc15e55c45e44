// The I/O servers, and the map of those that are used: the control variable by which collective I/O is steered
// (CLARISSE, section IV-A).
//
//                SERVER                     SLOW_IO_SERVER (slow_servers.hpp, or a monitor)
//   (nothing) ──────────────▶ up ─────────────────────────────▶ slow
//                            ▲  │ SET_SERVER drain    hold-off  │
//             SET_SERVER add │  ▼                     is over   │
//                          drained      up ◀────────────────────┘        any ── LOST ──▶ lost,  any ── BYE ──▶
//                          (nothing)
//
// The map holds those that are up, in the order in which they came. Each change of it begins a new epoch, which every
// member of every application is told of (SERVER_MAP); applications adopt it at their control points and say so
// (MAP_ADOPTED).
//
// A slow server is out for a hold-off: what gets no requests has no service times, so nothing but a trial can tell
// whether it has recovered. The hold-off doubles each time that the server is found slow again, up to
// `longest_hold_off`, and begins anew once the server was up for four times the last one. The last server of the map is
// never taken out because it is slow; and where the map would become empty because others left, one that is slow comes
// back at once.
//
// A part of the coordinator; pure and not thread-safe as it is.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/command.hpp"
#include "coordinator/slow_servers.hpp"
#include "event/server_map.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

class Servers {
 public:
  static constexpr std::size_t most = 1024;  // lost ones included, of which the oldest is forgotten then
  static constexpr Duration longest_hold_off = std::chrono::minutes{10};

  // Both must outlive it.
  Servers(const Settings& settings, const model::Cluster& cluster)
      : settings_(settings), cluster_(cluster), detector_(settings.slow_server) {}

  void arrive(const Moment& moment, const event::Server& server);
  void load(const Moment& moment, const event::ServerLoad& load);
  void set(const Moment& moment, const event::SetServer& set);
  // Of a monitor of somebody else's.
  void told_slow(const Moment& moment, const event::SlowIoServer& told);
  void adopted(model::Member& member, const event::MapAdopted& said) const;
  // A member of an application was welcomed.
  void welcome(const Moment& moment, MemberId member) const;
  // The member that said the event, BYE or LOST, has gone: nothing happens where it was no server.
  void leave(const Moment& moment);
  void tick(const Moment& moment);

  // When a slow server is to be tried again.
  std::optional<Time> deadline() const;

  std::int64_t epoch() const { return epoch_; }
  // For listings, in order of arrival.
  std::vector<event::IoServer> describe(Time now) const;

 private:
  enum class State { up, drained, slow, lost };
  struct Work {
    Time at;
    std::int64_t operations;
    std::int64_t bytes;
    Duration service;
  };
  struct Entry {
    event::Server said;
    MemberId member;  // none: lost
    State state = State::up;
    Time since{};
    std::int64_t epoch = 0;
    Work sums{};
    std::deque<Work> recent;  // of the last second
    std::int64_t queue = 0;
    std::int64_t held_bytes = 0;
    Duration last_service{};
    Duration hold_off{};  // the last one; 0: it was never slow
    Time back{};          // when the hold-off is over; also of one that is back
  };

  static std::string_view name_of(State state);
  Entry* find(std::string_view name);
  Entry* find(MemberId member);
  std::size_t up() const;
  std::string what_is_wrong(const Moment& moment, const event::Server& server);
  void make_room();
  void put(Entry& entry, State state, Time now);
  bool found_slow(const Moment& moment, Entry& entry, const std::optional<SlowServers::Finding>& finding);
  // Where the map is another now: the next epoch.
  void publish(const Moment& moment);
  std::vector<event::ServerMap::Server> in_map() const;
  static void refuse(const Moment& moment, std::string text);

  const Settings& settings_;
  const model::Cluster& cluster_;
  SlowServers detector_;
  std::vector<Entry> entries_;
  std::int64_t epoch_ = 0;
  std::string text_;  // of the map
};

}  // namespace hocket::coordinator
