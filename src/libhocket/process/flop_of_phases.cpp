#include "process/flop_of_phases.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "mpi_shim/calls.hpp"
#include "process/identity.hpp"
#include "session/flop_counter.hpp"

namespace hocket::runtime {
namespace {

constinit std::atomic<FlopCounter*> counter = nullptr;  // never destroyed; nullptr until it is opened

std::vector<CountedEvent> events_of(FlopEvents events) {
  switch (events) {
    case FlopEvents::hardware: return flop_events(this_cpu(), this_linux());
    case FlopEvents::none: return {};
    case FlopEvents::task_clock: return {task_clock_event};
  }
  return {};
}

}  // namespace

void open_flop_counter(FlopEvents events) {
  counter = new FlopCounter;
  counter.load()->open(events_of(events));
}

void close_flop_counter() {
  if (FlopCounter* const own = counter) own->close();
}

void abandon_flop_counter() noexcept {
  if (FlopCounter* const own = counter) own->abandon();
}

bool phase_wants_flop(Reporter* reporter) noexcept {
  const FlopCounter* const own = counter;
  return reporter && own && own->readable() && reporter->phase_began();
}

void count_flop(MPI_Comm comm, bool root) noexcept {
  FlopCounter* const own = counter;
  const std::optional<double> operations = own ? own->read() : std::nullopt;
  std::array<double, 2> all = {operations.value_or(0), operations ? 1.0 : 0.0};  // with the processes that could read
  if (comm != mpi::no_comm()) mpi::sum(comm, all);
  Reporter* const reporter = Reporter::find();
  if (root && reporter) reporter->flop_counted(all[0], static_cast<std::int64_t>(all[1]), identity().size);
}

}  // namespace hocket::runtime
