#include "process/lifecycle.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/warn.hpp"
#include "process/call_log.hpp"
#include "process/flop_of_phases.hpp"
#include "process/grants.hpp"
#include "process/identity.hpp"
#include "process/meeting.hpp"
#include "process/reporter.hpp"

namespace hocket::runtime {
namespace {

// Stops watching in the child of a fork(): it lacks the lease thread, and the connection belongs to the parent.
void forked() {
  hot.active = false;
  hot.watches_posix = false;
  abandon_flop_counter();
  if (Reporter* const reporter = Reporter::find()) reporter->session().abandon();
}

void warn_of_wrong_settings(const Identity& own) {
  std::string_view rest = own.wrong_settings;
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1))
    warn(rest.substr(0, end));
}

// Says how often accesses could not stop for other applications, and what would help, if others waited long enough for
// a user to care; the report has all. The time is that of the process with most of it: what several processes report
// may be the same wait.
void tell_unstopped(const Identity& own, std::int64_t accesses, Duration others_waited) {
  constexpr Duration worth_telling = std::chrono::seconds{1};
  if (accesses == 0 || others_waited < worth_telling) return;
  std::array<char, 32> waited{};
  std::snprintf(waited.data(), waited.size(), "%.2f s", to_s(others_waited));
  const bool by_hocket = own.settings.io == Io::hocket;
  warn(std::to_string(accesses) + (accesses == 1 ? " access" : " accesses") +
       " of the MPI library could not stop for other applications, which waited " + waited.data() + " for the end: " +
       (by_hocket ? "" : "run it with --io hocket, ") + "make accesses smaller, or use the steps of hocket/io.h");
}

// Sums up what BYE reports, over all processes, and sends it. Collective over the world.
void say_bye(const Identity& own) {
  const Duration cpu = spent(node_now()).cpu;
  const TimeSums sums = hot.sums();
  const Counters& counters = hot.counters;
  const grants::Unstopped unstopped = grants::unstopped();
  std::array<std::int64_t, 10> all = {cpu.count(),           sums.comm.count(),        sums.io.count(),
                                      sums.wait.count(),     counters.io_calls(),      counters.comm.calls.get(),
                                      counters.bytes_read(), counters.bytes_written(), hot.uncoordinated.get(),
                                      unstopped.accesses};
  std::array<std::int64_t, 3> most = {cpu.count(), sums.comm.count(), unstopped.others_waited.count()};
  mpi::sum(mpi::world(), all);
  mpi::most(mpi::world(), most);
  mpi::forget_told();
  if (own.rank == 0 && all[8] > 0) warn_of_missing_hocketd("hocketd at " + own.settings.socket + " was missing");
  if (own.speaks()) tell_unstopped(own, all[9], Duration{most[2]});
  event::Bye bye;
  if (own.rank == 0)
    bye = {Duration{all[0]}, Duration{all[1]}, Duration{all[2]}, Duration{all[3]},  all[4],           all[5],
           all[6],           all[7],           own.size,         Duration{most[0]}, Duration{most[1]}};
  // Members of other ranks send an empty BYE, because rank 0's has the sums of all.
  if (Reporter* const reporter = Reporter::find()) reporter->session().leave(bye);
}

}  // namespace

void initialised() noexcept {
  const Identity& own = identify();
  hot.threads = mpi::has_threads();
  pthread_atfork(nullptr, nullptr, forked);
  if (own.coordinates()) {
    open_flop_counter(own.settings.flop_events);
    open_meetings();
  }
  if (!own.settings.capture.empty() && !call_log::begin(own.settings.capture, own.started))
    warn("no memory for the log of calls: nothing is captured of rank " + std::to_string(own.rank));
  hot.reports = own.settings.reports();
  hot.active = true;
  hot.watches_posix = own.settings.reports() && own.settings.posix;
  if (own.speaks()) warn_of_wrong_settings(own);
  if (own.rank == 0 && hot.is_reported()) Reporter::get().session().join();
}

void finalising() noexcept {
  if (!hot.is_active()) return;
  hot.watches_posix = false;  // before the sums: other threads may continue writing
  call_log::end(identity().rank, identity().size, identity().spawned);
  if (hot.is_reported()) {
    if (Reporter* const reporter = Reporter::find()) reporter->end_phase();
    say_bye(identity());
  }
  hot.active = false;
  close_flop_counter();
}

Spent spent(Time now) noexcept {
  const TimeSums own = hot.sums();
  // Threads that communicate concurrently can account for more than the elapsed time.
  return {std::max(Duration{}, now - identity().started - own.io - own.comm - own.wait), own.comm};
}

}  // namespace hocket::runtime
