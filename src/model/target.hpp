// What is shared, who holds it and who waits for it. Plain data: the coordinator changes it, policies read it.
#pragma once

#include <list>
#include <map>
#include <string>
#include <utility>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "model/access_history.hpp"
#include "model/io_demand.hpp"
#include "model/progress.hpp"
#include "model/uncoordinated.hpp"

namespace hocket::model {

struct Application;
struct Target;

enum class RequestState { queued, granted };

// An I/O operation that waits for its grant, or has it.
struct Request {
  RequestId id;
  MemberId member;
  AppId application;
  const Application* of = nullptr;  // that application
  Target* target = nullptr;
  RequestState state = RequestState::queued;
  std::int64_t bytes = 0;   // of all processes; 0 where not known
  std::size_t kind = 0;     // of the application's AccessHistory
  std::int64_t before = 0;  // that other requests of the phase had moved when it was asked
  Time since{};             // queued: since when
  Time granted{};           // since when
  Time expires{};           // granted: end of the lease
  Time too_slow{};          // queued: granted then, whoever holds the target; 0: no bound
  std::uint64_t order = 0;  // of arrival at the target
  bool paused = false;      // queued: it was granted, and stopped in the middle
  double served_s = 0;      // of it, before it was stopped in the middle, in seconds alone
  bool told = false;        // granted: it was told to pause, and has not answered
};
using Requests = std::list<Request>;  // moved between lists, never copied: iterators stay valid

// An application that has a target: it does I/O, or the target is kept for its next operation.
struct Holder {
  Application* application = nullptr;
  Target* target = nullptr;
  std::int64_t grants = 0;  // 0: kept
  Time since{};             // when it came
  Time kept_until{};        // where grants is 0
  bool pausing = false;     // it is to stop: the target is free for others when it has no grants
  Time told{};              // pausing: since when
  double share = 1;         // of the bandwidth, as it was told last
  Progress::User user{};    // while it has grants
  Occupancy occupancy{};    // while it has grants
  ByLoad others_before{};   // Target::present_s when that began
};
using Holders = std::list<Holder>;

struct alignas(64) Target {
  std::string name;
  std::uint64_t number = 0;        // in order of first use: the order in which the coordinator looks at targets
  TargetRecord* record = nullptr;  // what was learnt of it; outlives it
  std::uint64_t arrivals = 0;      // requests so far
  Time last_wait{};                // somebody waited until then
  Requests waiting;                // in order of arrival; those that were interrupted by their first one
  Holders holders;                 // one, under an exclusive policy; in the order in which they came to it
  std::map<std::pair<Time, AppId>, Holders::iterator> kept;  // holders without a grant, by the end of that
  bool shared = false;                                       // a holder was told a share that is not all of it
  std::int64_t pausing = 0;                                  // holders that are to stop
  std::int64_t paused = 0;                                   // requests that wait since they were interrupted
  Time remind{};                              // where somebody waits: when those who wait are told so again
  Time wake{};                                // where somebody waits: the next time at which something is due here
  Time again{};                               // when the policy wants to be asked again; 0: not
  Progress progress;                          // of holders with grants
  Time served{};                              // up to when that is counted
  std::array<std::int64_t, loads> present{};  // holders with grants, by what their accesses load
  ByLoad present_s{};                         // their numbers, summed over time
  Uncoordinated uncoordinated;                // where the bound on slowdowns is in force

  bool idle() const { return waiting.empty() && holders.empty(); }
};

}  // namespace hocket::model
