#include "runtime/io/data_set.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/descriptor.hpp"
#include "runtime/io/agreement.hpp"
#include "runtime/mpi/process.hpp"
#include "runtime/server_map.hpp"
#include "transport/proof.hpp"

namespace hocket::runtime::io {
namespace {

// Default and largest time limit for a data set to become available: ten minutes and one day.
constexpr Duration usual_patience = from_s(600), longest_patience = from_s(86'400);

// Rank 0's decision for one attempt, broadcast to all ranks.
struct Choice {
  std::int64_t map_bytes = 0;  // length of the server's text; 0: there is no server
  std::int64_t group = 0;
  std::int64_t left_ns = 0;  // time left until the time limit
  std::int64_t application_bytes = 0;
};

// Precondition: less than one second.
void sleep(Duration duration) {
  const timespec time{0, static_cast<long>(duration.count())};
  nanosleep(&time, nullptr);
}

// One attempt to open the version: rank 0 looks at the map, then all ranks wait at the server for one slice of time.
// Slices let the ranks notice that the server has gone, or that another one is the home now.
class Attempt {
 public:
  // `start` is when the first attempt began, `present` when a server was last known. Both count in rank 0 only.
  Attempt(const Team& team, const Wish& wish, Time start, Time present)
      : team_(team), wish_(wish), start_(start), present_(present) {}

  // Broadcasts rank 0's choice. Collective. False if MPI failed.
  bool choose();
  bool has_server() const { return !server_.name.empty(); }
  bool is_late() const { return choice_.left_ns <= 0; }
  const std::string& server() const { return server_.name; }
  std::uint64_t group() const { return static_cast<std::uint64_t>(choice_.group); }
  // Asks the server for the version. Reuses the connection of the attempt before if it leads to the same server.
  // Returns one error of all ranks, the same in all; 0 if all have joined. Collective.
  int join(std::optional<Served>& home) const;

 private:
  void choose_in_root(std::string& text, std::string& application);

  const Team& team_;
  const Wish& wish_;
  Time start_, present_;
  Choice choice_;
  event::ServerMap::Server server_;
  std::string application_;
};

void Attempt::choose_in_root(std::string& text, std::string& application) {
  const std::shared_ptr<const event::ServerMap> map = Process::joined_server_map();
  const event::ServerMap::Server* const home = event::home_of(*map, wish_.name);
  if (home != nullptr) text = event::text_of({*home});
  application = Process::application();
  const Time now = node_now();
  Duration left = wish_.patience - (now - start_);
  // Without any server, wait only as long as a server may be absent between its end and its restart.
  if (home == nullptr) left = std::min(left, transport::most_absence - (now - present_));
  choice_ = {static_cast<std::int64_t>(text.size()), static_cast<std::int64_t>(transport::new_number()), left.count(),
             static_cast<std::int64_t>(application.size())};
}

bool Attempt::choose() {
  std::string text;
  if (team_.rank == 0) choose_in_root(text, application_);
  if (!mpi::broadcast(team_.comm, 0, &choice_, sizeof choice_)) return false;
  text.resize(static_cast<std::size_t>(choice_.map_bytes));
  application_.resize(static_cast<std::size_t>(choice_.application_bytes));
  if (!mpi::broadcast(team_.comm, 0, application_.data(), choice_.application_bytes)) return false;
  if (text.empty()) return true;
  if (!mpi::broadcast(team_.comm, 0, text.data(), choice_.map_bytes)) return false;
  const Result<event::ServerMap> map = event::parse_server_map(0, text);
  if (!map || map.value().servers.size() != 1) return false;
  server_ = map.value().servers.front();
  return true;
}

int Attempt::join(std::optional<Served>& home) const {
  if (!home || home->lost() || !(home->server() == server_)) home.emplace(server_);
  home->join({.name = wish_.name,
              .application = application_,
              .writes = wish_.writes,
              .group = group(),
              .participants = team_.ranks,
              .readers = static_cast<int>(wish_.readers),
              .patience = transport::join_slice});
  await_answers({&*home, 1}, team_.comm);
  const int own = home->lost() ? ECONNRESET : home->error();
  const int error = agree_on_error(team_, own);
  if (error != 0 && own == 0) home.reset();  // closes the connection, which makes the server give up this rank's part
  return error;
}

// True if the error may go away with the next server, or after some time.
bool may_change(int error) { return error == ETIMEDOUT || error == ECONNRESET || error == ECANCELED || error == ENXIO; }

}  // namespace

Wish wish_of(std::string name, int mode, MPI_Info info) {
  constexpr std::int64_t most_readers = 1024;
  const std::int64_t usual_s = usual_patience / from_s(1);
  return {.name = std::move(name),
          .writes = (mode & MPI_MODE_WRONLY) != 0,
          .readers = mpi::number_hint(info, "hocket_readers", 1, 0, most_readers),
          .patience =
              std::chrono::seconds(mpi::number_hint(info, "hocket_wait", usual_s, 0, longest_patience / from_s(1)))};
}

std::string reason_of(const Joined& joined, const Wish& wish) {
  const std::string name = "'" + std::string(event::data_set_prefix) + wish.name + "' ";
  const std::string after_s = " within " + std::to_string(wish.patience / from_s(1)) + " s (hint hocket_wait)";
  switch (joined.error) {
    case ENXIO: return name + "needs an I/O server, and none is running: hocket server start --dir DIRECTORY";
    case ETIMEDOUT:
      return name +
             (wish.writes ? "could not be written: there was no room beside versions that nobody has read"
                          : "was not there to be read: nobody wrote a version") +
             after_s;
    case ENOSPC: return name + "could not be opened: " + joined.where + " has no room for it (--exchange)";
    case EINVAL: return name + "is not taken by " + joined.where + ": a name has 1 to 255 printable characters";
    case ECONNRESET: return name + "could not be opened: " + joined.where + " was lost";
    default: return name + "could not be opened: " + error_text(joined.error);
  }
}

Joined join(const Team& team, Wish wish) {
  const auto failed = [] { return Joined{EIO, {}, {}, 0}; };
  Joined joined;
  std::array<std::int64_t, 2> wishes = {wish.readers, wish.patience.count()};
  if (!mpi::smallest(team.comm, wishes)) return failed();
  wish.readers = wishes[0];
  wish.patience = Duration(wishes[1]);
  const Time start = node_now();
  Time present = start;
  for (;;) {
    Attempt attempt(team, wish, start, present);
    if (!attempt.choose()) return failed();
    // A server that appeared during the last pause is asked once, even after the time limit.
    if (joined.error != 0 && attempt.is_late() && !(joined.error == ENXIO && attempt.has_server())) return joined;
    if (attempt.has_server()) {
      joined.error = attempt.join(joined.home);
      joined.group = attempt.group();
      present = node_now();
      joined.where = "the I/O server " + attempt.server();
    } else {
      joined.error = ENXIO;
    }
    if (!may_change(joined.error)) return joined;
    if (joined.error != ETIMEDOUT) sleep(transport::join_pause);
  }
}

}  // namespace hocket::runtime::io
