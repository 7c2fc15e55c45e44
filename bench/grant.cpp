// Measures START_IO → GRANT_IO without contention, against a hocketd process of its own. The reference is a bare
// ping-pong between two processes over a Unix socket, with messages of the same sizes. Both alternate in blocks of
// one run and are compared by their medians. Both peers run on the same core, once that of the client and once another:
// the scheduler would place them differently, and to wake another core takes ten times as long. As in a real client,
// FINISH_IO follows each grant without an answer, so the next request queues behind it.
#include <sys/socket.h>

#include <string>
#include <vector>

#include "daemon_process.hpp"
#include "grant_delegated.hpp"

namespace {

using bench::Application;

// Samples of each kind, and the bound on the ratio of the medians.
constexpr std::size_t samples = 10'000;
constexpr double bound = 2.0;

// Answers each message of the size of a START_IO with one of the size of a GRANT_IO.
void answer(int socket, bench::Frames frames) {
  const auto size = static_cast<ssize_t>(frames.request.size());
  while (recv(socket, frames.request.data(), frames.request.size(), MSG_WAITALL) == size &&
         bench::transfer_all(socket, frames.answer, false)) {
  }
}

// Measures one application's grants with `connected` applications in all, and hocketd on the core `peer`. Returns true
// if the bound holds.
bool measure(int connected, int peer, const std::string& where) {
  const bench::DaemonProcess daemon({}, peer);
  std::vector<Application> applications;
  for (int i = 0; i < connected; ++i) applications.emplace_back(daemon.socket(), i, "dev:8:1");
  // Only the last application requests the target; the others are connected and idle.
  Application& asking = applications.back();
  const bench::Frames frames = asking.frames();
  bench::PingPong bare{frames, peer, [&](int socket) { answer(socket, frames); }};
  const std::string name =
      std::to_string(connected) + " application" + (connected == 1 ? "" : "s") + " connected, " + where;
  return bench::print_pairs("grant", name, bench::measure_in_turn(asking, bare, samples), bound);
}

}  // namespace

int main() {
  const bench::Cores both = bench::cores();
  bench::bind_to(both.client);
  bool ok = true;
  for (const int connected : {1, 64}) {
    ok = measure(connected, both.client, "one core") && ok;
    if (both.other != both.client) ok = measure(connected, both.other, "two cores") && ok;
  }
  ok = bench::measure_delegated(both.other) && ok;
  return ok ? 0 : 1;
}
