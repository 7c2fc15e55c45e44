// hocket_io_expected_wait of include/hocket/io.h: an application asks for the load before it decides when to do I/O.
#include <algorithm>
#include <array>
#include <limits>

#include "api/status.hpp"
#include "hocket/io.h"
#include "mpi_shim/calls.hpp"
#include "process/announced.hpp"
#include "process/guarded.hpp"
#include "process/identity.hpp"
#include "process/reporter.hpp"

namespace {

using hocket::to_s;
using hocket::api::fail;
using hocket::runtime::announced;
using hocket::runtime::hot;
using hocket::runtime::identity;
using hocket::runtime::Reporter;
namespace event = hocket::event;
namespace mpi = hocket::runtime::mpi;

constexpr double unknown = std::numeric_limits<double>::infinity();
// The values of an answer as rank 0 sends them: wait, uncertainty, applications ahead, and 1 if hocketd has answered.
using Values = std::array<double, 4>;

Values ask_hocketd() {
  event::AskWait asked;
  announced().describe_wait(asked);
  const auto answer = Reporter::get().session().expected_wait(asked);
  if (!answer) return {0, unknown, 0, 0};
  const bool known = answer->uncertainty >= hocket::Duration{};
  return {to_s(answer->wait), known ? to_s(answer->uncertainty) : unknown, static_cast<double>(answer->ahead), 1};
}

}  // namespace

int hocket_io_expected_wait(MPI_Comm comm, hocket_io_load* load) {
  if (load == nullptr) return hocket::api::no_null("hocket_io_expected_wait", "load");
  *load = {0, unknown, 0};
  return hocket::runtime::guarded([&]() -> int {
    if (!hot.is_active())
      return fail(HOCKET_ERROR_ORDER, "hocket_io_expected_wait was called before MPI_Init or after MPI_Finalize");
    if (comm == mpi::no_comm() || mpi::is_inter(comm))
      return fail(
          HOCKET_ERROR_ARGUMENT,
          "hocket_io_expected_wait: 'comm' is MPI_COMM_NULL or an intercommunicator; give an intracommunicator");
    if (!identity().coordinates()) return HOCKET_IO_LOAD_UNKNOWN;
    Values values{0, unknown, 0, 0};
    if (mpi::rank_in(comm) == 0) values = ask_hocketd();
    // The collective call comes in every case, so that no process waits for rank 0 in vain.
    if (mpi::size_of(comm) > 1 && !mpi::broadcast(comm, 0, values.data(), sizeof values)) values = {0, unknown, 0, 0};
    *load = {values[0], values[1], static_cast<int>(std::min(values[2], 1e9))};
    return values[3] > 0 ? HOCKET_OK : HOCKET_IO_LOAD_UNKNOWN;
  });
}
