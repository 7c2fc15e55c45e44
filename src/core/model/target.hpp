// A Target is a storage resource that applications contend for, with its holders and the requests that wait for it.
// These are plain data: the coordinator changes them, policies read them. Pure, not thread-safe.
#pragma once

#include <list>
#include <map>
#include <string>
#include <utility>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "model/access_history.hpp"
#include "model/io_demand.hpp"
#include "model/part_set.hpp"
#include "model/progress.hpp"
#include "model/uncoordinated.hpp"

namespace hocket::coordinator {
class Ledger;
}

namespace hocket::model {

struct Application;
struct Target;

enum class RequestState { queued, granted };

// Facts that only the coordinator's Ledger reads and changes: policies cannot. They lie in the records all the same,
// because each event that reads a record needs them too, and a table of their own would be fetched from memory besides.
template <class Facts>
class LedgerOnly {
  friend class coordinator::Ledger;
  Facts facts_{};
};

// The facts about a request beside those that policies read.
struct RequestFacts {
  Time expires{};           // granted: end of the lease; 0: none runs, because of a delegation
  Time too_slow{};          // queued: granted then in any case, to bound the slowdown; 0: no bound
  std::uint64_t order = 0;  // of arrival at the target
  bool told = false;        // granted: PAUSE_IO (of a delegation RECALL_IO) was sent and is not answered yet
};

// An I/O operation that waits for its grant, or has it; or a delegation, which is always granted.
struct Request {
  RequestId id;
  MemberId member;
  AppId application;
  const Application* of = nullptr;  // the application itself
  Target* target = nullptr;
  RequestState state = RequestState::queued;
  std::int64_t bytes = 0;   // of all processes; 0: unknown
  std::size_t kind = 0;     // number in the application's AccessHistory
  std::int64_t before = 0;  // bytes that the phase had moved on arrival
  Time since{};             // queued: since when
  Time granted{};           // time of the grant
  bool paused = false;      // queued: it had a grant and was suspended
  double served_s = 0;      // progress before a suspension, in seconds alone
  PartSet parts{};          // of the target that the operation uses
  bool write_back = false;  // of an I/O server that stores what the application wrote (event::write_back)
  // The member may begin operations without a grant (delegation_states.hpp). The number is that of the request whose
  // GRANT_IO brought it, which is another record.
  bool delegation = false;
  RequestId under{};  // number of the delegation under which the operation was begun; 0: it had a grant of its own
  LedgerOnly<RequestFacts> ledger{};

  // True for an operation of the program itself. The model measures these only.
  bool is_access() const { return !write_back && !delegation; }
};
using Requests = std::list<Request>;  // moved between lists, never copied, so iterators stay valid

// The facts about a holder beside those that policies read.
struct HolderFacts {
  Time kept_until{};  // end of the idle hold, if the holder has no grants, or none but delegations
  Time told{};        // pausing: since when
  double share = 1;   // bandwidth share, as sent last
};

// An application that has a target: it does I/O, or the idle hold keeps the target for its next operation.
struct Holder {
  Application* application = nullptr;
  Target* target = nullptr;
  std::int64_t grants = 0;     // granted requests; 0: idle hold
  Time since{};                // time of its first grant here
  bool pausing = false;        // it is to stop; the target becomes free when it has no grants
  Progress::UserToken user{};  // valid while it has accesses
  Occupancy occupancy{};       // valid while it has accesses
  ByLoad others_before{};      // Target::present_s when the occupancy began
  PartSet parts{};             // that its grants use; in an idle hold those of the last one
  std::int64_t stores = 0;     // those of its grants that are write-backs or delegations
  LedgerOnly<HolderFacts> ledger{};

  // Returns the number of granted requests of the application itself. The model measures these only.
  std::int64_t accesses() const { return grants - stores; }
};
using Holders = std::list<Holder>;

// The facts about a target beside those that policies read.
struct TargetFacts {
  std::uint64_t arrivals = 0;                                // requests so far
  std::map<std::pair<Time, AppId>, Holders::iterator> kept;  // idle holds, by their ends
  std::int64_t pausing = 0;                                  // holders that are to stop
  std::int64_t paused = 0;                                   // requests that wait after a suspension
  std::int64_t parted = 0;                                   // requests, also granted ones, for parts of the target
  std::int64_t delegated = 0;                                // delegations
  std::int64_t recalled = 0;                                 // those of them that were recalled
  bool shared = false;                                       // a holder has a bandwidth share below 1
  Time remind{};                                             // if requests wait: time of the next QUEUED_IO to them
  Time wake{};                                               // if requests wait: time of the next event due here
  Time again{};                                              // time at which the policy wants to be called; 0: none
};

// A target with all that happens on it. It exists while somebody uses it; its record outlives it.
struct alignas(64) Target {
  std::string name;
  std::uint64_t number = 0;        // in order of first use, which is the order of processing
  PartNumbers part_numbers;        // of all parts that were named while the target was in use
  TargetRecord* record = nullptr;  // what was learned of the target; outlives it
  Time last_wait{};                // latest time at which a request waited
  Requests waiting;                // in order of first arrival, also after a suspension
  Holders holders;                 // in order of arrival; one under an exclusive policy
  LedgerOnly<TargetFacts> ledger{};
  Progress progress;                          // of holders with accesses
  Time served{};                              // time up to which progress is counted
  std::array<std::int64_t, loads> present{};  // holders with accesses, by their load
  ByLoad present_s{};                         // their numbers, integrated over time
  Uncoordinated uncoordinated;                // used if slowdowns are bounded

  bool idle() const { return waiting.empty() && holders.empty(); }
};

}  // namespace hocket::model
