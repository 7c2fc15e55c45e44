// Servers keeps the I/O servers and the server map: the list of servers in use. The map is the control variable that
// steers collective I/O (CLARISSE, section IV-A).
//
// The servers policy says which of them are in use (policy/server_policy.hpp, deciding.cpp).
//
// server_states.hpp is the table of a server's states: up, drained, slow, hung, or lost.
//
// The map holds the servers that are up, in their order of arrival. Servers can be assigned to an application. It then
// has a map of its own, in which the others are set aside. Each change begins a new epoch: every member of every
// application whose map has changed receives it (SERVER_MAP). Applications adopt it at their control points and report
// that (MAP_ADOPTED). Servers that write behind receive a new list of all first, and applications their maps only when
// these have stored what they held (storing_states.hpp). While the maps of applications differ, these servers write
// through: a byte then has a server in each map, and what one of them held would be hidden from the others.
//
// A server promises a heartbeat: a SERVER_LOAD at least every `Server::heartbeat` while its loop runs. If five are
// missing, it is hung: the daemon kills it (HUNG_IO_SERVER), and the map loses it when its process has ended
// (SERVER_ENDED). A slow access is no hang, because the loop runs on. If this daemon itself did not run for a while,
// the heartbeats may only be unread, so all servers get their time anew.
//
// A slow server stays out for a hold-off. A server without requests has no service times, so only a trial can show
// whether it has recovered. The hold-off doubles each time that the server is found slow again, up to
// `model::longest_hold_off`. It starts anew once the server was up for four times the last hold-off. The last server of
// the map is never taken out for slowness. If the map would become empty because the others left or were drained, a
// slow server returns at once. While it is out, the map names it as set aside: it stays the home of its data sets.
//
// Servers have weights: a loaded one gets a smaller share of the stripes of files. A weight is in each map, so a change
// begins a new epoch for all.
//
// A policy changes a server or an application at most every `between_changes`, so that a policy which changes its mind
// at every event does not keep applications from working. An application that forwards may also be changed once after
// each change of the set of such applications, or of the servers that are up: it adopts a map at once, because servers
// hold none of its data. What a server was drained for by hand stays. A DECISION says what was done, and once what was
// not, and why.
//
// A drained server may keep data sets. It then stays in the map as set aside, so that applications find them there,
// until it has said that it keeps none any more (moving.cpp).
//
// Servers is a part of the coordinator; pure, not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coordinator/command.hpp"
#include "coordinator/servers/server_states.hpp"
#include "coordinator/servers/storing_states.hpp"
#include "event/chooser.hpp"
#include "event/server_map.hpp"
#include "model/cluster.hpp"
#include "model/slow_servers.hpp"
#include "policy/server_policy.hpp"

namespace hocket::coordinator {

using model::SlowServers;

// The known servers with their states and loads. A call costs O(servers); a new map costs one message for each member.
class Servers {
 public:
  static constexpr std::size_t most = 1024;  // servers, lost ones included; beyond it the oldest lost one is forgotten
  static constexpr std::int64_t missed_heartbeats = 5;            // that make a server hung
  static constexpr std::size_t longest_name = 64;                 // of a server
  static constexpr std::string_view all_servers = "all";          // in SET_SERVER
  static constexpr Duration cut_limit = std::chrono::seconds{5};  // for the end of a process after its connection's
  // Least time between two changes of one server or application by a policy, and the longest that a policy waits for an
  // application to adopt its last map.
  static constexpr Duration between_changes = std::chrono::seconds{5};
  static constexpr Duration adoption_limit = std::chrono::seconds{60};
  static constexpr Duration load_window = std::chrono::seconds{1};  // of the load in listings
  static constexpr Duration standstill = std::chrono::seconds{1};   // a tick that is later: the daemon did not run

  // The arguments must outlive this object. `decisions` counts those that the coordinator has published.
  Servers(const CoordinatorSettings& settings, const model::Cluster& cluster, std::int64_t& decisions)
      : settings_(settings),
        cluster_(cluster),
        policy_(&settings.policy.for_servers()),
        decisions_(decisions),
        detector_(settings.slow_server) {}

  // This leader changes no map from now on, except that servers leave it which have ended or hang: accesses to them
  // would fail. It takes no servers, and asks no policy.
  void only_grant() { only_grants_ = true; }

  // Handles SERVER: a server joins the map, or is refused with the reason.
  void arrive(const Moment& moment, const event::Server& server);
  // Handles SERVER_LOAD: counts the server's work.
  void load(const Moment& moment, const event::ServerLoad& load);
  // Handles MAP_STORED: a server that writes behind holds nothing of earlier epochs any more.
  void stored(const Moment& moment, const event::MapStored& said);
  // Handles DATA_SETS_LEFT: what a drained server still keeps of data sets.
  void left(const Moment& moment, const event::DataSetsLeft& left);
  // Handles SCHEDULER_USED: a server orders accesses by another scheduler, or says why not.
  void scheduler_used(const Moment& moment, const event::SchedulerUsed& used);
  // Handles ASK_APPLICATION: tells a server to which application a client of it belongs.
  void vouch(const Moment& moment, const event::AskApplication& asked);
  // Handles SERVER_ENDED: the process of a server has ended.
  void ended(const Moment& moment, const event::ServerEnded& ended);
  // Handles SET_SERVER of a tool: drains a server, adds it to the map again, assigns servers to an application, changes
  // the scheduler of servers, or the weight of an application.
  void set(const Moment& moment, const event::SetServer& set);
  // Handles SLOW_IO_SERVER of an external monitor: takes the named server out of the map for a hold-off.
  void told_slow(const Moment& moment, const event::SlowIoServer& told);
  // Puts another policy in force. What the earlier one drained is added, and what it assigned is taken back.
  void set_policy(const Moment& moment, const policy::ServerPolicy& policy);
  // Asks the policy, and does what it wants. Called after an event that changed what it may see.
  void decide(const Moment& moment);
  // True if the policy gives out servers to applications, and the set of either has changed since it decided.
  bool must_arbitrate() const { return !only_grants_ && policy_->arbitrates && set_ != decided_set_; }
  // Handles MAP_ADOPTED: records the oldest epoch that the member's files still use.
  void adopted(const Moment& moment, const model::Member& member, const event::MapAdopted& said);
  // Sends the current map to a member that was just welcomed. Sends nothing before the first map.
  void welcome(const Moment& moment, const model::Member& member);
  // Handles BYE or LOST of the member that sent the event: a server, or the user of a map. `app` is the application
  // that it belonged to; 0: none.
  void leave(const Moment& moment, AppId app);
  // Returns the slow servers to the map whose hold-off is over, and finds the hung ones.
  void tick(const Moment& moment);

  // Returns the earliest end of a hold-off, or of the time for a heartbeat.
  std::optional<Time> deadline() const;
  // True if the daemon must report the end of this process (SERVER_ENDED). `instance` is that of its SERVER.
  bool awaits_end(std::string_view server, std::int64_t pid, std::string_view instance) const;
  // True if the process may still write, though nobody can use it: the map waits for its end.
  bool may_still_write(std::string_view server, std::int64_t pid, std::string_view instance) const;

  // Returns the epoch of the newest list of all servers. Applications may still have an earlier one, until all servers
  // have stored what they held.
  std::int64_t epoch() const { return list_.epoch; }
  // Returns the oldest epoch that a member of the application uses; 0 if none uses I/O servers.
  std::int64_t epoch_of(const model::Application& application) const;
  // Returns the servers of an application that has a map of its own, "s1, s2"; "" for another.
  std::string own_servers_of(const model::Application& application) const;
  // Returns the servers that are assigned to an application, "s1, s2", in use or not; "": none.
  std::string assigned_to(const model::Application& application) const;
  // Returns how many servers are assigned to an application; 0: none, -1: it uses all.
  std::int64_t given_to(const model::Application& application) const;
  // Describes the application's weight in a row of a listing.
  void describe_weight(const model::Application& application, event::Application& row) const;
  // Returns the bandwidth in bytes/s that the policy expects of an application; 0: not known.
  double expected_of(const model::Application& application) const;
  // Returns the servers as rows of a listing, in order of arrival.
  std::vector<event::IoServer> describe(Time now) const;

 private:
  // One report, or a sum of reports: operations, bytes, and the time that the operations took at the server.
  struct ServerWork {
    Time at;
    std::int64_t operations;
    std::int64_t bytes;
    Duration service;
  };
  // A request scheduler.
  struct SchedulerChoice {
    std::string name;
    std::string by;    // event/chooser.hpp
    std::string text;  // why, in the words of a policy in Python
  };
  // One server: its SERVER message, its state, and its load.
  struct ServerEntry {
    event::Server said;
    std::string node{};  // on which it runs
    MemberId member;     // none: lost
    ServerState state = ServerState::unknown;
    bool in_map = false;                         // as of the last map; a hung server keeps it
    bool drained = false;                        // it was drained when it became hung
    Time since{};                                // begin of that state
    Time heard{};                                // its last heartbeat
    StoringState storing = StoringState::clear;  // always clear if it writes through
    bool told_cut = false;                       // the daemon was told to kill it, because its end is not known
    std::int64_t epoch = 0;                      // first map epoch in that state; 0: not published yet
    ServerWork sums{};                           // since its arrival
    std::deque<ServerWork> recent;               // reports of the last second
    std::int64_t queue = 0;
    std::int64_t held_bytes = 0;
    Duration last_service{};        // mean time of an operation in the last report with any
    Duration hold_off{};            // the last hold-off; 0: it was never slow, or an operator added it
    Time back{};                    // end of the last hold-off, which may be past
    bool by_hand = false;           // a tool drained it
    bool by_policy = false;         // a policy drained it
    std::optional<Time> changed{};  // by a policy, the last time
    bool moves_data_sets = false;   // it is drained, and may keep data sets
    event::MoveDataSets told{};     // the last one that it was sent
    event::DataSetsLeft left{};     // its last answer
    int weight = event::full_weight;
    event::ServerLoad forwarding{};  // its reports of forwarded calls, summed up
    // The newest choice that the server was told, while answers are missing; then, the one in force is in `said`.
    SchedulerChoice told_choice{};
    std::int64_t unanswered = 0;      // USE_SCHEDULER
    std::optional<Time> scheduled{};  // by a policy, the last time
    std::string refused{};            // the last scheduler of a policy that it refused

    SchedulerChoice choice() const {
      return unanswered > 0 ? told_choice : SchedulerChoice{said.scheduler, said.scheduler_by, {}};
    }
  };

  // A server map as it is sent.
  struct MapText {
    std::int64_t epoch = 0;  // 0: there is none
    std::string text;        // one line for each server
    event::Tuning tuning{};
    bool direct = false;  // the application accesses its files directly
  };
  // What one application uses.
  struct ApplicationMap {
    AppId app;
    bool forwards = false;
    std::set<std::string> assigned;  // names; empty: all, or none if it is `direct` or `none_fits`
    bool direct = false;
    bool none_fits = false;         // as in policy::ServerChange: its map names none
    event::ServersGiven given;      // the facts behind the policy's assignment
    std::int64_t changed_set = 0;   // `set_` when a policy changed it last
    bool by_hand = false;           // a tool assigned them
    event::Tuning tuning;           // as a policy has set it
    bool reassigned = false;        // or tuned, since `newest` was made
    std::optional<Time> changed;    // by a policy, the last time
    std::optional<Time> tuned;      // the same
    std::set<std::string> ignored;  // kinds of obstacles that were published since then
    MapText newest;
    MapText handed;       // the one that its members have
    bool is_own = false;  // `handed` differs from that of others
    // Members that may use a map of its own, with the newest epoch of such a map. They do until they have adopted a
    // later one.
    std::map<MemberId, std::int64_t> apart;
    event::MapAdopted said;   // the last report of a tuning in use
    std::int64_t weight = 1;  // in I/O servers
    std::string weight_by{event::chooser::by_default};
  };

  // Takes an operator's word for the end of a server.
  void end_by_hand(const Moment& moment, const event::SetServer& set);
  std::string own_node(const model::Application& application) const;
  ServerEntry* find(std::string_view name);
  const ServerEntry* find(std::string_view name) const;
  ServerEntry* find(MemberId member);
  // Returns the entry of this run of a server, not that of another one of its name.
  const ServerEntry* find(std::string_view name, std::int64_t pid, std::string_view instance) const;
  static ServerState state_of(const ServerEntry* entry) {
    return entry == nullptr ? ServerState::unknown : entry->state;
  }
  std::size_t up() const;
  // Returns what the policy sees of the servers.
  std::vector<policy::ServerStatus> statuses(Time now) const;
  // Returns why a SERVER message is refused; "" if it is accepted.
  std::string what_is_wrong(const Moment& moment, const event::Server& server);
  // Forgets the oldest lost server if the list is full.
  void make_room();
  // Feeds an input into a server's state machine, and notifies the detector if the server enters or leaves the map. The
  // caller carries out the action.
  void apply(ServerEntry& entry, ServerInput input, Time now);
  // Returns the input for a server that was found slow.
  ServerInput slow_input() const { return up() > 1 ? ServerInput::slow : ServerInput::slow_alone; }
  void ask(const Moment& moment);
  std::vector<policy::AssignedServers> assignments() const;
  std::vector<policy::TunedApplication> tuned() const;
  // Carry out one change that the policy wants, or say why not.
  void change(const Moment& moment, const policy::ServerChange& change);
  // Carries out the assignments of one decision together, so that one epoch has them all.
  void assign(const Moment& moment, const std::vector<const policy::ServerChange*>& changes);
  // Returns true if the application has other servers now.
  bool reassign(const Moment& moment, const policy::ServerChange& change);
  void tune(const Moment& moment, const policy::ServerChange& change);
  // Carries out the new weights of one decision together, because each new map costs applications an adoption.
  void weigh(const Moment& moment, const std::vector<const policy::ServerChange*>& changes);
  void assign_by_hand(const Moment& moment, const event::SetServer& set);
  void assign(ApplicationMap& map, std::set<std::string> names, bool direct = false, bool none_fits = false);
  // The schedulers and weights of forwarded calls (forwarding.cpp). An operator's choice goes before a policy's, which
  // goes before the configuration's.
  void schedule_by_hand(const Moment& moment, const event::SetServer& set);
  void schedule(const Moment& moment, const policy::ServerChange& change);
  // True if a server that has arrived needs no other scheduler.
  bool is_as_configured(const ServerEntry& entry) const;
  // Has the server use what the configuration or its start say.
  void schedule_by_default(const Moment& moment, ServerEntry& entry);
  static void choose(const Moment& moment, ServerEntry& entry, SchedulerChoice choice, const event::SetServer& numbers);
  static std::optional<event::Reason> obstacle_to_scheduler(const ServerEntry* entry,
                                                            const policy::ServerChange& change, Time now);
  void weigh_by_hand(const Moment& moment, const event::SetServer& set);
  void weigh_application(const Moment& moment, const policy::ServerChange& change);
  // Gives the application the weight that the configuration says, else 1.
  void weigh_by_default(const Moment& moment, const model::Application& application, ApplicationMap& map);
  void weigh(const Moment& moment, const model::Application& application, ApplicationMap& map, std::int64_t weight,
             std::string_view by, std::string text);
  // Tells a server the weights of applications that are not 1.
  void tell_weights(const Moment& moment, const ServerEntry& entry) const;
  std::set<std::string> least_assigned(std::size_t count, const model::Application& application) const;
  // Returns how many servers are up that fit the application.
  std::size_t up_for(const model::Application& application) const;
  // Returns the first of these names that no running server has; "" if all run.
  std::string gone_among(const std::set<std::string>& names) const;
  // Returns the first of these running servers that does not fit the application; none if all do.
  const ServerEntry* misfit_among(const std::set<std::string>& names, const model::Application& application) const;
  // Return why a server, or the servers of an application, are not changed so; nothing if they can be.
  std::optional<event::Reason> obstacle(const model::Application& application, const ApplicationMap& map,
                                        const std::set<std::string>& names, bool direct, Time now) const;
  std::optional<event::Reason> obstacle(const ServerEntry* entry, const policy::ServerChange& change, Time now) const;
  std::optional<event::Reason> obstacle_to_weight(const ServerEntry* entry, const policy::ServerChange& change,
                                                  Time now) const;
  // Returns why an application that a policy changed at that time is not changed again yet; nothing if it can be.
  std::optional<event::Reason> too_soon(const model::Application& application, const ApplicationMap& map,
                                        std::optional<Time> changed, Time now) const;
  // Publishes a DECISION about a server.
  void tell(const Moment& moment, std::string about, std::string_view action, std::string text, event::Reason reason,
            event::Reason obstacle);
  // The same about something that is not done, unless `said` has the obstacle already.
  void ignore(const Moment& moment, const std::string& about, std::set<std::string>& said, std::string text,
              event::Reason obstacle);
  // The same about a server.
  void ignore(const Moment& moment, const ServerEntry* entry, const policy::ServerChange& change,
              event::Reason obstacle);
  // Returns the names of the servers that are in use by the list of all, or by an application, for people.
  std::string names_in_use() const;
  std::string names_in_use(const ApplicationMap& map) const;
  // Takes a slow server out of the map for a hold-off and publishes SLOW_IO_SERVER. `finding`: the detector's
  // measurement; nothing if a monitor named the server.
  void hold_off(const Moment& moment, ServerEntry& entry, const std::optional<SlowServers::Finding>& finding);
  // Feeds an input into the state machine of what a server has to store. Does nothing for one that writes through.
  void store(const Moment& moment, ServerEntry& entry, StoringInput input) const;
  // Returns the time at which a connected server becomes hung; none if it promises no heartbeat.
  static std::optional<Time> silent_at(const ServerEntry& entry);
  // Returns the time at which a lost server, whose end is not known, is to be killed.
  static std::optional<Time> cut_at(const ServerEntry& entry);
  // Makes a server hung whose heartbeat is missing, and has the daemon kill it.
  void find_hung(const Moment& moment);
  void kill(const Moment& moment, const ServerEntry& entry) const;
  // Begins a new epoch if a map has changed, and hands the newest maps out as soon as that is safe.
  void publish(const Moment& moment);
  void hand_out(const Moment& moment);
  // Tells servers that keep data sets which servers stay and which are drained, where that has changed.
  void tell_of_moves(const Moment& moment);
  static void hand(const Moment& moment, ApplicationMap& map, MemberId member);
  // Keeps what an application uses of its tuning, and publishes once that its hints go first.
  void take_use(const Moment& moment, const model::Application& application, ApplicationMap& map,
                const event::MapAdopted& said);
  std::vector<event::ServerMap::MappedServer> in_map() const;
  static std::vector<event::ServerMap::MappedServer> map_of(const ApplicationMap& map,
                                                            std::vector<event::ServerMap::MappedServer> all);
  // Tells the detector which servers the same applications use.
  void regroup();
  // True if an application has, or may still use, a map of its own.
  bool are_maps_apart() const;
  // Forgets the member, and the application that has ended with it.
  void forget(MemberId member, AppId app);
  static bool is_name(std::string_view name);
  static void refuse(const Moment& moment, std::string text);

  // Returns the sum of a server's reports of the last second.
  static ServerWork recent_work(const ServerEntry& entry, Time now);

  bool only_grants_ = false;
  const CoordinatorSettings& settings_;
  const model::Cluster& cluster_;
  const policy::ServerPolicy* policy_;
  std::int64_t& decisions_;
  std::map<std::string, std::set<std::string>> ignored_;  // by server: the kinds of obstacles that were published
  std::optional<Time> weighed_;                           // the last time that a policy changed weights
  SlowServers detector_;
  std::vector<ServerEntry> entries_;
  std::map<AppId, ApplicationMap> maps_;  // of all applications
  // Applications that forward, or whose map was changed since they came. The maps of all others are the list of
  // servers, so that what happens to one application need not look at them: there may be 100,000.
  std::set<AppId> changed_maps_;
  // Counts changes of the servers that are up, of the applications that forward and whose servers nobody has assigned
  // by hand, and of the policy. `decided_set_` is that of the policy's last decision.
  std::int64_t set_ = 0;
  std::int64_t decided_set_ = 0;
  bool users_changed_ = false;     // the applications that use some server, since the detector was told of them
  std::int64_t epoch_ = 0;         // the newest of any map
  std::int64_t told_epoch_ = 0;    // the newest that servers were told
  std::int64_t moves_ = 0;         // counts MOVE_DATA_SETS
  std::int64_t handed_epoch_ = 0;  // `epoch_` when maps were handed out last
  bool write_through_ = false;     // as servers were told
  MapText list_;                   // of all servers
  MapText handed_list_;            // the same, as applications have it
  std::vector<event::ServerMap::MappedServer> handed_;
  std::unordered_map<MemberId, std::int64_t> adopted_;  // oldest epochs in use, of the members that use I/O servers
};

}  // namespace hocket::coordinator
